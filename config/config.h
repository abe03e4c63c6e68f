/*
 * config.h - the configuration: one commented file in libconfig syntax (config/noctule.conf).
 *
 * Unknown keys, wrong types and out-of-range values are errors with file and line. A struct conf is
 * immutable once loaded; reload is a new one or none. Durations are seconds, sizes MiB, as the keys
 * say.
 */
#ifndef NOCTULE_CONFIG_H
#define NOCTULE_CONFIG_H

#include "base/attribute.h"
#include "base/calendar/time_window.h"
#include "base/concept.h"
#include "base/error.h"
#include "base/texture_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_ROOT "/var/lib/noctule" /* by default */

enum conf_after {
    CONF_KEEP,
    CONF_MOVE,
    CONF_DELETE
}; /* what happens to an inbox file once it is safe */

/* How what says who the patient is gets kept (series_about.def). */
enum conf_identifiers { CONF_IDENTIFIERS_NONE, CONF_IDENTIFIERS_HASHED, CONF_IDENTIFIERS_PLAIN };

/* Of several that cannot all be right. */
enum conf_newest { CONF_REFUSE, CONF_NEWEST };

struct conf_inbox {
    char *name; /* NULL: none */
    char *path;
    enum conf_after after;
    char *move_to;           /* with CONF_MOVE: where originals go; else NULL */
    enum conf_newest resent; /* what has the UID of a stored instance, and another data set */
    double settle_seconds; /* a file counts as complete when size and times stood still this long */
    double sweep_seconds;  /* a full scan at least this often (network shares tell nothing) */
};

struct conf_series {
    double quiet_seconds;    /* no new instance for this long: settled */
    double complete_seconds; /* quiet time when the expected count has been reached */
    double patience_seconds; /* quiet time while fewer than expected are there */
    int max_instances;       /* of one; a larger one is refused: SERIES_TOO_LARGE */
    double max_mib;          /* of all its files */
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

enum conf_method {

#define METHOD(NAME, name, word) CONF_##NAME,
#include "base/methods.def"
    CONF_METHODS, /* how many there are */
};

/* As they are written; ends with NULL. */
extern const char *const conf_method_names[CONF_METHODS + 1];

/* Where fuzzy connectedness starts from: one voxel, the nearest to this point. */
struct conf_seed {
    enum conf_unit unit; /* { voxel | mm | fraction = [x, y, z]; } */
    double at[3];
};

/* A number that is measured at the seeds when the file does not give it. */
struct conf_estimable {
    bool given;
    double value; /* real-world units */
};

/* Which objects that arrive beside images are looked at. */
enum conf_object_kind { CONF_RTSTRUCT, CONF_SEG, CONF_SR };

/* Whether a voxel whose centre lies on a contour belongs to the region (kernels/mask/contours.h). */
enum conf_contour_pixels { CONF_PIXELS_INSIDE, CONF_PIXELS_CENTRES };

/* A region of an object: by a pattern for its name, or by its number. */
struct conf_object {
    enum conf_object_kind kind;
    char *roi; /* NULL: by number */
    bool has_number;
    int number;
    char *from_ae;                   /* who has to have sent it; NULL: anybody */
    double threshold;                /* of CONF_SEG: of what is fractional */
    bool own;                        /* of CONF_SEG: our own results too */
    bool interpolate;                /* of CONF_RTSTRUCT: planes between drawn ones */
    enum conf_contour_pixels pixels; /* of CONF_RTSTRUCT */
    bool each;                       /* one segment per region that matches `roi` */
    bool unite;                      /* one segment of all regions that match `roi` */
    bool optional;                   /* the segment may be empty, or its region absent */
};

extern const char *const conf_object_kind_names[];

/* Where a range of values comes from: it is given, or follows from the values of a segment, or of the
 * volume (kernels/mask/relative.h has what each means). */
enum conf_relative { CONF_ABSOLUTE, CONF_PERCENTILE, CONF_OTSU, CONF_SIGMA, CONF_OF_MAX };

/* Where a level set starts that nothing else starts. */
enum conf_auto {
    CONF_AUTO_NONE,
    CONF_AUTO_LARGEST,
    CONF_AUTO_CENTER,
    CONF_AUTO_HIGHEST,
    CONF_AUTO_LOWEST,
};

struct conf_range {
    double ends[2]; /* of CONF_ABSOLUTE; real-world units */
    enum conf_relative relative;
    double percentile[2];
    int otsu, otsu_class; /* how many classes, and which of them, from 1 */
    bool has_class;
    double sigma;
    double of_max;
    char *of; /* a label; NULL: the volume less padding, or with CONF_SIGMA the start region */
};

/* What is done with a segment that was found (kernels/mask/mask.h has what each means). */
enum conf_step_kind {
    CONF_STEP_KEEP,
    CONF_STEP_KEEP_AT_LEAST,
    CONF_STEP_DROP_BELOW,
    CONF_STEP_FILL,
    CONF_STEP_OPEN,
    CONF_STEP_CLOSE,
    CONF_STEP_GROW,
    CONF_STEP_SHRINK,
    CONF_STEP_CUT_BRIDGES,
};

enum conf_fill { CONF_FILL_SLICES, CONF_FILL_VOLUME };

struct conf_step {
    enum conf_step_kind kind;
    int keep;
    enum conf_fill fill;
    double amount; /* of the other kinds: a share, ml or mm */
    int connectivity;
};

/* A result is to lie within these, both inclusive. */
struct conf_bounds {
    bool given;
    double at[2];
};

/* Which faces of the volume a segment may touch. */
enum conf_touches { CONF_TOUCHES_ANY, CONF_TOUCHES_TOP_BOTTOM, CONF_TOUCHES_NONE };

struct conf_share {
    char *label; /* of another segment */
    double range[2];
};

/* What a segment has to be like for its result to be plausible; none that is empty is. */
struct conf_expect {
    struct conf_bounds volume_ml, mean, components, slices;
    enum conf_touches touches;
    struct conf_share *share_of; /* NULL: of none */
    struct conf_bounds share_of_box;
    /* Of the images that it is found in. */
    struct conf_bounds slice_mm;
    char *unit; /* UCUM; NULL: any */
    bool has_contrast, contrast;
    char *
        unvalidated; /* why results are held unless the pipeline is `unreviewed`; NULL: they are not */
};

#define CONF_CATEGORY "123037004" /* of a segment, by default: SCT, Anatomical Structure */

struct conf_segment {
    char *label;
    char *description; /* "" when not given */
    enum conf_method method;
    /* The methods' own; what a method has no use for is 0. */
#define METHOD_OPTION(methods, member, ...) member;
#include "base/methods.def"
    /* Labels of other segments: it lies in each of `within` and of `intersect`, and in none of
     * `minus`, before the steps and after each of them. */
    char **within, **minus, **intersect;
    size_t within_count, minus_count, intersect_count;
    struct conf_step *then;
    size_t then_count;
    bool hidden; /* of use to other segments only: not part of the results */
    /* No type: only of hidden segments and of those that take the codes of a SEG object. */
    struct coded_concept category, type, modifier, region;
    double color[3];            /* RGB, 0..1 */
    struct conf_expect *expect; /* NULL: nothing */
};

/* What becomes of a result that is not as expected: it waits for somebody's word, or goes on. */
enum conf_where { CONF_ANYWHERE, CONF_HERE, CONF_ON_SLURM };

enum conf_review { CONF_HOLD, CONF_DELIVER };

enum conf_result_bit {

#define RESULT(id, word, what) CONF_RESULT_BIT_##id,
#include "config/results.def"
#undef RESULT
};

enum conf_result { /* OR-able */

#define RESULT(id, word, what) CONF_RESULT_##id = 1 << CONF_RESULT_BIT_##id,
#include "config/results.def"
#undef RESULT
};

/* What becomes of a stack that is sheared or unevenly spaced. */
enum conf_tilt { CONF_TILT_STRAIGHTEN, CONF_TILT_REFUSE };

/* What texture is measured of. */
enum conf_region { CONF_SEGMENTS = 1, CONF_VOLUME = 2 }; /* OR-able */

/* Of several slices at one position: the series is refused, or the newest is taken. */

/* Times of the week, parsed. */
struct conf_window {
    char *text;
    struct time_window *times;
};

#define CONF_MAX_SEGMENTS 256 /* of a pipeline, also once each region is one of its own */

struct conf_pipeline {
    char *name;
    struct conf_segment *segments;
    size_t segment_count;
    struct texture_options *texture; /* each measures; NULL: none */
    size_t texture_count;
    unsigned results; /* enum conf_result */
    bool
        relative_connectedness; /* among the CONF_FUZZY segments each voxel has one owner at most */
    bool omit_empty_frames;
    int min_slices;           /* fewer: TOO_FEW_SLICES */
    double spacing_tolerance; /* relative */
    enum conf_newest duplicates;
    enum conf_tilt tilt;
    double grid_mm; /* between slices of a straightened stack; 0: as its closest planes */
    bool derived;   /* reformats, projections and maps are images, too */
    enum conf_review review;
    bool unreviewed;          /* the site delivers results of segments that were not validated */
    char *series_description; /* "": made from the name */
    int series_number;
#define CONF_PATIENCE_SECONDS 86400.0 /* by default */
    double patience_seconds; /* with objects that did not come; no part of the results' identity */
    /* Of a job, and no part of the results' identity; 0: as jobs has it. */
    double memory_mib;
    double deadline_seconds;
    bool by_hand; /* no rule is to choose it; no part of the results' identity */
    /* Names of destinations, and CONF_SENDER; not part of the results' identity. */
    char **deliver;
    size_t deliver_count;
    /* Where and when a job runs is no part of what it does: in neither its settings nor the identity. NULL: at any
     * time, by none. */
    struct conf_window *window;
    struct conf_window *done_by; /* moments */
    enum conf_where executor;
};

#define CONF_SENDER       "sender" /* in `deliver`: whoever sent the series */

#define CONF_MIN_PRIORITY (-1000)
#define CONF_MAX_PRIORITY 1000

/* What a rule asks of an attribute. */
enum conf_attribute_test {
    CONF_ATTRIBUTE_NONE,
    CONF_ATTRIBUTE_IS,
    CONF_ATTRIBUTE_GLOB,
    CONF_ATTRIBUTE_REGEX,
    CONF_ATTRIBUTE_RANGE,
    CONF_ATTRIBUTE_PRESENT,
};

/* A regular expression (expression.h). */
struct conf_regex {
    char *text;
    struct expression *compiled;
};

struct conf_attribute {
    char *tag;     /* its keyword, or "(gggg,eeee)" */
    char *creator; /* of a private one; else NULL */
    enum conf_attribute_test test;
    char **is; /* one of these */
    size_t is_count;
    char *glob;
    struct conf_regex *regex;
    double range[2]; /* inclusive */
    bool present;
    bool negated; /* none of its values passes the test */
};

/* Of a stack: which axis of the patient its normal is near to. */
enum conf_orientation {
    CONF_ANY_ORIENTATION,
    CONF_AXIAL,
    CONF_CORONAL,
    CONF_SAGITTAL,
    CONF_OBLIQUE
};

/* Another series of the same study, which is to be there; NULL: any. */
struct conf_companion {
    char *modality, *body_part, *description; /* as a rule's */
};

struct conf_rule {
    char *name;        /* NULL: none */
    char *modality;    /* NULL: any */
    char *body_part;   /* NULL: any */
    char *description; /* NULL: any; else a case-insensitive substring of Series Description */
    char *inbox;       /* name or path of the one that it came by; NULL: any */
    char *called_ae, *sender;          /* of its first C-STORE; NULL: any */
    int min_slices, max_slices;        /* 0: no limit */
    struct conf_attribute *attributes; /* each has to pass */
    size_t attribute_count;
    enum conf_orientation orientation;
    bool has_spacing, has_contrast; /* are these asked for? */
    double spacing[2];              /* mm between slices, inclusive */
    bool contrast;
    struct conf_companion *study; /* all have to be there before a job runs */
    size_t study_count;
    char *pipeline;
    int priority; /* larger runs first */
    char
        *stacks; /* CONF_ALL_STACKS ..., or a pattern for their names; NULL: all, if not too many */
    bool otherwise; /* only for a series that no other rule fits */
    bool off;       /* such rules are read, and are not among these */
    int number;     /* from 1; 0: it stands in for the rules */
};

#define CONF_ALL_STACKS  "all"
#define CONF_FIRST_STACK "first"
#define CONF_LAST_STACK  "last"
#define CONF_B0_STACKS   "b0" /* without diffusion weighting */

struct conf_jobs {
    int max_attempts;
    double retry_seconds; /* first delay, doubled each time */
    double retry_max_seconds;
    double deadline_seconds; /* a job that outlives it loses its worker */
    double memory_mib;       /* of one; 0: what the machine has */
    double ageing_hours; /* of waiting, for which a job rises by one point of priority; 0: never */
};

enum conf_executor { CONF_EXECUTOR_LOCAL, CONF_EXECUTOR_SLURM, CONF_EXECUTOR_BOTH };

/* How jobs are handed to Slurm. */
struct conf_slurm {
    char *share;     /* a folder that the compute nodes have under the same path; NULL: none */
    char *program;   /* noctule, on them */
    char *partition; /* this and the next: "" for Slurm's default */
    char *gres;
    int time_minutes;
    char **arguments; /* more of sbatch's */
    size_t argument_count;
    double batch_seconds; /* jobs of less travel together, up to so much work */
    int max_submitted;    /* Slurm jobs at a time */
    double poll_seconds;
    int backlog_jobs; /* with "both": so many that wait are left to this machine */
};

struct conf_compute {
    enum conf_executor executor;
    struct conf_slurm slurm;
    char *backend;  /* "auto", "cuda", "cpu" */
    char **devices; /* GPUs, by index or UUID; none named: all there are */
    size_t device_count;
    int threads;     /* of a job that runs alone; 0: all */
    int lanes;       /* jobs at a time in one worker */
    double keep_mib; /* of pinned memory that each has from its start, on a GPU */
};

/* One of our own AE titles. */
struct conf_title {
    char *ae_title;
    char *pipeline; /* all that is sent to this title gets it; NULL: the rules decide */
    char *stacks;   /* as a rule's, for this pipeline */
};

/* Who may call. What is NULL is not asked; several peers may have one AE title. */
struct conf_peer {
    char *ae_title;
    char *host;              /* an IPv4 or IPv6 address, as inet_ntop writes it */
    char *certificate;       /* SHA-256 of the certificate's DER form: 64 lower-case digits */
    int max_associations;    /* 0: half of all where there are other peers (admission_share) */
    enum conf_newest resent; /* as an inbox's */
};

/* PEM files, for both directions. certificate and key are both NULL or both given. */
struct conf_tls {
    char *certificate; /* with its chain */
    char *key;
    char *ca;          /* the authorities that are trusted */
    char *crl;         /* what they, and those below them, have revoked; NULL: nothing is asked */
    bool require_peer; /* a caller without a certificate of `ca` is turned away */
};

struct conf_dicom {
    char *bind;   /* address to listen on; "": every one of the host */
    int port;     /* 0: not listening */
    int tls_port; /* the same */
    struct conf_title *titles;
    size_t title_count; /* at least one */
    struct conf_peer *peers;
    size_t peer_count;
    int max_associations;
    double acse_seconds;       /* for an association to be asked for, or ours to be granted */
    double dimse_seconds;      /* for the next part of a message */
    double idle_seconds;       /* for the next message */
    double min_kib_per_second; /* of a message beyond its first dimse_seconds; 0: any */
    int max_instance_mib;
    int max_pdu_kib;
    bool echo_from_anybody; /* C-ECHO, and nothing else, for callers that are no peers */
    struct conf_tls tls;
};

/* A `folder`, a `stow`, or an AE with ae_title, host and port. What is used with which of them, the
 * checks say (options/delivery.c). */
struct conf_destination {
    char *name;
    char *folder; /* else NULL */
    char *stow;   /* the URL of a STOW-RS service; else NULL */
    char *ca;     /* of stow: whom it believes, PEM; NULL: whom the system does */
    char *client_certificate, *client_key; /* of stow, PEM; NULL: none, in the same file */
    char *token_file, *login_file;         /* of stow: at most one of them */
    char *ae_title;
    char *host; /* a name, or an IPv4 or IPv6 address */
    int port;
    char *calling_ae_title; /* the first of our titles where the file gives none */
    bool tls;
    char *certificate;     /* SHA-256 of its certificate, as of a peer; NULL: one for its host */
    bool commit;           /* storage commitment is asked for; only then is it SENT */
    double commit_seconds; /* for the answer to come in */
    char *fallback;        /* a destination, for what this one does not support; NULL: none */
    double connect_seconds, dimse_seconds;
    double
        min_kib_per_second; /* at which it takes a message beyond its first dimse_seconds; 0: any */
    double idle_seconds;    /* an association is kept open for so long to be used again */
};

struct conf_delivery {
    double retry_seconds; /* first delay, doubled each time */
    double retry_max_seconds;
    double give_up_seconds; /* a delivery that was tried for so long has failed */
    int breaker_failures;   /* so many in a row stop a destination */
    double breaker_seconds; /* until it is tried again */
};

/* Of which it asks for what: whole studies, or their series one by one. */
enum conf_pull_level { CONF_PULL_STUDY, CONF_PULL_SERIES };

/* An archive that is asked by C-FIND, and told by C-MOVE to send to one of our titles. */
struct conf_source {
    char *name;
    char *ae_title;
    char *host; /* and the next members: as of a destination */
    int port;
    char *calling_ae_title;
    bool tls;
    char *certificate;
    double connect_seconds, dimse_seconds;
    char *move_destination; /* the first of our titles where the file gives none */
    enum conf_pull_level level;
    struct conf_window *window; /* in which C-FIND and C-MOVE may begin; NULL: at any time */
    int per_hour;               /* items that may begin; 0: any number, one after the other */
    double deadline_seconds;    /* of one C-FIND, and of one C-MOVE */
    double arrival_seconds;     /* for what was said to be sent */
};

struct conf_pull {
    struct conf_source *sources;
    size_t source_count;
};

/* How long things stay, in days; 0: for ever. */
struct conf_retention {
    double series_days;     /* images, since their series was settled and its last job ended */
    double results_days;    /* results that were delivered, since their job ended */
    double quarantine_days; /* files in quarantine */
    double events_days;     /* rows of what is removed, since the last that happened to it */
    double min_days;        /* for want of space, nothing newer is removed */
    double low_mib;         /* with less free than this, the oldest is removed; 0: never */
    double high_mib;        /* until so much is free */
    bool delete_originals; /* of inboxes that keep them, with their series; else such series stay */
};

/* The site's, which `noctule doctor` looks at. */
struct conf_backup {
    char *folder; /* NULL: not known */
    double max_age_hours;
};

/* Of each night (service/daemon/nights/). */
struct conf_report {
    struct conf_window *at; /* moments: when a night ends */
    char *command;          /* of /bin/sh, to hand it over; NULL: none */
    double timeout_seconds;
};

/* Read-only, over HTTP. */
struct conf_page {
    int port; /* 0: there is none */
    char *bind;
    char *token_file; /* NULL: nobody is asked who they are */
    char **hosts;     /* names that are ours, beside localhost and addresses */
    size_t host_count;
};

struct conf {
    char *root;
    struct conf_inbox *inboxes;
    size_t inbox_count;
    struct conf_series series;
    struct conf_jobs jobs;
    struct conf_compute compute;
    struct conf_dicom dicom;
    struct conf_destination *destinations;
    size_t destination_count;
    struct conf_delivery delivery;
    struct conf_pull pull;
    struct conf_retention retention;
    struct conf_backup backup;
    struct conf_report report;
    struct conf_page page;
    double min_free_mib; /* below this much free disk nothing is taken in or started */
    struct conf_pipeline *pipelines;
    size_t pipeline_count;
    struct conf_rule *rules;
    size_t rule_count;
    char *device_serial_number; /* of this installation, in every result */
    enum conf_identifiers identifiers;
    char *log_level; /* "error", "warn", "info", "debug" */
};

/* The dictionary that says what the tags of rules are; config/ has none of its own. Set it once, before
 * anything is loaded and before any thread; without it no tag is known. */
void conf_set_dictionary(enum attribute_kind (*kind_of)(const char *tag));

/* Reads, checks and resolves `path`. -EINVAL with "FILE:LINE: what is wrong", or -ENOENT and the
 * like; *conf, NULL before, is NULL then. */
int conf_load(const char *path, struct conf **conf, struct error *error);
/*
 * The same with another root folder than the file says (NULL: as the file says); a relative one is
 * taken from the current folder. Paths of the file that are relative are below the root. In a
 * loaded configuration every path is absolute.
 */
int conf_load_with_root(const char *path, const char *root_override, struct conf **conf,
                        struct error *error);

#define CONF_FINDINGS 100

/* What is wrong with a configuration, and what is doubtful of one that is good, in the order of its
 * lines. Nothing that only follows from another is told. */
struct conf_findings {
    struct {
        bool wrong;
        char *message; /* "FILE:LINE: what is wrong" */
    } items[CONF_FINDINGS];

    size_t count;
    size_t more; /* that there was no room for; reading stops at a thousand errors */
    /* "FILE:LINE" where each pipeline, then each destination, then each rule comes from. */
    char **places;
    size_t place_count;
    char *files; /* that were read, one per line, this file first; NULL: none */
};

/* The same, telling all of them; the error is the first. Where there are none beside an error, the
 * file could not be read or parsed, and the error is all. Free the findings either way. */
int conf_load_all(const char *path, const char *root_override, struct conf **conf,
                  struct conf_findings *findings, struct error *error);
void conf_findings_free(struct conf_findings *findings);
/*
 * Finds the root folder of a file that cannot be loaded, as far as it can be read; "": it gives none. 0 or -errno; free
 * *root.
 */
int conf_find_root(const char *path, char **root);
void conf_free(struct conf *conf);

/*
 * The whole configuration as text that conf_load and conf_from_text read back to the same values,
 * includes expanded: what the daemon hands its children, so that they see exactly what it checked.
 * malloc'd.
 */
char *conf_to_text(const struct conf *conf);
int conf_from_text(const char *text, struct conf **conf, struct error *error);

/* The first segment with this label; segment_count when there is none. */
size_t conf_find_segment(const struct conf_pipeline *pipeline, const char *label);

/* One of the segments that a segment uses. */
struct conf_use {
    const char *option; /* "within" */
    const char *label;
    bool start; /* the method needs it, not only what is done with what the method found */
};

/*
 * The segment's use `number`, from 0; false: it has no more. A segment may use another one twice.
 * Objects of relative connectedness are found together: what one needs to start is a use of all.
 */
bool conf_segment_use(const struct conf_pipeline *pipeline, size_t segment, size_t number,
                      struct conf_use *use);

/* Of what the groups of texture measure: enum conf_region, or-ed. */
unsigned conf_measured_regions(const struct conf_pipeline *pipeline);

/* Is the segment a region of an object as it is: nothing is made up, cut off or done with it? */
bool conf_segment_is_object(const struct conf_segment *segment);

/* Returns whether a segment stands for each region of an object that matches. */
bool conf_segment_is_each(const struct conf_segment *segment);

/* Does it name an object that Noctule may have written? */
bool conf_pipeline_takes_own(const struct conf_pipeline *pipeline);

/* Which of the segments that are written this is, from 1; 0: it is hidden. */
int32_t conf_segment_number(const struct conf_pipeline *pipeline, size_t segment);

/* Whether its start is looked for in the image, and within the segments of `within`. */
bool conf_segment_looks(const struct conf_segment *segment);

const struct conf_pipeline *conf_find_pipeline(const struct conf *conf, const char *name);
const struct conf_destination *conf_find_destination(const struct conf *conf, const char *name);
const struct conf_source *conf_find_source(const struct conf *conf, const char *name);
/* The first AE of that title, which is how CONF_SENDER is resolved; NULL: there is none. */
const struct conf_destination *conf_find_destination_ae(const struct conf *conf,
                                                        const char *ae_title);
/* Whether only this machine reaches it. */
bool conf_page_is_local(const struct conf_page *page);
/* May a job go to Slurm? */
bool conf_uses_slurm(const struct conf *conf);
const struct conf_title *conf_find_title(const struct conf *conf, const char *ae_title);
/* By its path, as rows have it. */
const struct conf_inbox *conf_find_inbox(const struct conf *conf, const char *path);
/* Is it called so, by its name or its path? */
bool conf_inbox_is(const struct conf_inbox *inbox, const char *name);

/*
 * One pipeline as text, every default written out, and back: a job carries its pipeline with it.
 * malloc'd. `deliver` is left out: who delivers asks the configuration in force, by the pipeline's
 * name.
 */
char *conf_pipeline_to_text(const struct conf_pipeline *pipeline);
int conf_pipeline_from_text(const char *text, struct conf_pipeline **pipeline, struct error *error);
void conf_pipeline_free(struct conf_pipeline *pipeline);
/*
 * What of a pipeline its results' UIDs are made from: its text without the options that came later
 * than the first UIDs (option_row.later) and stand at their default. malloc'd; NULL: no memory.
 */
char *conf_pipeline_identity(const struct conf_pipeline *pipeline);

/* The option table (key, type, default, limits, help), one element an option, for docs and tests.
 */
struct conf_option {
    const char *key;      /* "series.quiet_seconds", "pipelines[].segments[].label" */
    const char *type;     /* "number", "integer", "string", "boolean", "enum a|b", "set a|b",
                             "3 numbers", "number or 3", "names", "integers",
                             "lists of 3 integers", "group", "list" */
    const char *fallback; /* the default as it would be written; "": none; NULL: required */
    const char *limits;   /* "0 .. 86400"; "" */
    const char *help;
};
const struct conf_option *conf_options(size_t *count);

#endif
