/* SPDX-License-Identifier: MIT */
/*
 * What the environment may ask for: PIRN_PROCS=n and PIRN_DEBUG=name=value,... Ignored in a
 * set-uid program; a word that means nothing is reported, not fatal.
 *
 *   io=1|epoll|uring                   says how files are read; not by io_uring; by it where it can be
 *   guard=auto|madvise|mprotect|none   how stacks are guarded
 *   idle=MS                            a thread that has slept so long ends (10000)
 *   preempt=off                        a goroutine that computes keeps its P
 *   leaks=1                            goroutines that are left when the runtime ends are shown
 *   deadlock=1                         goroutines that wait for each other's mutexes are reported
 *   move=1                             a goroutine changes its thread at every switch
 *   locks=1                            the same, and one that has waited with a lock of its thread's is
 *                                      reported; with LD_PRELOAD=libpirn-locks.so (preload/locks.c)
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "sched/sched.h"

static bool set_guard(struct debug_env *env, const char *value)
{
    static const char *const names[] = {
        [GUARD_AUTO] = "auto",
        [GUARD_MADVISE] = "madvise",
        [GUARD_MPROTECT] = "mprotect",
        [GUARD_NONE] = "none",
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!strcmp(value, names[i])) {
            env->guard = (enum guard_kind)i;
            return true;
        }
    }
    return false;
}

static bool is_bool(const char *value)
{
    return !strcmp(value, "0") || !strcmp(value, "1");
}

static bool set_flag(bool *flag, const char *value)
{
    if (is_bool(value)) {
        *flag = *value == '1';
    }
    return is_bool(value);
}

static bool set_move(struct debug_env *env, const char *value)
{
    return set_flag(&env->move, value);
}

static bool set_leaks(struct debug_env *env, const char *value)
{
    return set_flag(&env->leaks, value);
}

static bool set_deadlock(struct debug_env *env, const char *value)
{
    return set_flag(&env->cycles, value);
}

static bool set_locks(struct debug_env *env, const char *value)
{
    if (*value == '1' && is_bool(value)) {
        *(void **)&env->locks_held_by = dlsym(RTLD_DEFAULT, "pirn_locks_held_by");
        env->move |= env->locks_held_by != NULL;
        if (!env->locks_held_by) {
            say("pirn: PIRN_DEBUG=locks=1 needs LD_PRELOAD=libpirn-locks.so: ignored\n");
        }
    }
    return is_bool(value);
}

static bool set_idle(struct debug_env *env, const char *value)
{
    char *end;
    long ms = strtol(value, &end, 10);
    bool good = end != value && !*end && ms > 0 && ms <= 1000L * 1000 * 1000;
    if (good) {
        env->thread_idle_most = ms * PIRN_MS;
    }
    return good;
}

static bool set_preempt(struct debug_env *env, const char *value)
{
    env->no_preempt = !strcmp(value, "off");
    return env->no_preempt || !strcmp(value, "on");
}

static bool set_io(struct debug_env *env, const char *value)
{
    env->io_says |= !strcmp(value, "1");
    env->io = !strcmp(value, "epoll")   ? PIRN_IO_EPOLL
              : !strcmp(value, "uring") ? PIRN_IO_URING
                                        : env->io;
    return is_bool(value) || !strcmp(value, "epoll") || !strcmp(value, "uring");
}

static const struct {
    const char *name;
    bool (*set)(struct debug_env *, const char *);
} options[] = {
    {"deadlock", set_deadlock}, {"guard", set_guard}, {"idle", set_idle}, {"io", set_io},
    {"leaks", set_leaks},       {"locks", set_locks}, {"move", set_move}, {"preempt", set_preempt},
};

static bool set_option(struct debug_env *env, char *word)
{
    char *value = strchr(word, '=');
    if (!value) {
        return false;
    }
    *value++ = '\0';
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (!strcmp(word, options[i].name)) {
            return options[i].set(env, value);
        }
    }
    return false;
}

static int read_procs(void)
{
    const char *text = secure_getenv("PIRN_PROCS");
    if (!text || !*text) {
        return 0;
    }
    char *end;
    long n = strtol(text, &end, 10);
    if (*end || n < 1 || n > PROCS_MAX) {
        say("pirn: PIRN_PROCS=%s is not a number from 1 to %d: ignored\n", text, PROCS_MAX);
        return 0;
    }
    return (int)n;
}

void debug_env_read(struct debug_env *out)
{
    char buf[256], word[64], *save, *next;
    *out = (struct debug_env){.procs = read_procs()};
    const char *text = secure_getenv("PIRN_DEBUG");
    if (!text) {
        return;
    }
    fmt(buf, sizeof buf, "%s", text);
    if (strlen(text) >= sizeof buf) {
        say("pirn: PIRN_DEBUG: too long: what is behind %d characters is ignored\n",
            (int)sizeof buf - 1);
    }
    for (next = strtok_r(buf, ",", &save); next; next = strtok_r(NULL, ",", &save)) {
        fmt(word, sizeof word, "%s", next);
        if (!set_option(out, next)) {
            say("pirn: PIRN_DEBUG: %s means nothing here: ignored\n", word);
        }
    }
}
