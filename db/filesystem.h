/*
 * filesystem.h - finds file systems that SQLite must not use.
 *
 * WAL needs locks and shared memory that all processes see alike. Network file systems and FUSE do
 * not guarantee that, and databases on them get lost.
 */
#ifndef NOCTULE_DB_FILESYSTEM_H
#define NOCTULE_DB_FILESYSTEM_H

/* Returns the name of the network, cluster or FUSE file system with this f_type of statfs(); NULL for a local one. */
const char *filesystem_remote_name(unsigned long type);

/*
 * Checks the file system of the folder of `path`; the file itself need not exist. Returns 0 if it
 * is local, -EREMOTE with its name in *name, or the errno of statfs().
 */
int filesystem_check(const char *path, const char **name);

#endif
