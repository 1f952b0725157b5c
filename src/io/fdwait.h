/* SPDX-License-Identifier: MIT */
/* Waiting until a descriptor is ready. Not in the runtime; from a goroutine or any other thread. */
#ifndef PIRN_IO_FDWAIT_H
#define PIRN_IO_FDWAIT_H

int fd_wait_in(
    int fd); /* 0; -ECANCELED, -ETIMEDOUT: the context; -EMFILE ...: it can't be waited for */
int fd_wait_out(int fd);

#endif
