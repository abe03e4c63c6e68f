/*
 * pull_query.h - a source (config.h) is asked what it has of a key of noctule pull, and told to send it: what the courier and
 * `noctule pull --dry-run` have in common. Calls block, within what the source is configured to take, and make an
 * association each. Any thread, after dicom_init.
 */
#ifndef NOCTULE_SERVICE_COMMON_PULL_PULL_QUERY_H
#define NOCTULE_SERVICE_COMMON_PULL_PULL_QUERY_H

#include "config/config.h"
#include "dicom/net/scu_query.h"

#include <stdatomic.h>

struct pull_asking {
    const struct conf *conf;
    const struct conf_source *source;
    struct dicom_tls *tls; /* a client's; NULL: none could be opened */
    const atomic_bool
        *stop; /* once true it ends, as soon as the peer lets it: -ECANCELED; NULL: never */
};

/* One of them is what is asked for, the others are "". */
struct pull_key {
    const char *accession_number, *study_uid, *series_uid;
};

/* Each once: a study with series_uid "", or a series, as the source's level says; a series where one was asked for. */
struct pull_found {
    struct dicom_match *parts;
    size_t count;
};

/* Once, whoever says it again: 0, -E2BIG beyond LIMIT_PULL_MATCHES, or -ENOMEM. */
int pull_found_add(struct pull_found *found, const struct dicom_match *match);

/*
 * Also 0 when there is nothing of it. How many instances a study has that its archive does not say is what its
 * series have together. What a failure means dicom_outcome_of says. Codes: those of dicom_connect and dicom_find,
 * FIND_FAILED for more than LIMIT_PULL_MATCHES, TLS_FAILED. Free the parts, also then.
 */
int pull_find(const struct pull_asking *asking, const struct pull_key *key,
              struct pull_found *found, struct dicom_answer *answer, struct error *error);

/* Codes: those of dicom_connect and dicom_move, TLS_FAILED. */
int pull_move(const struct pull_asking *asking, const char *study_uid, const char *series_uid,
              struct dicom_answer *answer, struct error *error);

#endif
