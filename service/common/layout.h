/* layout.h - files and folders below the root folder. All except the inboxes must be on one file system. */
#ifndef NOCTULE_SERVICE_COMMON_LAYOUT_H
#define NOCTULE_SERVICE_COMMON_LAYOUT_H

#include "base/error.h"

#include <stdbool.h>

#define LAYOUT_DATABASE      "noctule.db"
#define LAYOUT_DATABASE_MADE "database.made"  /* marker: see below */
#define LAYOUT_LOCK          "lock"           /* flock: one daemon per root */
#define LAYOUT_CLUSTER_ID    "cluster.id"     /* marks Slurm jobs as submitted by this root */
#define LAYOUT_PSEUDONYM_KEY "identifier.key" /* key of pseudonym.h */
#define LAYOUT_INCOMING      "incoming"       /* *.part: files being received */
#define LAYOUT_SERIES        "series"         /* series/<Series Instance UID>/<SOP Instance UID>.dcm */
#define LAYOUT_QUARANTINE    "quarantine"     /* <name>, with <name>.reason.json next to it */
#define LAYOUT_JOBS          "jobs"           /* <job>.job: the job spec for a worker */
#define LAYOUT_OUTBOX        "outbox"         /* outbox/<job>/seg.dcm ... */
/* released/<n>: file n of the quarantine, to be received again. */
#define LAYOUT_RELEASED "released"
/* removed/<n>: moved away, to be deleted (db/retention_rows.h). */
#define LAYOUT_REMOVED   "removed"
#define LAYOUT_CONVERTED "converted" /* unnamed files of senders (sender_form.h) */
#define LAYOUT_PULL      "pull"      /* pull/<batch>: accession numbers to retrieve (pull_accessions.c) */
#define LAYOUT_RUN       "run"
/* programs/<run>/mask and output.txt; work folders of attempts next to them. */
#define LAYOUT_PROGRAMS "programs"
/* series/<...>/<SOP>+N.dcm has replaced <SOP>.dcm, which then is a link to "+N". */
#define LAYOUT_REPLACED       '+'
#define LAYOUT_CONTROL_SOCKET "run/control.sock"
/* The last report that was given to report.command. */
#define LAYOUT_REPORT       "run/report.html"
#define LAYOUT_SLURM_SCRIPT "run/slurm-step"   /* the script for sbatch */
#define LAYOUT_CONFIG       "run/noctule.conf" /* the configuration in force, for the children */

/* Prefix of the source of a file in released/. The number of the file follows. */
#define RELEASED_SOURCE "released:"

/* Returns the source of instances from an inbox, "inbox:<path>", as database rows store it. The
 * caller must free it. Returns NULL if memory is short. */
char *layout_inbox_source(const char *inbox);

/* A root may have lost its database. A new database would run all series again and send their
 * results again. The daemon therefore marks a root that has one. */

/* Writes the marker file that the root has a database. Returns 0 or -errno. */
int layout_mark_database(const char *root);

/* Returns whether the root has the marker or contains series, results or quarantined files. */
bool layout_had_database(const char *root);

/* Returns whether the database file does not exist or is empty. */
bool layout_lacks_database(const char *root);

/* Sets the error DATABASE_LOST. Returns -ENODATA. */
int layout_refuse_database(const char *root, struct error *error);

#endif
