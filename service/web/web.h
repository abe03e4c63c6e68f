/*
 * web.h - the web UI: access control, routes and style. It writes nothing: decisions go to the daemon. It has no
 * external resources.
 *
 * One thread at a time may use it, except for paths that are WEB_SERVER_NOW (web_turn).
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_H
#define NOCTULE_SERVICE_WEB_WEB_H

#include "config/config.h"
#include "db/report_lists.h"
#include "service/common/pseudonym.h"
#include "service/web/decide/web_looks.h"
#include "service/web/pages/web_alerts.h"
#include "service/web/server/web_access.h"
#include "service/web/server/web_metrics.h"
#include "service/web/server/web_rate.h"
#include "service/web/server/web_request.h"
#include "service/web/server/web_server.h"
#include "service/web/viewer/web_kept.h"

struct web {
    const struct conf *conf;
    char *database;        /* path of the database */
    struct report *report; /* NULL: could not be opened; the next request tries again */
    struct web_metrics *metrics;
    struct conf_findings findings; /* warnings of the configuration files, read when the process started */
    struct web_access access;
    struct web_alerts alerts;
    struct pseudonym_key key;            /* for hashed identifiers */
    struct web_rate decisions, failures; /* by person, by address */
    struct web_looks looks;
    struct web_kept kept;
    bool lost; /* the database failed and may have been replaced */
};

/* Returns WEB_SERVER_NOW for paths that need neither the database nor other data that changes, such
 * as /healthz: any thread may answer them. Returns WEB_SERVER_NEXT for /readyz. */
enum web_server_turn web_turn(const char *path);

/* Returns whether the path takes a POST, as configured. Any thread may call it. */
enum web_server_posts web_takes_posts(const struct web *web, const char *path);

/* Writes the answer to a request that the server refuses with this status. Any thread may call it. */
void web_refuse(struct web *web, const char *path, int status, const char *why, struct web_reply *answer);

/* Answers a request. Sets status and type, and writes the text to answer->out or sets
 * answer->bytes. If it sets answer->decision, the caller must send it to the daemon and call web_decided(). */
void web_answer(struct web *web, const struct web_request *request, struct web_reply *answer);

/* Answers with the daemon's reply to answer->decision, and frees that. status: 0 or -errno; -ETIMEDOUT: no reply. */
void web_decided(struct web *web, const struct web_request *request, int status, const char *message,
                 struct web_reply *answer);

#endif
