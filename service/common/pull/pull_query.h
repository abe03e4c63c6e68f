/*
 * pull_query.h - query a source (config.h) for the studies and series of a key, and retrieve them.
 * Used by the `courier` process and `noctule pull --dry-run`.
 *
 * Calls block for at most the source's configured times. Each call opens an association. Thread-safe after dicom_init.
 */
#ifndef NOCTULE_SERVICE_COMMON_PULL_PULL_QUERY_H
#define NOCTULE_SERVICE_COMMON_PULL_PULL_QUERY_H

#include "config/config.h"
#include "dicom/net/scu_query.h"

#include <stdatomic.h>

struct pull_request {
    const struct conf *conf;
    const struct conf_source *source;
    struct dicom_tls *tls; /* of a client; NULL: it could not be opened */
    /* If it becomes true, the call returns -ECANCELED as soon as the peer allows; NULL: never. */
    const atomic_bool *stop;
};

/* One of the keys is set, the others are "". */
struct pull_key {
    const char *accession_number, *study_uid, *series_uid;
};

/* The distinct matches: studies (series_uid "") or series, by the level of the source. If the key
 * is a series, it is a series. */
struct pull_found {
    struct dicom_match *parts;
    size_t count;
};

/* Adds a match unless it is already there. Returns 0, -E2BIG beyond LIMIT_PULL_MATCHES, or
 * -ENOMEM. */
int pull_found_add(struct pull_found *found, const struct dicom_match *match);

/* Finds the studies or series of a key. Returns 0, also if there are none. If the archive does not
 * give the number of instances of a study, it is summed over its series. dicom_outcome_of
 * classifies a failure. Codes: those of dicom_connect and dicom_find, FIND_FAILED for more than
 * LIMIT_PULL_MATCHES, TLS_FAILED. The caller must free found->parts, also after an error. */
int pull_find(const struct pull_request *request, const struct pull_key *key, struct pull_found *found,
              struct dicom_answer *answer, struct error *error);

/* Finds the latest study of the patient of a stored file that is earlier than the file's study and has a series of its
 * modality and, if both are known, its body part; as pull_find() does. Skips studies with another Issuer of Patient ID.
 * Other codes: PRIOR_OTHER_PATIENT, PRIOR_NO_KEY, those of dicom_peek. */
int pull_find_prior(const struct pull_request *request, const char *file, struct pull_found *found,
                    struct dicom_answer *answer, struct error *error);

/* Retrieves a study, or a series if `series_uid` is not "". Returns 0 or -errno. Codes: those of
 * dicom_connect and dicom_move, TLS_FAILED. */
int pull_move(const struct pull_request *request, const char *study_uid, const char *series_uid,
              struct dicom_answer *answer, struct error *error);

#endif
