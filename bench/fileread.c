/* SPDX-License-Identifier: MIT */
/*
 * Reads of 4 KB at random places of a file of 64 MB; op = one read. fileread_warm: all of it is in the
 * page cache, one goroutine for each P. fileread_cold1 and fileread_cold32: the cache is dropped before each
 * batch, and there is no reading ahead; by 1 goroutine and by 32. Least of batches.
 */
#include <fcntl.h>
#include <unistd.h>

#include "bench.h"

enum { PAGE = 4096, PAGES = 16384 };

static int fd;

static void make_file(void)
{
    static char block[64 * PAGE];
    char path[] = "fileread.XXXXXX";
    fd = mkstemp(path);
    bench_check(fd >= 0, path);
    unlink(path);
    for (int i = 0; i < PAGES / 64; i++) {
        memset(block, i, sizeof block);
        bench_check(write(fd, block, sizeof block) == sizeof block, "write");
    }
    bench_check(fsync(fd) == 0, "fsync");
}

static void reads(uint32_t seed, int n)
{
    char page[PAGE];
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        off_t at = (off_t)(seed >> 8) % PAGES;
        if (pirn_pread(fd, page, PAGE, at * PAGE) != PAGE || page[0] != (char)(at / 64)) {
            abort();
        }
    }
}

static pirn_ns batch(int readers, int n, uint32_t seed)
{
    pirn_wg wg = {0};
    pirn_ns t0 = pirn_now();
    for (int i = 0; i < readers; i++) {
        pirn_wg_go(&wg, reads, (uint32_t)(i + 1) * 7919 + seed * 104729, n / readers);
    }
    pirn_wg_wait(&wg);
    return pirn_now() - t0;
}

static void measure(const char *name, int readers, int n, int batches, bool cold)
{
    pirn_ns best = PIRN_NEVER;
    n = n / batches / readers * readers;
    for (uint32_t b = 0; b < (uint32_t)batches; b++) {
        if (cold) {
            bench_check(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
        }
        pirn_ns t = batch(readers, n, b);
        best = t < best ? t : best;
    }
    bench_per_op(name, n, best);
}

static int run(void *arg)
{
    (void)arg;
    int warm = bench_int("N", 400000), cold = bench_int("COLD", 8000);
    make_file();
    measure("fileread_warm", bench_workers(), warm, 100, false);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    measure("fileread_cold1", 1, cold, 20, true);
    measure("fileread_cold32", 32, cold, 20, true);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
