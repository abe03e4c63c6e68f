/*
 * share.h - finds installed data files, relative to the running program: BIN/../share/noctule.
 *
 * This works for every installation prefix, and in a build folder, which contains links to the
 * sources.
 */
#ifndef NOCTULE_SHARE_H
#define NOCTULE_SHARE_H

/* Returns the path of a data file or folder, such as "presets"; NULL if there is no memory or no
 * /proc. The caller must free the path. */
char *share_path(const char *name);

#endif
