/* SPDX-License-Identifier: MIT */
/*
 * The switch and the start of a stack, aarch64: x19-x30 and d8-d15 are kept, x18
 * is the platform's and untouched. The order on the stack is that of arch.h; what
 * the x86-64 file says about returns and about valgrind holds here too.
 */
#if PIRN_HAVE_VALGRIND
        .hidden tool_on_valgrind
#endif

        .macro  if_valgrind label       /* uses x9 */
#if PIRN_HAVE_VALGRIND
        adrp    x9, tool_on_valgrind
        ldrb    w9, [x9, #:lo12:tool_on_valgrind]
        cbnz    w9, \label
#endif
        .endm

        .macro  load_sp_on_valgrind from, back
#if PIRN_HAVE_VALGRIND
        mov     x9, #64
        mov     sp, x9
        adrp    x9, tool_on_valgrind
        ldrb    w9, [x9, #:lo12:tool_on_valgrind]
        mov     sp, \from
        b       \back
#endif
        .endm

        .macro  save_registers
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
        .endm

        .macro  restore_registers
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
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore x29
        .cfi_restore x30
        .endm

        .text

        .globl  arch_switch
        .hidden arch_switch
        .type   arch_switch, %function
        .p2align 4
arch_switch:                            /* x0: where sp goes, x1: sp to load */
        .cfi_startproc
        hint    #34                     /* bti c */
        save_registers
        mov     x9, sp
        str     x9, [x0]
        if_valgrind 1f
        mov     sp, x1
0:      .cfi_remember_state
        restore_registers
        ret
        .cfi_restore_state
1:      load_sp_on_valgrind x1, 0b
        .cfi_endproc
        .size   arch_switch, . - arch_switch

        .globl  arch_start
        .hidden arch_start
        .type   arch_start, %function
        .p2align 4
arch_start:                             /* x0: where sp goes, x1: top of the new stack */
        .cfi_startproc
        hint    #34                     /* bti c */
        save_registers
        mov     x9, sp
        str     x9, [x0]
        if_valgrind 2f
        mov     sp, x1
0:      .cfi_remember_state
        .cfi_undefined x30              /* no caller: backtraces end here */
        mov     x29, xzr
        mov     x30, xzr
        bl      g_main                  /* gives the sp to go on with */
        if_valgrind 3f
        mov     sp, x0
1:      .cfi_restore_state
        .cfi_remember_state
        restore_registers
        ret
        .cfi_restore_state
2:      load_sp_on_valgrind x1, 0b
        .cfi_undefined x30
3:      load_sp_on_valgrind x0, 1b
        .cfi_endproc
        .size   arch_start, . - arch_start

        .globl  arch_call_on
        .hidden arch_call_on
        .type   arch_call_on, %function
        .p2align 4
arch_call_on:                           /* x0: sp, x1: function, x2: argument */
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        and     x0, x0, #-16
        if_valgrind 2f
        mov     sp, x0
0:      mov     x0, x2
        blr     x1
        if_valgrind 3f
        mov     sp, x29
1:      ldp     x29, x30, [sp], #16
        .cfi_remember_state
        .cfi_def_cfa sp, 0
        ret
        .cfi_restore_state
2:      load_sp_on_valgrind x0, 0b
3:      load_sp_on_valgrind x29, 1b
        .cfi_endproc
        .size   arch_call_on, . - arch_call_on

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
