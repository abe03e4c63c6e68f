/*
 * run_cohort.h - the tables of `noctule run --cohort`: its series and jobs in a database as the service keeps them, which
 * exists while the command runs, and the tables that `noctule cohort` makes of it.
 */
#ifndef NOCTULE_SERVICE_CLI_RUN_COHORT_H
#define NOCTULE_SERVICE_CLI_RUN_COHORT_H

#include "service/cli/input/input.h"
#include "service/cli/scratch.h"
#include "service/common/pseudonym.h"
#include "service/pipeline/pipeline_report.h"

struct queue;

struct run_cohort {
    const struct conf *conf;
    const struct conf_pipeline *pipeline;
    const char *settings; /* its text */
    const struct scratch *scratch;
    const char *output; /* folder of the tables */
    bool unnamed;       /* the images are of NIfTI and NRRD, without a Patient ID */
    char *path;         /* of the database; NULL: not open */
    struct queue *queue;
    struct pseudonym_key key;
    enum conf_identifiers identifiers;
    int64_t *series; /* id of the series of each unit */
};

/* Opens the database in the scratch folder, and reads the key of pseudonyms. Must be called before the command is
 * confined. Returns EXIT_OK, or EXIT_PARTIAL after an error message. The caller must call run_cohort_close in either
 * case. */
int run_cohort_open(struct run_cohort *cohort);
/* Removes earlier tables. Adds all series with their stacks, and the unreadable files. Returns likewise. */
int run_cohort_add(struct run_cohort *cohort, const struct units *units, const struct headers *headers,
                   char *const *paths);
/* Adds the job of a unit with its outcome. Returns likewise. */
int run_cohort_add_job(struct run_cohort *cohort, const struct units *units, const struct unit *unit,
                       const struct pipeline_report *report);
/* Writes cohort.csv, dictionary.csv, reasons.csv and failed.csv; if no job has features, failed.csv alone. Returns
 * EXIT_OK if all are written. */
int run_cohort_write(const struct run_cohort *cohort);
void run_cohort_close(struct run_cohort *cohort);

#endif
