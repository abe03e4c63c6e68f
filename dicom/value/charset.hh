/*
 * charset.hh - converts text of a declared Specific Character Set to UTF-8, value by value; private
 * to dicom/, C++.
 */
#ifndef NOCTULE_DICOM_VALUE_CHARSET_HH
#define NOCTULE_DICOM_VALUE_CHARSET_HH

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcspchrs.h>

#include <string>

class Charset
{
  public:
    /* `declared` has all values of Specific Character Set (0008,0005); "" for the default
     * repertoire. */
    explicit Charset(const std::string &declared);

    /* Returns whether the set is a standard set that can be read. */
    bool is_known() const
    {
        return is_known_;
    }

    /* Returns false if the text is not in the set. */
    bool decode(const std::string &text, std::string &utf8);

  private:
    DcmSpecificCharacterSet set_; /* must be first: initialises is_known_ */
    const char *japanese_;
    bool is_utf8_;
    bool is_known_;
};

/* Loads the converters and the letter cases of the C library, so that they exist later. Throws std::bad_alloc if one is not
 * there, or if memory is short. */
void charset_load_converters();

/* Converts a name for display to UTF-8. If it is not in the set, non-ASCII bytes become "?". */
std::string charset_name(Charset &charset, const std::string &text);

/* How a letter with a mark is folded: to its base letter, or as some languages write it in ASCII ("ue", "ss"). */
enum class Folding { Base, Spelled };

/* Returns a text (UTF-8) for comparisons: in lower case, without accents, and full-width forms as ASCII. Bytes that are not
 * UTF-8 stay. charset_load_converters() must have been called. */
std::string charset_folded(const std::string &utf8, Folding folding);

/* Returns whether all of the text is UTF-8. */
bool charset_is_utf8(const std::string &text);

#endif
