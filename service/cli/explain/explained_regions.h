/*
 * explained_regions.h - what an object offers: its regions, and which of them a segment would take, as the job
 * judges it (object_set.h).
 */
#ifndef NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_REGIONS_H
#define NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_REGIONS_H

#include "service/cli/explain/explained.h"
#include "service/common/json.h"
#include "service/pipeline/segment/object_set.h"

struct explained_regions {
    struct object_set *set; /* NULL: the file cannot be read */
    struct error error;     /* then why */
};

/* Of the object of this kind ("rtstruct", "seg", "sr") at the path, which is borrowed. */
void explained_regions_open(struct explained_regions *regions, const char *kind, const char *path);
void explained_regions_close(struct explained_regions *regions);

/* How many of them the segment would take, of which a job wants one; all where `wanted` is NULL. */
int32_t explained_regions_count(const struct explained_regions *regions,
                                const struct conf_object *wanted);

/* Returns why a job would take none of them for the segment; CODE_NONE: it would take one, or all of `each` and `unite`. */
enum code explained_regions_check(const struct explained_regions *regions,
                                  const struct conf_segment *segment);

/* These as `1 "GTV", 2 "Heart"`; where there are none, or the file cannot be read, that. */
void explained_regions_tell(const struct explained_regions *regions,
                            const struct conf_object *wanted, char text[EXPLAINED_TEXT]);

/* All of them, as the array "regions" of the open object. */
void explained_regions_put(const struct explained_regions *regions, struct json *json);

#endif
