/*
 * inherit.cc - copies the attributes that a result inherits from its source, ready to write.
 *
 * DCMTK re-encodes them, from implicit VR or big endian if necessary. Values are unchanged, in the
 * source's character set, which is inherited too. Invalid values are left out (inherit_repair.cc).
 */
#include "dicom/read/inherit.hh"

#include <dcmtk/dcmdata/dcostrmb.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace
{

/* Ascending. Specific Character Set, and the modules Patient (PS3.3 C.7.1.1), General Study
 * (C.7.2.1) and Frame of Reference (C.7.4.1), except their UIDs, which the writers write. */
constexpr uint32_t inherited_tags[] = {
    0x00080005, /* Specific Character Set */
    0x00080020, 0x00080030, 0x00080050, 0x00080051, 0x00080090, 0x00080096, 0x0008009C, 0x0008009D,
    0x00080201, /* Timezone Offset From UTC: the dates above depend on it */
    0x00081030, 0x00081032, 0x00081048, 0x00081049, 0x00081060, 0x00081062, 0x00081110, 0x00081120,
    0x00100010, 0x00100020, 0x00100021, 0x00100022, 0x00100024, 0x00100026, 0x00100027, 0x00100028,
    0x00100030, 0x00100032, 0x00100033, 0x00100034, 0x00100035, 0x00100040, 0x00100200, 0x00100212,
    0x00100213, 0x00100214, 0x00100215, 0x00100216, 0x00100217, 0x00100218, 0x00100219, 0x00100221,
    0x00100222, 0x00100223, 0x00100229, 0x00101001, 0x00101002, 0x00102160, 0x00102201, 0x00102202,
    0x00102203, 0x00102292, 0x00102293, 0x00102294, 0x00102295, 0x00102296, 0x00102297, 0x00102298,
    0x00102299, 0x00104000, 0x00120062, 0x00120063, 0x00120064, 0x00200010, 0x00201040, 0x00321033,
    0x00321034, 0x00401012,
};

} // namespace

/* Encodes as Explicit VR Little Endian. */
bool
InheritedElements::add(DcmElement &element)
{
    const uint32_t tag = header_tag_number(element.getTag());
    const size_t start = bytes_.size();
    const size_t room = element.calcElementLength(EXS_LittleEndianExplicit, EET_ExplicitLength);
    bytes_.resize(start + room);
    DcmOutputBufferStream stream(bytes_.data() + start, static_cast<offile_off_t>(room));
    element.transferInit();
    const OFCondition condition =
        header_try([&] { return element.write(stream, EXS_LittleEndianExplicit, EET_ExplicitLength, nullptr); });
    element.transferEnd();
    void *buffer;
    offile_off_t written = 0;
    stream.flushBuffer(buffer, written);
    bytes_.resize(start + static_cast<size_t>(written));
    elements_.push_back({tag, nullptr, static_cast<size_t>(written)});
    return condition.good();
}

/* Allocates each array once, with malloc. */
struct dicom_inherited
InheritedElements::hand_over() const
{
    auto *storage = static_cast<uint8_t *>(malloc(bytes_.size() + 1));
    auto *array = static_cast<struct dicom_element *>(calloc(elements_.size() + 1, sizeof(struct dicom_element)));
    if (!storage || !array) {
        free(storage);
        free(array);
        throw std::bad_alloc();
    }
    std::copy(bytes_.begin(), bytes_.end(), storage);
    size_t start = 0;
    for (size_t i = 0; i < elements_.size(); i++) {
        array[i] = elements_[i];
        array[i].bytes = storage + start;
        start += elements_[i].size;
    }
    return {elements_.size(), array, storage, ""};
}

int
dicom_inherit(const char *path, struct dicom_inherited *inherited, struct error *error)
{
    *inherited = {0, nullptr, nullptr, ""};
    return header_guard(path, error, [&] {
        struct stream stream;
        int rc = stream_open(&stream, path);
        if (rc)
            return error_set_files(error, rc, CODE_FILE_UNREADABLE, path, nullptr, "%s cannot be opened: %s.",
                                   text_base_name(path), strerror(-rc));
        const HeaderOwner<struct stream, stream_close> close(&stream);
        struct scan scan = {};
        const struct scan_wanted wanted =
            scan_wanted_of(inherited_tags, std::size(inherited_tags), LIMIT_INHERITED_BYTES);
        const HeaderOwner<struct scan, scan_release> release(&scan);
        DcmDataset dataset;
        rc = header_scan(&stream, path, wanted, &scan, dataset, error);
        if (rc)
            return rc;
        const std::string left_out = inherit_repair(dataset);
        InheritedElements elements;
        for (const uint32_t tag : inherited_tags) {
            const DcmTagKey key(static_cast<Uint16>(tag >> 16), static_cast<Uint16>(tag & 0xFFFF));
            DcmElement *element = nullptr;
            if (dataset.findAndGetElement(key, element).bad() || !element)
                continue;
            if (!elements.add(*element)) {
                rc = error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, nullptr,
                                     "%s has a %s that cannot be copied.", text_base_name(path),
                                     header_tag_name(key).c_str());
                break;
            }
        }
        if (!rc)
            *inherited = elements.hand_over();
        header_copy_name(inherited->left_out, left_out);
        return rc;
    });
}

void
dicom_inherited_free(struct dicom_inherited *inherited)
{
    free(inherited->elements);
    free(inherited->storage);
    *inherited = {0, nullptr, nullptr, ""};
}
