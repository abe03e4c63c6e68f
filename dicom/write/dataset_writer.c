#include "dicom/write/dataset_writer.h"

#include "base/error.h"
#include "dicom/value/tags.h"
#include "dicom/write/file_meta.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
dataset_writer_free(struct dataset_writer *set)
{
    dicom_inherited_free(&set->inherited);
    element_buffer_free(&set->elements);
}

/* Copies an inherited text without its padding, or "". */
static void
inherited_text(const struct dataset_writer *set, uint32_t tag, char *text, size_t text_size)
{
    text[0] = '\0';
    for (size_t i = 0; i < set->inherited.count; i++) {
        if (set->inherited.elements[i].tag != tag)
            continue;
        const struct dicom_element *element = &set->inherited.elements[i];
        const char *bytes = (const char *)element->bytes;
        const bool is_short = memcmp(bytes + 6, "\0\0", 2) != 0;
        size_t head = is_short || element->size == 8 ? 8 : 12;
        head = head < element->size ? head : element->size;
        const char *value = bytes + head;
        size_t size = element->size - head;
        while (size > 0 && (value[size - 1] == ' ' || value[size - 1] == '\0'))
            size--;
        snprintf(text, text_size, "%.*s", (int)(size < text_size ? size : text_size - 1), value);
    }
}

int
dataset_out_of_memory(const struct dataset_writer *set, struct error *error)
{
    return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to write the %s.",
                     set->object.what);
}

void
dataset_describe(struct dataset_writer *set, const char *given, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(set->description, sizeof(set->description), format, arguments);
    va_end(arguments);
    set->object.description = given[0] != '\0' ? given : set->description;
}

static bool
source_is_ascii(const struct derived_source *source)
{
    bool ascii = value_text_is_ascii(source->pipeline) && value_text_is_ascii(source->software_version) &&
                 value_text_is_ascii(source->device_serial_number) &&
                 (!source->remark || value_text_is_ascii(source->remark)) &&
                 (!source->creator || value_text_is_ascii(source->creator));
    for (size_t i = 0; i < source->equipment_count; i++)
        ascii = ascii && value_text_is_ascii(source->equipment[i].name) &&
                value_text_is_ascii(source->equipment[i].version);
    return ascii;
}

int
dataset_writer_open(struct dataset_writer *set, bool ascii, struct error *error)
{
    const char *path = derived_plane_instance(set->source, 0)->path;
    int rc = dicom_inherit(path, &set->inherited, error);
    if (rc)
        return rc;
    ascii = ascii && source_is_ascii(set->source) && value_text_is_ascii(set->object.description);
    char character_set[64];
    inherited_text(set, TAG_SpecificCharacterSet, character_set, sizeof(character_set));
    set->ascii_only = ascii;
    if (!ascii && strcmp(character_set, "ISO_IR 192") != 0) {
        rc = dicom_inherited_to_utf8(&set->inherited);
        set->ascii_only = rc != 0;
        if (rc == -ENOMEM)
            return dataset_out_of_memory(set, error);
    }
    /*
     * Content Date and Time must be present (PS3.3 C.7.6.16, C.17.2). The same sources must give the same bytes, today
     * and on another machine. Therefore it is the earliest possible time of the content: the latest that its sources
     * state, or else that of the study, or else the epoch.
     */
    char latest[DICOM_DS_SIZE];
    char date[16];
    char time[16];
    derived_latest_time(set->source, latest);
    if (latest[0] == '\0') {
        inherited_text(set, TAG_StudyDate, date, sizeof(date));
        inherited_text(set, TAG_StudyTime, time, sizeof(time));
        const bool dated = strlen(date) == 8 && value_is_legal("DA", date, 8);
        const bool timed = dated && strlen(time) >= 6 && value_is_legal("TM", time, 6);
        snprintf(latest, sizeof(latest), "%s%.6s.000000", dated ? date : "19700101", timed ? time : "000000");
    }
    snprintf(set->date, sizeof(set->date), "%.8s", latest);
    snprintf(set->time, sizeof(set->time), "%.13s", latest + 8);
    return 0;
}

const struct dicom_element *
dataset_reach(struct dataset_writer *set, uint32_t tag)
{
    while (set->next_inherited < set->inherited.count) {
        const struct dicom_element *element = &set->inherited.elements[set->next_inherited];
        if (element->tag > tag)
            return NULL;
        set->next_inherited++;
        if (element->tag == tag)
            return element;
        element_append_explicit(&set->elements, element->bytes, element->size);
    }
    return NULL;
}

void
dataset_put_header(struct dataset_writer *set, uint32_t tag, const char vr[2], uint64_t length)
{
    dataset_reach(set, tag);
    element_header(&set->elements, tag, vr, (uint32_t)length);
}

size_t
dataset_open_only_item(struct dataset_writer *set, uint32_t tag)
{
    dataset_reach(set, tag);
    return element_open_only_item(&set->elements, tag);
}

void
dataset_put_inherited(struct dataset_writer *set, uint32_t tag, const char vr[2])
{
    const struct dicom_element *element = dataset_reach(set, tag);
    if (element)
        element_append_explicit(&set->elements, element->bytes, element->size);
    else
        element_header(&set->elements, tag, vr, 0);
}

void
dataset_put_text(struct dataset_writer *set, uint32_t tag, const char vr[2], const char *text)
{
    dataset_reach(set, tag);
    element_text(&set->elements, tag, vr, text);
}

void
dataset_put_us(struct dataset_writer *set, uint32_t tag, uint16_t number)
{
    dataset_reach(set, tag);
    element_us(&set->elements, tag, &number, 1);
}

void
dataset_add_clean(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag, const char vr[2],
                  const char *text, size_t characters, enum value_text_kind kind)
{
    char *clean = value_text_clean(text, characters, kind, set->ascii_only);
    if (clean)
        element_text(to, tag, vr, clean);
    else
        element_fail(to, -ENOMEM);
    free(clean);
}

void
dataset_add_line(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag, const char *text)
{
    dataset_add_clean(set, to, tag, "LO", text, LO_CHARACTERS, VALUE_LINE);
}

void
dataset_put_line(struct dataset_writer *set, uint32_t tag, const char *text)
{
    dataset_reach(set, tag);
    dataset_add_line(set, &set->elements, tag, text);
}

void
dataset_put_creator(struct dataset_writer *set, uint32_t tag)
{
    dataset_reach(set, tag);
    dataset_add_clean(set, &set->elements, tag, "PN", set->source->creator ? set->source->creator : "", PN_CHARACTERS,
                      VALUE_LINE);
}

void
dataset_put_file_meta(struct dataset_writer *set)
{
    const struct file_meta meta = {
        .sop_class_uid = set->object.sop_class_uid,
        .sop_instance_uid = set->identity.sop_instance_uid,
        .transfer_syntax_uid =
            set->object.transfer_syntax_uid ? set->object.transfer_syntax_uid : DICOM_EXPLICIT_LITTLE,
    };
    file_meta_append(&set->elements, &meta);
    set->elements.implicit = strcmp(meta.transfer_syntax_uid, DICOM_IMPLICIT_LITTLE) == 0;
}

void
dataset_put_identification(struct dataset_writer *set)
{
    dataset_put_text(set, TAG_SOPClassUID, "UI", set->object.sop_class_uid);
    dataset_put_text(set, TAG_SOPInstanceUID, "UI", set->identity.sop_instance_uid);
    dataset_put_inherited(set, TAG_StudyDate, "DA");
    dataset_put_text(set, TAG_SeriesDate, "DA", set->date);
    if (!set->object.is_rt)
        dataset_put_text(set, TAG_ContentDate, "DA", set->date);
    dataset_put_inherited(set, TAG_StudyTime, "TM");
    dataset_put_text(set, TAG_SeriesTime, "TM", set->time);
    if (!set->object.is_rt)
        dataset_put_text(set, TAG_ContentTime, "TM", set->time);
    dataset_put_inherited(set, TAG_AccessionNumber, "SH");
    dataset_put_text(set, TAG_Modality, "CS", set->object.modality);
    if (set->object.conversion)
        dataset_put_text(set, TAG_ConversionType, "CS", set->object.conversion);
    dataset_put_text(set, TAG_Manufacturer, "LO", "Noctule");
    dataset_put_inherited(set, TAG_ReferringPhysicianName, "PN");
    /* The schemes that readers may not know (PS3.3 C.12.1.1.1). */
    static const struct element_row ibsi[] = {
        {TAG_CodingSchemeDesignator, "SH", CONCEPT_IBSI_SCHEME},
        {TAG_CodingSchemeUID, "UI", "1.2.840.10008.2.16.13"},
        {TAG_CodingSchemeName, "ST", "Image Biomarker Standardisation Initiative"},
        {0},
    };
    static const struct element_row own[] = {
        {TAG_CodingSchemeDesignator, "SH", CONCEPT_OWN_SCHEME},
        {TAG_CodingSchemeVersion, "SH", "1"},
        {TAG_CodingSchemeName, "ST", "Noctule: measurements and their settings"},
        {TAG_CodingSchemeResponsibleOrganization, "ST", "Noctule"},
        {0},
    };
    const struct element_row *schemes[] = {set->object.ibsi_codes ? ibsi : NULL, set->object.own_codes ? own : NULL};
    if (schemes[0] || schemes[1]) {
        dataset_reach(set, TAG_CodingSchemeIdentificationSequence);
        size_t sequence = element_open_sequence(&set->elements, TAG_CodingSchemeIdentificationSequence);
        for (int i = 0; i < 2; i++) {
            if (!schemes[i])
                continue;
            size_t item = element_open_item(&set->elements);
            element_texts(&set->elements, schemes[i]);
            element_close(&set->elements, item);
        }
        element_close(&set->elements, sequence);
    }
    dataset_put_line(set, TAG_SeriesDescription, set->object.description);
    if (set->object.is_rt)
        dataset_put_creator(set, TAG_OperatorsName);
    dataset_put_text(set, TAG_ManufacturerModelName, "LO", "noctuled");
}

void
dataset_put_patient_and_equipment(struct dataset_writer *set)
{
    dataset_put_inherited(set, TAG_PatientName, "PN");
    dataset_put_inherited(set, TAG_PatientID, "LO");
    dataset_put_inherited(set, TAG_PatientBirthDate, "DA");
    dataset_put_inherited(set, TAG_PatientSex, "CS");
    dataset_put_line(set, TAG_DeviceSerialNumber, set->source->device_serial_number);
    dataset_put_line(set, TAG_SoftwareVersions, set->source->software_version);
    /* The programs that contributed (PS3.3 C.12.1). The purpose is of CID 7005. */
    static const struct coded_concept purpose = {"109102", "DCM", "Processing Equipment"};
    struct element_buffer *to = &set->elements;
    if (set->source->equipment_count == 0)
        return;
    dataset_reach(set, TAG_ContributingEquipmentSequence);
    const size_t sequence = element_open_sequence(to, TAG_ContributingEquipmentSequence);
    for (size_t i = 0; i < set->source->equipment_count; i++) {
        const struct derived_equipment *equipment = &set->source->equipment[i];
        const size_t item = element_open_item(to);
        dataset_add_line(set, to, TAG_Manufacturer, equipment->name);
        dataset_add_line(set, to, TAG_ManufacturerModelName, equipment->name);
        dataset_add_line(set, to, TAG_SoftwareVersions, equipment->version);
        dataset_add_code(set, to, TAG_PurposeOfReferenceCodeSequence, &purpose);
        element_close(to, item);
    }
    element_close(to, sequence);
}

void
dataset_put_series(struct dataset_writer *set, int32_t number)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", number);
    dataset_put_text(set, TAG_StudyInstanceUID, "UI", derived_plane_instance(set->source, 0)->study_uid);
    dataset_put_text(set, TAG_SeriesInstanceUID, "UI", set->identity.series_uid);
    dataset_put_inherited(set, TAG_StudyID, "SH");
    dataset_put_text(set, TAG_SeriesNumber, "IS", text);
    dataset_put_text(set, TAG_InstanceNumber, "IS", set->object.instance ? set->object.instance : "1");
}

void
dataset_add_reference(struct element_buffer *to, const char *class_uid, const char *instance_uid)
{
    element_text(to, TAG_ReferencedSOPClassUID, "UI", class_uid);
    element_text(to, TAG_ReferencedSOPInstanceUID, "UI", instance_uid);
}

void
dataset_add_code_values(const struct dataset_writer *set, struct element_buffer *to, const struct coded_concept *code)
{
    bool is_long = strlen(code->value) > SH_CHARACTERS;
    if (!is_long)
        dataset_add_clean(set, to, TAG_CodeValue, "SH", code->value, SH_CHARACTERS, VALUE_LINE);
    dataset_add_clean(set, to, TAG_CodingSchemeDesignator, "SH", code->scheme, SH_CHARACTERS, VALUE_LINE);
    dataset_add_line(set, to, TAG_CodeMeaning, code->meaning);
    if (is_long)
        dataset_add_clean(set, to, TAG_LongCodeValue, "UC", code->value, SIZE_MAX, VALUE_LINE);
}

void
dataset_add_code(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                 const struct coded_concept *code)
{
    size_t item = element_open_only_item(to, tag);
    dataset_add_code_values(set, to, code);
    element_close_only_item(to, item);
}

bool
dataset_code_is_complete(const struct coded_concept *code)
{
    return code->value && *code->value && code->scheme && *code->scheme && code->meaning && *code->meaning;
}

bool
dataset_code_is_partial(const struct coded_concept *code)
{
    return code->value && !dataset_code_is_complete(code);
}

bool
dataset_code_is_ascii(const struct coded_concept *code)
{
    return !code->value || (value_text_is_ascii(code->value) && value_text_is_ascii(code->scheme) &&
                            value_text_is_ascii(code->meaning));
}
