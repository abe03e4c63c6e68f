/* header_decimal.cc - parses decimals in long texts. A structure set has millions of them. */
#include "dicom/read/header.hh"

#include <charconv>
#include <cstdint>
#include <iterator>

/* Reads a number of the most common form, "-12.345" with at most 15 digits. Such digits and
 * powers of ten are exact in double precision, so their quotient is rounded once (Clinger 1990).
 * Returns its length, or 0 if the number has another form. */
static size_t
decimal_plain(std::string_view text, double *number)
{
    static constexpr double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const bool negative = !text.empty() && text[0] == '-';
    int64_t digits = 0;
    size_t count = 0, behind = 0, at = negative;
    bool fraction = false;
    for (; at < text.size() && text[at] != '\\'; at++) {
        const unsigned digit = static_cast<unsigned char>(text[at]) - unsigned{'0'};
        if (digit <= 9) {
            digits = 10 * digits + digit;
            behind += fraction;
            if (++count == std::size(powers))
                return 0;
        } else if (text[at] == '.' && !fraction) {
            fraction = true;
        } else {
            return 0;
        }
    }
    const double size = static_cast<double>(digits) / powers[behind];
    *number = negative ? -size : size;
    return count > 0 ? at : 0;
}

bool
header_first_decimal(std::string_view text, double *number, size_t *length)
{
    static const std::string_view padding(" \0", 2);
    *length = decimal_plain(text, number);
    if (*length > 0)
        return true;
    *length = std::min(text.find('\\'), text.size());
    std::string_view value = text.substr(0, *length);
    value.remove_prefix(std::min(value.find_first_not_of(padding), value.size()));
    value = value.substr(0, value.find_last_not_of(padding) + 1);
    if (value.size() > 1 && value[0] == '+' && value[1] != '-')
        value.remove_prefix(1);
    const auto read = std::from_chars(value.data(), value.data() + value.size(), *number);
    return read.ec == std::errc() && read.ptr == value.data() + value.size();
}
