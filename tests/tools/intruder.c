/*
 * intruder.c - a library that tests preload into noctuled: acts like a child process under an attacker's control.
 *
 * NOCTULE_DEEDS names a file with one deed per line, NAME WHAT [WHERE], read at the start. On SIGUSR2 the process
 * does all deeds and logs each result: event=intruder.deed pid=N deed=NAME errno=N (0: it succeeded). WHAT is one of
 *   read write list      an existing path      make         a new file, which is removed again
 *   connect listen       a TCP port            talk         to the path of a socket
 *   run                  a file that is not a program   fork         a process
 *   trace signal         the parent
 *   mount chmod          a missing path
 *
 * NOCTULE_KERNEL="LANDLOCK SECCOMP" imitates an older kernel. LANDLOCK is its Landlock version (0: no Landlock).
 * SECCOMP is 1 with seccomp, 0 without. LANDLOCK -2 or SECCOMP 2: present, but rejects every rule.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEEDS 64

struct deed {
    char name[48], what[16], where[256];
};

static struct deed deeds[DEEDS];
static int deed_count;
static long landlock_version = -1, has_seccomp = 1; /* -1: unchanged */

/* ------------------------------------------------------------------------------ the kernel ---- */

/* Returns the errno of the imitated kernel for this call; 0: make the call. */
static int
kernel_refuses(long number, long operation)
{
    if ((number == SYS_landlock_create_ruleset && landlock_version == 0) || (number == SYS_seccomp && !has_seccomp))
        return ENOSYS;
    if ((number == SYS_landlock_restrict_self && landlock_version == -2) ||
        (number == SYS_seccomp && has_seccomp == 2 && operation == SECCOMP_SET_MODE_FILTER))
        return EINVAL;
    return 0;
}

long
syscall(long number, ...)
{
    static long (*next)(long, ...);
    long given[6];
    va_list more;
    va_start(more, number);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        given[i] = va_arg(more, long);
    va_end(more);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    const bool asks_version = number == SYS_landlock_create_ruleset && given[2] == 1;
    const int refused = kernel_refuses(number, given[0]);
    if (refused) {
        errno = refused;
        return -1;
    }
    const long rc = next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    return asks_version && landlock_version > 0 && rc > landlock_version ? landlock_version : rc;
}

/* ------------------------------------------------------------------------------- the deeds ---- */

static int
ended(long rc)
{
    return rc < 0 ? errno : 0;
}

static int
open_and_close(const char *path, int flags)
{
    const int fd = open(path, flags | O_CLOEXEC, 0600), error = ended(fd);
    if (fd >= 0)
        close(fd);
    return error;
}

static int
make(const char *path)
{
    const int error = open_and_close(path, O_WRONLY | O_CREAT | O_EXCL);
    if (!error)
        unlink(path);
    return error;
}

static int
use_port(const char *port, bool listens)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    const int error = ended((listens ? bind : connect)(fd, (const struct sockaddr *)&address, sizeof address));
    close(fd);
    return error;
}

static int
talk(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    const int error = ended(connect(fd, (const struct sockaddr *)&address, sizeof address));
    close(fd);
    return error;
}

static int
have_a_child(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    const int error = ended(pid);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return error;
}

/* Treats the error of a harmless target as success, because the call was allowed. */
static int
but(int harmless, int error)
{
    return error == harmless ? 0 : error;
}

static int
do_deed(const struct deed *deed)
{
    const char *what = deed->what, *where = deed->where;
    char *const arguments[] = {NULL};
    if (strcmp(what, "read") == 0)
        return open_and_close(where, O_RDONLY);
    if (strcmp(what, "write") == 0)
        return open_and_close(where, O_WRONLY);
    if (strcmp(what, "list") == 0)
        return open_and_close(where, O_RDONLY | O_DIRECTORY);
    if (strcmp(what, "make") == 0)
        return make(where);
    if (strcmp(what, "connect") == 0 || strcmp(what, "listen") == 0)
        return use_port(where, what[0] == 'l');
    if (strcmp(what, "talk") == 0)
        return talk(where);
    if (strcmp(what, "run") == 0)
        return but(ENOEXEC, ended(execve(where, arguments, arguments)));
    if (strcmp(what, "fork") == 0)
        return have_a_child();
    if (strcmp(what, "trace") == 0)
        return but(ESRCH, ended(ptrace(PTRACE_PEEKDATA, getppid(), NULL, NULL)));
    if (strcmp(what, "signal") == 0)
        return ended(kill(getppid(), 0));
    if (strcmp(what, "mount") == 0)
        return but(ENOENT, ended(mount("x", "/nowhere", "tmpfs", 0, NULL)));
    if (strcmp(what, "chmod") == 0)
        return but(ENOENT, ended(chmod("/nowhere", 0777)));
    return ENOTSUP;
}

static void
on_signal(int number)
{
    char line[256];
    const int before = errno;
    (void)number;
    for (int i = 0; i < deed_count; i++) {
        const int error = do_deed(&deeds[i]);
        const int length = snprintf(line, sizeof line, "level=debug event=intruder.deed pid=%d deed=%s errno=%d\n",
                                    (int)getpid(), deeds[i].name, error);
        if (write(STDERR_FILENO, line, (size_t)length) < 0)
            _exit(1);
    }
    errno = before;
}

__attribute__((constructor)) static void
intruder_begin(void)
{
    const char *kernel = getenv("NOCTULE_KERNEL"), *file = getenv("NOCTULE_DEEDS");
    if (kernel)
        sscanf(kernel, "%ld %ld", &landlock_version, &has_seccomp);
    FILE *told = file ? fopen(file, "re") : NULL;
    char line[400];
    while (told && deed_count < DEEDS && fgets(line, sizeof line, told)) {
        struct deed *deed = &deeds[deed_count];
        if (sscanf(line, "%47s %15s %255s", deed->name, deed->what, deed->where) >= 2)
            deed_count++;
    }
    if (told)
        fclose(told);
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (deed_count > 0)
        sigaction(SIGUSR2, &action, NULL);
}
