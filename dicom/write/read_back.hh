/*
 * read_back.hh - base of the verifiers of objects made from a stack: reads attributes with DCMTK's
 * parser and compares them, and pixel data frame by frame; private to dicom/, C++.
 *
 * The verifiers share only names with the writers (derived.h). The first difference is thrown.
 * std::bad_alloc is the only other exception.
 */
#ifndef NOCTULE_DICOM_WRITE_READ_BACK_HH
#define NOCTULE_DICOM_WRITE_READ_BACK_HH

#include "dicom/value/value.h"
#include "dicom/write/derived.h"
#include "dicom/write/pixel_file.hh"

#include "dcmtk/config/osconfig.h"
#include "dcmtk/dcmdata/dctk.h"

#include <cerrno>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace read_back
{

/* The first difference. */
struct Mismatch {
    char message[400];
};

[[noreturn]] void differ(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Handles verify's caught exception. errno tells a difference from data that could not be read for lack of memory. */
int verify_caught(struct error *error, const char *path, enum code code, const char *object);

/* Runs a verifier. Returns 0, or the error's negative errno. A difference becomes the error
 * `code`; `object` is the name of the object read ("segmentation"). A lack of memory becomes
 * OUT_OF_MEMORY. */
template <typename Body>
int
verify(struct error *error, const char *path, enum code code, const char *object, Body body)
{
    errno = 0;
    try {
        body();
        return 0;
    } catch (...) {
        return verify_caught(error, path, code, object);
    }
}

/* Opens an object in this transfer syntax, without the elements from `end` on. Long values, such as pixels, stay in the
 * file. Compressed ones are not read. */
DcmDataset &load_file(DcmFileFormat &file, const char *path, const char *transfer_syntax_uid,
                      const DcmTagKey &end = DCM_UndefinedTagKey);
/* Returns whether its texts are UTF-8. Otherwise they are ASCII. */
bool is_utf8(DcmDataset &dataset);
/* Returns the text as value_text_clean writes it in such an object. */
std::string clean_text(const char *text, size_t characters, enum value_text_kind kind, bool utf8);

/* Checks the class, the object's UIDs, its study, and the contributing equipment. */
void check_identity(DcmFileFormat &file, const char *sop_class, const struct derived_identity &identity,
                    const struct derived_source &source, const char *modality);

/* --- attributes; each function throws a difference if the attribute is missing --- */

struct Attribute {
    DcmTagKey tag;
    const char *name; /* for messages */
};

#define ATTRIBUTE(keyword) (read_back::Attribute{DCM_##keyword, #keyword})

std::string text_of(DcmItem &item, const Attribute &attribute);
void expect_text(DcmItem &item, const Attribute &attribute, const std::string &expected);
void expect_number(DcmItem &item, const Attribute &attribute, int64_t expected);
/* Compares with tolerance: a decimal string has at most 16 characters, so the last digits of a double may be lost. */
void expect_decimal(DcmItem &item, const Attribute &attribute, double expected, unsigned long index = 0);
/* Return the only item, or all `count` items. Other lengths of the sequence are differences. */
DcmItem &item_of(DcmItem &item, const Attribute &attribute);
std::vector<DcmItem *> items_of(DcmItem &item, const Attribute &attribute, size_t count);
/* Compares value and scheme of the only item. Ignores the meaning. */
void expect_code(DcmItem &item, const Attribute &attribute, const coded_concept &code);

/* --- base class of verifiers of image objects made from a stack --- */

class StackObject
{
  protected:
    /* `has_bytes`: see derived_transfer_syntax. */
    StackObject(const struct derived_source &source, bool has_bytes, const char *path);

    /* Checks the object's UIDs and its Frame of Reference. */
    void check_identity(const char *sop_class, const struct derived_identity &identity, const char *modality);
    /* Checks for unsigned pixels with `bits` bits allocated and stored. */
    void check_image(int32_t bits);
    PixelLayout layout(int32_t bits, size_t frames) const;
    /* Checks Plane Orientation and Pixel Measures. Returns the groups. */
    DcmItem &check_shared_groups();
    /* Checks that each source instance is referenced once, and besides these only the object
     * that this one `replaces`. */
    void check_referenced_series(const struct derived_reference *replaces);
    /* Calls check(item) for each item of the per-frame groups. There must be `count` of them (0:
     * one or more). Adds the frame to a difference. */
    void check_each_frame(int32_t count, const std::function<void(DcmItem &)> &check);
    /* Returns the plane that a frame's Derivation Image refers to, or on a resampled grid the one at its Plane
     * Position, which must be present. */
    int32_t plane_of(DcmItem &frame) const;
    int32_t slice_of(DcmItem &frame) const;
    void check_shared_derivation(DcmItem &groups) const;
    int32_t tile_of(DcmItem &frame, const std::string &uid) const;
    void check_measures(DcmItem &groups, int32_t plane) const;
    /* Returns the Dimension Index Values of a frame, which must be `count` of them. */
    static const Uint32 *indices_of(DcmItem &frame, unsigned long count);

    const struct derived_source &source_;
    const struct geometry_stack &stack_;
    const char *path_, *transfer_syntax_uid_;
    DcmFileFormat file_;
    DcmDataset &dataset_;

  private:
    std::unordered_map<std::string, int32_t> planes_; /* by source instance and frame number */
};

} // namespace read_back

#endif
