/*
 * troubles.h - what is not well now, and what waits: what the daemon says of itself, what the database
 * knows, and what the configuration cannot have. For status and report.
 */
#ifndef NOCTULE_CLI_TROUBLES_H
#define NOCTULE_CLI_TROUBLES_H

#include "base/error.h"
#include "db/iso_time.h"
#include "service/cli/line/line.h"
#include "service/common/json.h"

#include <stddef.h>
#include <stdint.h>

struct conf;
struct report;

struct cli_trouble {
    int level;        /* enum trouble_level */
    int64_t since_ms; /* Unix time; 0: not known */
    char *text;
};

struct cli_troubles {
    const char *daemon; /* "running" */
    struct cli_trouble *items;
    size_t count, room;
};

/* By enum trouble_level: as a line begins, in JSON, and for --check. */
struct cli_trouble_level {
    const char *heading, *word, *verdict;
    enum cli_style style;
};

extern const struct cli_trouble_level cli_trouble_levels[];

/* Into one that is zero; without a report what the daemon says. Clear it either way. */
int cli_troubles_gather(struct cli_troubles *troubles, const struct conf *conf,
                        struct report *report, struct error *error);
void cli_troubles_clear(struct cli_troubles *troubles);

/* enum trouble_level; that of waiting where there are none. */
int cli_troubles_worst(const struct cli_troubles *troubles);

/* "" where it is not known. */
void cli_trouble_since(const struct cli_trouble *trouble, char text[ISO_TIME_SIZE]);

/* "daemon" and "troubles" of the object that is open. */
void cli_troubles_to_json(const struct cli_troubles *troubles, struct json *json);

#endif
