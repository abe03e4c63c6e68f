/*
 * rtstruct_verify.cc - reads a structure set back and compares it with the request.
 *
 * DCMTK reads the attributes before the contours. Noctule's own reader reads regions, observations and contours, as it
 * does for a pipeline with an annotation object.
 */
#include "dicom/objects/rtstruct/rtstruct_object.h"

#include "base/planes.h"
#include "dicom/write/read_back.hh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

using namespace read_back;

namespace
{

/* The contours of one region. */
struct Contours : rtstruct_contours {
    Contours() : rtstruct_contours{}
    {
    }

    Contours(const Contours &) = delete;
    Contours &operator=(const Contours &) = delete;

    ~Contours()
    {
        rtstruct_contours_free(this);
    }
};

class RtstructVerifier
{
  public:
    RtstructVerifier(const struct rtstruct_request &request, const char *path)
        : request_(request), seg_(*request.seg), source_(seg_.source), path_(path)
    {
        const struct dicom_frame &first = *derived_plane_frame(&source_, 0);
        struct image_planes planes = {};
        std::copy(std::begin(first.orientation), std::end(first.orientation), planes.axes);
        image_planes_normal(&planes, normal_);
        for (int32_t p = 0; p < source_.stack->plane_count; p++)
            heights_.push_back(height(derived_plane_frame(&source_, p)->position));
    }

    /* Returns 0 or -errno with the error filled. A difference is thrown. */
    int run(rtstruct_compare *compare, void *context, struct error *error)
    {
        check_head();
        struct rtstruct *opened = nullptr;
        struct error why = {};
        if (const int rc = rtstruct_open(path_, &opened, &why))
            return refused(rc, why, error);
        const std::unique_ptr<struct rtstruct, void (*)(struct rtstruct *)> set(opened, rtstruct_close);
        if (set->roi_count != seg_.segment_count)
            differ("it has %d regions instead of %d", set->roi_count, seg_.segment_count);
        if (set->series_count != 1 ||
            derived_plane_instance(&source_, 0)->series_uid != std::string(set->series->series_uid))
            differ("it does not refer to the series of the source");
        for (int32_t i = 0; i < set->roi_count; i++) {
            check_roi(set->rois[i], i);
            Contours contours;
            if (const int rc = rtstruct_contours_read(set.get(), i, &contours, &why))
                return refused(rc, why, error);
            check_images(contours, i);
            if (const int rc = compare(context, i, &contours, error))
                return rc;
        }
        return 0;
    }

  private:
    static int refused(int rc, const struct error &why, struct error *error)
    {
        if (rc == -ENOMEM)
            throw std::bad_alloc();
        if (why.code != CODE_SIZE_IMPLAUSIBLE)
            differ("it cannot be read: %s", why.message);
        return error_set(error, -EOVERFLOW, CODE_RTSTRUCT_TOO_LARGE, "No structure set can be made: %.380s",
                         why.message);
    }

    double height(const double point[3]) const
    {
        return image_planes_along(point, derived_plane_frame(&source_, 0)->position, normal_);
    }

    void check_head()
    {
        DcmFileFormat file;
        const OFCondition status = file.loadFileUntilTag(path_, EXS_Unknown, EGL_noChange, DCM_MaxReadLength,
                                                         ERM_autoDetect, DCM_ROIContourSequence);
        if (status.bad())
            differ("it cannot be read: %s", status.text());
        DcmDataset &dataset = *file.getDataset();
        struct derived_identity identity = {};
        if (rtstruct_identify(&request_, &identity) || derived_frame_of_reference_uid(&source_, frame_of_reference_))
            throw std::bad_alloc();
        check_identity(file, RTSTRUCT_CLASS_UID, identity, source_, "RTSTRUCT");
        expect_text(dataset, ATTRIBUTE(FrameOfReferenceUID), frame_of_reference_);
        text_of(dataset, ATTRIBUTE(StructureSetLabel));
        if (identity.replaces)
            expect_text(item_of(dataset, ATTRIBUTE(PredecessorStructureSetSequence)),
                        ATTRIBUTE(ReferencedSOPInstanceUID), identity.replaces->sop_instance_uid);
        else if (dataset.tagExists(DCM_PredecessorStructureSetSequence))
            differ("PredecessorStructureSetSequence is present, but no object is replaced");
        DcmItem &frame = item_of(dataset, ATTRIBUTE(ReferencedFrameOfReferenceSequence));
        expect_text(frame, ATTRIBUTE(FrameOfReferenceUID), frame_of_reference_);
        DcmItem &study = item_of(frame, ATTRIBUTE(RTReferencedStudySequence));
        expect_text(study, ATTRIBUTE(ReferencedSOPInstanceUID), derived_plane_instance(&source_, 0)->study_uid);
        DcmItem &series = item_of(study, ATTRIBUTE(RTReferencedSeriesSequence));
        int32_t plane = 0;
        for (DcmItem *image :
             items_of(series, ATTRIBUTE(ContourImageSequence), static_cast<size_t>(source_.stack->plane_count)))
            expect_text(*image, ATTRIBUTE(ReferencedSOPInstanceUID),
                        derived_plane_instance(&source_, plane++)->sop_instance_uid);
        check_rois(dataset);
    }

    void check_rois(DcmDataset &dataset)
    {
        utf8_ = is_utf8(dataset);
        const struct seg_segment *segment = seg_.segments;
        for (DcmItem *item :
             items_of(dataset, ATTRIBUTE(StructureSetROISequence), static_cast<size_t>(seg_.segment_count))) {
            expect_text(*item, ATTRIBUTE(ROIName), clean_text(segment->label, 64, VALUE_LINE, utf8_));
            expect_text(*item, ATTRIBUTE(ROIGenerationAlgorithm), seg_algorithm_type(segment));
            segment++;
        }
    }

    void check_roi(const struct rtstruct_roi &roi, int32_t index) const
    {
        const struct seg_segment &segment = seg_.segments[index];
        const struct provenance &found = *roi.provenance;
        if (roi.number != index + 1)
            differ("region %d has number %d", index + 1, roi.number);
        if (strcmp(roi.frame_of_reference_uid, frame_of_reference_) != 0)
            differ("region %d has another frame of reference", roi.number);
        if (strcmp(roi.type, request_.types[index]) != 0)
            differ("RTROIInterpretedType of region %d is \"%s\" instead of \"%s\"", roi.number, roi.type,
                   request_.types[index]);
        for (int i = 0; i < 3; i++)
            if (!roi.has_color || roi.color[i] != std::lround(255 * segment.color_rgb[i]))
                differ("ROIDisplayColor of region %d is another one", roi.number);
        check_code(found.category, segment.category, roi.number);
        check_code(found.property, segment.type, roi.number);
        check_code(found.modifier, segment.modifier, roi.number);
        check_code(found.region, segment.region, roi.number);
        struct provenance_algorithm algorithm = {};
        size_t count = 0;
        for (; seg_algorithm(&segment, count, &algorithm); count++)
            if (count >= found.algorithm_count ||
                clean_text(algorithm.name, 64, VALUE_LINE, utf8_) != found.algorithms[count].name)
                differ("the algorithm of region %d is another one", roi.number);
        if (count != found.algorithm_count)
            differ("region %d has %zu algorithms instead of %zu", roi.number, found.algorithm_count, count);
    }

    static void check_code(const struct coded_concept &found, const struct coded_concept &expected, int32_t number)
    {
        if (!found.value != !expected.value ||
            (found.value && (strcmp(found.value, expected.value) != 0 || strcmp(found.scheme, expected.scheme) != 0)))
            differ("a code of region %d is %.64s instead of %.64s", number, found.value ? found.value : "absent",
                   expected.value ? expected.value : "absent");
    }

    /* Checks that each contour refers to the image of the nearest plane. */
    void check_images(const struct rtstruct_contours &contours, int32_t index) const
    {
        if (contours.left_out)
            differ("region %d has contours that are not closed", index + 1);
        for (int64_t i = 0; i < contours.count; i++) {
            const double at = height(contours.contours[i].points);
            auto plane = std::lower_bound(heights_.begin(), heights_.end(), at);
            if (plane == heights_.end() || (plane != heights_.begin() && at - plane[-1] < *plane - at))
                --plane;
            const auto number = static_cast<int32_t>(plane - heights_.begin());
            if (strcmp(contours.images[i], derived_plane_instance(&source_, number)->sop_instance_uid) != 0)
                differ("contour %lld of region %d refers to another image than that of plane %d",
                       static_cast<long long>(i) + 1, index + 1, number);
        }
    }

    const struct rtstruct_request &request_;
    const struct seg_request &seg_;
    const struct derived_source &source_;
    const char *path_;
    double normal_[3] = {};
    std::vector<double> heights_; /* of the planes, in mm above the first */
    char frame_of_reference_[DICOM_UID_SIZE] = "";
    bool utf8_ = false;
};

} // namespace

extern "C" int
rtstruct_verify(const struct rtstruct_request *request, const char *path, rtstruct_compare *compare, void *context,
                struct error *error)
{
    int failed = 0;
    const int rc = verify(error, path, CODE_RTSTRUCT_MISMATCH, "structure set",
                          [&] { failed = RtstructVerifier(*request, path).run(compare, context, error); });
    return rc ? rc : failed;
}
