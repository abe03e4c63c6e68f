/*
 * picture_verify.cc - reads a picture back with DCMTK and compares it with the request.
 *
 * This file shares only names with the writer (picture.h, derived.h). DCMTK leaves the pixel data in the file; a batch
 * of frames at a time is in memory, and drawn again.
 */
#include "dicom/objects/picture/picture.h"

#include "dicom/write/pixel_file.hh"
#include "dicom/write/read_back.hh"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <vector>

using namespace read_back;

namespace
{

class PictureVerifier : StackObject
{
  public:
    PictureVerifier(const struct picture_request &request, const char *path)
        : StackObject(*request.source, true, path), request_(request), many_(request.only < 0)
    {
    }

    void run()
    {
        struct derived_identity identity = {};
        const char *modality = derived_plane_instance(&source_, 0)->modality;
        if (picture_identify(&request_, &identity))
            throw std::bad_alloc();
        if (!modality[0])
            modality = "OT";
        if (many_ && request_.placed)
            StackObject::check_identity(PICTURE_SOP_CLASS, identity, modality);
        else
            read_back::check_identity(file_, many_ ? PICTURE_SOP_CLASS : PICTURE_SINGLE_SOP_CLASS, identity, source_,
                                      modality);
        check_colours();
        check_referenced_series(identity.replaces);
        std::vector<int32_t> planes(static_cast<size_t>(stack_.plane_count)); /* of all frames */
        std::iota(planes.begin(), planes.end(), 0);
        if (!many_) {
            const struct picture_frame place = place_of(request_.only);
            planes.assign(place.planes, place.planes + place.plane_count);
        }
        check_sources(planes);
        if (many_)
            check_frames();
        check_pixels();
    }

  private:
    struct picture_frame place_of(int32_t frame) const
    {
        struct picture_frame place = {};
        request_.describe(request_.context, frame, &place);
        return place;
    }

    void check_colours()
    {
        expect_text(dataset_, ATTRIBUTE(ConversionType), "WSD");
        expect_text(dataset_, ATTRIBUTE(PhotometricInterpretation), "RGB");
        expect_number(dataset_, ATTRIBUTE(SamplesPerPixel), 3);
        expect_number(dataset_, ATTRIBUTE(PlanarConfiguration), 0);
        expect_number(dataset_, ATTRIBUTE(Rows), request_.rows);
        expect_number(dataset_, ATTRIBUTE(Columns), request_.columns);
        expect_number(dataset_, ATTRIBUTE(BitsAllocated), 8);
        expect_number(dataset_, ATTRIBUTE(BitsStored), 8);
        expect_number(dataset_, ATTRIBUTE(HighBit), 7);
        expect_number(dataset_, ATTRIBUTE(PixelRepresentation), 0);
        expect_text(dataset_, ATTRIBUTE(BurnedInAnnotation), request_.burned_in ? "YES" : "NO");
        if (request_.recognizable != static_cast<bool>(dataset_.tagExists(DCM_RecognizableVisualFeatures)))
            differ("RecognizableVisualFeatures is missing, or is there without a reason");
        expect_text(dataset_, ATTRIBUTE(ImageComments),
                    clean_text(request_.comment, 1024, VALUE_LINES, is_utf8(dataset_)));
    }

    /* Checks that the source images are these planes, in their order. */
    void check_sources(const std::vector<int32_t> &planes)
    {
        if (planes.empty()) {
            if (dataset_.tagExists(DCM_SourceImageSequence))
                differ("SourceImageSequence is there without a source");
            return;
        }
        size_t at = 0;
        for (DcmItem *image : items_of(dataset_, ATTRIBUTE(SourceImageSequence), planes.size())) {
            const int32_t plane = planes[at++];
            const struct dicom_instance *source = derived_plane_instance(&source_, plane);
            expect_text(*image, ATTRIBUTE(ReferencedSOPInstanceUID), source->sop_instance_uid);
            if (source->multi_frame)
                expect_text(*image, ATTRIBUTE(ReferencedFrameNumber), std::to_string(stack_.planes[plane].frame + 1));
        }
    }

    void check_frames()
    {
        int32_t frame = 0;
        DcmItem &shared = item_of(dataset_, ATTRIBUTE(SharedFunctionalGroupsSequence));
        if (request_.placed) {
            DcmItem &orientation = item_of(shared, ATTRIBUTE(PlaneOrientationSequence));
            DcmItem &measures = item_of(shared, ATTRIBUTE(PixelMeasuresSequence));
            for (unsigned long i = 0; i < 6; i++)
                expect_decimal(orientation, ATTRIBUTE(ImageOrientationPatient), request_.orientation[i], i);
            for (unsigned long i = 0; i < 2; i++)
                expect_decimal(measures, ATTRIBUTE(PixelSpacing), request_.spacing[i], i);
            expect_decimal(measures, ATTRIBUTE(SliceThickness), request_.thickness);
        }
        check_each_frame(request_.slices, [&](DcmItem &item) {
            const struct picture_frame place = place_of(frame++);
            if (!request_.placed) {
                if (item.tagExists(DCM_PlanePositionSequence))
                    differ("it has a position, which is not known");
                return;
            }
            DcmItem &position = item_of(item, ATTRIBUTE(PlanePositionSequence));
            for (unsigned long i = 0; i < 3; i++)
                expect_decimal(position, ATTRIBUTE(ImagePositionPatient), place.position[i], i);
        });
    }

    void check_pixels()
    {
        const int32_t first = many_ ? 0 : request_.only, end = many_ ? request_.slices : first + 1;
        const size_t bytes = static_cast<size_t>(request_.rows) * static_cast<size_t>(request_.columns) * 3;
        const PixelLayout frames = {
            path_, transfer_syntax_uid_, request_.rows, request_.columns, 24, static_cast<size_t>(end - first)};
        PixelReader::check(frames, dataset_);
        const std::unique_ptr<PixelReader> pixels = PixelReader::open(frames);
        std::vector<uint8_t> drawn(bytes * static_cast<size_t>(std::min(end - first, PICTURE_BATCH)));
        unsigned first_bit = 0;
        for (int32_t i = first; i < end; i += PICTURE_BATCH) {
            const int32_t count = std::min(end - i, PICTURE_BATCH);
            if (request_.draw(request_.context, i, count, drawn.data()))
                throw std::bad_alloc();
            for (int32_t k = 0; k < count; k++) {
                const uint8_t *there = pixels->read(static_cast<size_t>(i + k - first), first_bit);
                const uint8_t *wanted = drawn.data() + bytes * static_cast<size_t>(k);
                if (memcmp(there, wanted, bytes) == 0)
                    continue;
                const size_t at = static_cast<size_t>(std::mismatch(there, there + bytes, wanted).first - there);
                differ("frame %d: channel %zu of pixel %zu is %u instead of %u", i + k + 1, at % 3, at / 3,
                       static_cast<unsigned>(there[at]), static_cast<unsigned>(wanted[at]));
            }
        }
    }

    const struct picture_request &request_;
    const bool many_;
};

} // namespace

extern "C" int
picture_verify(const struct picture_request *request, const char *path, struct error *error)
{
    return verify(error, path, CODE_PICTURE_MISMATCH, "picture", [&] { PictureVerifier(*request, path).run(); });
}
