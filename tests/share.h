/*
 * share.h - how much of a test's many like cases runs: one in NOCTULE_TEST_SHARE (all without it).
 * A sanitizer finds a stray read or a race in the first few, and takes ten times as long for each;
 * tests/run.sh says how many, and runs them all at night.
 */
#ifndef NOCTULE_TEST_SHARE_H
#define NOCTULE_TEST_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline unsigned
test_share(void)
{
    const char *text = getenv("NOCTULE_TEST_SHARE");
    int share = text ? atoi(text) : 1;
    return share > 0 ? (unsigned)share : 1;
}

/* Does this case run? Whatever the share, case 0 does. */
static inline bool
test_share_has(uint64_t number)
{
    return number % test_share() == 0;
}

#endif
