/*
 * keys.cc - reads the keys of keys.def, which distinguish frames, from attributes of the standard,
 * or else from vendors' private ones.
 *
 * Private elements and their meaning: dcm2niix (the READMEs of its folders GE, Philips, UIH, Canon,
 * https://github.com/rordenlab/dcm2niix), NA-MIC's page "DICOM for DWI and DTI"
 * (https://www.na-mic.org/wiki/NAMIC_Wiki:DTI:DICOM_for_DWI_and_DTI) and the data dictionary
 * private.dic of DCMTK.
 */
#include "dicom/read/image/source.hh"

#include <array>
#include <cmath>
#include <cstdio>

namespace
{

constexpr char ge_acquisition[] = "GEMS_ACQU_01";
constexpr char ge_parameters[] = "GEMS_PARM_01";
constexpr char philips_imaging[] = "Philips Imaging DD 001";
constexpr char philips_mr[] = "Philips MR Imaging DD 001";
constexpr char philips_mr_frame[] = "Philips MR Imaging DD 005";
constexpr char uih[] = "Image Private Header";

constexpr struct private_attribute ge_b_value {
    0x0043, 0x39, ge_parameters, EVR_IS
};

constexpr struct private_attribute ge_component {
    0x0043, 0x2F, ge_parameters, EVR_SS
};
constexpr struct private_attribute ge_direction[] = {{0x0019, 0xBB, ge_acquisition, EVR_IS},
                                                     {0x0019, 0xBC, ge_acquisition, EVR_IS},
                                                     {0x0019, 0xBD, ge_acquisition, EVR_IS}};

constexpr struct private_attribute philips_b_value {
    0x2001, 0x03, philips_imaging, EVR_FL
};

constexpr struct private_attribute philips_diffusion {
    0x2001, 0x04, philips_imaging, EVR_CS
};

constexpr struct private_attribute philips_phase {
    0x2001, 0x08, philips_imaging, EVR_IS
};
constexpr struct private_attribute philips_direction[] = {
    {0x2005, 0xB0, philips_mr, EVR_FL}, {0x2005, 0xB1, philips_mr, EVR_FL}, {0x2005, 0xB2, philips_mr, EVR_FL}};

constexpr struct private_attribute philips_component {
    0x2005, 0x11, philips_mr, EVR_CS
};

constexpr struct private_attribute philips_dynamic_time {
    0x2005, 0xA0, philips_mr, EVR_FL
};

constexpr struct private_attribute philips_frame {
    0x2005, 0x0F, philips_mr_frame, EVR_SQ
};

constexpr struct private_attribute philips_label {
    0x2005, 0x29, philips_mr_frame, EVR_CS
};

constexpr struct private_attribute uih_b_value {
    0x0065, 0x09, uih, EVR_FD
};

constexpr struct private_attribute uih_direction {
    0x0065, 0x37, uih, EVR_FD
};

using Vector = std::array<double, 3>;

/* Formats a number so that equal numbers have equal texts, however the source formats them. */
std::string
canonical(double value, const char *unit)
{
    char text[DICOM_DS_SIZE];
    snprintf(text, sizeof(text), "%.6g%s", value, unit);
    return text;
}

std::string
canonical_number(const Header &header, const DcmTagKey &tag, const char *unit = "")
{
    double value;
    if (!header_number(header, tag, &value) || !std::isfinite(value))
        return {};
    return canonical(value, unit);
}

void
key_append(std::string &text, const std::string &part, const char *separator)
{
    if (!text.empty() && !part.empty())
        text += separator;
    text += part;
}

/* Reads the Echo Number, if present, and the echo time, because some senders give all echoes one
 * number. */
std::string
read_echo(const Source &source)
{
    if (source.has_groups)
        return canonical_number(source.group(DCM_MREchoSequence), DCM_EffectiveEchoTime, " ms");
    std::string text = canonical_number(source.dataset, DCM_EchoNumbers);
    key_append(text, canonical_number(source.dataset, DCM_EchoTime, " ms"), " at ");
    return text;
}

/* ---- diffusion ---- */

std::string
read_b_value(const Source &source, const Header &diffusion)
{
    const std::string text = canonical_number(diffusion, DCM_DiffusionBValue);
    if (!text.empty() || source.has_groups)
        return text;
    const Header &dataset = source.dataset;
    double value;
    bool found = siemens_number(source, siemens_b_value, &value) && std::isfinite(value);
    for (const auto &attribute : {philips_b_value, uih_b_value})
        found = found || (header_private_number(dataset, attribute, &value) && std::isfinite(value));
    /* GE adds flags as multiples of 100,000, and 10^9 in most cases (NA-MIC; dcm2niix). */
    if (!found && header_private_number(dataset, ge_b_value, &value) && value >= 0 && value < 1e12) {
        value = std::fmod(value, 1e5);
        found = true;
    }
    return !found || value < 0 ? std::string() : canonical(value, "");
}

/* Reads three components by `read`. Returns false if one is missing. */
template <typename Read>
bool
read_vector(Vector &vector, Read read)
{
    for (unsigned i = 0; i < vector.size(); i++)
        if (!read(i, &vector[i]))
            return false;
    return true;
}

/* Computes the direction of a b-matrix of one direction (xx, xy, xz, yy, yz, zz), which is b times
 * its outer product. The sign is lost; the largest component counts as positive. */
bool
read_matrix_direction(const Header &diffusion, const Source &source, Vector &direction)
{
    const Header matrix = diffusion.item(DCM_DiffusionBMatrixSequence);
    std::array<double, 6> m;
    for (unsigned i = 0; i < m.size(); i++) {
        const DcmTagKey tag(0x0018, static_cast<Uint16>(0x9602 + i)); /* XX, XY, XZ, YY, YZ, ZZ */
        if (!header_number(matrix, tag, &m[i]) && !siemens_number(source, siemens_b_matrix, &m[i], i))
            return false;
    }
    const std::array<Vector, 3> rows = {{{m[0], m[1], m[2]}, {m[1], m[3], m[4]}, {m[2], m[4], m[5]}}};
    size_t largest = 0;
    for (size_t i = 1; i < 3; i++)
        if (rows[i][i] > rows[largest][largest])
            largest = i;
    direction = rows[largest];
    const double length = std::hypot(direction[0], direction[1], direction[2]);
    for (double &component : direction)
        component = length > 0 ? component / length : 0;
    return true;
}

/* Canon writes the direction only in Image Comments, "b=1500(0.895,-0.445,0.000)". */
bool
read_canon_direction(const Header &dataset, Vector &direction)
{
    const std::string text = header_text(dataset, DCM_ImageComments);
    size_t start = text.compare(0, 2, "b=") == 0 ? text.find('(') : std::string::npos;
    for (size_t i = 0; i < direction.size(); i++) {
        if (start == std::string::npos)
            return false;
        const size_t end = text.find_first_of(",)", start + 1);
        if (end == std::string::npos || !header_parse_number(text.substr(start + 1, end - start - 1), &direction[i]))
            return false;
        start = end;
    }
    return true;
}

bool
read_vendor_direction(const Source &source, Vector &direction)
{
    const Header &dataset = source.dataset;
    const auto siemens = [&](unsigned i, double *value) { return siemens_number(source, siemens_direction, value, i); };
    const auto philips = [&](unsigned i, double *value) {
        return header_private_number(dataset, philips_direction[i], value);
    };
    const auto united = [&](unsigned i, double *value) {
        return header_private_number(dataset, uih_direction, value, i);
    };
    const auto ge = [&](unsigned i, double *value) { return header_private_number(dataset, ge_direction[i], value); };
    return read_vector(direction, siemens) || read_vector(direction, philips) || read_vector(direction, united) ||
           read_vector(direction, ge) || read_canon_direction(dataset, direction);
}

/* Rounds to three decimals. Further decimals of one gradient vary. */
std::string
canonical_direction(const Vector &direction)
{
    std::string text;
    bool is_null = true;
    for (const double component : direction) {
        if (!std::isfinite(component))
            return {};
        const double rounded = std::round(component * 1000) / 1000;
        is_null = is_null && rounded == 0;
        char number[32];
        snprintf(number, sizeof(number), "%.3f", rounded == 0 ? 0 : rounded);
        key_append(text, number, " ");
    }
    return is_null ? std::string() : text;
}

/* Returns "" without diffusion weighting. Some vendors then use these elements for other
 * purposes. */
std::string
read_direction(const Source &source, const Header &diffusion, const std::string &b_value)
{
    const std::string directionality = header_text(diffusion, DCM_DiffusionDirectionality);
    if (b_value == "0" || directionality == "NONE")
        return {};
    if (directionality == "ISOTROPIC" ||
        header_text(source.dataset, header_private(source.dataset, philips_diffusion)) == "I")
        return "isotropic";
    Vector direction;
    const Header gradient = diffusion.item(DCM_DiffusionGradientDirectionSequence);
    for (const Header *header : {&gradient, &diffusion})
        if (read_vector(direction, [&](unsigned i, double *value) {
                return header_number(*header, DCM_DiffusionGradientOrientation, value, i);
            }))
            return canonical_direction(direction);
    if ((!b_value.empty() && !source.has_groups && read_vendor_direction(source, direction)) ||
        read_matrix_direction(diffusion, source, direction))
        return canonical_direction(direction);
    return {};
}

/* ---- time and phase ---- */

std::string
read_label(const Source &source)
{
    std::string text = header_text(source.group(DCM_MRArterialSpinLabelingSequence), DCM_ASLContext);
    if (text.empty())
        text = header_text(source.dataset.item(DCM_MRArterialSpinLabelingSequence), DCM_ASLContext);
    if (text.empty()) {
        const Header own = source.frame.item(header_private(source.frame, philips_frame));
        const Header &place = own.empty() ? source.dataset : own;
        text = header_text(place, header_private(place, philips_label));
    }
    if (text == "M_ZERO_SCAN")
        return "m0";
    for (char &c : text)
        c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return text;
}

std::string
read_temporal(const Source &source)
{
    const Header &dataset = source.dataset;
    std::string text;
    if (!source.has_groups)
        text = canonical_number(dataset, DCM_TemporalPositionIdentifier);
    /* Image Index counts slice by slice through the time slices, slots and R-R intervals of a PET
     * series (PS3.3 C.8.9.4.1.9). */
    int32_t index, slices;
    if (!source.has_groups && text.empty() && header_integer(dataset, DCM_ImageIndex, &index) &&
        header_integer(dataset, DCM_NumberOfSlices, &slices) && index >= 1 && slices >= 1)
        text = canonical((index - 1) / slices + 1, "");
    if (text.empty())
        text = canonical_number(source.group(DCM_FrameContentSequence), DCM_TemporalPositionIndex);
    if (text.empty())
        text = canonical_number(source.group(DCM_TemporalPositionSequence), DCM_TemporalPositionTimeOffset, " s");
    double seconds;
    if (text.empty() && header_private_number(dataset, philips_dynamic_time, &seconds))
        text = canonical(seconds, " s");
    return text;
}

/* Reads milliseconds. 0 means no inversion. */
std::string
read_inversion(const Source &source)
{
    const std::string text = source.has_groups
                                 ? canonical_number(source.group(DCM_MRModifierSequence), DCM_InversionTimes, " ms")
                                 : canonical_number(source.dataset, DCM_InversionTime, " ms");
    return text == "0 ms" ? std::string() : text;
}

std::string
read_phase(const Source &source)
{
    const Header cardiac = source.group(DCM_CardiacSynchronizationSequence);
    std::string text = canonical_number(cardiac, DCM_NominalPercentageOfCardiacPhase, " %");
    if (text.empty())
        text = canonical_number(cardiac, DCM_NominalCardiacTriggerDelayTime, " ms");
    if (text.empty())
        text = canonical_number(source.group(DCM_RespiratorySynchronizationSequence),
                                DCM_NominalPercentageOfRespiratoryPhase, " %");
    if (text.empty() && !source.has_groups)
        text = canonical_number(source.dataset, DCM_TriggerTime, " ms");
    double phase;
    if (text.empty() && header_private_number(source.dataset, philips_phase, &phase))
        text = canonical(phase, "");
    return text;
}

/* ---- kinds of values ---- */

/* Returns the component for "M", "M_FFE", "MAGNITUDE" and the like; "" for other words. */
const char *
component_of_word(const std::string &word)
{
    static const struct {
        const char *term, *vendor, *component;
    } components[] = {{"MAGNITUDE", "M", "magnitude"},
                      {"PHASE", "P", "phase"},
                      {"REAL", "R", "real"},
                      {"IMAGINARY", "I", "imaginary"}};

    for (const auto &each : components)
        if (word == each.term || word == each.vendor || word.rfind(std::string(each.vendor) + "_", 0) == 0)
            return each.component;
    return word == "PHASE MAP" ? "phase" : "";
}

std::string
read_component(const Source &source, const std::vector<std::string> &types)
{
    for (const DcmTagKey &sequence : {DCM_MRImageFrameTypeSequence, DCM_CTImageFrameTypeSequence}) {
        const std::string text = component_of_word(header_text(source.group(sequence), DCM_ComplexImageComponent));
        if (!text.empty())
            return text;
    }
    const Header &dataset = source.dataset;
    static const char *const ge_components[] = {"magnitude", "phase", "real", "imaginary"};
    double number;
    if (header_private_number(dataset, ge_component, &number) && number >= 0 && number <= 3)
        return ge_components[static_cast<int>(number)];
    std::string text = component_of_word(header_text(dataset, header_private(dataset, philips_component)));
    for (size_t i = 2; text.empty() && i < types.size(); i++)
        text = component_of_word(types[i]);
    return text;
}

/* Reads Image Type from value 3 on ("M/NORM", "P/ND"), with the stack of an enhanced frame. */
std::string
read_image_type(const Source &source, const std::vector<std::string> &types)
{
    std::string text;
    for (size_t i = 2; i < types.size(); i++)
        key_append(text, types[i], "/");
    if (source.has_groups)
        key_append(text, header_text(source.group(DCM_FrameContentSequence), DCM_StackID), " stack ");
    return text;
}

std::string
read_kernel(const Source &source)
{
    std::string text;
    for (const std::string &part : header_texts(source.group(DCM_CTReconstructionSequence), DCM_ConvolutionKernel))
        key_append(text, part, "/");
    return text;
}

/* Reads the energy of the tube, of a virtual monochromatic image, and the weights of the spectra
 * in a mixed one. */
std::string
read_energy(const Source &source)
{
    const Header details = source.group(DCM_CTXRayDetailsSequence);
    std::string text = canonical_number(details, DCM_KVP, " kV");
    std::string mono = canonical_number(source.group(DCM_MultienergyCTCharacteristicsSequence),
                                        DCM_MonoenergeticEnergyEquivalent, " keV");
    if (mono.empty())
        mono = canonical_number(source.dataset.item(DCM_MultienergyCTCharacteristicsSequence),
                                DCM_MonoenergeticEnergyEquivalent, " keV");
    key_append(text, mono, " as ");
    key_append(text, canonical_number(details, DCM_EnergyWeightingFactor), " weight ");
    return text;
}

std::string
read_acquisition(const Source &source)
{
    std::string text;
    if (source.has_groups)
        text = canonical_number(source.group(DCM_FrameContentSequence), DCM_FrameAcquisitionNumber);
    return text.empty() ? canonical_number(source.dataset, DCM_AcquisitionNumber) : text;
}

/* Copies a text. If it is too long, cuts it and adds a hash, so that long texts stay different. */
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
keys_read(const Source &source, const std::vector<std::string> &types, struct dicom_frame &frame)
{
    /* Some senders add the sequence of the diffusion macro to classic instances too. */
    const Header group = source.group(DCM_MRDiffusionSequence);
    const Header nested = group.item(DCM_MRDiffusionSequence);
    const Header &diffusion = nested.empty() ? group : nested;
    const Header timing = source.group(DCM_MRTimingAndRelatedParametersSequence);
    const std::string b_value = read_b_value(source, diffusion);
    copy_key(frame.echo, read_echo(source));
    copy_key(frame.b_value, b_value);
    copy_key(frame.direction, read_direction(source, diffusion, b_value));
    copy_key(frame.label, read_label(source));
    copy_key(frame.temporal, read_temporal(source));
    copy_key(frame.inversion, read_inversion(source));
    copy_key(frame.flip, canonical_number(timing, DCM_FlipAngle));
    copy_key(frame.phase, read_phase(source));
    copy_key(frame.component, read_component(source, types));
    copy_key(frame.image_type, read_image_type(source, types));
    copy_key(frame.kernel, read_kernel(source));
    copy_key(frame.energy, read_energy(source));
    copy_key(frame.acquisition, read_acquisition(source));
}
