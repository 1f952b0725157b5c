/* SPDX-License-Identifier: MIT */
/*
 * Signals, sent to channels.
 *
 *     pirn_chan(int) c = pirn_chan_make(int, 1);
 *     pirn_signal_notify(c, SIGINT);
 *     pirn_signal_notify(c, SIGTERM);
 *     int sig = pirn_chan_get(c);
 *     pirn_signal_stop(c);                         a second SIGINT kills, as before
 *
 * A context that signals cancel: pirn_ctx_with_signals. The action of a signal is pirn's while some
 * channel or context of a runtime that runs wants it, and the program's at other times; the program
 * leaves it alone meanwhile. A handler that it installs all the same gets the signal in place of pirn, and
 * stays. In the child of a fork a signal does what it would have done without pirn.
 */
#ifndef PIRN_H
#include <pirn.h> /* which includes this */
#endif
#ifndef PIRN_SIGNAL_H
#define PIRN_SIGNAL_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * From now on sig is sent to c, a channel of int, which is kept until the stop. Nobody waits for room: a
 * channel that is full misses it, and one without a buffer unless somebody receives. A signal that
 * comes again before it was sent is one. Any number of signals for a channel, and of channels for a
 * signal; once more is nothing new. A fault of the program's own (SIGSEGV ...) is not sent: it has the
 * action that it had before. 0; -EINVAL: sig can't be caught; -EAGAIN: no runtime runs; -ENOMEM,
 * -EMFILE ...: the thread that sends can't be started.
 */
PIRN_API_ int pirn_signal_notifyv(pirn_chanv *c, int sig);
/*
 * When it has returned nothing more is sent to c. A signal that came before has been sent to it, or
 * comes again with the action that it has now: it is not lost.
 */
PIRN_API_ void pirn_signal_stopv(pirn_chanv *c);

/* Each ends what channels and contexts want of sig. 0, or -EINVAL: sig can't be caught. */
PIRN_API_ int pirn_signal_ignore(int sig); /* until a notify or a reset, beyond the runtime */
PIRN_API_ int pirn_signal_reset(int sig);  /* the action that it had before pirn */
PIRN_API_ bool pirn_signal_ignored(int sig);

#ifdef __cplusplus
}
#else

/* Of another type it does not compile. */
#define PIRN_SIGNAL_CHAN_(c) PIRN_CHANV_(_Generic((c), pirn_chan(int) : (c)))

#define pirn_signal_notify(c, sig) pirn_signal_notifyv(PIRN_SIGNAL_CHAN_(c), sig)
#define pirn_signal_stop(c) pirn_signal_stopv(PIRN_SIGNAL_CHAN_(c))

#endif

#endif
