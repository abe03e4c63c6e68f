/*
 * pmap_verify.cc - reads a parametric map back with DCMTK and compares it with the request.
 *
 * This file shares only names with the writer (pmap.h, derived.h). DCMTK's parser reads the attributes, and frames are
 * found by their source references. DCMTK leaves the pixel data in the file; one frame at a time is in memory.
 */
#include "dicom/objects/pmap/pmap.h"

#include "dicom/write/read_back.hh"

#include <cmath>
#include <cstring>
#include <vector>

using namespace read_back;

namespace
{

const char *const image_type = "DERIVED\\PRIMARY\\VOLUME\\NONE";

class PmapVerifier : StackObject
{
  public:
    PmapVerifier(const struct pmap_request &request, const char *path)
        : StackObject(*request.source, false, path), request_(request)
    {
    }

    void run()
    {
        const char *modality = derived_plane_instance(&source_, 0)->modality;
        if (pmap_identify(&request_, &identity_))
            throw std::bad_alloc();
        StackObject::check_identity(PMAP_SOP_CLASS, identity_, modality[0] ? modality : "OT");
        char label[PMAP_KIND_SIZE];
        pmap_label(&request_, label);
        expect_text(dataset_, ATTRIBUTE(ImageType), image_type);
        expect_text(dataset_, ATTRIBUTE(ContentLabel), label);
        expect_text(dataset_, ATTRIBUTE(PresentationLUTShape), "IDENTITY");
        StackObject::check_image(bits());
        if (request_.fill)
            expect_double(dataset_, ATTRIBUTE(DoubleFloatPixelPaddingValue), PMAP_NO_VALUE);
        else
            expect_number(dataset_, ATTRIBUTE(PixelPaddingValue), PMAP_PADDING);
        DcmItem &groups = check_shared_groups();
        DcmItem &voi = item_of(groups, ATTRIBUTE(FrameVOILUTSequence));
        if (!request_.fill) {
            expect_decimal(voi, ATTRIBUTE(WindowCenter), 128);
            expect_decimal(voi, ATTRIBUTE(WindowWidth), 256);
        } else {
            Float64 width = 0;
            if (voi.findAndGetFloat64(DCM_WindowWidth, width).bad() || !(width > 0))
                differ("WindowWidth is not positive");
        }
        DcmItem &type = item_of(groups, ATTRIBUTE(ParametricMapFrameTypeSequence));
        expect_text(type, ATTRIBUTE(FrameType), image_type);
        item_of(groups, ATTRIBUTE(FrameAnatomySequence));
        check_meaning(groups);
        check_referenced_series(identity_.replaces);
        check_frames();
        check_pixels();
    }

  private:
    int32_t bits() const
    {
        return request_.fill ? 64 : 16;
    }

    static void expect_double(DcmItem &item, const Attribute &attribute, double expected)
    {
        Float64 value = 0.0;
        if (item.findAndGetFloat64(attribute.tag, value).bad())
            differ("%s is missing", attribute.name);
        if (!(value == expected))
            differ("%s is %.17g instead of %.17g", attribute.name, value, expected);
    }

    /* Checks that a stored value is a code without unit, or a double with its unit, without offset or scale. */
    void check_meaning(DcmItem &groups) const
    {
        DcmItem &identity = item_of(groups, ATTRIBUTE(PixelValueTransformationSequence));
        expect_decimal(identity, ATTRIBUTE(RescaleIntercept), 0);
        expect_decimal(identity, ATTRIBUTE(RescaleSlope), 1);
        DcmItem &mapping = item_of(groups, ATTRIBUTE(RealWorldValueMappingSequence));
        if (request_.fill) {
            expect_code(mapping, ATTRIBUTE(MeasurementUnitsCodeSequence), request_.unit);
            expect_double(mapping, ATTRIBUTE(DoubleFloatRealWorldValueFirstValueMapped), PMAP_NO_VALUE);
            expect_double(mapping, ATTRIBUTE(DoubleFloatRealWorldValueLastValueMapped), -PMAP_NO_VALUE);
        } else {
            expect_code(mapping, ATTRIBUTE(MeasurementUnitsCodeSequence), {"1", "UCUM", ""});
            expect_number(mapping, ATTRIBUTE(RealWorldValueFirstValueMapped), 0);
            expect_number(mapping, ATTRIBUTE(RealWorldValueLastValueMapped), 65535);
        }
        expect_double(mapping, ATTRIBUTE(RealWorldValueIntercept), 0.0);
        expect_double(mapping, ATTRIBUTE(RealWorldValueSlope), 1.0);
        DcmItem &definition = item_of(mapping, ATTRIBUTE(QuantityDefinitionSequence));
        expect_code(definition, ATTRIBUTE(ConceptNameCodeSequence), {"246205007", "SCT", ""});
        expect_code(definition, ATTRIBUTE(ConceptCodeSequence), request_.quantity);
    }

    /* Checks for one frame per plane, in ascending position. */
    void check_frames()
    {
        int32_t plane = 0;
        check_each_frame(stack_.plane_count, [&](DcmItem &item) {
            const int32_t found = plane_of(item);
            if (found != plane)
                differ("it is plane %d instead of %d", found, plane);
            plane++;
            if (indices_of(item, 1)[0] != static_cast<Uint32>(plane))
                differ("DimensionIndexValues are not %d", plane);
        });
    }

    unsigned expected(int32_t x, int32_t y, int32_t plane) const
    {
        if (x == 0 || y == 0 || x == stack_.columns - 1 || y == stack_.rows - 1)
            return PMAP_PADDING;
        const int64_t row = static_cast<int64_t>(plane) * (stack_.rows - 2) + y - 1;
        return request_.codes[row * (stack_.columns - 2) + x - 1];
    }

    void check_doubles(const uint8_t *bytes, int32_t plane, std::vector<double> &values) const
    {
        request_.fill(request_.context, plane, values.data());
        for (size_t i = 0; i < values.size(); i++, bytes += 8) {
            uint64_t found = 0;
            double value;
            for (unsigned byte = 0; byte < 8; byte++)
                found |= uint64_t{bytes[byte]} << 8 * byte;
            memcpy(&value, &found, sizeof(value));
            const double expected = std::isnan(values[i]) ? PMAP_NO_VALUE : values[i];
            if (!(value == expected))
                differ("voxel (%d, %d, %d) is %.17g instead of %.17g", static_cast<int>(i) % stack_.columns,
                       static_cast<int>(i) / stack_.columns, plane, value, expected);
        }
    }

    void check_pixels()
    {
        const PixelLayout frames = layout(bits(), static_cast<size_t>(stack_.plane_count));
        PixelReader::check(frames, dataset_);
        const std::unique_ptr<PixelReader> pixels = PixelReader::open(frames);
        unsigned first_bit = 0;
        std::vector<double> values(
            request_.fill ? static_cast<size_t>(stack_.rows) * static_cast<size_t>(stack_.columns) : 0);
        for (int32_t plane = 0; request_.fill && plane < stack_.plane_count; plane++)
            check_doubles(pixels->read(static_cast<size_t>(plane), first_bit), plane, values);
        for (int32_t plane = 0; request_.codes && plane < stack_.plane_count; plane++) {
            const uint8_t *bytes = pixels->read(static_cast<size_t>(plane), first_bit);
            for (int32_t y = 0; y < stack_.rows; y++) {
                for (int32_t x = 0; x < stack_.columns; x++, bytes += 2) {
                    const unsigned value = bytes[0] | static_cast<unsigned>(bytes[1]) << 8;
                    if (value != expected(x, y, plane))
                        differ("voxel (%d, %d, %d) is %u instead of %u", x, y, plane, value, expected(x, y, plane));
                }
            }
        }
    }

    const struct pmap_request &request_;
    struct derived_identity identity_ = {};
};

} // namespace

extern "C" int
pmap_verify(const struct pmap_request *request, const char *path, struct error *error)
{
    return verify(error, path, CODE_PMAP_MISMATCH, "parametric map", [&] { PmapVerifier(*request, path).run(); });
}
