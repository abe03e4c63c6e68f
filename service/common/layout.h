/*
 * layout.h - what lies where below the root folder. Everything but the inbox is on one file system.
 */
#ifndef NOCTULE_SERVICE_COMMON_LAYOUT_H
#define NOCTULE_SERVICE_COMMON_LAYOUT_H

#define LAYOUT_DATABASE      "noctule.db"
#define LAYOUT_DATABASE_MADE "database.made"  /* lost_database.h */
#define LAYOUT_LOCK          "lock"           /* flock: one daemon a root */
#define LAYOUT_CLUSTER_ID    "cluster.id"     /* by which Slurm jobs are known to be of this root */
#define LAYOUT_PSEUDONYM_KEY "identifier.key" /* pseudonym.h */
#define LAYOUT_INCOMING      "incoming"       /* *.part while a file is being taken in */
#define LAYOUT_SERIES        "series"     /* series/<Series Instance UID>/<SOP Instance UID>.dcm */
#define LAYOUT_QUARANTINE    "quarantine" /* <name> and <name>.reason.json beside it */
#define LAYOUT_JOBS          "jobs"       /* <job>.job: the spec handed to a worker */
#define LAYOUT_OUTBOX        "outbox"     /* outbox/<job>/seg.dcm ... */
#define LAYOUT_RELEASED      "released" /* released/<n>: quarantined file n, to be received again */
#define LAYOUT_REMOVED       "removed" /* removed/<n>: set aside, to be deleted (db/retention_rows.h) */
#define LAYOUT_PULL                                                                                \
    "pull" /* pull/<batch>: accession numbers that are asked for (pull_accessions.h) */
#define LAYOUT_RUN "run"
/* series/<...>/<SOP>+N.dcm has taken the place of <SOP>.dcm, which is a link to "+N" then. */
#define LAYOUT_REPLACED       '+'
#define LAYOUT_CONTROL_SOCKET "run/control.sock"
#define LAYOUT_REPORT         "run/report.html"  /* the last that was handed over */
#define LAYOUT_SLURM_SCRIPT   "run/slurm-step"   /* what sbatch is given */
#define LAYOUT_CONFIG         "run/noctule.conf" /* the configuration in force, for the children */

/* Source of a file in released/, before its number. */
#define RELEASED_SOURCE "released:"

/* What rows say of an instance that came from an inbox: "inbox:<path>". The caller's to free; NULL:
 * no memory. */
char *layout_inbox_source(const char *inbox);

#endif
