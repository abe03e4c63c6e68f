/*
 * faults.c - a library that tests preload into noctuled to make calls fail and to move the clocks.
 *
 * NOCTULE_FAULT="ROLE CALL N ERRNO [always], ...": in processes of ROLE (daemon, or the value of --role) the Nth CALL
 * from the start fails with the errno ERRNO (a number). With "always", every later one fails, too. CALL is one of
 *   open read write truncate fsync rename mkdir unlink   on paths below the folder NOCTULE_FAULT_UNDER
 *   malloc                                               any allocation or mapping
 *   descriptor                                           creation or acceptance of sockets, pipes and the like
 *   fork                                                 processes and threads
 *   connect send receive                                 on sockets
 * NOCTULE_FAULT_HIT names a file with 8 bytes per fault: 0, or the place of its first failure (below). Without
 * "always" a fault happens once for all processes. NOCTULE_FAULT_STACK also prints the stack at that time.
 *
 * NOCTULE_FAULT_COUNTS names a file of the size of struct counted. It receives the maximum number of calls of each
 * kind per process of each role. There are a hundred thousand calls of malloc, most of them from the same places, so
 * only the first from each place is kept. A place is a hash of the stack. For "always" it covers only the innermost
 * frames, because the effects of a lasting failure hardly depend on the callers. Address randomization must be off,
 * so that places are the same in all processes.
 *
 * NOCTULE_CLOCK names a file of two 8-byte integers in the machine's byte order, both in nanoseconds. The first moves
 * the wall clock alone, as if it were set. The second moves all clocks, as if that time had passed. A test that writes
 * there moves the clocks of every process. Timed waits of poll, epoll and conditions end within 50 ms of the write.
 *
 * NOCTULE_HURRY=N divides the send and receive timeouts of sockets by N.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The allocators of the C library, by its own names. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

enum call {
    NONE,
    OPEN,
    READ,
    WRITE,
    TRUNCATE,
    FSYNC,
    RENAME,
    MKDIR,
    UNLINK,
    MALLOC,
    DESCRIPTOR,
    FORK,
    CONNECT,
    SEND,
    RECEIVE,
    CALLS
};

static const char *const call_names[CALLS] = {"",           "open",   "read",    "write",  "truncate",
                                              "fsync",      "rename", "mkdir",   "unlink", "malloc",
                                              "descriptor", "fork",   "connect", "send",   "receive"};
static const char *const role_names[] = {"daemon", "intake", "courier", "worker", "page"};
#define ROLES      (sizeof role_names / sizeof role_names[0])

#define PLACES     32768 /* of malloc per role; a power of two */
#define FRAMES_ALL 40

static const int place_frames[2] = {FRAMES_ALL, 8}; /* once, always */

static struct counted {
    _Atomic int64_t most[CALLS];

    struct place {
        _Atomic uint64_t place; /* 0: unused */
        int64_t first;
    } places[2][PLACES];
} * counted; /* the part of this process's role; the file has one per role; NULL: no counting */

#define FAULTS 64

/* The faults of this process's role. */
static struct fault {
    enum call call;
    _Atomic uint64_t *hit; /* mapped at the start, because a confined process cannot map it */
    long nth;
    int errno_value;
    bool always;
} faults[FAULTS];

static size_t fault_count;
static unsigned faulty; /* a bit for each kind of call with a fault; 0 while no call may fail */
static bool tells_stack;
static __thread bool inside; /* the stack walk itself may allocate */
static const char *heap_spoilt_by;
static char is_below[PATH_MAX];

static atomic_long calls_made[CALLS];
static _Atomic(const volatile int64_t *) clock_moves; /* of the wall clock, of all clocks */
static int hurry = 1;

/* Reads a file of /proc by system calls only, because it must not allocate. Returns the number of bytes. */
static size_t
proc_read(const char *path, char *buffer, size_t size)
{
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = syscall(SYS_read, (int)fd, buffer, size);
    close((int)fd);
    return length > 0 ? (size_t)length : 0;
}

/* The code of this library, whose frames are not part of a place. */
static const char *own_begin, *own_end;

static int
own_find(struct dl_phdr_info *library, size_t size, void *context)
{
    (void)size, (void)context;
    const char *here = (const char *)(uintptr_t)own_find;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const char *begin = (const char *)(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
        const char *end = begin + library->dlpi_phdr[i].p_memsz;
        if (here < begin || here >= end)
            continue;
        own_begin = begin;
        own_end = end;
        return 1;
    }
    return 0;
}

/* Collects the callers of this library. Returns the number of frames. */
static int
stack_walk(void *frames[FRAMES_ALL])
{
    inside = true;
    const int depth = backtrace(frames, FRAMES_ALL);
    inside = false;
    int own = 0;
    while (own < depth && (const char *)frames[own] >= own_begin && (const char *)frames[own] < own_end)
        own++;
    memmove(frames, frames + own, (size_t)(depth - own) * sizeof *frames);
    return depth - own;
}

/* Returns the place of a stack, from at most `most` frames; never 0. */
static uint64_t
place_of(void *const *frames, int depth, int most)
{
    uint64_t place = 14695981039346656037u;
    for (int i = 0; i < depth && i < most; i++)
        place = (place ^ (uint64_t)(uintptr_t)frames[i]) * 1099511628211u;
    return place | 1;
}

/* Finds the value of --role; "daemon" without it. */
static void
role_find(char role[16])
{
    char line[4096];
    size_t length = proc_read("/proc/self/cmdline", line, sizeof line - 1);
    line[length] = 0;
    const char *own = "daemon";
    for (size_t at = 0; at < length; at += strlen(line + at) + 1)
        if (strcmp(line + at, "--role") == 0)
            own = line + at + strlen("--role") + 1;
    snprintf(role, 16, "%s", own);
}

static void *
map_file(const char *path, size_t size, bool writable)
{
    const int flags = writable ? O_RDWR | O_CREAT : O_RDONLY;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    if (writable && syscall(SYS_ftruncate, fd, size) < 0)
        _exit(EXIT_FAILURE);
    void *map = (void *)syscall(SYS_mmap, NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

static void
counts_begin(const char *path, const char *role)
{
    struct counted *all = map_file(path, ROLES * sizeof *all, true);
    for (size_t i = 0; all && i < ROLES; i++)
        if (strcmp(role_names[i], role) == 0)
            counted = all + i;
}

/*
 * Returns the name of a frame's library, or NULL for the C library. NSS is an exception, because it asserts that
 * allocations succeed (nss_database.c).
 */
static const char *
library_of(void *frame)
{
    Dl_info found;
    const char *name = dladdr(frame, &found) ? strrchr(found.dli_fname, '/') : NULL;
    if (name && strstr(name, "/libc."))
        return found.dli_sname && strncmp(found.dli_sname, "__nss_", 6) == 0 ? "libnss.so" : NULL;
    return name ? name + 1 : NULL;
}

/* Checks for libseccomp, which leaves a corrupt heap if an allocation fails: the next allocation crashes. */
static void
heap_judge(void *const *frames, int depth)
{
    for (int i = 0; i < depth && !heap_spoilt_by; i++) {
        const char *library = library_of(frames[i]);
        if (library && strncmp(library, "libseccomp.", 11) == 0)
            heap_spoilt_by = library;
    }
}

/*
 * Reports a crash: the first library on the stack, or the one that corrupted the heap, and the stack. No call may
 * fail meanwhile.
 */
static void
death_tell(void)
{
    void *frames[FRAMES_ALL];
    char line[128];
    faulty = 0;
    const int depth = stack_walk(frames);
    const char *where = heap_spoilt_by;
    for (int i = 0; i < depth && !where; i++)
        where = library_of(frames[i]);
    snprintf(line, sizeof line, "faults: pid=%d dies in %s\n", (int)getpid(), where ? where : "");
    if (syscall(SYS_write, STDERR_FILENO, line, strlen(line)) >= 0)
        backtrace_symbols_fd(frames, depth, STDERR_FILENO);
}

static void
on_death(int number)
{
    death_tell();
    signal(number, SIG_DFL);
}

static enum call
call_of(const char *name)
{
    for (enum call i = 1; i < CALLS; i++)
        if (strcmp(call_names[i], name) == 0)
            return i;
    return NONE;
}

static void
fault_begin(const char *told, const char *own_role, _Atomic uint64_t *hit)
{
    char role[16], call[16], always[8] = "";
    struct fault *fault = &faults[fault_count];
    if (sscanf(told, "%15s %15s %ld %d %7[a-z]", role, call, &fault->nth, &fault->errno_value, always) < 4 ||
        strcmp(role, own_role) != 0)
        return;
    fault->call = call_of(call);
    fault->hit = hit;
    fault->always = strcmp(always, "always") == 0;
    fault_count++;
}

static void
faults_tell(const char *told, const char *own_role)
{
    const char *hit = getenv("NOCTULE_FAULT_HIT");
    _Atomic uint64_t *marks = hit ? map_file(hit, FAULTS * sizeof *marks, true) : NULL;
    for (size_t i = 0; told && i < FAULTS; i++) {
        fault_begin(told, own_role, marks ? marks + i : NULL);
        told = strchr(told, ',');
        told = told ? told + 1 : NULL;
    }
    if (fault_count == 0)
        return;
    tells_stack = getenv("NOCTULE_FAULT_STACK") != NULL;
    signal(SIGSEGV, on_death);
    signal(SIGBUS, on_death);
    signal(SIGABRT, on_death); /* the C library's own abort cannot be replaced */
    unsigned calls = 0;
    for (size_t i = 0; i < fault_count; i++)
        calls |= 1u << faults[i].call;
    faulty = calls; /* must be last: enables the faults */
}

__attribute__((constructor)) static void
faults_begin(void)
{
    const char *clock = getenv("NOCTULE_CLOCK"), *told = getenv("NOCTULE_FAULT");
    const char *counts = getenv("NOCTULE_FAULT_COUNTS"), *under = getenv("NOCTULE_FAULT_UNDER");
    char role[16];
    role_find(role);
    if (told || counts) {
        void *frames[FRAMES_ALL];
        dl_iterate_phdr(own_find, NULL);
        (void)stack_walk(frames); /* loads libraries for the stack walk, which could fail later */
    }
    if (clock)
        atomic_store(&clock_moves, map_file(clock, 2 * sizeof(int64_t), false));
    snprintf(is_below, sizeof is_below, "%s", under ? under : "/");
    if (getenv("NOCTULE_HURRY") && atoi(getenv("NOCTULE_HURRY")) > 1)
        hurry = atoi(getenv("NOCTULE_HURRY"));
    if (told)
        faults_tell(told, role);
    if (counts)
        counts_begin(counts, role);
}

static void
stack_tell(void)
{
    void *frames[FRAMES_ALL];
    const int depth = stack_walk(frames);
    inside = true;
    backtrace_symbols_fd(frames, depth, STDERR_FILENO);
    inside = false;
}

/* Marks the fault as hit. Returns false if it must not happen again. */
static bool
fault_mark(const struct fault *fault)
{
    bool first = false;
    if (fault->hit && atomic_load(fault->hit) == 0) {
        void *frames[FRAMES_ALL];
        const int depth = stack_walk(frames);
        uint64_t unmarked = 0;
        heap_judge(frames, depth);
        first =
            atomic_compare_exchange_strong(fault->hit, &unmarked, place_of(frames, depth, place_frames[fault->always]));
    }
    if (first && tells_stack)
        stack_tell();
    return first || fault->always;
}

/* Records the nth malloc if it is the first from its place. */
static void
place_note(struct place places[PLACES], uint64_t here, int64_t nth)
{
    for (size_t i = 0; i < PLACES; i++) {
        struct place *place = &places[(here + i) % PLACES];
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&place->place, &there, here))
            place->first = nth;
        if (there == 0 || there == here)
            break;
    }
}

static void
count_note(enum call call, int64_t count)
{
    if (atomic_load(&counted->most[call]) < count)
        atomic_store(&counted->most[call], count);
    if (call != MALLOC)
        return;
    void *frames[FRAMES_ALL];
    const int depth = stack_walk(frames);
    for (int always = 0; always < 2; always++)
        place_note(counted->places[always], place_of(frames, depth, place_frames[always]), count);
}

/* Returns whether this kind of call can fail or is counted. */
static bool
watched(enum call call)
{
    return (faulty >> call & 1) || counted;
}

/* Counts a call. Returns true and sets errno if it must fail. */
static bool
fails(enum call call)
{
    if (!watched(call) || inside)
        return false;
    const long count = atomic_fetch_add(&calls_made[call], 1) + 1;
    if (counted)
        count_note(call, count);
    for (size_t i = 0; i < fault_count && (faulty >> call & 1); i++) {
        const struct fault *fault = &faults[i];
        if (fault->call == call && (count == fault->nth || (count > fault->nth && fault->always)) &&
            fault_mark(fault)) {
            errno = fault->errno_value;
            return true;
        }
    }
    return false;
}

static bool
is_under(const char *path)
{
    return strncmp(path, is_below, strlen(is_below)) == 0;
}

static bool
fails_at_path(enum call call, const char *path)
{
    return is_under(path) && fails(call);
}

/* Finds the target of a descriptor: a path, or "socket:[...]" and the like. */
static bool
describe(int fd, char target[PATH_MAX])
{
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, target, PATH_MAX - 1);
    if (length < 0)
        return false;
    target[length] = 0;
    return true;
}

/* Checks a path; one that is relative to a folder counts as the folder. */
static bool
fails_at(enum call call, int fd, const char *path)
{
    char target[PATH_MAX];
    if (!watched(call))
        return false;
    if (path && (path[0] == '/' || fd == AT_FDCWD))
        return fails_at_path(call, path);
    return describe(fd, target) && fails_at_path(call, target);
}

/* Checks a transfer by a descriptor, to a file or to a peer. */
static bool
fails_by(enum call file, enum call socket, int fd)
{
    char target[PATH_MAX];
    if ((!watched(file) && !watched(socket)) || !describe(fd, target))
        return false;
    return strncmp(target, "socket:", 7) == 0 ? fails(socket) : fails_at_path(file, target);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* HOOK(type, name, (parameters), (arguments), result on failure, condition for failure) */
#define HOOK(type, name, parameters, arguments, failed, condition)                                                     \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static __typeof__(&name) next;                                                                                 \
        if (condition)                                                                                                 \
            return failed;                                                                                             \
        if (!next)                                                                                                     \
            next = NEXT(name);                                                                                         \
        return next arguments;                                                                                         \
    }

/* ------------------------------------------------------------------------------- files ------ */

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
    if (fails_at(OPEN, folder, path))
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
    if (fails_at(OPEN, AT_FDCWD, path))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

#define HOOK_FILE(type, name, parameters, arguments, failed, call, fd, path)                                           \
    HOOK(type, name, parameters, arguments, failed, fails_at(call, fd, path))

HOOK_FILE(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, OPEN, AT_FDCWD, path)
HOOK_FILE(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL, OPEN, AT_FDCWD, path)
HOOK_FILE(DIR *, opendir, (const char *path), (path), NULL, OPEN, AT_FDCWD, path)
HOOK_FILE(ssize_t, copy_file_range,
          (int in, off64_t *in_offset, int out, off64_t *out_offset, size_t size, unsigned flags),
          (in, in_offset, out, out_offset, size, flags), -1, WRITE, out, NULL)
HOOK_FILE(int, ftruncate, (int fd, off_t size), (fd, size), -1, TRUNCATE, fd, NULL)
HOOK_FILE(int, ftruncate64, (int fd, off64_t size), (fd, size), -1, TRUNCATE, fd, NULL)
HOOK_FILE(int, fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size), -1, TRUNCATE, fd,
          NULL)
HOOK_FILE(int, fallocate64, (int fd, int mode, off64_t offset, off64_t size), (fd, mode, offset, size), -1, TRUNCATE,
          fd, NULL)
HOOK_FILE(int, posix_fallocate, (int fd, off_t offset, off_t size), (fd, offset, size), errno, TRUNCATE, fd, NULL)
HOOK_FILE(int, posix_fallocate64, (int fd, off64_t offset, off64_t size), (fd, offset, size), errno, TRUNCATE, fd, NULL)
HOOK_FILE(int, fsync, (int fd), (fd), -1, FSYNC, fd, NULL)
HOOK_FILE(int, fdatasync, (int fd), (fd), -1, FSYNC, fd, NULL)
HOOK_FILE(int, rename, (const char *from, const char *to), (from, to), -1, RENAME, AT_FDCWD, to)
HOOK_FILE(int, renameat, (int from_folder, const char *from, int to_folder, const char *to),
          (from_folder, from, to_folder, to), -1, RENAME, to_folder, to)
HOOK_FILE(int, renameat2, (int from_folder, const char *from, int to_folder, const char *to, unsigned flags),
          (from_folder, from, to_folder, to, flags), -1, RENAME, to_folder, to)
HOOK_FILE(int, link, (const char *from, const char *to), (from, to), -1, RENAME, AT_FDCWD, to)
HOOK_FILE(int, linkat, (int from_folder, const char *from, int to_folder, const char *to, int flags),
          (from_folder, from, to_folder, to, flags), -1, RENAME, to_folder, to)
HOOK_FILE(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, MKDIR, AT_FDCWD, path)
HOOK_FILE(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), -1, MKDIR, folder, path)
HOOK_FILE(int, unlink, (const char *path), (path), -1, UNLINK, AT_FDCWD, path)
HOOK_FILE(int, rmdir, (const char *path), (path), -1, UNLINK, AT_FDCWD, path)
HOOK_FILE(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), -1, UNLINK, folder, path)

/* ------------------------------------------------------------------- bytes, descriptors ------ */

#define HOOK_BYTES(name, parameters, arguments, file, socket, fd)                                                      \
    HOOK(ssize_t, name, parameters, arguments, -1, fails_by(file, socket, fd))

HOOK_BYTES(read, (int fd, void *data, size_t size), (fd, data, size), READ, RECEIVE, fd)
HOOK_BYTES(pread, (int fd, void *data, size_t size, off_t offset), (fd, data, size, offset), READ, RECEIVE, fd)
HOOK_BYTES(pread64, (int fd, void *data, size_t size, off64_t offset), (fd, data, size, offset), READ, RECEIVE, fd)
HOOK_BYTES(readv, (int fd, const struct iovec *parts, int count), (fd, parts, count), READ, RECEIVE, fd)
HOOK_BYTES(recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags), READ, RECEIVE, fd)
HOOK_BYTES(recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), READ, RECEIVE, fd)
HOOK_BYTES(write, (int fd, const void *data, size_t size), (fd, data, size), WRITE, SEND, fd)
HOOK_BYTES(pwrite, (int fd, const void *data, size_t size, off_t offset), (fd, data, size, offset), WRITE, SEND, fd)
HOOK_BYTES(pwrite64, (int fd, const void *data, size_t size, off64_t offset), (fd, data, size, offset), WRITE, SEND, fd)
HOOK_BYTES(writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), WRITE, SEND, fd)
HOOK_BYTES(send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags), WRITE, SEND, fd)
HOOK_BYTES(sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), WRITE, SEND, fd)

#define HOOK_ANY(type, name, parameters, arguments, failed, call)                                                      \
    HOOK(type, name, parameters, arguments, failed, fails(call))

HOOK_ANY(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, DESCRIPTOR)
HOOK_ANY(int, socketpair, (int domain, int type, int protocol, int pair[2]), (domain, type, protocol, pair), -1,
         DESCRIPTOR)
HOOK_ANY(int, pipe, (int pair[2]), (pair), -1, DESCRIPTOR)
HOOK_ANY(int, pipe2, (int pair[2], int flags), (pair, flags), -1, DESCRIPTOR)
HOOK_ANY(int, accept, (int fd, struct sockaddr *address, socklen_t *size), (fd, address, size), -1, DESCRIPTOR)
HOOK_ANY(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags), (fd, address, size, flags), -1,
         DESCRIPTOR)
HOOK_ANY(int, epoll_create1, (int flags), (flags), -1, DESCRIPTOR)
HOOK_ANY(int, eventfd, (unsigned first, int flags), (first, flags), -1, DESCRIPTOR)
HOOK_ANY(int, inotify_init1, (int flags), (flags), -1, DESCRIPTOR)
HOOK_ANY(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), -1, DESCRIPTOR)
HOOK_ANY(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, DESCRIPTOR)
HOOK_ANY(int, dup, (int fd), (fd), -1, DESCRIPTOR)
HOOK_ANY(int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size), -1, CONNECT)
HOOK_ANY(pid_t, fork, (void), (), -1, FORK)
HOOK_ANY(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data),
         (thread, attributes, run, data), errno, FORK)

/* ------------------------------------------------------------------------------ memory ------ */

#ifndef NOCTULE_SANITIZED /* AddressSanitizer replaces these three */
void *
malloc(size_t size)
{
    return fails(MALLOC) ? NULL : __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
    return fails(MALLOC) ? NULL : __libc_calloc(count, size);
}

void *
realloc(void *old, size_t size)
{
    return fails(MALLOC) ? NULL : __libc_realloc(old, size);
}
#endif

HOOK_ANY(void *, reallocarray, (void *old, size_t count, size_t size), (old, count, size), NULL, MALLOC)
HOOK_ANY(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL, MALLOC)
HOOK_ANY(int, posix_memalign, (void **out, size_t alignment, size_t size), (out, alignment, size), ENOMEM, MALLOC)
HOOK_ANY(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
         (at, size, protection, flags, fd, offset), MAP_FAILED, MALLOC)
HOOK_ANY(void *, mmap64, (void *at, size_t size, int protection, int flags, int fd, off64_t offset),
         (at, size, protection, flags, fd, offset), MAP_FAILED, MALLOC)

/* ------------------------------------------------------------------------------- clock ------ */

#define SECOND_NS INT64_C(1000000000)
#define SLICE_MS  50 /* max delay until a timed wait notices that the clock has moved */

static int64_t
to_ns(const struct timespec *at)
{
    return (int64_t)at->tv_sec * SECOND_NS + at->tv_nsec;
}

static struct timespec
from_ns(int64_t at)
{
    return (struct timespec){.tv_sec = at / SECOND_NS, .tv_nsec = at % SECOND_NS};
}

/* Returns the offset of this clock. Clocks of CPU time do not move. */
static int64_t
moved_ns(clockid_t clock)
{
    const volatile int64_t *moves = atomic_load(&clock_moves);
    if (!moves)
        return 0;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return moves[0] + moves[1];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return moves[1];
    default:
        return 0;
    }
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, clock, now) < 0)
        return -1;
    const int64_t moved = moved_ns(clock);
    if (moved)
        *now = from_ns(to_ns(now) + moved);
    return 0;
}

static int64_t
now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return to_ns(&now);
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

#ifndef SYS_epoll_wait
#define SYS_epoll_wait SYS_epoll_pwait
#endif

/* Splits a timed wait into slices, so that it ends soon after the clock has moved past its end. */
struct slices {
    int64_t end; /* 0: one slice */
    int ms;      /* the next slice */
};

static struct slices
slices_of(int timeout_ms)
{
    if (timeout_ms <= SLICE_MS || !atomic_load(&clock_moves))
        return (struct slices){.ms = timeout_ms};
    const int64_t end = now_ns(CLOCK_MONOTONIC) + timeout_ms * INT64_C(1000000);
    return (struct slices){.end = end, .ms = SLICE_MS};
}

/* Returns whether there is another slice to wait after this one. */
static bool
slices_next(struct slices *slices)
{
    const int64_t left = slices->end ? slices->end - now_ns(CLOCK_MONOTONIC) : 0;
    slices->ms = left < SLICE_MS * INT64_C(1000000) ? (int)(left / 1000000) + 1 : SLICE_MS;
    return left > 0;
}

static int
wait_for_events(long call, int fd, struct epoll_event *events, int count, int timeout_ms, const sigset_t *mask)
{
    struct slices slices = slices_of(timeout_ms);
    int found;
    do
        found = (int)syscall(call, fd, events, count, slices.ms, mask, _NSIG / 8);
    while (found == 0 && slices_next(&slices));
    return found;
}

int
epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    return wait_for_events(SYS_epoll_wait, fd, events, count, timeout_ms, NULL);
}

int
epoll_pwait(int fd, struct epoll_event *events, int count, int timeout_ms, const sigset_t *mask)
{
    return wait_for_events(SYS_epoll_pwait, fd, events, count, timeout_ms, mask);
}

#ifdef SYS_poll
int
poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    struct slices slices = slices_of(timeout_ms);
    int found;
    do
        found = (int)syscall(SYS_poll, polled, count, slices.ms);
    while (found == 0 && slices_next(&slices));
    return found;
}
#endif

/* Some C libraries have two versions. dlsym() may find the older one, whose conditions have another layout. */
static void *
timedwait_find(void)
{
    static const char name[] = "pthread_cond_timedwait";
    void *found = dlsym(RTLD_NEXT, name); /* finds that of a sanitizer, too */
    void *newer = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return newer && found == dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5") ? newer : found;
}

/* Ends early, like a spurious wakeup, so that the caller checks its condition and waits again. */
int
pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                       const struct timespec *restrict end)
{
    static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!next)
        next = (__typeof__(next))timedwait_find();
    if (!atomic_load(&clock_moves))
        return next(condition, mutex, end);
    /* The clock of a condition cannot be read, but the wall clock is decades ahead of the monotonic one. */
    const clockid_t clock = end->tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const int64_t now = now_ns(clock), left = to_ns(end) - now;
    if (left <= 0)
        return ETIMEDOUT;
    const int64_t slice = left < SLICE_MS * INT64_C(1000000) ? left : SLICE_MS * INT64_C(1000000);
    const struct timespec until = from_ns(now - moved_ns(clock) + slice);
    const int error = next(condition, mutex, &until);
    return error == ETIMEDOUT && now_ns(clock) < to_ns(end) ? 0 : error;
}

/* ---------------------------------------------------------------------------- timeouts ------ */

int
setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
    struct timeval shorter;
    const bool is_timeout =
        level == SOL_SOCKET && length == sizeof shorter && (option == SO_RCVTIMEO || option == SO_SNDTIMEO);
    if (is_timeout && hurry > 1) {
        memcpy(&shorter, value, sizeof shorter);
        const int64_t micros = ((int64_t)shorter.tv_sec * 1000000 + shorter.tv_usec) / hurry;
        shorter = (struct timeval){micros / 1000000, micros % 1000000};
        value = &shorter;
    }
    return (int)syscall(SYS_setsockopt, fd, level, option, value, length);
}
