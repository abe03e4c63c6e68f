/*
 * read_back.hh - what the verifiers of objects made from a stack have in common: attributes through
 * DCMTK's parser, compared with what they were to be, and pixel data frame by frame; private to
 * dicom/, C++.
 *
 * Nothing here is shared with the writers but names (derived.h). The first difference is
 * thrown; std::bad_alloc is the only other exception.
 */
#ifndef NOCTULE_DICOM_READ_BACK_H
#define NOCTULE_DICOM_READ_BACK_H

#include "dicom/value/value_text.h"
#include "dicom/write/derived.h"

#include "dcmtk/config/osconfig.h"
#include "dcmtk/dcmdata/dctk.h"

#include <cerrno>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace read_back
{

/* The first difference, on its way to the error. */
struct Mismatch {
    char message[400];
};

[[noreturn]] void differ(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* verify's, of the exception that is caught. errno says whether a difference is of what there was no memory to read. */
int verify_caught(struct error *error, const char *path, enum code code, const char *object);

/*
 * Runs a verifier and returns 0: a difference becomes the error `code`, with `object`, which is what
 * was read back ("segmentation"), as its name; no memory OUT_OF_MEMORY. Returns its negative errno.
 */
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

/* Opens an object in Explicit VR Little Endian; long values, such as pixels, stay in the file. */
DcmDataset &load_file(DcmFileFormat &file, const char *path);
/* Are its texts UTF-8? Else they are ASCII. */
bool is_utf8(DcmDataset &dataset);
/* As value_text_clean makes it fit for such an object. */
std::string clean_text(const char *text, size_t characters, enum value_text_kind kind, bool utf8);

/* The class, who the object is, and whose. */
void check_identity(DcmFileFormat &file, const char *sop_class,
                    const struct derived_identity &identity, const char *study_uid,
                    const char *modality);

/* --- attributes; each differs when what it looks for is missing --- */

struct Attribute {
    DcmTagKey tag;
    const char *name; /* in messages */
};

#define ATTRIBUTE(keyword) (read_back::Attribute{DCM_##keyword, #keyword})

std::string text_of(DcmItem &item, const Attribute &attribute);
void expect_text(DcmItem &item, const Attribute &attribute, const std::string &expected);
void expect_number(DcmItem &item, const Attribute &attribute, int64_t expected);
double decimal_of(DcmItem &item, const Attribute &attribute, unsigned long index = 0);
/* A decimal string has 16 characters at most: the last digits of a double may be lost. */
void expect_decimal(DcmItem &item, const Attribute &attribute, double expected,
                    unsigned long index = 0);
/* The only item, or all `count` of them; sequences of other lengths differ. */
DcmItem &item_of(DcmItem &item, const Attribute &attribute);
std::vector<DcmItem *> items_of(DcmItem &item, const Attribute &attribute, size_t count);
/* Value and scheme of the only item; the meaning is for people. */
void expect_code(DcmItem &item, const Attribute &attribute, const coded_concept &code);

/* --- an image object made from a stack, on which verifiers of one kind are built --- */

class StackObject
{
  protected:
    StackObject(const struct derived_source &source, const char *path);

    /* Who it is, and its Frame of Reference. */
    void check_identity(const char *sop_class, const struct derived_identity &identity,
                        const char *modality);
    /* Unsigned pixels of as many bits, allocated and stored. */
    void check_image(int64_t bits);
    /* Plane Orientation and Pixel Measures; returns the groups. */
    DcmItem &check_shared_groups();
    /* Each source instance once, and no other but the object that this one `replaces`. */
    void check_referenced_series(const struct derived_reference *replaces);
    /* Calls check(item) for each item of the per-frame groups, `count` of them (0: one or more), and
     * says in which frame it differs. */
    void check_each_frame(int32_t count, const std::function<void(DcmItem &)> &check);
    /* The plane that a frame's Derivation Image names; its Plane Position must be there. */
    int32_t plane_of(DcmItem &frame) const;
    int32_t tile_of(DcmItem &frame, const std::string &uid) const;
    void check_measures(DcmItem &groups, int32_t plane) const;
    /* The Dimension Index Values of a frame, of which there are so many. */
    static const Uint32 *indices_of(DcmItem &frame, unsigned long count);

    const struct derived_source &source_;
    const struct geometry_stack &stack_;
    const char *path_;
    DcmFileFormat file_;
    DcmDataset &dataset_;

  private:
    DcmItem &elsewhere(const struct derived_reference &replaces);
    void check_replaced(const struct derived_reference &replaces, DcmItem &series);

    std::unordered_map<std::string, int32_t> planes_; /* by source instance and frame number */
};

} // namespace read_back

#endif
