#include "service/daemon/programs/program_checks.h"

#include "service/common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
program_checks_clear(struct program_checks *checks)
{
    free(checks->at);
    free(checks->frame);
    *checks = (struct program_checks){0};
}

void
program_checks_read(struct program_checks *checks, struct proto_reader *reader)
{
    struct message_programs message;
    struct message_checked_program row;
    if (message_read_programs(reader, &message))
        return;
    struct program_checks fresh = {.at = calloc((size_t)reader->rows + 1, sizeof *fresh.at)};
    if (fresh.at)
        fresh.frame = message_keep_programs(reader, &message);
    if (!fresh.frame) {
        program_checks_clear(&fresh);
        reader->error = -ENOMEM;
        return;
    }
    while (message_next_checked_program(reader, &row)) {
        fresh.at[fresh.count++] = (struct queue_program){.name = row.name,
                                                         .identity = row.identity,
                                                         .program_sha256 = row.program_sha256,
                                                         .weights_sha256 = row.weights_sha256,
                                                         .sandbox = row.sandbox,
                                                         .message = row.message,
                                                         .weights_bytes = row.weights_bytes,
                                                         .code = row.code};
        log_write(row.code ? LOG_WARN : LOG_INFO, "program.checked",
                  LOG_FIELDS(LOG_STR("program", row.name), LOG_STR("identity", row.identity),
                             LOG_STR("sandbox", row.sandbox), LOG_STR("code", code_name(row.code)),
                             LOG_STR("message", row.message)));
    }
    program_checks_clear(checks);
    *checks = fresh;
}

const struct queue_program *
program_checks_find(const struct program_checks *checks, const char *name)
{
    for (size_t i = 0; i < checks->count; i++)
        if (strcmp(checks->at[i].name, name) == 0)
            return &checks->at[i];
    return NULL;
}

void
program_checks_expire(struct program_checks *checks, const struct conf *conf, const char *name)
{
    size_t kept = 0;
    checks->is_recorded = checks->count == 0 && conf->program_count > 0;
    for (size_t i = 0; i < checks->count; i++) {
        checks->at[kept] = checks->at[i];
        if (!name || strcmp(checks->at[kept].name, name) == 0)
            checks->at[kept].identity = "";
        kept += conf_find_program(conf, checks->at[i].name) != NULL;
    }
    checks->count = kept;
}
