/* validate_result.h - the result of a validation: its decision, as text, as the record for the daemon, and as a page. */
#ifndef NOCTULE_SERVICE_CLI_VALIDATE_VALIDATE_RESULT_H
#define NOCTULE_SERVICE_CLI_VALIDATE_VALIDATE_RESULT_H

#include "service/cli/validate/validate_case.h"

#include <stdio.h>

/* A validation needs so many patients, and a range of images so many of them (v_validated_ranges). */
#define VALIDATE_PATIENTS       20
#define VALIDATE_RANGE_PATIENTS 5

/* Images of one scanner, kernel and thickness. */
struct validate_range {
    const struct validate_case *first; /* one of them */
    size_t patients, cases, done;
    double noise[2]; /* of those that are DONE; NAN: not measured */
};

struct validate_result {
    bool passed;
    char why[200]; /* "": passed */
    size_t patients, cases, done, others, others_done, wrong;
    double share_95; /* with 95 % confidence, no larger share of results is wrong and DONE; NAN if some are */
    struct validate_range *ranges; /* one per case, of which `range_count` are used; free with free() */
    size_t range_count;
};

/* Decides the validation. Returns 0 or -ENOMEM. */
int validate_decide(const struct validate_run *run, struct validate_result *result);
void validate_print(const struct validate_run *run, const struct validate_result *result, FILE *out);
/* Writes the record for queue_add_validation(). Returns 0 or -ENOMEM. */
int validate_put_record(const struct validate_run *run, const struct validate_result *result, FILE *out);
/* Writes the page, with pictures of the five cases of lowest agreement. */
void validate_put_html(const struct validate_run *run, const struct validate_result *result, FILE *out);

#endif
