/* SPDX-License-Identifier: MIT */
/* Goroutines as a report shows them, those alike as one: groups.c. */
#ifndef PIRN_DEBUG_GROUPS_H
#define PIRN_DEBUG_GROUPS_H

#include "debug/backtrace.h"
#include "debug/unwind.h"

#define GROUPS 512u      /* that are shown; the others are counted */
#define GROUP_IDS 8u     /* that are named, of each */
#define GROUPS_HASH 1024 /* a power of two */

struct group {
    uint64_t key;
    uint64_t id, creator; /* of the one with the lowest id */
    const char *site;
    const char *state;
    int64_t since;   /* 0: it does not wait */
    uint64_t holder; /* of the mutex that it waits for; 0: not known */
    uint32_t count, rank;
    uint64_t ids[GROUP_IDS]; /* the lowest, sorted */
    int npcs;
    uint16_t flags;
    bool locked, begun;
    bool faulted; /* its innermost frame is what the report is about */
    char name[40];
    char labels[LABELS_SIZE];
    void *pcs[BACKTRACE_MOST];
};

struct groups {
    struct unwind here;    /* of who reports */
    const void *from;      /* the sp of the frame at which its trace begins; NULL: at `here` */
    const struct g *first; /* who is shown first, alone; NULL: nobody */
    int fd;
    uint32_t n, total, others;   /* others: goroutines that did not fit */
    uint16_t index[GROUPS_HASH]; /* by key; + 1 */
    uint16_t order[GROUPS];
    struct group group[GROUPS + 1]; /* the last: of one that does not fit */
};

/* Adds one. Reads it as it is: the world should stand still, but need not. */
void groups_add(struct groups *s, struct g *gp);
void groups_print(struct groups *s, int fd);
/* What comes first in both: nothing in it yet. */
void groups_begin(struct groups *s, const struct g *first);

#endif
