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

#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <vector>

/* The stream of the path, or, when it is open, of `fd`. Code: FILE_UNREADABLE. */
int header_open(int fd, const char *path, struct stream *stream, struct error *error);

/* What DCMTK did not do for want of memory leaves as std::bad_alloc: it is neither damaged nor not there. */
bool header_is_good(const OFCondition &condition);
/* For after what forgets that, and calls bytes wrong that it had no memory for: errno, 0 before, has what allocating left there. */
void header_blame_memory();

/* The same of a whole act. */
template <typename Act>
OFCondition
header_try(Act act)
{
    errno = 0;
    const OFCondition condition = act();
    if (!header_is_good(condition))
        header_blame_memory();
    return condition;
}

/*
 * A turn with DCMTK, which locks a mutex of the whole process each time a value is loaded or asked for: 64 threads
 * that parse headers spend most of their time in the kernel, where they wait for each other. Few are as fast.
 */
class HeaderTurn
{
  public:
    HeaderTurn();
    ~HeaderTurn();
    HeaderTurn(const HeaderTurn &) = delete;
    HeaderTurn &operator=(const HeaderTurn &) = delete;
};

/* Parses a data set in memory. */
OFCondition header_decode(const void *bytes, size_t size, E_TransferSyntax syntax,
                          DcmDataset &dataset);
/* Parses what the scan kept. Code: TAG_INVALID. */
int header_parse(const struct scan &scan, const char *path, DcmDataset &dataset,
                 struct error *error);
/* Scans, and parses what was kept; the scan is the caller's to release, also after an error. */
int header_scan(struct stream *stream, const char *path, const struct scan_wanted &wanted,
                struct scan *scan, DcmDataset &dataset, struct error *error);
/* Parses the item of this number that the scan kept apart; an empty one adds nothing. False: damaged. */
bool header_parse_apart(const struct scan &scan, int32_t number, DcmDataset &item);

struct private_attribute;

/*
 * The elements of a data set or of an item, in order of their tags: DCMTK would walk its list for
 * each. What it has found of an item's own items and private attributes is kept, so that what frames
 * share is found once; copies are of one index. The item outlives it, one thread uses it.
 */
class Header
{
  public:
    Header() = default; /* of no item: nothing is there */
    Header(DcmItem &item);

    DcmElement *find(const DcmTagKey &tag) const;
    /* The first item of a sequence; of no item when there is none. */
    Header item(const DcmTagKey &sequence) const;

    bool empty() const
    {
        return !index_;
    }

  private:
    DcmTagKey find_private(const struct private_attribute &attribute) const;
    friend DcmTagKey header_private(const Header &, const struct private_attribute &);
    struct Index;
    std::shared_ptr<Index> index_; /* nullptr when there are no elements */
};

/* Without padding at its ends. */
std::string header_trimmed(const std::string &text);
/* All values, as they are written; "" beyond LIMIT_TEXT_BYTES. */
std::string header_whole_text(DcmElement &element);
bool header_has(const Header &header, const DcmTagKey &tag); /* there and not empty */
std::string header_text(const Header &header, const DcmTagKey &tag, unsigned long index = 0);
/* As many as LIMIT_VALUES, which is more than any attribute here has. */
std::vector<std::string> header_texts(const Header &header, const DcmTagKey &tag);
/* Specific Character Set (0008,0005), all values, as it is declared. */
std::string header_character_sets(const Header &header);
/* False when absent, empty or no number. Not necessarily finite. */
bool header_number(const Header &header, const DcmTagKey &tag, double *value,
                   unsigned long index = 0);
/* False also when the value is no integer or beyond 32 bits. */
bool header_integer(const Header &header, const DcmTagKey &tag, int32_t *value);
/* The number that a text is (DS, IS), false when it is none. */
bool header_parse_number(const std::string &text, double *value);

/*
 * A private attribute, which is told by its creator: the block that this one reserved says the rest
 * of its number (PS3.5 7.8.1). The VR is what UN bytes are read by; the numbers that are read are
 * texts (EVR_IS for DS, too), FL, FD, SL, SS and US.
 */
struct private_attribute {
    uint16_t group;
    uint8_t element;
    const char *creator;
    DcmEVR vr;
};

/* Where it is, (0000,0000) when it is not. */
DcmTagKey header_private(const Header &header, const struct private_attribute &attribute);
bool header_private_number(const Header &header, const struct private_attribute &attribute,
                           double *value, unsigned long index = 0);

/* Where a date and time are: together, else in two attributes. */
struct date_time_tags {
    DcmTagKey together, date, time;
};

/*
 * As "YYYYMMDDHHMMSS.FFFFFF", so that texts are in the order of time; zeros where a part is not
 * told, "" when there is neither date nor time. An offset from UTC is ignored: it is the same
 * throughout a series.
 */
std::string header_date_time(const Header &header, const struct date_time_tags &tags);

/* 1 to 64 digits and dots, a digit first. */
bool header_is_uid(const std::string &text);

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

/* Cuts UTF-8 likewise, between characters. */
template <size_t size>
void
header_copy_name(char (&destination)[size], const std::string &utf8)
{
    header_copy(destination, utf8);
    text_utf8_mend_end(destination);
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

#endif
