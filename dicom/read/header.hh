/*
 * header.hh - attributes of a scanned file through DCMTK; private to dicom/, C++.
 *
 * Values come back trimmed; numbers are read independently of the locale. A missing attribute is
 * false or "", never an exception; only std::bad_alloc leaves.
 */
#ifndef NOCTULE_DICOM_HEADER_H
#define NOCTULE_DICOM_HEADER_H

#include "base/error.h"
#include "base/text.h"
#include "dicom/dicom.h"
#include "dicom/read/scan.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dctk.h>

#include <new>
#include <string>
#include <vector>

/* Parses a data set in memory. */
OFCondition header_decode(const void *bytes, size_t size, E_TransferSyntax syntax,
                          DcmDataset &dataset);
/* Parses what the scan kept. Code: TAG_INVALID. */
int header_parse(const struct scan &scan, const char *path, DcmDataset &dataset,
                 struct error *error);

bool header_has(DcmItem &item, const DcmTagKey &tag); /* there and not empty */
std::string header_text(DcmItem &item, const DcmTagKey &tag, unsigned long index = 0);
std::vector<std::string> header_texts(DcmItem &item, const DcmTagKey &tag);
/* False when absent, empty or no number. Not necessarily finite. */
bool header_number(DcmItem &item, const DcmTagKey &tag, double *value, unsigned long index = 0);
/* False also when the value is no integer or beyond 32 bits. */
bool header_integer(DcmItem &item, const DcmTagKey &tag, int32_t *value);
/* First item of a sequence, nullptr when there is none. */
DcmItem *header_item(DcmItem &item, const DcmTagKey &sequence);

/* "Rows (0028,0010)", for messages. */
std::string header_tag_name(const DcmTagKey &tag);

/* Cuts to the size of the array. */
template <size_t size>
void
header_copy(char (&destination)[size], const std::string &text)
{
    const size_t length = text.size() < size ? text.size() : size - 1;
    text.copy(destination, length);
    destination[length] = 0;
}

/* Runs a C entry's body; no C++ exception gets past it. */
template <typename Body>
int
header_guard(const char *path, struct error *error, Body body)
{
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return error_set_files(error, -ENOMEM, CODE_OUT_OF_MEMORY, path, nullptr,
                               "There is not enough memory to read %s.", text_base_name(path));
    } catch (...) {
        return error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, nullptr,
                               "%s is damaged: its header cannot be parsed. Send it again.",
                               text_base_name(path));
    }
}

/* Elements as dicom_inherit gives them, while they are gathered. (inherit.cc) */
class InheritedElements
{
  public:
    bool add(DcmElement &element); /* false: it cannot be encoded */
    struct dicom_inherited hand_over() const;

  private:
    std::vector<uint8_t> bytes_;
    std::vector<struct dicom_element> elements_;
};

/* Fills frame_count frames from the data set or its functional groups. (frames.cc) */
void frames_read(DcmItem &dataset, struct dicom_instance &instance);

#endif
