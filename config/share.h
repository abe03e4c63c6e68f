/*
 * share.h - what is installed beside the programs, by where the running one lies: BIN/../share/noctule.
 *
 * So it is found whatever the prefix was, and in a build folder, which links to the sources there.
 */
#ifndef NOCTULE_SHARE_H
#define NOCTULE_SHARE_H

/* The path of a file or folder of it ("presets"), malloc'd; NULL: no memory, or no /proc. */
char *share_path(const char *name);

#endif
