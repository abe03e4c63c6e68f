/*
 * inspect.h - answers INSPECT: reads the headers of a series and says which stacks it makes and
 * whether the gate lets them pass.
 *
 * The request is read and the answer sent on the loop; inspect_run is for a pool thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INSPECT_H
#define NOCTULE_SERVICE_RECEIVER_INSPECT_H

#include "service/common/wire/messages.h"

struct inspect;

/* Keeps what a complete INSPECT says: 0, -EBADMSG or -ENOMEM. */
int inspect_open(struct proto_reader *reader, struct inspect **inspect);
/* Reads all headers with up to `threads` threads and writes the answer. */
void inspect_run(struct inspect *inspect, int threads);
/* Gives the INSPECTED frame to `writer`, unfinished, for channel_send; call once after inspect_run.
 */
void inspect_answer(struct inspect *inspect, struct proto_writer *writer);
void inspect_free(struct inspect *inspect);

#endif
