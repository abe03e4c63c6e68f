/*
 * explained_objects.h - annotation objects for `noctule explain`: the kind of a file, its
 * referenced images and the pipelines that use it. For a series, the objects its pipelines wait
 * for. The database is used if it exists.
 */
#ifndef NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_OBJECTS_H
#define NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_OBJECTS_H

#include "config/config.h"
#include "db/report.h"
#include "dicom/read/annotation/object_peek.h"
#include "service/cli/explain/explained.h"
#include "service/common/json.h"

/* A file with an annotation object. */
struct explained_object {
    const char *path; /* borrowed */
    struct object_peek *peek;
    struct report_object *stored; /* NULL if not stored */
    size_t stored_count;
};

struct explained_objects {
    const struct conf *conf;
    struct report *report; /* NULL without a database */
    struct explained_object *items;
    size_t count;
};

/* Opens an empty list. */
void explained_objects_open(struct explained_objects *objects, const struct conf *conf);
void explained_objects_close(struct explained_objects *objects);

/* Adds a file. Returns 1 if it is an annotation object, 0 if it is not or cannot be read, or
 * -ENOMEM. */
int explained_objects_add(struct explained_objects *objects, const char *path);

/* Print all objects, or the objects that the jobs of a series use. If `json` is NULL, they print
 * text. The second returns 0 or -errno. */
void explained_objects_put(const struct explained_objects *objects, struct json *json);
int explained_objects_put_waits(const struct explained_objects *objects,
                                const struct explained *explained, struct json *json);

#endif
