/*
 * web.h - the page: who is let in, what an address is answered with, and how it looks. Read-only; without scripts, and
 * without anything from elsewhere.
 *
 * One thread at a time.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_H
#define NOCTULE_SERVICE_WEB_WEB_H

#include "config/config.h"
#include "db/web_lists.h"
#include "service/common/pseudonym.h"
#include "service/web/web_access.h"
#include "service/web/web_alerts.h"
#include "service/web/web_metrics.h"
#include "service/web/web_request.h"

struct page {
    const struct conf *conf;
    char *database;        /* its path */
    struct report *report; /* NULL: it could not be opened, and is tried again */
    struct metrics *metrics;
    struct gate gate;
    struct page_alerts alerts;
    struct pseudonym_key key; /* of identifiers that are hashed */
    bool lost; /* the database failed: whether it is another one has to be looked at */
};

/* Always makes an answer. */
void page_answer(struct page *page, const struct page_request *request, struct page_reply *answer);

#endif
