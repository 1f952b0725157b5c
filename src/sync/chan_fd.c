/* SPDX-License-Identifier: MIT */
/*
 * A descriptor for other main loops: an eventfd that is readable while a receive would not block. It is
 * brought up to date under the channel's lock, by who changes that.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sync/chan.h"

void chan_tell_fd(pirn_chanv *c, uint64_t word)
{
    uint64_t one = 1;
    bool on = chan_can_recv(word);
    if (on == c->fd_on) {
        return;
    }
    c->fd_on = on;
    if ((on ? write(c->fd, &one, sizeof one) : read(c->fd, &one, sizeof one)) < 0) {
        throw("chan: its eventfd is gone (%d)", errno);
    }
}

EXPORT int pirn_chanv_fd(pirn_chanv *c)
{
    not_forked();
    if (!c) {
        return -EINVAL;
    }
    enter();
    uint64_t word = word_lock(&c->word);
    int fd = word & CHAN_FD ? c->fd : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        fd = -errno;
    } else {
        c->fd = fd;
        word |= CHAN_FD;
    }
    at_store(&c->word, word | WORD_LOCKED, RELAXED);
    chan_unlock(c);
    leave();
    return fd;
}

void chan_fd_close(pirn_chanv *c)
{
    close(c->fd);
}
