#include "base/nearest.h"

#include <string.h>

#define NEAREST_LETTERS 63 /* longer words have no near name */

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits that turn the first i letters of one word into the first j of the other. */
struct letters {
    size_t costs[NEAREST_LETTERS + 1][NEAREST_LETTERS + 1];
};

/* Counts inserted, deleted, replaced and swapped neighbouring letters (Damerau 1964). */
static size_t
letters_distance(const char *a, const char *b)
{
    struct letters letters;
    const size_t rows = strlen(a), columns = strlen(b);
    if (rows > NEAREST_LETTERS || columns > NEAREST_LETTERS)
        return NEAREST_LETTERS;
    for (size_t i = 0; i <= rows; i++)
        letters.costs[i][0] = i;
    for (size_t j = 0; j <= columns; j++)
        letters.costs[0][j] = j;
    for (size_t i = 1; i <= rows; i++)
        for (size_t j = 1; j <= columns; j++) {
            const size_t replaced = letters.costs[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            size_t cost = least(replaced, 1 + least(letters.costs[i - 1][j], letters.costs[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost = least(cost, 1 + letters.costs[i - 2][j - 2]);
            letters.costs[i][j] = cost;
        }
    return letters.costs[rows][columns];
}

struct nearest
nearest_of(const char *word)
{
    /* Allow one edit per three letters, at most two. */
    const size_t length = strlen(word), slips = length < 3 ? 0 : length < 6 ? 1 : 2;
    return (struct nearest){.word = word, .distance = slips + 1};
}

void
nearest_try(struct nearest *nearest, const char *name)
{
    const size_t distance = letters_distance(nearest->word, name);
    if (distance >= nearest->distance)
        return;
    nearest->distance = distance;
    nearest->name = name;
}
