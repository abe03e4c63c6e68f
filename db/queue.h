/*
 * queue.h - the queue: instances, series, stacks, jobs, results, deliveries and events in SQLite.
 *
 * The daemon is the only writer; any process may read the views of views.sql meanwhile. Each change
 * of state is a guarded UPDATE and an event row in one transaction. transaction.c and
 * delivery_rows.c have the state diagrams at their heads.
 *
 * Times are Unix milliseconds (UTC) given by the caller, stored as ISO-8601 text. Unless stated
 * otherwise, functions return 0 or a negative errno: -EAGAIN if the row is not in the expected
 * state, -ENOENT if it does not exist, -ENOSPC, -EIO or -EBUSY from SQLite. queue_reason() returns
 * the reason as text. Texts are UTF-8 (other bytes are replaced); NULL is "".
 *
 * One thread per queue. Free strings of returned structs with the matching _free() or _clear().
 */
#ifndef NOCTULE_DB_QUEUE_H
#define NOCTULE_DB_QUEUE_H

#include "base/error.h"
#include "base/feature.h"
#include "base/series_about.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

/* Ids of rows; the caller must free `at`. */
struct queue_ids {
    int64_t *at;
    size_t count;
};

/*
 * Opens or creates the database and migrates it to this version. Returns -EPROTONOSUPPORT for a
 * database of a later version, -EREMOTE on a network file system.
 */
int queue_open(const char *path, struct queue **queue, struct error *error);
void queue_close(struct queue *queue);
/* Returns whether the file is a database without tables, as queue_open() creates it. Changes no data. */
bool queue_is_empty(const char *path);
/*
 * Opens the database again for writing, after a read-only file system or after SQLite found damage
 * (-EUCLEAN; a failed read is enough for that). Returns -EROFS if it still cannot be written; after
 * any other error the queue can only be closed. No transaction may be open.
 */
int queue_open_for_writing(struct queue *queue, const char *path);
const char *queue_reason(const struct queue *queue);

/*
 * Group commit: all calls between begin and commit join one durable transaction. A call outside is
 * a transaction of its own.
 *
 * After a failed call the transaction can still be used (each call is a savepoint), unless SQLite rolled everything
 * back (full disk, I/O error). Then all further calls fail, and so does queue_commit(). queue_commit() returns 0 only
 * when everything is on disk; otherwise it rolls everything back.
 */
int queue_begin(struct queue *queue);
int queue_commit(struct queue *queue);
void queue_rollback(struct queue *queue);

/* ------------------------------------------------------------------ instances and series ---- */

/* The source of a file that has no row and was found in its place at start. */
#define QUEUE_SOURCE_RECOVERED "recovered"

struct queue_instance {
    const char *sop_instance_uid, *sop_class_uid, *transfer_syntax_uid;
    const char *series_uid, *study_uid;
    const char *modality, *body_part, *series_description;
    const struct series_about *about; /* in the form to store; NULL: not known */
    const char *frame_of_reference;   /* its UID; "" */
    const char *path;                 /* relative to the root: series/<Series UID>/<SOP UID>[+N].dcm */
    const char *sha256;               /* of the file at the path; "": not known */
    const char *source;               /* "inbox:<path>", "scu:<AE title>", QUEUE_SOURCE_RECOVERED */
    /*
     * absolute path of a file that its inbox keeps and that is removed with its series; NULL: it
     * stays, or does not exist
     */
    const char *original_path;
    const char *called_ae; /* AE title that it was sent to; "": not by C-STORE */
    const char *sender;    /* AE title of its sender; "": not by C-STORE */
    int64_t size;
    int32_t frames;
    int32_t expected_instances; /* of the series; 0 when unknown */
    int32_t replaced;           /* number of replacements: the file of a higher number replaces the others */

    struct queue_kept {
        int64_t file, look; /* digests; 0: no original stays, or it was changed */
    } kept;
};

enum queue_arrival {
    QUEUE_NEW, /* a row was added; the series is being received (again: a new revision) */
    /* the same instance of the same series exists: no change; an event if its source is not the first one */
    QUEUE_KNOWN,
    /*
     * the same instance exists, but its file was missing; a series that was refused or has a failed
     * job is being received again: a new revision
     */
    QUEUE_RETURNED,
    /* the same instance with another data set, in another file; the series is being received again: a new revision */
    QUEUE_REPLACED,
};

int queue_add_instance(struct queue *queue, const struct queue_instance *instance, int64_t now_ms,
                       enum queue_arrival *arrival, int64_t *series_id);

/*
 * Reads the kept originals of `source`, by `file`, after `after` (INT64_MIN: from the first); the
 * caller must free the array. Includes removed instances, not missing ones. with_original: of
 * instances that are not removed, only those with a known path.
 */
int queue_kept(struct queue *queue, const char *source, bool with_original, int64_t after, size_t limit,
               struct queue_kept **kept, size_t *count);
/* Deletes the row of an original that is no longer there. */
int queue_forget_kept(struct queue *queue, const char *source, int64_t file);

/*
 * An annotation object (RTSTRUCT, SEG or SR). It is stored like an image, but a series of annotation objects has no
 * jobs. `references` are lines "series UID", "instance UID" or "frame UID", and "predecessor UID", as in
 * dicom/read/annotation/object_peek.h.
 *
 * A later version replaces earlier ones (superseded_by): those of one kind and label, of the same
 * series or from the same sender, with the same references; or those that it names as its
 * predecessors. Results of Noctule are marked as such and are not input.
 */
struct queue_object {
    const char *sop_instance_uid, *sop_class_uid, *transfer_syntax_uid;
    const char *series_uid, *study_uid; /* its own */
    const char *kind;                   /* "rtstruct", "seg", "sr" */
    const char *label, *description, *made;
    const char *person;                                 /* its creator; "": not known */
    const char *path, *source, *original_path, *sender; /* as in queue_instance */
    const char *references;
    int64_t size;
    int32_t replaced;
    struct queue_kept kept;
};

int queue_add_object(struct queue *queue, const struct queue_object *object, int64_t now_ms,
                     enum queue_arrival *arrival, int64_t *object_id);

/*
 * Annotation objects that are input for the jobs of a series: of this series, current, not results
 * of Noctule, with their files. By path; free the array after clearing its elements.
 */
struct queue_input {
    char *path, *kind, *sender;
};

int queue_series_inputs(struct queue *queue, int64_t series_id, struct queue_input **inputs, size_t *count);
void queue_input_clear(struct queue_input *input);
/*
 * Returns 1 if an annotation object may be input (current, not a result of Noctule, not removed), 0 if not, or -errno.
 */
int queue_object_is_input(struct queue *queue, int64_t object_id);
/* Reads the series that it refers to. */
int queue_object_series(struct queue *queue, int64_t object_id, struct queue_ids *series);
/*
 * Notes that the input of a series' jobs changed: SETTLED -> GATHERING, a new revision. Returns 1
 * without a change if the series is still being received, or is removed.
 */
int queue_revise_series(struct queue *queue, int64_t series_id, const char *why, int64_t now_ms);

/* A file that could not be accepted. */
struct queue_quarantine {
    const char *path; /* in quarantine/; "": it could not be kept, or never arrived whole */
    const char *original_path;
    const char *series_uid, *sop_instance_uid; /* "": not readable */
    const char *called_ae; /* AE title that it was sent to; "" or NULL: from an inbox, or not known */
    enum code code;
    const char *message;
    int64_t released; /* id of the row that it was released from; 0: unset */
};

/*
 * Adds a row. With DUPLICATE_UID_DIFFERENT the series is flagged (duplicate_conflicts). With a code
 * of damage, the series lacks the instance until a good file of it arrives; a SETTLED series is
 * received again: a new revision. A repeated call changes no data.
 */
int queue_add_quarantine(struct queue *queue, const struct queue_quarantine *file, int64_t now_ms);

/* Returns 1 if a row names this file in quarantine/, 0 if not, or -errno. */
int queue_has_quarantine(struct queue *queue, const char *path);

/* A quarantined file, for its release. */
struct queue_released {
    char *path, *original_path, *called_ae, *code;
    bool removed;
};

/* Returns 0, or -ENOENT if there is no such row. Free it with queue_released_clear(). */
int queue_find_released(struct queue *queue, int64_t id, struct queue_released *released);
void queue_released_clear(struct queue_released *released);

/*
 * Marks the file as removed, since a link in released/ holds it. Returns -ENOENT, or -EINVAL if its
 * file is missing. `by` NULL: the link was received before its release was on disk.
 */
int queue_release_quarantine(struct queue *queue, int64_t id, const char *by, int64_t now_ms);

/*
 * Deletes the row and marks its file for removal. Returns -ENOENT, or -EPERM if its series lacks
 * the instance: forgetting it would make the series look complete.
 */
int queue_forget_quarantine(struct queue *queue, int64_t id, const char *by, int64_t now_ms);

/*
 * Adds a row for a quarantined file without one, from its reason file: JSON with code, message, original_path,
 * series_uid and sop_instance_uid. Without a valid reason or code, the code is FILE_UNREADABLE.
 */
int queue_adopt_quarantine(struct queue *queue, const char *path, const char *reason, int64_t now_ms);

/* The first of the quarantined instances that a series lacks. */
struct queue_lacking {
    int64_t count; /* number of all; 0: unset, and no first one */
    int64_t id;
    char *path, *sop_instance_uid, *code, *message;
};

int queue_find_lacking(struct queue *queue, const char *series_uid, struct queue_lacking *lacking);
void queue_lacking_clear(struct queue_lacking *lacking);

struct queue_series {
    int64_t id;
    int32_t revision;
    char *state; /* "GATHERING", "SETTLED", "REFUSED" */
    char *series_uid, *modality, *body_part, *description;
    char *called_ae, *sender; /* of its first C-STORE; "": no instance came by C-STORE */
    char *inbox;              /* folder of its first file from an inbox; "": an instance came by C-STORE */
    int32_t instances, frames, expected_instances;
    int32_t missing_files; /* of the instances */
    bool removed;          /* all of them, by retention or by an operator */
    int64_t first_seen_ms, last_seen_ms;
    bool complete_requested;   /* requested by an operator; valid until the series is complete */
    char *missing_accepted_by; /* operator who accepted the missing instances of this revision; "" */
};

void queue_series_clear(struct queue_series *series);

/* Reads all series in GATHERING, oldest last_seen first; free the array after clearing its elements. */
int queue_gathering(struct queue *queue, struct queue_series **series, size_t *count);
int queue_get_series(struct queue *queue, int64_t series_id, struct queue_series *series);
int queue_find_series(struct queue *queue, const char *series_uid, int64_t *series_id);
/* Computes the size of all its files. */
int queue_series_bytes(struct queue *queue, int64_t series_id, int64_t *bytes);

/* A file of an instance. */
struct queue_file {
    char *path;   /* absolute or relative to the root */
    char *sha256; /* as it was received; "": not known */
};

/* Reads the files of a series, by path; free the array after clearing its elements. */
int queue_series_files(struct queue *queue, int64_t series_id, struct queue_file **files, size_t *count);
void queue_file_clear(struct queue_file *file);

/* A stack of an inspected series. */
struct queue_stored_stack {
    char *name;
    bool accepted;
    int32_t planes;
    char *code, *message; /* of the refusal; "" when accepted */
    char *options;        /* pipelines that it belongs to */
};

/*
 * Reads the stacks of the current revision; none while the series is being received. Free the array
 * after clearing its elements.
 */
int queue_series_stacks(struct queue *queue, int64_t series_id, struct queue_stored_stack **stacks, size_t *count);
void queue_stored_stack_clear(struct queue_stored_stack *stack);

struct queue_stack {
    const char *name; /* "" if it is the only one */
    bool accepted;
    int32_t planes, columns, rows;
    double spacing_mm;       /* between planes */
    double pixel_mm[2];      /* between columns and between rows; 0: not known */
    const char *orientation; /* "axial", "coronal", "sagittal", "oblique"; "": not known */
    const char *cosines;     /* as Image Orientation (Patient): "1\\0\\0\\0\\1\\0"; "" */
    enum code code;
    const char *message, *file_a, *file_b; /* of the refusal; "" when accepted */
    const char *split_by;                  /* attributes that distinguish it, for people; "" */
    bool passed_over;                      /* refused for its type, which is not an error of the sender */
    int32_t times, times_announced;        /* temporal positions of its series; 0: not announced */
    const char *options;                   /* pipelines that it belongs to, for people; "" */
};

/*
 * GATHERING -> SETTLED (at least one stack accepted) or REFUSED, with the evidence as text and the
 * stacks. Returns -EAGAIN if the series is not being received, or has another revision than the
 * given one.
 *
 * Slices that arrive meanwhile do not change the revision. A caller that reads the files outside a
 * transaction must compare queue_series.instances before this call.
 */
int queue_settle(struct queue *queue, int64_t series_id, int32_t revision, const char *evidence,
                 const struct queue_stack *stacks, size_t stack_count, int64_t now_ms);
/*
 * Stores a code for the whole series, which v_series shows, and an event. Returns -EAGAIN while the
 * series is being received.
 */
int queue_flag_series(struct queue *queue, int64_t series_id, enum code code, const char *message, int64_t now_ms);

/* An operator's request to process a series as it is. */
struct queue_complete {
    const char *series_uid;
    bool accept_missing; /* also if instances are missing */
    const char *by;      /* name of the operator; "": not known */
};

/*
 * Marks a series that is being received as complete. A refused or flagged series is received again (a new revision) if
 * its inspection may end differently, for INCOMPLETE_SERIES only with accept_missing. Otherwise returns -EAGAIN.
 */
int queue_request_complete(struct queue *queue, const struct queue_complete *complete, int64_t now_ms);

/* ---------------------------------------------------------------------------------- jobs ---- */

enum queue_job_state {
    QUEUE_READY,
    QUEUE_RUNNING,
    QUEUE_DONE,
    QUEUE_EMPTY,
    QUEUE_REVIEW,   /* its result breaks an expectation: a person must accept or reject it */
    QUEUE_REJECTED, /* a person rejected it, or another job replaced it */
    QUEUE_DELAYED,
    QUEUE_FAILED,
    QUEUE_CANCELLED,
};

const char *queue_job_state_name(enum queue_job_state state);

struct queue_job {
    int64_t id;
    int64_t series_id;
    int32_t revision;
    char *series_uid;
    char *stack;    /* name of the stack */
    char *pipeline; /* name */
    char *settings; /* the resolved pipeline as text */
    int32_t priority;
    int32_t attempts;
    enum queue_job_state state;
    int64_t not_before_ms; /* of a DELAYED job */
    int64_t done_by_ms;    /* time by which its result is wanted; 0: unset */
    bool alone;            /* it crashed a worker before: it must run alone */
    bool awaits;           /* DELAYED until an annotation object, a series of the study or a mask arrives */
    bool awaits_study;     /* until a series arrives */
    bool awaits_program;   /* until a program has run */
    char *failed_on;       /* worker of its last attempt if that failed, else "" */
    int64_t corrects;      /* job whose masks a person corrected, or 0 */
    char *correction;      /* path of the object with these masks; "" */
};

void queue_job_clear(struct queue_job *job);

struct queue_new_job {
    int64_t series_id;
    int32_t revision;
    const char *stack, *pipeline, *settings;
    int32_t priority;
    bool again;         /* even if a job with these settings has ended */
    const char *asked;  /* the user who requested it, for its event; NULL: the rules */
    bool dry_run;       /* changes no data: looks for an existing job; job 0: unset */
    int64_t done_by_ms; /* time by which its result is wanted; 0: unset */
    /*
     * Missing input as text. The job is DELAYED with this code until queue_job_lacks() clears it,
     * or until `not_before_ms`, when it is FAILED: OBJECT_WAITING (OBJECT_MISSING), STUDY_WAITING
     * (STUDY_INCOMPLETE). With OBJECT_OPTIONAL it is READY. PROGRAM_WAITING has no limit. NULL: complete.
     */
    const char *lacks;
    enum code lacks_code;
    int64_t until_ms;
    const char *rule; /* rule that created it; NULL: unset, or that of `retry_of` */
    int64_t retry_of; /* job that is run again; 0: unset */
    /* Job whose masks a person corrected, and the object with these masks; 0: unset. Such a job ends under review. */
    int64_t corrects, correction;
};

/*
 * Makes a READY job for (series, revision, stack, pipeline).
 *
 * READY, DELAYED and RUNNING jobs of the same stack and pipeline, of this revision and older ones, become CANCELLED
 * with code SUPERSEDED. Returns the ids of those that ran: the caller must stop them. Sets superseded_by of jobs of
 * older revisions and of jobs without a result. Jobs of this revision that ended well are superseded when the new job
 * has ended well.
 *
 * Returns -EEXIST with the id if a job with these settings waits, runs or has ended (unless `again`). Returns -EAGAIN
 * if the series is not SETTLED at this revision or did not accept this stack.
 */
int queue_add_job(struct queue *queue, const struct queue_new_job *job, int64_t now_ms, int64_t *job_id,
                  struct queue_ids *superseded_running);

/*
 * Reads at most `limit` READY jobs in the order in which they must start: by deadline if that is in the future, then by
 * priority, then by id. A larger priority is first, and ageing_ms of age add one to it (0: no ageing). Free the array
 * after clearing its elements.
 *
 * DELAYED jobs that are due become READY first. Held jobs and those outside their window are left out. So are jobs of
 * an older revision of their series: they wait while it is being received, and become CANCELLED (SUPERSEDED) when it is
 * complete again. `except`: names of pipelines to leave out, each between line breaks ("\na\nb\n"); "".
 */
int queue_ready(struct queue *queue, int64_t now_ms, int64_t ageing_ms, size_t limit, const char *except,
                struct queue_job **jobs, size_t *count);

/* When jobs of a pipeline may start. The daemon computes it: SQL has no calendar. */
struct queue_window {
    const char *pipeline, *text; /* as configured */
    bool is_open;
    int64_t opens_ms;  /* next opening; 0: open now, or never opens */
    int64_t closes_ms; /* end of the present or next opening; 0: never closes */
    double open_share; /* share of the coming time, 0 .. 1 */
};

/* Replaces all windows. They stay over restarts. Makes an event for each that opens or closes. */
int queue_set_windows(struct queue *queue, const struct queue_window *windows, size_t count, int64_t now_ms);
/*
 * Reads the jobs of the newest revision of a series that are not superseded, by id; free the array
 * after clearing its elements.
 */
int queue_series_jobs(struct queue *queue, int64_t series_id, struct queue_job **jobs, size_t *count);
/*
 * Updates the missing input of a waiting job, as in queue_new_job; NULL: complete, DELAYED ->
 * READY. Returns -EAGAIN if the job does not wait for that.
 */
int queue_job_lacks(struct queue *queue, int64_t job_id, enum code code, const char *lacks, int64_t now_ms);

/* A series of a study: inspected, accepted at least in part, with its files. */
struct queue_companion {
    int64_t id;
    char *modality, *body_part, *description;
};

void queue_companion_clear(struct queue_companion *companion);
/* Reads the other series of the study; free the array after clearing its elements. */
int queue_companions(struct queue *queue, int64_t series_id, struct queue_companion **companions, size_t *count);
/* Reads the jobs of other series of the study that wait for this series; free jobs->at. */
int queue_study_waiting(struct queue *queue, int64_t series_id, struct queue_ids *jobs);
int queue_next_due(struct queue *queue, int64_t *due_ms); /* earliest DELAYED job; -ENOENT: no such job */
int queue_get_job(struct queue *queue, int64_t job_id, struct queue_job *job);

/*
 * Lists the objects that the results of a job replace, as job_file.h describes `earlier`: per file name, the object of
 * the latest older job of the same series, stack and pipeline that is DONE. Free the strings and the array.
 */
int queue_earlier_results(struct queue *queue, int64_t job_id, char ***earlier, size_t *count);

/*
 * The result of the same pipeline in the latest earlier study of the patient. A series with the same description is
 * preferred. Has the job, the days between the studies, whether the same programs made the masks, the study date
 * (YYYYMMDD), and the settings of the pipeline.
 */
struct queue_prior {
    int64_t job; /* 0: there is none */
    int32_t days;
    bool same_programs;
    char *study_date, *settings;
};

/* A value of a segment: "volume", or a quantity (base/quantities.def). */
struct queue_prior_value {
    char *label, *name, *unit;
    double value;
};

/* A segment of an earlier study of the patient that has a Tracking UID, by any pipeline. */
struct queue_tracked {
    char *uid, *label;
    struct queue_prior prior;
};

/* Lists at most QUEUE_TRACKED_MAX of them, the latest study first. */
enum { QUEUE_TRACKED_MAX = 500 };

int queue_tracked_segments(struct queue *queue, int64_t job_id, struct queue_tracked **segments, size_t *count);
void queue_free_tracked(struct queue_tracked *segments, size_t count);

/* Finds the earlier result, and notes it with the job. `missed`: notes that there is none. Clear it after use. */
int queue_find_prior(struct queue *queue, int64_t job_id, bool missed, struct queue_prior *prior);
void queue_prior_clear(struct queue_prior *prior);
/* Lists the values of a job. */
int queue_prior_values(struct queue *queue, int64_t job_id, struct queue_prior_value **values, size_t *count);
void queue_free_prior_values(struct queue_prior_value *values, size_t count);

/*
 * Earlier studies from an archive (db/queue/prior_rows.c). A job has at most one item of v_pulls (key prior); while that is
 * open, or while a series or job of its study is, the job waits: DELAYED with PRIOR_WAITING.
 *
 * Adds the item, unless the job has one, its patient or study date is unknown, or its own study arrived as the earlier study
 * of another job: an archive must not be queried for a chain of studies.
 */
int queue_order_prior(struct queue *queue, int64_t job_id, const char *source, int64_t now_ms);

enum queue_prior_state {
    QUEUE_PRIOR_READY,   /* no item; the archive has no such study; or it is here and no job of it is open */
    QUEUE_PRIOR_AWAITED, /* READY -> DELAYED */
    QUEUE_PRIOR_MISSED,  /* the item failed, or the wait has ended */
};

/* Decides on a READY job that could start. The wait ends `wait_ms` after the first call that made it wait. */
int queue_await_prior(struct queue *queue, int64_t job_id, int64_t wait_ms, int64_t now_ms,
                      enum queue_prior_state *state);
/* Lists jobs that waited and can start before the limit of their wait; free jobs->at. */
int queue_priors_ready(struct queue *queue, struct queue_ids *jobs);
/* DELAYED -> READY of these. */
int queue_resume_priors(struct queue *queue, const struct queue_ids *jobs, int64_t now_ms);
/* Finds a file of the series for which an item wants the earlier study. Returns 1 if no job waits for the item. */
int queue_prior_file(struct queue *queue, int64_t pull_id, char **path);

/*
 * READY -> RUNNING, attempts + 1, with worker and lane. Commit before the worker gets the job. A
 * lane of a worker runs one job at a time (-EBUSY). Returns -EAGAIN also if a late slice has
 * arrived meanwhile.
 */
int queue_start_job(struct queue *queue, int64_t job_id, const char *worker, int32_t lane, int64_t now_ms);

/* Where an attempt runs. */
struct queue_lane {
    const char *worker;
    int32_t lane;
    const char *executor; /* "local", "slurm" */
    const char *nonce;    /* "" on this machine */
};

/*
 * queue_start_job() for any place. An attempt on another machine is RUNNING ("SUBMITTING" in
 * v_jobs) before the machine gets it, until its result is recorded, over restarts of the daemon.
 */
int queue_start_at(struct queue *queue, int64_t job_id, const struct queue_lane *place, int64_t now_ms);

/* Stores the stage of a RUNNING job; has no effect on others. */
int queue_set_stage(struct queue *queue, int64_t job_id, const char *stage, int64_t since_ms);

/* An attempt on another machine, of a RUNNING job. */
struct queue_elsewhere {
    int64_t job_id;
    int32_t attempts, lane;
    bool alone;
    int64_t slurm_id; /* 0: not known whether Slurm has it */
    int64_t submitted_ms;
    char *nonce, *node, *reason, *pipeline;
};

/* Reads all attempts on other machines, by id; free the array after clearing its elements. */
int queue_elsewhere(struct queue *queue, struct queue_elsewhere **attempts, size_t *count);
void queue_elsewhere_clear(struct queue_elsewhere *attempt);
/* Notes that Slurm has the job. Returns -EAGAIN if it is not RUNNING with that nonce. */
int queue_submitted(struct queue *queue, int64_t job_id, const char *nonce, int64_t slurm_id, int64_t now_ms);
/* Stores the node ("": none yet) and Slurm's reason for waiting; -EAGAIN as above. Makes no event. */
int queue_placed(struct queue *queue, int64_t job_id, const char *nonce, const char *node, const char *reason);
/* Computes the mean total_seconds of the last jobs of the pipeline that ended well; 0: there are none. */
int queue_mean_seconds(struct queue *queue, const char *pipeline, double *seconds);

#define QUEUE_CODES 256

/* The number of voxels per code of a local pattern. */
struct queue_histogram {
    int32_t segment;
    const char *label, *pattern, *settings;
    const int64_t *counts; /* QUEUE_CODES of them */
};

/* The images that a job measured: distances between voxels in mm, columns first, and the protocol. */
struct queue_voxels {
    double spacing[3];        /* of the volume that the job computed on */
    double source_spacing[2]; /* of the source files */
    double source_steps[2];   /* smallest and largest distance between two slices of the source files */
    /* reason for straightening the stack; "": not straightened; NULL: not known */
    const char *straightened;
    const char *kernel;  /* of all slices; "": none, or several; NULL: not known */
    double kvp;          /* of all slices; 0: none, several, or not known */
    double thickness[2]; /* mm, smallest and largest; 0: a slice has none, or not known */
    /* of a 2-D image: its values, Pixel Intensity Relationship, and source of the spacing; "": a volume; NULL: not known */
    const char *pixel_values, *pixel_intensity, *spacing_source;
};

/* A segment of a job, except hidden ones. NAN: not known. */
struct queue_segment {
    int32_t number; /* Segment Number */
    const char *label, *method;
    const char *unit; /* UCUM unit of the values; "1": not known */
    int64_t voxels;
    double millilitres; /* NAN: of a 2-D image */
    double mean, minimum, maximum;
    int64_t first[3], last[3]; /* the box: column, row, slice, from 0; last < first: no voxel */
    double centroid[3];        /* mm, patient coordinates (LPS) */
    const char *tracking_uid;  /* of an annotation object; "" or NULL: unset */
    int64_t prior;             /* the job that it was compared with by it; 0: unset */
};

/* A broken expectation. */
struct queue_breach {
    int32_t segment; /* Segment Number; 0: a hidden segment */
    const char *label, *expectation;
    double found, allowed[2]; /* NAN: unset */
    const char *text;
};

/* Measurements of a worker. Negative numbers: not measured. */
struct queue_figures {
    double read_seconds, compute_seconds, write_seconds, verify_seconds, total_seconds;
    int64_t voxels; /* of the volume */
    int64_t segmented_voxels;
    int64_t peak_bytes;             /* resident, of the worker */
    const char *backend;            /* "cpu" ... */
    const char *note;               /* deviations from the usual way to run it; "" */
    struct queue_voxels voxel;      /* of a job that ended */
    const struct feature *features; /* "" may be NULL; no two with the same segment and settings */
    size_t feature_count;
    const struct queue_histogram *histograms;
    size_t histogram_count;
    const struct queue_segment *segments; /* no two with the same number */
    size_t segment_count;
    const struct queue_breach *breaches; /* in the order of the pipeline */
    size_t breach_count;
};

struct queue_result {
    const char *kind;                                          /* "seg", "codes" */
    const char *path;                                          /* relative to the root */
    const char *sop_class_uid, *sop_instance_uid, *series_uid; /* "" for files that are not DICOM */
    const char *replaces; /* SOP Instance UID of the object that it replaces; "": unset */
    int64_t size;
    int64_t frames;
    const char *const *destinations; /* names: each makes a PENDING delivery; duplicates count once */
    /* the kinds that each takes, between blanks: " seg sr "; "": all DICOM objects; NULL: all "" */
    const char *const *takes;
    size_t destination_count;
};

/* A successful end of a job. */
struct queue_finish {
    enum queue_job_state state; /* DONE with results, EMPTY without, or REVIEW with or without */
    const struct queue_figures *figures;
    const struct queue_result *results;
    size_t result_count;
    enum code code;
    const char *message; /* may be "" */
};

/*
 * RUNNING -> DONE with its results and their deliveries, or EMPTY, or REVIEW; always with its
 * features. A job under review is not delivered (-EINVAL if its results name destinations) and
 * supersedes no job until it is accepted.
 *
 * Returns -EEXIST if two results have the same path, or two features or histograms of a segment the
 * same settings. Otherwise earlier jobs of the same series, stack and pipeline are superseded.
 * Their unsent deliveries are withdrawn: PENDING | DELAYED -> CANCELLED with code SUPERSEDED, or
 * RETRIED within the same revision.
 */
int queue_finish_job(struct queue *queue, int64_t job_id, const struct queue_finish *finish, int64_t now_ms);

/*
 * A person's decision on a result under review. Accept: REVIEW -> DONE with the deliveries of its
 * results (struct queue_result), or EMPTY without results; earlier jobs are superseded now. Returns -ESTALE if the
 * series has a newer revision. Reject: REVIEW -> REJECTED; no delivery is made, and the files stay
 * as long as the images.
 */
int queue_accept_job(struct queue *queue, int64_t job_id, const char *const *destinations, const char *const *takes,
                     size_t destination_count, const char *by, int64_t now_ms);
int queue_reject_job(struct queue *queue, int64_t job_id, const char *reason, const char *by, int64_t now_ms);

/* A person's decision, as it is audited. */
struct queue_audit {
    const char *action, *subject; /* "hold", "destination PACS" */
    int64_t job_id;               /* 0: not on a job */
    const char *reason;
    const char *actor, *how, *role, *address; /* columns of the table audit */
    const char *seen;                         /* v_review.version that was shown; "": not known */
};

/* Must be in one transaction with the decision. */
int queue_add_audit(struct queue *queue, const struct queue_audit *audit, int64_t now_ms);
/* Adds the row of a look at a job, unless this hour has one of the person, or the job is absent. */
int queue_add_look(struct queue *queue, const struct queue_audit *audit, int64_t now_ms);

/* A corrected mask that a person uploaded, until its file is stored. */
struct queue_upload {
    int64_t job_id;
    char *person;
};

/* name: of the file in released/. */
int queue_add_upload(struct queue *queue, const char *name, int64_t job_id, const char *person,
                     const char *sop_instance_uid, int64_t now_ms);
/* By the name, or by the SOP Instance UID ("": neither). Returns -ENOENT if there is none. The caller must call
 * queue_upload_clear(). */
int queue_find_upload(struct queue *queue, const char *name, const char *sop_instance_uid, struct queue_upload *upload);
void queue_upload_clear(struct queue_upload *upload);
int queue_end_upload(struct queue *queue, const char *name);
/* Returns 0 if the masks of the job's result may be corrected: it is under review, in the version `seen`, without a
 * decision or another correction. Else -EAGAIN, -ESTALE or -ENOENT with the reason. */
int queue_check_correctable(struct queue *queue, int64_t job_id, const char *seen);
/* Returns 1 if a job measures the masks of this annotation object, 0 if not, or -errno. */
int queue_is_correction(struct queue *queue, int64_t object_id);

/* Makes changes and takes them back. Returns the result of `attempt`, or -errno. */
int queue_try(struct queue *queue, int (*attempt)(void *context), void *context);

#define QUEUE_FILTERS 50 /* max filters of a person */

/* A filter of a list that a person saved. */
struct queue_filter {
    const char *person, *list, *name, *filter; /* "anna", "work", "Failed CT", "state=FAILED&modality=CT" */
};

/* Saves it, in the place of one of the same name. Returns -EDQUOT if the person has too many. */
int queue_save_filter(struct queue *queue, const struct queue_filter *filter, int64_t now_ms);
/* Returns -ENOENT if that person has no such list and name. */
int queue_delete_filter(struct queue *queue, const struct queue_filter *filter);

/* A decision on a result under review that takes effect at due_ms unless it is undone. */
struct queue_decision {
    int64_t job_id;
    bool accepts;
    char *by, *reason;
    int64_t due_ms;
};

void queue_decision_clear(struct queue_decision *decision);

/* Returns -ESTALE if the result has another version than `seen` ("": not known), and -EAGAIN with the person if a
 * decision is pending. Returns 0 if the job is not under review: the decision itself will fail. */
int queue_check_review(struct queue *queue, int64_t job_id, const char *seen);
/* Stores a decision on a job under review. The errors are those of queue_accept_job(). */
int queue_decide(struct queue *queue, int64_t job_id, bool accepts, const char *by, const char *reason, int64_t due_ms,
                 int64_t now_ms);
/* Removes a decision before its due_ms; otherwise returns -EAGAIN. */
int queue_undo_decision(struct queue *queue, int64_t job_id, const char *by, int64_t now_ms);
/* Removes a decision that cannot take effect. */
int queue_drop_decision(struct queue *queue, int64_t job_id, const char *why, int64_t now_ms);
/* Reads the next decision that is due. Returns 1 if there is none. */
int queue_due_decision(struct queue *queue, int64_t now_ms, struct queue_decision *decision);

/* A job whose result an annotation object may correct. */
struct queue_corrected {
    int64_t id;
    char *settings, *state;
    bool named;    /* the object refers to its result, or is in the series of it */
    bool outdated; /* late slices have arrived since, or before that result */
};

void queue_corrected_clear(struct queue_corrected *job);

/*
 * Reads the jobs of the present revision of the series of an object, each the last one of its stack and pipeline: those
 * under review or with a decision. Of a result with a correction under review, that correction. Free the array after
 * clearing its elements.
 */
int queue_corrected_jobs(struct queue *queue, int64_t object_id, struct queue_corrected **jobs, size_t *count);
/* Finds the job whose result the object is: it came back unchanged. Returns 1 with the job, 0 if there is none. */
int queue_object_is_result(struct queue *queue, int64_t object_id, int64_t *job_id);
/*
 * Adds a job that measures the corrected masks of a job under review, with its settings and masks of programs. An
 * unfinished earlier correction is CANCELLED, a pending decision is dropped. Returns -EAGAIN if the job is not under
 * review, and -ESTALE if late slices have arrived.
 */
int queue_correct_job(struct queue *queue, int64_t job_id, int64_t object_id, int64_t now_ms, int64_t *correction_id,
                      struct queue_ids *superseded_running);
/* Notes why an object does not correct the result of a job: an event. */
int queue_refuse_correction(struct queue *queue, int64_t job_id, int64_t object_id, enum code code, const char *message,
                            int64_t now_ms);

/* RUNNING -> FAILED. */
int queue_fail_job(struct queue *queue, int64_t job_id, enum code code, const char *message, const char *file_a,
                   const char *file_b, int64_t now_ms);
/* RUNNING -> DELAYED until not_before_ms. `alone`: see queue_job. */
int queue_delay_job(struct queue *queue, int64_t job_id, int64_t not_before_ms, bool alone, enum code code,
                    const char *message, int64_t now_ms);
/* RUNNING -> READY, attempts - 1: returned unharmed (drain, or a worker that did not begin it). */
int queue_return_job(struct queue *queue, int64_t job_id, const char *why, int64_t now_ms);
/* READY | DELAYED | RUNNING -> CANCELLED. was_running: the caller must stop its worker. */
int queue_cancel_job(struct queue *queue, int64_t job_id, int64_t now_ms, bool *was_running);

/* An operator's retry. */
struct queue_retry {
    int64_t job_id;
    const char *settings; /* NULL: the job's own */
    bool again;           /* also a job that ended well with these settings and still has its results */
};

/*
 * FAILED | CANCELLED | DELAYED -> READY with attempts 0, if the settings are the job's own. With
 * other settings, and for DONE, EMPTY, REVIEW and REJECTED, adds a new job (see queue_add_job): the
 * old results stay, and their unsent deliveries go on, until the new results exist.
 *
 * *job_id is the job that will run. Returns -EEXIST if a job with these settings ended well,
 * -ESTALE if the series has a newer revision or another job replaced this one.
 */
int queue_retry_job(struct queue *queue, const struct queue_retry *retry, int64_t now_ms, int64_t *job_id,
                    struct queue_ids *superseded_running);

/* Changes the priority of a READY or DELAYED job. `by`: the user, for the event. */
int queue_set_priority(struct queue *queue, int64_t job_id, int32_t priority, const char *by, int64_t now_ms);

/* A hold that an operator places. */
struct queue_hold {
    const char *kind;   /* "queue", "jobs", "pipeline", "destination", "job" */
    const char *name;   /* "" for the queue and for jobs; the id of a job */
    const char *by;     /* name of the operator */
    const char *reason; /* NULL, "": unset */
};

/*
 * Until released, also over restarts, no job starts (of the queue, all jobs, a pipeline, a job) and
 * no delivery starts (of the queue, a destination). Running jobs and deliveries continue. The hold
 * of a job ends with the job. Deliveries do not age meanwhile.
 *
 * Returns -EEXIST if it is held already, -EAGAIN if the job has ended; queue_release(): -ENOENT if it is not held.
 */
int queue_hold(struct queue *queue, const struct queue_hold *hold, int64_t now_ms);
int queue_release(struct queue *queue, const struct queue_hold *hold, int64_t now_ms);
/* Returns 1 if the queue or all jobs are held, 0 if not, or -errno. */
int queue_starts_no_job(struct queue *queue);

/*
 * Stores a validation: a JSON object with the columns of table `validation`, and `cases` with those of `validation_case`,
 * each with `regions` as `noctule compare` prints them.
 */
int queue_add_validation(struct queue *queue, const char *record, const char *by, int64_t now_ms);
/* Reads the ranges that a pipeline is validated for; "" if there are none (trust.h). The caller must free *ranges. */
int queue_validated(struct queue *queue, const char *digest, char **ranges);

#define QUEUE_ALERT 256 /* bytes of the id of an alert */

/* An acknowledgement with the present state of its alert. */
struct queue_ack {
    const char *alert, *by, *reason; /* reason "": unset */
    int severity;
    int64_t changed_ms, size;
    int64_t until_ms; /* 0: no end */
    bool from_daemon; /* the daemon ends it when the alert ends */
};

/* Stores it in place of an earlier one for the same alert. */
int queue_acknowledge(struct queue *queue, const struct queue_ack *ack, int64_t now_ms);
/* Returns 0, or -ENOENT if the alert is not acknowledged. */
int queue_end_ack(struct queue *queue, const char *alert, const char *by, const char *reason, int64_t now_ms);
/*
 * Finds an acknowledgement whose alert is not among `raised`: ids, each with a newline before and
 * after it. Returns 1, 0 if there is no such row, or -errno.
 */
int queue_find_cleared_ack(struct queue *queue, const char *raised, bool from_daemon, char alert[QUEUE_ALERT]);

/*
 * Recovers after a restart, with attempts kept: RUNNING on this machine -> READY, or FAILED with
 * code CRASHED at max_attempts; SENDING -> PENDING; FINDING and MOVING -> WAITING. Deliveries do
 * not age by the time without a daemon. *returned: the number of RUNNING jobs.
 */
int queue_recover(struct queue *queue, int32_t max_attempts, int64_t now_ms, int32_t *returned);

/*
 * Shifts all waiting times after the clock was set, forward or (negative) back, so that the
 * remaining waits stay the same.
 */
int queue_clock_was_set(struct queue *queue, int64_t by_ms);
/* Limits all waiting times, after the clock was set back. */
int queue_bound_waits(struct queue *queue, int64_t job_latest_ms, int64_t delivery_latest_ms);

/* ---------------------------------------------------------------------------- deliveries ---- */

/* A delivery sends one result to one destination. queue_finish_job() creates it. */

enum queue_delivery_state {
    QUEUE_DELIVERY_PENDING,
    QUEUE_DELIVERY_SENDING,
    QUEUE_DELIVERY_SENT,
    QUEUE_DELIVERY_DELAYED,
    QUEUE_DELIVERY_FAILED,
    QUEUE_DELIVERY_REVIEW,    /* a person must decide whether it may leave */
    QUEUE_DELIVERY_CANCELLED, /* no longer wanted: another job replaced its own */
};

enum queue_commitment {
    QUEUE_COMMITMENT_NONE,      /* not requested */
    QUEUE_COMMITMENT_REQUESTED, /* no answer yet */
    QUEUE_COMMITMENT_COMMITTED,
    QUEUE_COMMITMENT_FAILED, /* refused, or the destination does not hold the object */
};

struct queue_delivery {
    int64_t id, job_id;
    char *destination; /* a name in the configuration */
    enum queue_delivery_state state;
    enum queue_commitment commitment;
    int32_t attempts;
    /*
     * its age counts from here: its creation or last resend, plus the time in which the destination
     * was held or no daemon ran
     */
    int64_t since_ms;
    int64_t due_ms;                         /* PENDING, DELAYED: next attempt */
    char *kind, *path;                      /* of the result; the path is relative to the root */
    char *sop_class_uid, *sop_instance_uid; /* "" for files that are not DICOM */
    /* Images of a series that the destination has, and the digest of these files and of the way to send them. */
    int64_t confirmed;
    char *confirmed_digest;
    char *accepted_digest; /* likewise, of the files that a person released, or "" */
    int64_t issuers;       /* known issuers of the Patient ID of its series */
    char *source;          /* SERIES_UID.PIPELINE.JOB, for the name of such a file in a folder */
};

void queue_delivery_clear(struct queue_delivery *delivery);
int queue_get_delivery(struct queue *queue, int64_t delivery_id, struct queue_delivery *delivery);

/*
 * Reads PENDING deliveries and DELAYED ones that are due: at most `limit` per destination, without blocked and held
 * destinations, by destination, then by due time. Changes no data. Free the array after clearing its elements.
 */
int queue_due_deliveries(struct queue *queue, int64_t now_ms, size_t limit, const char *const *blocked,
                         size_t blocked_count, struct queue_delivery **deliveries, size_t *count);
/*
 * Finds the earliest due time of all waiting deliveries, without blocked and held destinations; it
 * may have passed. Returns -ENOENT if no delivery waits.
 */
int queue_next_delivery(struct queue *queue, const char *const *blocked, size_t blocked_count, int64_t *due_ms);

/* PENDING | DELAYED and due -> SENDING, attempts + 1. Commit before the sender gets it. */
int queue_start_delivery(struct queue *queue, int64_t delivery_id, int64_t now_ms);

/* The end of an attempt. The status is that of the C-STORE response; negative: none (a folder, no association). */
struct queue_attempt {
    int32_t dimse_status;
    enum code code;
    const char *message; /* may be "" */
    /* the object as it was sent; NULL or "": not known */
    const char *sent_class, *sent_syntax, *sent_instance;
    const char *held_digest; /* of a delivery to hold for review: of its files */
};

/* SENDING -> SENT. transaction_uid: of the requested storage commitment; "": not requested. */
int queue_delivery_sent(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt,
                        const char *transaction_uid, int64_t now_ms);
/*
 * SENDING -> DELAYED until not_before_ms, or FAILED. SENT -> the same if the requested commitment
 * was not given: the commitment is FAILED until the next attempt. PENDING | DELAYED -> FAILED if
 * its destination is no longer configured.
 */
int queue_delay_delivery(struct queue *queue, int64_t delivery_id, int64_t not_before_ms,
                         const struct queue_attempt *attempt, int64_t now_ms);
int queue_fail_delivery(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt, int64_t now_ms);
/*
 * SENDING -> FAILED, with a new PENDING delivery of the same result to another destination, unless
 * that has one already.
 */
int queue_redirect_delivery(struct queue *queue, int64_t delivery_id, const char *destination,
                            const struct queue_attempt *attempt, int64_t now_ms);
/* Stores how many images of a series the destination has, of a SENDING delivery. Otherwise changes no data. */
int queue_confirm_images(struct queue *queue, int64_t delivery_id, int64_t confirmed, const char *digest);
/*
 * SENDING -> REVIEW: a person must decide. Accept: REVIEW -> PENDING, with an age from now. Reject: REVIEW ->
 * CANCELLED. `seen` is the version (v_deliveries) on the page of the person, "" if unknown. Returns -ESTALE if it has
 * another one now, and -EAGAIN with the person if it is decided.
 */
int queue_hold_delivery(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt, int64_t now_ms);
int queue_accept_delivery(struct queue *queue, int64_t delivery_id, const char *seen, const char *by, int64_t now_ms);
int queue_reject_delivery(struct queue *queue, int64_t delivery_id, const char *seen, const char *reason,
                          const char *by, int64_t now_ms);
/* SENDING -> PENDING, attempts - 1: returned untried (drain, or a sender that did not begin it). */
int queue_return_delivery(struct queue *queue, int64_t delivery_id, const char *why, int64_t now_ms);

/*
 * Stores the answer of an N-EVENT-REPORT for one instance: REQUESTED -> COMMITTED | FAILED. A
 * repeated call changes no data. Returns -ENOENT if no SENT delivery of this instance belongs to
 * the transaction.
 */
int queue_delivery_committed(struct queue *queue, const char *transaction_uid, const char *sop_instance_uid,
                             bool committed, enum code code, const char *message, int64_t now_ms);
/*
 * SENT, commitment NONE -> FAILED: the destination has the instance and refused the request for
 * commitment.
 */
int queue_commitment_refused(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt,
                             int64_t now_ms);
/* Finds the SENT delivery of an instance and a transaction; -ENOENT as above. */
int queue_find_commitment(struct queue *queue, const char *transaction_uid, const char *sop_instance_uid,
                          struct queue_delivery *delivery);
/* Reads at most `limit` SENT deliveries of a destination whose commitment was REQUESTED before a time, oldest first. */
int queue_overdue_commitments(struct queue *queue, const char *destination, int64_t before_ms, size_t limit,
                              struct queue_delivery **deliveries, size_t *count);

/*
 * An operator's resend: SENT | DELAYED | FAILED -> PENDING with attempts 0, due at once. Exactly
 * one of delivery, job and destination must be set.
 *
 * A delivery given by its id may also be CANCELLED. Returns -EAGAIN if it is PENDING or SENDING,
 * -ESTALE if its result is removed. Of a job or a destination, deliveries that cannot be sent again
 * are skipped; of a destination also results that a newer revision replaced. *count may be 0.
 * Returns -ENOENT if there is no such delivery or job, or the destination never had a delivery.
 */
struct queue_resend {
    int64_t delivery_id, job_id; /* 0: not set */
    const char *destination;     /* NULL: not set */
    bool not_arrived;            /* only FAILED and DELAYED deliveries */
};

int queue_resend(struct queue *queue, const struct queue_resend *which, int64_t now_ms, int64_t *count);

/* --------------------------------------------------------------------- files, the daemon ---- */

/* Calls `visit` with the path of each instance and annotation object. A result other than 0 ends it and is returned. */
int queue_each_path(struct queue *queue, int (*visit)(void *context, const char *path), void *context);
/* Reads the paths of instances and annotation objects with files, after `after`; free each and the array. */
int queue_paths(struct queue *queue, const char *after, size_t limit, char ***paths, size_t *count);
/* Notes that the file of a row is missing: an event, and a flag on the series (missing_files). */
int queue_report_missing(struct queue *queue, const char *path, int64_t now_ms);

/* Stores an event of the daemon itself: START, STOP, WORKER_DIED ... */
int queue_note(struct queue *queue, const char *kind, const char *detail, int64_t now_ms);

/* The result of reading the configuration. */
struct queue_configuration {
    const char *cause;    /* "start", "command" or "signal" */
    const char *asked_by; /* the user of the command; "" */
    const char *files;    /* one per line, the main file first */
    const char *reason;   /* reason for refusing it; "": it is in force */
};

/* Stores the result and, except at start, the event RELOAD or RELOAD_FAILED. */
int queue_set_configuration(struct queue *queue, const struct queue_configuration *is, int64_t now_ms);

/* Returns 1 if the fingerprint is that of the known key of pseudonyms, 0 if not, or -errno. The first one becomes known. */
int queue_check_key(struct queue *queue, const char *fingerprint);
/* Makes another key the known one, with an event. */
int queue_replace_key(struct queue *queue, const char *fingerprint, int64_t now_ms);

/*
 * Makes one block of coded histograms (pattern_blocks.c) if enough rows have none, or a block again that lost rows. Sets
 * *more if it did: there may be another one to make.
 */
int queue_block_patterns(struct queue *queue, bool *more);

/*
 * Checks the invariants at the head of transaction.c. Returns 0, -EUCLEAN with the violation, or
 * the error of reading. For tests; without NDEBUG each commit calls it and aborts.
 */
int queue_check(struct queue *queue, struct error *error);

#endif
