/*
 * query.c - queries a peer like an archive (scu_query.h), and prints its answers, for the Python tests:
 *   query PORT CALLED find study ACCESSION            MATCH study series accession modality instances; ...
 *   query PORT CALLED find series STUDY [max]         STATUS 0x....; CODE message
 *   query PORT CALLED move DESTINATION STUDY SERIES [max]    PROGRESS and MOVED remaining completed failed warned; ...
 * Sends C-CANCEL after `max` matches or answers. An answer may take NOCTULE_QUERY_SECONDS, or 60 s.
 */
#include "dicom/net/scu_query.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
visit(void *context, const struct dicom_match *match)
{
    int *left = context;
    printf("MATCH %s %s %s %s %d\n", match->study_uid, match->series_uid, match->accession_number, match->modality,
           (int)match->instances);
    return --*left > 0;
}

static bool
progress(void *context, const struct dicom_moved *moved)
{
    int *left = context;
    printf("PROGRESS %d %d %d %d\n", (int)moved->remaining, (int)moved->completed, (int)moved->failed,
           (int)moved->warned);
    return --*left > 0;
}

static int
query_find(struct dicom_association *association, char **arguments, struct dicom_answer *answer, struct error *error)
{
    const bool series = strcmp(arguments[0], "series") == 0;
    const struct dicom_query query = {
        .level = series ? DICOM_LEVEL_SERIES : DICOM_LEVEL_STUDY,
        .accession_number = series ? NULL : arguments[1],
        .study_uid = series ? arguments[1] : NULL,
    };
    int left = arguments[2] ? atoi(arguments[2]) : 1000;
    return dicom_find(association, &query, visit, &left, answer, error);
}

static int
query_move(struct dicom_association *association, char **arguments, struct dicom_answer *answer, struct error *error)
{
    const struct dicom_query query = {
        .level = DICOM_LEVEL_SERIES, .study_uid = arguments[1], .series_uid = arguments[2]};
    struct dicom_moved moved;
    int left = arguments[3] ? atoi(arguments[3]) : 1000;
    const int rc = dicom_move(association, &query, arguments[0], progress, &left, &moved, answer, error);
    printf("MOVED %d %d %d %d\n", (int)moved.remaining, (int)moved.completed, (int)moved.failed, (int)moved.warned);
    return rc;
}

int
main(int argc, char **argv)
{
    static const struct dicom_context contexts[] = {
        {DICOM_FIND_CLASS, "1.2.840.10008.1.2"},
        {DICOM_MOVE_CLASS, "1.2.840.10008.1.2"},
    };
    const char *seconds = getenv("NOCTULE_QUERY_SECONDS");
    if (argc < 6)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    dicom_init();
    const struct dicom_peer peer = {.calling_ae = "NOCTULE",
                                    .called_ae = argv[2],
                                    .host = "127.0.0.1",
                                    .port = atoi(argv[1]),
                                    .connect_seconds = 60,
                                    .acse_seconds = 60,
                                    .dimse_seconds = seconds ? atof(seconds) : 60,
                                    .max_pdu = DICOM_PDU_MAX};
    struct dicom_association *association;
    struct dicom_answer answer;
    struct error error = {0};
    int rc = dicom_connect(&peer, contexts, 2, &association, &answer, &error);
    if (!rc) {
        rc = strcmp(argv[3], "find") == 0 ? query_find(association, argv + 4, &answer, &error)
                                          : query_move(association, argv + 4, &answer, &error);
        dicom_release(association);
    }
    printf("STATUS 0x%04X\n", (unsigned)answer.status & 0xFFFF);
    if (rc)
        printf("%s %s\n", code_name(error.code), error.message);
    return rc ? 1 : 0;
}
