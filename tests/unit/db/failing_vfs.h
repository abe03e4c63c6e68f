/*
 * failing_vfs.h - a shim between SQLite and its files. The n-th write, sync or truncation fails,
 * once or from then on. Syncs that do not fail are skipped: the tests do not cut the power.
 */
#ifndef NOCTULE_TEST_DB_FAILING_VFS_H
#define NOCTULE_TEST_DB_FAILING_VFS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

static struct {
    int countdown; /* calls until the one that fails; 0: no call fails */
    bool for_good;
    int error; /* SQLITE_FULL or SQLITE_IOERR */
    int failures;
} failing;

struct failing_file {
    sqlite3_file base;
    sqlite3_file *real; /* follows this struct */
};

static sqlite3_file *
failing_real(sqlite3_file *file)
{
    return ((struct failing_file *)file)->real;
}

static int
failing_due(void)
{
    if (failing.countdown == 0 || --failing.countdown > 0)
        return SQLITE_OK;
    failing.failures++;
    failing.countdown = failing.for_good;
    return failing.error;
}

static int
failing_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    int rc = failing_due();
    /* Half of it is written, as on a disk that fills up. */
    if (rc != SQLITE_OK && size > 1)
        failing_real(file)->pMethods->xWrite(failing_real(file), bytes, size / 2, offset);
    return rc ? rc : failing_real(file)->pMethods->xWrite(failing_real(file), bytes, size, offset);
}

static int
failing_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return failing_due() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int
failing_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return failing_due() ? SQLITE_IOERR_TRUNCATE : failing_real(file)->pMethods->xTruncate(failing_real(file), size);
}

#define FORWARD(name, parameters, arguments)                                                                           \
    static int failing_##name parameters                                                                               \
    {                                                                                                                  \
        return failing_real(file)->pMethods->name arguments;                                                           \
    }
FORWARD(xRead, (sqlite3_file * file, void *bytes, int size, sqlite3_int64 offset),
        (failing_real(file), bytes, size, offset))
FORWARD(xClose, (sqlite3_file * file), (failing_real(file)))
FORWARD(xFileSize, (sqlite3_file * file, sqlite3_int64 *size), (failing_real(file), size))
FORWARD(xLock, (sqlite3_file * file, int lock), (failing_real(file), lock))
FORWARD(xUnlock, (sqlite3_file * file, int lock), (failing_real(file), lock))
FORWARD(xCheckReservedLock, (sqlite3_file * file, int *held), (failing_real(file), held))
FORWARD(xFileControl, (sqlite3_file * file, int op, void *argument), (failing_real(file), op, argument))
FORWARD(xSectorSize, (sqlite3_file * file), (failing_real(file)))
FORWARD(xDeviceCharacteristics, (sqlite3_file * file), (failing_real(file)))
FORWARD(xShmMap, (sqlite3_file * file, int region, int size, int extend, void volatile **map),
        (failing_real(file), region, size, extend, map))
FORWARD(xShmLock, (sqlite3_file * file, int offset, int count, int flags), (failing_real(file), offset, count, flags))
FORWARD(xShmUnmap, (sqlite3_file * file, int remove), (failing_real(file), remove))
#undef FORWARD

static void
failing_xShmBarrier(sqlite3_file *file)
{
    failing_real(file)->pMethods->xShmBarrier(failing_real(file));
}

static const sqlite3_io_methods failing_methods = {
    .iVersion = 2,
    .xClose = failing_xClose,
    .xRead = failing_xRead,
    .xWrite = failing_write,
    .xTruncate = failing_truncate,
    .xSync = failing_sync,
    .xFileSize = failing_xFileSize,
    .xLock = failing_xLock,
    .xUnlock = failing_xUnlock,
    .xCheckReservedLock = failing_xCheckReservedLock,
    .xFileControl = failing_xFileControl,
    .xSectorSize = failing_xSectorSize,
    .xDeviceCharacteristics = failing_xDeviceCharacteristics,
    .xShmMap = failing_xShmMap,
    .xShmLock = failing_xShmLock,
    .xShmBarrier = failing_xShmBarrier,
    .xShmUnmap = failing_xShmUnmap,
};

static int
failing_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    sqlite3_vfs *real_vfs = vfs->pAppData;
    struct failing_file *shim = (struct failing_file *)file;
    shim->real = (sqlite3_file *)(shim + 1);
    shim->base.pMethods = NULL;
    int rc = real_vfs->xOpen(real_vfs, name, shim->real, flags, out_flags);
    if (rc == SQLITE_OK)
        shim->base.pMethods = &failing_methods;
    return rc;
}

/* Puts the shim before the default file system of this process, for its lifetime. */
static void
failing_vfs_install(void)
{
    static sqlite3_vfs shim;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    shim = *real;
    shim.pNext = NULL;
    shim.zName = "failing";
    shim.szOsFile = (int)sizeof(struct failing_file) + real->szOsFile;
    shim.xOpen = failing_open;
    shim.pAppData = real;
    sqlite3_vfs_register(&shim, 1);
}

#endif
