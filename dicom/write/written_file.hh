/*
 * written_file.hh - reads the elements of a file that Noctule wrote, forwards and as bytes; private to dicom/, C++.
 *
 * The data set is in Explicit VR Little Endian, deflated or not, and all elements but encapsulated pixel data have a
 * length. Differences from this form are thrown.
 */
#ifndef NOCTULE_DICOM_WRITE_WRITTEN_FILE_HH
#define NOCTULE_DICOM_WRITE_WRITTEN_FILE_HH

#include "dicom/read/header.hh"

#include <functional>

namespace read_back
{

class WrittenFile
{
  public:
    struct Element {
        uint32_t tag, length; /* UINT32_MAX: undefined */
        uint8_t header[12];
        size_t header_size;
    };

    explicit WrittenFile(const char *path);

    const std::string &transfer_syntax() const
    {
        return transfer_syntax_;
    }

    /* Reads the header of the next element. The caller must consume its value. Returns false at the end. */
    bool next(Element &element);
    /* Skips to the value of this element. Returns its length. */
    uint32_t find(uint32_t tag, const char *name);

    void read(void *destination, uint64_t size);
    void skip(uint64_t size);
    /* Passes the bytes on, a part at a time. */
    void show(uint64_t size, const std::function<void(const void *bytes, size_t size)> &visit);
    bool at_end();

  private:
    static void check(int rc);

    struct stream stream_ = {};
    HeaderOwner<struct stream, stream_close> close_;
    std::string transfer_syntax_;
};

} // namespace read_back

#endif
