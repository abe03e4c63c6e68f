/*
 * convert.cc - see convert.h.
 *
 * DCMTK parses the elements before the descriptions of frames, and writes them. Descriptions are copied as bytes, and
 * pixels frame by frame, because DCMTK would hold all of them.
 */
#include "dicom/objects/convert/convert.h"

#include "dicom/objects/seg/seg.h"
#include "dicom/value/tags.h"
#include "dicom/value/uid.h"
#include "dicom/write/byte_sink.h"
#include "dicom/write/element_writer.h"
#include "dicom/write/file_meta.h"
#include "dicom/write/read_back.hh"
#include "dicom/write/written_file.hh"

#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dcwcache.h>

#include <cstring>
#include <endian.h>

using namespace read_back;

namespace
{

/* A result that is no damage of the file. */
struct Refusal {
    int rc;
    enum code code;
    std::string message;
};

/* The new file. */
class Output
{
  public:
    explicit Output(int fd)
    {
        if (byte_sink_open(&sink_, fd, false))
            throw std::bad_alloc();
    }

    ~Output()
    {
        byte_sink_close(&sink_);
        element_buffer_free(&elements);
    }

    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;

    void append(const void *bytes, size_t size)
    {
        byte_sink_append(&sink_, bytes, size);
    }

    void put_file_meta(const struct converted &made)
    {
        const struct file_meta meta = {made.sop_class_uid, made.sop_instance_uid, DICOM_EXPLICIT_LITTLE, nullptr};
        file_meta_append(&elements, &meta);
        drain();
    }

    /* Appends the elements encoded so far. */
    void drain()
    {
        if (elements.error)
            throw std::bad_alloc();
        append(elements.bytes, elements.size);
        elements.size = 0;
    }

    /* Returns the size of the file. */
    int64_t finish()
    {
        if (const int rc = byte_sink_finish(&sink_))
            throw Refusal{rc, CODE_WRITE_FAILED,
                          "Writing the converted object failed after " + std::to_string(sink_.total) +
                              " bytes: " + strerror(-rc) + "."};
        return sink_.total;
    }

    struct element_buffer elements = {};

  private:
    struct byte_sink sink_ = {};
};

/* Runs the body. Turns its exceptions into an error. */
template <typename Body>
int
convert(const char *path, struct error *error, Body body)
{
    const char *name = text_base_name(path);
    return header_guard(path, error, [&] {
        try {
            body();
            return 0;
        } catch (const Refusal &refusal) {
            return error_set_files(error, refusal.rc, refusal.code, path, nullptr, "%s", refusal.message.c_str());
        } catch (const Mismatch &mismatch) {
            return error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, nullptr,
                                   "%s is not as Noctule writes it: %.380s.", name, mismatch.message);
        }
    });
}

/* Parses the elements before the descriptions of frames. */
DcmDataset &
load_header(DcmFileFormat &file, const char *path)
{
    const OFCondition status = header_try([&] {
        return file.loadFileUntilTag(path, EXS_Unknown, EGL_noChange, DCM_MaxReadLength, ERM_autoDetect,
                                     DCM_PerFrameFunctionalGroupsSequence);
    });
    if (status.bad())
        differ("it cannot be read: %s", status.text());
    return *file.getDataset();
}

void
copy_text(DcmItem &dataset, const Attribute &attribute, char (&uid)[DICOM_UID_SIZE])
{
    header_copy(uid, text_of(dataset, attribute));
}

int32_t
number_of(DcmItem &dataset, const Attribute &attribute)
{
    Sint32 number = 0;
    Uint16 small = 0;
    if (dataset.findAndGetUint16(attribute.tag, small).good())
        number = small;
    else if (dataset.findAndGetSint32(attribute.tag, number).bad())
        differ("%s is missing", attribute.name);
    return number;
}

PixelLayout
layout_of(DcmItem &dataset, const char *path, const std::string &syntax)
{
    const PixelLayout layout = {
        path,
        syntax.c_str(),
        number_of(dataset, ATTRIBUTE(Rows)),
        number_of(dataset, ATTRIBUTE(Columns)),
        number_of(dataset, ATTRIBUTE(BitsAllocated)) * number_of(dataset, ATTRIBUTE(SamplesPerPixel)),
        dataset.tagExists(DCM_NumberOfFrames) ? static_cast<size_t>(number_of(dataset, ATTRIBUTE(NumberOfFrames))) : 1};
    if (layout.rows < 1 || layout.columns < 1 || layout.frames < 1 || layout.frames > INT32_MAX ||
        (layout.bits != 1 && layout.bits != 8 && layout.bits != 16 && layout.bits != 24))
        differ("its frames have an impossible size");
    return layout;
}

void
check_syntax(const std::string &syntax)
{
    if (syntax != DICOM_EXPLICIT_LITTLE && syntax != DICOM_DEFLATED_LITTLE && syntax != DICOM_RLE_LOSSLESS)
        throw Refusal{-EBADMSG, CODE_TRANSFER_SYNTAX_UNSUPPORTED,
                      "Only objects that Noctule compressed can be converted, in RLE Lossless or deflated, not in " +
                          std::string(dicom_uid_name(syntax.c_str())) + "."};
}

/* --- another transfer syntax --- */

/* Replaces fragments by the frames that they encode. */
void
put_native_frames(Output &out, const PixelLayout &layout)
{
    const size_t frame = static_cast<size_t>(layout.frame_bits() / 8);
    const uint64_t length = (uint64_t{frame} * layout.frames + 1) / 2 * 2;
    if (length >= UINT32_MAX)
        throw Refusal{-EOVERFLOW, CODE_SEG_TOO_LARGE,
                      "The frames exceed 4 GiB without compression, the maximum of one object."};
    element_header(&out.elements, TAG_PixelData, layout.bits == 16 ? "OW" : "OB", static_cast<uint32_t>(length));
    out.drain();
    const std::unique_ptr<PixelReader> pixels = PixelReader::open(layout);
    for (size_t f = 0; f < layout.frames; f++) {
        unsigned first_bit = 0;
        out.append(pixels->read(f, first_bit), frame);
    }
    out.append("", static_cast<size_t>(length - uint64_t{frame} * layout.frames));
}

void
write_uncompressed(const char *path, int fd, struct converted &made)
{
    DcmFileFormat header;
    DcmDataset &dataset = load_header(header, path);
    WrittenFile in(path);
    check_syntax(in.transfer_syntax());
    copy_text(dataset, ATTRIBUTE(SOPClassUID), made.sop_class_uid);
    copy_text(dataset, ATTRIBUTE(SOPInstanceUID), made.sop_instance_uid);
    copy_text(dataset, ATTRIBUTE(SeriesInstanceUID), made.series_uid);
    if (dataset.tagExists(DCM_NumberOfFrames))
        made.frames = number_of(dataset, ATTRIBUTE(NumberOfFrames));
    Output out(fd);
    out.put_file_meta(made);
    WrittenFile::Element element = {};
    while (in.next(element)) {
        if (element.tag == TAG_PixelData && in.transfer_syntax() == DICOM_RLE_LOSSLESS) {
            put_native_frames(out, layout_of(dataset, path, in.transfer_syntax()));
            break;
        }
        if (element.length == UINT32_MAX)
            differ("an element has no length");
        out.append(element.header, element.header_size);
        in.show(element.length, [&](const void *bytes, size_t size) { out.append(bytes, size); });
    }
    if (made.frames > 0 && element.tag != TAG_PixelData)
        differ("PixelData is missing");
    made.bytes = out.finish();
}

/* --- BINARY from LABELMAP --- */

class BinaryConverter
{
  public:
    explicit BinaryConverter(const char *path) : path_(path), dataset_(load_header(file_, path))
    {
    }

    void run(int fd, struct converted &made)
    {
        if (text_of(dataset_, ATTRIBUTE(SOPClassUID)) != SEG_LABELMAP_SOP_CLASS_UID)
            throw Refusal{-EINVAL, CODE_SOP_CLASS_UNSUPPORTED,
                          std::string(text_base_name(path_)) + " is not a Label Map Segmentation."};
        read_descriptions();
        check_syntax(syntax_);
        layout_ = layout_of(dataset_, path_, syntax_);
        if ((layout_.bits != 8 && layout_.bits != 16) || layout_.frames != descriptions_.size())
            differ("NumberOfFrames or BitsAllocated is wrong");
        change_segments();
        find_labels();
        change_header(made);
        Output out(fd);
        out.put_file_meta(made);
        put_header(out);
        put_descriptions(out);
        put_pixels(out);
        made.frames = static_cast<int64_t>(frames_);
        made.bytes = out.finish();
    }

  private:
    /* Reads the items of the Per-frame Functional Groups Sequence. */
    void read_descriptions()
    {
        WrittenFile in(path_);
        syntax_ = in.transfer_syntax();
        uint64_t left = in.find(TAG_PerFrameFunctionalGroupsSequence, "PerFrameFunctionalGroupsSequence");
        while (left > 0) {
            uint8_t head[8];
            in.read(head, sizeof head);
            const uint64_t length = value_u32(head + 4, false);
            if (memcmp(head, "\xFE\xFF\x00\xE0", 4) != 0 || length + sizeof head > left)
                differ("PerFrameFunctionalGroupsSequence is damaged");
            std::vector<uint8_t> item(length);
            in.read(item.data(), item.size());
            descriptions_.push_back(std::move(item));
            left -= length + sizeof head;
        }
    }

    /* Removes the background. The other segments must have the numbers 1, 2, ... */
    void change_segments()
    {
        DcmSequenceOfItems *segments = nullptr;
        if (dataset_.findAndGetSequence(DCM_SegmentSequence, segments).bad() || segments->card() < 2)
            differ("SegmentSequence has no segments");
        if (number_of(*segments->getItem(0), ATTRIBUTE(SegmentNumber)) != 0)
            differ("its first segment is not the background");
        delete segments->remove(0UL);
        for (unsigned long i = 0; i < segments->card(); i++)
            expect_number(*segments->getItem(i), ATTRIBUTE(SegmentNumber), static_cast<int64_t>(i) + 1);
        segment_count_ = segments->card();
    }

    uint32_t label_at(const uint8_t *labels, size_t voxel) const
    {
        return layout_.bits == 8 ? labels[voxel] : value_u16(labels + 2 * voxel, false);
    }

    size_t voxels() const
    {
        return static_cast<size_t>(layout_.rows) * static_cast<size_t>(layout_.columns);
    }

    /* Finds the segments of each frame. */
    void find_labels()
    {
        const std::unique_ptr<PixelReader> pixels = PixelReader::open(layout_);
        std::vector<uint8_t> seen(UINT16_MAX + 1);
        present_.assign(segment_count_ * layout_.frames, false);
        segment_index_.assign(segment_count_, 0);
        plane_index_.assign(layout_.frames, 0);
        for (size_t f = 0; f < layout_.frames; f++) {
            unsigned first_bit = 0;
            const uint8_t *labels = pixels->read(f, first_bit);
            std::fill(seen.begin(), seen.end(), uint8_t{0});
            for (size_t i = 0; i < voxels(); i++)
                seen[label_at(labels, i)] = 1;
            if (std::find(seen.begin() + static_cast<std::ptrdiff_t>(segment_count_) + 1, seen.end(), 1) != seen.end())
                differ("frame %zu has a label without a segment", f + 1);
            for (size_t s = 0; s < segment_count_; s++) {
                if (!seen[s + 1])
                    continue;
                present_[s * layout_.frames + f] = true;
                segment_index_[s] = plane_index_[f] = 1;
                frames_++;
            }
        }
        number_marked(segment_index_);
        number_marked(plane_index_);
        if (frames_ == 0)
            throw Refusal{-ENODATA, CODE_SEG_EMPTY, std::string(text_base_name(path_)) + " has no voxel of a segment."};
        if (frames_ > INT32_MAX || pixel_length() >= UINT32_MAX)
            throw Refusal{-EOVERFLOW, CODE_SEG_TOO_LARGE,
                          "The frames exceed 4 GiB as BINARY segmentation, the maximum of one object."};
    }

    /* Replaces marks by ordinals. */
    static void number_marked(std::vector<uint32_t> &index)
    {
        uint32_t next = 0;
        for (uint32_t &each : index)
            each = each ? ++next : 0;
    }

    uint64_t pixel_length() const
    {
        return (uint64_t{voxels()} * frames_ + 15) / 16 * 2;
    }

    /* --- the header --- */

    static std::string binary_uid(const std::string &uid)
    {
        char made[DICOM_UID_SIZE];
        if (convert_binary_uid(uid.c_str(), made))
            throw std::bad_alloc();
        return made;
    }

    static void change_uid(DcmItem &item, const Attribute &attribute)
    {
        put_text(item, attribute.tag, binary_uid(text_of(item, attribute)));
    }

    static void put_text(DcmItem &item, const DcmTagKey &tag, const std::string &text)
    {
        if (item.putAndInsertString(DcmTag(tag), text.c_str()).bad())
            throw std::bad_alloc();
    }

    static void put_number(DcmItem &item, const DcmTagKey &tag, Uint16 number)
    {
        if (item.putAndInsertUint16(DcmTag(tag), number).bad())
            throw std::bad_alloc();
    }

    static std::vector<DcmItem *> items_if_any(DcmItem &item, const DcmTagKey &tag)
    {
        DcmSequenceOfItems *sequence = nullptr;
        if (item.findAndGetSequence(tag, sequence).bad())
            return {};
        return header_children<DcmItem>(sequence);
    }

    /* Changes references to a replaced LABELMAP. Returns whether there are any. */
    static bool change_references(DcmItem &item, const DcmTagKey &tag)
    {
        bool any = false;
        for (DcmItem *reference : items_if_any(item, tag)) {
            if (text_of(*reference, ATTRIBUTE(ReferencedSOPClassUID)) != SEG_LABELMAP_SOP_CLASS_UID)
                continue;
            put_text(*reference, DCM_ReferencedSOPClassUID, SEG_SOP_CLASS_UID);
            change_uid(*reference, ATTRIBUTE(ReferencedSOPInstanceUID));
            any = true;
        }
        return any;
    }

    static void change_referenced_series(DcmItem &item)
    {
        for (DcmItem *series : items_if_any(item, DCM_ReferencedSeriesSequence))
            if (change_references(*series, DCM_ReferencedInstanceSequence))
                change_uid(*series, ATTRIBUTE(SeriesInstanceUID));
    }

    void add_segment_dimension(const std::string &organization)
    {
        DcmSequenceOfItems *dimensions = nullptr;
        if (dataset_.findAndGetSequence(DCM_DimensionIndexSequence, dimensions).bad() || dimensions->card() != 1)
            differ("DimensionIndexSequence has not one item");
        put_text(*dimensions->getItem(0), DCM_DimensionOrganizationUID, organization);
        auto item = std::make_unique<DcmItem>();
        put_text(*item, DCM_DimensionOrganizationUID, organization);
        if (item->putAndInsertTagKey(DCM_DimensionIndexPointer, DCM_ReferencedSegmentNumber).bad() ||
            item->putAndInsertTagKey(DCM_FunctionalGroupPointer, DCM_SegmentIdentificationSequence).bad())
            throw std::bad_alloc();
        put_text(*item, DCM_DimensionDescriptionLabel, "ReferencedSegmentNumber");
        if (dimensions->prepend(item.get()).bad())
            throw std::bad_alloc();
        item.release();
    }

    void change_header(struct converted &made)
    {
        put_text(dataset_, DCM_SOPClassUID, SEG_SOP_CLASS_UID);
        change_uid(dataset_, ATTRIBUTE(SOPInstanceUID));
        change_uid(dataset_, ATTRIBUTE(SeriesInstanceUID));
        copy_text(dataset_, ATTRIBUTE(SOPClassUID), made.sop_class_uid);
        copy_text(dataset_, ATTRIBUTE(SOPInstanceUID), made.sop_instance_uid);
        copy_text(dataset_, ATTRIBUTE(SeriesInstanceUID), made.series_uid);
        change_references(dataset_, DCM_ReferencedImageSequence);
        change_referenced_series(dataset_);
        for (DcmItem *study : items_if_any(dataset_, DCM_StudiesContainingOtherReferencedInstancesSequence))
            change_referenced_series(*study);
        DcmItem &organization = item_of(dataset_, ATTRIBUTE(DimensionOrganizationSequence));
        change_uid(organization, ATTRIBUTE(DimensionOrganizationUID));
        add_segment_dimension(text_of(organization, ATTRIBUTE(DimensionOrganizationUID)));
        put_text(dataset_, DCM_NumberOfFrames, std::to_string(frames_));
        put_number(dataset_, DCM_BitsAllocated, 1);
        put_number(dataset_, DCM_BitsStored, 1);
        put_number(dataset_, DCM_HighBit, 0);
        delete dataset_.remove(DCM_PixelPaddingValue);
        put_text(dataset_, DCM_SegmentationType, "BINARY");
    }

    void put_header(Output &out)
    {
        std::vector<uint8_t> buffer(65536);
        DcmOutputBufferStream stream(buffer.data(), static_cast<offile_off_t>(buffer.size()));
        DcmWriteCache cache;
        OFCondition condition = EC_StreamNotifyClient;
        dataset_.transferInit();
        while (condition == EC_StreamNotifyClient) {
            condition = header_try([&] {
                return dataset_.write(stream, EXS_LittleEndianExplicit, EET_ExplicitLength, &cache, EGL_withoutGL);
            });
            void *bytes = nullptr;
            offile_off_t size = 0;
            stream.flushBuffer(bytes, size);
            out.append(bytes, static_cast<size_t>(size));
        }
        dataset_.transferEnd();
        if (condition.bad())
            differ("its header cannot be written: %s", condition.text());
    }

    /* --- frames: segment by segment, each in the order of the LABELMAP --- */

    /* Adds the description of a frame: that of the LABELMAP with indices of both dimensions, and the segment. */
    void add_description(struct element_buffer &to, size_t segment, size_t frame) const
    {
        const std::vector<uint8_t> &from = descriptions_[frame];
        const uint32_t indices[] = {segment_index_[segment], plane_index_[frame]};
        const auto number = static_cast<uint16_t>(segment + 1);
        const size_t groups = element_open_item(&to);
        for (size_t at = 0; at < from.size();) {
            if (at + 12 > from.size() || memcmp(&from[at + 4], "SQ", 2) != 0)
                differ("frame %zu has a damaged description", frame + 1);
            const uint32_t tag =
                static_cast<uint32_t>(value_u16(&from[at], false)) << 16 | value_u16(&from[at + 2], false);
            const size_t size = 12 + size_t{value_u32(&from[at + 8], false)};
            if (size > from.size() - at)
                differ("frame %zu has a damaged description", frame + 1);
            if (tag == TAG_FrameContentSequence) {
                const size_t content = element_open_only_item(&to, tag);
                element_ul(&to, TAG_DimensionIndexValues, indices, 2);
                element_close_only_item(&to, content);
            } else {
                element_append(&to, &from[at], size);
            }
            at += size;
        }
        const size_t identification = element_open_only_item(&to, TAG_SegmentIdentificationSequence);
        element_us(&to, TAG_ReferencedSegmentNumber, &number, 1);
        element_close_only_item(&to, identification);
        element_close(&to, groups);
    }

    template <typename Visit> void each_frame(Visit visit) const
    {
        for (size_t s = 0; s < segment_count_; s++)
            for (size_t f = 0; f < layout_.frames; f++)
                if (present_[s * layout_.frames + f])
                    visit(s, f);
    }

    void put_descriptions(Output &out)
    {
        /* The size of a description does not depend on the segment. */
        std::vector<size_t> sizes(layout_.frames);
        for (size_t f = 0; f < layout_.frames; f++) {
            add_description(out.elements, 0, f);
            sizes[f] = out.elements.size;
            out.elements.size = 0;
        }
        uint64_t length = 0;
        each_frame([&](size_t, size_t f) { length += sizes[f]; });
        if (length >= UINT32_MAX)
            throw Refusal{-EOVERFLOW, CODE_SEG_TOO_LARGE,
                          "The descriptions of frames exceed 4 GiB, the maximum of one sequence."};
        element_header(&out.elements, TAG_PerFrameFunctionalGroupsSequence, "SQ", static_cast<uint32_t>(length));
        out.drain();
        each_frame([&](size_t s, size_t f) {
            add_description(out.elements, s, f);
            out.drain();
        });
    }

    void put_pixels(Output &out)
    {
        std::unique_ptr<PixelReader> pixels;
        std::vector<uint8_t> bits(voxels() / 8 + 2);
        unsigned used = 0; /* bits of bits[0] */
        element_header(&out.elements, TAG_PixelData, "OB", static_cast<uint32_t>(pixel_length()));
        out.drain();
        for (size_t s = 0; s < segment_count_; s++) {
            if (segment_index_[s] == 0)
                continue;
            if (!pixels || PixelReader::in_order(layout_))
                pixels = PixelReader::open(layout_);
            for (size_t f = 0; f < layout_.frames; f++) {
                const bool wanted = present_[s * layout_.frames + f];
                unsigned first_bit = 0;
                if (!wanted && !PixelReader::in_order(layout_))
                    continue;
                const uint8_t *labels = pixels->read(f, first_bit);
                if (wanted)
                    put_bits(out, labels, static_cast<uint32_t>(s + 1), bits, used);
            }
        }
        const size_t rest = used > 0 ? 1 : 0;
        out.append(bits.data(), rest);
        out.append("", static_cast<size_t>(pixel_length() - (uint64_t{voxels()} * frames_ / 8 + rest)));
    }

    /* Appends the whole bytes of a frame's bits. The first and the last byte may be shared with other frames. */
    void put_bits(Output &out, const uint8_t *labels, uint32_t label, std::vector<uint8_t> &bits, unsigned &used) const
    {
        std::fill(bits.begin() + 1, bits.end(), uint8_t{0});
        for (size_t i = 0; i < voxels(); i++)
            bits[(used + i) / 8] =
                static_cast<uint8_t>(bits[(used + i) / 8] | (label_at(labels, i) == label) << (used + i) % 8);
        const size_t whole = (used + voxels()) / 8;
        out.append(bits.data(), whole);
        bits[0] = bits[whole];
        used = static_cast<unsigned>((used + voxels()) % 8);
    }

    const char *path_;
    DcmFileFormat file_;
    DcmDataset &dataset_;
    std::string syntax_;
    PixelLayout layout_ = {};
    size_t segment_count_ = 0, frames_ = 0;
    std::vector<std::vector<uint8_t>> descriptions_; /* content of items, per frame of the LABELMAP */
    std::vector<bool> present_;                      /* [segment * frames of the LABELMAP + frame] */
    std::vector<uint32_t> segment_index_, plane_index_;
};

} // namespace

extern "C" int
convert_binary_uid(const char *labelmap_uid, char uid[DICOM_UID_SIZE])
{
    const char *const texts[] = {"BINARY of LABELMAP", labelmap_uid, nullptr};
    return uid_from_texts(uid, texts);
}

extern "C" int
convert_to_binary(const char *path, int fd, struct converted *made, struct error *error)
{
    *made = {};
    return convert(path, error, [&] { BinaryConverter(path).run(fd, *made); });
}

extern "C" int
convert_to_uncompressed(const char *path, int fd, struct converted *made, struct error *error)
{
    *made = {};
    return convert(path, error, [&] { write_uncompressed(path, fd, *made); });
}
