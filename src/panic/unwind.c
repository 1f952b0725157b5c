/* SPDX-License-Identifier: MIT */
/*
 * Frames that can be unwound: those of C++, and of C compiled with -fexceptions.
 *
 * The unwinder comes with the program, or it does not: pirn is linked with libc alone, and a program in C
 * needs none. If it is there a panic that will be caught, and pirn_exit, unwind frame by frame, with
 * _Unwind_ForcedUnwind, as the cancellation of a thread does. For each frame the unwinder calls stop(); then
 * the code that the compiler has made for the frame runs its destructors and cleanups, pirn_defer's among
 * them. stop() runs the deferred calls of frames that have none such, when they have been passed. So
 * deferred calls and destructors come in one order, the innermost first.
 *
 * That code must not be unwound in turn (the compiler makes that std::terminate): a deferred call that
 * panics while frames are unwound comes to an end where it was called, see panic.h.
 *
 * A frame without unwind information ends the unwinding: what is deferred further out is called, but
 * destructors there are not. The same after a fault: the compiler had no reason to expect an exception at
 * that instruction. A panic that nobody will catch unwinds nothing, so that the report shows its frames.
 */
#include <dlfcn.h>

#include "panic/panic.h"

#pragma weak _Unwind_ForcedUnwind
#pragma weak _Unwind_GetCFA

struct cxx_globals *__cxa_get_globals(void);
#pragma weak __cxa_get_globals

static struct {
    __typeof__(&_Unwind_ForcedUnwind) forced;
    __typeof__(&_Unwind_GetCFA) cfa;
    struct cxx_globals *(*globals)(void);
} unwinder;

bool unwind_possible;

/* Linked with the program, or found among what was loaded with it. */
#define FIND(field, name)                                                                          \
    do {                                                                                           \
        unwinder.field = &name; /* NOLINT: weak */                                                 \
        if (!unwinder.field) {                                                                     \
            *(void **)&unwinder.field = dlsym(RTLD_DEFAULT, #name);                                \
        }                                                                                          \
    } while (0)

__attribute__((constructor(103))) void unwind_start(void)
{
    FIND(forced, _Unwind_ForcedUnwind);
    FIND(cfa, _Unwind_GetCFA);
    FIND(globals, __cxa_get_globals);
    unwind_possible = unwinder.forced && unwinder.cfa;
}

/* Of this thread; NULL: there is no C++. */
struct cxx_globals *cxx_globals(void)
{
    return unwinder.globals ? unwinder.globals() : NULL;
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *e, struct _Unwind_Context *context,
                                void *arg)
{
    struct gtop *top = arg;
    bool end = actions & _UA_END_OF_STACK;
    void *sp = end ? NULL : (void *)unwinder.cfa(context); /* of the frame that comes next */
    (void)version, (void)class, (void)e;
    top->unwinds = NULL;
    for (struct pirn_defer_ *d; (d = top->defers) ? end || d->frame_ < sp : end;) {
        if (!d) {
            panic_at_bottom(top);
        }
        panic_step(top, d, true);
    }
    top->unwinds = top->defers;
    return _URC_NO_REASON;
}

/* By the end of a catch (...). */
static void not_rethrown(_Unwind_Reason_Code reason, struct _Unwind_Exception *e)
{
    struct pirn_panic_info *p =
        (struct pirn_panic_info *)(void *)((char *)e - offsetof(struct pirn_panic_info, exception));
    (void)reason;
    if (p->exits) {
        fatal("pirn_exit was caught by catch (...), and not rethrown");
    }
    fatal("a panic was caught by catch (...), and not rethrown: %s", p->message);
}

void unwind_frames(struct gtop *top, struct pirn_panic_info *p)
{
    p->exception = (struct _Unwind_Exception){.exception_class = 0x5049524e43000000, /* PIRNC */
                                              .exception_cleanup = not_rethrown};
    unwinder.forced(&p->exception, stop, top);
    p->fault = true; /* it does not know even this frame: not again */
}
