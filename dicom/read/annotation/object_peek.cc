/*
 * object_peek.cc - see object_peek.h. Makes at most two walks. Contours, frames and the content of
 * reports may be long, so they are read only if no earlier attribute has references.
 */
#include "dicom/read/annotation/object_peek.h"
#include "dicom/read/header.hh"
#include "dicom/value/charset.hh"
#include "dicom/value/storage_class.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

namespace
{

/* Ascending; all attributes read, also in items. */
constexpr uint32_t short_tags[] = {
    0x00080005, 0x00080012, 0x00080013, 0x00080016, 0x00080018, 0x00080023, 0x00080033, 0x00080060,
    0x00080070, 0x0008103E, 0x00081070, 0x00081090, 0x00081115, 0x0008114A, 0x00081155, 0x00081199,
    0x00082112, 0x00089124, 0x0020000D, 0x0020000E, 0x00200052, 0x0040A360, 0x0040A375, 0x0040A385,
    0x00620002, 0x00620005, 0x00700080, 0x00700084, 0x30060002, 0x30060008, 0x30060009, 0x30060010,
    0x30060012, 0x30060014, 0x30060016, 0x30060018, 0x30060020, 0x30060026, 0x52009229,
};

/* Attributes that may be long: the content of a report, contours, frames. */
constexpr uint32_t long_tags[] = {
    0x00081155, 0x00081199, 0x00082112, 0x00089124, 0x0040A730,
    0x30060016, 0x30060024, 0x30060039, 0x30060040, 0x52009230,
};

constexpr struct scan_separate object_contours = {
    0x30060039, LIMIT_ROIS, LIMIT_CONTOURS_MIB, LIMIT_ROI_ELEMENTS, "regions", "elements in one region's contours",
};

/* One file being read. */
struct Reading : HeaderReader {
    struct stream &stream;
    struct object_peek &peek;
    std::set<std::string> series, instances, frames, predecessors;
    bool has_invalid = false;

    void add(std::set<std::string> &uids, const Header &header, const DcmTagKey &tag)
    {
        const std::string uid = header_text(header, tag);
        if (header_is_uid(uid))
            uids.insert(uid);
        else if (!uid.empty())
            has_invalid = true;
    }
};

bool
object_is_any(const DcmTagKey &tag, std::initializer_list<DcmTagKey> tags)
{
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

void object_walk(Reading &reading, DcmItem &item, bool of_predecessor);

/* Reads the references of all items, according to their sequence. The study of an RT Structure Set is referenced as if it
 * were an instance. */
void
object_walk(Reading &reading, DcmItem &item, bool of_predecessor)
{
    for (DcmElement *each : header_children<DcmElement>(&item)) {
        if (each->ident() != EVR_SQ)
            continue;
        const DcmTagKey within = each->getTag();
        const bool earlier = of_predecessor || within == DCM_PredecessorDocumentsSequence;
        for (DcmItem *of : header_children<DcmItem>(each)) {
            const Header header(*of);
            if (object_is_any(within, {DCM_ReferencedInstanceSequence, DCM_ReferencedSOPSequence,
                                       DCM_SourceImageSequence, DCM_ContourImageSequence}))
                reading.add(earlier ? reading.predecessors : reading.instances, header, DCM_ReferencedSOPInstanceUID);
            else if (within == DCM_PredecessorStructureSetSequence)
                reading.add(reading.predecessors, header, DCM_ReferencedSOPInstanceUID);
            else if (!earlier && object_is_any(within, {DCM_ReferencedSeriesSequence, DCM_RTReferencedSeriesSequence}))
                reading.add(reading.series, header, DCM_SeriesInstanceUID);
            else if (within == DCM_ReferencedFrameOfReferenceSequence)
                reading.add(reading.frames, header, DCM_FrameOfReferenceUID);
            reading.add(reading.frames, header, DCM_ReferencedFrameOfReferenceUID);
            object_walk(reading, *of, earlier);
        }
    }
}

/* Adds the labels of segments, which distinguish objects of several organs in one series. */
std::string
object_label(const Header &dataset)
{
    std::string label = header_text(dataset, DCM_StructureSetLabel);
    if (label.empty())
        label = header_text(dataset, DCM_ContentLabel);
    const char *separator = ": ";
    for (DcmItem *item : header_children<DcmItem>(dataset.sequence(DCM_SegmentSequence))) {
        if (label.size() >= DICOM_LO_SIZE)
            break;
        label += separator + header_text(Header(*item), DCM_SegmentLabel);
        separator = ", ";
    }
    return label;
}

std::string
object_made(const Header &dataset)
{
    static const struct date_time_tags tags[] = {{DcmTagKey(), DCM_StructureSetDate, DCM_StructureSetTime},
                                                 {DcmTagKey(), DCM_ContentDate, DCM_ContentTime},
                                                 {DcmTagKey(), DCM_InstanceCreationDate, DCM_InstanceCreationTime}};
    for (const struct date_time_tags &each : tags) {
        std::string made = header_date_time(dataset, each);
        if (!made.empty())
            return made;
    }
    return {};
}

/* Reads the person and the names of the regions. */
void
object_read_names(struct object_peek &peek, const Header &dataset)
{
    Charset charset(header_character_sets(dataset));
    std::string person = header_text(dataset, DCM_ContentCreatorName);
    if (person.empty())
        person = header_text(dataset, DCM_OperatorsName);
    header_copy_name(peek.person, charset_name(charset, person));
    std::string regions;
    const bool is_seg = dataset.sequence(DCM_SegmentSequence) != nullptr;
    for (DcmItem *item :
         header_children<DcmItem>(dataset.sequence(is_seg ? DCM_SegmentSequence : DCM_StructureSetROISequence))) {
        const std::string name =
            charset_name(charset, header_text(Header(*item), is_seg ? DCM_SegmentLabel : DCM_ROIName));
        if (regions.size() + name.size() + 2 > sizeof peek.regions)
            break;
        if (name.find('\n') == std::string::npos)
            regions += name + "\n";
    }
    header_copy(peek.regions, regions);
}

int
object_read_identity(Reading &reading, const Header &dataset, const struct scan &scan)
{
    struct object_peek &peek = reading.peek;
    object_read_names(peek, dataset);
    if (header_is_own(dataset) && peek.person[0] == '\0')
        return reading.refuse(CODE_OWN_RESULT, "was written by Noctule and is not processed again. A corrected copy "
                                               "must name the person who corrected it.");
    std::string uid = header_text(dataset, DCM_SOPClassUID);
    if (uid.empty())
        uid = scan.media_class_uid;
    peek.kind = storage_class_object(uid.c_str());
    if (!peek.kind)
        return reading.refuse(CODE_SOP_CLASS_UNSUPPORTED, "is not an annotation object.");
    header_copy(peek.sop_class_uid, uid);
    if (!scan.syntax)
        return reading.refuse(CODE_TRANSFER_SYNTAX_UNSUPPORTED,
                              "is encoded in a transfer syntax that is not supported. Send it uncompressed.");
    const int rc = reading.read_identity(dataset, peek.sop_instance_uid, peek.study_uid, peek.series_uid);
    if (rc)
        return rc;
    header_copy(peek.transfer_syntax_uid, scan.transfer_syntax_uid);
    header_copy(peek.modality, header_text(dataset, DCM_Modality));
    header_copy(peek.description, header_text(dataset, DCM_SeriesDescription));
    header_copy(peek.label, object_label(dataset));
    header_copy(peek.made, object_made(dataset));
    return 0;
}

int
object_read_short(Reading &reading, const struct dicom_requestor *requestor)
{
    struct scan scan = {};
    struct scan_wanted wanted = scan_wanted_of(short_tags, std::size(short_tags), LIMIT_TEXT_BYTES);
    wanted.nested = true;
    wanted.requestor = requestor;
    const HeaderOwner<struct scan, scan_release> release(&scan);
    DcmDataset dataset;
    int rc = header_scan(&reading.stream, reading.path, wanted, &scan, dataset, reading.error);
    if (rc)
        return rc;
    const Header header(dataset);
    rc = object_read_identity(reading, header, scan);
    if (rc)
        return rc;
    /* Check that a segmentation's pixels are complete, without reading them. */
    const int64_t there = stream_remaining(&reading.stream);
    if (scan.pixel_tag != 0 && !scan.encapsulated && scan.pixel_length > there)
        return reading.refuse(CODE_FILE_TRUNCATED, "holds " + std::to_string(there) + " of " +
                                                       std::to_string(scan.pixel_length) +
                                                       " bytes of pixel data. Send it again.");
    reading.add(reading.frames, header, DCM_FrameOfReferenceUID);
    object_walk(reading, dataset, false);
    return 0;
}

int
object_read_long(Reading &reading, const struct dicom_requestor *requestor)
{
    struct scan scan = {};
    struct scan_wanted wanted = scan_wanted_of(long_tags, std::size(long_tags), LIMIT_TEXT_BYTES);
    wanted.nested = true;
    wanted.requestor = requestor;
    if (strcmp(reading.peek.kind, "rtstruct") == 0)
        wanted.separate = &object_contours;
    stream_rewind(&reading.stream);
    const HeaderOwner<struct scan, scan_release> release(&scan);
    DcmDataset dataset;
    int rc = header_scan(&reading.stream, reading.path, wanted, &scan, dataset, reading.error);
    if (rc)
        return rc;
    object_walk(reading, dataset, false);
    for (int32_t i = 0; i < scan.frame_count && !rc; i++) {
        DcmDataset item; /* the contours of a region, or a frame's own groups */
        if (header_parse_separate(scan, i, item))
            object_walk(reading, item, false);
        rc = scan_check_time(&scan, reading.path, reading.error);
    }
    return rc;
}

int
object_hand_over(Reading &reading)
{
    const auto &strongest = !reading.series.empty()      ? reading.series
                            : !reading.instances.empty() ? reading.instances
                                                         : reading.frames;
    const char *line = !reading.series.empty()      ? OBJECT_OF_SERIES
                       : !reading.instances.empty() ? OBJECT_OF_INSTANCE
                                                    : OBJECT_OF_FRAME;
    std::string all;
    if (strongest.empty() && reading.has_invalid)
        return reading.refuse(CODE_UID_INVALID, "refers to images by invalid UIDs.");
    if (strongest.empty())
        return reading.refuse(CODE_TAG_MISSING,
                              "refers to no series, image or frame of reference. Its images are unknown.");
    if (strongest.size() + reading.predecessors.size() > LIMIT_OBJECT_REFERENCES)
        return reading.refuse(CODE_SIZE_IMPLAUSIBLE, "refers to more than " + std::to_string(LIMIT_OBJECT_REFERENCES) +
                                                         " series, images or objects.");
    for (const std::string &uid : strongest)
        all += line + uid + "\n";
    for (const std::string &uid : reading.predecessors)
        all += OBJECT_OF_PREDECESSOR + uid + "\n";
    reading.peek.references = strdup(all.c_str());
    if (!reading.peek.references)
        throw std::bad_alloc();
    return 0;
}

} // namespace

int
object_peek_open(int fd, const char *path, const struct dicom_requestor *requestor, struct object_peek **peek,
                 struct error *error)
{
    *peek = nullptr;
    return header_guard(path, error, [&] {
        HeaderOwner<struct object_peek, object_peek_free> made(header_allocate<struct object_peek>(1));
        struct stream stream;
        int rc = header_open(fd, path, &stream, error);
        if (rc)
            return rc;
        const HeaderOwner<struct stream, stream_close> close(&stream);
        made->file_size = stream.file_size;
        Reading reading{{path, error}, stream, *made, {}, {}, {}, {}};
        rc = object_read_short(reading, requestor);
        if (!rc && reading.series.empty() && reading.instances.empty())
            rc = object_read_long(reading, requestor);
        if (!rc)
            rc = object_hand_over(reading);
        if (!rc)
            *peek = made.release();
        return rc;
    });
}

void
object_peek_free(struct object_peek *peek)
{
    if (peek)
        free(peek->references);
    free(peek);
}
