/* patterns.c - see patterns.h. */
#include "kernels/features/patterns.h"

#include <math.h>
#include <stdio.h>

bool
pattern_wanted(const struct texture_options *options, enum texture_pattern pattern)
{
    return (options->patterns & 1u << pattern) != 0;
}

size_t
patterns_wanted(const struct texture_options *options)
{
    return (size_t)__builtin_popcount(options->patterns);
}

static int32_t
pattern_millionths(const struct texture_options *options)
{
    return (int32_t)lround(options->tlbap_threshold * 1e6);
}

void
pattern_settings(const struct texture_options *options, enum texture_pattern pattern,
                 char text[PATTERN_SETTINGS])
{
    text[0] = '\0';
    if (pattern == TEXTURE_TLBAP)
        snprintf(text, PATTERN_SETTINGS, "threshold=%.7g%s", pattern_millionths(options) / 1e6,
                 options->tlbap_strict ? ",strict" : "");
    else if (pattern == TEXTURE_LANADP && options->lanadp_integer)
        snprintf(text, PATTERN_SETTINGS, "integer");
}

struct texture_patterns
patterns_request(const struct texture_options *options)
{
    struct texture_patterns request = {
        .threshold_millionths = pattern_millionths(options),
        .strict = options->tlbap_strict,
        .integer_average = options->lanadp_integer,
    };

    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        request.wanted[p] = pattern_wanted(options, (enum texture_pattern)p);
    return request;
}
