/*
 * queue.h - the queue: instances, series, stacks, jobs, results, deliveries and events in SQLite.
 *
 * One writer (the daemon); anybody may read the views of views.sql while it runs. Every state
 * change is a guarded UPDATE and an event row in the same transaction; the diagrams stand at the
 * heads of transaction.c and deliveries.c.
 *
 * Times are Unix milliseconds (UTC) given by the caller, stored as ISO-8601 text. Calls return 0 or
 * a negative errno: -EAGAIN when the row was not in the expected state, -ENOENT when it is not
 * there, -ENOSPC, -EIO, -EBUSY from SQLite; queue_reason tells in words. Texts are UTF-8 (other
 * bytes are replaced), NULL is "". Not thread-safe: one
 * thread per queue. Strings in structs returned by the queue are freed with the matching _free or
 * _clear call.
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

/* Ids of rows; the caller frees `at`. */
struct queue_ids {
    int64_t *at;
    size_t count;
};

/*
 * Opens or creates the database, migrates it to this version (a newer one: -EPROTONOSUPPORT),
 * refuses network file systems (-EREMOTE).
 */
int queue_open(const char *path, struct queue **queue, struct error *error);
void queue_close(struct queue *queue);
/* Whether the file is a database without tables, which queue_open makes. Changes nothing. */
bool queue_is_empty(const char *path);
/*
 * Where the file system was read-only when it was opened, or SQLite found the database damaged (-EUCLEAN, which a read
 * that failed is enough for): opens it again once it can be written.
 * -EROFS: not yet; after another error the queue can only be closed. No transaction may be open.
 */
int queue_open_for_writing(struct queue *queue, const char *path);
const char *queue_reason(const struct queue *queue);

/*
 * Group commit. Between begin and commit any number of calls below join one durable transaction;
 * outside of it each call is a transaction of its own. A failed call inside leaves the transaction
 * usable (it is a savepoint), unless the failure made SQLite roll back everything (full disk, I/O):
 * then all further calls fail, and so does queue_commit. It returns 0 only when everything is on
 * disk; otherwise all is rolled back.
 */
int queue_begin(struct queue *queue);
int queue_commit(struct queue *queue);
void queue_rollback(struct queue *queue);

/* ------------------------------------------------------------------ instances and series ---- */

/* A file without a row, found in its place at start. */
#define QUEUE_SOURCE_RECOVERED "recovered"

struct queue_instance {
    const char *sop_instance_uid, *sop_class_uid, *transfer_syntax_uid;
    const char *series_uid, *study_uid;
    const char *modality, *body_part, *series_description;
    const struct series_about *about; /* as it is to be kept; NULL: nothing is known */
    const char *frame_of_reference;   /* its UID; "" */
    const char *path;          /* relative to the root: series/<Series UID>/<SOP UID>[+N].dcm */
    const char *sha256;        /* of the file at the path; "": not known */
    const char *source;        /* "inbox:<path>", "scu:<AE title>", QUEUE_SOURCE_RECOVERED */
    const char *original_path; /* absolute, of a file that its inbox keeps and that goes with its
                                  series; NULL: it stays, or there is none */
    const char *called_ae;     /* the title it was sent to; "" when it did not come by C-STORE */
    const char *sender;        /* the AE title that sent it; "" likewise */
    int64_t size;
    int32_t frames;
    int32_t expected_instances; /* of the series; 0 when unknown */
    int32_t replaced;           /* times: the file of a higher number takes the place of others */

    struct queue_kept {
        int64_t file, look; /* digests; 0: it has no original that stays, or not as it is */
    } kept;
};

enum queue_arrival {
    QUEUE_NEW,   /* a row was added; the series gathers (again: a new revision) */
    QUEUE_KNOWN, /* the same instance of the same series was there: nothing changed; an event when
                    it came from another source than the first time */
    QUEUE_RETURNED, /* likewise, but its file had been reported missing; a series that was refused,
                       or has a failed job, gathers again: a new revision */
    QUEUE_REPLACED, /* the same instance with another data set, in another file: the series gathers
                       again: a new revision */
};

int queue_add_instance(struct queue *queue, const struct queue_instance *instance, int64_t now_ms,
                       enum queue_arrival *arrival, int64_t *series_id);

/*
 * What came of `source` and whose original was kept, by `file` and behind `after` (INT64_MIN: from the
 * first); free the array. What is missing has none; what was removed does.
 * with_original: of those that were not, only whose original is known by its path.
 */
int queue_kept(struct queue *queue, const char *source, bool with_original, int64_t after,
               size_t limit, struct queue_kept **kept, size_t *count);
/* It is not there any more. */
int queue_forget_kept(struct queue *queue, const char *source, int64_t file);

/*
 * What people drew on images: stored like them, and never a series with jobs of its own. `references`
 * are lines "series UID", "instance UID" or "frame UID", and "predecessor UID", as in
 * dicom/read/object_peek.h. A later version takes the place of those before (superseded_by): of one
 * kind and label, of the same series or from the same sender, and referring to the same; or what it
 * names as its predecessors. What is a result of ours is marked as such, and is no input.
 */
struct queue_object {
    const char *sop_instance_uid, *sop_class_uid, *transfer_syntax_uid;
    const char *series_uid, *study_uid; /* its own */
    const char *kind;                   /* "rtstruct", "seg", "sr" */
    const char *label, *description, *made;
    const char *path, *source, *original_path, *sender; /* as of an instance */
    const char *references;
    int64_t size;
    int32_t replaced;
    struct queue_kept kept;
};

int queue_add_object(struct queue *queue, const struct queue_object *object, int64_t now_ms,
                     enum queue_arrival *arrival, int64_t *object_id);

/* Objects that are input for the jobs of a series: of it, current, ours not, and their files are there.
 * By path; free the array after clearing its elements. */
struct queue_input {
    char *path, *kind, *sender;
};

int queue_series_inputs(struct queue *queue, int64_t series_id, struct queue_input **inputs,
                        size_t *count);
void queue_input_clear(struct queue_input *input);
/* Whether an object is input, by itself: current, not ours, not removed. 1, 0 or -errno. */
int queue_object_is_input(struct queue *queue, int64_t object_id);
/* The series that it is of. */
int queue_object_series(struct queue *queue, int64_t object_id, struct queue_ids *series);
/* What its jobs were made of has changed: SETTLED -> GATHERING, a new revision; 1: it has not
 * settled, or is removed, and nothing changed. */
int queue_revise_series(struct queue *queue, int64_t series_id, const char *why, int64_t now_ms);

/* A file that could not be taken in. */
struct queue_quarantine {
    const char *path; /* in quarantine/; "" when it could not be kept, or never came whole */
    const char *original_path;
    const char *series_uid, *sop_instance_uid; /* "" when they could not be read */
    const char *called_ae; /* that it was sent to; "" or NULL: of an inbox, or not known */
    enum code code;
    const char *message;
    int64_t released; /* the number of the row that it was released from; 0: none */
};

/*
 * With DUPLICATE_UID_DIFFERENT its series is flagged (duplicate_conflicts). With a code of damage
 * the series lacks the instance until a good file of it comes; one that is SETTLED gathers again: a
 * new revision. Telling the same again changes nothing.
 */
int queue_add_quarantine(struct queue *queue, const struct queue_quarantine *file, int64_t now_ms);

/* 1 where a row tells of the file in quarantine/; 0; -errno. */
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
 * Marks the file as removed, since a link in released/ holds it. -ENOENT; -EINVAL if its file is not there. `by` NULL: the link
 * was received before its release was on disk.
 */
int queue_release_quarantine(struct queue *queue, int64_t id, const char *by, int64_t now_ms);

/*
 * Deletes the row and marks its file for removal. -ENOENT; -EPERM if its series lacks the instance: forgetting it would make the
 * series look complete.
 */
int queue_forget_quarantine(struct queue *queue, int64_t id, const char *by, int64_t now_ms);

/*
 * queue_add_quarantine of a file that nobody told of, with what its reason says: JSON of the members
 * code, message, original_path, series_uid and sop_instance_uid. A reason that is none, or has no
 * code, is FILE_UNREADABLE.
 */
int queue_adopt_quarantine(struct queue *queue, const char *path, const char *reason,
                           int64_t now_ms);

/* The first of the instances that a series lacks, as they were told to be quarantined. */
struct queue_lacking {
    int64_t count; /* of all; 0: none, and no first */
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
    char *called_ae, *sender; /* of its first C-STORE; "" when none came that way */
    char *inbox; /* the folder that its first file of one lay in; "" once a C-STORE came */
    int32_t instances, frames, expected_instances;
    int32_t missing_files; /* of the instances */
    bool removed;          /* all of them, in time or by an operator */
    int64_t first_seen_ms, last_seen_ms;
    bool complete_requested;   /* an operator's word, kept until it settles */
    char *missing_accepted_by; /* the operator who takes this revision as it is; "" */
};

void queue_series_clear(struct queue_series *series);

/* Every series in GATHERING, oldest last_seen first; free the array after clearing its elements. */
int queue_gathering(struct queue *queue, struct queue_series **series, size_t *count);
int queue_get_series(struct queue *queue, int64_t series_id, struct queue_series *series);
int queue_find_series(struct queue *queue, const char *series_uid, int64_t *series_id);
/* Of all its files together. */
int queue_series_bytes(struct queue *queue, int64_t series_id, int64_t *bytes);

/* A file of an instance. */
struct queue_file {
    char *path;   /* absolute or relative to the root */
    char *sha256; /* as it was taken in; "": not known */
};

/* Those of a series, by path; free the array after clearing its elements. */
int queue_series_files(struct queue *queue, int64_t series_id, struct queue_file **files,
                       size_t *count);
void queue_file_clear(struct queue_file *file);

/* A stack of a series that has settled. */
struct queue_stored_stack {
    char *name;
    bool accepted;
    int32_t planes;
    char *code, *message; /* of the refusal; "" when accepted */
    char *options;        /* of the pipelines that it is of */
};

/* Of its revision; none while it gathers. Free the array after clearing its elements. */
int queue_series_stacks(struct queue *queue, int64_t series_id, struct queue_stored_stack **stacks,
                        size_t *count);
void queue_stored_stack_clear(struct queue_stored_stack *stack);

struct queue_stack {
    const char *name; /* "" for the only one */
    bool accepted;
    int32_t planes, columns, rows;
    double spacing_mm;       /* between planes */
    double pixel_mm[2];      /* between columns and between rows; 0: not known */
    const char *orientation; /* "axial", "coronal", "sagittal", "oblique"; "": not known */
    const char *cosines;     /* as Image Orientation (Patient): "1\\0\\0\\0\\1\\0"; "" */
    enum code code;
    const char *message, *file_a, *file_b; /* of the refusal; "" when accepted */
    const char *split_by;                  /* the attributes that set it apart, for people; "" */
    bool passed_over;                      /* refused for what it is, and nobody's mistake */
    int32_t times, times_announced;        /* temporal positions of its series; 0: not announced */
    const char *options;                   /* of the pipelines that it is of, for people; "" */
};

/*
 * GATHERING -> SETTLED (at least one stack accepted) or REFUSED, with the evidence as text and its
 * stacks. -EAGAIN when it does not gather, or for another revision than the one given. Slices that
 * come while it gathers leave the revision as it is: a caller that looked at the files outside of a
 * transaction compares queue_series.instances before it settles.
 */
int queue_settle(struct queue *queue, int64_t series_id, int32_t revision, const char *evidence,
                 const struct queue_stack *stacks, size_t stack_count, int64_t now_ms);
/* What settling found of the whole series: a code that v_series tells, and an event. -EAGAIN when
 * it gathers. */
int queue_flag_series(struct queue *queue, int64_t series_id, enum code code, const char *message,
                      int64_t now_ms);

/* An operator's word on a series. */
struct queue_complete {
    const char *series_uid;
    bool accept_missing; /* and takes it as it is */
    const char *by;      /* who; "" when not known */
};

/*
 * A series that gathers is taken as complete. One that was judged gathers again (a new revision)
 * where that can come out otherwise: it was refused or flagged, and where INCOMPLETE_SERIES was a
 * reason that is accepted; else -EAGAIN.
 */
int queue_request_complete(struct queue *queue, const struct queue_complete *complete,
                           int64_t now_ms);

/* ---------------------------------------------------------------------------------- jobs ---- */

enum queue_job_state {
    QUEUE_READY,
    QUEUE_RUNNING,
    QUEUE_DONE,
    QUEUE_EMPTY,
    QUEUE_REVIEW,   /* its result breaks an expectation: somebody is to accept or reject it */
    QUEUE_REJECTED, /* nobody did, or another job took its place */
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
    int64_t not_before_ms; /* of a DELAYED one */
    int64_t done_by_ms;    /* when its result is wanted; 0: whenever */
    bool alone;            /* it crashed a worker before: run it with no other beside it */
    bool awaits;           /* DELAYED until an object, or a series of the study, comes */
    bool awaits_study;     /* the latter */
    char *failed_on;       /* the worker of its last attempt when that failed, else "" */
};

void queue_job_clear(struct queue_job *job);

struct queue_new_job {
    int64_t series_id;
    int32_t revision;
    const char *stack, *pipeline, *settings;
    int32_t priority;
    bool again;         /* though one has ended with these settings */
    const char *asked;  /* who wants it, when the rules do not: for its event; NULL */
    bool dry_run;       /* nothing is changed: is there one, or would this be new (job 0)? */
    int64_t done_by_ms; /* when its result is wanted; 0: whenever */
    /* What it lacks, in words: it waits (DELAYED, with this code) until queue_job_lacks says that it is
     * there, or until then, when it is FAILED: OBJECT_WAITING (OBJECT_MISSING), STUDY_WAITING
     * (STUDY_INCOMPLETE); or READY: OBJECT_OPTIONAL. NULL: nothing. */
    const char *lacks;
    enum code lacks_code;
    int64_t until_ms;
    const char *rule; /* that asks for it; NULL: none does, or that of `retry_of` */
    int64_t retry_of; /* the job that is run again; 0: none */
};

/*
 * Makes a READY job for (series, revision, stack, pipeline). Jobs of the same stack and pipeline, of
 * this revision and older ones, that are READY, DELAYED or RUNNING become CANCELLED with code
 * SUPERSEDED (the ids of those that ran are returned, so that they can be stopped). superseded_by
 * gets what is of an older revision, or has come to nothing; what ended well in this one gets it
 * once the new job has, too.
 * -EEXIST, and its id, when there is one with these settings: it waits or runs, or has ended in
 * whatever way (unless `again`). -EAGAIN when the series is not SETTLED at this revision or has not
 * accepted this stack.
 */
int queue_add_job(struct queue *queue, const struct queue_new_job *job, int64_t now_ms,
                  int64_t *job_id, struct queue_ids *superseded_running);

/*
 * READY jobs in the order in which they are to start: those that are wanted by a time that is to come,
 * the earlier first; then by priority (larger first), to which a job adds one each ageing_ms since it
 * was made (0: none), then by number. At most `limit`; free the array after clearing its elements.
 * DELAYED ones that are due become READY first. What is held is not given, nor what its window keeps
 * back. Jobs of an older revision of their series are not given: they wait while it gathers, and
 * become CANCELLED (SUPERSEDED) once it has settled again. `except`: names of pipelines whose jobs are not
 * wanted, each between line breaks ("\na\nb\n"); "".
 */
int queue_ready(struct queue *queue, int64_t now_ms, int64_t ageing_ms, size_t limit,
                const char *except, struct queue_job **jobs, size_t *count);

/* When jobs of a pipeline may start, which only the daemon can tell: SQL knows no calendar. */
struct queue_window {
    const char *pipeline, *text; /* as configured */
    bool is_open;
    int64_t opens_ms;  /* the next time; 0: it is open, or it does not */
    int64_t closes_ms; /* of what is open, or opens then; 0: it does not */
    double open_share; /* of the time to come, 0 .. 1 */
};

/* All there are, until the next call, also over restarts. One that opens or closes is an event. */
int queue_set_windows(struct queue *queue, const struct queue_window *windows, size_t count,
                      int64_t now_ms);
/* The jobs of the newest revision of a series that have not been superseded, by id; likewise. */
int queue_series_jobs(struct queue *queue, int64_t series_id, struct queue_job **jobs,
                      size_t *count);
/* What a job that waits for something lacks now, as in queue_new_job; NULL: nothing, DELAYED -> READY. -EAGAIN
 * when it does not wait for that. */
int queue_job_lacks(struct queue *queue, int64_t job_id, enum code code, const char *lacks,
                    int64_t now_ms);

/* A series of a study: settled, accepted at least in part, and with its files. */
struct queue_companion {
    int64_t id;
    char *modality, *body_part, *description;
};

void queue_companion_clear(struct queue_companion *companion);
/* Those of the study beside this one; free the array after clearing its elements. */
int queue_companions(struct queue *queue, int64_t series_id, struct queue_companion **companions,
                     size_t *count);
/* Jobs of other series of its study that wait for series of it; free jobs->at. */
int queue_study_waiting(struct queue *queue, int64_t series_id, struct queue_ids *jobs);
int queue_next_due(struct queue *queue, int64_t *due_ms); /* earliest DELAYED; -ENOENT when none */
int queue_get_job(struct queue *queue, int64_t job_id, struct queue_job *job);

/*
 * Lists what the results of a job replace, as job_file.h describes `earlier`: of each file name the object of the latest
 * older job of its series, stack and pipeline that is DONE. Free the strings and the array.
 */
int queue_earlier_results(struct queue *queue, int64_t job_id, char ***earlier, size_t *count);

/*
 * READY -> RUNNING, attempts + 1, worker and lane named: committed before the worker is told. A
 * lane of a worker runs one job at a time (-EBUSY). -EAGAIN also when a late slice has come
 * meanwhile.
 */
int queue_start_job(struct queue *queue, int64_t job_id, const char *worker, int32_t lane,
                    int64_t now_ms);

/* Where an attempt runs. */
struct queue_lane {
    const char *worker;
    int32_t lane;
    const char *executor; /* "local", "slurm" */
    const char *nonce;    /* "" on this machine */
};

/* queue_start_job, wherever it is. On another machine it is RUNNING from before that is told of it
 * ("SUBMITTING" in v_jobs) until what it says has been recorded, over restarts of the daemon. */
int queue_start_at(struct queue *queue, int64_t job_id, const struct queue_lane *place,
                   int64_t now_ms);

/* What the job is at, while it is RUNNING; of one that is not any more nothing is kept. */
int queue_set_stage(struct queue *queue, int64_t job_id, const char *stage, int64_t since_ms);

/* An attempt on another machine, of a job that is RUNNING. */
struct queue_elsewhere {
    int64_t job_id;
    int32_t attempts, lane;
    bool alone;
    int64_t slurm_id; /* 0: it is not known whether Slurm has it */
    int64_t submitted_ms;
    char *nonce, *node, *reason, *pipeline;
};

/* All there are, by id; free the array after clearing its elements. */
int queue_elsewhere(struct queue *queue, struct queue_elsewhere **attempts, size_t *count);
void queue_elsewhere_clear(struct queue_elsewhere *attempt);
/* Slurm has it. -EAGAIN when it is not RUNNING with that nonce; so the next. */
int queue_submitted(struct queue *queue, int64_t job_id, const char *nonce, int64_t slurm_id,
                    int64_t now_ms);
/* Where it runs ("": nowhere yet), and why it does not. No event. */
int queue_placed(struct queue *queue, int64_t job_id, const char *nonce, const char *node,
                 const char *reason);
/* The mean total_seconds of the last jobs of the pipeline that ended well; 0: none has of late. */
int queue_mean_seconds(struct queue *queue, const char *pipeline, double *seconds);

#define QUEUE_CODES 256

/* How often each code of a local pattern occurs. */
struct queue_histogram {
    int32_t segment;
    const char *label, *pattern, *settings;
    const int64_t *counts; /* QUEUE_CODES of them */
};

/* Distances between voxels in mm, columns first. */
struct queue_voxels {
    double spacing[3];        /* of the volume that the job computed on */
    double source_spacing[2]; /* of the files */
    double source_steps[2];   /* smallest and largest between two slices of the files */
    const char *straightened; /* why the stack was straightened; "": it was not; NULL: not known */
};

/* A segment of a job, hidden ones excepted. NAN: not known. */
struct queue_segment {
    int32_t number; /* Segment Number */
    const char *label, *method;
    const char *unit; /* of the values: UCUM; "1": not known */
    int64_t voxels;
    double millilitres;
    double mean, minimum, maximum;
    int64_t first[3], last[3]; /* of the box: column, row, slice, from 0; last < first: no voxel */
    double centroid[3];        /* mm, patient coordinates (LPS) */
};

/* A broken expectation. */
struct queue_breach {
    int32_t segment; /* Segment Number; 0: a hidden segment */
    const char *label, *expectation;
    double found, allowed[2]; /* NAN: none */
    const char *text;
};

/* What a worker measured. Negative numbers mean "not measured". */
struct queue_figures {
    double read_seconds, compute_seconds, write_seconds, verify_seconds, total_seconds;
    int64_t voxels; /* of the volume */
    int64_t segmented_voxels;
    int64_t peak_bytes;             /* resident, of the worker */
    const char *backend;            /* "cpu" ... */
    const char *note;               /* how it was run when not as usual; "" */
    struct queue_voxels voxel;      /* of a job that ended */
    const struct feature *features; /* "" may be NULL; none twice with its segment and settings */
    size_t feature_count;
    const struct queue_histogram *histograms;
    size_t histogram_count;
    const struct queue_segment *segments; /* no two of one number */
    size_t segment_count;
    const struct queue_breach *breaches; /* in the order of the pipeline */
    size_t breach_count;
};

struct queue_result {
    const char *kind;                                          /* "seg", "codes" */
    const char *path;                                          /* relative to the root */
    const char *sop_class_uid, *sop_instance_uid, *series_uid; /* "" for files that are not DICOM */
    const char *replaces; /* SOP Instance UID of an earlier result; "": none */
    int64_t size;
    int64_t frames;
    const char *const *destinations; /* names: each makes a PENDING delivery; a name told twice
                                        counts once */
    size_t destination_count;
};

/* How a job ended well. */
struct queue_finish {
    enum queue_job_state state; /* DONE with results, EMPTY without, or REVIEW with or without */
    const struct queue_figures *figures;
    const struct queue_result *results;
    size_t result_count;
    enum code code;
    const char *message; /* "" when there is nothing to say */
};

/*
 * RUNNING -> DONE with its results and their deliveries, or EMPTY, or REVIEW; with its features in
 * any case. What is under review is not delivered (its results name no destinations: -EINVAL), and
 * supersedes nothing before it is accepted.
 * -EEXIST when two results have one path, or two features or histograms of a segment the same
 * settings. Otherwise earlier jobs of the same series, stack and pipeline are superseded; their deliveries that
 * were not sent yet are withdrawn: PENDING | DELAYED -> CANCELLED, code SUPERSEDED, or RETRIED in the
 * same revision.
 */
int queue_finish_job(struct queue *queue, int64_t job_id, const struct queue_finish *finish,
                     int64_t now_ms);

/*
 * What somebody says of a result under review. REVIEW -> DONE, with the deliveries of its results that
 * are DICOM objects, or EMPTY where it has no results: what it supersedes is superseded now. -ESTALE
 * when its series has a newer revision. Or REVIEW -> REJECTED: nothing is delivered, the files stay as
 * long as the images.
 */
int queue_accept_job(struct queue *queue, int64_t job_id, const char *const *destinations,
                     size_t destination_count, const char *by, int64_t now_ms);
int queue_reject_job(struct queue *queue, int64_t job_id, const char *reason, const char *by,
                     int64_t now_ms);

/* RUNNING -> FAILED. */
int queue_fail_job(struct queue *queue, int64_t job_id, enum code code, const char *message,
                   const char *file_a, const char *file_b, int64_t now_ms);
/* RUNNING -> DELAYED until not_before_ms; alone: see queue_job. */
int queue_delay_job(struct queue *queue, int64_t job_id, int64_t not_before_ms, bool alone,
                    enum code code, const char *message, int64_t now_ms);
/* RUNNING -> READY, attempts - 1: given back unharmed (drain, a worker that never began it). */
int queue_return_job(struct queue *queue, int64_t job_id, const char *why, int64_t now_ms);
/* READY | DELAYED | RUNNING -> CANCELLED; was_running tells whether a worker must be told. */
int queue_cancel_job(struct queue *queue, int64_t job_id, enum code code, const char *why,
                     int64_t now_ms, bool *was_running);

/* An operator's retry. */
struct queue_retry {
    int64_t job_id;
    const char *settings; /* NULL: those of the job */
    bool again; /* also one that has ended well with them, and whose results are not removed */
};

/*
 * FAILED | CANCELLED | DELAYED -> READY with attempts 0, when the settings are the job's own. Else,
 * and of one that is DONE, EMPTY, REVIEW or REJECTED, a new job (see queue_add_job): the old results stay, and what of
 * them has not been sent yet is sent, until the new ones are there. *job_id is the job that will
 * run. -EEXIST when it has ended well with these settings already, -ESTALE when its series has a
 * newer revision, or another job has taken its place.
 */
int queue_retry_job(struct queue *queue, const struct queue_retry *retry, int64_t now_ms,
                    int64_t *job_id, struct queue_ids *superseded_running);

/* While it waits: READY | DELAYED. `by`: who, for the event. */
int queue_set_priority(struct queue *queue, int64_t job_id, int32_t priority, const char *by,
                       int64_t now_ms);

/* What an operator holds back. */
struct queue_hold {
    const char *kind;   /* "queue", "jobs", "pipeline", "destination", "job" */
    const char *name;   /* "" of the queue and of jobs; of a job its number */
    const char *by;     /* who */
    const char *reason; /* NULL, "": none is given */
};

/*
 * Until it is released, also over restarts, no job of it starts (the queue, jobs, a pipeline, a job)
 * and nothing is sent (the queue, a destination); what runs or is being sent goes on. A job is held until
 * it has ended at the latest. The time does not make deliveries older. -EEXIST when it is held already,
 * -EAGAIN when the job has ended; to release what is not held: -ENOENT.
 */
int queue_hold(struct queue *queue, const struct queue_hold *hold, int64_t now_ms);
int queue_release(struct queue *queue, const struct queue_hold *hold, int64_t now_ms);
/* Whether the queue or all jobs are held: 1, 0 or -errno. */
int queue_starts_no_job(struct queue *queue);

#define QUEUE_ALERT 256 /* bytes of an alert's id */

/* An acknowledgement, with the alert as it is now. */
struct queue_ack {
    const char *alert, *by, *reason; /* reason "": none is given */
    int severity;
    int64_t changed_ms, size;
    int64_t until_ms; /* 0: no end */
    bool from_daemon; /* the daemon ends it when it clears the alert */
};

/* Replaces an earlier one of the same alert. */
int queue_acknowledge(struct queue *queue, const struct queue_ack *ack, int64_t now_ms);
/* Returns 0, or -ENOENT if the alert is not acknowledged. */
int queue_end_ack(struct queue *queue, const char *alert, const char *by, const char *reason,
                  int64_t now_ms);
/* Finds one whose alert is not among `raised`, ids with a newline before and after each. Returns 1, 0 if there is none,
 * or -errno. */
int queue_find_cleared_ack(struct queue *queue, const char *raised, bool from_daemon,
                           char alert[QUEUE_ALERT]);

/*
 * After a restart: RUNNING on this machine goes back to READY with its attempts kept (one that has used up
 * max_attempts: FAILED, code CRASHED), SENDING to PENDING and FINDING and MOVING to WAITING with their attempts kept. The time since
 * the last event does not make deliveries older. Returns how many jobs were running in *returned.
 */
int queue_recover(struct queue *queue, int32_t max_attempts, int64_t now_ms, int32_t *returned);

/* The clock was set, forward or (negative) back: what waits for a time waits as long as before. */
int queue_clock_was_set(struct queue *queue, int64_t by_ms);
/* Nothing waits beyond these times, which a clock that was set back since would make it do. */
int queue_bound_waits(struct queue *queue, int64_t job_latest_ms, int64_t delivery_latest_ms);

/* ---------------------------------------------------------------------------- deliveries ---- */

/* A delivery is one result on its way to one destination: made by queue_finish_job. */

enum queue_delivery_state {
    QUEUE_DELIVERY_PENDING,
    QUEUE_DELIVERY_SENDING,
    QUEUE_DELIVERY_SENT,
    QUEUE_DELIVERY_DELAYED,
    QUEUE_DELIVERY_FAILED,
    QUEUE_DELIVERY_CANCELLED, /* not wanted any more: another job has taken the place of its own */
};

const char *queue_delivery_state_name(enum queue_delivery_state state);

enum queue_commitment {
    QUEUE_COMMITMENT_NONE,      /* not asked for */
    QUEUE_COMMITMENT_REQUESTED, /* the destination has not answered yet */
    QUEUE_COMMITMENT_COMMITTED,
    QUEUE_COMMITMENT_FAILED, /* the destination refused it, or does not hold the object */
};

struct queue_delivery {
    int64_t id, job_id;
    char *destination; /* a name of the configuration */
    enum queue_delivery_state state;
    enum queue_commitment commitment;
    int32_t attempts;
    int64_t since_ms;  /* patience counts from here: when it was made, or last resent, and later by
                          the time in which the destination was held, or no daemon ran */
    int64_t due_ms;    /* PENDING, DELAYED: not to be tried before */
    char *kind, *path; /* of the result; the path is relative to the root */
    char *sop_class_uid, *sop_instance_uid; /* "" for files that are not DICOM */
};

void queue_delivery_clear(struct queue_delivery *delivery);
int queue_get_delivery(struct queue *queue, int64_t delivery_id, struct queue_delivery *delivery);

/*
 * PENDING deliveries, and DELAYED ones that are due: at most `limit` for each destination but the
 * blocked and the held ones, by destination, then by due time. Changes nothing. Free the array after clearing
 * its elements.
 */
int queue_due_deliveries(struct queue *queue, int64_t now_ms, size_t limit,
                         const char *const *blocked, size_t blocked_count,
                         struct queue_delivery **deliveries, size_t *count);
/* The earliest due time of all that wait, but for blocked and held destinations; it may be past. -ENOENT
 * when none waits. */
int queue_next_delivery(struct queue *queue, const char *const *blocked, size_t blocked_count,
                        int64_t *due_ms);

/* PENDING | DELAYED and due -> SENDING, attempts + 1: committed before the courier is told. */
int queue_start_delivery(struct queue *queue, int64_t delivery_id, int64_t now_ms);

/* How an attempt ended. A status is that of the C-STORE response; negative: there was none (a
 * folder, no association). */
struct queue_attempt {
    int32_t dimse_status;
    enum code code;
    const char *message; /* "" when there is nothing to say */
};

/* SENDING -> SENT. transaction_uid: of the storage commitment that was asked for ("": none was). */
int queue_delivery_sent(struct queue *queue, int64_t delivery_id,
                        const struct queue_attempt *attempt, const char *transaction_uid,
                        int64_t now_ms);
/*
 * SENDING -> DELAYED until not_before_ms, or FAILED. Also from SENT, when the destination was asked
 * for its commitment and has not given it: the commitment is FAILED, until the next attempt. A
 * delivery that waits may fail, too: PENDING | DELAYED -> FAILED, when its destination is not
 * configured any more.
 */
int queue_delay_delivery(struct queue *queue, int64_t delivery_id, int64_t not_before_ms,
                         const struct queue_attempt *attempt, int64_t now_ms);
int queue_fail_delivery(struct queue *queue, int64_t delivery_id,
                        const struct queue_attempt *attempt, int64_t now_ms);
/* SENDING -> FAILED, and the same result goes to another destination instead: a new PENDING
 * delivery (none when that destination has one already). */
int queue_redirect_delivery(struct queue *queue, int64_t delivery_id, const char *destination,
                            const struct queue_attempt *attempt, int64_t now_ms);
/* SENDING -> PENDING, attempts - 1: given back untried (drain, a courier that never began it). */
int queue_return_delivery(struct queue *queue, int64_t delivery_id, const char *why,
                          int64_t now_ms);

/*
 * What an N-EVENT-REPORT says of one instance: REQUESTED -> COMMITTED | FAILED. The same told again
 * changes nothing; -ENOENT when no SENT delivery of this instance is under this transaction.
 */
int queue_delivery_committed(struct queue *queue, const char *transaction_uid,
                             const char *sop_instance_uid, bool committed, enum code code,
                             const char *message, int64_t now_ms);
/* SENT, commitment NONE -> FAILED: the destination has the instance and refused the request for its
 * commitment. */
int queue_commitment_refused(struct queue *queue, int64_t delivery_id,
                             const struct queue_attempt *attempt, int64_t now_ms);
/* The delivery that it would be about; -ENOENT likewise. */
int queue_find_commitment(struct queue *queue, const char *transaction_uid,
                          const char *sop_instance_uid, struct queue_delivery *delivery);
/* SENT deliveries of a destination whose commitment was REQUESTED before a time, oldest first, at
 * most `limit`. */
int queue_overdue_commitments(struct queue *queue, const char *destination, int64_t before_ms,
                              size_t limit, struct queue_delivery **deliveries, size_t *count);

/*
 * An operator's resend: SENT | DELAYED | FAILED -> PENDING with attempts 0, at once due. One of
 * delivery, job and destination is set. One delivery named by its id may also be CANCELLED (-EAGAIN
 * when it is PENDING or SENDING, -ESTALE when its result is gone); of a job or a destination those
 * that cannot be sent again are passed over, of a destination also results that a newer revision
 * has replaced; *count may be 0. -ENOENT when there is no such delivery or job, or the destination
 * never had one.
 */
struct queue_resend {
    int64_t delivery_id, job_id; /* 0: not set */
    const char *destination;     /* NULL: not set */
    bool not_arrived;            /* only FAILED and DELAYED ones */
};

int queue_resend(struct queue *queue, const struct queue_resend *which, int64_t now_ms,
                 int64_t *count);

/* --------------------------------------------------------------------- files, the daemon ---- */

/* Of every instance and object. What visit returns but 0 ends it, and is returned. */
int queue_each_path(struct queue *queue, int (*visit)(void *context, const char *path),
                    void *context);
/* Of instances and objects whose files are there, by path, behind `after`; free each and the array. */
int queue_paths(struct queue *queue, const char *after, size_t limit, char ***paths, size_t *count);
/* A file of a row is gone: an event and a flag on the series (missing_files). */
int queue_report_missing(struct queue *queue, const char *path, int64_t now_ms);

/* The daemon's own life: START, STOP, WORKER_DIED ... as an event row. */
int queue_note(struct queue *queue, const char *kind, const char *detail, int64_t now_ms);

/* What came of reading the configuration. */
struct queue_configuration {
    const char *cause;    /* "start", "command" or "signal" */
    const char *asked_by; /* the user of a command; "" */
    const char *files;    /* one per line, the main file first */
    const char *reason;   /* why it was refused; "": it is in force */
};

/* Stores it, and for all but a start the event RELOAD or RELOAD_FAILED. */
int queue_set_configuration(struct queue *queue, const struct queue_configuration *is,
                            int64_t now_ms);

/* Checks the invariants at the head of transaction.c: 0, -EUCLEAN and what is wrong, or why it
 * could not be read. For tests; without NDEBUG every commit checks and aborts. */
int queue_check(struct queue *queue, struct error *error);

#endif
