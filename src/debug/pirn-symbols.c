/* SPDX-License-Identifier: MIT */
/*
 * pirn-symbols: which function, file and line an address in a program or library is.
 *
 *   pirn-symbols            answers "MODULE+0xADDRESS" with lines "FUNCTION<tab>FILE:LINE", those that were
 *                           inlined first, and an empty line. The library starts it when it prints a report.
 *   pirn-symbols --filter   copies a report, and puts names in the place of "<tab>MODULE+0xADDRESS".
 *
 * A program of its own, since whoever reports has perhaps no memory left, an overflowed stack, or threads
 * that stand still with the heap's lock in their hands; and so that the library needs nothing but libc.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULES 256

static bool filters;
static char *no_path;
static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &no_path,
};

static struct module {
    char *path;
    Dwfl *dwfl;
    Dwfl_Module *mod; /* NULL: it can't be read */
    GElf_Addr bias;
} modules[MODULES];

static void load(struct module *m)
{
    m->dwfl = dwfl_begin(&callbacks);
    if (!m->dwfl) {
        return;
    }
    m->mod = dwfl_report_offline(m->dwfl, m->path, m->path, -1);
    dwfl_report_end(m->dwfl, NULL, NULL);
    if (m->mod && !dwfl_module_getelf(m->mod, &m->bias)) {
        m->mod = NULL;
    }
}

static struct module *module_of(const char *path)
{
    for (int i = 0; i < MODULES; i++) {
        struct module *m = &modules[i];
        if (!m->path) {
            m->path = strdup(path);
            if (m->path) {
                load(m);
            }
        }
        if (!m->path || !strcmp(m->path, path)) {
            return m->path && m->mod ? m : NULL;
        }
    }
    return NULL;
}

/* As the compiler was called with it: relative to a directory that nobody sits in. */
static const char *shorten(const char *file, Dwarf_Die *cu)
{
    Dwarf_Attribute attr;
    const char *dir = cu ? dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &attr)) : NULL;
    size_t n = dir ? strlen(dir) : 0;
    if (n && dir[0] == '/' && !strncmp(file, dir, n) && file[n] == '/') {
        file += n + 1;
    }
    while (!strncmp(file, "../", 3)) {
        file += 3;
    }
    return file;
}

static void say(const char *name, const char *file, int line, Dwarf_Die *cu)
{
    name = name ? name : "??";
    file = file ? shorten(file, cu) : NULL;
    if (!file) {
        printf(filters ? "\t%s\n" : "%s\t\n", name);
    } else if (filters) {
        printf("\t%s at %s:%d\n", name, file, line);
    } else {
        printf("%s\t%s:%d\n", name, file, line);
    }
}

/* Where an inlined function was called. */
static const char *call_site(Dwarf_Die *cu, Dwarf_Die *scope, int *line)
{
    Dwarf_Attribute attr;
    Dwarf_Word number = 0, at = 0;
    Dwarf_Files *files;
    size_t n;
    if (dwarf_formudata(dwarf_attr(scope, DW_AT_call_file, &attr), &number)
        || dwarf_formudata(dwarf_attr(scope, DW_AT_call_line, &attr), &at)
        || dwarf_getsrcfiles(cu, &files, &n) || number >= n) {
        return NULL;
    }
    *line = (int)at;
    return dwarf_filesrc(files, number, NULL, NULL);
}

/* The unit that addr is in. Clang writes no table of them (.debug_aranges): then all are looked through. */
static Dwarf_Die *unit_of(Dwfl_Module *mod, GElf_Addr addr, Dwarf_Addr *bias)
{
    Dwarf_Die *cu = dwfl_module_addrdie(mod, addr, bias);
    for (Dwarf_Die *next = NULL; !cu && (next = dwfl_module_nextcu(mod, next, bias));) {
        cu = dwarf_haspc(next, addr - *bias) > 0 ? next : NULL;
    }
    return cu;
}

/* False: nothing is known. */
static bool answer(const char *path, GElf_Addr offset)
{
    struct module *m = module_of(path);
    if (!m) {
        return false;
    }
    GElf_Addr addr = offset + m->bias;
    const char *symbol = dwfl_module_addrname(m->mod, addr);
    int line = 0;
    Dwarf_Addr bias = 0;
    Dwarf_Die *cu = unit_of(m->mod, addr, &bias), *scopes = NULL, *innermost = NULL;
    Dwarf_Line *at = cu ? dwarf_getsrc_die(cu, addr - bias) : NULL;
    const char *file = at && !dwarf_lineno(at, &line) ? dwarf_linesrc(at, NULL, NULL) : NULL;
    /* The first gives the scope that it was written in, the second that in which it was inlined. */
    int n = cu && dwarf_getscopes(cu, addr - bias, &innermost) > 0
                ? dwarf_getscopes_die(innermost, &scopes)
                : 0;
    bool named = false;
    for (int i = 0; i < n; i++) {
        int tag = dwarf_tag(&scopes[i]);
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram) {
            say(dwarf_diename(&scopes[i]), file, line, cu);
            named = true;
        }
        if (tag == DW_TAG_subprogram) {
            break;
        }
        if (tag == DW_TAG_inlined_subroutine) {
            file = call_site(cu, &scopes[i], &line);
        }
    }
    free(scopes);
    free(innermost);
    if (!named && (symbol || file)) {
        say(symbol, file, line, cu);
        named = true;
    }
    return named;
}

/* Splits "MODULE+0xADDRESS". */
static bool parse(char *text, GElf_Addr *offset)
{
    char *plus = strrchr(text, '+'), *end;
    if (!plus || plus == text || strncmp(plus, "+0x", 3) != 0) {
        return false;
    }
    *offset = strtoull(plus + 1, &end, 16);
    *plus = '\0';
    return *end == '\0' && end > plus + 3;
}

static void answer_line(char *line)
{
    GElf_Addr offset;
    line[strcspn(line, "\n")] = '\0';
    if (parse(line, &offset)) {
        answer(line, offset);
    }
    printf("\n");
}

static void filter_line(const char *line)
{
    GElf_Addr offset;
    char *copy = line[0] == '\t' ? strdup(line + 1) : NULL;
    if (copy) {
        copy[strcspn(copy, "\n")] = '\0';
    }
    if (!copy || !parse(copy, &offset) || !answer(copy, offset)) {
        fputs(line, stdout);
    }
    free(copy);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    filters = argc == 2 && !strcmp(argv[1], "--filter");
    if (argc > 1 && !filters) {
        fprintf(stderr, "usage: pirn-symbols [--filter] <REPORT\n");
        return 2;
    }
    while (getline(&line, &size, stdin) > 0) {
        filters ? filter_line(line) : answer_line(line);
        fflush(stdout);
    }
    free(line);
    for (int i = 0; i < MODULES && modules[i].path; i++) {
        dwfl_end(modules[i].dwfl);
        free(modules[i].path);
    }
    return ferror(stdout) ? 1 : 0;
}
