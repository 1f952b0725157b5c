/* SPDX-License-Identifier: MIT */
/*
 * Address space: mapping it, guarding it, giving it back.
 *
 * Guard regions come in three kinds. MADV_GUARD_INSTALL (Linux 6.13) marks page
 * table entries and makes no mapping of its own, so a million of them are
 * possible; process_madvise on ourselves installs hundreds with one call.
 * mprotect works everywhere but splits the mapping in two, and the kernel
 * allows some 65,000 mappings. GUARD_NONE is for stacks beyond that.
 *
 * A kind is believed only after a probe: some emulators accept every advice and
 * ignore it.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/tool.h"
#include "os/os.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef PIDFD_SELF
#define PIDFD_SELF (-10001) /* Linux 6.14; before that advice goes one by one */
#endif

at_u32 mem_fail_after;

/* A test may ask that the N-th mapping from now on fails. */
static bool refuse(void)
{
    uint32_t n = at_load(&mem_fail_after, RELAXED);
    while (unlikely(n)) {
        if (at_cas(&mem_fail_after, &n, n == 1 ? 1 : n - 1, RELAXED, RELAXED)) {
            return n == 1;
        }
    }
    return false;
}

static void *map(size_t size, int flags)
{
    if (refuse()) {
        return NULL;
    }
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void *mem_map(size_t size)
{
    void *p = map(size, 0);
    if (p) {
        tool_map(p, size);
    }
    return p;
}

void *mem_reserve(size_t size)
{
    void *p = map(size, MAP_NORESERVE);
    if (p) {
        madvise(p, size, MADV_NOHUGEPAGE);
    }
    return p;
}

void mem_unmap(void *addr, size_t size)
{
    munmap(addr, size);
}

int mem_drop_range(void *addr, size_t size)
{
    void *p = mmap(addr, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (p == MAP_FAILED) {
        return -errno;
    }
    madvise(addr, size, MADV_NOHUGEPAGE);
    return 0;
}

void mem_huge(void *addr, size_t size)
{
    madvise(addr, size, MADV_HUGEPAGE); /* a wish: without huge pages it is only slower */
}

static int advise_one_by_one(const struct mem_range *ranges, int n, int advice)
{
    for (int i = 0; i < n; i++) {
        if (madvise(ranges[i].addr, ranges[i].size, advice)) {
            return -errno;
        }
    }
    return 0;
}

static int advise(const struct mem_range *ranges, int n, int advice)
{
    _Static_assert(sizeof(struct mem_range) == sizeof(struct iovec), "a mem_range is an iovec");
    static at_u32 no_batches;
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        total += ranges[i].size;
    }
    if (n > 1 && tool_knows_new_calls() && !at_load(&no_batches, RELAXED)) {
        long done = syscall(SYS_process_madvise, PIDFD_SELF, ranges, (size_t)n, advice, 0);
        if (done == (long)total) {
            return 0;
        }
        if (done < 0 && errno != ENOMEM && errno != EAGAIN) {
            at_store(&no_batches, 1, RELAXED);
        }
    }
    return advise_one_by_one(ranges, n, advice); /* doing a range twice does no harm */
}

int mem_drop(const struct mem_range *ranges, int n)
{
    return advise(ranges, n, MADV_DONTNEED);
}

int mem_guard(enum guard_kind kind, const struct mem_range *ranges, int n)
{
    if (kind == GUARD_MADVISE) {
        return advise(ranges, n, MADV_GUARD_INSTALL);
    }
    for (int i = 0; kind == GUARD_MPROTECT && i < n; i++) {
        if (mprotect(ranges[i].addr, ranges[i].size, PROT_NONE)) {
            return -errno;
        }
    }
    return 0;
}

/* The kernel can't make a guarded page present. (Nor could it read a string there, but valgrind
 * would try to itself.) */
static bool unreadable(void *page, size_t size)
{
    return madvise(page, size, MADV_POPULATE_READ) < 0 && errno == EFAULT;
}

enum guard_kind mem_guard_probe(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mem_map(page);
    if (!p) {
        return GUARD_MPROTECT;
    }
    bool works = madvise(p, page, MADV_GUARD_INSTALL) == 0 && unreadable(p, page);
    mem_unmap(p, page);
    return works ? GUARD_MADVISE : GUARD_MPROTECT;
}
