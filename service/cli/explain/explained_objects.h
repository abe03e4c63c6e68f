/*
 * explained_objects.h - what was drawn on images, for `noctule explain`: which object a file is, what it
 * was drawn on and which pipelines take it; and of a series what its pipelines wait for, and what there
 * is of it. Of what is stored the database is asked, where there is one.
 */
#ifndef NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_OBJECTS_H
#define NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_OBJECTS_H

#include "config/config.h"
#include "db/report.h"
#include "dicom/read/object_peek.h"
#include "service/cli/explain/explained.h"
#include "service/common/json.h"

/* A file that is one. */
struct explained_object {
    const char *path; /* borrowed */
    struct object_peek *peek;
    struct report_object *stored; /* NULL: it is not */
    size_t stored_count;
};

struct explained_objects {
    const struct conf *conf;
    struct report *report; /* NULL: there is no database */
    struct explained_object *items;
    size_t count;
};

/* With no file yet. */
void explained_objects_open(struct explained_objects *objects, const struct conf *conf);
void explained_objects_close(struct explained_objects *objects);

/* 1 when the file is an object, and was added; 0: it is none, or cannot be read; -ENOMEM. */
int explained_objects_add(struct explained_objects *objects, const char *path);

/* `json` NULL: as text. Of each file; and of a series what its jobs take. 0 or -errno. */
void explained_objects_put(const struct explained_objects *objects, struct json *json);
int explained_objects_put_waits(const struct explained_objects *objects,
                                const struct explained *explained, struct json *json);

#endif
