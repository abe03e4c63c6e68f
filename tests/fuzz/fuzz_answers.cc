/*
 * fuzz_answers.cc - any bytes as the answer of a destination: after a good A-ASSOCIATE-AC if the first byte is even,
 * else as the whole answer. Requests storage commitment and reads all answers. Reports must be whole, and the
 * association must end.
 */
#include "dicom/net/scu_association.hh"

#include "tests/fuzz/accept.hh"
#include "tests/fuzz/must.h"
#include "tests/fuzz/session.hh"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

namespace
{

constexpr char transaction[] = "1.2.3";
const struct dicom_context contexts[] = {{DICOM_VERIFICATION_CLASS, "1.2.840.10008.1.2"},
                                         {DICOM_COMMITMENT_CLASS, "1.2.840.10008.1.2"}};

void
hear_out(struct dicom_association *association)
{
    struct dicom_answer answer;
    struct error error = {};
    const int rc = dicom_commit(association, transaction, "1.2.840.10008.5.1.4.1.1.66.4", "1.2.3.4", &answer, &error);
    must((rc == 0) == (error.code == CODE_NONE));
    const struct dicom_commitment *report;
    while (dicom_report(association, &report) > 0) {
        must(command_uid_is_valid(report->transaction_uid));
        for (size_t i = 0; i < report->count; i++)
            must(command_uid_is_valid(report->references[i].sop_instance_uid));
    }
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    std::vector<uint8_t> words;
    if (bytes[0] % 2 == 0)
        words = accept_all(contexts, 2);
    words.insert(words.end(), bytes + 1, bytes + size);
    const Session session(words);
    const struct dicom_peer peer = {"NOCTULE", "FUZZ", "nowhere", 104, nullptr, nullptr, 1, 1, 1, 0, DICOM_PDU_MIN};
    auto association = std::make_unique<dicom_association>(peer);
    struct dicom_answer answer;
    struct error error = {};
    scu::clear_answer(&answer);
    const int rc = scu::negotiate(*association, session.fd(), peer, contexts, 2, &answer, &error);
    must((rc == 0) == (error.code == CODE_NONE));
    if (rc == 0)
        hear_out(association.get());
    dicom_release(association.release());
    return 0;
}
