#include "service/common/pull/pull_query.h"

#include "base/limits.h"
#include "dicom/dicom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
pull_request_is_stopped(const struct pull_request *request)
{
    return request->stop && atomic_load(request->stop);
}

/* Opens an association. Must not connect without TLS if the source requires it. */
static int
pull_request_connect(const struct pull_request *request, const char *sop_class, struct dicom_association **association,
                     struct dicom_answer *answer, struct error *error)
{
    const struct conf_source *source = request->source;
    const struct dicom_context contexts[] = {{sop_class, DICOM_EXPLICIT_LITTLE}, {sop_class, DICOM_IMPLICIT_LITTLE}};
    *association = NULL;
    *answer = (struct dicom_answer){-1, -1, -1, -1};
    if (source->tls && !request->tls)
        return error_set(error, -ENOKEY, CODE_TLS_FAILED,
                         "Our TLS certificate, key or trusted CAs cannot be used: see the log.");
    const struct dicom_peer peer = {.calling_ae = source->calling_ae_title,
                                    .called_ae = source->ae_title,
                                    .host = source->host,
                                    .port = source->port,
                                    .tls = source->tls ? request->tls : NULL,
                                    .certificate = source->certificate,
                                    .connect_seconds = source->connect_seconds,
                                    .acse_seconds = request->conf->dicom.acse_seconds,
                                    .dimse_seconds = source->dimse_seconds,
                                    .max_pdu = (uint32_t)request->conf->dicom.max_pdu_kib << 10};
    return dicom_connect(&peer, contexts, 2, association, answer, error);
}

/* ------------------------------------------------------------------------------- finding --- */

/* Matches of one C-FIND. */
struct pull_matches {
    const struct pull_request *request;
    struct pull_found found;
    int error; /* reason for stopping: -ECANCELED, -ENOMEM, -E2BIG */
};

int
pull_found_add(struct pull_found *found, const struct dicom_match *match)
{
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->parts[i].study_uid, match->study_uid) == 0 &&
            strcmp(found->parts[i].series_uid, match->series_uid) == 0)
            return 0;
    if (found->count == LIMIT_PULL_MATCHES)
        return -E2BIG;
    struct dicom_match *grown = reallocarray(found->parts, found->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    found->parts = grown;
    grown[found->count++] = *match;
    return 0;
}

static bool
pull_request_on_match(void *context, const struct dicom_match *match)
{
    struct pull_matches *matches = context;
    matches->error = pull_request_is_stopped(matches->request) ? -ECANCELED : pull_found_add(&matches->found, match);
    return matches->error == 0;
}

static int
pull_request_fail(const struct pull_request *request, int rc, struct error *error)
{
    const char *name = request->source->name;
    if (rc == -E2BIG)
        return error_set(error, rc, CODE_FIND_FAILED,
                         "%s answered C-FIND with more than %d matches. Check that it supports queries by this key.",
                         name, LIMIT_PULL_MATCHES);
    if (rc == -ENOMEM)
        return error_set(error, rc, CODE_OUT_OF_MEMORY, "Not enough memory for the matches of %s.", name);
    return error_set(error, rc, CODE_NONE, "The retrieval was stopped.");
}

static int
pull_request_find(const struct pull_request *request, struct dicom_association *association,
                  const struct dicom_query *query, struct pull_found *found, struct dicom_answer *answer,
                  struct error *error)
{
    struct pull_matches matches = {.request = request};
    int rc = pull_request_is_stopped(request) ? -ECANCELED : 0;
    if (rc == 0)
        rc = dicom_find(association, query, pull_request_on_match, &matches, answer, error);
    else
        matches.error = rc;
    *found = matches.found;
    return matches.error ? pull_request_fail(request, matches.error, error) : rc;
}

/* Returns the instances of all series, or -1 if one is unknown. */
static int32_t
pull_found_sum(const struct pull_found *series)
{
    int64_t sum = 0;
    for (size_t i = 0; i < series->count; i++) {
        if (series->parts[i].instances < 0)
            return -1;
        sum += series->parts[i].instances;
    }
    return series->count == 0 || sum > INT32_MAX ? -1 : (int32_t)sum;
}

/* Adds a study, or its series if the source retrieves per series. If the archive gives no instance
 * count of the study, sums those of its series. */
static int
pull_request_add_study(const struct pull_request *request, struct dicom_association *association,
                       struct dicom_match *study, struct pull_found *found, struct dicom_answer *answer,
                       struct error *error)
{
    const bool apart = request->source->level == CONF_PULL_SERIES;
    const struct dicom_query query = {.level = DICOM_LEVEL_SERIES, .study_uid = study->study_uid};
    struct pull_found series = {0};
    int rc = 0;
    if (apart || study->instances < 0)
        rc = pull_request_find(request, association, &query, &series, answer, error);
    if (rc == 0 && study->instances < 0)
        study->instances = pull_found_sum(&series);
    int added = 0;
    if (rc == 0 && (!apart || series.count == 0))
        added = pull_found_add(found, study);
    for (size_t i = 0; rc == 0 && added == 0 && apart && i < series.count; i++)
        added = pull_found_add(found, &series.parts[i]);
    free(series.parts);
    return added ? pull_request_fail(request, added, error) : rc;
}

int
pull_find(const struct pull_request *request, const struct pull_key *key, struct pull_found *found,
          struct dicom_answer *answer, struct error *error)
{
    const struct dicom_query series = {
        .level = DICOM_LEVEL_SERIES, .study_uid = key->study_uid, .series_uid = key->series_uid};
    const struct dicom_query study = {
        .level = DICOM_LEVEL_STUDY, .accession_number = key->accession_number, .study_uid = key->study_uid};
    struct pull_found studies = {0};
    struct dicom_association *association;
    *found = (struct pull_found){0};
    int rc = pull_request_connect(request, DICOM_FIND_CLASS, &association, answer, error);
    if (rc == 0 && *key->series_uid)
        rc = pull_request_find(request, association, &series, found, answer, error);
    else if (rc == 0)
        rc = pull_request_find(request, association, &study, &studies, answer, error);
    for (size_t i = 0; rc == 0 && i < studies.count; i++)
        rc = pull_request_add_study(request, association, &studies.parts[i], found, answer, error);
    free(studies.parts);
    dicom_release(association);
    return rc;
}

/* ------------------------------------------------------------------------ earlier study --- */

/* Orders by date, the latest first, so that equal answers give an equal choice. */
static int
prior_compare(const void *a, const void *b)
{
    const struct dicom_match *left = a, *right = b;
    const int order = strcmp(right->date, left->date);
    return order ? order : strcmp(left->study_uid, right->study_uid);
}

/* Returns whether the list "CT\\PT" has the modality, or is unknown. */
static bool
prior_may_have(const char *modalities, const char *modality)
{
    const size_t length = strlen(modality);
    for (const char *at = modalities; *at;) {
        const size_t word = strcspn(at, "\\");
        if (word == length && strncmp(at, modality, length) == 0)
            return true;
        at += word + (at[word] != '\0');
    }
    return !*modalities;
}

/* Returns whether the study can be the earlier one, before its series are known. */
static bool
prior_is_candidate(const struct dicom_instance *image, const struct dicom_match *study)
{
    const char *issuer = strchr(image->patient, '\\');
    const bool is_other = issuer && *study->issuer && strcmp(issuer + 1, study->issuer) != 0;
    return !is_other && strcmp(study->date, image->about.study_date) < 0 &&
           strcmp(study->study_uid, image->study_uid) != 0 && prior_may_have(study->modalities, image->modality);
}

/* Sets whether the study has a series like that of the image. */
static int
pull_request_check_prior(const struct pull_request *request, struct dicom_association *association,
                         const struct dicom_instance *image, const char *study_uid, bool *fits,
                         struct dicom_answer *answer, struct error *error)
{
    const struct dicom_query query = {.level = DICOM_LEVEL_SERIES, .study_uid = study_uid, .body_part = true};
    struct pull_found series = {0};
    const int rc = pull_request_find(request, association, &query, &series, answer, error);
    *fits = false;
    for (size_t i = 0; i < series.count && rc == 0; i++) {
        const struct dicom_match *part = &series.parts[i];
        *fits |= strcmp(part->modality, image->modality) == 0 &&
                 (!*part->body_part || !*image->body_part || strcmp(part->body_part, image->body_part) == 0);
    }
    free(series.parts);
    return rc;
}

static int
pull_request_find_prior(const struct pull_request *request, const struct dicom_instance *image,
                        struct pull_found *found, struct dicom_answer *answer, struct error *error)
{
    char patient[DICOM_LO_SIZE];
    struct dicom_association *association;
    struct pull_found studies = {0};
    snprintf(patient, sizeof patient, "%.*s", (int)strcspn(image->patient, "\\"), image->patient);
    const struct dicom_query query = {
        .level = DICOM_LEVEL_STUDY, .patient_id = patient, .date = image->about.study_date};
    int rc = pull_request_connect(request, DICOM_FIND_CLASS, &association, answer, error);
    if (rc == 0)
        rc = pull_request_find(request, association, &query, &studies, answer, error);
    if (rc == 0 && studies.count > 0)
        qsort(studies.parts, studies.count, sizeof *studies.parts, prior_compare);
    bool fits = false;
    for (size_t i = 0; i < studies.count && rc == 0 && !fits; i++) {
        struct dicom_match *study = &studies.parts[i];
        if (prior_is_candidate(image, study))
            rc = pull_request_check_prior(request, association, image, study->study_uid, &fits, answer, error);
        if (rc == 0 && fits)
            rc = pull_request_add_study(request, association, study, found, answer, error);
    }
    free(studies.parts);
    dicom_release(association);
    return rc;
}

int
pull_find_prior(const struct pull_request *request, const char *file, struct pull_found *found,
                struct dicom_answer *answer, struct error *error)
{
    struct dicom_instance *image;
    *found = (struct pull_found){0};
    *answer = (struct dicom_answer){-1, -1, -1, -1};
    int rc = dicom_peek(file, &image, error);
    if (rc)
        return rc;
    rc = pull_request_find_prior(request, image, found, answer, error);
    dicom_instance_free(image);
    return rc;
}

/* -------------------------------------------------------------------------------- moving --- */

static bool
pull_request_on_progress(void *context, const struct dicom_moved *moved)
{
    (void)moved;
    return !pull_request_is_stopped(context);
}

int
pull_move(const struct pull_request *request, const char *study_uid, const char *series_uid,
          struct dicom_answer *answer, struct error *error)
{
    const struct dicom_query query = {.level = *series_uid ? DICOM_LEVEL_SERIES : DICOM_LEVEL_STUDY,
                                      .study_uid = study_uid,
                                      .series_uid = series_uid};
    struct pull_request stoppable = *request;
    struct dicom_association *association;
    struct dicom_moved moved;
    int rc = pull_request_connect(request, DICOM_MOVE_CLASS, &association, answer, error);
    if (rc == 0)
        rc = dicom_move(association, &query, request->source->move_destination, pull_request_on_progress, &stoppable,
                        &moved, answer, error);
    dicom_release(association);
    return rc;
}
