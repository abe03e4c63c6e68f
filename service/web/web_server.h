/*
 * web_server.h - HTTP for the page: connections, requests and answers within bounds (base/limits.def), the headers of every
 * answer. GET and HEAD alone; one request a connection, which lives for so long at most.
 *
 * One thread of its own answers, one request after another; server_tick is any other's.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_SERVER_H
#define NOCTULE_SERVICE_WEB_WEB_SERVER_H

#include "service/web/web_request.h"

struct server;

struct server_events {
    /* On the server's thread. The answer is empty, with a stream that takes all of it. */
    void (*answer)(void *context, const struct page_request *request, struct page_reply *answer);
    /* Once it was made, also where the server itself refused: what it came to, and how long it took. */
    void (*answered)(void *context, int status, double seconds);
    void *context;
};

/* `fd` listens already, is not blocking, and is the server's from now on. 0 or -errno. */
int server_open(int fd, const struct server_events *events, struct server **server);
/* Ends connections that are too old; for every second or so. */
void server_tick(struct server *server);
/* Ends all of them. NULL is allowed. */
void server_close(struct server *server);

#endif
