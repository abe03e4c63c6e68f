/*
 * inspect.h - answer INSPECT: read the headers of a series and report its stacks with the result of the geometry check.
 *
 * The request must be read and the answer sent on the loop's thread. inspect_run must run in a pool thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INSPECT_H
#define NOCTULE_SERVICE_RECEIVER_INSPECT_H

#include "service/common/wire/messages.h"

struct inspect;

/* Reads and keeps an INSPECT. Returns 0, -EBADMSG or -ENOMEM. */
int inspect_open(struct proto_reader *reader, struct inspect **inspect);
/* Reads all headers with at most `threads` threads and writes the answer. */
void inspect_run(struct inspect *inspect, int threads);
/* Moves the INSPECTED frame to `writer`, unfinished, for channel_send. Must be called once, after inspect_run. */
void inspect_answer(struct inspect *inspect, struct proto_writer *writer);
void inspect_free(struct inspect *inspect);

#endif
