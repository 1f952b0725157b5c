/* SPDX-License-Identifier: MIT */
/*
 * The switch and the start of a stack, x86-64.
 *
 * A plain call and ret: with a return in place of the jump that other libraries
 * use, the return predictor stays right whenever goroutines run the same code.
 * arch_start calls the new goroutine, and when that has ended it returns to
 * whoever is next: a goroutine that spawns another and waits for it resumes
 * just where the processor expects it to.
 * There is no shadow-stack note, so the linker leaves user shadow stacks off.
 *
 * On valgrind sp goes to another stack by way of the first page (base/tool.c says why). Of two writes of
 * sp valgrind sees the first only if memory is accessed between them: hence the second cmpb. Neither
 * other threads nor signals come in between, for they do only where a block of code ends.
 */
#if PIRN_HAVE_VALGRIND
        .hidden tool_on_valgrind
#endif

        .macro  if_valgrind label
#if PIRN_HAVE_VALGRIND
        cmpb    $0, tool_on_valgrind(%rip)
        jne     \label
#endif
        .endm

        .macro  load_sp_on_valgrind from, back
#if PIRN_HAVE_VALGRIND
        movl    $64, %esp
        cmpb    $0, tool_on_valgrind(%rip)
        movq    \from, %rsp
        jmp     \back
#endif
        .endm

        .macro  save_registers
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        .endm

        .macro  restore_registers
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
        .endm

        .text

        .globl  arch_switch
        .hidden arch_switch
        .type   arch_switch, @function
        .p2align 4
arch_switch:                            /* rdi: where sp goes, rsi: sp to load */
        .cfi_startproc
        endbr64
        save_registers
        movq    %rsp, (%rdi)
        if_valgrind 1f
        movq    %rsi, %rsp
0:      .cfi_remember_state
        restore_registers
        ret
        .cfi_restore_state
1:      load_sp_on_valgrind %rsi, 0b
        .cfi_endproc
        .size   arch_switch, . - arch_switch

        .globl  arch_start
        .hidden arch_start
        .type   arch_start, @function
        .p2align 4
arch_start:                             /* rdi: where sp goes, rsi: top of the new stack */
        .cfi_startproc
        endbr64
        save_registers
        movq    %rsp, (%rdi)
        if_valgrind 2f
        movq    %rsi, %rsp
0:      .cfi_remember_state
        .cfi_undefined %rip             /* no caller: backtraces end here */
        xorl    %ebp, %ebp
        call    g_main                  /* gives the sp to go on with */
        if_valgrind 3f
        movq    %rax, %rsp
1:      .cfi_restore_state
        .cfi_remember_state
        restore_registers
        ret
        .cfi_restore_state
2:      load_sp_on_valgrind %rsi, 0b
        .cfi_undefined %rip
3:      load_sp_on_valgrind %rax, 1b
        .cfi_endproc
        .size   arch_start, . - arch_start

        .globl  arch_call_on
        .hidden arch_call_on
        .type   arch_call_on, @function
        .p2align 4
arch_call_on:                           /* rdi: sp, rsi: function, rdx: argument */
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq    $-16, %rdi
        if_valgrind 2f
        movq    %rdi, %rsp
0:      movq    %rdx, %rdi
        call    *%rsi
        if_valgrind 3f
        movq    %rbp, %rsp
1:      popq    %rbp
        .cfi_remember_state
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_restore_state
2:      load_sp_on_valgrind %rdi, 0b
3:      load_sp_on_valgrind %rbp, 1b
        .cfi_endproc
        .size   arch_call_on, . - arch_call_on

        .globl  arch_fp_modes
        .hidden arch_fp_modes
        .type   arch_fp_modes, @function
arch_fp_modes:
        .cfi_startproc
        endbr64
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movw    $0, 6(%rsp)
        popq    %rax
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   arch_fp_modes, . - arch_fp_modes

        .globl  arch_set_fp_modes
        .hidden arch_set_fp_modes
        .type   arch_set_fp_modes, @function
arch_set_fp_modes:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   arch_set_fp_modes, . - arch_set_fp_modes

        .section .note.GNU-stack, "", @progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5                /* name size, data size, GNU property type */
        .asciz  "GNU"
        .long   0xc0000002, 4, 1, 0     /* x86 feature 1: IBT */
