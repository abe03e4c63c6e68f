/*
 * read.h - from libconfig's settings to structs, by the option table, and back to text; private to
 * config/.
 */
#ifndef NOCTULE_READ_H
#define NOCTULE_READ_H

#include "config/findings.h"
#include "config/options.h"

/*
 * Parses the source and fills `object` (zeroed before, of the section's size) with what it says and
 * the defaults. 0, -EINVAL or -ENOMEM with an error; clear the object with option_clear either way.
 * Relative paths are below *root, by the time that there are any (NULL: there are none). `prepare`
 * (may be NULL) changes the object before the section's own check sees it. All that is found goes to
 * `all` (may be NULL).
 */
int read_source(const struct source *source, const struct option_section *section, void *object,
                char *const *root, int (*prepare)(void *object, char *const *root),
                struct conf_findings *all, struct error *error);

/* The root folder as far as the source can be parsed; "" where it is not given. malloc'd; NULL: no memory. */
char *read_root(const struct source *source);

/* The object as text that read_source reads back to the same values, malloc'd; NULL: no memory.
 * `identity`: without what came later than the first UIDs and stands at its default. */
char *write_section(const struct option_section *section, const void *object, bool identity);

#endif
