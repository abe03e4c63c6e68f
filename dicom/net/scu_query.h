/*
 * scu_query.h - asking an archive what it has (C-FIND) and making it send that somewhere (C-MOVE), by
 * the study root model (PS3.4 Annex C), over an association of scu.h, whose rules hold here too.
 */
#ifndef NOCTULE_DICOM_SCU_QUERY_H
#define NOCTULE_DICOM_SCU_QUERY_H

#include "dicom/net/scu.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_FIND_CLASS     "1.2.840.10008.5.1.4.1.2.2.1"
#define DICOM_MOVE_CLASS     "1.2.840.10008.5.1.4.1.2.2.2"
#define DICOM_ACCESSION_SIZE 17 /* 16 characters and the end */

enum dicom_level { DICOM_LEVEL_STUDY, DICOM_LEVEL_SERIES };

/* What is asked for; NULL or "": any. */
struct dicom_query {
    enum dicom_level level;
    const char *accession_number; /* of studies: ASCII, and no pattern */
    const char *study_uid;
    const char *series_uid; /* of series */
};

struct dicom_match {
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE]; /* "" of a study */
    char accession_number[DICOM_ACCESSION_SIZE];
    char modality[DICOM_AE_SIZE];
    int32_t instances; /* of the series, or the study; -1: the peer does not say */
};

/*
 * Asks, and hands over each match; what `visit` returns but true ends it (C-CANCEL), which is no
 * failure. A match that is not what was asked for is FIND_FAILED: some peers pass over keys that they
 * do not know, and answer with all that they have. Other codes: FIND_REFUSED, PEER_ABORTED,
 * NO_PRESENTATION_CONTEXT, OUT_OF_MEMORY; FIND_REFUSED with -EINVAL for a key that cannot be asked for.
 */
int dicom_find(struct dicom_association *association, const struct dicom_query *query,
               bool (*visit)(void *context, const struct dicom_match *match), void *context,
               struct dicom_answer *answer, struct error *error);

/* How far a C-MOVE is, by what the peer says; -1: it does not. */
struct dicom_moved {
    int32_t remaining, completed, failed, warned;
};

/*
 * Makes the peer send a study, or a series (both UIDs), to an AE title that it knows. `progress` is
 * told of each pending answer, and ends it (C-CANCEL) with other than true: -ECANCELED, no code. Each
 * answer has dimse_seconds of the peer. What was sent before a failure stays sent; *moved has the last
 * that was said. Codes: MOVE_DESTINATION_UNKNOWN, MOVE_INCOMPLETE (-EREMOTEIO), MOVE_REFUSED, MOVE_FAILED, and
 * those of dicom_find that are not of matches.
 */
int dicom_move(struct dicom_association *association, const struct dicom_query *query,
               const char *destination,
               bool (*progress)(void *context, const struct dicom_moved *moved), void *context,
               struct dicom_moved *moved, struct dicom_answer *answer, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
