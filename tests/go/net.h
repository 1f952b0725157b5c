/* SPDX-License-Identifier: MIT */
/* What the tests of the network share. */
#ifndef TESTS_GO_NET_H
#define TESTS_GO_NET_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "harness.h"

/* Where it listens, as a text for pirn_dial. */
__attribute__((unused)) static void addr_of(int fd, char *out, size_t room)
{
    struct sockaddr_storage any;
    socklen_t len = sizeof any;
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&any, &len), 0);
    if (any.ss_family == AF_UNIX) {
        struct sockaddr_un *un = (struct sockaddr_un *)&any;
        size_t n = len - offsetof(struct sockaddr_un, sun_path);
        memcpy(out, un->sun_path, n);
        out[n] = 0;
        if (!un->sun_path[0]) {
            out[0] = '@';
        }
        return;
    }
    if (any.ss_family == AF_INET) {
        char text[INET_ADDRSTRLEN];
        struct sockaddr_in *in = (struct sockaddr_in *)&any;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
        snprintf(out, room, "%s:%d", text, ntohs(in->sin_port));
    } else {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&any;
        char text[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof text);
        snprintf(out, room, "[%s]:%d", strcmp(text, "::") ? text : "::1", ntohs(in6->sin6_port));
    }
}

#endif
