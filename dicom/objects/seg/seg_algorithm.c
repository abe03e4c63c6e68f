/* seg_algorithm.c - algorithm of a segment: Noctule's own, or that of the annotation object it was taken from. */
#include "dicom/objects/seg/seg_parts.h"

#include "dicom/value/tags.h"

#include <string.h>

static const struct coded_concept deformable_models = {"123111", "DCM", "Deformable Models"};

const char *
seg_algorithm_type(const struct seg_segment *segment)
{
    const struct provenance *from = segment->provenance;
    if (!from)
        return "AUTOMATIC";
    if (from->type[0] == '\0' || (segment->changed && strcmp(from->type, "MANUAL") == 0) ||
        (segment->corrected && strcmp(from->type, "AUTOMATIC") == 0))
        return "SEMIAUTOMATIC";
    return from->type;
}

/* Returns the name in the object, or else that of its first algorithm, or NULL for a manual region without a name. */
static const char *
algorithm_source_name(const struct provenance *from, size_t index)
{
    if (from->name_count > 0)
        return index < from->name_count ? from->names[index] : NULL;
    if (index > 0)
        return NULL;
    if (from->algorithm_count > 0 && from->algorithms[0].name[0] != '\0')
        return from->algorithms[0].name;
    return strcmp(from->type, "MANUAL") == 0 ? NULL : SEG_ALGORITHM_NOT_STATED;
}

const char *
seg_algorithm_name(const struct seg_segment *segment, size_t index)
{
    size_t count = 0;
    if (strcmp(seg_algorithm_type(segment), "MANUAL") == 0)
        return NULL;
    if (segment->provenance) {
        while (algorithm_source_name(segment->provenance, count))
            count++;
        if (index < count)
            return algorithm_source_name(segment->provenance, index);
        if (!segment->changed)
            return NULL;
    }
    return index == count ? segment->algorithm_name : NULL;
}

bool
seg_algorithm(const struct seg_segment *segment, size_t index, struct provenance_algorithm *algorithm)
{
    const struct provenance *from = segment->provenance;
    size_t count = 0;
    for (size_t i = 0; from && i < from->algorithm_count; i++) {
        const struct provenance_algorithm *each = &from->algorithms[i];
        /* An item must have family, name and version (PS3.3 10.16). */
        if (!each->family.value || !each->name[0] || !each->version[0] || count++ != index)
            continue;
        *algorithm = *each;
        return true;
    }
    if (index > 0 || count > 0 || (from && !segment->changed))
        return false;
    *algorithm = (struct provenance_algorithm){
        .family = segment->algorithm_family.value ? segment->algorithm_family : deformable_models,
        .name = segment->algorithm_name,
        .version = segment->algorithm_version,
        .parameters = segment->algorithm_parameters,
        .source = "",
    };
    return true;
}

bool
seg_algorithm_is_ascii(const struct seg_segment *segment)
{
    struct provenance_algorithm algorithm;
    const char *name;
    bool ascii = true;
    for (size_t i = 0; (name = seg_algorithm_name(segment, i)); i++)
        ascii = ascii && value_text_is_ascii(name);
    for (size_t i = 0; seg_algorithm(segment, i, &algorithm); i++)
        ascii = ascii && value_text_is_ascii(algorithm.name) && value_text_is_ascii(algorithm.version) &&
                value_text_is_ascii(algorithm.parameters) && value_text_is_ascii(algorithm.source) &&
                dataset_code_is_ascii(&algorithm.family) && dataset_code_is_ascii(&algorithm.code);
    return ascii;
}

void
seg_add_algorithms(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                   const struct seg_segment *segment)
{
    struct provenance_algorithm algorithm;
    if (!seg_algorithm(segment, 0, &algorithm))
        return;
    size_t sequence = element_open_sequence(to, tag);
    for (size_t i = 0; seg_algorithm(segment, i, &algorithm); i++) {
        size_t item = element_open_item(to);
        if (algorithm.source[0] != '\0')
            dataset_add_line(set, to, TAG_AlgorithmSource, algorithm.source);
        dataset_add_code(set, to, TAG_AlgorithmFamilyCodeSequence, &algorithm.family);
        if (algorithm.code.value)
            dataset_add_code(set, to, TAG_AlgorithmNameCodeSequence, &algorithm.code);
        dataset_add_line(set, to, TAG_AlgorithmVersion, algorithm.version);
        if (algorithm.parameters[0] != '\0')
            dataset_add_clean(set, to, TAG_AlgorithmParameters, "LT", algorithm.parameters, LT_CHARACTERS, VALUE_LINES);
        dataset_add_line(set, to, TAG_AlgorithmName, algorithm.name);
        element_close(to, item);
    }
    element_close(to, sequence);
}

void
seg_add_type(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
             const struct seg_segment *segment)
{
    size_t type = element_open_only_item(to, tag);
    dataset_add_code_values(set, to, &segment->type);
    if (segment->modifier.value)
        dataset_add_code(set, to, TAG_SegmentedPropertyTypeModifierCodeSequence, &segment->modifier);
    element_close_only_item(to, type);
}

bool
seg_segment_is_ascii(const struct seg_segment *segment)
{
    return value_text_is_ascii(segment->label) && value_text_is_ascii(segment->description) &&
           seg_algorithm_is_ascii(segment) && dataset_code_is_ascii(&segment->category) &&
           dataset_code_is_ascii(&segment->type) && dataset_code_is_ascii(&segment->modifier) &&
           dataset_code_is_ascii(&segment->region);
}
