/*
 * frames.cc - position, rescale and acquisition time of each frame.
 *
 * The same functions read classic and enhanced instances: Source finds the item with a functional
 * group's attributes.
 */
#include "dicom/read/image/source.hh"

#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

Source::Source(const Header &whole, const struct scan &scan)
    : dataset(whole), shared(whole.item(DCM_SharedFunctionalGroupsSequence)),
      has_groups(scan.has_frames || !shared.empty()), scan_(scan)
{
}

void
Source::advance()
{
    frame = Header();
    item_.clear();
    has_own = next_ < scan_.frame_count;
    if (!has_own)
        return;
    if (!header_parse_separate(scan_, next_++, item_))
        throw std::runtime_error("a frame's functional groups");
    frame = Header(item_);
}

Header
Source::group(const DcmTagKey &sequence) const
{
    if (!has_groups)
        return dataset;
    const Header own = frame.item(sequence);
    return own.empty() ? shared.item(sequence) : own;
}

/* Returns Image Type, or Frame Type of an enhanced frame. */
static std::vector<std::string>
source_types(const Source &source)
{
    for (const DcmTagKey &sequence :
         {DCM_MRImageFrameTypeSequence, DCM_CTImageFrameTypeSequence, DCM_PETFrameTypeSequence}) {
        if (!source.has_groups)
            break;
        const std::vector<std::string> types = header_texts(source.group(sequence), DCM_FrameType);
        if (!types.empty())
            return types;
    }
    return header_texts(source.dataset, DCM_ImageType);
}

namespace
{

/* Reads `count` finite numbers and their texts. */
template <size_t count>
bool
read_decimals(const Header &header, const DcmTagKey &tag, double (&values)[count], char (&texts)[count][DICOM_DS_SIZE])
{
    const std::vector<std::string> written = header_texts(header, tag);
    for (size_t i = 0; i < count; i++) {
        if (i >= written.size() || !header_parse_number(written[i], &values[i]) || !std::isfinite(values[i]))
            return false;
        if (written[i].size() < DICOM_DS_SIZE)
            header_copy(texts[i], written[i]);
        else
            snprintf(texts[i], sizeof(texts[i]), "%.10g", values[i]);
    }
    return true;
}

/* Max error of the lengths of direction cosines, and of their dot product. */
constexpr double orthonormal_tolerance = 1e-3;

/* Larger or smaller lengths are mistakes, and would overflow values computed from them. */
constexpr double max_position_mm = 1e6;
constexpr double min_spacing_mm = 1e-3;
constexpr double max_spacing_mm = 1e3;

double
spacing_or_zero(const Header &header, const DcmTagKey &tag)
{
    double value;
    return header_number(header, tag, &value) && frame_is_spacing(value) ? value : 0;
}

/* Returns NaN for a value that is not a number. The geometry check rejects it. */
double
rescale_number(const Header &header, const DcmTagKey &tag)
{
    double value;
    return header_number(header, tag, &value) ? value : std::numeric_limits<double>::quiet_NaN();
}

/* LINEAR ranges from c - 0.5 - (w - 1) / 2 to c - 0.5 + (w - 1) / 2 (PS3.3 C.11.2.1.2.1), which
 * is impossible for widths below 1. Windows of such a width are of real numbers and mean
 * LINEAR_EXACT. */
void
read_window(const Source &source, struct dicom_frame &frame)
{
    const Header values = source.group(DCM_FrameVOILUTSequence);
    const std::string function = header_text(values, DCM_VOILUTFunction);
    double center, width;
    if (!header_number(values, DCM_WindowCenter, &center) || !header_number(values, DCM_WindowWidth, &width) ||
        !std::isfinite(center) || !std::isfinite(width) || width <= 0 ||
        !(function.empty() || function == "LINEAR" || function == "LINEAR_EXACT"))
        return;
    const bool exact = function == "LINEAR_EXACT" || width <= 1;
    const double middle = exact ? center : center - 0.5, half = (exact ? width : width - 1) / 2;
    frame.has_window = true;
    frame.window_center = center;
    frame.window_width = width;
    frame.window_low = middle - half;
    frame.window_high = middle + half;
}

} // namespace

bool
frame_is_position(const double (&p)[3])
{
    return std::fabs(p[0]) <= max_position_mm && std::fabs(p[1]) <= max_position_mm &&
           std::fabs(p[2]) <= max_position_mm;
}

bool
frame_is_spacing(double millimetres)
{
    return millimetres >= min_spacing_mm && millimetres <= max_spacing_mm;
}

bool
frame_read_spacing(const Header &header, const DcmTagKey &tag, struct dicom_frame &frame)
{
    return read_decimals(header, tag, frame.pixel_spacing, frame.spacing_text) &&
           frame_is_spacing(frame.pixel_spacing[0]) && frame_is_spacing(frame.pixel_spacing[1]);
}

void
frame_read_geometry(const Source &source, bool only_frame, struct dicom_frame &frame)
{
    frame.has_position = (source.has_groups || only_frame) &&
                         read_decimals(source.group(DCM_PlanePositionSequence), DCM_ImagePositionPatient,
                                       frame.position, frame.position_text) &&
                         frame_is_position(frame.position);
    const double(&o)[6] = frame.orientation;
    frame.has_orientation = read_decimals(source.group(DCM_PlaneOrientationSequence), DCM_ImageOrientationPatient,
                                          frame.orientation, frame.orientation_text);
    if (frame.has_orientation) {
        const double row = std::sqrt(o[0] * o[0] + o[1] * o[1] + o[2] * o[2]);
        const double column = std::sqrt(o[3] * o[3] + o[4] * o[4] + o[5] * o[5]);
        const double dot = o[0] * o[3] + o[1] * o[4] + o[2] * o[5];
        frame.has_orientation = std::fabs(row - 1) <= orthonormal_tolerance &&
                                std::fabs(column - 1) <= orthonormal_tolerance &&
                                std::fabs(dot) <= orthonormal_tolerance;
    }
    const Header measures = source.group(DCM_PixelMeasuresSequence);
    frame.has_spacing = frame_read_spacing(measures, DCM_PixelSpacing, frame);
    frame.spacing = frame.has_spacing ? DICOM_SPACING_PIXEL : DICOM_SPACING_NONE;
    frame.slice_thickness = spacing_or_zero(measures, DCM_SliceThickness);
    frame.spacing_between_slices = spacing_or_zero(measures, DCM_SpacingBetweenSlices);
}

static void
frame_read(const Source &source, const std::string &acquired, struct dicom_instance &instance,
           struct dicom_frame &frame)
{
    const std::vector<std::string> types = source_types(source);
    std::string own; /* acquisition time */
    if (source.has_groups)
        own = header_date_time(source.group(DCM_FrameContentSequence), {DCM_FrameAcquisitionDateTime, {}, {}});
    header_copy(frame.acquired, own.empty() ? acquired : own);
    if (instance.flat)
        spacing_read_flat(source, instance, frame);
    else
        frame_read_geometry(source, instance.frame_count == 1, frame);
    frame.slope = 1;
    frame.intercept = 0;
    /* 2-D images may have it in functional groups, and mostly have it in the data set. */
    const Header own_values = source.group(DCM_PixelValueTransformationSequence);
    const Header values = instance.flat && own_values.empty() ? source.dataset : own_values;
    frame.has_rescale = header_has(values, DCM_RescaleSlope) && header_has(values, DCM_RescaleIntercept) &&
                        instance.colour == DICOM_COLOUR_NONE;
    if (frame.has_rescale) {
        frame.slope = rescale_number(values, DCM_RescaleSlope);
        frame.intercept = rescale_number(values, DCM_RescaleIntercept);
    }
    const Header group = source.group(DCM_RealWorldValueMappingSequence);
    const Header mapping =
        source.has_groups && !group.empty() ? group : source.dataset.item(DCM_RealWorldValueMappingSequence);
    frame.has_mapping = header_number(mapping, DCM_RealWorldValueSlope, &frame.mapping_slope) &&
                        header_number(mapping, DCM_RealWorldValueIntercept, &frame.mapping_intercept) &&
                        std::isfinite(frame.mapping_slope) && std::isfinite(frame.mapping_intercept);
    read_window(source, frame);
    keys_read(source, types, frame);
    exclude_read(source, types, instance, frame);
    counts_read_frame(source, instance);
}

int
frames_read(Source &source, struct scan &scan, struct dicom_instance &instance, struct error *error)
{
    const std::string acquired =
        header_date_time(source.dataset, {DCM_AcquisitionDateTime, DCM_AcquisitionDate, DCM_AcquisitionTime});
    bool had_own = true;
    counts_read(source, instance);
    for (int32_t i = 0; i < instance.frame_count; i++) {
        source.advance();
        if (source.has_own || had_own)
            frame_read(source, acquired, instance, instance.frames[i]);
        else /* equal to the previous frame */
            instance.frames[i] = instance.frames[i - 1];
        had_own = source.has_own;
        if (const int rc = scan_check_time(&scan, instance.path, error))
            return rc;
    }
    if (instance.frames[0].excluded != CODE_MOSAIC || !mosaic_split(source, instance))
        return 0;
    /* Classify the tiles of a mosaic by the rest of the header. */
    exclude_read(source, source_types(source), instance, instance.frames[0]);
    for (int32_t i = 1; i < instance.frame_count; i++)
        instance.frames[i].excluded = instance.frames[0].excluded;
    return 0;
}
