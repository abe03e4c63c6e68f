#include "dicom/write/dataset_writer.h"

#include "dicom/value/charset.h"
#include "dicom/value/tags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
dataset_writer_free(struct dataset_writer *set)
{
    dicom_inherited_free(&set->inherited);
    element_buffer_free(&set->elements);
}

/* VR and value of an element as dicom_inherit gives it. */
static void
element_value(const struct dicom_element *element, const char **vr, const char **value,
              size_t *size)
{
    const char *bytes = (const char *)element->bytes;
    bool is_short = memcmp(bytes + 6, "\0\0", 2) != 0;
    size_t head = is_short || element->size == 8 ? 8 : 12;
    *vr = bytes + 4;
    *value = bytes + (head < element->size ? head : element->size);
    *size = element->size - (size_t)(*value - bytes);
}

void
dataset_inherited_text(const struct dataset_writer *set, uint32_t tag, char *text, size_t text_size)
{
    text[0] = '\0';
    for (size_t i = 0; i < set->inherited.count; i++) {
        if (set->inherited.elements[i].tag != tag)
            continue;
        const char *vr;
        const char *value;
        size_t size;
        element_value(&set->inherited.elements[i], &vr, &value, &size);
        while (size > 0 && (value[size - 1] == ' ' || value[size - 1] == '\0'))
            size--;
        snprintf(text, text_size, "%.*s", (int)(size < text_size ? size : text_size - 1), value);
    }
}

int
dataset_settle_character_set(struct dataset_writer *set, bool ascii)
{
    char name[64];
    dataset_inherited_text(set, TAG_SpecificCharacterSet, name, sizeof(name));
    set->ascii_only = ascii;
    if (ascii || strcmp(name, "ISO_IR 192") == 0)
        return 0;
    int error = charset_to_utf8(&set->inherited);
    set->ascii_only = error != 0;
    return error == -ENOMEM ? error : 0;
}

void
dataset_date_time(const struct dataset_writer *set, int64_t unix_ms, char date[VALUE_DA_SIZE],
                  char time[VALUE_TM_SIZE])
{
    char offset[8];
    int hours;
    int minutes;
    char sign;
    int east = 0;
    dataset_inherited_text(set, TAG_TimezoneOffsetFromUTC, offset, sizeof(offset));
    if (sscanf(offset, "%c%2d%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-'))
        east = (sign == '-' ? -1 : 1) * (hours * 60 + minutes);
    value_date_time(unix_ms, east, date, time);
}

/*
 * Whether an optional inherited attribute may stand in an object that is to be valid: it is not
 * retired, and its value has the form of its VR (an age of "42" has not).
 */
static bool
is_valid_here(const struct dicom_element *element)
{
    const char *vr;
    const char *value;
    size_t size;
    element_value(element, &vr, &value, &size);
    return element->tag != TAG_OtherPatientIDs && value_is_legal(vr, value, size);
}

/* Writes what is inherited below `tag`. */
static void
inherit_below(struct dataset_writer *set, uint32_t tag)
{
    for (; set->next_inherited < set->inherited.count; set->next_inherited++) {
        const struct dicom_element *element = &set->inherited.elements[set->next_inherited];
        if (element->tag >= tag)
            return;
        if (is_valid_here(element))
            element_append(&set->elements, element->bytes, element->size);
    }
}

void
dataset_reach(struct dataset_writer *set, uint32_t tag)
{
    inherit_below(set, tag);
    if (set->next_inherited < set->inherited.count &&
        set->inherited.elements[set->next_inherited].tag == tag)
        set->next_inherited++;
}

void
dataset_put_inherited(struct dataset_writer *set, uint32_t tag, const char vr[2])
{
    inherit_below(set, tag);
    if (set->next_inherited < set->inherited.count &&
        set->inherited.elements[set->next_inherited].tag == tag) {
        const struct dicom_element *element = &set->inherited.elements[set->next_inherited++];
        element_append(&set->elements, element->bytes, element->size);
    } else {
        element_header(&set->elements, tag, vr, 0);
    }
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
dataset_add_clean(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                  const char vr[2], const char *text, size_t characters, enum value_text_kind kind)
{
    char *clean = value_text_clean(text, characters, kind, set->ascii_only);
    if (clean)
        element_text(to, tag, vr, clean);
    else if (!to->error)
        to->error = -ENOMEM;
    free(clean);
}

void
dataset_add_line(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                 const char *text)
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
dataset_add_code_values(const struct dataset_writer *set, struct element_buffer *to,
                        const struct coded_concept *code)
{
    bool is_long = strlen(code->value) > SH_CHARACTERS;
    if (!is_long)
        dataset_add_clean(set, to, TAG_CodeValue, "SH", code->value, SH_CHARACTERS, VALUE_LINE);
    dataset_add_clean(set, to, TAG_CodingSchemeDesignator, "SH", code->scheme, SH_CHARACTERS,
                      VALUE_LINE);
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

void
dataset_add_own_scheme(struct element_buffer *to)
{
    size_t item = element_open_item(to);
    element_text(to, TAG_CodingSchemeDesignator, "SH", CONCEPT_OWN_SCHEME);
    element_text(to, TAG_CodingSchemeVersion, "SH", "1");
    element_text(to, TAG_CodingSchemeName, "ST", "Noctule: measurements and their settings");
    element_text(to, TAG_CodingSchemeResponsibleOrganization, "ST", "Noctule");
    element_close(to, item);
}

static bool
is_said(const char *text)
{
    return text && text[0] != '\0';
}

bool
dataset_code_is_whole(const struct coded_concept *code)
{
    return is_said(code->value) && is_said(code->scheme) && is_said(code->meaning);
}

bool
dataset_code_is_half(const struct coded_concept *code)
{
    return code->value && !dataset_code_is_whole(code);
}

bool
dataset_code_is_ascii(const struct coded_concept *code)
{
    return !code->value || (value_text_is_ascii(code->value) && value_text_is_ascii(code->scheme) &&
                            value_text_is_ascii(code->meaning));
}
