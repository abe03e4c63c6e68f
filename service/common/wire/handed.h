/*
 * handed.h - descriptors that a child hands to the daemon over a socket pair of their own: a descriptor with the token of
 * the message that follows on the pipe. Calls do not block.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_HANDED_H
#define NOCTULE_SERVICE_COMMON_WIRE_HANDED_H

#include <stdint.h>

/* Opens the pair, close-on-exec. Returns 0 or -errno. */
int handed_open(int ends[2]);
/* Must come before the message. The caller keeps `fd`. Returns 0 or -errno. */
int handed_send(int end, int64_t token, int fd);
/* Returns the descriptor that came with this token, or -ENOENT. Closes those that came before it. */
int handed_take(int end, int64_t token);

#endif
