/* SPDX-License-Identifier: MIT */
/*
 * pirn_resolve. getaddrinfo is this program's own: it asks nobody, and a name that begins with "slow" waits
 * until the test lets it go.
 */
#include "go/files.h"
#include "go/net.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_cond = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static atomic_int lookups, inside, most_inside, bad_masks;

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate_lock);
    gate_open = open;
    pthread_cond_broadcast(&gate_cond);
    pthread_mutex_unlock(&gate_lock);
}

static void wait_at_gate(void)
{
    int n = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);
    while (n > most && !atomic_compare_exchange_weak(&most_inside, &most, n)) {
    }
    pthread_mutex_lock(&gate_lock);
    while (!gate_open)
        pthread_cond_wait(&gate_cond, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    atomic_fetch_sub(&inside, 1);
}

/* Laid out as glibc does. */
static struct addrinfo *an_address(unsigned net, unsigned char last, const char *service,
                                   const char *name)
{
    struct sockaddr_in *sin;
    struct addrinfo *a = calloc(1, sizeof *a + sizeof *sin);
    CHECK(a != NULL);
    sin = (struct sockaddr_in *)(void *)(a + 1);
    sin->sin_family = AF_INET;
    sin->sin_addr.s_addr = htonl(net << 24 | last);
    sin->sin_port = htons((uint16_t)(service ? atoi(service) : 0));
    a->ai_family = AF_INET;
    a->ai_addrlen = sizeof *sin;
    a->ai_addr = (struct sockaddr *)(void *)sin;
    a->ai_canonname = name ? strdup(name) : NULL;
    return a;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **res)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (hints && hints->ai_flags & AI_NUMERICHOST) {
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        int err = real(host, service, hints, res);
        TEST_KNOWN(res, sizeof *res);
        for (struct addrinfo *a = err ? NULL : *res; a; a = a->ai_next) {
            TEST_KNOWN(a, sizeof *a);
            TEST_KNOWN(a->ai_addr, a->ai_addrlen);
        }
        return err;
    }
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    atomic_fetch_add(&bad_masks, pirn_id() == 0 && !sigismember(&mask, SIGALRM));
    atomic_fetch_add(&lookups, 1);
    if (!strncmp(host, "slow", 4))
        wait_at_gate();
    if (!strncmp(host, "eai", 3)) {
        errno = ENETDOWN;
        return -atoi(host + 3);
    }
    unsigned net = strncmp(host, "here", 4) ? 10 : 127;
    struct addrinfo *last = *res = an_address(net, net == 10 ? 1 : 2, service, host);
    for (int i = net == 127 ? atoi(host + 4) : 0; i > 1; i--) /* here5: the first five times */
        last = last->ai_next = an_address(net, 2, service, NULL);
    last->ai_next = an_address(net, net == 10 ? 2 : 1, service, NULL);
    return 0;
}

static void check_result(const struct addrinfo *res, const char *host)
{
    CHECK(res != NULL);
    CHECK_STR(res->ai_canonname, host);
    CHECK_EQ(((struct sockaddr_in *)(void *)res->ai_addr)->sin_addr.s_addr, htonl(0x0a000001));
    res = res->ai_next;
    CHECK(res != NULL);
    CHECK(res->ai_canonname == NULL);
    CHECK_EQ(((struct sockaddr_in *)(void *)res->ai_addr)->sin_addr.s_addr, htonl(0x0a000002));
    CHECK(res->ai_next == NULL);
}

/* --- results ------------------------------------------------------------------------------------------ */

static void check_numbers(void)
{
    struct addrinfo *res, hints = {.ai_socktype = SOCK_STREAM};
    CHECK_EQ(pirn_resolve("127.0.0.1", "80", &hints, &res), 0);
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)res->ai_addr;
    CHECK_EQ(res->ai_family, AF_INET);
    CHECK_EQ(in->sin_port, htons(80));
    CHECK_EQ(in->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    CHECK(res->ai_next == NULL);
    pirn_resolve_free(res);
    CHECK_EQ(pirn_resolve("::1", NULL, &hints, &res), 0);
    CHECK_EQ(res->ai_family, AF_INET6);
    freeaddrinfo(res);
}

TEST_RUN_ATTR(numbers_need_no_lookup, PROCS)
{
    struct addrinfo *res;
    check_numbers();
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    CHECK_EQ(pirn_resolve(NULL, "8080", &hints, &res), 0);
    CHECK(res != NULL);
    pirn_resolve_free(res);
    hints = (struct addrinfo){.ai_family = AF_INET6};
    CHECK_EQ(pirn_resolve("1.2.3.4", NULL, &hints, &res), -EAFNOSUPPORT);
    CHECK(res == NULL);
    hints = (struct addrinfo){.ai_flags = AI_NUMERICHOST};
    CHECK_EQ(pirn_resolve("name", NULL, &hints, &res), -ENOENT);
    hints = (struct addrinfo){.ai_family = 12345};
    CHECK_EQ(pirn_resolve("1.2.3.4", "1", &hints, &res), -EAFNOSUPPORT);
    CHECK_EQ(pirn_resolve(NULL, NULL, NULL, &res), -ENOENT);
    pirn_resolve_free(NULL);
    CHECK_EQ(atomic_load(&lookups), 0);
}

TEST_RUN_ATTR(names, PROCS)
{
    struct addrinfo *res;
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(pirn_resolve("name", i % 2 ? "http" : "80", NULL, &res), 0);
        check_result(res, "name");
        i % 3 ? pirn_resolve_free(res) : freeaddrinfo(res);
    }
    CHECK_EQ(atomic_load(&lookups), 10);
    CHECK_EQ(atomic_load(&bad_masks), 0);
}

TEST_RUN_ATTR(errors, PROCS)
{
    static const struct {
        int eai, err;
    } all[] = {{EAI_NONAME, -ENOENT},
               {EAI_NODATA, -ENOENT},
               {EAI_AGAIN, -EAGAIN},
               {EAI_FAIL, -EIO},
               {EAI_MEMORY, -ENOMEM},
               {EAI_SYSTEM, -ENETDOWN},
               {EAI_SERVICE, -EPROTONOSUPPORT},
               {EAI_SOCKTYPE, -ESOCKTNOSUPPORT},
               {EAI_FAMILY, -EAFNOSUPPORT},
               {EAI_ADDRFAMILY, -EAFNOSUPPORT},
               {EAI_BADFLAGS, -EINVAL},
               {EAI_OVERFLOW, -EOVERFLOW}};
    char name[32];
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct addrinfo *res = (void *)1;
        snprintf(name, sizeof name, "eai%d", -all[i].eai);
        CHECK_EQ(pirn_resolve(name, NULL, NULL, &res), all[i].err);
        CHECK(res == NULL);
    }
}

/* --- many ---------------------------------------------------------------------------------------------- */

static atomic_int answered;

static void asks(const char *host, int family)
{
    struct addrinfo *res, hints = {.ai_family = family};
    CHECK_EQ(pirn_resolve(host, "80", &hints, &res), 0);
    check_result(res, host);
    pirn_resolve_free(res);
    atomic_fetch_add(&answered, 1);
}

/* All who ask the same share a lookup, and each has its own result. */
TEST_RUN_ATTR(one_lookup_for_all, PROCS)
{
    pirn_wg wg = {0};
    for (int round = 0; round < 3; round++) {
        set_gate(false);
        atomic_store(&lookups, 0);
        for (int i = 0; i < 100; i++)
            pirn_wg_go(&wg, asks, "slow", i < 90 ? AF_UNSPEC : AF_INET);
        YIELD_UNTIL(atomic_load(&inside) == 2);
        for (int i = 0; i < 200; i++)
            pirn_yield();
        CHECK_EQ(atomic_load(&lookups), 2);
        set_gate(true);
        pirn_wg_wait(&wg);
    }
    CHECK_EQ(atomic_load(&answered), 300);
}

static char many_names[100][16];

/* Up to 64 at a time, and the rest after them; other goroutines run meanwhile. */
TEST_RUN_ATTR(a_hundred_names, PROCS)
{
    pirn_wg wg = {0};
    set_gate(false);
    for (int i = 0; i < 100; i++) {
        snprintf(many_names[i], sizeof many_names[i], "slow%d", i);
        pirn_wg_go(&wg, asks, many_names[i], AF_UNSPEC);
    }
    SLEEP_UNTIL(atomic_load(&inside) >= 4);
    for (int i = 0; i < 100; i++)
        pirn_yield();
    CHECK_EQ(atomic_load(&answered), 0);
    set_gate(true);
    pirn_wg_wait(&wg);
    CHECK_EQ(atomic_load(&lookups), 100);
    CHECK_LE(atomic_load(&most_inside), 64);
    CHECK_EQ(atomic_load(&bad_masks), 0);
}

static int count_helpers(void)
{
    return count_threads_named("pirn-helper\n");
}

/* Also where threads take long to begin, and the lookup still waits for the one that was made for it. */
TEST_RUN_ATTR(as_many_helpers_as_lookups, PROCS)
{
    enum { N = 3 };
    pirn_wg wg = {0};
    set_gate(false);
    for (int i = 0; i < N; i++) {
        snprintf(many_names[i], sizeof many_names[i], "slow%d", i);
        pirn_wg_go(&wg, asks, many_names[i], AF_UNSPEC);
    }
    SLEEP_UNTIL(atomic_load(&inside) == N);
    SLEEP_UNTIL(count_helpers() >= N); /* who makes them names them, a moment later */
    CHECK_EQ(count_helpers(), N);
    set_gate(true);
    pirn_wg_wait(&wg);
}

/* --- contexts -------------------------------------------------------------------------------------------- */

static void asks_in(pirn_ctx *ctx, const char *host, int err)
{
    struct addrinfo *res;
    pirn_ctx *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_resolve(host, NULL, NULL, &res), err);
    pirn_ctx_use(old);
    if (err)
        CHECK(res == NULL);
    else
        pirn_resolve_free(res);
    atomic_fetch_add(&answered, 1);
}

TEST_RUN_ATTR(some_give_up, PROCS)
{
    pirn_wg wg = {0};
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    set_gate(false);
    for (int i = 0; i < 10; i++)
        pirn_wg_go(&wg, asks_in, ctx, "slow", -ECANCELED);
    SLEEP_UNTIL(atomic_load(&inside) == 1);
    pirn_ctx_cancel(ctx, 0);
    pirn_wg_wait(&wg); /* at once: the lookup is still there */
    CHECK_EQ(atomic_load(&inside), 1);
    asks_in(ctx, "slow", -ECANCELED);
    asks_in(ctx, "1.2.3.4", 0); /* what needs no waiting is done */
    pirn_ctx_release(ctx);
    ctx = pirn_ctx_with_timeout(pirn_ctx_background(), PIRN_MS);
    asks_in(ctx, "slow", -ETIMEDOUT);
    pirn_ctx_release(ctx);
    pirn_wg_go(&wg, asks, "slow", AF_UNSPEC); /* has a service: not the same */
    pirn_wg_go(&wg, asks_in, pirn_ctx_background(), "slow", 0);
    SLEEP_UNTIL(atomic_load(&inside) == 2);
    set_gate(true);
    pirn_wg_wait(&wg);
    CHECK_LE(atomic_load(&lookups), 3); /* 2, if that came in time */
    SLEEP_UNTIL(atomic_load(&inside) == 0);
}

/* Names that wait behind slow ones, and that nobody waits for any more, are not asked for when these are over. */
TEST_RUN_ATTR(given_up_before_it_began, PROCS)
{
    enum { SLOW = 64, DEAD = 50 };
    pirn_wg wg = {0};
    char name[16];
    set_gate(false);
    for (int i = 0; i < SLOW; i++) {
        snprintf(many_names[i], sizeof many_names[i], "slow%d", i);
        pirn_wg_go(&wg, asks, many_names[i], AF_UNSPEC);
    }
    SLEEP_UNTIL(atomic_load(&inside) == (PIRN_SMALL ? 4 : SLOW));
    for (int i = 0; i < DEAD; i++) {
        snprintf(name, sizeof name, "dead%d", i);
        pirn_ctx *ctx = pirn_ctx_with_timeout(pirn_ctx_background(), 100 * PIRN_US);
        asks_in(ctx, name, -ETIMEDOUT);
        pirn_ctx_release(ctx);
    }
    set_gate(true);
    pirn_wg_wait(&wg);
    asks("name", AF_UNSPEC);
    CHECK_EQ(atomic_load(&lookups), SLOW + 1);
}

static void opens_in(pirn_ctx *ctx, const char *path)
{
    pirn_ctx *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_open(path, O_RDONLY), -ECANCELED);
    pirn_ctx_use(old);
}

/* Opens that hang, and were given up, take nothing from names, nor from other opens. */
TEST_RUN_ATTR(beside_opens_that_hang, PROCS, .env = "PIRN_DEBUG=io=epoll")
{
    enum { HANG = 70 };
    char path[TEMP_PATH];
    pirn_wg wg = {0};
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    CHECK_EQ(unlink(temp_path(path)), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    for (int i = 0; i < HANG; i++)
        pirn_wg_go(&wg, opens_in, ctx, path);
    SLEEP_UNTIL(count_helpers() >= HANG);
    pirn_ctx_cancel(ctx, 0);
    pirn_wg_wait(&wg);
    pirn_ctx_release(ctx);
    ctx = pirn_ctx_with_timeout(pirn_ctx_background(), LONG);
    asks_in(ctx, "name", 0);
    pirn_ctx *old = pirn_ctx_use(ctx);
    int fd = pirn_open("/", O_RDONLY);
    CHECK_GE(fd, 0);
    close(fd);
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
    fd = open(path, O_RDWR | O_CLOEXEC); /* lets them go */
    CHECK_GE(fd, 0);
    CHECK_EQ(unlink(path), 0);
}

/* A dial asks in the same way, and its deadline ends that too. */
TEST_RUN_ATTR(dial_gives_up, PROCS)
{
    set_gate(false);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pirn_dial_until("tcp", "slow:80", pirn_deadline(i * PIRN_MS)), -ETIMEDOUT);
    CHECK_EQ(pirn_dial("tcp", "eai2:80"), -ENOENT);
    CHECK_EQ(pirn_listen("tcp", "eai3:80"), -EAGAIN);
    pirn_ctx *ctx = pirn_ctx_with_cancel(pirn_ctx_background());
    pirn_ctx_cancel(ctx, 0);
    pirn_ctx *old = pirn_ctx_use(ctx);
    CHECK_EQ(pirn_dial("tcp", "slow:80"), -ECANCELED);
    pirn_ctx_use(old);
    pirn_ctx_release(ctx);
    set_gate(true);
    SLEEP_UNTIL(atomic_load(&inside) == 0);
}

/* On the same port of 127.0.0.1. What is free on one address may be another program's on the other: then another
 * port. */
static int listen_beside_full(struct full *f, uint32_t host)
{
    char addr[64];
    for (;;) {
        full_begin(f, host);
        snprintf(addr, sizeof addr, "127.0.0.1%s", strchr(f->addr, ':'));
        int listener = pirn_listen("tcp", addr);
        if (listener != -EADDRINUSE) {
            CHECK_GE(listener, 0);
            return listener;
        }
        full_end(f);
    }
}

static void dial_the_last(const char *name, const char *port, int others)
{
    struct sockaddr_in to;
    socklen_t len = sizeof to;
    char addr[64];
    snprintf(addr, sizeof addr, "%s%s", name, port);
    pirn_ns begin = plain_now();
    int fd = pirn_dial_until("tcp", addr, begin + LONG);
    CHECK_GE(fd, 0);
    CHECK_GE(plain_now() - begin, others * 300 * PIRN_MS);
    CHECK_EQ(getpeername(fd, (struct sockaddr *)&to, &len), 0);
    CHECK_EQ(to.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    CHECK_EQ(pirn_close(fd), 0);
}

/* The first of two addresses, 127.0.0.2, does not answer, since its queue is full: the second is asked, and the
 * other socket is closed. The same with more that don't. */
TEST_RUN_ATTR(dial_goes_on_with_the_next, PROCS)
{
    struct full f;
    int listener = listen_beside_full(&f, 0x7f000002), before = count_fds();
    dial_the_last("here", strchr(f.addr, ':'), 1);
    dial_the_last("here7", strchr(f.addr, ':'), 7);
    CHECK_EQ(count_fds(), before);
    CHECK_EQ(pirn_close(listener), 0);
    full_end(&f);
}

/* A thread does the same without a runtime, and goes on when that ends. */
static void *dials_the_last(void *port)
{
    dial_the_last("here2", port, 2);
    return NULL;
}

static pthread_t dialler;

static int leave_a_thread_dialling(void *port)
{
    int before = count_fds();
    CHECK_EQ(pthread_create(&dialler, NULL, dials_the_last, port), 0);
    SLEEP_UNTIL(count_fds() > before);
    return 0;
}

TEST_ATTR(thread_goes_on_with_the_next, PROCS)
{
    struct full f;
    int listener = listen_beside_full(&f, 0x7f000002), before = count_fds();
    CHECK_EQ(pirn_run(leave_a_thread_dialling, strchr(f.addr, ':')), 0);
    CHECK_EQ(pthread_join(dialler, NULL), 0);
    dials_the_last(strchr(f.addr, ':'));
    CHECK_EQ(count_fds(), before);
    CHECK_EQ(pirn_close(listener), 0);
    full_end(&f);
}

/* --- the end of the runtime ------------------------------------------------------------------------------ */

static void asks_for_ever(int i)
{
    struct addrinfo *res;
    for (;;) {
        CHECK_EQ(pirn_resolve(many_names[i % 3], NULL, NULL, &res), 0);
        pirn_resolve_free(res);
    }
}

static int leaves_askers_behind(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++)
        pirn_go(asks_for_ever, i);
    int from = atomic_load(&lookups);
    YIELD_UNTIL(atomic_load(&lookups) > from + 5);
    return 1;
}

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

TEST_ATTR(end_with_lookups_under_way, PROCS)
{
    for (int i = 0; i < 3; i++)
        snprintf(many_names[i], sizeof many_names[i], "name%d", i);
    CHECK_EQ(pirn_run(leaves_askers_behind, NULL), 1);
    int threads = count_threads();
    for (int i = 0; i < 10; i++)
        CHECK_EQ(pirn_run(leaves_askers_behind, NULL), 1);
    for (pirn_ns until = plain_now() + LONG; count_threads() > threads;) {
        CHECK_LT(plain_now(), until); /* one that is joined may still be seen for a moment */
        plain_sleep(PIRN_MS);
    }
}

static void asks_slowly(void)
{
    struct addrinfo *res;
    pirn_resolve("slow", NULL, NULL, &res);
    FAIL("nobody is there to be answered");
}

static int leaves_a_slow_one_behind(void *arg)
{
    (void)arg;
    pirn_go(asks_slowly);
    SLEEP_UNTIL(atomic_load(&inside) == 1);
    return 1;
}

static void ends_before_the_lookup(void *arg)
{
    (void)arg;
    set_gate(false);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(
            pirn_run_config(&(pirn_config){.stop_grace = PIRN_MS}, leaves_a_slow_one_behind, NULL),
            1);
        CHECK_EQ(atomic_load(&inside), 1); /* its thread is left behind, and does no harm */
        set_gate(true);
        while (atomic_load(&inside))
            plain_sleep(100 * PIRN_US);
        set_gate(false);
    }
    plain_sleep(PIRN_MS);
}

TEST_ATTR(a_slow_lookup_is_left_behind, .procs = "1,4")
{
    CHECK_EQ(test_in_child(ends_before_the_lookup, NULL), 0);
    CHECK(strstr(test_said, "left behind: 1 helper thread\n") != NULL);
}

/* --- elsewhere ----------------------------------------------------------------------------------------------- */

static void asks_on_a_small_stack(void *arg)
{
    struct addrinfo *res;
    CHECK_EQ(pirn_resolve(arg, "80", NULL, &res), 0);
    CHECK(res != NULL);
    pirn_resolve_free(res);
    atomic_fetch_add(&answered, 1);
}

static void dials_on_a_small_stack(void *arg)
{
    CHECK_EQ(pirn_dial("tcp", arg), -ENOENT);
    atomic_fetch_add(&answered, 1);
}

TEST_RUN_ATTR(dense_stacks, PROCS)
{
    if (TEST_ASAN || TEST_TSAN || TEST_MSAN)
        SKIP("a sanitizer needs more stack");
    pirn_attr attr = {.stack_size = PIRN_STACK_DENSE_2K};
    CHECK_EQ(pirn_spawn(&attr, asks_on_a_small_stack, "name"), 0);
    SLEEP_UNTIL(atomic_load(&answered) == 1);
    attr.stack_size = PIRN_STACK_DENSE_4K; /* it keeps a list of addresses */
    CHECK_EQ(pirn_spawn(&attr, dials_on_a_small_stack, "eai2:80"), 0);
    SLEEP_UNTIL(atomic_load(&answered) == 2);
}

static void *asks_on_thread(void *arg)
{
    struct addrinfo *res;
    CHECK_EQ(pirn_resolve("name", "80", NULL, &res), 0);
    check_result(res, "name");
    pirn_resolve_free(res);
    CHECK_EQ(pirn_resolve("eai2", "80", NULL, &res), -ENOENT);
    return arg;
}

TEST_ATTR(from_any_thread, .procs = "1,4")
{
    pthread_t t;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    asks_on_thread(NULL);
    CHECK_EQ(pirn_start(NULL), 0);
    CHECK_EQ(pthread_create(&t, NULL, asks_on_thread, NULL), 0);
    pthread_join(t, NULL);
    CHECK_EQ(pirn_stop(), 0);
}
