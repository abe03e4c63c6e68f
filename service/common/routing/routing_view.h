/*
 * routing_view.h - the stacks that a series has for pipelines with the same options, with the facts
 * that rules check. The receiver makes them for the daemon, and `noctule explain` for itself.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_VIEW_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_VIEW_H

#include "dicom/read/geometry/geometry.h"
#include "service/common/routing/routing_conditions.h"
#include "service/common/routing/routing_options.h"

struct routing_view {
    int options;
    struct geometry_series *grouped;
    struct rules_facts *facts; /* one per stack */
    char **values;             /* of the facts */
};

struct routing_view_input {
    struct dicom_instance *const *instances;
    const char *const *paths; /* one per instance */
    int32_t count;
    struct geometry_limits limits; /* those that do not depend on options */
    const char *attributes;        /* conditions_attributes */
    size_t values_size;            /* bytes in the facts of all views so far */
};

/*
 * Makes the view with these options. The facts have the attributes of the first slice of each
 * stack: the file, or the frame of an enhanced image, that is lowest along the normal. Values
 * beyond LIMIT_RULE_VALUES_KIB are unknown, so that a rule that needs them does not match. Returns
 * 0, or -errno with the reason for which the whole series is refused. The view borrows the input.
 * The caller must release it, also after an error.
 */
int routing_view_make(struct routing_view_input *input, int options, struct routing_view *view, struct error *error);
void routing_view_release(struct routing_view *view);

#endif
