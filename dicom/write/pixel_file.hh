/*
 * pixel_file.hh - the pixel data of an object that is read back, frame by frame, by several threads
 * where that pays; private to dicom/, C++.
 *
 * DCMTK tells that the element is there and how long it is; the bytes come from the end of the
 * file, where it has to stand.
 */
#ifndef NOCTULE_DICOM_PIXEL_FILE_H
#define NOCTULE_DICOM_PIXEL_FILE_H

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
    /* Differs when the pixel data set there is not `frames` frames, padded to an even length. */
    PixelFile(const char *path, DcmItem &dataset, uint64_t frame_bits, size_t frames);

    /* A frame's bytes, in the buffer, eight more to be read without harm, and its first bit in
     * them. Any thread. */
    const uint8_t *read(size_t frame, std::vector<uint8_t> &buffer, unsigned &first_bit) const;

    /* What follows the last frame must be zero bits. */
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

    void check_header() const;
    void fetch(uint8_t *place, uint64_t offset, size_t size) const;

    const uint64_t frame_bits_;
    const size_t frames_;
    const uint64_t length_; /* of the value */
    const Descriptor file_;
    uint64_t start_; /* of the value, in the file */
};

/*
 * Calls work(first, end) for parts of 0 .. count - 1, in up to `threads` threads, the caller's
 * among them; at least `least` a part. What the lowest failing part throws is thrown.
 */
void in_parts(size_t count, size_t least, int threads,
              const std::function<void(size_t, size_t)> &work);

} // namespace read_back

#endif
