/* SPDX-License-Identifier: MIT */
/* System calls of the I/O layer that fail: os/fault.h. */
#ifndef TESTS_FAULT_FAIL_H
#define TESTS_FAULT_FAIL_H

#include "harness.h"
#include "os/fault.h"

#define CALL(name) (UINT64_C(1) << SYS_CALL_##name)
#define EVERY_TIME (1u << 30)

/* After so many of these calls so many fail; made: they are made all the same. */
__attribute__((unused)) static void fail_so(uint64_t calls, uint32_t after, int error,
                                            uint32_t times, bool made)
{
    at_store(&sys_fault.calls, 0, RELAXED);
    at_store(&sys_fault.made, made, RELAXED);
    at_store(&sys_fault.after, after, RELAXED);
    at_store(&sys_fault.error, (uint32_t)error, RELAXED);
    at_store(&sys_fault.times, times, RELAXED);
    at_store(&sys_fault.calls, calls, RELAXED);
}

__attribute__((unused)) static void fail(uint64_t calls, uint32_t after, int error, uint32_t times)
{
    fail_so(calls, after, error, times, false);
}

__attribute__((unused)) static void fail_no_more(void)
{
    at_store(&sys_fault.calls, 0, RELAXED);
}

/* All that were to fail have. */
__attribute__((unused)) static bool did_fail(void)
{
    return (int32_t)at_load(&sys_fault.times, RELAXED) <= 0;
}

#endif
