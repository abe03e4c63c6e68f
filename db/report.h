/*
 * report.h - what people ask the database: read-only, while the daemon runs or not.
 *
 * Everything is answered from the public views (views.sql); JSON is built by SQLite itself.
 * Calls return 0, -ENOENT when the thing asked for is not there, or another negative errno with a
 * reason.
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

/* Queries from now on end by themselves after so many seconds, all of them together; and so no more. */
void report_bound(struct report *report, int seconds);
void report_release(struct report *report);

/* A summary: v_night. */
int report_status(struct report *report, FILE *out, bool json, struct error *error);

/* A row of v_alerts. Texts live until take returns. */
struct report_alert {
    const char *id;     /* "KIND" or "KIND:SUBJECT" */
    int severity;       /* 0: work waits; 1: attention; 2: broken */
    int64_t since_ms;   /* Unix time; 0: unknown */
    int64_t changed_ms; /* when it last occurred or grew; 0: unknown */
    int64_t size;       /* greater is worse */
    const char *text;
};

/* A row of v_acknowledgements: who, when, why, and the alert as it was then. */
struct report_ack {
    const char *id;
    int severity;
    int64_t at_ms, changed_ms, size;
    int64_t until_ms; /* 0: no end */
    const char *by, *reason;
};

/* A negative errno of take ends the loop. */
int report_each_alert(struct report *report,
                      int (*take)(void *context, const struct report_alert *alert), void *context,
                      struct error *error);
int report_each_ack(struct report *report, int (*take)(void *context, const struct report_ack *ack),
                    void *context, struct error *error);

/* How long jobs of a pipeline take here, by v_measured. */
struct report_pace {
    double mean_seconds;
    int64_t lanes; /* on which jobs ran; 0: none of the pipeline was measured */
};

int report_pace(struct report *report, const char *pipeline, struct report_pace *pace,
                struct error *error);
/* How many of its jobs wait and are wanted by then: v_wanted. */
int report_wanted(struct report *report, const char *pipeline, int64_t by_ms, int64_t *jobs,
                  struct error *error);

/* What the database has of a daemon that does not run. */
struct report_life {
    int64_t last_ms; /* the last that it recorded, Unix time; 0: it never ran */
    int64_t jobs_running;
    bool stopped; /* that was its end */
};

int report_last_life(struct report *report, struct report_life *life, struct error *error);

/* Whether jobs are paused, and how many run or wait all the same. */
struct report_pause {
    bool is_paused;
    int64_t jobs_running, jobs_waiting;
};

int report_pause(struct report *report, struct report_pause *pause, struct error *error);

struct report_health {
    bool is_checked;  /* as far as quick_check looks, within the time */
    char damage[512]; /* ""; what is wrong with it */
};

/* Looks at the whole file, for so many seconds at most. */
int report_examine(struct report *report, int seconds, struct report_health *health,
                   struct error *error);
/* Of instances that came within a week; -1: there was no time to count. */
int report_week_bytes(struct report *report, int seconds, int64_t now_ms, int64_t *bytes,
                      struct error *error);
/* The night's figures in one line, "name=value ..." */
int report_figures(struct report *report, FILE *out, struct error *error);

struct report_filter {
    const char *state;       /* NULL: any */
    const char *pipeline;    /* NULL: any */
    const char *series;      /* Series Instance UID; NULL: any */
    const char *destination; /* NULL: any; of deliveries */
    int64_t job;             /* 0: any; of deliveries */
    const char *code;        /* NULL: any; of jobs and series */
    const char *modality;    /* NULL: any, as those that follow; of jobs and series */
    const char *sender;      /* calling AE title of the first C-STORE */
    const char *accession[2],
        *patient[2];    /* as it was typed, and what stands for it (pseudonym.h), or NULL */
    bool current;       /* jobs of their series' revision that none has taken the place of;
                                series whose files are there */
    const char *since;  /* ISO-8601, or how it begins: jobs made or ended, series seen; NULL */
    const char *before; /* likewise, of series: not seen since; NULL */
    int64_t batch;      /* 0: any; of pulls */
    int64_t limit;      /* newest first; 0: 50 */
};

/* Rows of a kind; deliveries of the filter's state, job and destination. */
extern const struct report_list report_jobs, report_series, report_deliveries, report_pulls;

/* Files in quarantine, of the filter's series, code and time. */
extern const struct report_list report_quarantine;

/* Prints all that is known of a quarantined file, a line a column or as JSON. -ENOENT. */
int report_quarantined(struct report *report, int64_t number, FILE *out, bool json,
                       struct error *error);

/* Files in quarantine of no known series, from before the filter's time; keys are paths. */
extern const struct report_list report_stray_files;

/* Files that tell whose a series is, those of its results and of its quarantine; keys are paths. */
extern const struct report_list report_telling_files;

/* The name of state i of such rows; NULL behind the last. */
const char *report_list_state(const struct report_list *list, size_t i);

int report_list(struct report *report, const struct report_list *list,
                const struct report_filter *filter, FILE *out, bool json, struct error *error);

/* Which regions are in a cohort: those of what a pipeline measured. */
struct report_cohort {
    const char *pipeline;
    const char *since;    /* ISO-8601, or how it begins: jobs ended; NULL */
    const char *modality; /* NULL: any */
    bool all_revisions;   /* also of jobs that another one has taken the place of */
};

/*
 * A table of what was measured, as CSV (RFC 4180): a row a region, by job and segment, with what tells
 * it, and a column a feature, empty where there is no value. `dictionary` (may be NULL) gets a row a
 * column: what it is, its unit and its settings. -ENOENT: nothing was measured.
 */
int report_cohort(struct report *report, const struct report_cohort *what, FILE *out,
                  FILE *dictionary, struct error *error);

/*
 * What waits for somebody's word, oldest first: of each job a few lines, with what was expected and
 * found, and where its preview lies below `root`; JSON: v_review. Of the filter: pipeline, series and
 * limit.
 */
int report_review(struct report *report, const struct report_filter *filter, const char *root,
                  FILE *out, bool json, struct error *error);

/* All that the filter chooses, oldest first: job numbers, Series Instance UIDs. Free each and the
 * array. */
int report_keys(struct report *report, const struct report_list *list,
                const struct report_filter *filter, char ***keys, size_t *count,
                struct error *error);

/* A destination of the configuration, which the database does not know until something goes there.
 */
struct report_destination {
    const char *name;
    const char *address; /* "ORTHANC at 127.0.0.1:4242", a folder */
};

/*
 * v_destinations: the configured ones in the order given, then those that are configured no more
 * but have deliveries.
 */
int report_destinations(struct report *report, const struct report_destination *configured,
                        size_t count, FILE *out, bool json, struct error *error);
/* One job: its row, results, deliveries and events. */
int report_job(struct report *report, int64_t job_id, FILE *out, bool json, struct error *error);

/* Another series of the study, settled and not removed. */
struct report_companion {
    char *series_uid, *modality, *body_part, *description;
};

/* A series as it is stored; texts are "" where there is nothing to say. */
struct report_stored {
    int64_t revision;
    int64_t lacking; /* instances that came damaged or not whole, and not again */
    char *state;
    char *evidence;            /* of settling */
    char *code, *message;      /* why it was refused */
    char *called_ae, *sender;  /* of its first C-STORE */
    char *inbox;               /* that it came by */
    char *missing_accepted_by; /* the operator who takes it as it is */
    char *removed_at;          /* when its files were; "": they are there */
    char **paths;              /* of its files, relative to the root folder */
    size_t path_count;
    struct report_companion *companions;
    size_t companion_count;
};

/* -ENOENT when there is no such series. Free with report_stored_clear. */
int report_stored_series(struct report *report, const char *series_uid,
                         struct report_stored *stored, struct error *error);
void report_stored_clear(struct report_stored *stored);

/* What people drew on images, and whose file is not removed. */
struct report_object {
    char *sop_instance_uid, *series_uid; /* its own */
    char *kind, *label, *sender, *path, *received_at;
    char *superseded_by; /* SOP Instance UID of a later version; "" */
    bool own;            /* a result of ours, which is no input */
    bool missing;        /* its file is gone */
    bool in_series;      /* its own series has images, too */
    char *drawn_on;      /* Series Instance UIDs of what is there, a blank between; "" */
};

struct report_object_filter {
    const char *sop_instance_uid; /* NULL: any; as the others */
    const char *drawn_on;         /* a Series Instance UID */
    const char *before;           /* received before this time, as text */
};

/* By their own series, then by time. Free with report_objects_free. */
int report_objects(struct report *report, const struct report_object_filter *filter,
                   struct report_object **objects, size_t *count, struct error *error);
void report_objects_free(struct report_object *objects, size_t count);

#define REPORT_ALL_SEGMENTS (-1)

/*
 * What one job measured, of all segments or one (0: the whole volume), as tables. A job without
 * features is told as such; -ENOENT when it has some, and none of this segment.
 */
int report_features(struct report *report, int64_t job_id, int64_t segment, FILE *out,
                    struct error *error);

/*
 * The same one by one, in the order of the job's features.json, with every bit of the numbers; the
 * texts live until take returns, and its negative errno ends it. Printing what was taken, and
 * finding out whether that went well, is the caller's.
 */
int report_each_feature(struct report *report, int64_t job_id, int64_t segment,
                        int (*take)(void *context, const struct feature *feature), void *context,
                        struct error *error);

#endif
