/*
 * pmap_verify.cc - reads a parametric map back with DCMTK and compares it with what it was to say.
 *
 * Nothing here is shared with the writer but names (pmap.h, derived.h): attributes
 * come from DCMTK's parser, frames are found by their source references. DCMTK leaves the pixel
 * data in the file; one frame at a time is in memory.
 */
#include "dicom/objects/pmap/pmap.h"

#include "dicom/write/pixel_file.hh"
#include "dicom/write/read_back.hh"

#include <string>
#include <vector>

using namespace read_back;

namespace
{

const char *const image_type = "DERIVED\\PRIMARY\\VOLUME\\NONE";

class PmapVerifier
{
  public:
    PmapVerifier(const struct pmap_request &request, const char *path)
        : request_(request), source_(*request.source), stack_(*request.source->stack), path_(path),
          references_(*request.source)
    {
    }

    void run()
    {
        load_file(file_, path_);
        check_identity();
        check_image();
        DcmItem &groups = item_of(*file_.getDataset(), DCM_SharedFunctionalGroupsSequence,
                                  "SharedFunctionalGroupsSequence");
        references_.check_shared_groups(groups);
        check_display(groups);
        check_meaning(groups);
        references_.check_referenced_series(*file_.getDataset());
        check_frames();
        check_pixels();
    }

  private:
    void check_identity();
    void check_image();
    void check_display(DcmItem &groups);
    void check_meaning(DcmItem &groups);
    void check_frames();
    void check_frame(DcmItem &item, int32_t plane);
    void check_pixels();
    void compare(const uint8_t *bytes, int32_t plane);
    unsigned expected(int32_t x, int32_t y, int32_t plane) const;

    const struct pmap_request &request_;
    const struct derived_source &source_;
    const struct geometry_stack &stack_;
    const char *path_;
    const StackReferences references_;
    DcmFileFormat file_;
};

void
PmapVerifier::check_identity()
{
    const struct dicom_instance &first = *derived_plane_instance(&source_, 0);
    struct derived_identity identity;
    if (pmap_identify(&request_, &identity))
        throw std::bad_alloc();
    read_back::check_identity(file_, PMAP_SOP_CLASS, identity, first.study_uid,
                              first.modality[0] ? first.modality : "OT");
    references_.check_frame_of_reference(*file_.getDataset());
}

void
PmapVerifier::check_image()
{
    DcmDataset &dataset = *file_.getDataset();
    char label[PMAP_KIND_SIZE];
    pmap_label(&request_, label);
    expect_text(dataset, DCM_ImageType, "ImageType", image_type);
    expect_text(dataset, DCM_ContentLabel, "ContentLabel", label);
    expect_text(dataset, DCM_PhotometricInterpretation, "PhotometricInterpretation", "MONOCHROME2");
    expect_text(dataset, DCM_PresentationLUTShape, "PresentationLUTShape", "IDENTITY");
    expect_number(dataset, DCM_SamplesPerPixel, "SamplesPerPixel", 1);
    expect_number(dataset, DCM_Rows, "Rows", stack_.rows);
    expect_number(dataset, DCM_Columns, "Columns", stack_.columns);
    expect_number(dataset, DCM_BitsAllocated, "BitsAllocated", 16);
    expect_number(dataset, DCM_BitsStored, "BitsStored", 16);
    expect_number(dataset, DCM_HighBit, "HighBit", 15);
    expect_number(dataset, DCM_PixelRepresentation, "PixelRepresentation", 0);
    expect_number(dataset, DCM_PixelPaddingValue, "PixelPaddingValue", PMAP_PADDING);
}

void
PmapVerifier::check_display(DcmItem &groups)
{
    DcmItem &voi = item_of(groups, DCM_FrameVOILUTSequence, "FrameVOILUTSequence");
    expect_decimal(voi, DCM_WindowCenter, "WindowCenter", 0, 128);
    expect_decimal(voi, DCM_WindowWidth, "WindowWidth", 0, 256);
    DcmItem &type =
        item_of(groups, DCM_ParametricMapFrameTypeSequence, "ParametricMapFrameTypeSequence");
    expect_text(type, DCM_FrameType, "FrameType", image_type);
    item_of(groups, DCM_FrameAnatomySequence, "FrameAnatomySequence");
}

void
expect_double(DcmItem &item, const DcmTagKey &tag, const char *name, double expected)
{
    Float64 value = 0.0;
    if (item.findAndGetFloat64(tag, value).bad())
        differ("%s is missing", name);
    if (!(value == expected))
        differ("%s is %.17g instead of %.17g", name, value, expected);
}

/* A stored value is a code without unit: nothing is added, nothing scaled. */
void
PmapVerifier::check_meaning(DcmItem &groups)
{
    DcmItem &identity =
        item_of(groups, DCM_PixelValueTransformationSequence, "PixelValueTransformationSequence");
    expect_decimal(identity, DCM_RescaleIntercept, "RescaleIntercept", 0, 0);
    expect_decimal(identity, DCM_RescaleSlope, "RescaleSlope", 0, 1);
    DcmItem &mapping =
        item_of(groups, DCM_RealWorldValueMappingSequence, "RealWorldValueMappingSequence");
    const coded_concept no_units = {"1", "UCUM", ""};
    expect_code(mapping, DCM_MeasurementUnitsCodeSequence, "MeasurementUnitsCodeSequence",
                no_units);
    expect_number(mapping, DCM_RealWorldValueFirstValueMapped, "RealWorldValueFirstValueMapped", 0);
    expect_number(mapping, DCM_RealWorldValueLastValueMapped, "RealWorldValueLastValueMapped",
                  65535);
    expect_double(mapping, DCM_RealWorldValueIntercept, "RealWorldValueIntercept", 0.0);
    expect_double(mapping, DCM_RealWorldValueSlope, "RealWorldValueSlope", 1.0);
    DcmItem &definition =
        item_of(mapping, DCM_QuantityDefinitionSequence, "QuantityDefinitionSequence");
    const coded_concept quantity = {"246205007", "SCT", ""};
    expect_code(definition, DCM_ConceptNameCodeSequence, "ConceptNameCodeSequence", quantity);
    expect_code(definition, DCM_ConceptCodeSequence, "ConceptCodeSequence", request_.quantity);
}

void
PmapVerifier::check_frame(DcmItem &item, int32_t plane)
{
    const int32_t found = references_.plane_of(item);
    if (found != plane)
        differ("it is plane %d instead of %d", found, plane);
    DcmItem &content = item_of(item, DCM_FrameContentSequence, "FrameContentSequence");
    const Uint32 *indices = nullptr;
    unsigned long count = 0;
    if (content.findAndGetUint32Array(DCM_DimensionIndexValues, indices, &count).bad() ||
        count != 1 || indices[0] != static_cast<Uint32>(plane) + 1)
        differ("DimensionIndexValues are not %d", plane + 1);
}

/* One frame per plane, in ascending position. */
void
PmapVerifier::check_frames()
{
    DcmDataset &dataset = *file_.getDataset();
    Sint32 count = 0;
    if (dataset.findAndGetSint32(DCM_NumberOfFrames, count).bad() || count != stack_.plane_count)
        differ("NumberOfFrames is %d instead of %d", static_cast<int>(count), stack_.plane_count);
    int32_t plane = 0;
    check_each_frame(dataset, static_cast<size_t>(count),
                     [&](DcmItem &item) { check_frame(item, plane++); });
}

/* --- pixels --- */

unsigned
PmapVerifier::expected(int32_t x, int32_t y, int32_t plane) const
{
    if (x == 0 || y == 0 || x == stack_.columns - 1 || y == stack_.rows - 1)
        return PMAP_PADDING;
    const int64_t row = static_cast<int64_t>(plane) * (stack_.rows - 2) + y - 1;
    return request_.codes[row * (stack_.columns - 2) + x - 1];
}

void
PmapVerifier::compare(const uint8_t *bytes, int32_t plane)
{
    for (int32_t y = 0; y < stack_.rows; y++) {
        for (int32_t x = 0; x < stack_.columns; x++, bytes += 2) {
            const unsigned value = bytes[0] | static_cast<unsigned>(bytes[1]) << 8;
            if (value != expected(x, y, plane))
                differ("voxel (%d, %d, %d) is %u instead of %u", x, y, plane, value,
                       expected(x, y, plane));
        }
    }
}

void
PmapVerifier::check_pixels()
{
    const uint64_t frame_bits =
        static_cast<uint64_t>(stack_.rows) * static_cast<uint64_t>(stack_.columns) * 16;
    const PixelFile pixels(path_, *file_.getDataset(), frame_bits,
                           static_cast<size_t>(stack_.plane_count));
    std::vector<uint8_t> buffer;
    unsigned first_bit = 0;
    for (int32_t plane = 0; plane < stack_.plane_count; plane++)
        compare(pixels.read(static_cast<size_t>(plane), buffer, first_bit), plane);
}

} // namespace

extern "C" int
pmap_verify(const struct pmap_request *request, const char *path, struct error *error)
try {
    PmapVerifier(*request, path).run();
    return 0;

} catch (...) {

    return caught(error, path, CODE_PMAP_MISMATCH, "parametric map");
}
