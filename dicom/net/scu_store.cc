/*
 * scu_store.cc - C-STORE of a file: its data set goes out as the bytes that it is, where DCMTK
 * would parse it and encode it anew.
 */
#include "dicom/net/scu_association.hh"
#include "dicom/read/header.hh"

#include <dcmtk/dcmdata/dcistrmf.h>
#include <dcmtk/dcmdata/dcostrmb.h>

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace scu;

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
    return error_set_files(error, rc, CODE_FILE_UNREADABLE, file.path, nullptr,
                           "%s cannot be read (%s).", text_base_name(file.path), strerror(-rc));
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
    DcmInputFileStream stream(OFFilename(file.path), 0);
    DcmMetaInfo meta;
    meta.transferInit();
    OFCondition condition = stream.status();
    if (condition.good())
        condition = meta.read(stream, EXS_Unknown, EGL_noChange, DCM_MaxReadLength);
    meta.transferEnd();
    file.offset = static_cast<off_t>(stream.tell());
    file.sop_class = header_text(meta, DCM_MediaStorageSOPClassUID);
    file.sop_instance = header_text(meta, DCM_MediaStorageSOPInstanceUID);
    file.syntax = header_text(meta, DCM_TransferSyntaxUID);
    if (condition.good() && !file.sop_class.empty() && !file.sop_instance.empty() &&
        !file.syntax.empty() && file.offset < file.size && (file.size - file.offset) % 2 == 0)
        return 0;
    return error_set_files(error, -EBADMSG, CODE_NOT_DICOM, file.path, nullptr,
                           "%s is no whole DICOM file with a file meta header.",
                           text_base_name(file.path));
}

static OFCondition
send_pdv(struct dicom_association &association, T_ASC_PresentationContextID context,
         DUL_DATAPDV type, unsigned char *bytes, size_t size, bool last)
{
    DUL_PDV pdv = {};
    pdv.fragmentLength = size;
    pdv.presentationContextID = context;
    pdv.pdvType = type;
    pdv.lastPDV = last;
    pdv.data = bytes;
    DUL_PDVLIST list = {};
    list.count = 1;
    list.pdv = &pdv;
    return DUL_WritePDVs(&association.asc->DULassociation, &list);
}

/* DCMTK sends no request that promises a data set without one that it has parsed. */
static OFCondition
send_store_command(struct dicom_association &association, T_ASC_PresentationContextID context,
                   const T_DIMSE_C_StoreRQ &request)
{
    unsigned char bytes[512];
    DcmDataset command;
    command.putAndInsertString(DCM_AffectedSOPClassUID, request.AffectedSOPClassUID);
    command.putAndInsertUint16(DCM_CommandField, DIMSE_C_STORE_RQ);
    command.putAndInsertUint16(DCM_MessageID, request.MessageID);
    command.putAndInsertUint16(DCM_Priority, static_cast<Uint16>(request.Priority));
    command.putAndInsertUint16(DCM_CommandDataSetType, DIMSE_DATASET_PRESENT);
    command.putAndInsertString(DCM_AffectedSOPInstanceUID, request.AffectedSOPInstanceUID);
    DcmOutputBufferStream stream(bytes, sizeof(bytes));
    command.transferInit();
    OFCondition condition = command.write(stream, EXS_LittleEndianImplicit, EET_ExplicitLength,
                                          nullptr, EGL_withGL, EPD_withoutPadding);
    command.transferEnd();
    void *start = nullptr;
    offile_off_t size = 0;
    stream.flushBuffer(start, size);
    if (condition.bad())
        return condition;
    return send_pdv(association, context, DUL_COMMANDPDV, static_cast<unsigned char *>(start),
                    static_cast<size_t>(size), true);
}

/* The data set's bytes, a PDU at a time. `error` is of reading, the result of sending. */
static OFCondition
send_bytes(struct dicom_association &association, T_ASC_PresentationContextID context,
           const struct part10 &file, int &error)
{
    unsigned char *buffer = association.asc->sendPDVBuffer;
    const size_t room = static_cast<size_t>(association.asc->sendPDVLength) & ~1ul;
    off_t at = file.offset;
    while (at < file.size) {
        const size_t part = std::min(static_cast<size_t>(file.size - at), room);
        error = stream_read_at(file.fd, buffer, part, at);
        if (error)
            return EC_Normal;
        at += static_cast<off_t>(part);
        const OFCondition condition =
            send_pdv(association, context, DUL_DATASETPDV, buffer, part, at == file.size);
        if (condition.bad())
            return condition;
    }
    return EC_Normal;
}

/* Parses the file, but for the long values, which are read as they are sent. */
static OFCondition
send_transcoded(struct dicom_association &association, T_ASC_PresentationContextID context,
                T_DIMSE_Message &message, const struct part10 &file)
{
    DcmFileFormat format;
    const OFCondition condition = format.loadFile(OFFilename(file.path));
    if (condition.bad())
        return condition;
    return DIMSE_sendMessageUsingMemoryData(association.asc, context, &message, nullptr,
                                            format.getDataset(), nullptr, nullptr);
}

static OFCondition
send_unchanged(struct dicom_association &association, T_ASC_PresentationContextID context,
               const T_DIMSE_Message &message, const struct part10 &file, int &error)
{
    const OFCondition condition = send_store_command(association, context, message.msg.CStoreRQ);
    return condition.good() ? send_bytes(association, context, file, error) : condition;
}

static bool
is_uncompressed(const std::string &syntax)
{
    return syntax == DICOM_EXPLICIT_LITTLE || syntax == DICOM_IMPLICIT_LITTLE;
}

/* The context to send the file in; *same tells whether that is in its own transfer syntax. */
static T_ASC_PresentationContextID
choose_context(const struct dicom_association &association, const struct part10 &file, bool *same)
{
    const char *sop_class = file.sop_class.c_str();
    T_ASC_PresentationContextID context = find_context(association, sop_class, file.syntax.c_str());
    *same = context != 0;
    if (context == 0 && is_uncompressed(file.syntax)) {
        context = find_context(association, sop_class, DICOM_EXPLICIT_LITTLE);
        if (context == 0)
            context = find_context(association, sop_class, DICOM_IMPLICIT_LITTLE);
    }
    return context;
}

static int
scu_judge_store(const struct dicom_association &association, const struct dicom_answer &answer,
                struct error *error)
{
    const enum dicom_outcome outcome = dicom_outcome_of(CODE_NONE, &answer);
    if (outcome == DICOM_SENT)
        return 0;
    const bool final = outcome == DICOM_PERMANENT;
    return error_set(error, -EREMOTEIO, final ? CODE_STORE_REFUSED : CODE_STORE_FAILED,
                     "%s answered C-STORE with status 0x%04X.%s", association.name.c_str(),
                     static_cast<unsigned>(answer.status),
                     final ? " It would do so again." : " Deliveries are tried again.");
}

static int
scu_store(struct dicom_association &association, const char *path, struct dicom_answer *answer,
          struct error *error)
{
    struct part10 file(path);
    int rc = open_part10(file, error);
    if (rc)
        return rc;
    bool same;
    const T_ASC_PresentationContextID context = choose_context(association, file, &same);
    if (context == 0)
        return error_set_files(
            error, -EPROTONOSUPPORT, CODE_NO_PRESENTATION_CONTEXT, path, nullptr,
            "%s does not accept the SOP class %s. Let it accept that class, or name a "
            "fallback.",
            association.name.c_str(), file.sop_class.c_str());
    T_DIMSE_Message message = {};
    message.CommandField = DIMSE_C_STORE_RQ;
    T_DIMSE_C_StoreRQ &request = message.msg.CStoreRQ;
    request.MessageID = association.asc->nextMsgID++;
    header_copy(request.AffectedSOPClassUID, file.sop_class);
    header_copy(request.AffectedSOPInstanceUID, file.sop_instance);
    request.DataSetType = DIMSE_DATASET_PRESENT;
    request.Priority = DIMSE_PRIORITY_MEDIUM;
    OFCondition condition = same ? send_unchanged(association, context, message, file, rc)
                                 : send_transcoded(association, context, message, file);
    if (rc) {
        break_off(association);
        return fail_unreadable(file, rc, error);
    }
    if (condition.good())
        condition = await_response(association, DIMSE_C_STORE_RSP, request.MessageID, answer);
    if (condition.bad())
        return fail_broken(association, condition, "storing", error);
    return scu_judge_store(association, *answer, error);
}

int
dicom_store_file(struct dicom_association *association, const char *path,
                 struct dicom_answer *answer, struct error *error)
{
    clear_answer(answer);
    return header_guard(path, error, [&] { return scu_store(*association, path, answer, error); });
}
