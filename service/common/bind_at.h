/* bind_at.h - create a socket bound to a local address or path. */
#ifndef NOCTULE_SERVICE_COMMON_BIND_AT_H
#define NOCTULE_SERVICE_COMMON_BIND_AT_H

/* Creates a non-blocking TCP socket. It accepts no connection before listen(2). The address ""
 * means all IPv4 and IPv6 addresses. Returns the descriptor, which the caller must close, or
 * -errno. Thread-safe. */
int bind_at(const char *address, int port);

/* Creates a non-blocking Unix socket at the path, with these permissions. It accepts no connection before listen(2).
 * Replaces a socket that no process listens on. Returns the same. Not thread-safe: changes the umask. */
int bind_socket_at(const char *path, const char *octal_mode);

#endif
