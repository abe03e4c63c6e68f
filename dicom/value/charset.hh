/*
 * charset.hh - text of a declared Specific Character Set as UTF-8, value by value; private to
 * dicom/, C++.
 */
#ifndef NOCTULE_CHARSET_HH
#define NOCTULE_CHARSET_HH

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcspchrs.h>

#include <string>

class Charset
{
  public:
    /* Specific Character Set (0008,0005), all values; "" is the default repertoire. */
    explicit Charset(const std::string &declared);

    /* Whether the set is one of the standard's that can be read. */
    bool is_known() const
    {
        return is_known_;
    }

    /* False when the text is not in the set. */
    bool decode(const std::string &text, std::string &utf8);

  private:
    DcmSpecificCharacterSet set_; /* first: what is known asks it */
    const char *japanese_;
    bool is_utf8_;
    bool is_known_;
};

/* A name for people, as UTF-8: where it is not of the set, bytes that are no ASCII become "?". */
std::string charset_name(Charset &charset, const std::string &text);

/* Whether the text is UTF-8 throughout. */
bool charset_is_utf8(const std::string &text);

#endif
