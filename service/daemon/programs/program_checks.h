/*
 * program_checks.h - the programs of the configuration, as the role checked them last: whether they can run, and their
 * identity, which is unknown ("") from a start or a reload to the next check. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_CHECKS_H
#define NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_CHECKS_H

#include "config/config.h"
#include "db/program_rows.h"
#include "service/common/wire/messages.h"

struct program_checks {
    struct queue_program *at;
    size_t count;
    void *frame;      /* holds the strings */
    bool is_recorded; /* stored in the database, or in the open batch */
};

/* Takes PROGRAMS. An invalid frame sets the reader's error. */
void program_checks_read(struct program_checks *checks, struct proto_reader *reader);
/* Returns the check of a program, or NULL if it was not checked. */
const struct queue_program *program_checks_find(const struct program_checks *checks, const char *name);
/* Forgets the identity of a program; NULL: of all. Drops programs that the configuration does not have. */
void program_checks_expire(struct program_checks *checks, const struct conf *conf, const char *name);
void program_checks_clear(struct program_checks *checks);

#endif
