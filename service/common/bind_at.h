/* bind_at.h - create a TCP socket bound to a local address. */
#ifndef NOCTULE_SERVICE_COMMON_BIND_AT_H
#define NOCTULE_SERVICE_COMMON_BIND_AT_H

/* Creates a non-blocking TCP socket. It accepts no connection before listen(2). The address ""
 * means all IPv4 and IPv6 addresses. Returns the descriptor, which the caller must close, or
 * -errno. Thread-safe. */
int bind_at(const char *address, int port);

#endif
