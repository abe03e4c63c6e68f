/*
 * config.h - the configuration: one commented file in libconfig syntax (config/noctule.conf).
 *
 * Unknown keys, wrong types and out-of-range values are errors with file and line. A struct conf is
 * immutable once loaded; reload is a new one or none. Durations are seconds, sizes MiB, as the keys
 * say.
 */
#ifndef NOCTULE_CONFIG_H
#define NOCTULE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_REASON 512

enum conf_after {
    CONF_KEEP,
    CONF_MOVE,
    CONF_DELETE
}; /* what happens to an inbox file once it is safe */

struct conf_inbox {
    char *path;
    enum conf_after after;
    char *move_to;         /* with CONF_MOVE: where originals go; else NULL */
    double settle_seconds; /* a file counts as complete when size and times stood still this long */
    double sweep_seconds;  /* a full scan at least this often (network shares tell nothing) */
};

struct conf_series {
    double quiet_seconds;    /* no new instance for this long: settled */
    double complete_seconds; /* quiet time when the expected count has been reached */
    double patience_seconds; /* quiet time while fewer than expected are there */
};

enum conf_shape_kind { CONF_SPHERE, CONF_ELLIPSOID, CONF_BOX };

enum conf_unit { CONF_VOXEL, CONF_MM, CONF_FRACTION };

struct conf_shape {
    enum conf_shape_kind kind;
    enum conf_unit center_unit; /* center = { voxel | mm | fraction = [x, y, z]; } */
    double center[3];
    enum conf_unit radius_unit; /* radius_voxels or radius_mm (half sizes for a box) */
    double radius[3];           /* three equal ones when the file gives one number */
};

struct conf_code {
    char *value, *scheme, *meaning; /* all NULL when not given */
};

enum conf_method { CONF_LEVEL_SET };

struct conf_segment {
    char *label;
    char *description; /* "" when not given */
    enum conf_method method;
    double range[2]; /* real-world units, inclusive */
    struct conf_shape *shapes;
    size_t shape_count;
    struct conf_code category, type, modifier, region;
    double color[3]; /* RGB, 0..1 */
};

enum conf_result { CONF_RESULT_SEG = 1, CONF_RESULT_CODES = 2 }; /* OR-able */

struct conf_pipeline {
    char *name;
    struct conf_segment *segments;
    size_t segment_count;
    unsigned results; /* enum conf_result */
    bool omit_empty_frames;
    int min_slices;           /* fewer: TOO_FEW_SLICES */
    double spacing_tolerance; /* relative */
    char *series_description; /* "": made from the name */
    int series_number;
};

struct conf_rule {
    char *modality;    /* NULL: any */
    char *body_part;   /* NULL: any */
    char *description; /* NULL: any; else a case-insensitive substring of Series Description */
    int min_slices, max_slices; /* 0: no limit */
    char *pipeline;
    int priority; /* larger runs first */
};

struct conf_jobs {
    int max_attempts;
    double retry_seconds; /* first delay, doubled each time */
    double retry_max_seconds;
    double deadline_seconds; /* a job that outlives it loses its worker */
};

struct conf_compute {
    char *backend; /* "auto", "cpu" */
    int threads;   /* 0: all */
    int lanes;     /* jobs at a time in one worker */
};

struct conf {
    char *root;
    struct conf_inbox *inboxes;
    size_t inbox_count;
    struct conf_series series;
    struct conf_jobs jobs;
    struct conf_compute compute;
    double min_free_mib; /* below this much free disk nothing is taken in or started */
    struct conf_pipeline *pipelines;
    size_t pipeline_count;
    struct conf_rule *rules;
    size_t rule_count;
    char *device_serial_number; /* of this installation, in every result */
    char *log_level;            /* "error", "warn", "info", "debug" */
};

/* Reads, checks and resolves `path`. -EINVAL with "FILE:LINE: what is wrong", or -ENOENT and the
 * like. */
int conf_load(const char *path, struct conf **conf, char *reason, size_t reason_size);
/*
 * The same with another root folder than the file says (NULL: as the file says); a relative one is
 * taken from the current folder. Paths of the file that are relative are below the root. In a
 * loaded configuration every path is absolute.
 */
int conf_load_with_root(const char *path, const char *root_override, struct conf **conf,
                        char *reason, size_t reason_size);
void conf_free(struct conf *conf);

/*
 * The whole configuration as text that conf_load reads back to the same values, includes expanded:
 * what the daemon hands its children, so that they see exactly what it checked. malloc'd.
 */
char *conf_to_text(const struct conf *conf);

const struct conf_pipeline *conf_find_pipeline(const struct conf *conf, const char *name);

/* One pipeline as text, every default written out, and back: a job carries its pipeline with it.
 * malloc'd. */
char *conf_pipeline_to_text(const struct conf_pipeline *pipeline);
int conf_pipeline_from_text(const char *text, struct conf_pipeline **pipeline, char *reason,
                            size_t reason_size);
void conf_pipeline_free(struct conf_pipeline *pipeline);

/* The option table (key, type, default, limits, help), one element an option, for docs and tests.
 */
struct conf_option {
    const char *key;      /* "series.quiet_seconds", "pipelines[].segments[].label" */
    const char *type;     /* "number", "integer", "string", "boolean", "enum a|b", "set a|b",
                             "3 numbers", "number or 3", "group", "list" */
    const char *fallback; /* the default as it would be written; "": none; NULL: required */
    const char *limits;   /* "0 .. 86400"; "" */
    const char *help;
};
const struct conf_option *conf_options(size_t *count);

#endif
