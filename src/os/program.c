/* SPDX-License-Identifier: MIT */
/*
 * What the program is like. Where functions of shared libraries are bound at their first call, that call takes
 * more stack than a dense one of 4 KB has, since the dynamic linker saves all vector registers.
 */
#include <link.h>
#include <stdlib.h>

#include "os/os.h"

static bool binds_late(const ElfW(Dyn) * d)
{
    bool by_plt = false, now = false;
    for (; d->d_tag != DT_NULL; d++) {
        by_plt |= d->d_tag == DT_JMPREL;
        now |= d->d_tag == DT_BIND_NOW || (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_BIND_NOW)
               || (d->d_tag == DT_FLAGS_1 && d->d_un.d_val & DF_1_NOW);
    }
    return by_plt && !now;
}

/* The first is the program itself. */
static int look_at_first(struct dl_phdr_info *info, size_t size, void *late)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_DYNAMIC) {
            *(bool *)late = binds_late((const void *)(info->dlpi_addr + ph->p_vaddr));
        }
    }
    return 1;
}

bool program_binds_late(void)
{
    bool late = false;
    const char *asked = getenv("LD_BIND_NOW");
    if (!asked || !*asked) {
        dl_iterate_phdr(look_at_first, &late);
    }
    return late;
}
