/*
 * header.hh - reads attributes of a scanned file with DCMTK; private to dicom/, C++.
 *
 * Values are trimmed. Numbers do not depend on the locale. A missing attribute is false or "",
 * never an exception. std::bad_alloc is the only exception that leaves.
 */
#ifndef NOCTULE_DICOM_READ_HEADER_HH
#define NOCTULE_DICOM_READ_HEADER_HH

#include "base/error.h"
#include "base/text.h"
#include "dicom/dicom.h"
#include "dicom/read/scan/scan_header.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dctk.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

/* Opens a stream on `fd`, if that is open, or else on the path. Code: FILE_UNREADABLE. */
int header_open(int fd, const char *path, struct stream *stream, struct error *error);

/* Checks a condition of DCMTK. Throws std::bad_alloc if DCMTK failed for lack of memory, which
 * means neither damage nor absence. */
bool header_is_good(const OFCondition &condition);
/* Throws std::bad_alloc if errno (set to 0 before) shows a failed allocation. Some functions of
 * DCMTK report such a failure as invalid data. */
void header_blame_memory();

/* Runs `act` with both checks. */
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

/* Limits the threads that use DCMTK at once. DCMTK locks a process-wide mutex for every value it
 * loads or returns: 64 threads that parse headers spend most of their time in the kernel,
 * waiting for each other. A few threads are as fast. */
class HeaderTurn
{
  public:
    HeaderTurn();
    ~HeaderTurn();
    HeaderTurn(const HeaderTurn &) = delete;
    HeaderTurn &operator=(const HeaderTurn &) = delete;
};

/* Parses a data set in memory. */
OFCondition header_decode(const void *bytes, size_t size, E_TransferSyntax syntax, DcmDataset &dataset);
/* Parses the elements that the scan kept. Code: TAG_INVALID. */
int header_parse(const struct scan &scan, const char *path, DcmDataset &dataset, struct error *error);
/* Scans, and parses the elements kept. The caller must release the scan, also after an error. */
int header_scan(struct stream *stream, const char *path, const struct scan_wanted &wanted, struct scan *scan,
                DcmDataset &dataset, struct error *error);
/* Parses the separate item of this number that the scan kept. An empty item adds no element.
 * Returns false if it is damaged. */
bool header_parse_separate(const struct scan &scan, int32_t number, DcmDataset &item);

struct private_attribute;

/*
 * Index of the elements of a data set or of an item, in tag order. DCMTK would search a list for
 * each. The index also caches the item's own items and private attributes, so that those shared by
 * frames are found once. Copies share one index. The item must outlive it. One thread per index.
 */
class Header
{
  public:
    Header() = default; /* without item: empty */
    Header(DcmItem &item);

    DcmElement *find(const DcmTagKey &tag) const;
    /* Returns nullptr if the attribute is absent, or is not a sequence. */
    DcmSequenceOfItems *sequence(const DcmTagKey &tag) const;
    /* Returns the first item of a sequence, or an empty header. */
    Header item(const DcmTagKey &sequence) const;

    bool empty() const
    {
        return !index_;
    }

  private:
    friend DcmTagKey header_private(const Header &, const struct private_attribute &);
    struct Index;
    std::shared_ptr<Index> index_; /* nullptr without elements */
};

/* Returns the elements of an item, or the items of a sequence, in their order. None of nullptr. */
template <typename T>
std::vector<T *>
header_children(DcmObject *parent)
{
    std::vector<T *> children;
    for (DcmObject *each = parent ? parent->nextInContainer(nullptr) : nullptr; each;
         each = parent->nextInContainer(each))
        children.push_back(static_cast<T *>(each));
    return children;
}

/* Returns a tag as group << 16 | element. */
inline uint32_t
header_tag_number(const DcmTagKey &tag)
{
    return static_cast<uint32_t>(tag.getGroup()) << 16 | tag.getElement();
}

/* Removes padding at both ends. */
std::string header_trimmed(const std::string &text);
/* Returns all values, as written; "" beyond LIMIT_TEXT_BYTES. */
std::string header_whole_text(DcmElement &element);
bool header_has(const Header &header, const DcmTagKey &tag); /* present and not empty */
std::string header_text(const Header &header, const DcmTagKey &tag, unsigned long index = 0);
/* Returns at most LIMIT_VALUES values, which is more than any attribute here has. */
std::vector<std::string> header_texts(const Header &header, const DcmTagKey &tag);
/* Returns Specific Character Set (0008,0005), all values, as declared. */
std::string header_character_sets(const Header &header);
/* Returns whether Noctule wrote the file. */
bool header_is_own(const Header &header);
/* Returns false if absent, empty or not a number. The value may be infinite. */
bool header_number(const Header &header, const DcmTagKey &tag, double *value, unsigned long index = 0);
/* Returns false also if the value is not an integer or exceeds 32 bits. */
bool header_integer(const Header &header, const DcmTagKey &tag, int32_t *value);
/* Parses a text (DS, IS). Returns false if it is not a number. */
bool header_parse_number(const std::string &text, double *value);

/* Reads the first value of a long text (DS, PS3.5 6.2): "1\2.5\-3e2", with or without spaces around
 * it, as strtod does in the C locale. Returns false if it is not a number. Sets `length` to that of
 * the value, up to the backslash or the end. */
bool header_first_decimal(std::string_view text, double *number, size_t *length);

/* A private attribute, identified by its creator. The block that the creator reserved gives the
 * rest of its number (PS3.5 7.8.1). The VR is used for UN bytes. Numbers may be texts (EVR_IS,
 * also for DS), FL, FD, SL, SS and US. */
struct private_attribute {
    uint16_t group;
    uint8_t element;
    const char *creator;
    DcmEVR vr;
};

/* Returns its tag, or (0000,0000) if absent. */
DcmTagKey header_private(const Header &header, const struct private_attribute &attribute);
bool header_private_number(const Header &header, const struct private_attribute &attribute, double *value,
                           unsigned long index = 0);

/* Tags of a date and time: in one attribute, or else in two. */
struct date_time_tags {
    DcmTagKey together, date, time;
};

/* Returns "YYYYMMDDHHMMSS.FFFFFF", so that texts sort in time order. Missing parts are zeros; "" if
 * date and time are absent. Ignores an offset from UTC, which is the same throughout a series. */
std::string header_date_time(const Header &header, const struct date_time_tags &tags);

/* Returns whether the text has 1 to 64 digits and dots, and begins with a digit. */
bool header_is_uid(const std::string &text);

/* Returns "Rows (0028,0010)", for messages. */
std::string header_tag_name(const DcmTagKey &tag);

/* Reads required values of a file, and rejects it. All return -EBADMSG with an error that begins
 * with the file's name, or the last two 0. */
struct HeaderReader {
    const char *path;
    struct error *error;

    int refuse(enum code code, const std::string &what) const;
    int missing(const DcmTagKey &tag, const std::string &where = "") const; /* TAG_MISSING */
    int invalid(const DcmTagKey &tag, const std::string &why) const;        /* TAG_INVALID */
    /* Codes: TAG_MISSING if it is absent and required, UID_INVALID. */
    int read_uid(const Header &header, const DcmTagKey &tag, bool required, char (&uid)[DICOM_UID_SIZE]) const;
    /* Reads the UIDs of the instance, its study and its series, which are required. */
    int read_identity(const Header &header, char (&sop)[DICOM_UID_SIZE], char (&study)[DICOM_UID_SIZE],
                      char (&series)[DICOM_UID_SIZE]) const;
    /* Reads a whole number in these limits. Codes: TAG_MISSING, TAG_INVALID. */
    int read_number(const Header &header, const DcmTagKey &tag, int32_t low, int32_t high, int32_t *number) const;
};

/* Owns an object of a C interface, which `end` ends. */
template <auto end> struct HeaderEnd {
    template <typename T> void operator()(T *object) const
    {
        end(object);
    }
};

template <typename T, auto end> using HeaderOwner = std::unique_ptr<T, HeaderEnd<end>>;

/* A file, and the elements that a scan kept of it. */
struct HeaderFile {
    struct stream stream;
    struct scan scan = {};
    HeaderOwner<struct stream, stream_close> opened;
    HeaderOwner<struct scan, scan_release> scanned{&scan};
    DcmDataset dataset;

    HeaderFile() = default;
    HeaderFile(const HeaderFile &) = delete;
    HeaderFile &operator=(const HeaderFile &) = delete;

    /* Opens the file, scans it, and parses the elements kept. Codes: those of header_open() and header_scan(). */
    int read(const char *path, const struct scan_wanted &wanted, struct error *error);
};

/* Returns a zeroed C array, at least one element, which the caller must free. */
template <typename T>
T *
header_allocate(size_t count)
{
    auto *array = static_cast<T *>(calloc(count ? count : 1, sizeof(T)));
    if (!array)
        throw std::bad_alloc();
    return array;
}

/* Returns a C array of the values, as header_allocate. */
template <typename T>
T *
header_array(const std::vector<T> &values)
{
    auto *array = header_allocate<T>(values.size());
    std::copy(values.begin(), values.end(), array);
    return array;
}

/* Copies, cut to the size of the array. */
template <size_t size>
void
header_copy(char (&destination)[size], const std::string &text)
{
    const size_t length = text.size() < size ? text.size() : size - 1;
    text.copy(destination, length);
    destination[length] = 0;
}

/* Copies UTF-8, cut between characters. */
template <size_t size>
void
header_copy_name(char (&destination)[size], const std::string &utf8)
{
    header_copy(destination, utf8);
    text_utf8_mend_end(destination);
}

/* Runs the body of a C entry point. No C++ exception leaves it. */
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
                               "%s is damaged: its header cannot be parsed. Send it again.", text_base_name(path));
    }
}

#endif
