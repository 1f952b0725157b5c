/* SPDX-License-Identifier: MIT */
/*
 * What a report says of goroutines: first a picture of them all is taken, while the world stands still if it
 * can; then it is printed, while it goes on. Those with the same stack, state, function, name and labels are one
 * group, so that ten thousand that wait in the same line are one entry.
 *
 * The picture has room for GROUPS groups and is static, since a report must be possible without memory; what
 * is beyond is counted. It keeps no pointer to a goroutine.
 */
#include "debug/groups.h"

#include "debug/cycles.h"

enum rank { RANK_FIRST, RANK_RUNNING, RANK_PREEMPTED, RANK_RUNNABLE, RANK_WAITING };

void groups_begin(struct groups *s, const struct g *first)
{
    s->first = first;
    s->n = s->total = s->others = 0;
    memset(s->index, 0, sizeof s->index);
}

/* --- the picture ----------------------------------------------------------------------------------- */

/* It may change meanwhile: `nuls` NULs at the end are ours. memcpy is watched by tools. */
LOOKS static void copy_text(char *to, const char *from, size_t size, size_t nuls)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = from && i < size - nuls ? ((const volatile char *)from)[i] : '\0';
    }
}

LOOKS static void describe(struct group *k, struct g *gp, const struct g *first)
{
    uint32_t status = at_load(&gp->status, RELAXED);
    const struct gextra *x = gp->extra;
    k->id = gp->id;
    k->creator = gp->creator;
    k->site = gp->site;
    k->flags = gp->flags;
    k->locked = x && x->locked;
    k->begun = gp->stack_hi;
    k->since = status == G_WAITING ? gp->run.wait_since : 0;
    k->holder = status == G_WAITING ? mutex_holder(gp) : 0;
    copy_text(k->name, x ? x->name : NULL, sizeof k->name, 1);
    copy_text(k->labels, x ? x->labels : NULL, sizeof k->labels, LABELS_END);
    k->state = g_status_name(status);
    k->rank = status == G_RUNNING ? RANK_RUNNING : RANK_RUNNABLE;
    if (status == G_WAITING) {
        k->state = wait_reason_names[gp->reason % WAIT_REASONS];
        k->rank = RANK_WAITING;
    } else if (status == G_RUNNABLE && k->flags & G_BOUND && !k->locked) {
        k->state = "preempted";
        k->rank = RANK_PREEMPTED;
    }
    k->rank = gp == first ? (uint32_t)RANK_FIRST : k->rank;
}

static uint64_t mix(uint64_t key, uint64_t v)
{
    key = (key ^ v) * 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

static uint64_t key_of(const struct group *k)
{
    uint64_t key = mix(k->rank, (uintptr_t)k->state);
    key = mix(key, (uintptr_t)k->site);
    key = mix(key, k->locked);
    for (const char *c = k->name; *c; c++) {
        key = mix(key, (unsigned char)*c);
    }
    for (size_t i = 0; k->labels[0] && i < sizeof k->labels; i++) { /* behind its end are zeroes */
        key = mix(key, (unsigned char)k->labels[i]);
    }
    /* Without that in which it left its stack: a call has more than one place for that. */
    for (int i = k->rank > RANK_PREEMPTED; i < k->npcs; i++) {
        key = mix(key, (uintptr_t)k->pcs[i]);
    }
    return key;
}

/* Keeps the lowest. */
static void add_id(struct group *k, uint64_t id)
{
    uint32_t i = (uint32_t)min_u64(k->count, GROUP_IDS);
    k->count++;
    if (i == GROUP_IDS && id > k->ids[i - 1]) {
        return;
    }
    i -= i == GROUP_IDS;
    for (; i > 0 && k->ids[i - 1] > id; i--) {
        k->ids[i] = k->ids[i - 1];
    }
    k->ids[i] = id;
}

static struct group *find(struct groups *s, uint64_t key, uint16_t **slot)
{
    for (uint64_t i = key;; i++) {
        *slot = &s->index[i % GROUPS_HASH]; /* never full: twice as large as GROUPS */
        if (!**slot) {
            return NULL;
        }
        if (s->group[**slot - 1].key == key) {
            return &s->group[**slot - 1];
        }
    }
}

/* What is copied from a new one of lower id; the stack is the same. */
static void become(struct group *k, const struct group *new)
{
    k->id = new->id;
    k->creator = new->creator;
    k->since = new->since;
    k->holder = new->holder;
    k->flags = new->flags;
}

/* By a signal, in whose handler this is. */
static bool is_interrupted(const struct g *gp)
{
    struct m *mp = getm();
    return mp && mp->curg == gp && at_load(&mp->context, RELAXED);
}

static int stack_of(struct groups *s, struct g *gp, void **pcs)
{
    if (gp != s->first || !s->here.known || is_interrupted(gp)) {
        return backtrace_of_g(gp, pcs, BACKTRACE_MOST);
    }
    return backtrace_from(&s->here, s->from, pcs, BACKTRACE_MOST);
}

void groups_add(struct groups *s, struct g *gp)
{
    struct group *new = &s->group[s->n]; /* if none is left: it is described there, and counted */
    uint16_t *slot;
    s->total++;
    describe(new, gp, s->first);
    new->npcs = stack_of(s, gp, new->pcs);
    new->faulted = is_interrupted(gp);
    new->key = key_of(new);
    new->count = 0;
    struct group *k = find(s, new->key, &slot);
    if (k && new->id < k->id) {
        become(k, new);
    } else if (!k && s->n < GROUPS) {
        k = new;
        *slot = (uint16_t)++s->n;
    }
    if (k) {
        add_id(k, new->id);
    } else {
        s->others++;
    }
}

/* --- printing ---------------------------------------------------------------------------------------- */

static void say_duration(int fd, int64_t ns)
{
    int64_t ms = ns / 1000000, s = ms / 1000;
    if (s >= 120) {
        say_fd(fd, ", %ld minutes", s / 60);
    } else if (ms >= 10000) {
        say_fd(fd, ", %ld s", s);
    } else if (ms >= 10) {
        say_fd(fd, ", %ld ms", ms);
    }
}

static void say_creation(int fd, const struct group *k)
{
    if (k->flags & G_MAIN) {
        say_fd(fd, "\tstarted by pirn_run\n");
        return;
    }
    say_fd(fd, k->creator ? "\tcreated by goroutine %lu" : "\tcreated by a thread outside pirn",
           k->creator);
    if (k->flags & G_SITE_PC) {
        say_fd(fd, " at ");
        backtrace_print_place(fd, k->site);
    } else if (k->site) {
        const char *place = k->site + strlen(k->site) + 1;
        while (!strncmp(place, "../", 3)) { /* relative to where the compiler was called */
            place += 3;
        }
        say_fd(fd, " at %s", place);
    }
    say_fd(fd, "\n");
}

static void say_ids(int fd, const struct group *k)
{
    say_fd(fd, "\tand %u more: ", k->count - 1);
    for (uint32_t i = 1; i < min_u64(k->count, GROUP_IDS); i++) {
        say_fd(fd, i == 1 ? "%lu" : ", %lu", k->ids[i]);
    }
    say_fd(fd, k->count > GROUP_IDS ? " ...\n" : "\n");
}

static void say_labels(int fd, const char *key)
{
    const char *before = " {";
    for (const char *value; *key; key = value + strlen(value) + 1) {
        value = key + strlen(key) + 1;
        say_fd(fd, "%s%s=%s", before, key, value);
        before = ", ";
    }
    say_fd(fd, before[0] == ',' ? "}" : "");
}

static void say_group(int fd, const struct group *k, int64_t now)
{
    say_fd(fd, "\ngoroutine %lu [%s", k->id, k->state);
    if (k->since) {
        say_duration(fd, now - k->since);
    }
    say_fd(fd, k->locked ? ", locked to its thread]" : "]");
    if (k->site && !(k->flags & G_SITE_PC)) {
        say_fd(fd, " %s", k->site);
    }
    if (k->name[0]) {
        say_fd(fd, " \"%s\"", k->name);
    }
    say_labels(fd, k->labels);
    say_fd(fd, ":\n");
    if (k->count > 1) {
        say_ids(fd, k);
    }
    if (k->holder) {
        say_fd(fd, "\tthe mutex is held by goroutine %lu\n", k->holder);
    }
    backtrace_print(fd, k->pcs, k->npcs, k->faulted);
    if (backtrace_is_cut(k->pcs, k->npcs)) {
        say_fd(fd, "\t...\n");
    } else if (k->npcs == 0) {
        say_fd(fd, k->begun ? "\t(its stack is not known: it runs)\n" : "\t(not begun)\n");
    }
    say_creation(fd, k);
}

static bool before(const struct group *a, const struct group *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
}

static void sort(struct groups *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t k = i;
        for (; k > 0 && before(&s->group[i], &s->group[s->order[k - 1]]); k--) {
            s->order[k] = s->order[k - 1];
        }
        s->order[k] = (uint16_t)i;
    }
}

void groups_print(struct groups *s, int fd)
{
    int64_t now = now_ns();
    bool names = symbols_begin();
    sort(s);
    for (uint32_t i = 0; i < s->n; i++) {
        say_group(fd, &s->group[s->order[i]], now);
    }
    if (s->others) {
        say_fd(fd, "\n... and %u more goroutines, with other stacks\n", s->others);
    }
    if (names) {
        symbols_end();
    }
}
