/* SPDX-License-Identifier: MIT */
/*
 * Arguments of pirn_go, aarch64 (AAPCS64): of eight integer and eight
 * floating-point registers the six that pirn_go's arguments can take.
 * struct goargs is that of arch.h.
 */
        .text

/*
 * void pirn_go_args_(arguments of any function): stores the argument registers
 * in go_args_tls. A float lies in the lower half of its register.
 */
        .globl  pirn_go_args_
        .type   pirn_go_args_, %function
        .p2align 4
pirn_go_args_:
        .cfi_startproc
        hint    #34                     /* bti c */
        mrs     x9, tpidr_el0
        adrp    x10, :gottprel:go_args_tls
        ldr     x10, [x10, :gottprel_lo12:go_args_tls]
        add     x9, x9, x10
        stp     x0, x1, [x9, #0]
        stp     x2, x3, [x9, #16]
        stp     x4, x5, [x9, #32]
        stp     d0, d1, [x9, #48]
        stp     d2, d3, [x9, #64]
        stp     d4, d5, [x9, #80]
        ret
        .cfi_endproc
        .size   pirn_go_args_, . - pirn_go_args_

/*
 * uint64_t go_call_args(const struct goargs *args, void (*fn)(void), unsigned flags):
 * calls fn with them. A variadic fn takes them in the same registers.
 */
        .globl  go_call_args
        .hidden go_call_args
        .type   go_call_args, %function
        .p2align 4
go_call_args:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        str     x29, [x3]
        mov     x9, x0
        mov     x10, x1
        tbz     w2, #0, 1f              /* GO_HAS_FLOAT */
        ldp     d0, d1, [x9, #48]
        ldp     d2, d3, [x9, #64]
        ldp     d4, d5, [x9, #80]
1:      ldp     x0, x1, [x9, #0]
        ldp     x2, x3, [x9, #16]
        ldp     x4, x5, [x9, #32]
        blr     x10
        .globl  go_call_returns
        .hidden go_call_returns
go_call_returns:
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa sp, 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   go_call_args, . - go_call_args

        .globl  arch_fault_entry
        .hidden arch_fault_entry
        .type   arch_fault_entry, %function
        .p2align 4
arch_fault_entry:                       /* [sp]: sp, [sp, 8]: pc, [sp, 16]: x29, [sp, 24]: x30 of the fault */
        .cfi_startproc
        .cfi_signal_frame
        .cfi_return_column 96
        .cfi_escape 0x0f, 3, 0x8f, 0, 0x06      /* CFA: what lies at sp */
        .cfi_escape 0x10, 0x60, 2, 0x8f, 8      /* pc lies at sp + 8 */
        .cfi_escape 0x10, 0x1d, 2, 0x8f, 16
        .cfi_escape 0x10, 0x1e, 2, 0x8f, 24
        hint    #34                     /* bti c */
        bl      fault_panic
        brk     #1
        .cfi_endproc
        .size   arch_fault_entry, . - arch_fault_entry

        .hidden go_args_tls

        .section .note.GNU-stack, "", %progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5                /* name size, data size, GNU property type */
        .asciz  "GNU"
        .long   0xc0000000, 4, 1, 0     /* aarch64 feature 1: BTI */
