/*
 * decimal.hh - numbers in texts of many, VR DS (PS3.5, 6.2): what a structure set has by the million.
 */
#ifndef NOCTULE_DECIMAL_HH
#define NOCTULE_DECIMAL_HH

#include <cstddef>
#include <string_view>

/*
 * The first value of "1\2.5\-3e2", in blanks or not, as strtod has it in the C locale: false where it is no number. `length` is that of
 * the value, up to the backslash or the end.
 */
bool decimal_first(std::string_view text, double *number, size_t *length);

#endif
