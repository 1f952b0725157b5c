/* SPDX-License-Identifier: MIT */
/*
 * The switch and the first frame, aarch64: x19-x30 and d8-d15 are kept, x18 is
 * the platform's and untouched. The order on the stack is that of arch.h.
 */
        .text

        .globl  arch_switch
        .hidden arch_switch
        .type   arch_switch, %function
        .p2align 4
arch_switch:                            /* x0: where sp goes, x1: sp to load */
        .cfi_startproc
        hint    #34                     /* bti c */
        sub     sp, sp, #160
        .cfi_def_cfa_offset 160
        stp     x19, x20, [sp, #0]
        .cfi_rel_offset x19, 0
        .cfi_rel_offset x20, 8
        stp     x21, x22, [sp, #16]
        .cfi_rel_offset x21, 16
        .cfi_rel_offset x22, 24
        stp     x23, x24, [sp, #32]
        .cfi_rel_offset x23, 32
        .cfi_rel_offset x24, 40
        stp     x25, x26, [sp, #48]
        .cfi_rel_offset x25, 48
        .cfi_rel_offset x26, 56
        stp     x27, x28, [sp, #64]
        .cfi_rel_offset x27, 64
        .cfi_rel_offset x28, 72
        stp     x29, x30, [sp, #80]
        .cfi_rel_offset x29, 80
        .cfi_rel_offset x30, 88
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mov     x9, sp
        str     x9, [x0]
        mov     sp, x1
        ldp     x19, x20, [sp, #0]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #160
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   arch_switch, . - arch_switch

        .globl  arch_entry
        .hidden arch_entry
        .type   arch_entry, %function
        .p2align 4
        nop                             /* an unwinder looks up pc - 1 */
arch_entry:
        .cfi_startproc
        .cfi_undefined x30              /* no caller: backtraces end here */
        hint    #36                     /* bti j: reached by ret, but cost-free */
        mov     x29, xzr
        mov     x30, xzr
        bl      g_main
        brk     #1
        .cfi_endproc
        .size   arch_entry, . - arch_entry

        .globl  arch_fp_modes
        .hidden arch_fp_modes
        .type   arch_fp_modes, %function
arch_fp_modes:
        .cfi_startproc
        hint    #34
        mrs     x0, fpcr
        ret
        .cfi_endproc
        .size   arch_fp_modes, . - arch_fp_modes

        .globl  arch_set_fp_modes
        .hidden arch_set_fp_modes
        .type   arch_set_fp_modes, %function
arch_set_fp_modes:
        .cfi_startproc
        hint    #34
        msr     fpcr, x0
        ret
        .cfi_endproc
        .size   arch_set_fp_modes, . - arch_set_fp_modes

        .section .note.GNU-stack, "", %progbits
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000000, 4, 1, 0     /* aarch64 feature 1: BTI */
