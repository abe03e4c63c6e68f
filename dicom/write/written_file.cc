#include "dicom/write/written_file.hh"

#include "dicom/value/value.h"
#include "dicom/write/read_back.hh"

#include <cstring>

namespace read_back
{

namespace
{

constexpr size_t preamble_size = 132; /* with the prefix */
constexpr uint32_t meta_max = 65536;

uint32_t
tag_at(const uint8_t *bytes)
{
    return static_cast<uint32_t>(value_u16(bytes, false)) << 16 | value_u16(bytes + 2, false);
}

/* Returns whether the VR has a length of 32 bits (PS3.5 7.1.2). */
bool
has_long_length(const uint8_t *vr)
{
    static const char *const vrs[] = {"OB", "OD", "OF", "OL", "OV", "OW", "SQ", "SV", "UC", "UN", "UR", "UT", "UV"};
    return std::any_of(std::begin(vrs), std::end(vrs), [vr](const char *each) { return memcmp(vr, each, 2) == 0; });
}

} // namespace

void
WrittenFile::check(int rc)
{
    if (rc == -ENOMEM)
        throw std::bad_alloc();
    if (rc)
        differ("it cannot be read: %s", rc == -ENODATA ? "the file ends early" : strerror(-rc));
}

WrittenFile::WrittenFile(const char *path)
{
    check(stream_open(&stream_, path));
    close_.reset(&stream_);
    stream_.is_own = true;
    uint8_t head[preamble_size];
    read(head, sizeof head);
    Element element;
    if (memcmp(head + 128, "DICM", 4) != 0 || !next(element) || element.tag != 0x00020000 || element.length != 4)
        differ("it has no file meta information");
    uint8_t length[4];
    read(length, sizeof length);
    const int64_t end = stream_.position + value_u32(length, false);
    if (value_u32(length, false) > meta_max)
        differ("its file meta information is too long");
    while (stream_.position < end && next(element)) {
        if (element.length > meta_max)
            differ("its file meta information is too long");
        std::vector<char> value(element.length);
        read(value.data(), value.size());
        if (element.tag == 0x00020010)
            transfer_syntax_.assign(value.data(), strnlen(value.data(), value.size()));
    }
    if (transfer_syntax_ == DICOM_DEFLATED_LITTLE)
        check(stream_inflate(&stream_));
}

bool
WrittenFile::next(Element &element)
{
    if (at_end())
        return false;
    read(element.header, 8);
    element.tag = tag_at(element.header);
    element.header_size = has_long_length(element.header + 4) ? 12 : 8;
    if (element.header_size == 12)
        read(element.header + 8, 4);
    element.length =
        element.header_size == 12 ? value_u32(element.header + 8, false) : value_u16(element.header + 6, false);
    return true;
}

uint32_t
WrittenFile::find(uint32_t tag, const char *name)
{
    Element element = {};
    while (next(element) && element.tag < tag)
        skip(element.length);
    if (element.tag != tag)
        differ("%s is missing", name);
    return element.length;
}

void
WrittenFile::read(void *destination, uint64_t size)
{
    check(stream_read(&stream_, destination, static_cast<int64_t>(size)));
}

void
WrittenFile::skip(uint64_t size)
{
    check(stream_skip(&stream_, static_cast<int64_t>(size)));
}

void
WrittenFile::show(uint64_t size, const std::function<void(const void *bytes, size_t size)> &visit)
{
    uint8_t part[STREAM_WINDOW];
    while (size > 0) {
        const auto count = static_cast<size_t>(std::min<uint64_t>(size, sizeof part));
        read(part, count);
        visit(part, count);
        size -= count;
    }
}

bool
WrittenFile::at_end()
{
    int rc = 0;
    if (stream_peek(&stream_, 1, &rc))
        return false;
    if (rc != -ENODATA)
        check(rc);
    return true;
}

} // namespace read_back
