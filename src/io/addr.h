/* SPDX-License-Identifier: MIT */
/* Networks and addresses as the program writes them; addr.c. */
#ifndef PIRN_IO_ADDR_H
#define PIRN_IO_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

struct net_addr {
    socklen_t len;
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    };
};

#define ADDRS_MOST 16
struct addr_list {
    int n;
    struct net_addr addr[ADDRS_MOST];
};

struct net_kind {
    int family; /* AF_UNSPEC: either; AF_UNIX */
    int type;   /* SOCK_STREAM, SOCK_DGRAM */
};

int net_parse(const char *net, struct net_kind *out); /* 0 or -EAFNOSUPPORT */

#define HOST_MOST 256
#define SERVICE_MOST 64
struct host_port {
    char host[HOST_MOST]; /* without brackets; "": none was given */
    char service[SERVICE_MOST];
};
int addr_split(const char *text, struct host_port *out); /* 0 or -EINVAL */

/* One that needs no look-up, by number: 1, or 0: it is a name; or -errno. any: no host means all addresses,
 * else this machine. */
int addr_numeric(const struct host_port *hp, struct net_kind kind, bool any, struct addr_list *out);
int addr_unix(const char *path, struct sockaddr_un *out, socklen_t *len); /* 0 or -errno */

/* The families take turns, beginning with that of the first. */
void addr_take_turns(struct addr_list *l);

#endif
