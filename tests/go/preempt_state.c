/* SPDX-License-Identifier: MIT */
/*
 * What a goroutine has in its registers, below its stack pointer and in errno is there when it goes on
 * after it was stopped in the midst of computing (HAZARDS 2, 10, 11).
 */
#include <errno.h>
#include <string.h>

#include "go/busy.h"

#define STOPS 30                        /* preemptions to be survived */
#define SPINS ((long)(2 * 1000 * 1000)) /* about a millisecond: some calls see the end of a slice */

/* Twice as many as there are Ps, with different values, until many have been stopped. */
static void run_all(void (*fn)(void *))
{
    static int numbers[32];
    pirn_attr own = {.flags = PIRN_ATTR_FP_MODES};
    int n = 2 * pirn_procs(0);
    CHECK_LE(n, 32);
    atomic_store(&stop_loops, 0);
    for (int i = 0; i < n; i++) {
        numbers[i] = i + 1;
        pirn_wg_add(&looping, 1);
        CHECK_EQ(pirn_spawn(&own, fn, &numbers[i]), 0);
    }
    await_preempted(STOPS);
    end_loops();
}

static bool go_on(void)
{
    return !atomic_load_explicit(&stop_loops, memory_order_relaxed);
}

/* --- the red zone ----------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* Fills the 128 bytes below the stack pointer, and looks at them again and again: 1 if all stayed. */
__attribute__((visibility("hidden"))) int red_zone_stays(long pattern, long rounds);
__asm__(".text\n"
        "red_zone_stays:\n"
        ".cfi_startproc\n"
        "   movq $-128, %rcx\n"
        "1: leaq (%rdi,%rcx), %rax\n"
        "   movq %rax, (%rsp,%rcx)\n"
        "   addq $8, %rcx\n"
        "   jnz 1b\n"
        "2: movq $-128, %rcx\n"
        "3: leaq (%rdi,%rcx), %rax\n"
        "   cmpq %rax, (%rsp,%rcx)\n"
        "   jne 4f\n"
        "   addq $8, %rcx\n"
        "   jnz 3b\n"
        "   decq %rsi\n"
        "   jnz 2b\n"
        "   movl $1, %eax\n"
        "   ret\n"
        "4: xorl %eax, %eax\n"
        "   ret\n"
        ".cfi_endproc\n");

static void uses_red_zone(void *arg)
{
    for (long i = *(int *)arg; go_on(); i += 1000)
        CHECK(red_zone_stays(i, SPINS / 16));
    pirn_wg_done(&looping);
}
#endif

TEST_RUN_ATTR(red_zone, PROCS, .timeout = 60)
{
    needs_preemption();
#if defined(__x86_64__)
    run_all(uses_red_zone);
#else
    (void)run_all;
    SKIP("there is no red zone here");
#endif
}

/* --- vector registers ------------------------------------------------------------------------- */

/* Moves what is at `in` through all vector registers, with a pause, to `out`. */
struct vectors {
    _Alignas(64) unsigned char bytes[512];
};

#if defined(__x86_64__)
#define ALL16(m)                                                                                   \
    m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define SPIN                                                                                       \
    "1: decq %2\n"                                                                                 \
    "   jnz 1b\n"
#define XMM                                                                                        \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

#define LOAD_YMM(i) "vmovdqu 32*" #i "(%0), %%ymm" #i "\n"
#define STORE_YMM(i) "vmovdqu %%ymm" #i ", 32*" #i "(%1)\n"
__attribute__((target("avx"), noinline)) static void through_ymm(const struct vectors *in,
                                                                 struct vectors *out, long spins)
{
    __asm__ volatile(ALL16(LOAD_YMM) SPIN ALL16(STORE_YMM) "vzeroupper\n"
                     : "+r"(in), "+r"(out), "+r"(spins)
                     :
                     : XMM, "memory", "cc");
}

#define LOAD_XMM(i) "movdqu 32*" #i "(%0), %%xmm" #i "\n"
#define STORE_XMM(i) "movdqu %%xmm" #i ", 32*" #i "(%1)\n"
__attribute__((noinline)) static void through_xmm(const struct vectors *in, struct vectors *out,
                                                  long spins)
{
    *out = *in; /* the half that is not moved */
    __asm__ volatile(ALL16(LOAD_XMM) SPIN ALL16(STORE_XMM)
                     : "+r"(in), "+r"(out), "+r"(spins)
                     :
                     : XMM, "memory", "cc");
}

static void through(const struct vectors *in, struct vectors *out, long spins)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx"))
        through_ymm(in, out, spins);
    else
        through_xmm(in, out, spins);
}
#else
static void through(const struct vectors *in, struct vectors *out, long spins)
{
    __asm__ volatile("ld1 {v0.16b-v3.16b}, [%0], #64\n ld1 {v4.16b-v7.16b}, [%0], #64\n"
                     "ld1 {v8.16b-v11.16b}, [%0], #64\n ld1 {v12.16b-v15.16b}, [%0], #64\n"
                     "ld1 {v16.16b-v19.16b}, [%0], #64\n ld1 {v20.16b-v23.16b}, [%0], #64\n"
                     "ld1 {v24.16b-v27.16b}, [%0], #64\n ld1 {v28.16b-v31.16b}, [%0], #64\n"
                     "1: subs %2, %2, #1\n"
                     "b.ne 1b\n"
                     "st1 {v0.16b-v3.16b}, [%1], #64\n st1 {v4.16b-v7.16b}, [%1], #64\n"
                     "st1 {v8.16b-v11.16b}, [%1], #64\n st1 {v12.16b-v15.16b}, [%1], #64\n"
                     "st1 {v16.16b-v19.16b}, [%1], #64\n st1 {v20.16b-v23.16b}, [%1], #64\n"
                     "st1 {v24.16b-v27.16b}, [%1], #64\n st1 {v28.16b-v31.16b}, [%1], #64\n"
                     : "+r"(in), "+r"(out), "+r"(spins)
                     :
                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                       "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
                       "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory",
                       "cc");
}
#endif

static void uses_vectors(void *arg)
{
    struct vectors in, out;
    for (int i = *(int *)arg; go_on(); i += 37) {
        for (int k = 0; k < 512; k++)
            in.bytes[k] = (unsigned char)(i + k * 7);
        memset(&out, 0, sizeof out);
        through(&in, &out, 2 * SPINS);
        CHECK_EQ(memcmp(&in, &out, sizeof in), 0);
    }
    pirn_wg_done(&looping);
}

TEST_RUN_ATTR(vector_registers, PROCS, .timeout = 60)
{
    needs_preemption();
    run_all(uses_vectors);
}

/* --- floating point: modes, and x87's stack --------------------------------------------------- */

#if defined(__x86_64__)
static unsigned modes(void)
{
    unsigned short cw = 0; /* MemorySanitizer does not look into this */
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    return (__builtin_ia32_stmxcsr() & 0xffc0u) << 16 | cw;
}

/* One of the four rounding modes, for both units. */
static void round_as(unsigned mode)
{
    unsigned short cw = 0;
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x6000u) | mode << 13);
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    cw = (unsigned short)((cw & ~0xc00u) | mode << 10);
    __asm__ volatile("fldcw %0" ::"m"(cw));
}

/* Four numbers lie on x87's stack meanwhile. */
static void use_x87(int i, long spins)
{
    int in[4] = {i, i + 1, -i, i * 3}, out[4] = {0};
    __asm__ volatile("fildl 0(%1)\n fildl 4(%1)\n fildl 8(%1)\n fildl 12(%1)\n"
                     "1: decq %0\n"
                     "   jnz 1b\n"
                     "fistpl 12(%2)\n fistpl 8(%2)\n fistpl 4(%2)\n fistpl 0(%2)\n"
                     : "+r"(spins)
                     : "r"(in), "r"(out)
                     : "memory", "cc", "st", "st(1)", "st(2)", "st(3)");
    CHECK_EQ(memcmp(in, out, sizeof in), 0);
}

static void uses_fp(void *arg)
{
    int i = *(int *)arg;
    round_as((unsigned)i % 4);
    for (unsigned mine = modes(); go_on();) {
        use_x87(i, 2 * SPINS);
        CHECK_EQ(modes(), mine);
    }
    round_as(0);
    pirn_wg_done(&looping);
}
#else
static void uses_fp(void *arg)
{
    uint64_t mine = (uint64_t)(*(int *)arg % 4) << 22, now;
    __asm__ volatile("msr fpcr, %0" ::"r"(mine));
    while (go_on()) {
        __asm__ volatile("mrs %0, fpcr" : "=r"(now));
        CHECK_EQ(now, mine);
    }
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0));
    pirn_wg_done(&looping);
}
#endif

TEST_RUN_ATTR(floating_point, PROCS, .timeout = 60)
{
    needs_preemption();
    run_all(uses_fp);
}

/* --- errno ------------------------------------------------------------------------------------ */

static void uses_errno(void *arg)
{
    for (int mine = *(int *)arg + 1000; go_on();) {
        errno = mine;
        for (long i = 0; i < 2 * SPINS; i++)
            __asm__ volatile("");
        CHECK_EQ(errno, mine);
        CHECK_EQ(close(-1), -1);
        CHECK_EQ(errno, EBADF);
    }
    pirn_wg_done(&looping);
}

TEST_RUN_ATTR(errno_stays, PROCS, .timeout = 60)
{
    needs_preemption();
    run_all(uses_errno);
}
