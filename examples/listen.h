/* SPDX-License-Identifier: MIT */
/* What the servers have in common: to listen, and to say where. */
#ifndef EXAMPLES_LISTEN_H
#define EXAMPLES_LISTEN_H

#include <netdb.h>
#include <pirn.h>
#include <stdio.h>
#include <string.h>

/* Listens on addr ("host:port"; port 0: any that is free), and prints the address. -errno. */
static inline int listen_and_say(const char *who, const char *addr)
{
    int fd = pirn_listen("tcp", addr);
    if (fd < 0) {
        fprintf(stderr, "%s: %s: %s\n", who, addr, strerror(-fd));
        return fd;
    }
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    char host[64] = "?", port[16] = "?";
    if (getsockname(fd, (struct sockaddr *)&ss, &len) == 0) {
        getnameinfo((struct sockaddr *)&ss, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    }
    printf(ss.ss_family == AF_INET6 ? "%s: listening on [%s]:%s\n" : "%s: listening on %s:%s\n",
           who, host, port);
    fflush(stdout);
    return fd;
}

#endif
