/* SPDX-License-Identifier: MIT */
/*
 * Arguments of pirn_go, x86-64 (System V): six integer registers, six of
 * floating point. struct goargs is that of arch.h.
 */
        .text

/*
 * void pirn_go_args_(arguments of any function): stores the argument registers
 * in go_args_tls. The caller set al for a variadic function only, so all are
 * stored. A float lies in the lower half of its register.
 */
        .globl  pirn_go_args_
        .type   pirn_go_args_, @function
        .p2align 4
pirn_go_args_:
        .cfi_startproc
        endbr64
        movq    go_args_tls@gottpoff(%rip), %rax
        movq    %rdi, %fs:0(%rax)
        movq    %rsi, %fs:8(%rax)
        movq    %rdx, %fs:16(%rax)
        movq    %rcx, %fs:24(%rax)
        movq    %r8, %fs:32(%rax)
        movq    %r9, %fs:40(%rax)
        movsd   %xmm0, %fs:48(%rax)
        movsd   %xmm1, %fs:56(%rax)
        movsd   %xmm2, %fs:64(%rax)
        movsd   %xmm3, %fs:72(%rax)
        movsd   %xmm4, %fs:80(%rax)
        movsd   %xmm5, %fs:88(%rax)
        ret
        .cfi_endproc
        .size   pirn_go_args_, . - pirn_go_args_

/*
 * uint64_t go_call_args(const struct goargs *args, void (*fn)(void), unsigned flags):
 * calls fn with them. al is what a variadic fn asks for: no fewer than the vector
 * registers in use.
 */
        .globl  go_call_args
        .hidden go_call_args
        .type   go_call_args, @function
        .p2align 4
go_call_args:
        .cfi_startproc
        endbr64
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        movq    %rbp, (%rcx)
        movq    %rdi, %r10
        movq    %rsi, %r11
        xorl    %eax, %eax
        testb   $1, %dl                 /* GO_HAS_FLOAT */
        jz      1f
        movsd   48(%r10), %xmm0
        movsd   56(%r10), %xmm1
        movsd   64(%r10), %xmm2
        movsd   72(%r10), %xmm3
        movsd   80(%r10), %xmm4
        movsd   88(%r10), %xmm5
        movl    $8, %eax
1:      movq    0(%r10), %rdi
        movq    8(%r10), %rsi
        movq    16(%r10), %rdx
        movq    24(%r10), %rcx
        movq    32(%r10), %r8
        movq    40(%r10), %r9
        call    *%r11
        .globl  go_call_returns
        .hidden go_call_returns
go_call_returns:
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        .cfi_restore %rbp
        ret
        .cfi_endproc
        .size   go_call_args, . - go_call_args

        .globl  arch_fault_entry
        .hidden arch_fault_entry
        .type   arch_fault_entry, @function
        .p2align 4
arch_fault_entry:                       /* 0(%rsp): sp, 8(%rsp): pc of the fault */
        .cfi_startproc
        .cfi_signal_frame
        .cfi_escape 0x0f, 3, 0x77, 0, 0x06      /* CFA: what lies at rsp */
        .cfi_escape 0x10, 0x10, 2, 0x77, 8      /* rip lies at rsp + 8 */
        endbr64
        call    fault_panic
        ud2
        .cfi_endproc
        .size   arch_fault_entry, . - arch_fault_entry

        .hidden go_args_tls

        .section .note.GNU-stack, "", @progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5                /* name size, data size, GNU property type */
        .asciz  "GNU"
        .long   0xc0000002, 4, 1, 0     /* x86 feature 1: IBT */
