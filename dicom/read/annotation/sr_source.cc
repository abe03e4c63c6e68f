/* sr_source.cc - see sr_source.h. */
#include "dicom/read/annotation/sr_source.h"
#include "dicom/read/header.hh"
#include "dicom/value/charset.hh"
#include "dicom/value/storage_class.h"

#include <dcmtk/dcmsr/dsrdoc.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

namespace
{

/* Ascending; all attributes that dcmsr reads, also in items. */
constexpr uint32_t wanted_tags[] = {
    0x00080005, 0x00080016, 0x00080018, 0x00080023, 0x00080033, 0x00080060, 0x00080070, 0x00080100, 0x00080102,
    0x00080103, 0x00080104, 0x00080105, 0x00080119, 0x00080120, 0x00081090, 0x00081115, 0x00081150, 0x00081155,
    0x00081160, 0x00081199, 0x0020000D, 0x0020000E, 0x00200011, 0x00200013, 0x004008EA, 0x0040A010, 0x0040A040,
    0x0040A043, 0x0040A050, 0x0040A0B0, 0x0040A120, 0x0040A121, 0x0040A122, 0x0040A123, 0x0040A124, 0x0040A130,
    0x0040A132, 0x0040A138, 0x0040A13A, 0x0040A160, 0x0040A161, 0x0040A162, 0x0040A163, 0x0040A168, 0x0040A300,
    0x0040A301, 0x0040A30A, 0x0040A372, 0x0040A375, 0x0040A491, 0x0040A493, 0x0040A504, 0x0040A730, 0x0040DB00,
    0x0040DB73, 0x0062000B, 0x00700022, 0x00700023, 0x30060024,
};

constexpr double farthest = 1e6;

struct Image {
    std::string uid;
    std::vector<int32_t> frames;
};

struct Figure {
    struct sr_source_figure told;
    std::vector<double> points;
    std::vector<Image> images;
};

struct Item {
    std::string tracking, tracking_uid, finding, concept;
    std::vector<Figure> figures;
};

/* One report being opened. */
struct Opening : HeaderReader {
    Charset &charset;
    std::vector<Item> items;

    std::string name(const OFString &text) const
    {
        return charset_name(charset, std::string(text.c_str(), text.size()));
    }
};

/* --------------------------------------------------------------------------- identity --- */

int
sr_source_read_identity(const Opening &opening, const Header &dataset, const struct scan &scan,
                        struct sr_source &source)
{
    std::string class_uid = header_text(dataset, DCM_SOPClassUID);
    if (class_uid.empty())
        class_uid = scan.media_class_uid;
    const char *kind = storage_class_object(class_uid.c_str());
    if (!kind || strcmp(kind, "sr") != 0)
        return opening.refuse(CODE_SOP_CLASS_UNSUPPORTED,
                              "is not a supported structured report (Enhanced, Comprehensive, Comprehensive 3D).");
    header_copy(source.class_uid, class_uid);
    source.own = header_is_own(dataset);
    return opening.read_identity(dataset, source.sop_instance_uid, source.study_uid, source.series_uid);
}

/* Finds the series inside the studies of the evidence. */
void
sr_source_find_series(const Header &dataset, std::vector<std::string> &series)
{
    for (DcmItem *study : header_children<DcmItem>(dataset.sequence(DCM_CurrentRequestedProcedureEvidenceSequence)))
        for (DcmItem *each : header_children<DcmItem>(Header(*study).sequence(DCM_ReferencedSeriesSequence))) {
            const std::string uid = header_text(Header(*each), DCM_SeriesInstanceUID);
            if (header_is_uid(uid))
                series.push_back(uid);
        }
}

/* ------------------------------------------------------------------------ coordinates ---- */

/* Reads the points as an array of the value. dcmsr's list would walk from its start for each
 * item. */
template <typename List>
int
sr_source_read_points(const Opening &opening, const List &list, size_t dimensions, std::vector<double> &points)
{
    DcmItem item;
    const Float32 *values = nullptr;
    unsigned long count = 0;
    if (!header_is_good(list.write(item)) ||
        !header_is_good(item.findAndGetFloat32Array(DCM_GraphicData, values, &count)) || !values ||
        count % dimensions != 0)
        return opening.refuse(CODE_TAG_INVALID, "has coordinates that are not points.");
    for (unsigned long i = 0; i < count; i++) {
        const double value = static_cast<double>(values[i]);
        if (!(std::fabs(value) <= farthest))
            return opening.refuse(CODE_TAG_INVALID, "has coordinates beyond " +
                                                        std::to_string(static_cast<int>(farthest)) +
                                                        " or that are not numbers.");
        points.push_back(value);
        if (dimensions == 2 && i % 2 == 1)
            points.push_back(0);
    }
    return 0;
}

bool
sr_source_is_closed(const std::vector<double> &points)
{
    return points.size() > 9 && std::equal(points.begin(), points.begin() + 3, points.end() - 3);
}

int
sr_source_read_space(const Opening &opening, const DSRSpatialCoordinates3DValue &value, Figure &figure)
{
    struct sr_source_figure &told = figure.told;
    const int rc = sr_source_read_points(
        opening, const_cast<DSRSpatialCoordinates3DValue &>(value).getGraphicDataList(), 3, figure.points);
    if (rc)
        return rc;
    header_copy(told.frame_of_reference_uid, std::string(value.getFrameOfReferenceUID().c_str()));
    switch (value.getGraphicType()) {
    case DSRTypes::GT3_Point:
    case DSRTypes::GT3_Multipoint:
        told.form = SR_SOURCE_POINTS;
        break;
    case DSRTypes::GT3_Polygon:
        told.form = SR_SOURCE_OUTLINE;
        break;
    case DSRTypes::GT3_Polyline:
        told.form = sr_source_is_closed(figure.points) ? SR_SOURCE_OUTLINE : SR_SOURCE_OTHER;
        break;
    default:
        told.form = SR_SOURCE_OTHER;
        break;
    }
    told.type = DSRTypes::graphicType3DToEnumeratedValue(value.getGraphicType());
    return 0;
}

int
sr_source_read_image(const Opening &opening, const DSRSpatialCoordinatesValue &value, Figure &figure)
{
    struct sr_source_figure &told = figure.told;
    const int rc = sr_source_read_points(opening, const_cast<DSRSpatialCoordinatesValue &>(value).getGraphicDataList(),
                                         2, figure.points);
    if (rc)
        return rc;
    switch (value.getGraphicType()) {
    case DSRTypes::GT_Point:
    case DSRTypes::GT_Multipoint:
        told.form = SR_SOURCE_POINTS;
        break;
    case DSRTypes::GT_Polyline:
        told.form = sr_source_is_closed(figure.points) ? SR_SOURCE_OUTLINE : SR_SOURCE_OTHER;
        break;
    case DSRTypes::GT_Circle:
        told.form = figure.points.size() == 2 * 3 ? SR_SOURCE_ELLIPSE : SR_SOURCE_OTHER;
        break;
    case DSRTypes::GT_Ellipse:
        told.form = figure.points.size() == 4 * 3 ? SR_SOURCE_ELLIPSE : SR_SOURCE_OTHER;
        break;
    default:
        told.form = SR_SOURCE_OTHER;
        break;
    }
    told.type = DSRTypes::graphicTypeToEnumeratedValue(value.getGraphicType());
    return 0;
}

/* Returns the frame numbers of a list. dcmsr would walk from its start for each item. */
std::vector<int32_t>
sr_source_frames(const DSRImageFrameList &list)
{
    std::ostringstream text;
    std::vector<int32_t> frames;
    if (!header_is_good(list.print(text)))
        throw std::bad_alloc();
    std::istringstream numbers(text.str());
    for (std::string number; std::getline(numbers, number, ',');)
        frames.push_back(static_cast<int32_t>(strtol(number.c_str(), nullptr, 10)));
    return frames;
}

/* Finds the images of the coordinates, which are their children. */
void
sr_source_find_images(DSRDocumentTree &tree, Figure &figure)
{
    if (!tree.goDown())
        return;
    do {
        const DSRContentItem &child = tree.getCurrentContentItem();
        if (child.getValueType() != DSRTypes::VT_Image)
            continue;
        const DSRImageReferenceValue &image = child.getImageReference();
        figure.images.push_back({image.getSOPInstanceUID().c_str(), sr_source_frames(image.getFrameList())});
    } while (tree.gotoNext());
    tree.goUp();
}

/* ---------------------------------------------------------------------------- the tree ---- */

bool
sr_source_is_concept(const DSRContentItem &item, const char *code)
{
    return strcmp(item.getConceptName().getCodeValue().c_str(), code) == 0 &&
           strcmp(item.getConceptName().getCodingSchemeDesignator().c_str(), "DCM") == 0;
}

int
sr_source_add_figure(Opening &opening, DSRDocumentTree &tree, size_t owner)
{
    const DSRContentItem &item = tree.getCurrentContentItem();
    const bool in_space = item.getValueType() == DSRTypes::VT_SCoord3D;
    Figure figure = {};
    const int rc = in_space ? sr_source_read_space(opening, item.getSpatialCoordinates3D(), figure)
                            : sr_source_read_image(opening, item.getSpatialCoordinates(), figure);
    if (rc)
        return rc;
    if (opening.items[owner].concept.empty())
        opening.items[owner].concept = opening.name(item.getConceptName().getCodeMeaning());
    if (!in_space)
        sr_source_find_images(tree, figure);
    opening.items[owner].figures.push_back(std::move(figure));
    return 0;
}

/* Walks the children of the item at the cursor, and returns the cursor to it. The walk over the
 * file has limited their depth. */
int
sr_source_walk(Opening &opening, DSRDocumentTree &tree, size_t owner)
{
    int rc = 0;
    if (!tree.goDown())
        return 0;
    do {
        const DSRContentItem &item = tree.getCurrentContentItem();
        const DSRTypes::E_ValueType type = item.getValueType();
        /* Tracking Identifier, Tracking Unique Identifier and Finding of the container */
        if (type == DSRTypes::VT_Text && sr_source_is_concept(item, "112039"))
            opening.items[owner].tracking = opening.name(item.getStringValue());
        if (type == DSRTypes::VT_UIDRef && sr_source_is_concept(item, "112040")) {
            opening.items[owner].tracking_uid = item.getStringValue().c_str();
            if (!opening.items[owner].tracking_uid.empty() && !header_is_uid(opening.items[owner].tracking_uid))
                return opening.refuse(CODE_UID_INVALID,
                                      "has an invalid Tracking Unique Identifier: a UID must have 1 to "
                                      "64 digits and dots, and begin with a digit.");
        }
        if (type == DSRTypes::VT_Code && sr_source_is_concept(item, "121071"))
            opening.items[owner].finding = opening.name(item.getCodeValue().getCodeMeaning());
        if (type == DSRTypes::VT_SCoord || type == DSRTypes::VT_SCoord3D) {
            rc = sr_source_add_figure(opening, tree, owner);
        } else if (type == DSRTypes::VT_Container) {
            opening.items.emplace_back();
            rc = sr_source_walk(opening, tree, opening.items.size() - 1);
        } else {
            rc = sr_source_walk(opening, tree, owner);
        }
    } while (rc == 0 && tree.gotoNext());
    tree.goUp();
    return rc;
}

/* ------------------------------------------------------------------------- the whole ---- */

/* Containers without coordinates are not items. */
void
sr_source_hand_over(const Opening &opening, const std::vector<std::string> &series, struct sr_source &source)
{
    source.items = header_allocate<struct sr_source_item>(opening.items.size());
    for (const Item &item : opening.items) {
        if (item.figures.empty())
            continue;
        struct sr_source_item &told = source.items[source.item_count++];
        told.number = source.item_count;
        header_copy_name(told.name, !item.tracking.empty()  ? item.tracking
                                    : !item.finding.empty() ? item.finding
                                                            : item.concept);
        header_copy_name(told.finding, item.finding);
        if (!item.tracking.empty() && !item.tracking_uid.empty()) {
            header_copy_name(told.tracking_id, item.tracking);
            header_copy(told.tracking_uid, item.tracking_uid);
        }
        told.figures = header_allocate<struct sr_source_figure>(item.figures.size());
        for (const Figure &figure : item.figures) {
            struct sr_source_figure &own = told.figures[told.figure_count++];
            own = figure.told;
            own.points = header_array(figure.points);
            own.count = static_cast<int64_t>(figure.points.size() / 3);
            own.images = header_allocate<struct sr_source_image>(figure.images.size());
            for (const Image &image : figure.images) {
                struct sr_source_image &on = own.images[own.image_count++];
                header_copy(on.uid, image.uid);
                on.frames = header_array(image.frames);
                on.frame_count = static_cast<int32_t>(image.frames.size());
            }
        }
    }
    source.series = header_allocate<char[DICOM_UID_SIZE]>(series.size());
    for (const std::string &uid : series)
        header_copy(source.series[source.series_count++], uid);
}

/* dcmsr drops frame numbers that it cannot read. A reference without any would be to all frames. */
bool
sr_source_has_good_frames(DcmItem &item)
{
    bool good = true;
    for (DcmElement *element : header_children<DcmElement>(&item)) {
        OFString text;
        if (element->ident() == EVR_SQ)
            for (DcmItem *each : header_children<DcmItem>(element))
                good = good && sr_source_has_good_frames(*each);
        if (element->getTag() != DCM_ReferencedFrameNumber || !header_is_good(element->getOFStringArray(text)))
            continue;
        std::istringstream numbers(text.c_str());
        for (std::string number; std::getline(numbers, number, '\\') && good;) {
            const std::string digits = header_trimmed(number);
            good = !digits.empty() && digits.size() < 10 &&
                   digits.find_first_not_of("0123456789") == std::string::npos &&
                   strtol(digits.c_str(), nullptr, 10) > 0;
        }
    }
    return good;
}

int
sr_source_read_content(Opening &opening, DcmDataset &dataset)
{
    DSRDocument document;
    if (!sr_source_has_good_frames(dataset))
        return opening.refuse(CODE_TAG_INVALID, "has a Referenced Frame Number that is not a positive number.");
    const OFCondition status =
        document.read(dataset, DSRTypes::RF_ignoreRelationshipConstraints | DSRTypes::RF_acceptUnknownRelationshipType);
    if (!header_is_good(status) || !document.getTree().gotoRoot())
        return opening.refuse(CODE_TAG_INVALID, std::string("has content that cannot be read: ") + status.text() + ".");
    opening.items.emplace_back();
    return sr_source_walk(opening, document.getTree(), 0);
}

} // namespace

int
sr_source_open(const char *path, struct sr_source **source, struct error *error)
{
    *source = nullptr;
    return header_guard(path, error, [&] {
        HeaderOwner<struct sr_source, sr_source_close> made(header_allocate<struct sr_source>(1));
        struct scan_wanted wanted = scan_wanted_of(wanted_tags, std::size(wanted_tags), LIMIT_INHERITED_BYTES);
        wanted.nested = true;
        HeaderFile file;
        int rc = file.read(path, wanted, error);
        if (rc)
            return rc;
        std::vector<std::string> series;
        {
            const Header header(file.dataset);
            Charset charset(header_character_sets(header));
            Opening opening{{path, error}, charset, {}};
            rc = sr_source_read_identity(opening, header, file.scan, *made);
            if (!rc)
                sr_source_find_series(header, series);
            if (!rc)
                rc = sr_source_read_content(opening, file.dataset);
            if (!rc)
                rc = scan_check_time(&file.scan, path, error);
            if (!rc)
                sr_source_hand_over(opening, series, *made);
        }
        if (!rc)
            *source = made.release();
        return rc;
    });
}

void
sr_source_close(struct sr_source *source)
{
    if (!source)
        return;
    for (int32_t i = 0; i < source->item_count; i++) {
        for (int32_t k = 0; k < source->items[i].figure_count; k++) {
            struct sr_source_figure *figure = &source->items[i].figures[k];
            for (int32_t m = 0; m < figure->image_count; m++)
                free(figure->images[m].frames);
            free(figure->images);
            free(figure->points);
        }
        free(source->items[i].figures);
    }
    free(source->items);
    free(source->series);
    free(source);
}
