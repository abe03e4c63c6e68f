/*
 * frames.cc - where each frame lies, how its values are scaled, and what sets it apart.
 *
 * Classic instances carry these attributes in the data set; enhanced ones in functional groups,
 * each of which may be shared or per frame. Both go through the same readers: Source answers which
 * item holds a functional group's attributes.
 */
#include "dicom/read/header.hh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace
{

/* Where one frame's attributes are. */
class Source
{
  public:
    explicit Source(DcmItem &dataset)
        : dataset_(dataset), shared_(header_item(dataset, DCM_SharedFunctionalGroupsSequence))
    {
        if (dataset.findAndGetSequence(DCM_PerFrameFunctionalGroupsSequence, sequence_).bad())
            sequence_ = nullptr;
    }

    bool has_groups() const
    {
        return shared_ || sequence_;
    }

    /* To the next frame's functional groups; items are visited in order, as indexed access to a
     * DCMTK sequence is linear. */
    void advance()
    {
        if (sequence_ && !exhausted_) {
            frame_ = static_cast<DcmItem *>(sequence_->nextInContainer(frame_));
            exhausted_ = !frame_;
        }
    }

    /* The item with the attributes of a functional group: this frame's, or the shared one, or, in
     * a classic instance, the data set; nullptr when an enhanced instance lacks the group. */
    DcmItem *group(const DcmTagKey &sequence)
    {
        if (!has_groups())
            return &dataset_;
        DcmItem *item = frame_ ? header_item(*frame_, sequence) : nullptr;
        if (!item && shared_)
            item = header_item(*shared_, sequence);
        return item;
    }

    DcmItem &dataset()
    {
        return dataset_;
    }

  private:
    DcmItem &dataset_;
    DcmItem *shared_;
    DcmSequenceOfItems *sequence_ = nullptr;
    DcmItem *frame_ = nullptr;
    bool exhausted_ = false;
};

/* `count` finite numbers and the text that the source has for them. */
template <size_t count>
bool
read_decimals(DcmItem *item, const DcmTagKey &tag, double (&values)[count],
              char (&texts)[count][DICOM_DS_SIZE])
{
    if (!item)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!header_number(*item, tag, &values[i], i) || !std::isfinite(values[i]))
            return false;
        const std::string text = header_text(*item, tag, i);
        if (text.size() < DICOM_DS_SIZE)
            header_copy(texts[i], text);
        else
            snprintf(texts[i], sizeof(texts[i]), "%.10g", values[i]);
    }
    return true;
}

bool
is_orthonormal(const double (&o)[6])
{
    const double tolerance = 1e-3;
    const double row = std::sqrt(o[0] * o[0] + o[1] * o[1] + o[2] * o[2]);
    const double column = std::sqrt(o[3] * o[3] + o[4] * o[4] + o[5] * o[5]);
    const double dot = o[0] * o[3] + o[1] * o[4] + o[2] * o[5];
    return std::fabs(row - 1) <= tolerance && std::fabs(column - 1) <= tolerance &&
           std::fabs(dot) <= tolerance;
}

/* Lengths beyond these are mistakes, and would overflow what is computed from them. */
constexpr double max_position_mm = 1e6;
constexpr double min_spacing_mm = 1e-3;
constexpr double max_spacing_mm = 1e3;

bool
is_spacing(double millimetres)
{
    return millimetres >= min_spacing_mm && millimetres <= max_spacing_mm;
}

bool
is_position(const double (&p)[3])
{
    return std::fabs(p[0]) <= max_position_mm && std::fabs(p[1]) <= max_position_mm &&
           std::fabs(p[2]) <= max_position_mm;
}

double
spacing_or_zero(DcmItem *item, const DcmTagKey &tag)
{
    double value;
    return item && header_number(*item, tag, &value) && is_spacing(value) ? value : 0;
}

void
read_geometry(Source &source, bool only_frame, struct dicom_frame &frame)
{
    frame.has_position =
        (source.has_groups() || only_frame) &&
        read_decimals(source.group(DCM_PlanePositionSequence), DCM_ImagePositionPatient,
                      frame.position, frame.position_text) &&
        is_position(frame.position);
    frame.has_orientation =
        read_decimals(source.group(DCM_PlaneOrientationSequence), DCM_ImageOrientationPatient,
                      frame.orientation, frame.orientation_text) &&
        is_orthonormal(frame.orientation);
    DcmItem *measures = source.group(DCM_PixelMeasuresSequence);
    frame.has_spacing =
        read_decimals(measures, DCM_PixelSpacing, frame.pixel_spacing, frame.spacing_text) &&
        is_spacing(frame.pixel_spacing[0]) && is_spacing(frame.pixel_spacing[1]);
    frame.slice_thickness = spacing_or_zero(measures, DCM_SliceThickness);
    frame.spacing_between_slices = spacing_or_zero(measures, DCM_SpacingBetweenSlices);
}

/* What is there but no number becomes NaN, which the gate refuses. */
double
rescale_number(DcmItem &item, const DcmTagKey &tag)
{
    double value;
    return header_number(item, tag, &value) ? value : std::numeric_limits<double>::quiet_NaN();
}

void
read_rescale(Source &source, struct dicom_frame &frame)
{
    frame.slope = 1;
    frame.intercept = 0;
    DcmItem *item = source.group(DCM_PixelValueTransformationSequence);
    if (!item || !header_has(*item, DCM_RescaleSlope) || !header_has(*item, DCM_RescaleIntercept))
        return;
    frame.has_rescale = true;
    frame.slope = rescale_number(*item, DCM_RescaleSlope);
    frame.intercept = rescale_number(*item, DCM_RescaleIntercept);
}

/* A number as a text that is equal for equal numbers, however the source formats them. */
std::string
canonical(double value, const char *unit)
{
    char text[DICOM_DS_SIZE];
    snprintf(text, sizeof(text), "%.6g%s", value, unit);
    return text;
}

std::string
canonical_number(DcmItem *item, const DcmTagKey &tag, const char *unit = "")
{
    double value;
    if (!item || !header_number(*item, tag, &value) || !std::isfinite(value))
        return {};
    return canonical(value, unit);
}

void
frames_append(std::string &text, const std::string &part, const char *separator)
{
    if (!text.empty() && !part.empty())
        text += separator;
    text += part;
}

/* Echo Number where there is one, and the echo time, which tells apart what some senders number
 * alike. */
std::string
read_echo(Source &source)
{
    if (source.has_groups())
        return canonical_number(source.group(DCM_MREchoSequence), DCM_EffectiveEchoTime, " ms");
    std::string text = canonical_number(&source.dataset(), DCM_EchoNumbers);
    frames_append(text, canonical_number(&source.dataset(), DCM_EchoTime, " ms"), " at ");
    return text;
}

std::string
read_phase(Source &source)
{
    DcmItem *item = source.group(DCM_CardiacSynchronizationSequence);
    std::string text = canonical_number(item, DCM_NominalPercentageOfCardiacPhase, " %");
    if (text.empty())
        text = canonical_number(item, DCM_NominalCardiacTriggerDelayTime, " ms");
    if (text.empty() && source.has_groups())
        text = canonical_number(source.group(DCM_RespiratorySynchronizationSequence),
                                DCM_NominalPercentageOfRespiratoryPhase, " %");
    if (text.empty() && !source.has_groups())
        text = canonical_number(item, DCM_TriggerTime, " ms");
    return text;
}

/* Siemens classic MR keeps the b-value in its private group, as a string. */
std::string
read_siemens_b_value(DcmItem &dataset)
{
    const DcmTagKey creator(0x0019, 0x0010), b_value(0x0019, 0x100C);
    if (header_text(dataset, creator) != "SIEMENS MR HEADER")
        return {};
    const std::string text = header_text(dataset, b_value);
    char *end;
    const long value = strtol(text.c_str(), &end, 10);
    return text.empty() || *end ? std::string() : canonical(static_cast<double>(value), "");
}

std::string
read_b_value(Source &source)
{
    std::string text = canonical_number(source.group(DCM_MRDiffusionSequence), DCM_DiffusionBValue);
    if (text.empty() && !source.has_groups())
        text = read_siemens_b_value(source.dataset());
    return text;
}

/* Image Index counts slice by slice through the time slices, slots and R-R intervals of a PET
 * series (PS3.3 C.8.9.4.1.9). */
std::string
read_pet_time(DcmItem &dataset)
{
    int32_t index = 0, slices = 0;
    if (!header_integer(dataset, DCM_ImageIndex, &index) ||
        !header_integer(dataset, DCM_NumberOfSlices, &slices) || index < 1 || slices < 1)
        return {};
    return canonical((index - 1) / slices + 1, "");
}

std::string
read_temporal(Source &source)
{
    if (source.has_groups()) {
        std::string text =
            canonical_number(source.group(DCM_FrameContentSequence), DCM_TemporalPositionIndex);
        if (text.empty())
            text = canonical_number(source.group(DCM_TemporalPositionSequence),
                                    DCM_TemporalPositionTimeOffset, " s");
        return text;
    }
    std::string text = canonical_number(&source.dataset(), DCM_TemporalPositionIdentifier);
    return text.empty() ? read_pet_time(source.dataset()) : text;
}

std::string
joined_from_third(const std::vector<std::string> &values)
{
    std::string text;
    for (size_t i = 2; i < values.size(); i++)
        frames_append(text, values[i], "/");
    return text;
}

/* Image Type from value 3 on ("M/NORM", "P/ND"), of the frame where it has its own, with the part
 * of a complex value and the stack. */
std::string
read_acquisition(Source &source)
{
    if (!source.has_groups())
        return joined_from_third(header_texts(source.dataset(), DCM_ImageType));
    std::string text;
    for (const DcmTagKey &sequence :
         {DCM_MRImageFrameTypeSequence, DCM_CTImageFrameTypeSequence, DCM_PETFrameTypeSequence}) {
        DcmItem *item = source.group(sequence);
        if (!item)
            continue;
        frames_append(text, joined_from_third(header_texts(*item, DCM_FrameType)), "/");
        frames_append(text, header_text(*item, DCM_ComplexImageComponent), "/");
    }
    if (DcmItem *content = source.group(DCM_FrameContentSequence))
        frames_append(text, header_text(*content, DCM_StackID), " stack ");
    return text;
}

/* Texts that do not fit are told apart by a digest rather than cut alike. */
void
copy_key(char (&destination)[DICOM_DS_SIZE], const std::string &text)
{
    if (text.size() < DICOM_DS_SIZE) {
        header_copy(destination, text);
        return;
    }
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char c : text)
        hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    snprintf(destination, sizeof(destination), "%.20s~%08x", text.c_str(), hash);
}

} // namespace

void
frames_read(DcmItem &dataset, struct dicom_instance &instance)
{
    Source source(dataset);
    for (int32_t i = 0; i < instance.frame_count; i++) {
        source.advance();
        struct dicom_frame &frame = instance.frames[i];
        read_geometry(source, instance.frame_count == 1, frame);
        read_rescale(source, frame);
        copy_key(frame.echo, read_echo(source));
        copy_key(frame.phase, read_phase(source));
        copy_key(frame.b_value, read_b_value(source));
        copy_key(frame.temporal, read_temporal(source));
        copy_key(frame.image_type, read_acquisition(source));
        copy_key(frame.acquisition, canonical_number(&source.dataset(), DCM_AcquisitionNumber));
    }
}
