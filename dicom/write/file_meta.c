#include "dicom/write/file_meta.h"

#include "dicom/value/tags.h"
#include "dicom/value/uid.h"

void
file_meta_append(struct element_buffer *to, const struct file_meta *meta)
{
    static const uint8_t preamble[128];
    struct element_buffer elements = {0};
    static const uint8_t version[2] = {0, 1};
    element_header(&elements, TAG_FileMetaInformationVersion, "OB", 2);
    element_append(&elements, version, sizeof(version));
    element_text(&elements, TAG_MediaStorageSOPClassUID, "UI", meta->sop_class_uid);
    element_text(&elements, TAG_MediaStorageSOPInstanceUID, "UI", meta->sop_instance_uid);
    element_text(&elements, TAG_TransferSyntaxUID, "UI", meta->transfer_syntax_uid);
    element_text(&elements, TAG_ImplementationClassUID, "UI", UID_IMPLEMENTATION_CLASS);
    element_text(&elements, TAG_ImplementationVersionName, "SH", "NOCTULE_" NOCTULE_VERSION);
    if (meta->source_ae)
        element_text(&elements, TAG_SourceApplicationEntityTitle, "AE", meta->source_ae);
    if (elements.error)
        to->error = elements.error;
    const uint32_t length = (uint32_t)elements.size;
    element_append(to, preamble, sizeof(preamble));
    element_append(to, "DICM", 4);
    element_ul(to, TAG_FileMetaInformationGroupLength, &length, 1);
    element_append(to, elements.bytes, elements.size);
    element_buffer_free(&elements);
}
