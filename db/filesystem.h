/*
 * filesystem.h - may SQLite live on this file system?
 *
 * WAL needs locks and shared memory that all processes see alike. Network file systems, and those
 * whose server is an ordinary process (FUSE), do not promise that, and lose databases.
 */
#ifndef NOCTULE_DB_FILESYSTEM_H
#define NOCTULE_DB_FILESYSTEM_H

/* The name of the network (or cluster, or FUSE) file system with this statfs f_type; NULL for a
 * local one. */
const char *filesystem_remote_name(unsigned long type);

/*
 * Looks at the folder of `path` (the file itself need not exist). 0 when it is local, -EREMOTE with
 * the name of the file system in *name, or the errno of statfs.
 */
int filesystem_check(const char *path, const char **name);

#endif
