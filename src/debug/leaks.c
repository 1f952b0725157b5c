/* SPDX-License-Identifier: MIT */
/*
 * Goroutines that wait for ever: what they wait for can't be reached by anybody who could still do something.
 *
 * The world is stopped. Candidates are those who wait for objects of pirn's, and for nothing that comes by
 * itself (time, descriptors). All other goroutines are alive. What is alive is searched for addresses of
 * the candidates' objects, word by word: all memory that the program can write to, but for the stacks of
 * candidates and what belongs to pirn itself; the stacks of the others; registers. A candidate whose object
 * is found is alive, and its stack is searched in turn, until nothing new is found. Who is left is leaked.
 *
 * An object is
 * - a channel: a block of memory of its own, found by any address into it;
 * - made by value on the stack of a goroutine: found by any address into the used part of that stack, since
 *   it may be part of something larger, or if that goroutine is alive;
 * - made by value elsewhere: held to be found. Where the block begins that it is part of is not known.
 *
 * So it errs on the side of silence: an old address in memory that is no longer used keeps a goroutine
 * alive. It can err the other way only where an address is hidden: in a register of a thread of the program's own,
 * in shared memory, or disguised.
 *
 * Nothing is taken from the heap, whose lock one of those who stand still may have. Memory is read by way
 * of the kernel, which says no where a plain read would be a fault.
 *
 * Differs from Go 1.26: no garbage collector knows what is reachable, so all of the heap is.
 */
#include "debug/groups.h"
#include "debug/leakmem.h"
#include "sync/chan.h"

#define STOP_WITHIN ((int64_t)1000 * 1000 * 1000)
#define REGISTERS_WITHIN ((int64_t)200 * 1000 * 1000)
#define NONE UINT32_MAX

struct object {
    uintptr_t lo, hi;
    uint32_t waits; /* the first link */
    bool found;
    bool block;
};

struct link { /* a candidate waits for an object */
    uint32_t object, candidate, next;
};

struct candidate {
    struct g *g;
    bool alive;
};

static struct leaks {
    struct leakmem mem;
    struct object
        *objects; /* sorted by lo, without duplicates, when there is something to be found */
    struct link *links;
    struct candidate *candidates;
    uint32_t *todo; /* candidates that are alive and have not been searched */
    uint32_t nobjects, nlinks, ncandidates, ntodo, room;
    uintptr_t lowest, highest; /* of all objects */
    bool full;
} leaks;
static AT(const struct g *) busy; /* who looks */

/* --- candidates and objects ------------------------------------------------------------------------ */

static void add_object(const void *at, size_t size, bool block, void *arg)
{
    struct candidate *c = arg;
    struct g *owner = block ? NULL : leakmem_goroutine_at(&leaks.mem, at);
    struct object o = {
        .lo = (uintptr_t)at, .hi = (uintptr_t)at + size, .block = block, .waits = NONE};
    if (leaks.nobjects == leaks.room || leaks.nlinks == leaks.room) {
        leaks.full = true;
        return;
    }
    if (owner) {
        o.lo = (uintptr_t)leakmem_used(owner);
        o.hi = (uintptr_t)owner->stack_hi;
    } else if (!block) {
        o.found = true;
    }
    leaks.links[leaks.nlinks++] =
        (struct link){leaks.nobjects, (uint32_t)(c - leaks.candidates), NONE};
    leaks.objects[leaks.nobjects++] = o;
}

LOOKS static void add_candidate(struct g *gp, void *arg)
{
    struct candidate *c = &leaks.candidates[leaks.ncandidates];
    uint32_t objects = leaks.nobjects, links = leaks.nlinks;
    (void)arg;
    if (at_load(&gp->status, ACQUIRE) != G_WAITING || leaks.full) {
        return;
    }
    if (leaks.ncandidates == leaks.room) {
        leaks.full = true;
        return;
    }
    *c = (struct candidate){.g = gp};
    if (sync_waits_for(&gp->run.waiter, (enum wait_reason)gp->reason, add_object, c)) {
        leaks.ncandidates++;
    } else {
        leaks.nobjects = objects;
        leaks.nlinks = links;
    }
}

static bool object_before(const void *a, const void *b)
{
    return ((const struct object *)a)->lo < ((const struct object *)b)->lo;
}

static uint32_t find_object(uintptr_t addr)
{
    uint32_t lo = 0, hi = leaks.nobjects;
    while (lo < hi) { /* the first that begins behind */
        uint32_t mid = (lo + hi) / 2;
        if (leaks.objects[mid].lo <= addr) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo && addr < leaks.objects[lo - 1].hi ? lo - 1 : NONE;
}

/* Links name objects by their number; sorted, they have others. */
static void sort_objects(void)
{
    for (uint32_t i = 0; i < leaks.nlinks; i++) { /* by address meanwhile */
        leaks.objects[leaks.links[i].object].waits = i;
    }
    leakmem_sort(leaks.objects, leaks.nobjects, sizeof *leaks.objects, object_before);
    uint32_t n = 0;
    for (uint32_t i = 0; i < leaks.nobjects; i++) {
        struct object *o = &leaks.objects[i];
        uint32_t link = o->waits;
        if (n && leaks.objects[n - 1].lo == o->lo) { /* the same */
            leaks.objects[n - 1].found |= o->found;
        } else {
            leaks.objects[n] = *o;
            leaks.objects[n++].waits = NONE;
        }
        leaks.links[link].object = n - 1;
        leaks.links[link].next = leaks.objects[n - 1].waits;
        leaks.objects[n - 1].waits = link;
    }
    leaks.nobjects = n;
    leaks.lowest = n ? leaks.objects[0].lo : UINTPTR_MAX;
    leaks.highest = 0;
    for (uint32_t i = 0; i < n; i++) {
        leaks.highest = max_u64(leaks.highest, leaks.objects[i].hi);
    }
}

/* --- what is alive -------------------------------------------------------------------------------- */

static void revive(uint32_t candidate)
{
    struct candidate *c = &leaks.candidates[candidate];
    if (!c->alive) {
        c->alive = true;
        leaks.todo[leaks.ntodo++] = candidate;
    }
}

static void found(uint32_t object)
{
    struct object *o = &leaks.objects[object];
    if (o->waits == NONE) {
        return; /* was found before */
    }
    for (uint32_t i = o->waits; i != NONE; i = leaks.links[i].next) {
        revive(leaks.links[i].candidate);
    }
    o->waits = NONE;
    o->found = true;
}

/* A word, and where it was. */
static void look_at_word(uintptr_t word, uintptr_t where)
{
    if (likely(word < leaks.lowest || word >= leaks.highest)) {
        return;
    }
    uint32_t object = find_object(word);
    if (object == NONE) {
        return;
    }
    uint32_t inside = find_object(where);
    /* The queue of a channel names operations, on the stacks of those who wait. */
    if (inside != NONE && leaks.objects[inside].block
        && where < leaks.objects[inside].lo + sizeof(struct pirn_chanv)) {
        return;
    }
    found(object);
}

static void look_at_words(const uintptr_t *words, size_t n, uintptr_t where)
{
    for (size_t i = 0; i < n; i++) {
        look_at_word(words[i], where + i * sizeof *words);
    }
}

LOOKS static void look_at_stack(const struct g *gp)
{
    const uintptr_t *at = leakmem_used(gp), *end = gp->stack_hi;
    for (; at < end; at++) {
        uintptr_t word = *(const volatile uintptr_t *)at;
        tool_looks_at(&word, sizeof word);
        look_at_word(word, 0);
    }
    uint32_t own = find_object((uintptr_t)gp->stack_hi - 1);
    if (own != NONE && !leaks.objects[own].block) {
        found(own);
    }
}

/* All that a live goroutine knows. */
LOOKS static void look_at_goroutine(const struct g *gp)
{
    look_at_word((uintptr_t)gp->done_wg & ~(uintptr_t)1, 0);
    if (gp->stack_hi) {
        look_at_stack(gp);
        return;
    }
    look_at_words((const uintptr_t *)gp->start.slot, GO_ARGS_MAX, 0);
}

/* In the order of the candidates. */
LOOKS static void look_at_living(struct g *gp, void *arg)
{
    uint32_t *next = arg;
    if (*next < leaks.ncandidates && leaks.candidates[*next].g == gp) {
        ++*next;
    } else {
        look_at_goroutine(gp);
    }
}

/* --- registers ------------------------------------------------------------------------------------- */

/* Of those who have a goroutine, and neither stand still nor are this one. False: they can't be had. */
LOOKS static bool see_registers(void)
{
    int64_t deadline = now_ns() + REGISTERS_WITHIN;
    struct m *here = getm();
    for (struct m *mp = m_first(); mp; mp = m_after(mp)) {
        bool stands = at_load(&mp->context, RELAXED) || at_load(&mp->stands, RELAXED);
        at_store(&mp->regs_seen, 0, RELAXED);
        memset(mp->regs, 0, sizeof mp->regs);
        if (at_load(&mp->context, RELAXED)) {
            preempt_show_registers(mp, at_load(&mp->context, RELAXED));
        }
        if (mp != here && mp->curg && !mp->ended && !stands
            && !preempt_see_registers(mp, deadline)) {
            return false;
        }
    }
    return true;
}

static void look_at_registers(void)
{
    for (struct m *mp = m_first(); mp; mp = m_after(mp)) {
        look_at_words((const uintptr_t *)mp->regs, ARCH_REGS, 0);
    }
}

/* --- the report ------------------------------------------------------------------------------------- */

static int begin(void)
{
    uint32_t n = g_count() + 1024;
    leaks = (struct leaks){.room = 4 * n};
    size_t each =
        sizeof *leaks.objects + sizeof *leaks.links + sizeof *leaks.candidates + sizeof *leaks.todo;
    if (!leakmem_begin(&leaks.mem, leaks.room * each + 64, &leaks, sizeof leaks)) {
        return -ENOMEM;
    }
    leaks.objects = leakmem_take(&leaks.mem, leaks.room * sizeof *leaks.objects);
    leaks.links = leakmem_take(&leaks.mem, leaks.room * sizeof *leaks.links);
    leaks.candidates = leakmem_take(&leaks.mem, leaks.room * sizeof *leaks.candidates);
    leaks.todo = leakmem_take(&leaks.mem, leaks.room * sizeof *leaks.todo);
    g_for_each(add_candidate, NULL);
    sort_objects();
    return leaks.full ? -ENOMEM : 0;
}

static int search(void)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < leaks.nobjects; i++) {
        if (leaks.objects[i].found) {
            found(i);
        }
    }
    look_at_registers();
    g_for_each(look_at_living, &next);
    if (!leakmem_search(&leaks.mem, look_at_words)) {
        return -EACCES;
    }
    while (leaks.ntodo) {
        look_at_goroutine(leaks.candidates[leaks.todo[--leaks.ntodo]].g);
    }
    return 0;
}

/* Somebody may have been woken meanwhile, by a thread of the program's own. */
static int collect(struct groups *s)
{
    int n = 0;
    groups_begin(s, NULL);
    for (uint32_t i = 0; i < leaks.ncandidates; i++) {
        struct candidate *c = &leaks.candidates[i];
        if (!c->alive && at_load(&c->g->status, RELAXED) == G_WAITING) {
            groups_add(s, c->g);
            n++;
        }
    }
    return n;
}

/* The world stands still. */
static NOINLINE int look(struct groups *s)
{
    __builtin_unwind_init(); /* this goroutine's registers are on its stack, right below */
    leakmem_from = (char *)__builtin_frame_address(0) - 64;
    int result = see_registers() ? begin() : -EBUSY;
    result = result ? result : search();
    result = result ? result : collect(s);
    if (leaks.mem.base) {
        leakmem_end(&leaks.mem);
    }
    return result;
}

static int report(int fd)
{
    static struct groups picture;  /* under busy */
    static const struct g outside; /* a thread without goroutines */
    struct m *mp = getm();
    const struct g *none = NULL, *me = mp ? mp->curg : &outside;
    while (!at_cas(&busy, &none, me, ACQUIRE, RELAXED)) {
        none = NULL;
        pirn_yield();
    }
    int result = -EBUSY;
    if (world_stop(now_ns() + STOP_WITHIN)) {
        enter();
        result = look(&picture);
        leave();
        world_start();
    }
    if (result > 0 && fd >= 0) {
        say_fd(fd,
               result == 1 ? "%d goroutine waits for what nobody else can reach:\n"
                           : "%d goroutines wait for what nobody else can reach:\n",
               result);
        groups_print(&picture, fd);
    }
    at_store(&busy, NULL, RELEASE);
    return result;
}

/* It was dropped at one of the entries in between. */
void leaks_forget(const struct g *gp)
{
    at_cas(&busy, &gp, NULL, RELAXED, RELAXED);
}

EXPORT int pirn_leak_report(int fd)
{
    struct m *mp = stop_point();
    if (!mp && !foreign_enter()) {
        return -EAGAIN;
    }
    /* ThreadSanitizer's own memory is larger than all others, and can't be told from the program's. */
    bool can = !TOOL_TSAN && !(mp && mp->curg->class < STACK_DENSE);
    int result = can ? report(fd) : -ENOTSUP;
    if (!mp) {
        foreign_leave();
    }
    return result;
}
