/*
 * decimal.hh - parses numbers in long texts, VR DS (PS3.5 6.2). A structure set has millions of
 * them.
 */
#ifndef NOCTULE_DECIMAL_HH
#define NOCTULE_DECIMAL_HH

#include <cstddef>
#include <string_view>

/* Reads the first value of "1\2.5\-3e2", with or without spaces around it, as strtod does in the
 * C locale. Returns false if it is not a number. Sets `length` to that of the value, up to the
 * backslash or the end. */
bool decimal_first(std::string_view text, double *number, size_t *length);

#endif
