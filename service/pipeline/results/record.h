/* record.h - job.json: steps, settings and the time of each stage. No patient data. */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_RECORD_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_RECORD_H

#include "service/common/jobs/job_file.h"
#include "service/common/json.h"
#include "service/pipeline/pipeline_report.h"

struct record {
    const struct pipeline_report *report;
    const struct job_spec *spec;
    const char *pipeline; /* name; "" if the settings could not be read */
    int threads;
};

/* Writes one object; `key` is NULL at the top and inside arrays. */
void record_put(struct json *json, const char *key, const struct record *record);

/* Writes the whole document to a descriptor, which stays open. Returns 0 or -errno. */
int record_write(int fd, const struct record *record);

#endif
