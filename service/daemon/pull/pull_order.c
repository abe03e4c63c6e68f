/*
 * pull_order.c - adds a batch of items of noctule pull, as an operator requests it. Loop thread only. Declared in
 * pull_scheduler.h.
 */
#include "service/daemon/pull/pull_scheduler.h"

#include "base/limits.h"
#include "db/pull_queue.h"
#include "service/common/clock.h"
#include "service/daemon/pull/pull_attempt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
    char *text; /* copy of the request, split into words */
    struct queue_pull_wish *items;
    const char **accessions;            /* for the accession store; NULL: not an accession number */
    char (*pseudonyms)[PSEUDONYM_SIZE]; /* in place of accession numbers */
    size_t count;
    bool has_accession;
};

/* Reads "KEY LINE VALUE", which the CLI has already checked. */
static int
order_take_line(struct core *core, struct order *order, char *line)
{
    struct queue_pull_wish *item = &order->items[order->count];
    char *text = strchr(line, ' '), *value;
    if (!text)
        return -EINVAL;
    *text++ = '\0';
    const long number = strtol(text, &value, 10);
    if (!queue_pull_key_find(line, &item->key) || value == text || *value++ != ' ' || number < 0 || number > INT32_MAX)
        return -EINVAL;
    const bool is_accession = item->key == QUEUE_PULL_ACCESSION;
    if (!(is_accession ? pull_accession_fits(value) : pull_uid_fits(value)))
        return -EINVAL;
    int rc = 0;
    item->list_line = (int32_t)number;
    item->identifier = value;
    if (is_accession) {
        /* a row may hold no accession number unless `identifiers` permits it */
        char *word = item->identifier = order->pseudonyms[order->count];
        order->has_accession = true;
        order->accessions[order->count] = value;
        if (core->conf->identifiers == CONF_IDENTIFIERS_PLAIN)
            strcpy(word, value);
        else if (core->conf->identifiers == CONF_IDENTIFIERS_HASHED)
            rc = pseudonym_of(&core->pseudonym_key, value, word);
    }
    order->count++;
    return rc;
}

static int
order_write(struct core *core, const struct order *order, const char *source, const char *by, char *reply, size_t size)
{
    int64_t batch;
    int rc = queue_next_batch(core->queue, &batch);
    if (rc == 0 && order->has_accession)
        rc = pull_accessions_store(core, batch, order->accessions, order->count);
    if (rc == 0)
        rc = queue_add_pulls(core->queue, batch, source, by, order->items, order->count, clock_unix_ms());
    if (rc == 0)
        snprintf(reply, size, "batch %" PRId64 ": %zu item%s to be retrieved from %s", batch, order->count,
                 order->count == 1 ? " is" : "s are", source);
    return rc;
}

int
pull_order(struct core *core, const struct message_pull *message, const char *by, char *reply, size_t size)
{
    size_t lines = 1;
    char *rest = NULL;
    if (!conf_find_source(core->conf, message->source)) {
        snprintf(reply, size, "%s: the configuration in force has no source %s", code_name(CODE_NO_SUCH_SOURCE),
                 message->source);
        return -EINVAL;
    }
    for (const char *at = message->items; (at = strchr(at, '\n')); at++)
        lines++;
    struct order order = {.text = strdup(message->items),
                          .items = calloc(lines, sizeof *order.items),
                          .accessions = calloc(lines, sizeof *order.accessions),
                          .pseudonyms = calloc(lines, sizeof *order.pseudonyms)};
    int rc = order.text && order.items && order.accessions && order.pseudonyms ? 0 : -ENOMEM;
    for (char *line = rc ? NULL : strtok_r(order.text, "\n", &rest); line && rc == 0;
         line = strtok_r(NULL, "\n", &rest))
        rc = order_take_line(core, &order, line);
    if (rc == 0 && !pull_count_fits(order.count))
        rc = -EINVAL;
    if (rc == -EINVAL)
        snprintf(reply, size, "a batch must have 1 to %d items, each an accession number or a UID", LIMIT_PULL_ITEMS);
    if (rc == 0)
        rc = order_write(core, &order, message->source, by, reply, size);
    free(order.pseudonyms);
    free(order.accessions);
    free(order.items);
    free(order.text);
    return rc;
}
