#include "dicom/net/scu_query.h"

#include "dicom/net/answer_reader.hh"
#include "dicom/net/scu_association.hh"
#include "dicom/read/header.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace scu;

/* DIMSE statuses (PS3.4 C.4.1.1.4, C.4.2.1.5). */
enum : uint16_t {
    STATUS_PENDING = 0xFF00,
    STATUS_PENDING_KEYS = 0xFF01, /* a key is not supported */
    STATUS_CANCELLED = 0xFE00,
    STATUS_SOME_FAILED = 0xB000,
    STATUS_DESTINATION_UNKNOWN = 0xA801,
};

static bool
query_is_pending(uint16_t status)
{
    return status == STATUS_PENDING || status == STATUS_PENDING_KEYS;
}

/* ------------------------------------------------------------------------------- matches --- */

namespace
{

enum : uint32_t {
    TAG_STUDY_DATE = 0x00080020,
    TAG_ACCESSION_NUMBER = 0x00080050,
    TAG_MODALITY = 0x00080060,
    TAG_MODALITIES = 0x00080061,
    TAG_PATIENT_ID = 0x00100020,
    TAG_ISSUER = 0x00100021,
    TAG_BODY_PART = 0x00180015,
    TAG_STUDY_UID = 0x0020000D,
    TAG_SERIES_UID = 0x0020000E,
    TAG_STUDY_INSTANCES = 0x00201208,
    TAG_SERIES_INSTANCES = 0x00201209,
};

class MatchReader : public AnswerReader
{
  public:
    MatchReader(const uint8_t *bytes, size_t size, const struct transfer_syntax &syntax, struct dicom_match &match)
        : AnswerReader(bytes, size, syntax), match_(match)
    {
    }

  private:
    template <size_t Size> static bool copy(char (&to)[Size], const std::string &text)
    {
        if (text.size() >= Size || text.find('\0') != std::string::npos)
            return false;
        std::memcpy(to, text.c_str(), text.size() + 1);
        return true;
    }

    /* Copies an optional value; "": it is too long. */
    template <size_t Size> static bool copy_optional(char (&to)[Size], const std::string &text)
    {
        if (!copy(to, text))
            to[0] = '\0';
        return true;
    }

    bool take(uint32_t tag, const uint8_t *value, size_t size) override
    {
        const auto text = [&] { return header_trimmed(std::string(reinterpret_cast<const char *>(value), size)); };
        double number;
        switch (tag) {
        case TAG_STUDY_UID:
            return command_copy_uid(match_.study_uid, value, size);
        case TAG_SERIES_UID:
            return command_copy_uid(match_.series_uid, value, size);
        case TAG_ACCESSION_NUMBER:
            return copy(match_.accession_number, text());
        case TAG_MODALITY:
            return copy(match_.modality, text());
        case TAG_MODALITIES:
            return copy_optional(match_.modalities, text());
        case TAG_BODY_PART:
            return copy_optional(match_.body_part, text());
        case TAG_PATIENT_ID:
            return copy_optional(match_.patient_id, text());
        case TAG_ISSUER:
            return copy_optional(match_.issuer, text());
        case TAG_STUDY_DATE:
            return copy_optional(match_.date, text());
        case TAG_STUDY_INSTANCES:
        case TAG_SERIES_INSTANCES:
            if (text().empty())
                return true;
            if (!header_parse_number(text(), &number) || !(number >= 0 && number <= INT32_MAX))
                return false;
            match_.instances = static_cast<int32_t>(number);
            return true;
        default:
            return true;
        }
    }

    struct dicom_match &match_;
};

} // namespace

static bool
match_read(const std::vector<uint8_t> &bytes, const std::string &syntax_uid, struct dicom_match &match)
{
    const struct transfer_syntax *syntax = transfer_find(syntax_uid.c_str());
    match = {};
    match.instances = -1;
    return syntax && bytes.size() <= LIMIT_REPORT_BYTES &&
           MatchReader(bytes.data(), bytes.size(), *syntax, match).read();
}

static bool
match_has_key(const char *key, const char *found)
{
    return !key || !*key || std::strcmp(key, found) == 0;
}

/* Returns whether a match agrees with the keys. A key that the peer does not return cannot
 * contradict, but UIDs that identify the match are required. */
static bool
match_agrees(const struct dicom_query &query, const struct dicom_match &match)
{
    const bool series = query.level == DICOM_LEVEL_SERIES;
    return match.study_uid[0] && (!series || match.series_uid[0]) && match_has_key(query.study_uid, match.study_uid) &&
           (!series || match_has_key(query.series_uid, match.series_uid)) &&
           (series || match_has_key(query.accession_number, match.accession_number));
}

static bool
date_is_plain(const char *date)
{
    return std::strlen(date) == 8 && std::strspn(date, "0123456789") == 8;
}

/* Returns whether a study is one of the patient of the query, until its date. A peer that does not return both must
 * not decide about it. */
static bool
match_is_of_patient(const struct dicom_query &query, const struct dicom_match &match)
{
    return !query.patient_id || (std::strcmp(query.patient_id, match.patient_id) == 0 && date_is_plain(match.date) &&
                                 std::strcmp(match.date, query.date) <= 0);
}

/* ------------------------------------------------------------------------------- keys ------ */

/* Returns whether a text has no wildcards and is the same in every character set. */
static bool
query_key_is_plain(const char *text)
{
    for (const char *at = text; *at; at++)
        if (*at < 0x20 || *at > 0x7E || std::strchr("*?\\", *at))
            return false;
    return true;
}

static bool
query_uid_is_plain(const char *uid)
{
    return !uid || !*uid || command_uid_is_valid(uid);
}

static OFCondition
query_put(DcmDataset &dataset, const DcmTagKey &tag, const char *value)
{
    return dataset.putAndInsertString(tag, value ? value : "");
}

/* Puts the keys of a study of a patient, and the attributes that such matches must or may return. */
static OFCondition
query_put_patient(DcmDataset &dataset, const struct dicom_query &query)
{
    const std::string until = std::string("-") + query.date;
    OFCondition condition = query_put(dataset, DCM_PatientID, query.patient_id);
    if (condition.good())
        condition = query_put(dataset, DCM_IssuerOfPatientID, "");
    if (condition.good())
        condition = query_put(dataset, DCM_StudyDate, until.c_str());
    return condition.good() ? query_put(dataset, DCM_ModalitiesInStudy, "") : condition;
}

/* Puts the keys. If `returned` is set, also puts the attributes that matches must return. */
static OFCondition
query_describe(DcmDataset &dataset, const struct dicom_query &query, bool returned)
{
    const bool series = query.level == DICOM_LEVEL_SERIES;
    OFCondition condition = query_put(dataset, DCM_QueryRetrieveLevel, series ? "SERIES" : "STUDY");
    if (condition.good() && !series && returned)
        condition = query_put(dataset, DCM_AccessionNumber, query.accession_number);
    if (condition.good())
        condition = query_put(dataset, DCM_StudyInstanceUID, query.study_uid);
    if (condition.good() && series)
        condition = query_put(dataset, DCM_SeriesInstanceUID, query.series_uid);
    if (condition.good() && series && returned)
        condition = query_put(dataset, DCM_Modality, "");
    if (condition.good() && query.body_part)
        condition = query_put(dataset, DCM_BodyPartExamined, "");
    if (condition.good() && query.patient_id)
        condition = query_put_patient(dataset, query);
    if (condition.good() && returned)
        condition =
            query_put(dataset, series ? DCM_NumberOfSeriesRelatedInstances : DCM_NumberOfStudyRelatedInstances, "");
    return condition;
}

static int
query_fail_keys(struct error *error, enum code code)
{
    return error_set(error, -EINVAL, code,
                     "The key is invalid: a UID must have digits and dots, an accession number at "
                     "most 16 ASCII characters without *, ? and \\.");
}

/* A request with its identifier, and its responses up to the last. The owner may read the members, and must not change
 * them. */
struct Query {
    Query(struct dicom_association &association, uint16_t field, const char *sop_class) : association_(association)
    {
        request_.field = field;
        request_.has_data_set = true;
        header_copy(request_.sop_class_uid, std::string(sop_class));
        context = find_context(association, sop_class, nullptr);
    }

    int send(DcmDataset &identifier, const char *move_destination)
    {
        request_.move_destination = move_destination;
        const int rc = send_request(association_, *context, request_);
        return rc ? rc : send_data_set(association_, *context, identifier);
    }

    /* Reads the next response. Each has its own time limit, until the query is cancelled. */
    int next(struct command &response, std::vector<uint8_t> &bytes)
    {
        if (!cancelled)
            allow(association_, association_.dimse_time);
        return next_response(association_, request_, response, bytes);
    }

    int cancel()
    {
        uint8_t bytes[COMMAND_MAX];
        if (cancelled)
            return 0;
        allow(association_, association_.dimse_time);
        cancelled = true;
        return association_.connection->write_message({context->id, true, association_.negotiation.max_pdu}, bytes,
                                                      command_encode_cancel(&request_, bytes));
    }

    const PresentationContext *context; /* nullptr if the peer does not accept one */
    bool cancelled = false;

  private:
    struct dicom_association &association_;
    struct command request_ = {};
};

static int
query_fail_context(const struct dicom_association &association, const char *what, struct error *error)
{
    return error_set(error, -EPROTONOSUPPORT, CODE_NO_PRESENTATION_CONTEXT,
                     "%s does not accept %s of the study root model. Allow it there.", association.name.c_str(), what);
}

/* Returns whether a retry would get the same status. Unknown statuses are retried. */
static bool
query_is_final(uint16_t status)
{
    const struct dicom_answer answer = {status, -1, -1, -1};
    return dicom_outcome_of(CODE_NONE, &answer) == DICOM_PERMANENT;
}

/* ------------------------------------------------------------------------------- C-FIND ---- */

static int
scu_find(struct dicom_association &association, const struct dicom_query &query,
         bool (*visit)(void *context, const struct dicom_match *match), void *context, struct dicom_answer *answer,
         struct error *error)
{
    Query find(association, COMMAND_C_FIND, DICOM_FIND_CLASS);
    DcmDataset identifier;
    struct command response;
    std::vector<uint8_t> bytes;
    if (!find.context)
        return query_fail_context(association, "C-FIND", error);
    if (header_try([&] { return query_describe(identifier, query, true); }).bad())
        return query_fail_keys(error, CODE_FIND_REFUSED);
    int rc = find.send(identifier, nullptr);
    while (!rc && !(rc = find.next(response, bytes)) && query_is_pending(response.status)) {
        struct dicom_match match;
        if (find.cancelled)
            continue;
        if (!match_read(bytes, find.context->transfer_syntax, match) || !match_agrees(query, match)) {
            disconnect(association);
            return error_set(error, -EREMOTEIO, CODE_FIND_FAILED,
                             "%s answered C-FIND with matches that contradict the keys. Check whether it "
                             "supports these keys.",
                             association.name.c_str());
        }
        if (!match_is_of_patient(query, match)) {
            disconnect(association);
            return error_set(error, -EREMOTEIO, CODE_PRIOR_OTHER_PATIENT,
                             "%s answered C-FIND by Patient ID and Study Date with a study of another Patient ID or a "
                             "later date, or without these attributes. No study is fetched.",
                             association.name.c_str());
        }
        if (!visit(context, &match))
            rc = find.cancel();
    }
    if (rc)
        return fail_broken(association, rc, "answering C-FIND", error);
    answer->status = response.status;
    if (response.status == 0 || response.status == STATUS_CANCELLED)
        return 0;
    const bool final = query_is_final(response.status);
    return error_set(error, -EREMOTEIO, final ? CODE_FIND_REFUSED : CODE_FIND_FAILED,
                     "%s answered C-FIND with status 0x%04X.%s", association.name.c_str(),
                     static_cast<unsigned>(response.status), final ? " A retry would fail too." : "");
}

int
dicom_find(struct dicom_association *association, const struct dicom_query *query,
           bool (*visit)(void *context, const struct dicom_match *match), void *context, struct dicom_answer *answer,
           struct error *error)
{
    clear_answer(answer);
    if (!query_uid_is_plain(query->study_uid) || !query_uid_is_plain(query->series_uid) ||
        (query->accession_number && (!query_key_is_plain(query->accession_number) ||
                                     std::strlen(query->accession_number) >= DICOM_ACCESSION_SIZE)))
        return query_fail_keys(error, CODE_FIND_REFUSED);
    if (query->patient_id && (!*query->patient_id || !query_key_is_plain(query->patient_id) ||
                              std::strlen(query->patient_id) > 64 || !date_is_plain(query->date)))
        return error_set(
            error, -EINVAL, CODE_PRIOR_NO_KEY,
            "The earlier study cannot be asked for: the Patient ID is empty or no plain ASCII text without "
            "*, ? and \\, or there is no Study Date.");
    return header_guard("", error, [&] { return scu_find(*association, *query, visit, context, answer, error); });
}

/* ------------------------------------------------------------------------------- C-MOVE ---- */

static int
move_check_status(const struct dicom_association &association, const char *destination, uint16_t status,
                  const struct dicom_moved &moved, struct error *error)
{
    const char *name = association.name.c_str();
    if (status == STATUS_CANCELLED)
        return error_set(error, -ECANCELED, CODE_NONE, "%s got a C-CANCEL.", name);
    if (status == STATUS_DESTINATION_UNKNOWN)
        return error_set(error, -EREMOTEIO, CODE_MOVE_DESTINATION_UNKNOWN,
                         "%s does not know the AE title %s. Add it there with Noctule's host and "
                         "port (Orthanc: DicomModalities; dcmqrscp: HostTable).",
                         name, destination);
    if (status == STATUS_SOME_FAILED || (status == 0 && moved.failed > 0))
        return error_set(error, -EREMOTEIO, CODE_MOVE_INCOMPLETE,
                         "%s sent %d instances to %s and failed to send %d (C-MOVE, status 0x%04X).", name,
                         std::max(moved.completed, 0) + std::max(moved.warned, 0), destination,
                         std::max(moved.failed, 0), static_cast<unsigned>(status));
    if (status == 0)
        return 0;
    if (!query_is_final(status))
        return error_set(error, -EREMOTEIO, CODE_MOVE_FAILED, "%s answered C-MOVE with status 0x%04X.", name,
                         static_cast<unsigned>(status));
    /* Orthanc answers an unknown destination and a refused instance with the same status. */
    return error_set(error, -EREMOTEIO, CODE_MOVE_REFUSED,
                     "%s answered C-MOVE to %s with status 0x%04X. A retry would fail too. Its log has the reason. If "
                     "no instance of the study arrived, check that it knows that AE title (Orthanc: DicomModalities).",
                     name, destination, static_cast<unsigned>(status));
}

static int
scu_move(struct dicom_association &association, const struct dicom_query &query, const char *destination,
         bool (*progress)(void *context, const struct dicom_moved *moved), void *context, struct dicom_moved *moved,
         struct dicom_answer *answer, struct error *error)
{
    Query move(association, COMMAND_C_MOVE, DICOM_MOVE_CLASS);
    DcmDataset identifier;
    struct command response;
    std::vector<uint8_t> bytes;
    if (!move.context)
        return query_fail_context(association, "C-MOVE", error);
    if (header_try([&] { return query_describe(identifier, query, false); }).bad())
        return query_fail_keys(error, CODE_MOVE_REFUSED);
    int rc = move.send(identifier, destination);
    while (!rc && !(rc = move.next(response, bytes))) {
        /* An answer may leave numbers out. */
        moved->remaining = response.remaining >= 0 ? response.remaining : moved->remaining;
        moved->completed = response.completed >= 0 ? response.completed : moved->completed;
        moved->failed = response.failed >= 0 ? response.failed : moved->failed;
        moved->warned = response.warned >= 0 ? response.warned : moved->warned;
        if (!query_is_pending(response.status))
            break;
        if (!move.cancelled && !progress(context, moved))
            rc = move.cancel();
    }
    if (rc)
        return fail_broken(association, rc, "answering C-MOVE", error);
    answer->status = response.status;
    return move_check_status(association, destination, response.status, *moved, error);
}

int
dicom_move(struct dicom_association *association, const struct dicom_query *query, const char *destination,
           bool (*progress)(void *context, const struct dicom_moved *moved), void *context, struct dicom_moved *moved,
           struct dicom_answer *answer, struct error *error)
{
    clear_answer(answer);
    *moved = {-1, -1, -1, -1};
    const bool series = query->level == DICOM_LEVEL_SERIES;
    if (!query->study_uid || !command_uid_is_valid(query->study_uid) ||
        (series && (!query->series_uid || !command_uid_is_valid(query->series_uid))) ||
        std::strlen(destination) >= DICOM_AE_SIZE)
        return query_fail_keys(error, CODE_MOVE_REFUSED);
    return header_guard("", error, [&] {
        return scu_move(*association, *query, destination, progress, context, moved, answer, error);
    });
}
