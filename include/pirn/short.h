/* SPDX-License-Identifier: MIT */
/*
 * Short names, for programs that want them: go(worker, c), chan(int), defer(fclose, f). Nothing includes this
 * header but the program itself. Names that POSIX owns (select, send, recv, read) stay POSIX's.
 */
#ifndef PIRN_SHORT_H
#define PIRN_SHORT_H

#include <pirn.h>

#define go(...) pirn_go(__VA_ARGS__)
#define defer(...) pirn_defer(__VA_ARGS__)

#define chan(T) pirn_chan(T)
#define chan_make(T, n) pirn_chan_make(T, n)
#define chan_send(c, v) pirn_chan_send(c, v)
#define chan_recv(c, p) pirn_chan_recv(c, p)
#define chan_get(c) pirn_chan_get(c)
#define chan_close(c) pirn_chan_close(c)
#define chan_retain(c) pirn_chan_retain(c)
#define chan_release(c) pirn_chan_release(c)

#endif
