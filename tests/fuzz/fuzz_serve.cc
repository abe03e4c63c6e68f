/*
 * fuzz_serve.cc - any bytes as the input of a peer: after a good A-ASSOCIATE-RQ if the first byte is even, else as
 * the whole input. Each file must begin and end once, reports must be whole, and the association must end.
 */
#include "dicom/net/scp.h"

#include "dicom/dicom.h"
#include "dicom/net/associate.hh"
#include "dicom/net/command.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/session.hh"

#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

namespace
{

constexpr uint64_t max_instance = 4096;

struct Seen {
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int open_files = 0;
};

enum dicom_admission
on_admit(void *, const struct dicom_association_request *request)
{
    must(std::strlen(request->calling_ae) < DICOM_AE_SIZE);
    return DICOM_ADMIT;
}

uint16_t
on_begin(void *context, const struct dicom_store *store, int *fd)
{
    Seen &seen = *static_cast<Seen *>(context);
    must(seen.open_files == 0);
    must(command_uid_is_valid(store->sop_instance_uid));
    must(command_uid_is_valid(store->sop_class_uid));
    seen.open_files++;
    *fd = seen.null_fd;
    return DICOM_SUCCESS;
}

uint16_t
on_end(void *context, const struct dicom_store *, int64_t bytes, int rc)
{
    Seen &seen = *static_cast<Seen *>(context);
    must(seen.open_files == 1);
    must(rc != 0 || bytes <= static_cast<int64_t>(max_instance));
    seen.open_files--;
    return DICOM_SUCCESS;
}

uint16_t
on_committed(void *, const struct dicom_association_request *, const struct dicom_commitment *report)
{
    must(command_uid_is_valid(report->transaction_uid));
    for (size_t i = 0; i < report->count; i++)
        must(command_uid_is_valid(report->references[i].sop_instance_uid));
    return DICOM_SUCCESS;
}

std::vector<uint8_t>
good_request()
{
    static const char *const classes[] = {DICOM_VERIFICATION_CLASS, DICOM_COMMITMENT_CLASS,
                                          "1.2.840.10008.5.1.4.1.1.2"};
    AssociateRequest request;
    request.called_ae = "NOCTULE";
    request.calling_ae = "FUZZ";
    for (size_t i = 0; i < 3; i++) {
        PresentationContext context;
        context.id = static_cast<uint8_t>(2 * i + 1);
        context.abstract_syntax = classes[i];
        context.proposed = {"1.2.840.10008.1.2", "1.2.840.10008.1.2.1"};
        request.contexts.push_back(context);
    }
    return associate_request(request, 16384);
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static Seen seen;
    if (size == 0)
        return 0;
    std::vector<uint8_t> words;
    if (bytes[0] % 2 == 0)
        words = good_request();
    words.insert(words.end(), bytes + 1, bytes + size);
    const Session session(words);
    struct dicom_serve_options options = {};
    options.max_pdu = DICOM_PDU_MIN;
    options.acse_seconds = options.dimse_seconds = options.idle_seconds = 1;
    options.min_rate = 1024;
    options.max_instance = max_instance;
    options.stop_fd = -1;
    struct dicom_receiver receiver = {};
    receiver.context = &seen;
    receiver.admit = on_admit;
    receiver.store_begin = on_begin;
    receiver.store_end = on_end;
    receiver.committed = on_committed;
    struct error error = {};
    const int rc = dicom_serve(session.fd(), &options, &receiver, &error);
    must((rc == 0) == (error.code == CODE_NONE));
    must(seen.open_files == 0);
    return 0;
}
