/*
 * explained_objects.h - annotation objects for `noctule explain`: the kind of a file, its
 * referenced images and the pipelines that use it. For a series, the objects its pipelines wait
 * for. The database is used if it exists.
 */
#ifndef NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_OBJECTS_H
#define NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_OBJECTS_H

#include "config/config.h"
#include "db/report.h"
#include "service/cli/explain/explained.h"
#include "service/common/json.h"

struct explained_objects {
    const struct conf *conf;
    struct report *report;      /* NULL without a database */
    struct input_objects found; /* among the files */

    /* The stored rows of each of them, if any. */
    struct explained_rows {
        struct report_object *at;
        size_t count;
    } * rows;
};

void explained_objects_close(struct explained_objects *objects);

/* Finds the stored rows of the objects. Must be called once, after all were added to `found`.
 * Returns 0 or -ENOMEM. */
int explained_objects_find_rows(struct explained_objects *objects);

/* Print all objects, or the objects that the jobs of a series use. If `json` is NULL, they print
 * text. The second returns 0 or -errno. */
void explained_objects_put(const struct explained_objects *objects, struct json *json);
int explained_objects_put_waits(const struct explained_objects *objects, const struct explained *explained,
                                struct json *json);

#endif
