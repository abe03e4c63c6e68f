/*
 * report.h - queries for people: read-only, with or without a running daemon.
 *
 * All answers come from the public views (views.sql); SQLite builds the JSON. Functions return 0,
 * -ENOENT if there is no such row, or another negative errno with a reason.
 */
#ifndef NOCTULE_DB_REPORT_H
#define NOCTULE_DB_REPORT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct feature;
struct report;
struct report_list;

int report_open(const char *database_path, struct report **report, struct error *error);
void report_close(struct report *report);

/*
 * Limits the total time of all queries from now on to `seconds`; report_release() ends the limit.
 */
void report_bound(struct report *report, int seconds);
void report_release(struct report *report);

/* Prints a summary: v_night. */
int report_status(struct report *report, FILE *out, bool json, struct error *error);

/* A row of v_alerts. Texts are valid until `take` returns. */
struct report_alert {
    const char *id;     /* "KIND" or "KIND:SUBJECT" */
    int severity;       /* 0: jobs wait; 1: attention; 2: broken */
    int64_t since_ms;   /* Unix time; 0: unknown */
    int64_t changed_ms; /* when it last occurred or grew; 0: unknown */
    int64_t size;       /* greater is worse */
    const char *text;
};

/* A row of v_acknowledgements: user, time, reason, and the alert as it was then. */
struct report_ack {
    const char *id;
    int severity;
    int64_t at_ms, changed_ms, size;
    int64_t until_ms; /* 0: no end */
    const char *by, *reason;
};

/* Calls `take` with each row. A negative errno of `take` ends the loop. */
int report_each_alert(struct report *report, int (*take)(void *context, const struct report_alert *alert),
                      void *context, struct error *error);
int report_each_ack(struct report *report, int (*take)(void *context, const struct report_ack *ack), void *context,
                    struct error *error);

/* The mean time of a pipeline's jobs on this system (v_measured). */
struct report_pace {
    double mean_seconds;
    int64_t lanes; /* that ran jobs; 0: no job of the pipeline was measured */
};

int report_pace(struct report *report, const char *pipeline, struct report_pace *pace, struct error *error);
/* Reads the ranges that a pipeline is validated for, as queue_validated(). */
int report_validated(struct report *report, const char *digest, char **ranges, struct error *error);
/* Finds the series of a job. The caller must free it. */
int report_series_of(struct report *report, int64_t job_id, char **series_uid, struct error *error);
/* Counts the waiting jobs with a deadline up to `by_ms` (v_wanted). */
int report_wanted(struct report *report, const char *pipeline, int64_t by_ms, int64_t *jobs, struct error *error);

/* The last traces of a daemon that is not running. */
struct report_life {
    int64_t last_ms; /* Unix time of its last event; 0: it never ran */
    int64_t jobs_running;
    bool stopped; /* the last event was its regular end */
};

int report_last_life(struct report *report, struct report_life *life, struct error *error);

/* Whether jobs are paused, with the number of jobs that still run or wait. */
struct report_pause {
    bool is_paused;
    int64_t jobs_running, jobs_waiting;
};

int report_pause(struct report *report, struct report_pause *pause, struct error *error);

struct report_health {
    bool is_checked;  /* quick_check ran to its end within the time */
    char damage[512]; /* ""; the damage */
};

/* Checks the whole file, for at most `seconds`. */
int report_examine(struct report *report, int seconds, struct report_health *health, struct error *error);
/* Computes the size of all instances received within a week; -1: the time was too short. */
int report_week_bytes(struct report *report, int seconds, int64_t now_ms, int64_t *bytes, struct error *error);
/* Prints the totals of v_night in one line, "name=value ..." */
int report_figures(struct report *report, FILE *out, struct error *error);

struct report_filter {
    const char *state;                     /* NULL: any */
    const char *pipeline;                  /* NULL: any; of programs and their runs: the program */
    const char *series;                    /* Series Instance UID; NULL: any */
    const char *destination;               /* NULL: any; of deliveries */
    int64_t job;                           /* 0: any; of deliveries */
    const char *code;                      /* NULL: any; of jobs and series */
    const char *modality;                  /* NULL: any, as in the following members; of jobs and series */
    const char *sender;                    /* calling AE title of the first C-STORE */
    const char *accession[2], *patient[2]; /* the search text and its pseudonym (pseudonym.h), or NULL */
    /* jobs of their series' newest revision that are not superseded; series with files */
    bool current;
    const char *since;  /* ISO-8601 or its beginning: jobs made or ended, series received; NULL */
    const char *before; /* the same, of series: last received before it; NULL */
    int64_t batch;      /* 0: any; of pulls */
    int64_t limit;      /* newest first; 0: 50 */
};

/* Rows of a kind. Deliveries: by state, job and destination of the filter. */
extern const struct report_list report_jobs, report_series, report_deliveries, report_pulls;

/* Programs of the site as the daemon last checked them, and their runs, newest first. */
extern const struct report_list report_programs, report_program_runs;

/* Validations of pipelines, by pipeline of the filter. */
extern const struct report_list report_validations;

/* Quarantined files, by series, code and time of the filter. */
extern const struct report_list report_quarantine;

/* Prints all columns of a quarantined file, one per line or as JSON. Returns 0 or -ENOENT. */
int report_quarantined(struct report *report, int64_t number, FILE *out, bool json, struct error *error);

/* Quarantined files of no known series, older than the filter's time; keys are paths. */
extern const struct report_list report_stray_files;

/* Files that identify a series, its results or its quarantine; keys are paths. */
extern const struct report_list report_telling_files;

/* Returns the name of state i of such rows; NULL after the last. */
const char *report_list_state(const struct report_list *list, size_t i);

int report_list(struct report *report, const struct report_list *list, const struct report_filter *filter, FILE *out,
                bool json, struct error *error);

/* Selects the regions of a cohort: those that a pipeline measured. */
struct report_cohort {
    const char *pipeline;
    const char *since;    /* ISO-8601 or its beginning: jobs ended; NULL */
    const char *modality; /* NULL: any */
    bool all_revisions;   /* also of superseded jobs */
};

/* Tables of a cohort as CSV (RFC 4180); each may be NULL. Without `table`, dictionary and reasons stay empty. */
struct report_cohort_out {
    FILE *table;      /* one row per region, by job and segment, and one column per feature */
    FILE *dictionary; /* one row per column of the table: meaning, unit, settings */
    FILE *reasons;    /* one row per empty cell of a feature: code, message */
    FILE *failed;     /* one row per job or series without a region: state, code, message */
};

/* Counts of a cohort. Where no Patient ID is stored, a study counts as a patient. */
struct report_cohort_counts {
    int64_t jobs, patients;         /* in the table */
    int64_t hashed, plain, unnamed; /* those jobs, by the form of their Patient ID */
    int64_t failed;                 /* rows of `failed` */
    int64_t missing;                /* their patients that are not in the table */
    char states[160];               /* of `failed`: "2 FAILED, 1 REFUSED" */
};

/*
 * Prints a cohort and counts it, also without streams. Returns -ENOENT if there are no features, or
 * without a table, no job; `failed` and the counts are complete then, too.
 */
int report_cohort(struct report *report, const struct report_cohort *what, const struct report_cohort_out *out,
                  struct report_cohort_counts *counts, struct error *error);

/*
 * Prints the jobs under review, oldest first: a few lines per job with expectation, found value and
 * the path of its preview below `root`. JSON: v_review. Uses pipeline, series and limit of the
 * filter.
 */
int report_review(struct report *report, const struct report_filter *filter, const char *root, FILE *out, bool json,
                  struct error *error);

/*
 * Reads the keys of all selected rows, oldest first: job numbers, Series Instance UIDs. Free each
 * and the array.
 */
int report_keys(struct report *report, const struct report_list *list, const struct report_filter *filter, char ***keys,
                size_t *count, struct error *error);

/* An identifier that de-identified copies replace. */
struct report_identifier {
    const char *kind;  /* "patient", "study", "series", "instance", "result", "series of results" */
    const char *value; /* of a patient as the option `identifiers` stores it; "": not stored */
    const char *series_uid, *study_uid;
    const char *path; /* of a file of it; "": none is stored */
};

/* Calls `take` for each. A negative result ends the calls and is returned. */
int report_each_identifier(struct report *report,
                           int (*take)(void *context, const struct report_identifier *identifier), void *context,
                           struct error *error);

/* A destination of the configuration. The database knows it only after its first delivery. */
struct report_destination {
    const char *name;
    const char *address; /* "ORTHANC at 127.0.0.1:4242", a folder */
};

/*
 * Prints v_destinations: the configured ones in the given order, then those that are no longer
 * configured but have deliveries.
 */
int report_destinations(struct report *report, const struct report_destination *configured, size_t count, FILE *out,
                        bool json, struct error *error);
/* Prints one job: its row, results, deliveries and events. */
int report_job(struct report *report, int64_t job_id, FILE *out, bool json, struct error *error);

/* Another series of the study, inspected and not removed. */
struct report_companion {
    char *series_uid, *modality, *body_part, *description;
};

/* A stored series; absent texts are "". */
struct report_stored {
    int64_t revision;
    int64_t lacking; /* instances that arrived damaged or incomplete, and no good copy since */
    char *state;
    char *evidence;            /* of its inspection */
    char *code, *message;      /* reason for refusing it */
    char *called_ae, *sender;  /* of its first C-STORE */
    char *inbox;               /* inbox that it came from */
    char *missing_accepted_by; /* operator who accepted its missing instances */
    char *removed_at;          /* time at which its files were removed; "": they exist */
    char **paths;              /* of its files, relative to the root folder */
    size_t path_count;
    struct report_companion *companions;
    size_t companion_count;
};

/* Returns -ENOENT if there is no such series. Free with report_stored_clear(). */
int report_stored_series(struct report *report, const char *series_uid, struct report_stored *stored,
                         struct error *error);
void report_stored_clear(struct report_stored *stored);

/* An annotation object whose file is not removed. */
struct report_object {
    char *sop_instance_uid, *series_uid; /* of the object */
    char *kind, *label, *sender, *path, *received_at;
    char *superseded_by; /* SOP Instance UID of a later version; "" */
    bool own;            /* a result of Noctule, which is not input */
    bool missing;        /* its file is missing */
    bool in_series;      /* its own series has images, too */
    /* Series Instance UIDs of the stored series that it refers to, separated by blanks; "" */
    char *drawn_on;
};

struct report_object_filter {
    const char *sop_instance_uid; /* NULL: any, as in the other members */
    const char *drawn_on;         /* a Series Instance UID */
    const char *before;           /* received before this time, as text */
};

/* Reads annotation objects by their own series, then by time. Free with report_objects_free(). */
int report_objects(struct report *report, const struct report_object_filter *filter, struct report_object **objects,
                   size_t *count, struct error *error);
void report_objects_free(struct report_object *objects, size_t count);

#define REPORT_ALL_SEGMENTS (-1)

/*
 * Prints the features of one job as tables, of all segments or one (0: the whole volume). Reports a
 * job without features; returns -ENOENT if it has features, but none of this segment.
 */
int report_features(struct report *report, int64_t job_id, int64_t segment, FILE *out, struct error *error);

/*
 * Calls `take` with each feature in the order of the job's features.json, with every bit of its
 * number. Texts are valid until `take` returns; a negative errno of it ends the loop. The caller
 * must print, and check its own output.
 */
int report_each_feature(struct report *report, int64_t job_id, int64_t segment,
                        int (*take)(void *context, const struct feature *feature), void *context, struct error *error);

/* Reads a JSON object of texts and whole numbers. *members has the name and the value of each member, with a NUL behind
 * each text; *size: of all. Returns -EINVAL for any other text. The caller must free *members, also after an error. */
int report_json_texts(struct report *report, const char *json, char **members, size_t *size, struct error *error);

#endif
