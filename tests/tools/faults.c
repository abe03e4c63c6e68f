/*
 * faults.c - a library that a test preloads into noctuled: calls that fail, and a wall clock that jumps.
 *
 * NOCTULE_FAULT="ROLE CALL N ERRNO [always]": in processes of ROLE (daemon, or what stands after --role) the Nth CALL
 * from the start fails with the errno ERRNO (a number), and with "always" every one after it. CALL is one of
 *   open write fsync rename mkdir unlink   on what lies below the folder NOCTULE_FAULT_UNDER
 *   malloc                                 anything allocated
 * NOCTULE_FAULT_HIT names a file that is made when it happens. Without "always" it happens once for all processes:
 * while that file is there nothing fails again.
 *
 * NOCTULE_CLOCK names a file of 8 bytes: nanoseconds, in the machine's byte order, that the wall clock is ahead. Whoever
 * writes there makes the clock of every process jump; the monotonic clock goes on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* What the C library calls its own allocators. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static struct {
    char call[16], under[PATH_MAX], hit[PATH_MAX];
    long nth;
    int errno_value;
    bool always;
} fault;

static atomic_long fault_calls;
static _Atomic(const volatile int64_t *) clock_ahead;

/* Bytes of a file of /proc, by system calls alone: nothing here may allocate. */
static size_t
proc_read(const char *path, char *buffer, size_t size)
{
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read((int)fd, buffer, size);
    close((int)fd);
    return length > 0 ? (size_t)length : 0;
}

/* Is this process one of the role? */
static bool
role_is(const char *role)
{
    char line[4096];
    size_t length = proc_read("/proc/self/cmdline", line, sizeof line - 1);
    line[length] = 0;
    const char *own = "daemon";
    for (size_t at = 0; at < length; at += strlen(line + at) + 1)
        if (strcmp(line + at, "--role") == 0)
            own = line + at + strlen("--role") + 1;
    return strcmp(own, role) == 0;
}

static void
clock_map(const char *path)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        atomic_store(&clock_ahead, map);
}

__attribute__((constructor)) static void
faults_begin(void)
{
    const char *clock = getenv("NOCTULE_CLOCK"), *told = getenv("NOCTULE_FAULT");
    if (clock)
        clock_map(clock);
    char role[16], call[16], always[8] = "";
    long nth;
    int errno_value;
    if (!told || sscanf(told, "%15s %15s %ld %d %7s", role, call, &nth, &errno_value, always) < 4 ||
        !role_is(role))
        return;
    const char *under = getenv("NOCTULE_FAULT_UNDER"), *hit = getenv("NOCTULE_FAULT_HIT");
    snprintf(fault.under, sizeof fault.under, "%s", under ? under : "/");
    snprintf(fault.hit, sizeof fault.hit, "%s", hit ? hit : "");
    fault.nth = nth;
    fault.errno_value = errno_value;
    fault.always = strcmp(always, "always") == 0;
    memcpy(fault.call, call, sizeof call); /* last: this begins it */
}

/* Marks that it happens; false where it has happened once and is to happen no more. */
static bool
fault_mark(void)
{
    long fd =
        syscall(SYS_openat, AT_FDCWD, fault.hit, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0)
        close((int)fd);
    return fd >= 0 || fault.always;
}

/* Counts a call; true, with errno set, where it is to fail. */
static bool
fails(const char *call)
{
    if (strcmp(fault.call, call) != 0)
        return false;
    long count = atomic_fetch_add(&fault_calls, 1) + 1;
    if (count < fault.nth || (count > fault.nth && !fault.always) || !fault_mark())
        return false;
    errno = fault.errno_value;
    return true;
}

static bool
is_under(const char *path)
{
    return strncmp(path, fault.under, strlen(fault.under)) == 0;
}

static bool
fails_at_path(const char *call, const char *path)
{
    return fault.call[0] && is_under(path) && fails(call);
}

/* Paths that are relative to a folder are told by the folder. */
static bool
fails_at(const char *call, int fd, const char *path)
{
    if (!fault.call[0] || strcmp(fault.call, call) != 0)
        return false;
    if (path && (path[0] == '/' || fd == AT_FDCWD))
        return fails_at_path(call, path);
    char name[32], target[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = 0;
    return fails_at_path(call, target);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static mode_t
mode_of(int flags, va_list more)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

int
openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    if (fails_at("open", folder, path))
        return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int
open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    if (fails_at("open", AT_FDCWD, path))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

FILE *
fopen(const char *path, const char *mode)
{
    return fails_at("open", AT_FDCWD, path) ? NULL : NEXT(fopen)(path, mode);
}

FILE *
fopen64(const char *path, const char *mode)
{
    return fails_at("open", AT_FDCWD, path) ? NULL : NEXT(fopen64)(path, mode);
}

ssize_t
write(int fd, const void *data, size_t size)
{
    return fails_at("write", fd, NULL) ? -1 : NEXT(write)(fd, data, size);
}

ssize_t
pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return fails_at("write", fd, NULL) ? -1 : NEXT(pwrite)(fd, data, size, offset);
}

ssize_t
pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    return fails_at("write", fd, NULL) ? -1 : NEXT(pwrite64)(fd, data, size, offset);
}

ssize_t
writev(int fd, const struct iovec *parts, int count)
{
    return fails_at("write", fd, NULL) ? -1 : NEXT(writev)(fd, parts, count);
}

ssize_t
copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t size,
                unsigned flags)
{
    return fails_at("write", out, NULL)
               ? -1
               : NEXT(copy_file_range)(in, in_offset, out, out_offset, size, flags);
}

int
ftruncate(int fd, off_t size)
{
    return fails_at("write", fd, NULL) ? -1 : NEXT(ftruncate)(fd, size);
}

int
fsync(int fd)
{
    return fails_at("fsync", fd, NULL) ? -1 : NEXT(fsync)(fd);
}

int
fdatasync(int fd)
{
    return fails_at("fsync", fd, NULL) ? -1 : NEXT(fdatasync)(fd);
}

int
rename(const char *from, const char *to)
{
    return fails_at("rename", AT_FDCWD, to) ? -1 : NEXT(rename)(from, to);
}

int
renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return fails_at("rename", to_folder, to) ? -1
                                             : NEXT(renameat)(from_folder, from, to_folder, to);
}

int
renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return fails_at("rename", to_folder, to)
               ? -1
               : NEXT(renameat2)(from_folder, from, to_folder, to, flags);
}

int
link(const char *from, const char *to)
{
    return fails_at("rename", AT_FDCWD, to) ? -1 : NEXT(link)(from, to);
}

int
linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return fails_at("rename", to_folder, to)
               ? -1
               : NEXT(linkat)(from_folder, from, to_folder, to, flags);
}

int
mkdir(const char *path, mode_t mode)
{
    return fails_at("mkdir", AT_FDCWD, path) ? -1 : NEXT(mkdir)(path, mode);
}

int
mkdirat(int folder, const char *path, mode_t mode)
{
    return fails_at("mkdir", folder, path) ? -1 : NEXT(mkdirat)(folder, path, mode);
}

int
unlink(const char *path)
{
    return fails_at("unlink", AT_FDCWD, path) ? -1 : NEXT(unlink)(path);
}

int
unlinkat(int folder, const char *path, int flags)
{
    return fails_at("unlink", folder, path) ? -1 : NEXT(unlinkat)(folder, path, flags);
}

void *
malloc(size_t size)
{
    return fails("malloc") ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
    return fails("malloc") ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
    return fails("malloc") ? NULL : __libc_realloc(old, size);
}

static int64_t
ahead(void)
{
    const volatile int64_t *map = atomic_load(&clock_ahead);
    return map ? *map : 0;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, clock, now) < 0)
        return -1;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
        int64_t at = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + ahead();
        now->tv_sec = at / 1000000000;
        now->tv_nsec = at % 1000000000;
    }
    return 0;
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    *now = (struct timeval){at.tv_sec, at.tv_nsec / 1000};
    return 0;
}

time_t
time(time_t *seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (seconds)
        *seconds = at.tv_sec;
    return at.tv_sec;
}
