/*
 * capture_verify.cc - reads a capture of codes back with DCMTK and compares it with the request.
 *
 * This file shares only names with the writer (capture.h, derived.h). DCMTK leaves the pixel data in the file; one frame at
 * a time is in memory.
 */
#include "dicom/objects/pmap/capture.h"

#include "dicom/write/read_back.hh"

#include <new>
#include <string>

using namespace read_back;

namespace
{

class CaptureVerifier : StackObject
{
  public:
    CaptureVerifier(const struct pmap_request &request, const char *path)
        : StackObject(*request.source, false, path), request_(request)
    {
    }

    void run()
    {
        struct derived_identity identity = {};
        const char *modality = derived_plane_instance(&source_, 0)->modality;
        if (capture_identify(&request_, &identity))
            throw std::bad_alloc();
        read_back::check_identity(file_, CAPTURE_SOP_CLASS, identity, source_, modality[0] ? modality : "OT");
        StackObject::check_image(16);
        expect_text(dataset_, ATTRIBUTE(ConversionType), "WSD");
        expect_text(dataset_, ATTRIBUTE(ImageType), "DERIVED\\SECONDARY");
        expect_text(dataset_, ATTRIBUTE(BurnedInAnnotation), request_.burned_in ? "YES" : "NO");
        if (request_.recognizable != static_cast<bool>(dataset_.tagExists(DCM_RecognizableVisualFeatures)))
            differ("RecognizableVisualFeatures is missing, or is there without a reason");
        expect_number(dataset_, ATTRIBUTE(PixelPaddingValue), PMAP_PADDING);
        expect_text(dataset_, ATTRIBUTE(NumberOfFrames), "1");
        expect_decimal(dataset_, ATTRIBUTE(RescaleIntercept), 0);
        expect_decimal(dataset_, ATTRIBUTE(RescaleSlope), 1);
        expect_decimal(dataset_, ATTRIBUTE(WindowCenter), 128);
        expect_decimal(dataset_, ATTRIBUTE(WindowWidth), 256);
        if (dataset_.tagExists(DCM_FrameOfReferenceUID) || dataset_.tagExists(DCM_PixelSpacing))
            differ("it has a place or a size, which the source has not");
        check_referenced_series(identity.replaces);
        check_source();
        check_meaning();
        check_pixels();
    }

  private:
    void check_source()
    {
        const struct dicom_instance *source = derived_plane_instance(&source_, 0);
        DcmItem &image = item_of(dataset_, ATTRIBUTE(SourceImageSequence));
        expect_text(image, ATTRIBUTE(ReferencedSOPInstanceUID), source->sop_instance_uid);
        expect_text(image, ATTRIBUTE(ReferencedSOPClassUID), source->sop_class_uid);
        if (source->multi_frame)
            expect_text(image, ATTRIBUTE(ReferencedFrameNumber), std::to_string(stack_.planes[0].frame + 1));
    }

    /* Checks that a stored value is a code of this pattern, without unit, offset or scale. */
    void check_meaning()
    {
        char label[PMAP_KIND_SIZE];
        DcmItem &mapping = item_of(dataset_, ATTRIBUTE(RealWorldValueMappingSequence));
        DcmItem &definition = item_of(mapping, ATTRIBUTE(QuantityDefinitionSequence));
        Float64 slope = 0, intercept = 1;
        pmap_label(&request_, label);
        expect_text(mapping, ATTRIBUTE(LUTLabel), label);
        expect_code(mapping, ATTRIBUTE(MeasurementUnitsCodeSequence), {"1", "UCUM", ""});
        expect_number(mapping, ATTRIBUTE(RealWorldValueFirstValueMapped), 0);
        expect_number(mapping, ATTRIBUTE(RealWorldValueLastValueMapped), 65535);
        if (mapping.findAndGetFloat64(DCM_RealWorldValueSlope, slope).bad() || !(slope == 1) ||
            mapping.findAndGetFloat64(DCM_RealWorldValueIntercept, intercept).bad() || !(intercept == 0))
            differ("a code is not its own value");
        expect_code(definition, ATTRIBUTE(ConceptCodeSequence), request_.quantity);
    }

    /* Returns the value of a pixel: its code, or padding on the edge. */
    unsigned expected(int32_t x, int32_t y) const
    {
        if (x == 0 || y == 0 || x == stack_.columns - 1 || y == stack_.rows - 1)
            return PMAP_PADDING;
        return request_.codes[(int64_t{y} - 1) * (stack_.columns - 2) + x - 1];
    }

    void check_pixels()
    {
        const PixelLayout frames = layout(16, 1);
        PixelReader::check(frames, dataset_);
        const std::unique_ptr<PixelReader> pixels = PixelReader::open(frames);
        unsigned first_bit = 0;
        const uint8_t *bytes = pixels->read(0, first_bit);
        for (int32_t y = 0; y < stack_.rows; y++)
            for (int32_t x = 0; x < stack_.columns; x++, bytes += 2) {
                const unsigned value = bytes[0] | static_cast<unsigned>(bytes[1]) << 8;
                if (value != expected(x, y))
                    differ("pixel (%d, %d) is %u instead of %u", x, y, value, expected(x, y));
            }
    }

    const struct pmap_request &request_;
};

} // namespace

extern "C" int
capture_verify(const struct pmap_request *request, const char *path, struct error *error)
{
    return verify(error, path, CODE_PMAP_MISMATCH, "capture of patterns",
                  [&] { CaptureVerifier(*request, path).run(); });
}
