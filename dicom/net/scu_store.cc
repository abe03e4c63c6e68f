/* scu_store.cc - C-STORE of a file. Sends the bytes of its data set, which DCMTK would parse and encode again. */
#include "dicom/net/scu_association.hh"
#include "dicom/read/header.hh"

#include <dcmtk/dcmdata/dcistrmb.h>
#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dcwcache.h>

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace scu;

#define META_MAX 65536 /* max bytes of a preamble and a file meta header */

/* An open Part 10 file. */
struct part10 {
    const char *path;
    int fd = -1;
    off_t offset = 0; /* of the data set */
    off_t size = 0;
    std::string sop_class, sop_instance, syntax;

    explicit part10(const char *name) : path(name)
    {
    }

    part10(const part10 &) = delete;
    part10 &operator=(const part10 &) = delete;

    ~part10()
    {
        if (fd >= 0)
            close(fd);
    }
};

static int
fail_unreadable(const struct part10 &file, int rc, struct error *error)
{
    return error_set_files(error, rc, CODE_FILE_UNREADABLE, file.path, nullptr, "%s cannot be read (%s).",
                           text_base_name(file.path), strerror(-rc));
}

static int
open_part10(struct part10 &file, struct error *error)
{
    struct stat status;
    file.fd = open(file.path, O_RDONLY | O_CLOEXEC);
    if (file.fd < 0 || fstat(file.fd, &status) < 0)
        return fail_unreadable(file, -errno, error);
    if (!S_ISREG(status.st_mode))
        return fail_unreadable(file, -EINVAL, error);
    file.size = status.st_size;
    /* Read the file here: DCMTK does not distinguish an unreadable file from one that is not DICOM. */
    std::vector<uint8_t> head(static_cast<size_t>(std::min(file.size, off_t{META_MAX})));
    if (const int rc = stream_read_at(file.fd, head.data(), head.size(), 0))
        return fail_unreadable(file, rc, error);
    DcmInputBufferStream stream;
    DcmMetaInfo meta;
    stream.setBuffer(head.data(), static_cast<offile_off_t>(head.size()));
    stream.setEos();
    meta.transferInit();
    const OFCondition condition =
        header_try([&] { return meta.read(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength); });
    meta.transferEnd();
    file.offset = static_cast<off_t>(stream.tell());
    file.sop_class = header_text(meta, DCM_MediaStorageSOPClassUID);
    file.sop_instance = header_text(meta, DCM_MediaStorageSOPInstanceUID);
    file.syntax = header_text(meta, DCM_TransferSyntaxUID);
    if (condition.good() && !file.sop_class.empty() && !file.sop_instance.empty() && !file.syntax.empty() &&
        file.offset < file.size && (file.size - file.offset) % 2 == 0)
        return 0;
    header_blame_memory(); /* DCMTK reports success for parts it had no memory for */
    return error_set_files(error, -EBADMSG, CODE_NOT_DICOM, file.path, nullptr,
                           "%s is not a complete DICOM file with a file meta header.", text_base_name(file.path));
}

/* Sends the bytes of the data set, one PDU at a time. Sets `unreadable` to the error of reading.
 * Returns the error of sending. */
static int
send_bytes(struct dicom_association &association, const PresentationContext &context, const struct part10 &file,
           int &unreadable)
{
    std::vector<uint8_t> buffer(DICOM_PDU_MAX);
    off_t at = file.offset;
    while (at < file.size) {
        const size_t part = std::min(static_cast<size_t>(file.size - at), buffer.size());
        unreadable = stream_read_at(file.fd, buffer.data(), part, at);
        if (unreadable)
            return 0;
        at += static_cast<off_t>(part);
        if (const int rc = send_data(association, context, buffer.data(), part, at == file.size))
            return rc;
    }
    return 0;
}

int
scu::send_data_set(struct dicom_association &association, const PresentationContext &context, DcmDataset &dataset)
{
    std::vector<uint8_t> buffer(DICOM_PDU_MAX);
    const E_TransferSyntax syntax = DcmXfer(context.transfer_syntax.c_str()).getXfer();
    DcmOutputBufferStream stream(buffer.data(), static_cast<offile_off_t>(buffer.size()));
    DcmWriteCache cache;
    OFCondition condition = EC_StreamNotifyClient;
    dataset.transferInit();
    while (condition == EC_StreamNotifyClient) {
        condition =
            header_try([&] { return dataset.write(stream, syntax, EET_ExplicitLength, &cache, EGL_withoutGL); });
        void *bytes = nullptr;
        offile_off_t size = 0;
        stream.flushBuffer(bytes, size);
        if (condition.bad() && condition != EC_StreamNotifyClient)
            break;
        if (const int rc = send_data(association, context, static_cast<uint8_t *>(bytes), static_cast<size_t>(size),
                                     condition.good()))
            return rc;
    }
    dataset.transferEnd();
    return condition.good() ? 0 : -EBADMSG;
}

/* Parses the file. Long values are read while they are sent. */
static int
send_transcoded(struct dicom_association &association, const PresentationContext &context, const struct part10 &file,
                int &unreadable)
{
    DcmFileFormat format;
    if (header_try([&] { return format.loadFile(OFFilename(file.path)); }).bad()) {
        unreadable = -EBADMSG;
        return 0;
    }
    return send_data_set(association, context, *format.getDataset());
}

static int
scu_store(struct dicom_association &association, const char *path, struct dicom_form *sent, struct dicom_answer *answer,
          struct error *error)
{
    struct part10 file(path);
    int rc = open_part10(file, error);
    if (rc)
        return rc;
    const char *sop_class = file.sop_class.c_str();
    const PresentationContext *context = find_context(association, sop_class, file.syntax.c_str());
    const bool same = context != nullptr; /* else the data set is sent in another transfer syntax */
    if (!same && (file.syntax == DICOM_EXPLICIT_LITTLE || file.syntax == DICOM_IMPLICIT_LITTLE)) {
        context = find_context(association, sop_class, DICOM_EXPLICIT_LITTLE);
        if (!context)
            context = find_context(association, sop_class, DICOM_IMPLICIT_LITTLE);
    }
    if (!context)
        return error_set_files(error, -EPROTONOSUPPORT, CODE_NO_PRESENTATION_CONTEXT, path, nullptr,
                               "%s does not accept the SOP class %s. Allow it there, or configure a fallback.",
                               association.name.c_str(), file.sop_class.c_str());
    struct command request = {};
    request.field = COMMAND_C_STORE;
    request.has_data_set = true;
    header_copy(request.sop_class_uid, file.sop_class);
    header_copy(request.sop_instance_uid, file.sop_instance);
    header_copy(sent->sop_class, file.sop_class);
    header_copy(sent->sop_instance, file.sop_instance);
    header_copy(sent->transfer_syntax, context->transfer_syntax);
    int unreadable = 0;
    rc = send_request(association, *context, request);
    if (!rc)
        rc = same ? send_bytes(association, *context, file, unreadable)
                  : send_transcoded(association, *context, file, unreadable);
    if (unreadable) {
        disconnect(association);
        return fail_unreadable(file, unreadable, error);
    }
    if (!rc)
        rc = await_response(association, request, answer);
    if (rc)
        return fail_broken(association, rc, "storing", error);
    const enum dicom_outcome outcome = dicom_outcome_of(CODE_NONE, answer);
    if (outcome == DICOM_SENT)
        return 0;
    const bool final = outcome == DICOM_PERMANENT;
    return error_set(error, -EREMOTEIO, final ? CODE_STORE_REFUSED : CODE_STORE_FAILED,
                     "%s answered C-STORE with status 0x%04X.%s", association.name.c_str(),
                     static_cast<unsigned>(answer->status),
                     final ? " A retry would fail too." : " Deliveries are retried.");
}

int
dicom_store_file(struct dicom_association *association, const char *path, struct dicom_form *sent,
                 struct dicom_answer *answer, struct error *error)
{
    clear_answer(answer);
    return header_guard(path, error, [&] { return scu_store(*association, path, sent, answer, error); });
}

int
dicom_read_form(const char *path, struct dicom_form *form, struct error *error)
{
    return header_guard(path, error, [&] {
        struct part10 file(path);
        if (const int rc = open_part10(file, error))
            return rc;
        header_copy(form->sop_class, file.sop_class);
        header_copy(form->sop_instance, file.sop_instance);
        header_copy(form->transfer_syntax, file.syntax);
        return 0;
    });
}
