/*
 * web_server.h - HTTP for the web UI: connections, requests and answers within the limits of
 * base/limits.def, and the security headers. GET and HEAD are allowed, and POST on some paths. A connection serves one
 * request and has a time limit, which includes the body.
 *
 * One thread handles all connections and answers WEB_SERVER_NOW. A second thread makes the other
 * answers, one at a time, so that slow answers delay no WEB_SERVER_NOW. Four more make those that are
 * WEB_SERVER_BESIDE, and one those of uploads. Another thread must call web_server_tick.
 */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_SERVER_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_SERVER_H

#include "service/web/server/web_request.h"

struct web_server;

enum web_server_turn {
    WEB_SERVER_NOW,     /* answered at once, also while another answer is being made */
    WEB_SERVER_NEXT,    /* before all waiting requests */
    WEB_SERVER_IN_TURN, /* after all waiting requests */
    WEB_SERVER_BESIDE   /* on threads of their own; answered with 429 beyond LIMIT_PAGE_PLANES */
};

enum web_server_posts {
    WEB_SERVER_NO_POSTS,
    WEB_SERVER_TAKES_POSTS,
    WEB_SERVER_ONLY_POSTS,
    WEB_SERVER_UPLOADS /* the same, with a body of up to LIMIT_PAGE_UPLOAD_MIB, answered on a thread of its own */
};

struct web_server_events {
    /* Makes an answer on one of the server's threads. answer->out is an open stream for the text. */
    void (*answer)(void *context, const struct web_request *request, struct web_reply *answer);
    /* Reports a sent answer, also one that the server refused: the status and the time it took. */
    void (*answered)(void *context, int status, double seconds);
    void *context;
    /* Returns when to answer a path. NULL: all at once. */
    enum web_server_turn (*turn)(const char *path);
    /* Returns whether the path takes a POST, and whether it takes only that. NULL if the server takes no POST. */
    enum web_server_posts (*takes_posts)(void *context, const char *path);
    /* Returns why an upload must be refused before its body is read, with the status; NULL: it is admitted. */
    const char *(*refuses_upload)(void *context, const struct web_request *request, int *status);
    /* Writes the answer to a request that the server itself refuses. NULL: `why` as text. Any thread may call it. */
    void (*refuse)(void *context, const char *path, int status, const char *why, struct web_reply *answer);
};

/* Starts a server. `fd` must listen and not block. The server then owns it. Returns 0 or -errno. */
int web_server_open(int fd, const struct web_server_events *events, struct web_server **server);
/* Closes connections that are too old. Must be called about once per second. */
void web_server_tick(struct web_server *server);
/* Closes all connections and frees the server. NULL is allowed. */
void web_server_close(struct web_server *server);

#endif
