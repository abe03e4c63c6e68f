/*
 * judgement.h - pipelines differ in what they take of a series, and so in the stacks that it makes for
 * them. A judgement is what those options say; pipelines that agree share it.
 */
#ifndef NOCTULE_JUDGEMENT_H
#define NOCTULE_JUDGEMENT_H

#include "config/config.h"

#include <stdint.h>

#define JUDGEMENT_DERIVED 1 /* derived images are images */
#define JUDGEMENT_NEWEST  2 /* the newest of duplicates is taken */
#define JUDGEMENTS        4

static inline int
judgement_of(const struct conf_pipeline *pipeline)
{
    return (pipeline->derived ? JUDGEMENT_DERIVED : 0) |
           (pipeline->duplicates == CONF_NEWEST ? JUDGEMENT_NEWEST : 0);
}

/* For people. */
static inline const char *
judgement_options(int64_t judgement)
{
    static const char *const options[JUDGEMENTS] = {"", "derived", "duplicates",
                                                    "derived, duplicates"};
    return judgement > 0 && judgement < JUDGEMENTS ? options[judgement] : "";
}

#endif
