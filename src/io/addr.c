/* SPDX-License-Identifier: MIT */
/*
 * Networks and addresses: "tcp4", "host:port", "[::1]:80", ":8080", paths. Only text and numbers here: no
 * calls that wait.
 */
#include "io/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"

int net_parse(const char *net, struct net_kind *out)
{
    static const struct {
        const char *name;
        struct net_kind kind;
    } known[] = {
        {"tcp", {AF_UNSPEC, SOCK_STREAM}},         {"tcp4", {AF_INET, SOCK_STREAM}},
        {"tcp6", {AF_INET6, SOCK_STREAM}},         {"udp", {AF_UNSPEC, SOCK_DGRAM}},
        {"udp4", {AF_INET, SOCK_DGRAM}},           {"udp6", {AF_INET6, SOCK_DGRAM}},
        {"unix", {AF_UNIX, SOCK_STREAM}},          {"unixgram", {AF_UNIX, SOCK_DGRAM}},
        {"unixpacket", {AF_UNIX, SOCK_SEQPACKET}},
    };
    for (size_t i = 0; net && i < ARRAY_LEN(known); i++) {
        if (strcmp(net, known[i].name) == 0) {
            *out = known[i].kind;
            return 0;
        }
    }
    return -EAFNOSUPPORT;
}

static bool copy_part(char *to, size_t room, const char *from, size_t n)
{
    if (n >= room) {
        return false;
    }
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

/* The host may be in brackets, and must be if there are colons in it. */
int addr_split(const char *text, struct host_port *out)
{
    const char *host = text, *colon = text ? strrchr(text, ':') : NULL;
    if (!colon) {
        return -EINVAL;
    }
    size_t n = (size_t)(colon - text);
    if (*host == '[') {
        const char *end = memchr(text, ']', n);
        if (!end || end + 1 != colon) {
            return -EINVAL;
        }
        host++;
        n = (size_t)(end - host);
        if (memchr(host, '[', n) || n == 0) {
            return -EINVAL;
        }
    } else if (memchr(host, ':', n) || memchr(host, '[', n) || memchr(host, ']', n)) {
        return -EINVAL;
    }
    return copy_part(out->host, sizeof out->host, host, n)
                   && copy_part(out->service, sizeof out->service, colon + 1, strlen(colon + 1))
               ? 0
               : -EINVAL;
}

static bool begins_a_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* -1: not a number, but maybe a name. -EINVAL: neither, or too large. "" is 0. A sign or blank would make it a
 * number to getaddrinfo, of any size. */
static int port_of(const char *s)
{
    int port = 0;
    if (*s && !begins_a_name(*s)) {
        return -EINVAL;
    }
    for (; *s; s++) {
        if (*s < '0' || *s > '9') {
            return -1;
        }
        port = port * 10 + (*s - '0');
        if (port > 65535) {
            return -EINVAL;
        }
    }
    return port;
}

static struct net_addr *add(struct addr_list *l, int family, int port)
{
    struct net_addr *a = &l->addr[l->n++];
    *a = (struct net_addr){0};
    if (family == AF_INET) {
        a->len = sizeof a->in;
        a->in.sin_family = AF_INET;
        a->in.sin_port = htons((uint16_t)port);
    } else {
        a->len = sizeof a->in6;
        a->in6.sin6_family = AF_INET6;
        a->in6.sin6_port = htons((uint16_t)port);
    }
    return a;
}

/* No host: IPv6 first, where it takes IPv4 connections too; for dial IPv4, which is always there. */
static int no_host(struct net_kind kind, bool any, int port, struct addr_list *out)
{
    if (kind.family != AF_INET && any) {
        add(out, AF_INET6, port)->in6.sin6_addr = in6addr_any;
    }
    if (kind.family != AF_INET6) {
        add(out, AF_INET, port)->in.sin_addr.s_addr = htonl(any ? INADDR_ANY : INADDR_LOOPBACK);
    }
    if (kind.family != AF_INET && !any) {
        add(out, AF_INET6, port)->in6.sin6_addr = in6addr_loopback;
    }
    return 1;
}

int addr_numeric(const struct host_port *hp, struct net_kind kind, bool any, struct addr_list *out)
{
    struct in_addr in;
    struct in6_addr in6;
    int port = port_of(hp->service);
    out->n = 0;
    if (port < 0) {
        return port == -1 ? 0 : port;
    }
    if (!*hp->host) {
        return no_host(kind, any, port, out);
    }
    if (inet_pton(AF_INET, hp->host, &in) == 1) {
        if (kind.family == AF_INET6) {
            return -EAFNOSUPPORT;
        }
        add(out, AF_INET, port)->in.sin_addr = in;
        return 1;
    }
    if (inet_pton(AF_INET6, hp->host, &in6) == 1) {
        if (kind.family == AF_INET) {
            return -EAFNOSUPPORT;
        }
        add(out, AF_INET6, port)->in6.sin6_addr = in6;
        return 1;
    }
    return 0;
}

int addr_unix(const char *path, struct sockaddr_un *out, socklen_t *len)
{
    size_t n = path ? strlen(path) : 0;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n == 0 || n >= sizeof out->sun_path) {
        return n ? -ENAMETOOLONG : -EINVAL;
    }
    memcpy(out->sun_path, path, n);
    if (*path == '@') {
        out->sun_path[0] = 0;
        *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    } else {
        *len = sizeof *out;
    }
    return 0;
}

void addr_take_turns(struct addr_list *l)
{
    for (int i = 1; i < l->n; i++) {
        int wanted = i;
        while (wanted < l->n && l->addr[wanted].any.sa_family == l->addr[i - 1].any.sa_family) {
            wanted++;
        }
        if (wanted == l->n) {
            return;
        }
        struct net_addr a = l->addr[wanted];
        memmove(&l->addr[i + 1], &l->addr[i], (size_t)(wanted - i) * sizeof a);
        l->addr[i] = a;
    }
}
