/*
 * scu_query.h - queries an archive (C-FIND) and retrieves from it (C-MOVE), in the study root model
 * (PS3.4 Annex C), over an association of scu.h. The rules of scu.h apply.
 */
#ifndef NOCTULE_DICOM_NET_SCU_QUERY_H
#define NOCTULE_DICOM_NET_SCU_QUERY_H

#include "dicom/net/scu.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_FIND_CLASS     "1.2.840.10008.5.1.4.1.2.2.1"
#define DICOM_MOVE_CLASS     "1.2.840.10008.5.1.4.1.2.2.2"
#define DICOM_ACCESSION_SIZE 17 /* 16 characters and the NUL */

enum dicom_level { DICOM_LEVEL_STUDY, DICOM_LEVEL_SERIES };

/* Keys of a query; NULL or "" matches any value. */
struct dicom_query {
    enum dicom_level level;
    const char *accession_number; /* study level: ASCII, without wildcards */
    const char *study_uid;
    const char *series_uid; /* series level */
    /* Study level: studies of this patient until this date (YYYYMMDD), both or none. The Patient ID must be ASCII without
     * wildcards. */
    const char *patient_id, *date;
    bool body_part; /* series level: matches have it */
};

struct dicom_match {
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* "" at study level */
    char accession_number[DICOM_ACCESSION_SIZE];
    char modality[DICOM_AE_SIZE], body_part[DICOM_AE_SIZE]; /* series level; "": unknown */
    /* Study level, of a query by patient_id; the first and the third are never "". */
    char patient_id[DICOM_LO_SIZE], issuer[DICOM_LO_SIZE], date[DICOM_AE_SIZE];
    char modalities[DICOM_LO_SIZE]; /* separated by \; "": unknown */
    int32_t instances;              /* of the series or the study; -1 if the peer does not return it */
};

/*
 * Sends a query and calls `visit` for each match. If `visit` returns false, cancels the query (C-CANCEL) and succeeds.
 * Fails with FIND_FAILED on a match that contradicts the keys: some peers ignore keys that they do not support and
 * return all they have. PRIOR_OTHER_PATIENT: the match is of another patient than the query, has no Patient ID,
 * or is not until that date. Other codes: FIND_REFUSED, PEER_ABORTED, NO_PRESENTATION_CONTEXT, OUT_OF_MEMORY. Returns
 * -EINVAL with FIND_REFUSED for a key that cannot be sent.
 */
int dicom_find(struct dicom_association *association, const struct dicom_query *query,
               bool (*visit)(void *context, const struct dicom_match *match), void *context,
               struct dicom_answer *answer, struct error *error);

/* Progress of a C-MOVE as the peer reports it; -1 if absent. */
struct dicom_moved {
    int32_t remaining, completed, failed, warned;
};

/*
 * Makes the peer send a study, or a series (both UIDs), to an AE title that it knows. Calls `progress` for each pending
 * answer. If that returns false, cancels (C-CANCEL) and returns -ECANCELED without a code. Each answer must come within
 * dimse_seconds of the peer. Instances sent before a failure stay sent; *moved has the last reported numbers. Codes:
 * MOVE_DESTINATION_UNKNOWN, MOVE_INCOMPLETE (-EREMOTEIO), MOVE_REFUSED, MOVE_FAILED, and those of dicom_find, without
 * the ones about matches.
 */
int dicom_move(struct dicom_association *association, const struct dicom_query *query, const char *destination,
               bool (*progress)(void *context, const struct dicom_moved *moved), void *context,
               struct dicom_moved *moved, struct dicom_answer *answer, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
