/* SPDX-License-Identifier: MIT */
/*
 * Addresses as pirn_listen and pirn_dial take them. The first byte chooses the network; the rest is the
 * address. What is a number must come back as the same number when it is written and read again.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "io/addr.h"

static const char *const nets[] = {"tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", "unix", "no", ""};

static void check_again(const struct net_addr *a, struct net_kind kind, bool any)
{
    struct host_port hp;
    struct addr_list list;
    char host[64], text[100];
    bool six = a->any.sa_family == AF_INET6;
    int port = ntohs(six ? a->in6.sin6_port : a->in.sin_port);
    MUST(six || a->any.sa_family == AF_INET);
    MUST(a->len == (six ? sizeof a->in6 : sizeof a->in));
    MUST(inet_ntop(a->any.sa_family, six ? (const void *)&a->in6.sin6_addr : &a->in.sin_addr, host,
                   sizeof host));
    snprintf(text, sizeof text, six ? "[%s]:%d" : "%s:%d", host, port);
    MUST(addr_split(text, &hp) == 0);
    MUST(addr_numeric(&hp, kind, any, &list) == 1 && list.n == 1);
    MUST(list.addr[0].len == a->len && memcmp(&list.addr[0].any, &a->any, a->len) == 0);
}

static void check_unix(const char *text)
{
    struct sockaddr_un un;
    socklen_t len;
    if (addr_unix(text, &un, &len) == 0) {
        MUST(un.sun_family == AF_UNIX && len <= sizeof un && len > sizeof un.sun_family);
        MUST(text[0] == '@' ? un.sun_path[0] == 0 : strcmp(un.sun_path, text) == 0);
    }
}

static void check_ip(const char *text, struct net_kind kind, bool any)
{
    struct host_port hp;
    struct addr_list list;
    if (addr_split(text, &hp) != 0) {
        return;
    }
    MUST(memchr(hp.host, 0, sizeof hp.host) && memchr(hp.service, 0, sizeof hp.service));
    MUST(!strpbrk(hp.host, "[]") && !strchr(hp.service, ':'));
    int found = addr_numeric(&hp, kind, any, &list);
    MUST(found <= 1);
    if (found == 1) {
        MUST(list.n >= 1 && list.n <= ADDRS_MOST);
        addr_take_turns(&list);
        for (int i = 0; i < list.n; i++) {
            MUST(kind.family == AF_UNSPEC || list.addr[i].any.sa_family == kind.family);
            check_again(&list.addr[i], kind, any);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct net_kind kind;
    if (size < 1) {
        return 0;
    }
    char *text = malloc(size);
    MUST(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    if (net_parse(nets[data[0] % 9], &kind) == 0) {
        if (kind.family == AF_UNIX) {
            check_unix(text);
        } else {
            check_ip(text, kind, data[0] & 128);
        }
    }
    net_parse(text, &kind);
    free(text);
    return 0;
}
