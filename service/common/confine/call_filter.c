#include "service/common/confine/call_filter.h"

#include "base/durable.h"
#include "base/test_hook.h"
#include "service/common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#ifndef PR_SET_VMA /* glibc uses it to name its memory mappings */
#define PR_SET_VMA 0x53564d41
#endif

#define STEPS    (CONFINE_STEP | CONFINE_GPU_STEP | CONFINE_PROGRAM_STEP)
#define COMPUTES (CONFINE_WORKER | CONFINE_GPU_WORKER | STEPS)
#define GPUS     (CONFINE_GPU_WORKER | CONFINE_GPU_STEP)
#define ALL      (CONFINE_INTAKE | CONFINE_COURIER | CONFINE_PAGE | CONFINE_PROGRAM_ROLE | COMPUTES)
#define BOXED    (CONFINE_BOXED | CONFINE_BOXED_NET)
#define PROGRAMS (CONFINE_PROGRAM | CONFINE_PROGRAM_NET | BOXED)
#define NAMES    4096

/* System calls by the names of the manual's section 2, separated by spaces. Names that this kernel
 * does not know are skipped. */
struct call_row {
    unsigned roles;
    const char *names;
};

static const struct call_row allowed_calls[] = {
    {ALL, "read write readv writev pread64 pwrite64 preadv pwritev lseek close dup dup2 dup3 fcntl flock"},
    {ALL, "open openat stat lstat fstat newfstatat statx statfs fstatfs access faccessat "
          "faccessat2 readlink readlinkat "
          "getdents64 getcwd"},
    {ALL, "fsync fdatasync ftruncate fallocate fadvise64 copy_file_range sendfile sync_file_range"},
    {ALL, "mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 utimensat"},
    {ALL, "mmap munmap mremap mprotect madvise brk membarrier"},
    {ALL, "futex set_robust_list get_robust_list rseq sched_yield sched_getaffinity getcpu exit "
          "exit_group restart_syscall"},
    {ALL, "rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack getpid getppid gettid getuid geteuid getgid getegid"},
    {ALL, "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage "
          "sysinfo uname getrandom "
          "getrlimit"},
    {ALL, "epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd2 pipe2 poll ppoll select pselect6"},
    /* On open descriptors, including the pipe to the daemon. */
    {ALL, "sendto recvfrom sendmsg recvmsg shutdown getsockopt setsockopt getsockname getpeername"},
    {CONFINE_INTAKE, "bind listen accept accept4 inotify_init1 inotify_add_watch inotify_rm_watch syncfs symlinkat"},
    {CONFINE_INTAKE | CONFINE_COURIER | STEPS,
     "linkat"}, /* to create without overwriting, on file systems that lack RENAME_NOREPLACE */
    {CONFINE_COURIER, "connect sendmmsg recvmmsg"},
    {CONFINE_PAGE, "accept accept4"},        /* on the listening socket that it inherits */
    {CONFINE_PAGE, "memfd_create"},          /* holds an upload */
    {STEPS, "setitimer"},                    /* sets its own deadline */
    {CONFINE_COURIER, "socketpair"},         /* libcurl wakes its own threads */
    {STEPS | CONFINE_PROGRAM_ROLE, "wait4"}, /* for the end of their broker (service/common/program) */
};

/* Calls that no role needs once its work has begun. */
static const struct call_row denied_calls[] = {
    {ALL, "execve execveat fork vfork pidfd_open pidfd_send_signal"},
    {ALL | PROGRAMS, "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp"},
    {ALL | PROGRAMS, "mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick "
                     "mount_setattr unshare setns"},
    {ALL | PROGRAMS, "bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register keyctl "
                     "add_key request_key"},
    {ALL | PROGRAMS, "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff "
                     "acct quotactl syslog "
                     "vhangup ioperm iopl modify_ldt personality"},
    {ALL | PROGRAMS, "sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex"},
    {ALL, "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset"},
    {ALL, "chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat mknod mknodat setxattr lsetxattr fsetxattr"},
    {ALL | PROGRAMS, "name_to_handle_at open_by_handle_at fanotify_init"},
    /* A GPU driver opens its sockets when it opens the device, which is before this. */
    {COMPUTES, "socket socketpair bind connect listen accept accept4"},
    {CONFINE_INTAKE, "connect"},
    {CONFINE_COURIER, "bind listen accept accept4"},
    {CONFINE_PAGE, "socket socketpair bind connect listen"},
    {CONFINE_PROGRAM_ROLE, "socket socketpair bind connect listen accept accept4"},
};

/* Calls that are allowed or denied depending on one argument, or on two. */
struct call_case {
    unsigned roles;
    const char *name;
    struct scmp_arg_cmp arguments[2];
};

#define EQUALS(number, value)                                                                                          \
    {                                                                                                                  \
        (number), SCMP_CMP_EQ, (value), 0                                                                              \
    }
/* A local socket of this type. */
#define LOCAL(type)                                                                                                    \
    EQUALS(0, AF_UNIX),                                                                                                \
    {                                                                                                                  \
        1, SCMP_CMP_MASKED_EQ, 0xf, (type)                                                                             \
    }

static const struct call_case allowed_cases[] = {
    {ALL, "clone", {{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD}}},
    {ALL, "prctl", {EQUALS(0, PR_SET_NAME)}},
    {ALL, "prctl", {EQUALS(0, PR_GET_NAME)}},
    {ALL, "prctl", {EQUALS(0, PR_SET_VMA)}},
    {ALL, "prlimit64", {EQUALS(2, 0)}}, /* reads limits; must not set any */
    {ALL, "ioctl", {EQUALS(1, FIONBIO)}},
    {ALL, "ioctl", {EQUALS(1, FIOCLEX)}},
    {ALL, "ioctl", {EQUALS(1, FIONREAD)}},
    {ALL, "ioctl", {EQUALS(1, TCGETS)}},
    {STEPS, "ioctl", {EQUALS(1, TIOCGWINSZ)}}, /* a command shows its progress on a terminal */
    {CONFINE_INTAKE | CONFINE_COURIER, "socket", {EQUALS(0, AF_INET)}},
    {CONFINE_INTAKE | CONFINE_COURIER, "socket", {EQUALS(0, AF_INET6)}},
};

static const struct call_case denied_cases[] = {
    {GPUS, "clone", {{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0}}},
    {PROGRAMS, "clone", {{0, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER}}},
    {CONFINE_BOXED | CONFINE_PROGRAM, "socket", {{0, SCMP_CMP_NE, AF_UNIX, 0}}},
    /* Sockets of the daemon and of other services. The driver of a GPU needs one of SOCK_SEQPACKET. */
    {CONFINE_PROGRAM | CONFINE_PROGRAM_NET, "socket", {LOCAL(SOCK_STREAM)}},
    {CONFINE_PROGRAM | CONFINE_PROGRAM_NET, "socket", {LOCAL(SOCK_DGRAM)}},
    {CONFINE_PROGRAM | CONFINE_PROGRAM_NET, "socket", {LOCAL(SOCK_RAW)}},
    /* Sockets of the daemon or of name services. */
    {CONFINE_INTAKE | CONFINE_COURIER, "socket", {EQUALS(0, AF_UNIX)}},
    {CONFINE_INTAKE | CONFINE_COURIER, "socket", {EQUALS(0, AF_NETLINK)}}, /* getaddrinfo uses it */
    {CONFINE_INTAKE | CONFINE_COURIER, "socket", {EQUALS(0, AF_PACKET)}},
};

/* ------------------------------------------------------------------------------- unknown ---- */

/* In test builds, logs a system call that no row names, so that a test fails. */
static void
call_on_unknown(int signal_number, siginfo_t *info, void *context)
{
    ucontext_t *const machine = context;
    char line[] = "level=error event=role.call_unknown call=0000\n";
    (void)signal_number;
    for (int at = (int)sizeof line - 3, left = info->si_syscall; left > 0; left /= 10)
        line[at--] = (char)('0' + left % 10);
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0)
        _exit(1);
#if defined(__x86_64__)
    machine->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
    machine->uc_mcontext.regs[0] = (unsigned long long)-ENOSYS;
#endif
}

/* -------------------------------------------------------------------------------- filter ---- */

static int
call_add_names(scmp_filter_ctx filter, uint32_t action, const char *names)
{
    char copy[NAMES], *rest = NULL;
    int rc = 0;
    snprintf(copy, sizeof copy, "%s", names);
    for (const char *name = strtok_r(copy, " ", &rest); name && rc == 0; name = strtok_r(NULL, " ", &rest)) {
        const int number = seccomp_syscall_resolve_name(name);
        if (number >= 0)
            rc = seccomp_rule_add(filter, action, number, 0);
    }
    return rc;
}

static int
call_add_rows(scmp_filter_ctx filter, enum confine_role role, uint32_t action, const struct call_row *rows,
              size_t count)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (rows[i].roles & role)
            rc = call_add_names(filter, action, rows[i].names);
    }
    return rc;
}

static int
call_add_cases(scmp_filter_ctx filter, enum confine_role role, uint32_t action, const struct call_case *cases,
               size_t count)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (cases[i].roles & role)
            rc = seccomp_rule_add_array(filter, action, seccomp_syscall_resolve_name(cases[i].name),
                                        cases[i].arguments[1].op ? 2 : 1, cases[i].arguments);
    }
    return rc;
}

/* Returns whether the filter lists the allowed calls. For workers with a GPU and for programs of the site it lists the
 * denied calls. */
static bool
call_lists_allowed(enum confine_role role)
{
    return !(role & (GPUS | PROGRAMS));
}

/* Makes clone3 fail with ENOSYS. glibc calls it first for each new thread and then uses clone,
 * whose arguments a filter can check. This is expected and must not reach the kernel's log, so a
 * filter of its own that does not log rejects it. */
static int
call_filter_absent(scmp_filter_ctx filter, enum confine_role role)
{
    (void)role;
    return call_add_names(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");
}

static int
call_filter_role(scmp_filter_ctx filter, enum confine_role role)
{
    const uint32_t denied = SCMP_ACT_ERRNO(EPERM);
    const bool lists_allowed = call_lists_allowed(role);
    /* To the kernel's log, if supported. A program of the site may make denied calls without end. */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, !(role & PROGRAMS));
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree over call numbers */
    int rc = call_add_rows(filter, role, denied, denied_calls, sizeof denied_calls / sizeof *denied_calls);
    if (!rc)
        rc = call_add_cases(filter, role, denied, denied_cases, sizeof denied_cases / sizeof *denied_cases);
    /* Signals to this process: abort, raise, and signals between its threads. */
    static const char *const signals[] = {"kill", "tgkill"};
    for (size_t i = 0; rc == 0 && !(role & PROGRAMS) && i < sizeof signals / sizeof *signals; i++)
        rc = seccomp_rule_add(filter, lists_allowed ? SCMP_ACT_ALLOW : denied, seccomp_syscall_resolve_name(signals[i]),
                              1, SCMP_A0(lists_allowed ? SCMP_CMP_EQ : SCMP_CMP_NE, (scmp_datum_t)getpid()));
    if (rc || !lists_allowed)
        return rc;
    rc = call_add_names(filter, SCMP_ACT_ALLOW, "clone3"); /* the other filter rejects it */
    if (!rc)
        rc = call_add_rows(filter, role, SCMP_ACT_ALLOW, allowed_calls, sizeof allowed_calls / sizeof *allowed_calls);
    if (!rc)
        rc = call_add_cases(filter, role, SCMP_ACT_ALLOW, allowed_cases, sizeof allowed_cases / sizeof *allowed_cases);
    return rc;
}

/* Exports the filter in the kernel's form, at most BPF_MAXINSNS instructions. A pipe has room for
 * that and is not subject to the file size limit. */
static int
call_filter_export(scmp_filter_ctx filter, struct sock_fprog *program)
{
    const size_t max_size = BPF_MAXINSNS * sizeof *program->filter;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    int rc = seccomp_export_bpf(filter, ends[1]);
    close(ends[1]);
    const ssize_t size = rc ? 0 : read(ends[0], program->filter, max_size);
    char more;
    if (!rc && (size <= 0 || read(ends[0], &more, 1) != 0))
        rc = size < 0 ? -EIO : -E2BIG;
    close(ends[0]);
    program->len = (unsigned short)(rc ? 0 : (size_t)size / sizeof *program->filter);
    return rc;
}

/* Adds the rules of a filter to its default action. */
typedef int call_filter_rules(scmp_filter_ctx filter, enum confine_role role);

/*
 * Generates and checks a filter. `program` has room for BPF_MAXINSNS instructions.
 *
 * If memory is short, libseccomp 2.5 may leave out rules and still report success. The process
 * could then not even return from a signal. It may also fail with another errno, crash, or never
 * end (seccomp_export_bpf); the daemon's limit for HELLO ends that. The generated filter is
 * therefore checked before it is loaded. libseccomp leaves ENOMEM in errno.
 */
static int
call_filter_make(uint32_t otherwise, call_filter_rules *rules, enum confine_role role, struct sock_fprog *program,
                 unsigned *flags)
{
    scmp_filter_ctx filter = seccomp_init(otherwise);
    if (!filter)
        return -ENOMEM;
    /* seccomp_init may set errno while it probes the kernel. */
    errno = 0;
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1); /* do not slow down computation */
    int rc = rules(filter, role);
    if (!rc)
        rc = call_filter_export(filter, program);
    if (errno == ENOMEM)
        rc = -ENOMEM;
    uint32_t logs = 0, keeps_speed = 0;
    seccomp_attr_get(filter, SCMP_FLTATR_CTL_LOG, &logs);
    seccomp_attr_get(filter, SCMP_FLTATR_CTL_SSB, &keeps_speed);
    *flags = SECCOMP_FILTER_FLAG_TSYNC | (logs ? SECCOMP_FILTER_FLAG_LOG : 0) |
             (keeps_speed ? SECCOMP_FILTER_FLAG_SPEC_ALLOW : 0);
    seccomp_release(filter);
    return rc;
}

static int
call_filter_load(uint32_t otherwise, call_filter_rules *rules, enum confine_role role)
{
    struct sock_filter instructions[BPF_MAXINSNS];
    struct sock_fprog program = {.filter = instructions};
    unsigned flags;
    int rc = call_filter_make(otherwise, rules, role, &program, &flags);
    if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        rc = -errno;
    if (!rc) { /* for all threads */
        const long failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
        if (failed)
            rc = failed < 0 ? -errno : -ECANCELED; /* a thread cannot be filtered */
    }
    return rc;
}

static int
call_filter_both(scmp_filter_ctx filter, enum confine_role role)
{
    const int rc = call_filter_absent(filter, role);
    return rc ? rc : call_filter_role(filter, role);
}

int
call_filter_file(enum confine_role role)
{
    struct sock_filter instructions[BPF_MAXINSNS];
    struct sock_fprog program = {.filter = instructions};
    unsigned flags;
    int rc = call_filter_make(SCMP_ACT_ALLOW, call_filter_both, role, &program, &flags);
    const int fd = rc ? rc : memfd_create("calls", MFD_CLOEXEC);
    if (fd < 0)
        return rc ? rc : -errno;
    rc = durable_write_all(fd, instructions, program.len * sizeof *instructions);
    if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
        rc = -errno;
    if (rc)
        close(fd);
    return rc ? rc : fd;
}

bool
call_filter_possible(void)
{
    const uint32_t action = SECCOMP_RET_ERRNO;
    return !SANITIZED && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int
call_filter_install(enum confine_role role)
{
    if (!call_filter_possible())
        return 0;
    const struct sigaction action = {.sa_sigaction = call_on_unknown, .sa_flags = SA_SIGINFO | SA_NODEFER};
    const bool hooked = test_hook_enabled();
    if (hooked)
        sigaction(SIGSYS, &action, NULL);
    const uint32_t unknown = hooked ? SCMP_ACT_TRAP : SCMP_ACT_ERRNO(ENOSYS);
    int rc = call_filter_load(SCMP_ACT_ALLOW, call_filter_absent, role);
    if (!rc)
        rc = call_filter_load(call_lists_allowed(role) ? unknown : SCMP_ACT_ALLOW, call_filter_role, role);
    if (rc)
        log_error("role.call_filter", LOG_STR("error", strerror(-rc)));
    else
        log_debug("role.calls_filtered", LOG_STR("lists", call_lists_allowed(role) ? "allowed" : "denied"));
    return rc;
}
