/* SPDX-License-Identifier: MIT */
/*
 * What sysmon costs: ns of CPU time of its thread in a second, while goroutines compute: one for each P
 * (_alone), and three for each P, which take turns (_busy). Least of several seconds. A thousandth of a CPU
 * is 1,000,000.
 */
#include "bench.h"

#include <dirent.h>

enum { SECONDS = 3 };

static volatile bool enough;

static void compute(void)
{
    while (!enough) {
    }
}

static bool is_sysmon(const char *tid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", tid);
    FILE *f = fopen(path, "r");
    bool is = f && fgets(name, sizeof name, f) && strcmp(name, "pirn-sysmon\n") == 0;
    if (f) {
        fclose(f);
    }
    return is;
}

/* Its file of how long it has run; it has its name a moment after it has begun. */
static FILE *find_sysmon(void)
{
    char path[64] = "";
    for (int i = 0; i < 1000 && !path[0]; i++) {
        DIR *d = opendir("/proc/self/task");
        for (struct dirent *e; d && (e = readdir(d));) {
            if (e->d_name[0] != '.' && is_sysmon(e->d_name)) {
                snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", e->d_name);
            }
        }
        if (d) {
            closedir(d);
        }
        pirn_sleep(PIRN_MS);
    }
    FILE *f = fopen(path, "r");
    bench_check(f, "sysmon's schedstat");
    setbuf(f, NULL);
    return f;
}

static double used(FILE *f)
{
    double ns = 0;
    rewind(f);
    bench_check(fscanf(f, "%lf", &ns) == 1, "schedstat");
    return ns;
}

static void measure(const char *name, FILE *f, int loops)
{
    double least = 1e18;
    pirn_wg wg = {0};
    enough = false;
    for (int i = 0; i < loops; i++) {
        pirn_wg_go(&wg, compute);
    }
    for (int i = 0; i < SECONDS; i++) {
        pirn_ns from = pirn_now();
        double before = used(f);
        pirn_sleep(PIRN_SEC);
        double each = (used(f) - before) * (double)PIRN_SEC / (double)(pirn_now() - from);
        least = each < least ? each : least;
    }
    enough = true;
    pirn_wg_wait(&wg);
    bench_value(name, least);
}

static int run(void *arg)
{
    FILE *f = find_sysmon();
    measure("sysmon_alone", f, bench_workers());
    measure("sysmon_busy", f, 3 * bench_workers());
    fclose(f);
    return arg != NULL;
}

int main(void)
{
    return bench_main(run);
}
