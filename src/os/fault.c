/* SPDX-License-Identifier: MIT */
/* System calls that fail for tests; fault.h has the contract. */
#include "os/fault.h"

struct sys_fault sys_fault;

COLD int sys_fault_now(enum sys_call call)
{
    if (!(at_load(&sys_fault.calls, RELAXED) & UINT64_C(1) << call)) {
        return 0;
    }
    if ((int32_t)at_add(&sys_fault.after, (uint32_t)-1, RELAXED) > 0) {
        return 0;
    }
    if ((int32_t)at_add(&sys_fault.times, (uint32_t)-1, RELAXED) <= 0) {
        return 0;
    }
    return (int)at_load(&sys_fault.error, RELAXED);
}
