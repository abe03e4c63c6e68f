/*
 * exclude.cc - classifies frames that must not be processed: mosaics that cannot be split,
 * localizers, screenshots, and images computed from images.
 */
#include "dicom/read/image/source.hh"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace
{

/* No scanner has a larger field of view. That of a mosaic includes all its tiles. */
constexpr double max_field_of_view_mm = 700;

constexpr struct {
    enum code code;
    const char *words;
} image_type_words[] = {

#define WORD(kind, words) {CODE_##kind, " " words " "},
#include "dicom/read/image/image_type.def"
#undef WORD
};

/* Returns whether a value from value 3 on has words of the kind. */
bool
types_have_words(const std::vector<std::string> &types, enum code code)
{
    for (size_t i = 2; i < types.size(); i++) {
        std::string value = " " + types[i] + " ";
        std::replace(value.begin(), value.end(), '_', ' ');
        for (const auto &word : image_type_words)
            if (word.code == code && value.find(word.words) != std::string::npos)
                return true;
    }
    return false;
}

bool
types_have(const std::vector<std::string> &types, const char *value)
{
    return std::find(types.begin(), types.end(), value) != types.end();
}

/* Returns whether the pixels are a multiple of the acquired ones, two or more. One of two
 * attributes has the acquired matrix. */
bool
is_multiple(int32_t pixels, double acquired, double otherwise)
{
    const double matrix = acquired > 0 ? acquired : otherwise;
    return matrix > 0 && pixels >= 2 * matrix && std::fmod(pixels, matrix) == 0;
}

/* Acquisition Matrix has frequency rows, frequency columns, phase rows, phase columns. Two of
 * them are 0. */
bool
has_tile_geometry(const Header &dataset, const struct dicom_instance &instance, const struct dicom_frame &frame)
{
    double m[4];
    if (strcmp(instance.modality, "MR") != 0 || instance.frame_count > 1 || !frame.has_spacing ||
        instance.rows * frame.pixel_spacing[0] <= max_field_of_view_mm)
        return false;
    for (unsigned long i = 0; i < 4; i++)
        if (!header_number(dataset, DCM_AcquisitionMatrix, &m[i], i))
            return false;
    return is_multiple(instance.rows, m[0], m[2]) && is_multiple(instance.columns, m[1], m[3]);
}

/* Checks Volume Based Calculation Technique (0008,9207), of the frame if it has its own. */
bool
is_calculated(const Source &source)
{
    for (const DcmTagKey &sequence :
         {DCM_MRImageFrameTypeSequence, DCM_CTImageFrameTypeSequence, DCM_PETFrameTypeSequence}) {
        const std::string technique = header_text(source.group(sequence), DCM_VolumeBasedCalculationTechnique);
        if (!technique.empty())
            return technique != "NONE" && technique != "MIXED";
    }
    return false;
}

} // namespace

void
exclude_read(const Source &source, const std::vector<std::string> &types, const struct dicom_instance &instance,
             struct dicom_frame &frame)
{
    frame.derived = !types.empty() && types[0] == "DERIVED";
    frame.tiles = mosaic_tiles(source);
    frame.excluded = CODE_NONE;
    if (instance.tile_columns == 0 && (types_have(types, "MOSAIC") || types_have(types, "VFRAME") || frame.tiles > 0 ||
                                       has_tile_geometry(source.dataset, instance, frame)))
        frame.excluded = CODE_MOSAIC;
    else if (types_have_words(types, CODE_LOCALIZER))
        frame.excluded = CODE_LOCALIZER;
    else if (types_have_words(types, CODE_SCREENSHOT))
        frame.excluded = CODE_SCREENSHOT;
    else if (is_calculated(source) || (frame.derived && types_have_words(types, CODE_DERIVED_IMAGE)))
        frame.excluded = CODE_DERIVED_IMAGE;
}
