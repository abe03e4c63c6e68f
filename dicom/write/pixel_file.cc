#include "dicom/write/pixel_file.hh"

#include "dicom/read/scan/stream.h"
#include "dicom/write/read_back.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace read_back
{

/* tag, VR, two reserved bytes, length */
constexpr size_t header_size = 12;

namespace
{

/* Returns the length of the value, which must be that of the frames. */
uint64_t
length_of(DcmItem &dataset, uint64_t frame_bits, size_t frames)
{
    DcmElement *pixels = nullptr;
    if (dataset.findAndGetElement(DCM_PixelData, pixels).bad() || !pixels)
        differ("PixelData is missing");
    const uint64_t length = (frame_bits * frames + 15) / 16 * 2;
    if (pixels->getLength() != length)
        differ("PixelData has %u bytes instead of %llu", static_cast<unsigned>(pixels->getLength()),
               static_cast<unsigned long long>(length));
    return length;
}

} // namespace

PixelFile::PixelFile(const char *path, DcmItem &dataset, uint64_t frame_bits, size_t frames)
    : frame_bits_(frame_bits), frames_(frames),
      length_(length_of(dataset, frame_bits, frames)), file_{open(path, O_RDONLY | O_CLOEXEC)}
{
    if (file_.fd < 0)
        differ("PixelData cannot be read: %s", strerror(errno));
    const off_t size = lseek(file_.fd, 0, SEEK_END);
    if (size < static_cast<off_t>(length_ + header_size))
        differ("the file ends within PixelData");
    start_ = static_cast<uint64_t>(size) - length_;
    const uint8_t tag[4] = {0xe0, 0x7f, 0x10, 0x00};
    uint8_t header[header_size];
    fetch(header, start_ - header_size, header_size);
    uint64_t length = 0;
    for (size_t i = 0; i < 4; i++)
        length |= uint64_t{header[8 + i]} << (8 * i);
    if (memcmp(header, tag, sizeof(tag)) != 0 || length != length_)
        differ("PixelData is not at the end of the file");
}

PixelFile::Descriptor::~Descriptor()
{
    if (fd >= 0)
        close(fd);
}

const uint8_t *
PixelFile::read(size_t frame, std::vector<uint8_t> &buffer, unsigned &first_bit) const
{
    const uint64_t block = 4096; /* alignment at which the kernel copies fast */
    const uint64_t begin = frame * frame_bits_;
    const uint64_t first = start_ + begin / 8;
    const uint64_t end = start_ + (begin + frame_bits_ + 7) / 8;
    const size_t ahead = static_cast<size_t>(first % block);
    const size_t size = ahead + static_cast<size_t>(end - first);
    buffer.resize(std::max(buffer.size(), size + 8));
    fetch(buffer.data(), first - ahead, size);
    first_bit = static_cast<unsigned>(begin % 8);
    return buffer.data() + ahead;
}

void
PixelFile::check_padding() const
{
    const uint64_t end = frames_ * frame_bits_;
    uint8_t rest[2] = {0, 0};
    fetch(rest, start_ + end / 8, static_cast<size_t>(length_ - end / 8));
    if (rest[0] >> end % 8 != 0 || rest[1] != 0)
        differ("the padding after the last frame is not zero");
}

void
PixelFile::fetch(uint8_t *place, uint64_t offset, size_t size) const
{
    const int rc = stream_read_at(file_.fd, place, size, static_cast<int64_t>(offset));
    if (rc)
        differ("PixelData cannot be read: %s", rc == -ENODATA ? "the file has become shorter" : strerror(-rc));
}

void
in_parts(size_t count, size_t least, int threads, const std::function<void(size_t, size_t)> &work)
{
    const size_t parts = std::max<size_t>(1, std::min(count / least, static_cast<size_t>(std::max(threads, 1))));
    std::vector<std::exception_ptr> thrown(parts);
    std::vector<std::thread> helpers;
    const auto do_part = [&](size_t part) {
        try {
            work(count * part / parts, count * (part + 1) / parts);
        } catch (...) {
            thrown[part] = std::current_exception();
        }
    };
    helpers.reserve(parts);
    for (size_t part = 1; part < parts; part++) {
        try {
            helpers.emplace_back(do_part, part);
        } catch (const std::exception &) { /* no more threads, or no memory for one: wait for the running ones */
            do_part(part);
        }
    }
    do_part(0);
    for (std::thread &helper : helpers)
        helper.join();
    for (const std::exception_ptr &each : thrown) {
        if (each)
            std::rethrow_exception(each);
    }
}

} // namespace read_back
