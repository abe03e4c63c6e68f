/*
 * pixel_file.hh - reads back the pixel data of an object frame by frame, in several threads if that
 * is faster; private to dicom/, C++.
 *
 * Without compression, DCMTK finds the element and its length, and the bytes are read from the end of the file, where
 * the element must be. A deflated data set is inflated once, from its begin to its end. RLE frames are decoded by the
 * reader of images.
 */
#ifndef NOCTULE_DICOM_WRITE_PIXEL_FILE_HH
#define NOCTULE_DICOM_WRITE_PIXEL_FILE_HH

#include "dicom/dicom.h"
#include "dicom/read/scan/stream.h"

#include "dcmtk/config/osconfig.h"
#include "dcmtk/dcmdata/dctk.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace read_back
{

/* Frames of 1, 8 or 16 bits per pixel, 24 (RGB) or 64 (doubles, in Double Float Pixel Data). */
struct PixelLayout {
    const char *path, *transfer_syntax_uid;
    int32_t rows, columns;
    int32_t bits;
    size_t frames;

    uint64_t frame_bits() const
    {
        return static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * static_cast<uint64_t>(bits);
    }
};

/* Reads frames, in one thread. */
class PixelReader
{
  public:
    /* Throws a difference if native pixel data of a data set that DCMTK has read has not the layout's length. No two
     * threads may search a data set at a time: DCMTK moves the cursor of its list. */
    static void check(const PixelLayout &layout, DcmItem &dataset);

    /* Returns a reader of the file, for one thread. Throws a difference if the pixel data is not the layout's frames,
     * padded to an even length. */
    static std::unique_ptr<PixelReader> open(const PixelLayout &layout);

    /* Returns whether frames must be read in order, by one reader. */
    static bool in_order(const PixelLayout &layout);

    virtual ~PixelReader() = default;

    /* Returns the place of a frame's bytes, until the next call. Eight more bytes may be read. Sets the first bit of
     * the frame. After the last frame, checks that only zero bits follow. */
    virtual const uint8_t *read(size_t frame, unsigned &first_bit) = 0;
};

/* Calls work(first, end) for parts of 0 .. count - 1, of at least `least` each, in up to
 * `threads` threads including the caller's. Throws the exception of the lowest failing part. */
void in_parts(size_t count, size_t least, int threads, const std::function<void(size_t, size_t)> &work);

} // namespace read_back

#endif
