/* SPDX-License-Identifier: MIT */
/*
 * Reads of 4 KB at random places of a file of 64 MB, by as many goroutines as there are READERS.
 * fileread_warm: all of it is in the page cache; fileread_cold: the cache is dropped before each batch,
 * and no reading ahead. op = one read.
 */
#include <fcntl.h>
#include <unistd.h>

#include "bench.h"

enum { PAGE = 4096, PAGES = 16384 };

static int fd;
static int cold_batches = 4;

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

static pirn_ns batch(int readers, int n)
{
    pirn_wg wg = {0};
    pirn_ns t0 = pirn_now();
    for (int i = 0; i < readers; i++) {
        pirn_wg_go(&wg, reads, (uint32_t)(i + 1) * 7919, n / readers);
    }
    pirn_wg_wait(&wg);
    return pirn_now() - t0;
}

static int run(void *arg)
{
    (void)arg;
    int readers = bench_int("READERS", 32), n = bench_int("N", 400000),
        cold = bench_int("COLD", 4000);
    make_file();
    batch(readers, n / 10);
    bench_per_op("fileread_warm", n, batch(readers, n));
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    pirn_ns t = 0;
    for (int i = 0; i < cold_batches; i++) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        t += batch(readers, cold / cold_batches);
    }
    bench_per_op("fileread_cold", cold, t);
    return 0;
}

int main(void)
{
    return bench_main(run);
}
