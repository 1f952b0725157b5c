/* SPDX-License-Identifier: MIT */
/*
 * Labels: what a goroutine works for, in reports. They pass to the goroutines that it starts, as in Go, so that
 * whoever accepts a request labels it once.
 *
 * All of them are one text in the gextra, "key\0value\0key\0value\0" and another NUL, of which only the goroutine
 * itself changes anything. A report reads it at any time: what it sees may be half of each, but it ends where the
 * text must end (with LABELS_END NULs: of a key, of its value, and in place of the next key). That is why it is copied to each, and no list that is shared: a report could not hold on to it.
 */
#include <errno.h>
#include <stdio.h>

#include "sched/sched.h"

#define VALUE_SIZE 40

/* Behind it, where the next one begins; NULL: there is no room for it, and the end. */
static char *append(char *at, const char *end, const char *key, const char *value)
{
    size_t nkey = strlen(key) + 1, nvalue = strlen(value) + 1;
    if (!at || nkey + nvalue > (size_t)(end - at) - LABELS_END) {
        return NULL;
    }
    memcpy(at, key, nkey);
    memcpy(at + nkey, value, nvalue);
    return at + nkey + nvalue;
}

/* value: NULL takes it away. */
static int set(char *labels, const char *key, const char *value)
{
    char all[LABELS_SIZE] = "", *at = all;
    bool found = false;
    for (const char *k = labels, *v; *k; k = v + strlen(v) + 1) {
        v = k + strlen(k) + 1;
        bool is_it = !strcmp(k, key);
        found |= is_it;
        if (!is_it || value) {
            at = append(at, all + sizeof all, k, is_it ? value : v);
        }
    }
    if (!found && value) {
        at = append(at, all + sizeof all, key, value);
    }
    if (!at) {
        return -ENOSPC;
    }
    memcpy(labels, all, sizeof all);
    return 0;
}

EXPORT int pirn_set_label(const char *key, const char *format, ...)
{
    char value[VALUE_SIZE];
    struct m *mp = stop_point();
    if (!mp) {
        return -EPERM; /* a thread outside has none */
    }
    if (!key || !*key) {
        return -EINVAL;
    }
    if (format) {
        va_list ap;
        va_start(ap, format);
        if (mp->curg->class < STACK_DENSE) {
            fmt_v(value, sizeof value, format, ap); /* printf does not fit on a dense stack */
        } else {
            vsnprintf(value, sizeof value, format, ap);
        }
        va_end(ap);
    }
    struct gextra *x = g_extra(mp->curg);
    return x ? set(x->labels, key, format ? value : NULL) : -ENOMEM;
}

/* Before it is visible to others. Without memory it has none: they are for people only. */
void labels_inherit(struct g *gp, const struct g *creator)
{
    if (creator && creator->extra && creator->extra->labels[0]) {
        struct gextra *x = g_extra(gp);
        if (x) {
            memcpy(x->labels, creator->extra->labels, sizeof x->labels);
        }
    }
}
