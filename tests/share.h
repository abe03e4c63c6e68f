/*
 * share.h - how much of a test's many similar cases runs: one in NOCTULE_TEST_SHARE (default 1), which begin at another
 * case in each NOCTULE_TEST_TURN (1 to 4). A sanitizer finds a stray read or a race in the first few, and takes ten times
 * as long for each. tests/run.sh sets both, so that any four landings run one in seven, and runs all cases at night.
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

/* 0 to 3, or -1 if all turns run. */
static inline int
test_turn(void)
{
    const char *text = getenv("NOCTULE_TEST_TURN");
    int turn = text ? atoi(text) : 0;
    return turn >= 1 && turn <= 4 ? turn - 1 : -1;
}

/* The first case of a loop whose step is test_share(). */
static inline unsigned
test_share_first(void)
{
    return test_turn() > 0 ? test_share() * (unsigned)test_turn() / 4 : 0;
}

/* Returns whether this case runs. Case 0 always does. */
static inline bool
test_share_has(uint64_t number)
{
    return number == 0 || number % test_share() == test_share_first();
}

/* Returns whether this case runs, of cases that take seconds each: any four landings run all. */
static inline bool
test_turn_has(uint64_t number)
{
    return test_turn() < 0 || number % 4 == (unsigned)test_turn();
}

#endif
