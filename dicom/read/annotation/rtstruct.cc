/*
 * rtstruct.cc - see rtstruct.h. The walk keeps the ROI Contour Sequence separately, one item per
 * region, so that one region is parsed at a time.
 */
#include "dicom/read/annotation/rtstruct.h"
#include "dicom/read/annotation/provenance.hh"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

struct rtstruct_items {
    std::string path;

    struct scan scan {
    };

    std::vector<int32_t> of_roi; /* index of each region's item, or -1 */

    ~rtstruct_items()
    {
        scan_release(&scan);
    }
};

namespace
{

/* Ascending; all attributes read, also in items. */
constexpr uint32_t wanted_tags[] = {
    0x00080005, 0x00080016, 0x00080018, 0x00080070, 0x00080100, 0x00080102, 0x00080104, 0x00080119, 0x00081090,
    0x00081155, 0x00082218, 0x00181020, 0x0020000D, 0x0020000E, 0x00200052, 0x00240202, 0x00620003, 0x00620011,
    0x0066002F, 0x00660030, 0x00660031, 0x00660032, 0x00660036, 0x30060002, 0x30060010, 0x30060012, 0x30060014,
    0x30060016, 0x30060020, 0x30060022, 0x30060024, 0x30060026, 0x3006002A, 0x30060036, 0x30060037, 0x30060038,
    0x30060039, 0x30060040, 0x30060042, 0x30060046, 0x30060050, 0x30060080, 0x30060084, 0x30060086, 0x300600A4,
};

constexpr struct scan_separate contour_items = {
    0x30060039, LIMIT_ROIS, LIMIT_CONTOURS_MIB, LIMIT_ROI_ELEMENTS, "regions", "elements in one region's contours",
};

constexpr double farthest_mm = 1e6;

/* Calls `body` with each item of a sequence until one fails. */
template <typename Body>
int
rtstruct_items_of(const Header &header, const DcmTagKey &sequence, Body body)
{
    for (DcmItem *item : header_children<DcmItem>(header.sequence(sequence)))
        if (const int rc = body(Header(*item)))
            return rc;
    return 0;
}

/* One file being opened. */
struct Opening : HeaderReader {
    struct rtstruct_items &items;
    std::vector<struct rtstruct_roi> rois;
    std::vector<struct rtstruct_series> series;
    std::map<int32_t, size_t> by_number;

    ~Opening()
    {
        for (const struct rtstruct_roi &roi : rois)
            provenance_release(roi.provenance);
    }

    int read_any_number(const Header &header, const DcmTagKey &tag, int32_t *number) const
    {
        if (!header_has(header, tag))
            return missing(tag);
        return header_integer(header, tag, number) ? 0 : invalid(tag, "not a whole number");
    }
};

int
rtstruct_read_rois(Opening &opening, const Header &dataset, Charset &charset)
{
    return rtstruct_items_of(dataset, DCM_StructureSetROISequence, [&](const Header &item) {
        struct rtstruct_roi roi = {};
        if (opening.rois.size() == LIMIT_ROIS)
            return opening.refuse(CODE_SIZE_IMPLAUSIBLE, "has more than " + std::to_string(LIMIT_ROIS) + " regions.");
        int rc = opening.read_any_number(item, DCM_ROINumber, &roi.number);
        if (!rc)
            rc = opening.read_uid(item, DCM_ReferencedFrameOfReferenceUID, false, roi.frame_of_reference_uid);
        if (rc)
            return rc;
        if (!opening.by_number.emplace(roi.number, opening.rois.size()).second)
            return opening.invalid(DCM_ROINumber, "two regions have " + std::to_string(roi.number));
        header_copy_name(roi.name, charset_name(charset, header_text(item, DCM_ROIName)));
        opening.rois.push_back(roi);
        opening.rois.back().provenance = provenance_read(provenance_of_roi, dataset, item, charset);
        return 0;
    });
}

int
rtstruct_read_types(Opening &opening, const Header &dataset, Charset &charset)
{
    return rtstruct_items_of(dataset, DCM_RTROIObservationsSequence, [&](const Header &item) {
        int32_t number;
        if (const int rc = opening.read_any_number(item, DCM_ReferencedROINumber, &number))
            return rc;
        const auto roi = opening.by_number.find(number);
        if (roi == opening.by_number.end())
            return 0;
        struct rtstruct_roi &own = opening.rois[roi->second];
        header_copy(own.type, header_text(item, DCM_RTROIInterpretedType));
        provenance_add_codes(own.provenance, provenance_of_roi, item, charset);
        return 0;
    });
}

/* Reads referenced series, which are inside studies, inside frames of reference. */
int
rtstruct_read_series(Opening &opening, const Header &dataset)
{
    struct rtstruct_series series = {};
    const auto read_series = [&](const Header &item) {
        const int rc = opening.read_uid(item, DCM_SeriesInstanceUID, true, series.series_uid);
        if (!rc)
            opening.series.push_back(series);
        return rc;
    };
    const auto read_study = [&](const Header &item) {
        return rtstruct_items_of(item, DCM_RTReferencedSeriesSequence, read_series);
    };
    return rtstruct_items_of(dataset, DCM_ReferencedFrameOfReferenceSequence, [&](const Header &item) {
        series = {};
        const int rc = opening.read_uid(item, DCM_FrameOfReferenceUID, false, series.frame_of_reference_uid);
        return rc ? rc : rtstruct_items_of(item, DCM_RTReferencedStudySequence, read_study);
    });
}

/* Parses the elements of a region's item. */
void
rtstruct_parse_item(const struct rtstruct_items &items, int32_t number, DcmDataset &item)
{
    if (!header_parse_separate(items.scan, number, item))
        throw std::runtime_error("the contours of a region");
}

/* Assigns an item of the ROI Contour Sequence to its region. Skips an item without region. */
int
rtstruct_read_item(Opening &opening, int32_t number)
{
    DcmDataset parsed;
    rtstruct_parse_item(opening.items, number, parsed);
    const Header item(parsed);
    int32_t roi_number;
    if (const int rc = opening.read_any_number(item, DCM_ReferencedROINumber, &roi_number))
        return rc;
    const auto found = opening.by_number.find(roi_number);
    if (found == opening.by_number.end())
        return 0;
    int32_t &own = opening.items.of_roi[found->second];
    if (own >= 0)
        return opening.invalid(DCM_ReferencedROINumber, "two sets of contours are of " + std::to_string(roi_number));
    own = number;
    struct rtstruct_roi &roi = opening.rois[found->second];
    uint8_t color[3];
    roi.has_color = true;
    for (unsigned long i = 0; i < 3 && roi.has_color; i++) {
        double value;
        roi.has_color = header_number(item, DCM_ROIDisplayColor, &value, i) && value >= 0 && value <= UINT8_MAX &&
                        std::trunc(value) == value;
        color[i] = roi.has_color ? static_cast<uint8_t>(value) : 0;
    }
    if (roi.has_color)
        std::copy(std::begin(color), std::end(color), roi.color);
    if (DcmSequenceOfItems *contours = item.sequence(DCM_ContourSequence))
        roi.contours = static_cast<int64_t>(contours->card());
    return 0;
}

int
rtstruct_read_identity(Opening &opening, const Header &dataset, Charset &charset, struct rtstruct &set)
{
    std::string class_uid = header_text(dataset, DCM_SOPClassUID);
    if (class_uid.empty())
        class_uid = opening.items.scan.media_class_uid;
    if (class_uid != RTSTRUCT_CLASS_UID)
        return opening.refuse(CODE_SOP_CLASS_UNSUPPORTED, "is not an RT Structure Set.");
    const int rc = opening.read_identity(dataset, set.sop_instance_uid, set.study_uid, set.series_uid);
    header_copy_name(set.label, charset_name(charset, header_text(dataset, DCM_StructureSetLabel)));
    return rc;
}

int
rtstruct_read(Opening &opening, struct rtstruct &set)
{
    DcmDataset parsed;
    if (const int rc = header_parse(opening.items.scan, opening.path, parsed, opening.error))
        return rc;
    const Header dataset(parsed);
    Charset charset(header_character_sets(dataset));
    int rc = rtstruct_read_identity(opening, dataset, charset, set);
    if (!rc)
        rc = rtstruct_read_rois(opening, dataset, charset);
    if (!rc)
        rc = rtstruct_read_types(opening, dataset, charset);
    if (!rc)
        rc = rtstruct_read_series(opening, dataset);
    struct scan &scan = opening.items.scan;
    opening.items.of_roi.assign(opening.rois.size(), -1);
    for (int32_t i = 0; i < scan.frame_count && !rc; i++) {
        rc = scan_check_time(&scan, opening.path, opening.error);
        if (!rc)
            rc = rtstruct_read_item(opening, i);
    }
    return rc;
}

/* ---- contours ---- */

/* Contours of a region, while they are collected: the numbers of all points, and the end of each
 * contour. */
struct Gathering : HeaderReader {
    const struct rtstruct_roi &roi;
    struct rtstruct_contours &contours;
    size_t count, room;
    std::vector<size_t> ends;
    std::vector<std::string> images;
    std::vector<bool> is_xor;

    /* reallocarray can move pages instead of copying. */
    void append(double number)
    {
        if (count == room) {
            room = std::max<size_t>(2 * room, 4096);
            auto *points = static_cast<double *>(reallocarray(contours.points, room, sizeof(*contours.points)));
            if (!points)
                throw std::bad_alloc();
            contours.points = points;
        }
        contours.points[count++] = number;
    }

    std::string of_roi() const
    {
        return " in region " + std::to_string(roi.number);
    }
};

/* Appends the numbers of "1\2.5\-3e2", three per point. */
int
rtstruct_numbers(Gathering &gathering, std::string_view text)
{
    const size_t first = gathering.count;
    for (bool last = false; !last;) {
        double number = 0;
        size_t length;
        const bool good = header_first_decimal(text, &number, &length);
        last = length == text.size();
        if (!good || !(std::fabs(number) <= farthest_mm) || (last && (gathering.count + 1 - first) % 3 != 0))
            return gathering.invalid(DCM_ContourData, "not x, y and z in mm of each point" + gathering.of_roi());
        if (gathering.count == 3 * static_cast<size_t>(LIMIT_ROI_POINTS))
            return gathering.refuse(CODE_SIZE_IMPLAUSIBLE, "has more than " + std::to_string(LIMIT_ROI_POINTS) +
                                                               " points" + gathering.of_roi() + ".");
        gathering.append(number);
        text.remove_prefix(last ? length : length + 1);
    }
    return 0;
}

int
rtstruct_read_points(Gathering &gathering, const Header &item)
{
    char *text = nullptr; /* without a copy: Contour Data is long */
    Uint32 length = 0;
    const size_t first = gathering.count;
    DcmElement *element = item.find(DCM_ContourData);
    if (!element || element->getLength() == 0 || !header_is_good(element->getString(text, length)) || !text ||
        length == 0)
        return gathering.missing(DCM_ContourData, gathering.of_roi());
    if (const int rc = rtstruct_numbers(gathering, {text, length}))
        return rc;
    const size_t points = (gathering.count - first) / 3;
    int32_t told;
    if (header_has(item, DCM_NumberOfContourPoints) &&
        (!header_integer(item, DCM_NumberOfContourPoints, &told) || told < 0 || static_cast<size_t>(told) != points))
        return gathering.invalid(DCM_NumberOfContourPoints,
                                 "there are " + std::to_string(points) + " points" + gathering.of_roi());
    gathering.ends.push_back(gathering.count);
    return 0;
}

int
rtstruct_read_contour(Gathering &gathering, const Header &item)
{
    const std::string type = header_text(item, DCM_ContourGeometricType);
    if (type.empty())
        return gathering.missing(DCM_ContourGeometricType, gathering.of_roi());
    if (type != "CLOSED_PLANAR" && type != "CLOSEDPLANAR_XOR") {
        gathering.contours.left_out++;
        return 0;
    }
    const std::string image = header_text(item.item(DCM_ContourImageSequence), DCM_ReferencedSOPInstanceUID);
    if (!image.empty() && !header_is_uid(image))
        return gathering.refuse(CODE_UID_INVALID, "has an invalid " + header_tag_name(DCM_ReferencedSOPInstanceUID) +
                                                      gathering.of_roi() + ".");
    gathering.images.push_back(image);
    gathering.is_xor.push_back(type == "CLOSEDPLANAR_XOR");
    return rtstruct_read_points(gathering, item);
}

int
rtstruct_gather(const struct rtstruct &set, int32_t roi, struct rtstruct_contours &contours, struct error *error)
{
    const int32_t number = set.items->of_roi[static_cast<size_t>(roi)];
    Gathering gathering{{set.items->path.c_str(), error}, set.rois[roi], contours, 0, 0, {}, {}, {}};
    if (number >= 0) {
        DcmDataset parsed;
        rtstruct_parse_item(*set.items, number, parsed);
        if (const int rc = rtstruct_items_of(Header(parsed), DCM_ContourSequence, [&](const Header &item) {
                return rtstruct_read_contour(gathering, item);
            }))
            return rc;
    }
    const size_t count = gathering.ends.size();
    contours.contours = header_allocate<struct contour>(count);
    contours.images = header_allocate<char[DICOM_UID_SIZE]>(count);
    contours.count = static_cast<int64_t>(count);
    size_t start = 0;
    for (size_t i = 0; i < count; i++) {
        contours.contours[i] = {contours.points + start, static_cast<int64_t>((gathering.ends[i] - start) / 3),
                                gathering.is_xor[i]};
        header_copy(contours.images[i], gathering.images[i]);
        start = gathering.ends[i];
    }
    return 0;
}

} // namespace

int
rtstruct_open(const char *path, struct rtstruct **set, struct error *error)
{
    return rtstruct_open_file(-1, path, set, error);
}

int
rtstruct_open_file(int fd, const char *path, struct rtstruct **set, struct error *error)
{
    *set = nullptr;
    return header_guard(path, error, [&] {
        HeaderOwner<struct rtstruct, rtstruct_close> made(header_allocate<struct rtstruct>(1));
        made->items = new struct rtstruct_items;
        made->items->path = path;
        struct stream stream;
        int rc = header_open(fd, path, &stream, error);
        if (rc)
            return rc;
        struct scan_wanted wanted = scan_wanted_of(wanted_tags, std::size(wanted_tags), UINT32_MAX);
        wanted.nested = true;
        wanted.separate = &contour_items;
        rc = scan_file(&stream, path, &wanted, &made->items->scan, error);
        stream_close(&stream);
        if (rc)
            return rc;
        Opening opening{{path, error}, *made->items, {}, {}, {}};
        rc = rtstruct_read(opening, *made);
        if (rc)
            return rc;
        made->rois = header_array(opening.rois);
        made->roi_count = static_cast<int32_t>(opening.rois.size());
        opening.rois.clear(); /* the made now holds the provenances */
        made->series = header_array(opening.series);
        made->series_count = static_cast<int32_t>(opening.series.size());
        *set = made.release();
        return 0;
    });
}

void
rtstruct_close(struct rtstruct *set)
{
    if (!set)
        return;
    for (int32_t i = 0; i < set->roi_count; i++)
        provenance_release(set->rois[i].provenance);
    free(set->rois);
    free(set->series);
    delete set->items;
    free(set);
}

int
rtstruct_contours_read(const struct rtstruct *set, int32_t roi, struct rtstruct_contours *contours, struct error *error)
{
    *contours = {};
    const int rc =
        header_guard(set->items->path.c_str(), error, [&] { return rtstruct_gather(*set, roi, *contours, error); });
    if (rc)
        rtstruct_contours_free(contours);
    return rc;
}

void
rtstruct_contours_free(struct rtstruct_contours *contours)
{
    free(contours->points);
    free(contours->contours);
    free(contours->images);
    *contours = {};
}
