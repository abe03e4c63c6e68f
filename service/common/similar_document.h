/*
 * similar_document.h - the answer of a search for similar textures, as the command line and the API print it, and the
 * words that they read.
 */
#ifndef NOCTULE_SERVICE_COMMON_SIMILAR_DOCUMENT_H
#define NOCTULE_SERVICE_COMMON_SIMILAR_DOCUMENT_H

#include "db/report_similar.h"

#define SIMILAR_MEANING "Similar means near in these numbers. It does not mean the same disease."

void similar_to_json(const struct report_table *table, const struct report_similar_found *found,
                     const struct report_similar_query *query, FILE *out);
/* RFC 4180. */
void similar_to_csv(const struct report_table *table, FILE *out);
/* Writes the numbers of regions that were compared and left out. */
void similar_put_counts(const struct report_similar_found *found, FILE *out);

/* Reads "any", or percents of 0 to 100, into the query. Returns 0 or -EINVAL. */
int similar_read_spacing(const char *text, struct report_similar_query *query);
/* Returns the place of a word in a list up to NULL; `fallback` for NULL; -1 for another word. */
int similar_find_word(const char *const *words, const char *word, int fallback);

#endif
