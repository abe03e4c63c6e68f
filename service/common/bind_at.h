/* bind_at.h - a socket at an address of this host. */
#ifndef NOCTULE_SERVICE_COMMON_BIND_AT_H
#define NOCTULE_SERVICE_COMMON_BIND_AT_H

/*
 * A TCP socket, not blocking, that nobody can connect to before listen(2); "" is every address, of IPv6 and IPv4 both
 * where there is IPv6. The caller's to close; or -errno. Any thread.
 */
int bind_at(const char *address, int port);

#endif
