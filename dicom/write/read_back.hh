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

#include "dicom/write/derived.h"

#include "dcmtk/config/osconfig.h"
#include "dcmtk/dcmdata/dctk.h"

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

/*
 * In a catch block of a verifier: a difference as the error `code`, with `object`, which is what
 * was read back ("segmentation"), as its name; no memory as OUT_OF_MEMORY. Returns its negative
 * errno.
 */
int caught(struct error *error, const char *path, enum code code, const char *object);

/* Opens an object in Explicit VR Little Endian; long values, such as pixels, stay in the file. */
void load_file(DcmFileFormat &file, const char *path);
/* Are its texts UTF-8? Else they are ASCII. */
bool is_utf8(DcmFileFormat &file);

/* The class, who the object is, and whose. */
void check_identity(DcmFileFormat &file, const char *sop_class,
                    const struct derived_identity &identity, const char *study_uid,
                    const char *modality);

/* --- attributes; each differs when what it looks for is missing --- */

std::string text_of(DcmItem &item, const DcmTagKey &tag, const char *name);
void expect_text(DcmItem &item, const DcmTagKey &tag, const char *name,
                 const std::string &expected);
void expect_number(DcmItem &item, const DcmTagKey &tag, const char *name, int64_t expected);
double decimal_of(DcmItem &item, const DcmTagKey &tag, const char *name, unsigned long index);
/* A decimal string has 16 characters at most: the last digits of a double may be lost. */
void expect_decimal(DcmItem &item, const DcmTagKey &tag, const char *name, unsigned long index,
                    double expected);
/* The only item; sequences of other lengths differ. */
DcmItem &item_of(DcmItem &item, const DcmTagKey &tag, const char *name);
DcmSequenceOfItems &sequence_of(DcmItem &item, const DcmTagKey &tag, const char *name,
                                size_t count);
/* Value and scheme of the only item; the meaning is for people. */
void expect_code(DcmItem &item, const DcmTagKey &tag, const char *name, const coded_concept &code);

/* Calls check(item) for each item of the per-frame groups, and says in which frame it differs. */
void check_each_frame(DcmItem &dataset, size_t count, const std::function<void(DcmItem &)> &check);

/* --- what refers to the stack --- */

class StackReferences
{
  public:
    explicit StackReferences(const struct derived_source &source);

    void check_frame_of_reference(DcmItem &dataset) const;
    /* Plane Orientation and Pixel Measures. */
    void check_shared_groups(DcmItem &groups) const;
    /* Each source instance once, and no other. */
    void check_referenced_series(DcmItem &dataset) const;
    /* The plane that a frame's Derivation Image names; its Plane Position must be there. */
    int32_t plane_of(DcmItem &frame) const;

  private:
    const struct derived_source &source_;
    std::unordered_map<std::string, int32_t> planes_; /* by source instance and frame number */
};

} // namespace read_back

#endif
