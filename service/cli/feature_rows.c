/* feature_rows.c - see feature_rows.h. */
#include "service/cli/feature_rows.h"

#include "db/queue.h"

#include <errno.h>
#include <stdlib.h>

struct gathering {
    struct feature_set *set;
    size_t capacity;
};

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

/* Texts came from fields of the same sizes (worker.c). */
static void
fill(struct feature *feature, const struct queue_feature *row)
{
    *feature = (struct feature){
        .segment = row->segment,
        .value = row->value,
        .levels = row->levels,
        .bin_width = row->bin_width,
        .distance = row->distance,
        .symmetric = row->symmetric,
        .has_range = row->has_range,
        .range = {row->range[0], row->range[1]},
    };
    COPY(feature->label, row->label);
    COPY(feature->family, row->family);
    COPY(feature->name, row->name);
    COPY(feature->meaning, row->meaning);
    COPY(feature->ibsi, row->ibsi_code);
    COPY(feature->absence, row->reason);
    COPY(feature->unit, row->unit);
    COPY(feature->aggregation, row->aggregation);
    COPY(feature->aggregation_ibsi, row->aggregation_ibsi_code);
    COPY(feature->discretisation, row->discretisation);
    COPY(feature->directions, row->directions);
}

static int
take(void *context, const struct queue_feature *row)
{
    struct gathering *gathering = context;
    struct feature_set *set = gathering->set;
    if (set->count == gathering->capacity) {
        size_t capacity = gathering->capacity ? 2 * gathering->capacity : 256;
        struct feature *grown = realloc(set->items, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        set->items = grown;
        gathering->capacity = capacity;
    }
    fill(&set->items[set->count++], row);
    return 0;
}

int
feature_rows_read(struct report *report, int64_t job_id, int64_t segment, struct feature_set *set,
                  struct error *error)
{
    struct gathering gathering = {.set = set};
    int rc = report_each_feature(report, job_id, segment, take, &gathering, error);
    if (rc < 0)
        feature_set_clear(set);
    return rc;
}
