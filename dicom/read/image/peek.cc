/*
 * peek.cc - reads the header of one file and checks that this program can process the image.
 *
 * The checks come in the order of usefulness of their message: first whether it is DICOM, then the
 * kind of object, its identity, its encoding, its pixels, its sizes, and last whether the pixel
 * data is complete. Pixel data is measured, never read.
 */
#include "dicom/read/image/source.hh"
#include "dicom/value/charset.hh"
#include "dicom/value/storage_class.h"
#include "dicom/value/value.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace
{

/* Ascending; all attributes that peek, frames.cc, keys.cc and exclude.cc read, also in items. */
constexpr uint32_t wanted_tags[] = {
    0x00080005, 0x00080008, 0x00080012, 0x00080013, 0x00080016, 0x00080018, 0x00080020, 0x00080022, 0x00080023,
    0x0008002A, 0x00080032, 0x00080033, 0x00080050, 0x00080060, 0x00080070, 0x00080080, 0x00081010, 0x00081030,
    0x0008103E, 0x00081090, 0x00089007, 0x00089207, 0x00089208, 0x00100010, 0x00100020, 0x00100021, 0x00180010,
    0x00180012, 0x00180015, 0x00180050, 0x00180060, 0x00180081, 0x00180082, 0x00180086, 0x00180088, 0x00181060,
    0x00181114, 0x00181164, 0x00181210, 0x00181310, 0x00181314, 0x00182010, 0x00186011, 0x00186012, 0x00186014,
    0x00186018, 0x0018601A, 0x0018601C, 0x0018601E, 0x00186024, 0x00186026, 0x0018602C, 0x0018602E, 0x00189074,
    0x00189075, 0x00189076, 0x00189079, 0x00189082, 0x00189087, 0x00189089, 0x00189112, 0x00189114, 0x00189115,
    0x00189117, 0x00189118, 0x00189226, 0x00189251, 0x00189257, 0x00189314, 0x00189325, 0x00189329, 0x00189353,
    0x00189364, 0x0018937C, 0x00189601, 0x00189602, 0x00189603, 0x00189604, 0x00189605, 0x00189606, 0x00189607,
    0x00189751, 0x0020000D, 0x0020000E, 0x00200011, 0x00200012, 0x00200013, 0x00200032, 0x00200037, 0x00200052,
    0x00200100, 0x00200105, 0x00201002, 0x00204000, 0x00209056, 0x00209057, 0x00209111, 0x00209113, 0x00209116,
    0x00209128, 0x00209153, 0x00209156, 0x00209161, 0x00209162, 0x00209163, 0x00209241, 0x00209245, 0x00209253,
    0x0020930D, 0x00209310, 0x00280002, 0x00280004, 0x00280006, 0x00280008, 0x00280010, 0x00280011, 0x00280030,
    0x00280100, 0x00280101, 0x00280102, 0x00280103, 0x00280120, 0x00280121, 0x00280A02, 0x00281040, 0x00281041,
    0x00281050, 0x00281051, 0x00281052, 0x00281053, 0x00281054, 0x00281056, 0x00281101, 0x00281221, 0x00282110,
    0x00282112, 0x00282114, 0x00283000, 0x00283002, 0x00283004, 0x00289110, 0x00289132, 0x00289145, 0x00409096,
    0x00409224, 0x00409225, 0x00540061, 0x00540071, 0x00540081, 0x00540101, 0x00541000, 0x00541001, 0x00541330,
    0x52009229, 0x52009230,
};

constexpr uint32_t wanted_private_tags[] = {
    0x0019000A, 0x0019000C, 0x0019000E, 0x0019000F, 0x00190027, 0x001900BB, 0x001900BC, 0x001900BD,
    0x00210019, 0x0021004F, 0x002100FE, 0x00290010, 0x00290020, 0x0043002F, 0x00430039, 0x00650009,
    0x00650037, 0x00650050, 0x00650051, 0x20010003, 0x20010004, 0x20010008, 0x20010018, 0x20010081,
    0x2005000F, 0x20050011, 0x20050029, 0x200500A0, 0x200500B0, 0x200500B1, 0x200500B2,
};

constexpr struct private_attribute philips_dynamics {
    0x2001, 0x81, "Philips Imaging DD 001", EVR_IS
};

/* The series of software XA (Siemens), MR VFrame Sequence (United Imaging), and frames
 * (Philips). */
constexpr uint32_t private_sequence_tags[] = {0x002100FE, 0x00650051, 0x2005000F};

/* One peek in progress. */
struct Peek : HeaderReader {
    struct stream &stream;
    struct scan &scan;
    const Header &dataset;
    struct dicom_instance &instance;

    bool has_groups() const
    {
        return scan.frame_count > 0 || header_has(dataset, DCM_SharedFunctionalGroupsSequence);
    }
};

/* For messages. A text that is not a UID must not be repeated, because it may be anything. */
std::string
uid_for_message(const std::string &text)
{
    return header_is_uid(text) ? text : "(invalid)";
}

/* Refuses an NM image with frames that are no pictures of their own: projections and slices of SPECT, and frames over time. */
int
check_planar(Peek &peek)
{
    const std::vector<std::string> types = header_texts(peek.dataset, DCM_ImageType);
    std::string type = types.size() > 2 ? types[2] : std::string();
    if (type == "STATIC" || type == "WHOLE BODY")
        return 0;
    if (!value_is_legal("CS", type.c_str(), type.size()))
        type = "(invalid)";
    return peek.refuse(
        CODE_SOP_CLASS_UNSUPPORTED,
        "is a Nuclear Medicine image of the type \"" + type +
            "\" (Image Type (0008,0008), value 3). Only planar images, STATIC and WHOLE BODY, are processed.");
}

int
check_kind(Peek &peek)
{
    if (header_is_own(peek.dataset))
        return peek.refuse(CODE_OWN_RESULT, "was written by Noctule and is not processed again.");
    std::string uid = header_text(peek.dataset, DCM_SOPClassUID);
    if (uid.empty())
        uid = peek.scan.media_class_uid;
    if (uid.empty()) {
        if (!peek.scan.has_preamble)
            return peek.refuse(CODE_NOT_DICOM, "is not a DICOM file.");
        return peek.missing(DCM_SOPClassUID);
    }
    if (const char *modality = storage_class_modality(uid.c_str())) {
        header_copy(peek.instance.sop_class_uid, uid);
        header_copy(peek.instance.modality, modality);
        peek.instance.flat = storage_class_is_flat(uid.c_str());
        return uid == UID_NuclearMedicineImageStorage ? check_planar(peek) : 0;
    }
    const char *known = dcmFindNameOfUID(uid.c_str());
    return peek.refuse(CODE_SOP_CLASS_UNSUPPORTED,
                       std::string("is of a kind that is not processed: ") +
                           (known ? known : uid_for_message(uid).c_str()) +
                           ". Only CT, MR and PET images, and 2-D images (CR, DX, MG, US, XA, RF, NM, SC), are.");
}

/* Returns 0 if absent or not a number. */
int32_t
count_of(const Header &dataset, const DcmTagKey &tag)
{
    int32_t value;
    return header_integer(dataset, tag, &value) && value > 0 ? value : 0;
}

void
read_description(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    const Header &dataset = peek.dataset;
    if (header_has(dataset, DCM_Modality))
        header_copy(instance.modality, header_text(dataset, DCM_Modality));
    header_copy(instance.body_part, header_text(dataset, DCM_BodyPartExamined));
    header_copy(instance.series_description, header_text(dataset, DCM_SeriesDescription));
#define ABOUT(name, keyword, identifies) header_copy(instance.about.name, header_text(dataset, DCM_##keyword));
#include "base/series_about.def"
    std::string image_type;
    for (const std::string &value : header_texts(dataset, DCM_ImageType))
        image_type += image_type.empty() ? value : "\\" + value;
    header_copy(instance.image_type, image_type);
    header_copy(instance.content, header_date_time(dataset, {DcmTagKey(), DCM_ContentDate, DCM_ContentTime}));
    header_copy(instance.created,
                header_date_time(dataset, {DcmTagKey(), DCM_InstanceCreationDate, DCM_InstanceCreationTime}));
    instance.images_in_acquisition = count_of(dataset, DCM_ImagesInAcquisition);
    instance.temporal_positions = count_of(dataset, DCM_NumberOfTemporalPositions);
    double dynamics;
    if (instance.temporal_positions == 0 && header_private_number(dataset, philips_dynamics, &dynamics))
        instance.temporal_positions = dynamics > 1 && dynamics < LIMIT_FRAMES ? static_cast<int32_t>(dynamics) : 0;
    if (instance.flat) {
        header_copy(instance.intensity_relationship, header_text(dataset, DCM_PixelIntensityRelationship));
        if (!header_integer(dataset, DCM_PixelIntensityRelationshipSign, &instance.intensity_sign))
            instance.intensity_sign = 0;
    }
    instance.contrast =
        !header_text(dataset, DCM_ContrastBolusAgent).empty() || header_has(dataset, DCM_ContrastBolusAgentSequence);
    if (!header_integer(dataset, DCM_InstanceNumber, &instance.instance_number))
        instance.instance_number = 0;
    if (!header_integer(dataset, DCM_SeriesNumber, &instance.series_number))
        instance.series_number = 0;
}

/* Returns the capital of a letter of ASCII, or of Latin-1 in UTF-8 (`last` and `c`). */
char
capital(char last, char c)
{
    const bool is_latin = last == '\xC3' && c >= '\xA0' && c <= '\xBE' && c != '\xB7';
    return (c >= 'a' && c <= 'z') || is_latin ? static_cast<char>(c - 0x20) : c;
}

/* Returns a form of a name that is equal for one patient. Ignores differences that systems
 * introduce: the character set, capitals, empty components, and ideographic or phonetic groups. */
std::string
comparable_name(const Header &dataset)
{
    std::string name = header_text(dataset, DCM_PatientName);
    const bool is_ascii = std::none_of(name.begin(), name.end(), [](char c) { return c < 0 || c == '\x1B'; });
    if (std::string utf8; !is_ascii && Charset(header_character_sets(dataset)).decode(name, utf8))
        name = utf8;
    if (const size_t groups = name.find('='); groups != std::string::npos && groups > 0)
        name.resize(groups);
    std::string text;
    char last = 0;
    for (const char c : name) {
        const char letter = capital(last, c);
        last = c;
        if (letter != '^' && letter != ' ')
            text += letter;
        else if (!text.empty() && text.back() != '^')
            text += '^';
    }
    text.resize(text.find_last_not_of('^') + 1);
    return text;
}

int
read_patient(Peek &peek)
{
    std::string patient = header_text(peek.dataset, DCM_PatientID);
    const bool has_control =
        std::any_of(patient.begin(), patient.end(), [](char c) { return c >= 0 && c < ' ' && c != '\x1B'; });
    /* Results must have the same ID, so reject one that is illegal in any object. */
    if (header_texts(peek.dataset, DCM_PatientID).size() > 1 || has_control || patient.size() >= DICOM_LO_SIZE - 4 ||
        (patient.size() > 64 && std::all_of(patient.begin(), patient.end(), [](char c) { return c >= 0; })))
        return peek.invalid(DCM_PatientID, "it must be one text of at most 64 characters without control characters");
    const std::string issuer = header_text(peek.dataset, DCM_IssuerOfPatientID);
    if (!issuer.empty())
        patient += "\\" + issuer;
    header_copy(peek.instance.patient, patient);
    header_copy(peek.instance.patient_name, comparable_name(peek.dataset));
    return 0;
}

/* Reads Rescale Type (PS3.3 C.11.1.1.2), of the object or of the first frame of an enhanced one
 * (C.7.6.16.2.9), with default HU for CT images (C.8.2.1), or the Units of PET (C.8.9.1.1.3). An
 * SUV is in g/ml, also under vendors' names. */
void
read_value_unit(Peek &peek)
{
    static const struct {
        const char *term, *unit;
    } units[] = {{"HU", "[hnsf'U]"}, {"MGML", "mg/ml"}, {"PCT", "%"},      {"PCNT", "%"},     {"BQML", "Bq/ml"},
                 {"GML", "g/ml"},    {"SUV", "g/ml"},   {"SUVBW", "g/ml"}, {"SUVbw", "g/ml"}, {"CM2ML", "cm2/ml"}};

    const bool is_pet = strcmp(peek.instance.modality, "PT") == 0;
    const bool is_ct = strcmp(peek.instance.modality, "CT") == 0 && !peek.instance.flat;
    std::string term = is_pet ? header_text(peek.dataset, DCM_Units) : std::string();
    if (term.empty()) {
        Source source(peek.dataset, peek.scan);
        source.advance();
        const Header values = source.group(DCM_PixelValueTransformationSequence);
        term = header_text(values.empty() ? peek.dataset : values, DCM_RescaleType);
        if (peek.instance.flat && header_has(peek.dataset, DCM_ModalityLUTSequence))
            term = header_text(peek.dataset.item(DCM_ModalityLUTSequence), DCM_ModalityLUTType);
    }
    if (term.empty() && is_ct)
        term = "HU";
    for (const auto &each : units)
        if (term == each.term)
            header_copy(peek.instance.value_unit, each.unit);
}

/* Returns a positive count, or 1, for use as a factor. A product of counts of a hostile header cannot overflow. */
double
factor(const Header &dataset, const DcmTagKey &tag)
{
    return std::max(count_of(dataset, tag), 1);
}

/* Reads the expected number of instances of the series. Most senders write Images in Acquisition
 * per temporal position, some for all. The product is never too small, so no series counts as
 * complete too early. In PET, Series Type (PS3.3 C.8.9.1.1.4) decides which counts apply: GE writes
 * Number of Time Slices into STATIC series too. */
void
read_expected_instances(Peek &peek)
{
    const Header &dataset = peek.dataset;
    double expected = 0;
    if (peek.has_groups()) {
        expected = 0;
    } else if (header_has(dataset, DCM_NumberOfSlices)) {
        const std::string type = header_text(dataset, DCM_SeriesType);
        const bool is_still = type == "STATIC" || type == "WHOLE BODY";
        expected = factor(dataset, DCM_NumberOfSlices);
        if (!is_still && type != "GATED")
            expected *= factor(dataset, DCM_NumberOfTimeSlices);
        if (!is_still && type != "DYNAMIC")
            expected *= factor(dataset, DCM_NumberOfRRIntervals) * factor(dataset, DCM_NumberOfTimeSlots);
    } else if (header_has(dataset, DCM_ImagesInAcquisition)) {
        expected = factor(dataset, DCM_ImagesInAcquisition) * factor(dataset, DCM_NumberOfTemporalPositions);
    }
    peek.instance.expected_instances = expected > 1 && expected <= INT32_MAX ? static_cast<int32_t>(expected) : 0;
}

int
read_transfer_syntax(Peek &peek)
{
    const struct scan &scan = peek.scan;
    header_copy(peek.instance.transfer_syntax_uid, scan.transfer_syntax_uid);
    if (!scan.syntax) {
        const char *known = dcmFindNameOfUID(scan.transfer_syntax_uid);
        return peek.refuse(CODE_TRANSFER_SYNTAX_UNSUPPORTED,
                           std::string("is encoded in a transfer syntax that is not supported: ") +
                               (known ? known : uid_for_message(scan.transfer_syntax_uid).c_str()) +
                               ". Send it uncompressed.");
    }
    return 0;
}

void
read_lossiness(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    const struct transfer_syntax &syntax = *peek.scan.syntax;
    instance.lossy = header_text(peek.dataset, DCM_LossyImageCompression) == "01" || syntax.lossy;
    if (!instance.lossy)
        return;
    header_copy(instance.lossy_ratio, header_text(peek.dataset, DCM_LossyImageCompressionRatio));
    std::string method = header_text(peek.dataset, DCM_LossyImageCompressionMethod);
    header_copy(instance.lossy_method, method.empty() ? syntax.lossy_method : method);
}

constexpr unsigned codec_native = 1u << TRANSFER_NATIVE, codec_jpeg_2000 = 1u << TRANSFER_JPEG_2000, codec_any = ~0u;

/* Photometric interpretations of colour 2-D images. JPEG 2000 gives RGB of YBR_RCT and YBR_ICT. */
constexpr struct {
    const char *photometric;
    int32_t samples;
    unsigned codecs; /* 1 << enum transfer_codec */
    enum dicom_colour colour;
} colour_rows[] = {
    {"PALETTE COLOR", 1, codec_any, DICOM_COLOUR_PALETTE}, {"RGB", 3, codec_any, DICOM_COLOUR_RGB},
    {"YBR_FULL", 3, codec_any, DICOM_COLOUR_YBR},          {"YBR_FULL_422", 3, codec_native, DICOM_COLOUR_YBR_422},
    {"YBR_FULL_422", 3, ~codec_native, DICOM_COLOUR_YBR},  {"YBR_RCT", 3, codec_jpeg_2000, DICOM_COLOUR_RGB},
    {"YBR_ICT", 3, codec_jpeg_2000, DICOM_COLOUR_RGB},
};

int
read_colour(Peek &peek, int32_t samples)
{
    struct dicom_instance &instance = peek.instance;
    const std::string photometric = instance.photometric;
    const unsigned codec = 1u << peek.scan.syntax->codec;
    int32_t planar = 0;
    for (const auto &row : colour_rows)
        if (photometric == row.photometric && samples == row.samples && (row.codecs & codec) != 0)
            instance.colour = row.colour;
    if (instance.colour == DICOM_COLOUR_NONE)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED, "has the Photometric Interpretation (0028,0004) " + photometric +
                                                        " with " + std::to_string(samples) + " samples per pixel in " +
                                                        peek.scan.syntax->name +
                                                        ", which is not supported. Send it as RGB or MONOCHROME2.");
    if (instance.colour == DICOM_COLOUR_PALETTE)
        return 0;
    if (instance.bits_allocated != 8 || instance.bits_stored != 8 || instance.is_signed)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED, "has colour samples of " + std::to_string(instance.bits_stored) +
                                                        " bits in " + std::to_string(instance.bits_allocated) +
                                                        (instance.is_signed ? ", signed" : "") +
                                                        "; only unsigned 8 bits in 8 are supported.");
    if (const int error = peek.read_number(peek.dataset, DCM_PlanarConfiguration, 0, 1, &planar))
        return error;
    instance.planar = planar == 1;
    instance.stored_samples = 3;
    if (instance.colour != DICOM_COLOUR_YBR_422)
        return 0;
    instance.stored_samples = 2;
    return instance.planar ? peek.invalid(DCM_PlanarConfiguration, "YBR_FULL_422 has no planes") : 0;
}

/* Reads the bits of entries of a look-up table, which decide the type of the values. */
int
read_table_bits(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    const bool palette = instance.colour == DICOM_COLOUR_PALETTE;
    const Header item = palette ? peek.dataset : peek.dataset.item(DCM_ModalityLUTSequence);
    const DcmTagKey tag = palette ? DCM_RedPaletteColorLookupTableDescriptor : DCM_LUTDescriptor;
    double bits;
    if (palette && header_has(peek.dataset, DCM_SegmentedRedPaletteColorLookupTableData))
        return peek.refuse(CODE_PIXELS_UNSUPPORTED, "has a segmented palette (0028,1221). Send it as RGB.");
    if (!header_has(item, tag))
        return peek.missing(tag);
    if (!header_number(item, tag, &bits, 2) || bits < 8 || bits > 16)
        return peek.invalid(tag, "it must have the number of entries, the first value and 8 to 16 bits");
    instance.pixel = bits == 8 ? IMAGE_UINT8 : IMAGE_UINT16;
    return 0;
}

/* Reads the Modality LUT of a 2-D image, which replaces the rescale (PS3.3 C.11.1). */
int
read_modality_lut(Peek &peek)
{
    if (!header_has(peek.dataset, DCM_ModalityLUTSequence))
        return 0;
    struct dicom_instance &instance = peek.instance;
    const char *why = !instance.flat                               ? "is not a 2-D image"
                      : instance.colour != DICOM_COLOUR_NONE       ? "has colour"
                      : header_has(peek.dataset, DCM_RescaleSlope) ? "has a Rescale Slope (0028,1053), too"
                      : header_has(peek.dataset, DCM_PixelPaddingValue)
                          ? "has a Pixel Padding Value (0028,0120), which the table would hide"
                          : nullptr;
    if (why)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED,
                           std::string("maps its pixels through a Modality LUT Sequence (0028,3000), and ") + why +
                               ".");
    instance.has_modality_lut = true;
    return read_table_bits(peek);
}

int
check_bits(Peek &peek)
{
    const struct dicom_instance &i = peek.instance;
    const std::string bits = std::to_string(i.bits_stored) + " bits stored in " + std::to_string(i.bits_allocated) +
                             ", high bit " + std::to_string(i.high_bit);
    if ((i.bits_allocated != 8 && i.bits_allocated != 16) || i.bits_stored < 8)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED,
                           "has pixels of " + bits + "; 8 to 16 bits in 8 or 16 are supported.");
    if (i.bits_stored > i.bits_allocated || i.high_bit < i.bits_stored - 1 || i.high_bit >= i.bits_allocated)
        return peek.refuse(CODE_TAG_INVALID, "contradicts itself: " + bits + ".");
    /* Decoders return the sample in the low bits. RLE keeps the bytes unchanged. */
    if (peek.scan.syntax->codec != TRANSFER_NATIVE && peek.scan.syntax->codec != TRANSFER_RLE &&
        i.high_bit != i.bits_stored - 1)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED, "has compressed pixels with " + bits + ".");
    return 0;
}

int
read_pixel_format(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    int32_t samples = 0, representation = 0;
    if (peek.scan.pixel_tag == SCAN_TAG_FLOAT_PIXELS || peek.scan.pixel_tag == SCAN_TAG_DOUBLE_PIXELS)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED,
                           "has floating-point pixels; whole numbers of 8 to 16 bits are supported.");
    int error = peek.read_number(peek.dataset, DCM_SamplesPerPixel, 1, UINT16_MAX, &samples);
    if (error)
        return error;
    if (samples != 1 && !instance.flat)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED,
                           "has " + std::to_string(samples) + " samples per pixel; only 1 is supported.");
    const std::string photometric = header_text(peek.dataset, DCM_PhotometricInterpretation);
    if (photometric.empty())
        return peek.missing(DCM_PhotometricInterpretation);
    header_copy(instance.photometric, photometric);
    const bool is_grey = samples == 1 && (photometric == "MONOCHROME1" || photometric == "MONOCHROME2");
    if (!is_grey && !instance.flat)
        return peek.refuse(CODE_PIXELS_UNSUPPORTED, "is not monochrome (Photometric Interpretation (0028,0004)).");
    instance.monochrome1 = photometric == "MONOCHROME1";

    const struct {
        DcmTagKey tag;
        int32_t low, high, *value;
    } numbers[] = {
        {DCM_BitsAllocated, 1, UINT16_MAX, &instance.bits_allocated},
        {DCM_BitsStored, 1, UINT16_MAX, &instance.bits_stored},
        {DCM_HighBit, 0, UINT16_MAX, &instance.high_bit},
        {DCM_PixelRepresentation, 0, 1, &representation},
    };

    for (const auto &each : numbers)
        if ((error = peek.read_number(peek.dataset, each.tag, each.low, each.high, each.value)))
            return error;
    error = check_bits(peek);
    if (error)
        return error;
    instance.is_signed = representation == 1;
    if (instance.is_signed)
        instance.pixel = IMAGE_INT16;
    else
        instance.pixel = instance.bits_allocated == 8 ? IMAGE_UINT8 : IMAGE_UINT16;
    instance.stored_samples = 1;
    if (!is_grey)
        error = read_colour(peek, samples);
    if (!error && instance.colour == DICOM_COLOUR_PALETTE)
        error = read_table_bits(peek);
    return error ? error : read_modality_lut(peek);
}

/* Reads a padding value, which has the bits of a pixel, whatever its VR. */
bool
read_padding_bits(Peek &peek, const DcmTagKey &tag, int32_t *value)
{
    int32_t bits;
    if (!header_integer(peek.dataset, tag, &bits) || bits < INT16_MIN || bits > UINT16_MAX)
        return false;
    *value = peek.instance.is_signed ? static_cast<int16_t>(bits) : static_cast<uint16_t>(bits);
    return true;
}

void
read_padding(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    int32_t value, limit;
    if (instance.colour != DICOM_COLOUR_NONE || !read_padding_bits(peek, DCM_PixelPaddingValue, &value))
        return;
    if (!read_padding_bits(peek, DCM_PixelPaddingRangeLimit, &limit))
        limit = value;
    instance.has_padding = true;
    instance.padding_lo = std::min(value, limit);
    instance.padding_hi = std::max(value, limit);
}

int
read_sizes(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    int error = peek.read_number(peek.dataset, DCM_Rows, 1, UINT16_MAX, &instance.rows);
    if (!error)
        error = peek.read_number(peek.dataset, DCM_Columns, 1, UINT16_MAX, &instance.columns);
    if (!error && instance.colour == DICOM_COLOUR_YBR_422 && instance.columns % 2)
        return peek.invalid(DCM_Columns, "YBR_FULL_422 needs an even number");
    instance.frame_count = 1;
    if (!error && header_has(peek.dataset, DCM_NumberOfFrames))
        error = peek.read_number(peek.dataset, DCM_NumberOfFrames, 1, INT32_MAX, &instance.frame_count);
    if (error)
        return error;
    constexpr int64_t mi = 1 << 20;
    const int64_t plane = static_cast<int64_t>(instance.rows) * instance.columns;
    if (plane > LIMIT_PLANE_MI * mi || instance.frame_count > LIMIT_FRAMES ||
        instance.frame_count > LIMIT_VOXELS_MI * mi / plane)
        return peek.refuse(CODE_SIZE_IMPLAUSIBLE,
                           "claims " + std::to_string(instance.columns) + " x " + std::to_string(instance.rows) +
                               " pixels in " + std::to_string(instance.frame_count) + " frames, more than the limit.");
    instance.multi_frame = instance.frame_count > 1 || peek.has_groups();
    if (peek.scan.frame_count > instance.frame_count)
        return peek.invalid(DCM_NumberOfFrames, std::to_string(instance.frame_count) + ", but " +
                                                    std::to_string(peek.scan.frame_count) +
                                                    " frames have functional groups");
    return 0;
}

/* Compares the decoded size with the size of the file. */
int
check_expansion(const Peek &peek)
{
    const struct dicom_instance &i = peek.instance;
    constexpr int64_t frame_bytes = 1024; /* memory per frame of the header */
    const int64_t plane = static_cast<int64_t>(i.rows) * i.columns * (i.bits_allocated / 8) * i.stored_samples;
    const int64_t decoded = i.frame_count * (plane + frame_bytes);
    if (decoded <= int64_t{LIMIT_EXPANDED_MIB} << 20 || decoded / LIMIT_EXPANSION <= i.file_size)
        return 0;
    return peek.refuse(CODE_EXPANSION_IMPLAUSIBLE, "has " + std::to_string(i.file_size) + " bytes and claims " +
                                                       std::to_string(i.frame_count) + " frames of " +
                                                       std::to_string(plane) + " bytes, more than " +
                                                       std::to_string(LIMIT_EXPANSION) + " times as much.");
}

int
truncated(Peek &peek, int64_t there, int64_t needed)
{
    return peek.refuse(CODE_FILE_TRUNCATED, "holds " + std::to_string(there) + " of " + std::to_string(needed) +
                                                " bytes of pixel data. Send it again.");
}

int
measure_native(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    const struct scan &scan = peek.scan;
    const int64_t needed = static_cast<int64_t>(instance.rows) * instance.columns * instance.frame_count *
                           (instance.bits_allocated / 8) * instance.stored_samples;
    if (scan.pixel_length < needed)
        return truncated(peek, scan.pixel_length, needed);
    const int64_t extra = scan.pixel_length - needed;
    if (instance.multi_frame && extra > 1 && extra >= needed / instance.frame_count)
        return peek.invalid(DCM_NumberOfFrames, std::to_string(instance.frame_count) + ", but the pixel data has " +
                                                    std::to_string(scan.pixel_length * instance.frame_count / needed) +
                                                    " frames");
    if (scan.pixel_length > stream_remaining(&peek.stream))
        return truncated(peek, stream_remaining(&peek.stream), scan.pixel_length);
    if (scan.syntax->deflated) {
        int rc = stream_skip(&peek.stream, needed);
        if (rc)
            return scan_error(&peek.stream, peek.path, rc, "its pixel data", peek.error);
    }
    instance.pixel_offset = scan.syntax->deflated ? -1 : scan.pixel_offset;
    instance.pixel_length = scan.pixel_length;
    return 0;
}

/* Walks from item to item. The first is the Basic Offset Table. */
int
measure_encapsulated(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    int64_t items = 0;
    for (;;) {
        struct scan_item item;
        int rc = scan_pixel_item(&peek.stream, &item);
        if (!rc && item.is_delimiter)
            break;
        if (!rc)
            rc = stream_skip(&peek.stream, item.length);
        if (rc)
            return scan_error(&peek.stream, peek.path, rc, "its pixel data", peek.error);
        instance.encapsulated_bytes += item.length;
        if (items++ > LIMIT_FRAGMENTS)
            return peek.refuse(CODE_SIZE_IMPLAUSIBLE,
                               "has more than " + std::to_string(LIMIT_FRAGMENTS) + " fragments of pixel data.");
    }
    if (items - 1 < instance.frame_count)
        return peek.refuse(CODE_FILE_TRUNCATED, "holds " + std::to_string(std::max<int64_t>(items - 1, 0)) +
                                                    " fragments of pixel data for " +
                                                    std::to_string(instance.frame_count) + " frames. Send it again.");
    instance.pixel_offset = -1;
    return 0;
}

int
measure_pixels(Peek &peek)
{
    const struct scan &scan = peek.scan;
    if (scan.pixel_tag == 0)
        return peek.missing(DCM_PixelData);
    if (scan.encapsulated != (scan.syntax->codec != TRANSFER_NATIVE))
        return peek.invalid(DCM_PixelData,
                            std::string("its form contradicts the transfer syntax ") + scan.syntax->name);
    return scan.encapsulated ? measure_encapsulated(peek) : measure_native(peek);
}

int
peek_check(Peek &peek)
{
    struct dicom_instance &instance = peek.instance;
    int error = check_kind(peek);
    if (!error)
        error = peek.read_identity(peek.dataset, instance.sop_instance_uid, instance.study_uid, instance.series_uid);
    if (!error)
        error = peek.read_uid(peek.dataset, DCM_FrameOfReferenceUID, false, instance.frame_of_reference_uid);
    if (!error)
        error = read_transfer_syntax(peek);
    if (error)
        return error;
    read_description(peek);
    read_value_unit(peek);
    read_expected_instances(peek);
    read_lossiness(peek);
    error = read_patient(peek);
    if (error)
        return error;
    instance.concatenation_number = count_of(peek.dataset, DCM_InConcatenationNumber);
    instance.concatenation_total = count_of(peek.dataset, DCM_InConcatenationTotalNumber);
    error = peek.read_uid(peek.dataset, DCM_ConcatenationUID, false, instance.concatenation_uid);
    if (!error)
        error = read_pixel_format(peek);
    if (error)
        return error;
    read_padding(peek);
    error = read_sizes(peek);
    if (!error)
        error = measure_pixels(peek);
    if (!error)
        error = check_expansion(peek);
    if (error)
        return error;
    /* Must be last: only now the file's size justifies the number of frames. */
    instance.frames = header_allocate<struct dicom_frame>(static_cast<size_t>(instance.frame_count));
    Source source(peek.dataset, peek.scan);
    return frames_read(source, peek.scan, instance, peek.error);
}

template <size_t size>
void
identity_copy(char (&destination)[size], const std::string &text)
{
    if (header_is_uid(text))
        header_copy(destination, text);
}

} // namespace

void
dicom_identify(const char *path, struct dicom_identity *identity)
{
    dicom_identify_open(-1, path, identity);
}

void
dicom_identify_open(int fd, const char *path, struct dicom_identity *identity)
{
    *identity = {};
    struct stream stream;
    struct error error;
    if (header_open(fd, path, &stream, &error))
        return;
    const HeaderOwner<struct stream, stream_close> close(&stream);
    /* Use the elements before the file ended or became invalid, if the last one is complete. */
    (void)header_guard(path, &error, [&] {
        static const uint32_t identity_tags[] = {0x00080018, 0x00100020, 0x0020000D, 0x0020000E};
        const struct scan_wanted wanted = scan_wanted_of(identity_tags, std::size(identity_tags), DICOM_LO_SIZE);
        struct scan scan;
        const HeaderOwner<struct scan, scan_release> release(&scan);
        (void)scan_file(&stream, path, &wanted, &scan, &error);
        DcmDataset dataset;
        if (const int rc = header_parse(scan, path, dataset, &error))
            return rc;
        const Header header(dataset);
        identity_copy(identity->sop_instance_uid, header_text(header, DCM_SOPInstanceUID));
        identity_copy(identity->series_uid, header_text(header, DCM_SeriesInstanceUID));
        identity_copy(identity->study_uid, header_text(header, DCM_StudyInstanceUID));
        header_copy(identity->patient_id, header_text(header, DCM_PatientID));
        return 0;
    });
}

int
dicom_peek(const char *path, struct dicom_instance **instance, struct error *error)
{
    return dicom_peek_open(-1, path, nullptr, instance, error);
}

int
dicom_peek_open(int fd, const char *path, const struct dicom_requestor *requestor, struct dicom_instance **instance,
                struct error *error)
{
    *instance = nullptr;
    return header_guard(path, error, [&] {
        HeaderOwner<struct dicom_instance, dicom_instance_free> made(header_allocate<struct dicom_instance>(1));
        if (!(made->path = strdup(path)))
            throw std::bad_alloc();
        struct stream stream;
        int rc = header_open(fd, path, &stream, error);
        if (rc)
            return rc;
        const HeaderOwner<struct stream, stream_close> close(&stream);
        made->file_size = stream.file_size;
        struct scan scan;
        const HeaderOwner<struct scan, scan_release> release(&scan);
        struct scan_wanted wanted = scan_wanted_of(wanted_tags, std::size(wanted_tags), LIMIT_TEXT_BYTES);
        wanted.nested = true;
        wanted.private_tags = wanted_private_tags;
        wanted.private_count = std::size(wanted_private_tags);
        wanted.private_sequences = private_sequence_tags;
        wanted.sequence_count = std::size(private_sequence_tags);
        wanted.requestor = requestor;
        rc = scan_file(&stream, path, &wanted, &scan, error);
        if (rc == -EBADMSG && scan.transfer_syntax_uid[0] && !transfer_find(scan.transfer_syntax_uid)) {
            /* The walk had to guess the encoding; report that the syntax cannot be read. */
            scan.kept.size = 0;
        } else if (rc) {
            return rc;
        }
        const HeaderTurn turn;
        DcmDataset dataset;
        if (!rc && (rc = header_parse(scan, path, dataset, error)))
            return rc;
        const Header header(dataset);
        Peek peek{{path, error}, stream, scan, header, *made};
        rc = rc ? read_transfer_syntax(peek) : peek_check(peek);
        if (!rc)
            *instance = made.release();
        return rc;
    });
}

void
dicom_instance_free(struct dicom_instance *instance)
{
    if (!instance)
        return;
    free(instance->frames);
    free(instance->path);
    free(instance);
}
