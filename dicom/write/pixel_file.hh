/*
 * pixel_file.hh - reads back the pixel data of an object frame by frame, in several threads if that
 * is faster; private to dicom/, C++.
 *
 * DCMTK finds the element and its length. The bytes are read from the end of the file, where the element must be.
 */
#ifndef NOCTULE_DICOM_WRITE_PIXEL_FILE_HH
#define NOCTULE_DICOM_WRITE_PIXEL_FILE_HH

#include "dcmtk/config/osconfig.h"
#include "dcmtk/dcmdata/dctk.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace read_back
{

class PixelFile
{
  public:
    /* Throws a difference if the pixel data is not `frames` frames, padded to an even length. */
    PixelFile(const char *path, DcmItem &dataset, uint64_t frame_bits, size_t frames);

    /* Reads a frame's bytes into the buffer and returns their place. Eight more bytes may be
     * read. Sets the first bit of the frame. Any thread. */
    const uint8_t *read(size_t frame, std::vector<uint8_t> &buffer, unsigned &first_bit) const;

    /* Checks that only zero bits follow the last frame. */
    void check_padding() const;

  private:
    struct Descriptor {
        const int fd;

        explicit Descriptor(int from) : fd(from)
        {
        }

        ~Descriptor();
        Descriptor(const Descriptor &) = delete;
        Descriptor &operator=(const Descriptor &) = delete;
    };

    void fetch(uint8_t *place, uint64_t offset, size_t size) const;

    const uint64_t frame_bits_;
    const size_t frames_;
    const uint64_t length_; /* of the value */
    const Descriptor file_;
    uint64_t start_; /* file offset of the value */
};

/* Calls work(first, end) for parts of 0 .. count - 1, of at least `least` each, in up to
 * `threads` threads including the caller's. Throws the exception of the lowest failing part. */
void in_parts(size_t count, size_t least, int threads, const std::function<void(size_t, size_t)> &work);

} // namespace read_back

#endif
