/* SPDX-License-Identifier: MIT */
/*
 * Names: getaddrinfo, which blocks its thread for as long as a name server pleases, on a helper (pool.c).
 *
 * Addresses in numbers are done at once, on the caller's thread. Otherwise there is one lookup for all
 * who ask the same at the same time: the first makes it, later ones join it while it is under way. Each
 * has a record in its frame, and gets a result of its own: copies, and the original for the last. When the
 * lookup is over nobody can join it any more: nothing is kept.
 *
 * An asker whose context ends takes its record off, and the lookup goes on; if it has not begun, and nobody else
 * asks, it never will: names that nobody waits for any more must not keep others waiting. If no thread can be
 * made for it, the first asker does it on its own thread, without a P.
 *
 * Lock: names.lock (RANK_RESOLVE), for the lists and for what is in lookups and askers. Word locks and the
 * pool's are taken under it, no memory is allocated. A lookup belongs to who runs it; the end of the runtime drops
 * the askers, and a lookup that a helper is still busy with then is freed by that.
 *
 * The copies are laid out as glibc's freeaddrinfo expects them: a block for each with the address in it,
 * and the name in another. With another libc there are no copies, and so everybody has a lookup of its
 * own.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "io/files.h"
#include "io/pending.h"
#include "io/pool.h"

#ifdef __GLIBC__
#define CAN_COPY 1
#else
#define CAN_COPY 0
#endif

struct asker {
    struct pending pending;
    struct asker *next, *prev; /* in its lookup's list, or in that of the answered */
    struct lookup *of;         /* NULL: it is answered */
    bool runs;                 /* is to do it itself */
    int err;                   /* -errno */
    struct addrinfo *res;
};

struct lookup {
    struct pool_job job;
    struct lookup *next, *prev;
    struct asker *askers;
    bool closed;    /* over: nobody may join */
    bool abandoned; /* the runtime has ended without it */
    int err;
    struct addrinfo *res;
    struct addrinfo hints;
    bool has_host, has_service;
    char text[]; /* host and service */
};

static struct {
    struct lock lock;
    struct lookup *first;
    struct asker *answered; /* and not yet awake */
} names = {.lock = LOCK_INIT(RANK_RESOLVE)};

/* --- errors, results ----------------------------------------------------------------------------------- */

static int error_of(int eai, int sys)
{
    switch (eai) {
    case 0: return 0;
    case EAI_SYSTEM: return sys ? -sys : -EIO;
    case EAI_AGAIN: return -EAGAIN;
    case EAI_MEMORY: return -ENOMEM;
    case EAI_BADFLAGS: return -EINVAL;
    case EAI_SOCKTYPE: return -ESOCKTNOSUPPORT;
    case EAI_SERVICE: return -EPROTONOSUPPORT;
    case EAI_OVERFLOW: return -EOVERFLOW;
    case EAI_FAMILY:
#ifdef EAI_ADDRFAMILY
    case EAI_ADDRFAMILY:
#endif
        return -EAFNOSUPPORT;
    case EAI_NONAME:
#ifdef EAI_NODATA
    case EAI_NODATA:
#endif
        return -ENOENT;
    default: return -EIO;
    }
}

/* NOINLINE: errno is this thread's, and read before there is another. */
static NOINLINE int ask_system(const char *host, const char *service, const struct addrinfo *hints,
                               struct addrinfo **res)
{
    *res = NULL;
    int eai = getaddrinfo(host, service, hints, res);
    return error_of(eai, eai == EAI_SYSTEM ? errno : 0);
}

static struct addrinfo *copy_one(const struct addrinfo *a)
{
    struct addrinfo *c = malloc(sizeof *c + a->ai_addrlen);
    if (!c) {
        return NULL;
    }
    *c = *a;
    c->ai_next = NULL;
    c->ai_addr = a->ai_addr ? memcpy(c + 1, a->ai_addr, a->ai_addrlen) : NULL;
    c->ai_canonname = a->ai_canonname ? strdup(a->ai_canonname) : NULL;
    if (a->ai_canonname && !c->ai_canonname) {
        free(c);
        return NULL;
    }
    return c;
}

static struct addrinfo *copy_all(const struct addrinfo *a)
{
    struct addrinfo *first = NULL, **last = &first;
    for (; a; a = a->ai_next, last = &(*last)->ai_next) {
        *last = copy_one(a);
        if (!*last) {
            pirn_resolve_free(first);
            return NULL;
        }
    }
    return first;
}

EXPORT void pirn_resolve_free(struct addrinfo *res)
{
    not_forked();
    if (res) {
        freeaddrinfo(res);
    }
}

/* --- lists -------------------------------------------------------------------------------------------------- */

static void put_asker(struct asker **list, struct asker *a)
{
    a->prev = NULL;
    a->next = *list;
    if (a->next) {
        a->next->prev = a;
    }
    *list = a;
}

static void take_asker(struct asker **list, struct asker *a)
{
    *(a->prev ? &a->prev->next : list) = a->next;
    if (a->next) {
        a->next->prev = a->prev;
    }
}

static void unlink_lookup_locked(struct lookup *l)
{
    *(l->prev ? &l->prev->next : &names.first) = l->next;
    if (l->next) {
        l->next->prev = l->prev;
    }
}

static bool same(const struct lookup *a, const struct lookup *b)
{
    const char *x = a->text, *y = b->text;
    return a->has_host == b->has_host && a->has_service == b->has_service && !strcmp(x, y)
           && !strcmp(x + strlen(x) + 1, y + strlen(y) + 1)
           && a->hints.ai_flags == b->hints.ai_flags && a->hints.ai_family == b->hints.ai_family
           && a->hints.ai_socktype == b->hints.ai_socktype
           && a->hints.ai_protocol == b->hints.ai_protocol;
}

/* One that is under way, or this one. */
static struct lookup *find_locked(struct lookup *mine)
{
    for (struct lookup *l = names.first; CAN_COPY && l; l = l->next) {
        if (!l->closed && same(l, mine)) {
            return l;
        }
    }
    mine->next = names.first;
    if (mine->next) {
        mine->next->prev = mine;
    }
    names.first = mine;
    return mine;
}

/* --- running it -------------------------------------------------------------------------------------------- */

/* A goroutine's thread is in the runtime for a moment; others may take the lock as they are. */
static void enter_lock(void)
{
    enter();
    lock(&names.lock);
}

static void unlock_leave(void)
{
    unlock(&names.lock);
    leave();
}

static void run_lookup(struct lookup *l)
{
    const char *service = l->text + strlen(l->text) + 1;
    l->err = ask_system(l->has_host ? l->text : NULL, l->has_service ? service : NULL, &l->hints,
                        &l->res);
}

static struct waiter *answer_locked(struct lookup *l, struct asker *a, struct addrinfo *res,
                                    int err)
{
    take_asker(&l->askers, a);
    put_asker(&names.answered, a);
    a->of = NULL;
    a->res = res;
    a->err = err;
    return pending_done(&a->pending);
}

static void wake(struct waiter *w)
{
    if (w && getm()) {
        enter();
        waiter_ready(w);
        leave();
    } else if (w) {
        struct visit v = visit_again();
        waiter_ready(w);
        visit_end(v);
    }
}

/* True: one more asker has its answer. Outside the runtime, as it copies. */
static bool answer_one(struct lookup *l)
{
    struct waiter *w = NULL;
    enter_lock();
    l->closed = true;
    struct asker *a = l->abandoned ? NULL : l->askers;
    bool last = a && !a->next, some = a;
    if (last) {
        w = answer_locked(l, a, l->res, l->err);
        l->res = NULL;
    }
    unlock_leave();
    if (some && !last) {
        struct addrinfo *copy = l->err ? NULL : copy_all(l->res);
        int err = l->err ? l->err : copy || !l->res ? 0 : -ENOMEM;
        enter_lock();
        a = l->abandoned ? NULL : l->askers; /* that one may have given up */
        if (a) {
            w = answer_locked(l, a, copy, err);
            copy = NULL;
        }
        unlock_leave();
        pirn_resolve_free(copy);
    }
    wake(w);
    return some;
}

/* The result is there. */
static void finish(struct lookup *l)
{
    while (answer_one(l)) {
    }
    enter_lock();
    if (!l->abandoned) {
        unlink_lookup_locked(l);
    }
    unlock_leave();
    pirn_resolve_free(l->res);
    free(l);
}

/* Who gave up when it was on its way from the queue has left it to this. */
static bool is_wanted(struct lookup *l)
{
    lock(&names.lock);
    bool wanted = l->askers;
    if (!wanted && !l->abandoned) {
        unlink_lookup_locked(l);
    }
    unlock(&names.lock);
    return wanted;
}

static void run_job(struct pool_job *job)
{
    struct lookup *l = container_of(job, struct lookup, job);
    if (!is_wanted(l)) {
        free(l);
        return;
    }
    run_lookup(l);
    finish(l);
}

/* By the factory: the first asker is to do it; if there is none any more, nobody. */
static void refuse_job(struct pool_job *job)
{
    struct lookup *l = container_of(job, struct lookup, job);
    struct waiter *w = NULL;
    lock(&names.lock);
    struct asker *a = l->askers;
    if (a) {
        take_asker(&l->askers, a);
        put_asker(&names.answered, a);
        a->runs = true;
        w = pending_done(&a->pending);
    } else {
        unlink_lookup_locked(l);
    }
    unlock(&names.lock);
    if (!a) {
        free(l);
    }
    wake(w);
}

static void drop_job(struct pool_job *job)
{
    struct lookup *l = container_of(job, struct lookup, job);
    lock(&names.lock);
    unlink_lookup_locked(l);
    unlock(&names.lock);
    free(l);
}

static const struct pool_kind lookup_kind = {POOL_LOOKUPS, run_job, refuse_job, drop_job};

static void *run_handed_off(void *arg)
{
    run_lookup(arg);
    return NULL;
}

/* On the asker's own thread. Its answer is the original; the others wait for theirs. */
static int run_here(struct lookup *l, struct addrinfo **res)
{
    struct asker own = {0};
    pirn_blocking(run_handed_off, l);
    enter_lock();
    own.of = l;
    put_asker(&l->askers, &own);
    unlock_leave();
    finish(l);
    enter_lock();
    take_asker(&names.answered, &own);
    unlock_leave();
    *res = own.res;
    return own.err;
}

/* --- asking ---------------------------------------------------------------------------------------------------- */

static struct lookup *make_lookup(const char *host, const char *service,
                                  const struct addrinfo *hints)
{
    static const struct addrinfo none = {.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG};
    size_t nhost = host ? strlen(host) : 0, nservice = service ? strlen(service) : 0;
    struct lookup *l = calloc(1, sizeof *l + nhost + nservice + 2);
    if (!l) {
        return NULL;
    }
    hints = hints ? hints : &none; /* what getaddrinfo takes NULL for */
    l->job.kind = &lookup_kind;
    l->hints = (struct addrinfo){.ai_flags = hints->ai_flags,
                                 .ai_family = hints->ai_family,
                                 .ai_socktype = hints->ai_socktype,
                                 .ai_protocol = hints->ai_protocol};
    l->has_host = host;
    l->has_service = service;
    memcpy(l->text, host ? host : "", nhost + 1);
    memcpy(l->text + nhost + 1, service ? service : "", nservice + 1);
    return l;
}

/* In the runtime. The context has ended, or time is up: true, unless the answer came first. */
static bool give_up(struct asker *a)
{
    struct lookup *unwanted = NULL;
    lock(&names.lock);
    bool waits = !pending_is_done(&a->pending);
    if (waits) {
        take_asker(&a->of->askers, a);
        if (!a->of->askers && pool_take_back(&a->of->job)) {
            unwanted = a->of;
            unlink_lookup_locked(unwanted);
        }
    }
    unlock(&names.lock);
    if (unwanted) {
        heap_free(unwanted);
    }
    return waits;
}

static int ask(struct lookup *mine, int64_t deadline, struct addrinfo **res)
{
    struct asker a = {0};
    bring(mine);
    enter();
    bring(NULL);
    lock(&names.lock);
    struct lookup *l = find_locked(mine);
    a.of = l;
    put_asker(&l->askers, &a);
    unlock(&names.lock);
    if (l == mine) {
        pool_put(&l->job);
    } else {
        heap_free(mine);
    }
    if (!pending_wait_until(&a.pending, deadline, WAIT_RESOLVE) && give_up(&a)) {
        int err = pending_ctx_err();
        leave();
        return err ? err : -ETIMEDOUT;
    }
    lock(&names.lock);
    take_asker(&names.answered, &a);
    l = a.of;
    unlock(&names.lock);
    leave();
    *res = a.res;
    return a.runs ? run_here(l, res) : a.err;
}

/* --- the call --------------------------------------------------------------------------------------------------- */

static bool is_number(const char *s)
{
    return *s && strspn(s, "0123456789") == strlen(s);
}

/* What needs no name server, no file and no other thread. -ENOENT: a name. */
static int resolve_numbers(const char *host, const char *service, const struct addrinfo *hints,
                           struct addrinfo **res)
{
    struct addrinfo h = {.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG};
    if (hints) {
        h = *hints;
    }
    h.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
    return ask_system(host, service, &h, res);
}

/* getaddrinfo needs more than a dense stack. */
static bool fits_here(const struct m *mp)
{
    return mp->curg->class >= STACK_DENSE;
}

int resolve_until(const char *host, const char *service, const struct addrinfo *hints,
                  int64_t deadline, struct addrinfo **res)
{
    struct m *mp = stop_point();
    *res = NULL;
    if (!mp) {
        return ask_system(host, service, hints, res);
    }
    if (fits_here(mp) && (!service || is_number(service))) {
        int err = resolve_numbers(host, service, hints, res);
        if (err != -ENOENT || !host || (hints && hints->ai_flags & AI_NUMERICHOST)) {
            return err;
        }
    }
    int err = pending_ctx_err();
    struct lookup *l = err ? NULL : make_lookup(host, service, hints);
    return err ? err : l ? ask(l, deadline, res) : -ENOMEM;
}

EXPORT int pirn_resolve(const char *host, const char *service, const struct addrinfo *hints,
                        struct addrinfo **res)
{
    return resolve_until(host, service, hints, PIRN_NEVER, res);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* No M runs any more, no helper; or those that were left behind: then a lookup is freed by its helper,
 * and left behind with an M. */
void resolve_stop(bool left_behind)
{
    struct asker *answered;
    lock(&names.lock);
    answered = names.answered;
    names.answered = NULL;
    struct lookup *l = names.first;
    names.first = NULL;
    for (struct lookup *i = l; i; i = i->next) {
        i->askers = NULL;
        i->abandoned = left_behind;
    }
    unlock(&names.lock);
    for (; answered; answered = answered->next) { /* in frames of goroutines that are dropped */
        pirn_resolve_free(answered->res);
    }
    for (struct lookup *next; l && !left_behind; l = next) {
        next = l->next;
        pirn_resolve_free(l->res);
        free(l);
    }
}
