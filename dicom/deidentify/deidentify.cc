/*
 * deidentify.cc - see deidentify.h.
 *
 * DCMTK parses the data set and writes it. It leaves values of more than DCM_MaxReadLength bytes, such as pixels and
 * fragments, in the file, and copies them to the new one in parts.
 */
#include "dicom/deidentify/deidentify.h"

#include "dicom/deidentify/dataset_cleaner.hh"
#include "dicom/deidentify/pixel_texts.hh"
#include "dicom/value/storage_class.h"
#include "dicom/value/uid.h"
#include "dicom/write/byte_sink.h"
#include "dicom/write/file_meta.h"

#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dcwcache.h>

#include <cstring>

namespace
{

/* Objects that Noctule writes, except captures. */
const char *const object_classes[] = {
    UID_SegmentationStorage,  "1.2.840.10008.5.1.4.1.1.66.7", /* Label Map Segmentation */
    UID_ParametricMapStorage, UID_EnhancedSRStorage,          UID_Comprehensive3DSRStorage, UID_RTStructureSetStorage,
};

/* Images on which devices and persons often write: captures, and views of ultrasound, angiography and fluoroscopy. */
const char *const written_classes[] = {
    UID_SecondaryCaptureImageStorage,
    UID_MultiframeSingleBitSecondaryCaptureImageStorage,
    UID_MultiframeGrayscaleByteSecondaryCaptureImageStorage,
    UID_MultiframeGrayscaleWordSecondaryCaptureImageStorage,
    UID_MultiframeTrueColorSecondaryCaptureImageStorage,
    UID_RETIRED_UltrasoundImageStorage,
    UID_RETIRED_UltrasoundMultiframeImageStorage,
    UID_UltrasoundImageStorage,
    UID_UltrasoundMultiframeImageStorage,
    UID_XRayAngiographicImageStorage,
    UID_EnhancedXAImageStorage,
    UID_XRayRadiofluoroscopicImageStorage,
    UID_EnhancedXRFImageStorage,
};

template <size_t size>
bool
is_class_among(const char *const (&classes)[size], const std::string &uid)
{
    return std::any_of(std::begin(classes), std::end(classes), [&](const char *each) { return uid == each; });
}

std::string
first_text(DcmItem &item, const DcmTagKey &tag)
{
    OFString text;
    return header_is_good(item.findAndGetOFStringArray(tag, text)) ? std::string(text.c_str()) : "";
}

/* Returns the reason why the pixels may show text, or "". */
std::string
burned_in_reason(DcmDataset &dataset)
{
    const std::string burned = first_text(dataset, DCM_BurnedInAnnotation);
    const std::string type = first_text(dataset, DCM_ImageType);
    const std::string samples = first_text(dataset, DCM_SamplesPerPixel);
    Uint16 position = 0;
    for (Uint16 group = 0x6000; group <= 0x601E; group = static_cast<Uint16>(group + 2))
        if (dataset.findAndGetUint16(DcmTagKey(group, 0x0102), position).good() && position != 0)
            return "an overlay is stored in its pixels (Overlay Bit Position)";
    if (burned == "YES")
        return "Burned In Annotation is YES";
    if (burned == "NO")
        return "";
    if (is_class_among(written_classes, first_text(dataset, DCM_SOPClassUID)))
        return "devices often write on images of its class, and Burned In Annotation is not NO";
    if (type.find("SCREEN") != std::string::npos || dataset.tagExistsWithValue(DCM_ConversionType))
        return "it is a screenshot or was converted, and Burned In Annotation is not NO";
    if (storage_class_is_flat(first_text(dataset, DCM_SOPClassUID).c_str()))
        return "it is a 2-D image, and Burned In Annotation is not NO";
    if (!samples.empty() && samples != "1")
        return "it is in colour, and Burned In Annotation is not NO";
    return "";
}

int
refuse(const char *path, DcmDataset &dataset, bool released, struct error *error)
{
    const std::string uid = first_text(dataset, DCM_SOPClassUID);
    const char *name = text_base_name(path);
    const bool is_image = storage_class_modality(uid.c_str()) || storage_class_is_flat(uid.c_str()) ||
                          is_class_among(written_classes, uid);
    /* Labels of regions are drawn in pictures of Noctule. Its captures of codes show no more text than their source. */
    const bool is_picture = is_class_among(written_classes, uid) && header_is_own(Header(dataset)) &&
                            uid != UID_MultiframeGrayscaleWordSecondaryCaptureImageStorage;
    if ((!is_image && !is_class_among(object_classes, uid)) || is_picture)
        return error_set_files(error, -EBADMSG, CODE_DEIDENTIFY_CLASS, path, nullptr,
                               "%s is of a class that cannot be de-identified: %s. It was not sent.", name,
                               dicom_uid_name(uid.c_str()));
    const std::string reason = released ? "" : burned_in_reason(dataset);
    if (!reason.empty())
        return error_set_files(error, -EBADMSG, CODE_BURNED_IN_TEXT, path, nullptr,
                               "%s may show text that identifies the patient: %s. It was not sent.", name,
                               reason.c_str());
    return 0;
}

/* Writes the data set through a buffer. Returns the first -errno of the file, or -EBADMSG. */
int
write_dataset(DcmDataset &dataset, E_TransferSyntax syntax, struct byte_sink *sink)
{
    std::vector<uint8_t> buffer(65536);
    DcmOutputBufferStream stream(buffer.data(), static_cast<offile_off_t>(buffer.size()));
    DcmWriteCache cache;
    OFCondition condition = EC_StreamNotifyClient;
    dataset.transferInit();
    while (condition == EC_StreamNotifyClient && !sink->error) {
        condition =
            header_try([&] { return dataset.write(stream, syntax, EET_ExplicitLength, &cache, EGL_withoutGL); });
        void *bytes = nullptr;
        offile_off_t size = 0;
        stream.flushBuffer(bytes, size);
        byte_sink_append(sink, bytes, static_cast<size_t>(size));
    }
    dataset.transferEnd();
    return condition.bad() && !sink->error ? -EBADMSG : 0;
}

int
write_copy(const char *path, DcmDataset &dataset, const struct dicom_form &made, E_TransferSyntax syntax, int fd,
           struct error *error)
{
    struct byte_sink sink;
    struct element_buffer head = {};
    const struct file_meta meta = {made.sop_class, made.sop_instance, made.transfer_syntax, nullptr};
    file_meta_append(&head, &meta);
    const HeaderOwner<struct element_buffer, element_buffer_free> freed(&head);
    if (head.error || byte_sink_open(&sink, fd, false))
        throw std::bad_alloc();
    const HeaderOwner<struct byte_sink, byte_sink_close> closed(&sink);
    byte_sink_append(&sink, head.bytes, head.size);
    int rc = write_dataset(dataset, syntax, &sink);
    if (rc)
        return error_set_files(error, rc, CODE_TAG_INVALID, path, nullptr, "%s cannot be written again.",
                               text_base_name(path));
    rc = byte_sink_finish(&sink);
    return rc ? error_set(error, rc, rc == -ENOSPC || rc == -EDQUOT ? CODE_DISK_FULL : CODE_WRITE_FAILED,
                          "Writing the de-identified copy failed after %lld bytes (%s).",
                          static_cast<long long>(sink.total), strerror(-rc))
              : 0;
}

} // namespace

int
deidentify_uid(const struct deidentify *how, const char *uid, char replaced[DICOM_UID_SIZE])
{
    uint8_t digest[DEIDENTIFY_DIGEST];
    /* A site may also use the root of the standard for its own UIDs, so only registered ones stay. */
    if (dcmFindNameOfUID(uid) || (how->keep & DEIDENTIFY_UIDS)) {
        snprintf(replaced, DICOM_UID_SIZE, "%s", uid);
        return 0;
    }
    const int rc = how->digest(how->key, (std::string("uid ") + uid).c_str(), digest);
    if (!rc)
        uid_from_bytes(digest, replaced);
    return rc;
}

int
deidentify_patient(const struct deidentify *how, const char *patient_id, char pseudonym[DEIDENTIFY_WORD])
{
    uint8_t digest[DEIDENTIFY_DIGEST];
    const int rc = how->digest(how->key, patient_id, digest);
    pseudonym[0] = '\0';
    for (size_t i = 0; !rc && i < (DEIDENTIFY_WORD - 3) / 2; i++)
        snprintf(pseudonym + (i ? 2 + 2 * i : 0), 5, i ? "%02x" : "h:%02x", digest[i]);
    return rc;
}

bool
deidentify_text(const struct deidentify *how, const char *text, size_t length, char *cleaned, size_t size)
{
    try {
        const std::string left = cleaned_text(*how, std::string(text, length));
        if (left.empty() || left.size() >= size)
            return false;
        snprintf(cleaned, size, "%s", left.c_str());
        return left.find('\\') == std::string::npos; /* an escape of JSON hides words */
    } catch (const std::bad_alloc &) {
        return false;
    }
}

int
deidentify_check(const char *path, struct error *error)
{
    return header_guard(path, error, [&] {
        DcmFileFormat file;
        const OFCondition status = header_try([&] {
            return file.loadFileUntilTag(path, EXS_Unknown, EGL_noChange, DCM_MaxReadLength, ERM_autoDetect,
                                         DCM_PixelData);
        });
        if (status.bad())
            return error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, nullptr, "%s cannot be parsed (%s).",
                                   text_base_name(path), status.text());
        return refuse(path, *file.getDataset(), false, error);
    });
}

int
deidentify_file(const struct deidentify *how, const char *path, int fd, struct dicom_form *made, struct error *error)
{
    return header_guard(path, error, [&] {
        DcmFileFormat file;
        const OFCondition status = header_try([&] { return file.loadFile(path); });
        if (status.bad())
            return error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, nullptr, "%s cannot be parsed (%s).",
                                   text_base_name(path), status.text());
        DcmDataset &dataset = *file.getDataset();
        if (const int rc = refuse(path, dataset, how->released, error))
            return rc;
        if (!pixel_texts_remove(dataset))
            return error_set_files(error, -EBADMSG, CODE_PIXELS_UNDECODABLE, path, nullptr,
                                   "%s has a code stream that cannot be searched for texts. It was not sent.",
                                   text_base_name(path));
        DatasetCleaner(*how).run(dataset);
        E_TransferSyntax syntax = dataset.getOriginalXfer();
        if (syntax == EXS_DeflatedLittleEndianExplicit)
            syntax = EXS_LittleEndianExplicit;
        header_copy(made->sop_class, first_text(dataset, DCM_SOPClassUID));
        header_copy(made->sop_instance, first_text(dataset, DCM_SOPInstanceUID));
        header_copy(made->transfer_syntax, DcmXfer(syntax).getXferID());
        return write_copy(path, dataset, *made, syntax, fd, error);
    });
}
