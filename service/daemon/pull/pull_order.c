/*
 * pull_order.c - adds a batch of items of noctule pull, as an operator requests it. Loop thread
 * only. Declared in pull_scheduler.h.
 */
#include "service/daemon/pull/pull_scheduler.h"

#include "base/limits.h"
#include "db/pull_queue.h"
#include "service/common/clock.h"
#include "service/daemon/pull/pull_accessions.h"

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

static void
order_free(struct order *order)
{
    free(order->pseudonyms);
    free(order->accessions);
    free(order->items);
    free(order->text);
}

static int
order_open(struct order *order, const char *items)
{
    size_t lines = 1;
    for (const char *at = items; (at = strchr(at, '\n')); at++)
        lines++;
    *order = (struct order){.text = strdup(items),
                            .items = calloc(lines, sizeof *order->items),
                            .accessions = calloc(lines, sizeof *order->accessions),
                            .pseudonyms = calloc(lines, sizeof *order->pseudonyms)};
    return order->text && order->items && order->accessions && order->pseudonyms ? 0 : -ENOMEM;
}

/* Sets the identifier that a row may hold for an accession number. */
static int
order_set_identifier(struct core *core, struct order *order, const char *accession,
                     char **identifier)
{
    char *word = order->pseudonyms[order->count];
    *identifier = word;
    if (core->conf->identifiers == CONF_IDENTIFIERS_PLAIN)
        memcpy(word, accession, strlen(accession) + 1);
    return core->conf->identifiers == CONF_IDENTIFIERS_HASHED
               ? pseudonym_of(&core->pseudonym_key, accession, word)
               : 0;
}

/* Reads the line number of the site's list; *rest is the text after it. */
static bool
order_take_number(char *text, int32_t *number, char **rest)
{
    const long value = strtol(text, rest, 10);
    *number = (int32_t)value;
    return *rest != text && *(*rest)++ == ' ' && value >= 0 && value <= INT32_MAX;
}

/* Reads "KEY LINE VALUE", which the CLI has already checked. */
static int
order_take_line(struct core *core, struct order *order, char *line)
{
    struct queue_pull_wish *item = &order->items[order->count];
    char *value = strchr(line, ' ');
    if (!value)
        return -EINVAL;
    *value++ = '\0';
    if (!queue_pull_key_find(line, &item->key) ||
        !order_take_number(value, &item->list_line, &value))
        return -EINVAL;
    const bool is_accession = item->key == QUEUE_PULL_ACCESSION;
    if (!(is_accession ? pull_accession_fits(value) : pull_uid_fits(value)))
        return -EINVAL;
    int rc = 0;
    item->identifier = value;
    if (is_accession) {
        order->has_accession = true;
        order->accessions[order->count] = value;
        rc = order_set_identifier(core, order, value, &item->identifier);
    }
    order->count++;
    return rc;
}

static int
order_read(struct core *core, struct order *order)
{
    char *rest = NULL;
    int rc = 0;
    for (char *line = strtok_r(order->text, "\n", &rest); line && rc == 0;
         line = strtok_r(NULL, "\n", &rest))
        rc = order_take_line(core, order, line);
    if (rc == 0 && !pull_count_fits(order->count))
        rc = -EINVAL;
    return rc;
}

static int
order_write(struct core *core, const struct order *order, const char *source, const char *by,
            char *reply, size_t size)
{
    int64_t batch;
    int rc = queue_next_batch(core->queue, &batch);
    if (rc == 0 && order->has_accession)
        rc = pull_accessions_store(core, batch, order->accessions, order->count);
    if (rc == 0)
        rc = queue_add_pulls(core->queue, batch, source, by, order->items, order->count,
                             clock_unix_ms());
    if (rc == 0)
        snprintf(reply, size, "batch %" PRId64 ": %zu item%s to be retrieved from %s", batch,
                 order->count, order->count == 1 ? " is" : "s are", source);
    return rc;
}

int
pull_order(struct core *core, const struct message_pull *message, const char *by, char *reply,
           size_t size)
{
    struct order order;
    if (!conf_find_source(core->conf, message->source)) {
        snprintf(reply, size, "%s: the configuration in force has no source %s",
                 code_name(CODE_NO_SUCH_SOURCE), message->source);
        return -EINVAL;
    }
    int rc = order_open(&order, message->items);
    if (rc == 0)
        rc = order_read(core, &order);
    if (rc == -EINVAL)
        snprintf(reply, size, "a batch must have 1 to %d items, each an accession number or a UID",
                 LIMIT_PULL_ITEMS);
    if (rc == 0)
        rc = order_write(core, &order, message->source, by, reply, size);
    order_free(&order);
    return rc;
}
