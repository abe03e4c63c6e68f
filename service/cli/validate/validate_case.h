/*
 * validate_case.h - runs a pipeline on series of the site, and compares its results with references.
 */
#ifndef NOCTULE_SERVICE_CLI_VALIDATE_VALIDATE_CASE_H
#define NOCTULE_SERVICE_CLI_VALIDATE_VALIDATE_CASE_H

#include "service/cli/compare/compare_input.h"
#include "service/common/pseudonym.h"
#include "service/common/trust.h"
#include "service/pipeline/job_lane.h"

/* A stack of a series. */
struct validate_case {
    struct unit *unit;
    bool other;                   /* of another region, which must not be DONE */
    bool complete;                /* each segment with `trust` was compared */
    bool wrong;                   /* DONE, though of another region or below the lowest Dice */
    char patient[PSEUDONYM_SIZE]; /* hashed */
    char series[PSEUDONYM_SIZE];
    struct trust_images images; /* borrowed from the headers */
    char outcome[16];           /* "DONE", "REVIEW", "REJECT", ... */
    char checks[1024];          /* broken expectations, or the reason of another outcome */
    struct compare_rows rows;
    double margin; /* smallest difference between a Dice and its limit; INFINITY without a comparison */
};

struct validate_run {
    const struct conf *conf;
    const struct conf_pipeline *pipeline; /* as configured */
    struct compare_request request;
    struct pseudonym_key key;
    const char *output; /* folder of all results */
    size_t others;      /* the first file of other regions */
    struct job_lane *lane;
    struct compare_input input;
    struct units units;
    struct validate_case *cases;
    size_t count;
};

/*
 * Runs the pipeline on each unit, with references as further segments of its preview, and fills its case. A series without
 * a reference that is not of another region is left out. Returns 0 or -ENOMEM.
 */
int validate_all(struct validate_run *run, const struct pipeline_watch *watch);
void validate_free(struct validate_run *run);

#endif
