/*
 * explained_regions.h - the regions of an annotation object, and those that a segment would use by
 * the rules of a job (object_set.h).
 */
#ifndef NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_REGIONS_H
#define NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_REGIONS_H

#include "service/cli/explain/explained.h"
#include "service/common/json.h"
#include "service/pipeline/segment/object_set.h"

struct explained_regions {
    struct object_set *set; /* NULL if the file cannot be read */
    struct error error;     /* reason for that */
};

/* Opens the object of this kind ("rtstruct", "seg", "sr"). The path must outlive the regions. */
void explained_regions_open(struct explained_regions *regions, const char *kind, const char *path);
void explained_regions_close(struct explained_regions *regions);

/* Returns the number of matching regions, or of all regions if `wanted` is NULL. A job needs one,
 * unless the segment has `each` or `unite`. */
int32_t explained_regions_count(const struct explained_regions *regions,
                                const struct conf_object *wanted);

/* Returns why a job would use no region for the segment, or CODE_NONE. */
enum code explained_regions_check(const struct explained_regions *regions,
                                  const struct conf_segment *segment);

/* Lists regions as `1 "GTV", 2 "Heart"`. The text is "none" without regions, and has the error code
 * of an unreadable file. */
void explained_regions_describe(const struct explained_regions *regions,
                                const struct conf_object *wanted, char text[EXPLAINED_TEXT]);

/* Writes all regions as the array "regions" of the open JSON object. */
void explained_regions_put(const struct explained_regions *regions, struct json *json);

#endif
