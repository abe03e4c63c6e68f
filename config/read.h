/*
 * read.h - reads libconfig settings into structs by the option table, and writes structs as text;
 * private to config/.
 */
#ifndef NOCTULE_READ_H
#define NOCTULE_READ_H

#include "config/findings.h"
#include "config/options.h"

/*
 * Parses the source and fills `object` with its values and the defaults. The object must be zeroed
 * and have the section's size. Relative paths are relative to *root; a section without paths may
 * pass NULL. `prepare` (may be NULL) changes the object before the section's check. All findings
 * are added to `all` (may be NULL). Returns 0, or -EINVAL or -ENOMEM with an error. The caller must
 * clear the object with option_clear() in any case.
 */
int read_source(const struct source *source, const struct option_section *section, void *object,
                char *const *root, int (*prepare)(void *object, char *const *root),
                struct conf_findings *all, struct error *error);

/* Returns the root folder, as far as the source can be parsed; "" if it is not given, NULL if there
 * is no memory. The caller must free it. */
char *read_root(const struct source *source);

/* Returns the object as text, which read_source() reads back to the same values; NULL if there is
 * no memory. With `identity`, omits newer options at their default (option_row.later). The caller
 * must free the text. */
char *write_section(const struct option_section *section, const void *object, bool identity);

#endif
