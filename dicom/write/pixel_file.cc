#include "dicom/write/pixel_file.hh"

#include "dicom/read/header.hh"
#include "dicom/read/pixels/rle.h"
#include "dicom/write/read_back.hh"
#include "dicom/write/written_file.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <endian.h>
#include <exception>
#include <system_error>
#include <thread>

namespace read_back
{

namespace
{

constexpr size_t ahead_max = 8; /* bytes that callers may read after a frame */

/* Returns the length of the value of native pixel data. */
uint64_t
native_length(const PixelLayout &layout)
{
    return (layout.frame_bits() * layout.frames + 15) / 16 * 2;
}

void
check_length(uint64_t length, const PixelLayout &layout)
{
    if (length != native_length(layout))
        differ("PixelData has %llu bytes instead of %llu", static_cast<unsigned long long>(length),
               static_cast<unsigned long long>(native_length(layout)));
}

/* Checks the bytes from that of the last frame's end: no bit follows. */
void
check_padding(const uint8_t *rest, size_t count, unsigned first_bit)
{
    bool zero = count == 0 || rest[0] >> first_bit == 0;
    for (size_t i = 1; i < count; i++)
        zero = zero && rest[i] == 0;
    if (!zero)
        differ("the padding after the last frame is not zero");
}

void
check_read(int rc)
{
    if (rc)
        differ("PixelData cannot be read: %s", rc == -ENODATA ? "the file has become shorter" : strerror(-rc));
}

/* Throws the failure of a function of the reader of images. */
void
check_error(int rc, const struct error &error)
{
    if (rc == -ENOMEM)
        throw std::bad_alloc();
    if (rc)
        differ("%.200s", error.message);
}

void
check_open(struct stream &stream, const char *path)
{
    if (const int rc = stream_open(&stream, path))
        differ("PixelData cannot be read: %s", strerror(-rc));
}

/* Reads the file from any place. */
class NativeReader : public PixelReader
{
  public:
    explicit NativeReader(const PixelLayout &layout) : layout_(layout)
    {
        check_open(stream_, layout.path);
        close_.reset(&stream_);
        const int64_t header_size = 12; /* tag, VR, two reserved bytes, length */
        const auto length = static_cast<int64_t>(native_length(layout));
        if (stream_.file_size < length + header_size)
            differ("the file ends within PixelData");
        start_ = stream_.file_size - length;
        const uint8_t tag[4] = {0xe0, 0x7f, static_cast<uint8_t>(layout.bits == 64 ? 0x09 : 0x10), 0x00};
        uint8_t header[header_size];
        check_read(stream_read_at(stream_.fd, header, sizeof header, start_ - header_size));
        uint64_t stated = 0;
        for (size_t i = 0; i < 4; i++)
            stated |= uint64_t{header[8 + i]} << (8 * i);
        if (memcmp(header, tag, sizeof(tag)) != 0 || stated != native_length(layout))
            differ("PixelData is not at the end of the file");
    }

    const uint8_t *read(size_t frame, unsigned &first_bit) override
    {
        const int64_t block = 4096; /* alignment at which the kernel copies fast */
        const uint64_t begin = frame * layout_.frame_bits();
        const uint64_t bits_end = begin + layout_.frame_bits();
        const bool last = frame + 1 == layout_.frames;
        const int64_t first = start_ + static_cast<int64_t>(begin / 8);
        const int64_t end = last ? stream_.file_size : start_ + static_cast<int64_t>((bits_end + 7) / 8);
        const auto ahead = static_cast<size_t>(first % block);
        const size_t size = ahead + static_cast<size_t>(end - first);
        buffer_.resize(std::max(buffer_.size(), size + ahead_max));
        check_read(stream_read_at(stream_.fd, buffer_.data(), size, first - static_cast<int64_t>(ahead)));
        first_bit = static_cast<unsigned>(begin % 8);
        const uint8_t *bytes = buffer_.data() + ahead;
        if (last) {
            const auto frame_end = static_cast<size_t>(bits_end / 8 - begin / 8);
            check_padding(bytes + frame_end, static_cast<size_t>(end - first) - frame_end,
                          static_cast<unsigned>(bits_end % 8));
        }
        return bytes;
    }

  private:
    const PixelLayout layout_;
    struct stream stream_ = {};
    HeaderOwner<struct stream, stream_close> close_;
    int64_t start_ = 0; /* file offset of the value */
    std::vector<uint8_t> buffer_;
};

/* Inflates the file. */
class DeflatedReader : public PixelReader
{
  public:
    explicit DeflatedReader(const PixelLayout &layout) : layout_(layout), file_(layout.path)
    {
        check_length(file_.find(layout.bits == 64 ? SCAN_TAG_DOUBLE_PIXELS : SCAN_TAG_PIXELS, "PixelData"), layout);
        buffer_.resize(static_cast<size_t>(layout.frame_bits() / 8) + 2 + ahead_max);
    }

    const uint8_t *read(size_t frame, unsigned &first_bit) override
    {
        const uint64_t begin = frame * layout_.frame_bits();
        const uint64_t end = begin + layout_.frame_bits();
        /* The byte that the frame shares with the previous one has been inflated. */
        buffer_[0] = last_;
        const size_t kept = begin % 8 == 0 ? 0 : 1;
        const auto size = static_cast<size_t>((end + 7) / 8 - begin / 8);
        file_.read(buffer_.data() + kept, size - kept);
        last_ = buffer_[size - 1];
        first_bit = static_cast<unsigned>(begin % 8);
        if (frame + 1 == layout_.frames)
            check_end(end);
        return buffer_.data();
    }

  private:
    void check_end(uint64_t end)
    {
        uint8_t rest[2] = {last_, 0};
        const auto after = static_cast<size_t>(native_length(layout_) - (end + 7) / 8);
        file_.read(rest + 1, after);
        check_padding(rest, 1 + after, end % 8 == 0 ? 8 : static_cast<unsigned>(end % 8));
        if (!file_.at_end())
            differ("PixelData is not at the end of the file");
    }

    const PixelLayout layout_;
    WrittenFile file_;
    uint8_t last_ = 0;
    std::vector<uint8_t> buffer_;
};

class RleReader : public PixelReader
{
  public:
    explicit RleReader(const PixelLayout &layout)
    {
        struct stream stream = {};
        struct error error = {};
        check_open(stream, layout.path);
        image_.file_size = stream.file_size;
        stream_close(&stream);
        path_ = layout.path;
        image_.path = &path_[0];
        header_copy(image_.transfer_syntax_uid, layout.transfer_syntax_uid);
        image_.rows = layout.rows;
        image_.columns = layout.columns;
        image_.bits_allocated = image_.bits_stored = layout.bits;
        image_.high_bit = layout.bits - 1;
        image_.pixel = layout.bits == 16 ? IMAGE_UINT16 : IMAGE_UINT8;
        image_.frame_count = static_cast<int32_t>(layout.frames);
        image_.pixel_offset = -1;
        struct dicom_pixels *pixels = nullptr;
        check_error(dicom_pixels_open(&image_, &pixels, &error), error);
        pixels_.reset(pixels);
        voxels_ = static_cast<size_t>(layout.rows) * static_cast<size_t>(layout.columns);
        buffer_.resize(static_cast<size_t>(layout.frame_bits() / 8) + ahead_max);
    }

    const uint8_t *read(size_t frame, unsigned &first_bit) override
    {
        struct error error = {};
        first_bit = 0;
        check_error(dicom_pixels_read(pixels_.get(), static_cast<int32_t>(frame), buffer_.data(), &error), error);
        auto *words = reinterpret_cast<uint16_t *>(buffer_.data());
        for (size_t i = 0; image_.pixel == IMAGE_UINT16 && i < voxels_; i++)
            words[i] = htole16(words[i]);
        return buffer_.data();
    }

  private:
    std::string path_;
    size_t voxels_ = 0;
    struct dicom_instance image_ = {};
    HeaderOwner<struct dicom_pixels, dicom_pixels_close> pixels_;
    std::vector<uint8_t> buffer_;
};

/* Reads the fragments of frames in colour, from first to last. */
class RleColourReader : public PixelReader
{
  public:
    explicit RleColourReader(const PixelLayout &layout) : layout_(layout), file_(layout.path)
    {
        file_.find(SCAN_TAG_PIXELS, "PixelData");
        if (next_item() != 0)
            differ("the Basic Offset Table is not empty");
        voxels_ = static_cast<size_t>(layout.rows) * static_cast<size_t>(layout.columns);
        buffer_.resize(channels * voxels_ + ahead_max);
    }

    const uint8_t *read(size_t frame, unsigned &first_bit) override
    {
        encoded_.resize(next_item());
        file_.read(encoded_.data(), encoded_.size());
        for (size_t k = 0; k < channels; k++)
            if (const char *why = rle_decode_segment(encoded_.data(), encoded_.size(), channels, k, voxels_,
                                                     buffer_.data() + k, channels))
                differ("frame %zu cannot be decoded: %s", frame + 1, why);
        if (frame + 1 == layout_.frames && (next_item(0xe0dd) != 0 || !file_.at_end()))
            differ("PixelData is not at the end of the file");
        first_bit = 0;
        return buffer_.data();
    }

  private:
    static constexpr size_t channels = 3;

    /* Reads the header of an item, or of a delimitation. Returns its length. */
    uint32_t next_item(uint16_t element = 0xe000)
    {
        uint8_t header[8];
        file_.read(header, sizeof header);
        const uint32_t length = value_u32(header + 4, false);
        if (value_u16(header, false) != 0xfffe || value_u16(header + 2, false) != element || length > INT32_MAX)
            differ("the fragments of PixelData are damaged");
        return length;
    }

    const PixelLayout layout_;
    WrittenFile file_;
    size_t voxels_ = 0;
    std::vector<uint8_t> encoded_, buffer_;
};

bool
is_rle(const PixelLayout &layout)
{
    return strcmp(layout.transfer_syntax_uid, DICOM_RLE_LOSSLESS) == 0;
}

} // namespace

bool
PixelReader::in_order(const PixelLayout &layout)
{
    return strcmp(layout.transfer_syntax_uid, DICOM_DEFLATED_LITTLE) == 0 || (is_rle(layout) && layout.bits == 24);
}

void
PixelReader::check(const PixelLayout &layout, DcmItem &dataset)
{
    DcmElement *pixels = nullptr;
    if (is_rle(layout) || in_order(layout))
        return;
    if (dataset.findAndGetElement(layout.bits == 64 ? DCM_DoubleFloatPixelData : DCM_PixelData, pixels).bad() ||
        !pixels)
        differ("PixelData is missing");
    check_length(pixels->getLength(), layout);
}

std::unique_ptr<PixelReader>
PixelReader::open(const PixelLayout &layout)
{
    if (is_rle(layout) && layout.bits == 24)
        return std::make_unique<RleColourReader>(layout);
    if (is_rle(layout))
        return std::make_unique<RleReader>(layout);
    if (in_order(layout))
        return std::make_unique<DeflatedReader>(layout);
    return std::make_unique<NativeReader>(layout);
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
