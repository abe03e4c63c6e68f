/* The system calls of each role, and that all of them are possible before. Each case runs in its
 * own process. */
#include "service/common/confine/call_filter.h"

#include "service/common/log.h"
#include "service/common/wire/child.h"
#include "tests/unit/starved_malloc.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define INTAKE  CONFINE_INTAKE
#define COURIER CONFINE_COURIER
#define WORKER  CONFINE_WORKER
#define GPU     CONFINE_GPU_WORKER
#define PAGE    CONFINE_PAGE
#define STEP    CONFINE_STEP
#define ALL     (INTAKE | COURIER | WORKER | GPU | PAGE | STEP)

/* Returns the errno of an action; 0: success. */
static int
failed(long rc)
{
    if (rc < 0)
        return errno;
    return 0;
}

static int
kept(int fd)
{
    const int error = failed(fd);
    if (fd >= 0)
        close(fd);
    return error;
}

static int
run_a_program(void)
{
    char *const arguments[] = {NULL};
    return failed(execve("/nowhere", arguments, arguments)) == ENOENT ? 0 : errno;
}

static int
have_a_child(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    const int error = failed(pid);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return error;
}

static int
look_into_another(void)
{
    const int error = failed(ptrace(PTRACE_PEEKDATA, getppid(), NULL, NULL));
    return error == ESRCH ? 0 : error; /* not traced, but the call was allowed */
}

static int
signal_another(void)
{
    return failed(kill(getppid(), 0));
}

static int
signal_itself(void)
{
    return failed(kill(getpid(), 0)) | (raise(SIGCHLD) ? errno : 0);
}

static int
mount_something(void)
{
    const int error = failed(mount("x", "/nowhere", "tmpfs", 0, NULL));
    return error == ENOENT ? 0 : error;
}

static int
make_a_device(void)
{
    const int error = failed(mknod("/nowhere/pipe", S_IFIFO | 0600, 0));
    return error == ENOENT ? 0 : error;
}

static int
change_modes(void)
{
    const int error = failed(chmod("/nowhere", 0777));
    return error == ENOENT ? 0 : error;
}

static int
raise_a_limit(void)
{
    struct rlimit limit;
    return failed(getrlimit(RLIMIT_NOFILE, &limit)) | failed(setrlimit(RLIMIT_NOFILE, &limit));
}

static int
ask_a_limit(void)
{
    struct rlimit limit;
    return failed(getrlimit(RLIMIT_NOFILE, &limit));
}

static int
talk_on_this_machine(void)
{
    return kept(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int
talk_to_others(void)
{
    return kept(socket(AF_INET, SOCK_STREAM, 0));
}

static int
write_packets(void)
{
    const int error = kept(socket(AF_PACKET, SOCK_RAW, 0));
    return error == EPERM && geteuid() != 0 ? 0 : error;
}

static int
listen_to_others(void)
{
    const int error = failed(listen(-1, 1));
    return error == EBADF ? 0 : error;
}

static int
call_others(void)
{
    const int error = failed(connect(-1, NULL, 0));
    return error == EBADF ? 0 : error;
}

static int
watch_folders(void)
{
    return kept(inotify_init1(IN_CLOEXEC));
}

static int
read_files(void)
{
    return kept(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static void *
nothing(void *argument)
{
    return argument;
}

static int
start_a_thread(void)
{
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, nothing, NULL);
    return error ? error : pthread_join(thread, NULL);
}

static int
name_itself(void)
{
    return failed(prctl(PR_SET_NAME, "test"));
}

static int
set_a_deadline(void)
{
    const struct itimerval none = {0};
    return failed(setitimer(ITIMER_REAL, &none, NULL));
}

/* A call that no row has. */
static int
call_the_unknown(void)
{
    errno = 0; /* a valid priority may be -1 */
    getpriority(PRIO_PROCESS, 0);
    return errno;
}

static const struct deed {
    const char *name;
    int (*done)(void);
    unsigned by; /* roles that may do it */
    int error;   /* for the other roles */
} deeds[] = {
    {"read files", read_files, ALL, 0},
    {"start a thread", start_a_thread, ALL, 0},
    {"name itself", name_itself, ALL, 0},
    {"signal itself", signal_itself, ALL, 0},
    {"ask a limit", ask_a_limit, ALL, 0},
    {"run a program", run_a_program, 0, EPERM},
    {"look into another", look_into_another, 0, EPERM},
    {"mount", mount_something, 0, EPERM},
    {"make a device", make_a_device, 0, EPERM},
    {"change modes", change_modes, 0, EPERM},
    {"have a child", have_a_child, 0, ENOSYS},
    {"signal another", signal_another, 0, ENOSYS},
    {"talk to others", talk_to_others, INTAKE | COURIER, EPERM},
    {"talk on this machine", talk_on_this_machine, 0, EPERM},
    {"write packets", write_packets, 0, EPERM},
    {"listen", listen_to_others, INTAKE, EPERM},
    {"call", call_others, COURIER, EPERM},
    {"set a deadline", set_a_deadline, STEP | GPU, ENOSYS},
    {"watch folders", watch_folders, INTAKE | GPU, ENOSYS},
    {"raise a limit", raise_a_limit, GPU, ENOSYS},
    {"call the unknown", call_the_unknown, GPU, ENOSYS},
};

static bool filtered; /* by this kernel, in this build */

/* A worker with a GPU gets no ENOSYS, since its filter lists the denied calls. */
static int
expected(const struct deed *deed, enum confine_role role)
{
    if (!filtered || (deed->by & role))
        return 0;
    return role == GPU ? EPERM : deed->error;
}

#define DEEDS (sizeof deeds / sizeof *deeds)

struct outcome {
    int before[DEEDS], installed, after[DEEDS];
};

/* Must run in a process of its own, since Check needs more calls. */
static void
do_all(enum confine_role role, struct outcome *outcome)
{
    for (size_t i = 0; i < DEEDS; i++)
        outcome->before[i] = deeds[i].done();
    outcome->installed = call_filter_install(role);
    for (size_t i = 0; i < DEEDS; i++)
        outcome->after[i] = deeds[i].done();
}

static void
check_deeds(enum confine_role role)
{
    struct outcome outcome;
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        do_all(role, &outcome);
        _exit(write(ends[1], &outcome, sizeof outcome) != sizeof outcome);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(read(ends[0], &outcome, sizeof outcome), sizeof outcome);
    ck_assert_int_eq(outcome.installed, 0);
    for (size_t i = 0; i < DEEDS; i++) {
        const int wanted = expected(&deeds[i], role);
        ck_assert_msg(outcome.before[i] == 0, "before: %s: errno %d", deeds[i].name, outcome.before[i]);
        ck_assert_msg(outcome.after[i] == wanted, "%s: errno %d, not %d", deeds[i].name, outcome.after[i], wanted);
    }
}

START_TEST(the_receiver)
{
    check_deeds(INTAKE);
}

END_TEST

START_TEST(the_sender)
{
    check_deeds(COURIER);
}

END_TEST

START_TEST(the_web_ui)
{
    check_deeds(PAGE);
}

END_TEST

START_TEST(a_worker)
{
    check_deeds(WORKER);
}

END_TEST

START_TEST(a_step)
{
    check_deeds(STEP);
}

END_TEST

START_TEST(a_worker_of_a_gpu)
{
    check_deeds(GPU);
}

END_TEST

static void *
wait_and_try(void *argument)
{
    int *order = argument;
    char byte;
    if (read(order[0], &byte, 1) != 1)
        return NULL;
    order[1] = run_a_program();
    return NULL;
}

static int
try_in_a_thread_from_before(void)
{
    int ends[2];
    pthread_t thread;
    if (pipe(ends) != 0)
        return -1;
    int order[2] = {ends[0], -1};
    if (pthread_create(&thread, NULL, wait_and_try, order) != 0 || call_filter_install(WORKER) != 0)
        return -1;
    if (write(ends[1], "", 1) != 1 || pthread_join(thread, NULL) != 0)
        return -1;
    return order[1];
}

START_TEST(running_threads_are_filtered_too)
{
    int status;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(try_in_a_thread_from_before());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, (filtered ? EPERM : 0) << 8);
}

END_TEST

/* ---------------------------------------------------------------------- the kernel's log ---- */

static void *
do_nothing(void *argument)
{
    return argument;
}

/* Starts threads, for which glibc calls clone3 and then its fallback. Finally makes a call that is
 * denied. */
static int
start_threads(enum confine_role role)
{
    pthread_t thread;
    if (call_filter_install(role) != 0)
        return EXIT_FAILURE;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, do_nothing, NULL) || pthread_join(thread, NULL))
            return EXIT_FAILURE;
    if (syscall(SYS_clone3, NULL, 0) == 0 || errno != ENOSYS)
        return EXIT_FAILURE;
    return run_a_program() == EPERM ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Waits for the log line of a denied call of a process. Returns false if there is none: the kernel
 * may not log, or not all calls. */
static bool
kernel_tells(int log, pid_t pid, long call, long before)
{
    char record[8192], of_process[32], of_call[32], of_earlier[32];
    struct pollfd news = {.fd = log, .events = POLLIN};
    snprintf(of_process, sizeof of_process, " pid=%d ", (int)pid);
    snprintf(of_call, sizeof of_call, " syscall=%ld ", call);
    snprintf(of_earlier, sizeof of_earlier, " syscall=%ld ", before);
    while (poll(&news, 1, 2000) > 0) {
        const ssize_t size = read(log, record, sizeof record - 1);
        record[size > 0 ? size : 0] = '\0';
        if (!strstr(record, of_process))
            continue;
        ck_assert_msg(!strstr(record, of_earlier), "%s", record);
        if (strstr(record, of_call))
            return true;
    }
    return false;
}

/* Otherwise each association of a service that runs for years would add lines to the kernel's
 * log. */
START_TEST(threads_add_no_lines_to_the_kernels_log)
{
    static const enum confine_role roles[] = {INTAKE, WORKER, GPU};

    const int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int status;
    if (!filtered || log < 0 || lseek(log, 0, SEEK_END) < 0)
        return;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(start_threads(roles[_i]));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    if (!kernel_tells(log, pid, SYS_execve, SYS_clone3))
        printf("the kernel's log does not tell what is refused\n");
    close(log);
}

END_TEST

/* ------------------------------------------------------------------------- without memory ---- */

#define FRAMES 64
#define FELL   3 /* exit status after a fault */

struct shared {
    bool installed, hit;
    bool in_export; /* the fault was there */
};

static struct shared *shared;

static void
on_signal(int number)
{
    (void)number;
}

static bool
is_in_export(void *address)
{
    Dl_info of;
    return dladdr(address, &of) && of.dli_sname && strcmp(of.dli_sname, "seccomp_export_bpf") == 0;
}

static void
on_fall(int number)
{
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);
    (void)number;
    for (int i = 0; i < count; i++)
        shared->in_export |= is_in_export(frames[i]);
    _exit(FELL);
}

/* Reports any fault through on_fall. Output of the C library about it must not reach the test's own
 * output. */
static void
watch_falls(int output)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGXCPU};
    void *frame;
    backtrace(&frame, 1); /* loads the libraries that it needs */
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], on_fall);
    setrlimit(RLIMIT_CPU, &(struct rlimit){.rlim_cur = 1, .rlim_max = 2});
    dup2(output, STDERR_FILENO);
}

/* Returns whether a failure was reported, or the filter is complete if it was installed. */
static bool
install_starved(int n)
{
    struct timespec now;
    signal(SIGCHLD, on_signal);
    countdown = n;
    const int rc = call_filter_install(COURIER);
    countdown = 0;
    shared->hit = hit;
    if (rc)
        return hit && rc == -ENOMEM && child_start_status(rc) == EX_TEMPFAIL;
    shared->installed = true;
    /* Their rules are at both ends of the tree, and a signal handler returns by a call. */
    return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0 && raise(SIGCHLD) == 0 &&
           syscall(SYS_read, -1, NULL, 0) < 0 && errno == EBADF && (!filtered || run_a_program());
}

/* Returns the status of such a process; `text` gets its output. */
static int
live_starved(int n, char *text, size_t size)
{
    int status;
    const int output = memfd_create("output", MFD_CLOEXEC);
    *shared = (struct shared){.hit = true};
    const pid_t pid = fork();
    if (pid == 0) {
        watch_falls(output);
        _exit(install_starved(n) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    const ssize_t got = pread(output, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    close(output);
    return status;
}

/*
 * If memory is short in seccomp_export_bpf, libseccomp 2.5 may free twice, crash or never end. A
 * process may fault only there, before any filter is in force. A process that survives must report
 * only -ENOMEM.
 */
START_TEST(an_incomplete_filter_is_not_loaded)
{
    char text[4096];
    int n = 1, fallen = 0;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    do {
        const int status = live_starved(n, text, sizeof text);
        const bool fell = status == FELL << 8 && shared->in_export && !shared->installed;
        ck_assert_msg(status == 0 || fell, "allocation %d: %#x\n%s", n, (unsigned)status, text);
        ck_assert_msg(fell || !strstr(text, "free"), "allocation %d: %s", n, text);
        fallen += fell;
        n += 29;
    } while (shared->hit);
    if (filtered)
        ck_assert_int_gt(n, 100);
    ck_assert_int_lt(fallen * 2, n / 29);
    printf("%d of %d starts without memory ended in seccomp_export_bpf\n", fallen, n / 29);
    munmap(shared, sizeof *shared);
}

END_TEST

int
main(void)
{
    log_open("test", "error");
    filtered = call_filter_possible();
    Suite *suite = suite_create("common_call_filter");
    TCase *tests = tcase_create("call filter");
    /* Must be first: the kernel logs ten lines in five seconds, and the other tests cause more. */
    tcase_add_loop_test(tests, threads_add_no_lines_to_the_kernels_log, 0, 3);
    tcase_add_test(tests, the_receiver);
    tcase_add_test(tests, the_sender);
    tcase_add_test(tests, the_web_ui);
    tcase_add_test(tests, a_worker);
    tcase_add_test(tests, a_step);
    tcase_add_test(tests, a_worker_of_a_gpu);
    tcase_add_test(tests, running_threads_are_filtered_too);
    tcase_add_test(tests, an_incomplete_filter_is_not_loaded);
    tcase_set_timeout(tests, 240);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
