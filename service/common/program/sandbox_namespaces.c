/* sandbox_namespaces.c - a sandbox by clone(2), for machines without bubblewrap. */
#include "service/common/program/sandbox_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
namespace_write(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const int rc = fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Maps the user and the group of this process to themselves. */
static int
namespace_map(uid_t user, gid_t group)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", (unsigned)user, (unsigned)user);
    snprintf(groups, sizeof groups, "%u %u 1", (unsigned)group, (unsigned)group);
    int rc = namespace_write("/proc/self/uid_map", users);
    if (!rc)
        rc = namespace_write("/proc/self/setgroups", "deny");
    return rc ? rc : namespace_write("/proc/self/gid_map", groups);
}

/* Landlock guards the files, so that only /proc and folders for temporary files are mounted. */
static int
namespace_mount(const struct sandbox_order *order)
{
    const unsigned long safe = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    const unsigned long bind = MS_BIND | MS_REC; /* the probe binds a folder that may have mounts in it */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", safe, NULL) < 0)
        return -errno;
    if (mount(order->places.shared, "/dev/shm", NULL, bind, NULL) < 0 && errno != ENOENT)
        return -errno;
    /* Not if a path of the program lies below /tmp. */
    bool uses_tmp = place_within(order->places.in, "/tmp");
    for (const char *const *given = order->places.given; *given; given++)
        uses_tmp = uses_tmp || place_within(*given, "/tmp");
    if (!uses_tmp && mount(order->places.temporary, "/tmp", NULL, bind, NULL) < 0)
        return -errno;
    return 0;
}

/* Process 1 of the namespaces. */
static _Noreturn void
namespace_main(const struct sandbox_order *order, struct places *places, int report, uid_t user, gid_t group)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int rc = namespace_map(user, group);
    if (!rc)
        rc = namespace_mount(order);
    const pid_t pid = rc ? -1 : fork();
    if (pid == 0) {
        rc = sandbox_prepare(order, report, -1);
        if (!rc)
            sandbox_exec(order, places);
        report = SANDBOX_REPORT_FD;
    }
    if (pid <= 0) {
        dprintf(pid == 0 ? STDERR_FILENO : order->output, "noctule: sandbox: %s\n", strerror(rc ? -rc : errno));
        (void)!write(report, "!", 1);
        _exit(127);
    }
    close_range(STDERR_FILENO + 1, ~0u, 0);
    _exit(sandbox_reap(pid));
}

pid_t
sandbox_namespaces(const struct sandbox_order *order, struct places *places, int report)
{
    const unsigned long flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
                                (order->host_network ? 0 : CLONE_NEWNET);
    const uid_t user = geteuid();
    const gid_t group = getegid();
    const pid_t pid = (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL); /* as fork(2) */
    if (pid == 0)
        namespace_main(order, places, report, user, group);
    return pid < 0 ? -errno : pid;
}
