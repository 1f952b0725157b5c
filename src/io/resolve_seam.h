/* SPDX-License-Identifier: MIT */
/* Names: where listen and dial get the addresses of one. */
#ifndef PIRN_IO_RESOLVE_SEAM_H
#define PIRN_IO_RESOLVE_SEAM_H

#include <errno.h>
#include <netdb.h>
#include <pirn.h>
#include <string.h>

#include "io/addr.h"

struct resolve_call {
    const char *host, *service;
    struct net_kind kind;
    bool passive;
    struct addr_list *out;
    int result;
};

static inline int resolve_errno(int err)
{
    switch (err) {
    case 0: return 0;
    case EAI_AGAIN: return -EAGAIN;
    case EAI_MEMORY: return -ENOMEM;
    case EAI_SYSTEM: return -errno;
    case EAI_FAMILY: return -EAFNOSUPPORT;
    default: return -ENOENT;
    }
}

static inline void *resolve_blocking(void *arg)
{
    struct resolve_call *c = (struct resolve_call *)arg;
    struct addrinfo hints, *list = NULL;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = c->kind.family;
    hints.ai_socktype = c->kind.type;
    hints.ai_flags = c->passive ? AI_PASSIVE : 0;
    c->result = resolve_errno(
        getaddrinfo(*c->host ? c->host : NULL, *c->service ? c->service : "0", &hints, &list));
    c->out->n = 0;
    for (struct addrinfo *a = list; a && c->out->n < ADDRS_MOST; a = a->ai_next) {
        struct net_addr *to = &c->out->addr[c->out->n];
        if (a->ai_addrlen <= sizeof to->in6) {
            memset(to, 0, sizeof *to);
            memcpy(&to->any, a->ai_addr, a->ai_addrlen);
            to->len = a->ai_addrlen;
            c->out->n++;
        }
    }
    if (list) {
        freeaddrinfo(list);
    }
    return NULL;
}

/* 0, with one address at least, or -errno. Not in the runtime. */
static inline int resolve_addrs(const char *host, const char *service, struct net_kind kind,
                                bool passive, pirn_ns deadline, struct addr_list *out)
{
    struct resolve_call c = {host, service, kind, passive, out, 0};
    (void)deadline;
    pirn_blocking(resolve_blocking, &c);
    return c.result ? c.result : out->n ? 0 : -ENOENT;
}

#endif
