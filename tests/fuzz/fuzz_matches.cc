/*
 * fuzz_matches.cc - any bytes as an archive's answer to a query (C-FIND) or a retrieval (C-MOVE), after a good
 * A-ASSOCIATE-AC. The first byte selects the operation, the level (study or series), the time of cancellation, and the key (study or patient).
 * Matches must match the query, and the association must end.
 */
#include "dicom/net/scu_association.hh"
#include "dicom/net/scu_query.h"

#include "tests/fuzz/accept.hh"
#include "tests/fuzz/must.h"
#include "tests/fuzz/session.hh"

#include <cerrno>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

namespace
{

enum : uint8_t { MOVES = 1, OF_SERIES = 2, CANCELS = 4, OF_PATIENT = 8 };

const struct dicom_context contexts[] = {{DICOM_FIND_CLASS, "1.2.840.10008.1.2"},
                                         {DICOM_MOVE_CLASS, "1.2.840.10008.1.2"}};

struct visit {
    const struct dicom_query &query;
    bool goes_on;
};

bool
on_match(void *context, const struct dicom_match *match)
{
    const auto *visit = static_cast<const struct visit *>(context);
    if (visit->query.patient_id)
        must(command_uid_is_valid(match->study_uid) && std::strcmp(match->date, visit->query.date) <= 0);
    else
        must(std::strcmp(match->study_uid, visit->query.study_uid) == 0);
    must(visit->query.level == DICOM_LEVEL_STUDY || command_uid_is_valid(match->series_uid));
    must(match->instances >= -1);
    must(std::strlen(match->accession_number) < sizeof match->accession_number);
    return visit->goes_on;
}

bool
on_progress(void *context, const struct dicom_moved *moved)
{
    must(moved->remaining >= -1 && moved->completed >= -1 && moved->failed >= -1 && moved->warned >= -1);
    return static_cast<const struct visit *>(context)->goes_on;
}

void
ask(struct dicom_association *association, uint8_t how)
{
    const bool series = (how & OF_SERIES) != 0;
    const bool patient = !series && (how & MOVES) == 0 && (how & OF_PATIENT) != 0;
    struct dicom_query query = {};
    query.level = series ? DICOM_LEVEL_SERIES : DICOM_LEVEL_STUDY;
    query.accession_number = "";
    query.study_uid = patient ? "" : "1.2.3";
    query.series_uid = series && (how & MOVES) ? "1.2.3.4" : "";
    query.patient_id = patient ? "P1" : nullptr;
    query.date = patient ? "20240101" : nullptr;
    query.body_part = series;
    struct visit visit = {query, (how & CANCELS) == 0};
    struct dicom_answer answer;
    struct dicom_moved moved;
    struct error error = {};
    if (how & MOVES) {
        const int rc = dicom_move(association, &query, "NOCTULE", on_progress, &visit, &moved, &answer, &error);
        must(rc == 0 || rc == -ECANCELED ? error.code == CODE_NONE : error.code != CODE_NONE);
    } else {
        const int rc = dicom_find(association, &query, on_match, &visit, &answer, &error);
        must((rc == 0) == (error.code == CODE_NONE));
    }
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    std::vector<uint8_t> words = accept_all(contexts, 2);
    words.insert(words.end(), bytes + 1, bytes + size);
    const Session session(words);
    const struct dicom_peer peer = {"NOCTULE", "FUZZ", "nowhere", 104, nullptr, nullptr, 1, 1, 1, 0, DICOM_PDU_MIN};
    auto association = std::make_unique<dicom_association>(peer);
    struct dicom_answer answer;
    struct error error = {};
    scu::clear_answer(&answer);
    if (scu::negotiate(*association, session.fd(), peer, contexts, 2, &answer, &error) == 0)
        ask(association.get(), bytes[0]);
    dicom_release(association.release());
    return 0;
}
