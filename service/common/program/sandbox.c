/* sandbox.c - see sandbox.h. */
#include "service/common/program/sandbox_private.h"

#include "base/test_hook.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/log.h"
#include "service/common/program/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPARE_FD        16 /* above the descriptors of a program */
#define MAX_SIGNAL      64

#define SPARE_PROCESSES 32

static const char *const sandbox_names[] = {[SANDBOX_NONE] = "",
                                            [SANDBOX_CONTAINER] = "container",
                                            [SANDBOX_WEAK] = "weak",
                                            [SANDBOX_OWN] = "own",
                                            [SANDBOX_BUBBLEWRAP] = "bubblewrap"};

const char *
sandbox_name(enum sandbox_kind kind)
{
    return sandbox_names[kind];
}

int
sandbox_own_tasks(enum sandbox_kind kind)
{
    return kind == SANDBOX_BUBBLEWRAP ? 2 : kind == SANDBOX_OWN ? 1 : 0;
}

static enum confine_role
sandbox_role(const struct sandbox_order *order)
{
    if (order->kind == SANDBOX_BUBBLEWRAP)
        return order->host_network ? CONFINE_BOXED_NET : CONFINE_BOXED;
    return order->host_network ? CONFINE_PROGRAM_NET : CONFINE_PROGRAM;
}

/* -------------------------------------------------------------------------- the program ---- */

static int
sandbox_limit(int resource, rlim_t value)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0)
        return -errno;
    limit.rlim_max = value < limit.rlim_max ? value : limit.rlim_max;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* Chooses `cpus` of the processors that this process may use. */
static int
sandbox_choose_cpus(int cpus, int slot)
{
    cpu_set_t all, chosen;
    if (cpus == 0)
        return 0;
    if (sched_getaffinity(0, sizeof all, &all) < 0)
        return -errno;
    const int count = CPU_COUNT(&all);
    CPU_ZERO(&chosen);
    for (int cpu = 0, number = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &all))
            continue;
        if (((number - slot * cpus) % count + count) % count < cpus)
            CPU_SET((size_t)cpu, &chosen);
        number++;
    }
    return sched_setaffinity(0, sizeof chosen, &chosen) < 0 ? -errno : 0;
}

static int
sandbox_limit_all(const struct sandbox_order *order)
{
    const struct sandbox_limits *limits = &order->limits;
    int rc = sandbox_limit(RLIMIT_CORE, 0);
    if (order->kind == SANDBOX_CONTAINER) /* the others would hold for its engine */
        return rc;
    if (!rc && limits->file_bytes > 0)
        rc = sandbox_limit(RLIMIT_FSIZE, (rlim_t)limits->file_bytes);
    if (!rc && limits->data_bytes > 0)
        rc = sandbox_limit(RLIMIT_DATA, (rlim_t)limits->data_bytes);
    /* The kernel counts per user, and in a user namespace only the processes in it. The broker counts, too, and must be
     * able to find a number beyond the limit. */
    if (!rc && limits->processes > 0 && order->kind == SANDBOX_OWN)
        rc = sandbox_limit(RLIMIT_NPROC, (rlim_t)limits->processes + SPARE_PROCESSES);
    return rc ? rc : sandbox_choose_cpus(limits->cpus, limits->slot);
}

static int
sandbox_open_descriptors(const struct sandbox_order *order, int report, int filter)
{
    const bool keeps = order->kind == SANDBOX_BUBBLEWRAP;
    const int input = order->input >= 0 ? order->input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* In the order of their numbers: standard input to SANDBOX_FILTER_FD. */
    const int from[] = {input, order->output, order->errors, report, filter};
    const int count = filter < 0 ? SANDBOX_FILTER_FD : SANDBOX_FILTER_FD + 1;
    int spare[SANDBOX_FILTER_FD + 1];
    for (int i = 0; i < count; i++)
        if ((spare[i] = fcntl(from[i], F_DUPFD_CLOEXEC, SPARE_FD)) < 0)
            return -errno;
    for (int i = 0; i < count; i++)
        if (dup2(spare[i], i) < 0)
            return -errno;
    if (!keeps && fcntl(SANDBOX_REPORT_FD, F_SETFD, FD_CLOEXEC) < 0)
        return -errno;
    return close_range((unsigned)count, ~0u, 0) < 0 ? -errno : 0;
}

int
sandbox_prepare(const struct sandbox_order *order, int report, int filter)
{
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    umask(022);
    /* The program gives way to the service's other processes, also when memory runs out. Failures do not matter. */
    const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (score >= 0) {
        (void)!write(score, "700", 3);
        close(score);
    }
    (void)!nice(5);
    int rc = sandbox_open_descriptors(order, report, filter);
    if (!rc)
        rc = sandbox_limit_all(order);
    if (!rc && chdir(order->places.out) < 0)
        rc = -errno;
    return rc;
}

_Noreturn void
sandbox_exec(const struct sandbox_order *order, struct places *places)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct no_rights[2] = {{0}};
    const enum confine_role role = sandbox_role(order);
    int rc = 0;
    log_set_level("error"); /* the log of this process is the output of the program */
    if (order->kind != SANDBOX_CONTAINER) {
        /* Drops the rights of root, which a new user namespace gives, too. With no_new_privs, execve(2) cannot restore
         * privileges. */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, no_rights) < 0)
            rc = -errno;
        if (!rc)
            rc = confine_to(role, places, 0);
        if (!rc)
            rc = call_filter_install(role);
    }
    if (rc) {
        (void)!write(SANDBOX_REPORT_FD, "!", 1);
        _exit(127);
    }
    char *const *argv = order->kind == SANDBOX_CONTAINER ? sandbox_container(order) : order->argv;
    if (argv)
        execve(argv[0], argv, order->environment);
    fprintf(stderr, "noctule: %s: %s\n", order->argv[0], strerror(errno));
    _exit(127);
}

/* ---------------------------------------------------------------------------- the keeper ---- */

/* The program that a keeper must start, and its sandbox. */
struct sandbox_job {
    const struct sandbox_order *order;
    struct places places;
    char **bubblewrap; /* its command line; NULL: another kind */
    int report[2], filter;
};

static int
sandbox_shell_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
sandbox_reap(pid_t pid)
{
    int status = 0;
    pid_t ended;
    do
        ended = waitpid(-1, &status, 0);
    while (ended != pid && (ended > 0 || errno == EINTR));
    return sandbox_shell_status(status);
}

/* Starts the program in a child of the keeper. Returns its process, or -errno. */
static pid_t
keeper_start(struct sandbox_job *job)
{
    const struct sandbox_order *order = job->order;
    if (order->kind == SANDBOX_OWN)
        return sandbox_namespaces(order, &job->places, job->report[1]);
    const pid_t pid = fork();
    if (pid != 0)
        return pid < 0 ? -errno : pid;
    const int rc = sandbox_prepare(order, job->report[1], job->filter);
    if (!rc && !job->bubblewrap)
        sandbox_exec(order, &job->places);
    if (!rc)
        execve(job->bubblewrap[0], job->bubblewrap, order->environment);
    fprintf(stderr, "noctule: sandbox: %s\n", strerror(rc ? -rc : errno));
    (void)!write(job->report[1], "!", 1);
    _exit(127);
}

/* Returns whether the program was executed, by the report of the process that should do so. */
static bool
keeper_executed(const struct sandbox_job *job)
{
    char text[512];
    const ssize_t size = read(SANDBOX_REPORT_FD, text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    return job->bubblewrap ? strstr(text, "\"exit-code\"") != NULL : size <= 0;
}

static _Noreturn void
keeper_main(struct sandbox_job *job, const sigset_t *signals, pid_t parent)
{
    int status = 0;
    prctl(PR_SET_NAME, "noctule-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const pid_t pid = getppid() == parent ? keeper_start(job) : -ESRCH;
    if (pid < 0 || dup2(job->report[0], SANDBOX_REPORT_FD) < 0 || close_range(SANDBOX_REPORT_FD + 1, ~0u, 0) < 0)
        kill(getpid(), SIGKILL);
    bool stopped = false, ended = false;
    while (!ended && !stopped) {
        stopped = sigwaitinfo(signals, NULL) == SIGTERM;
        int other;
        for (pid_t child; (child = waitpid(-1, &other, WNOHANG)) > 0;)
            if (child == pid) {
                ended = true;
                status = other;
            }
    }
    if (job->order->kind == SANDBOX_CONTAINER)
        sandbox_container_end(job->order);
    process_tree_end(pid, &status);
    fcntl(SANDBOX_REPORT_FD, F_SETFL, O_NONBLOCK);
    if (!stopped && !keeper_executed(job))
        kill(getpid(), SIGKILL);
    _exit(sandbox_shell_status(status));
}

static pid_t
sandbox_start_job(struct sandbox_job *job)
{
    sigset_t signals, before;
    if (pipe2(job->report, O_CLOEXEC) < 0)
        return -errno;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &before); /* the keeper takes them in its own time */
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0)
        keeper_main(job, &signals, parent);
    const int rc = pid < 0 ? -errno : pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(job->report[0]);
    close(job->report[1]);
    return rc;
}

pid_t
sandbox_start(const struct sandbox_order *order, struct error *error)
{
    struct sandbox_job job = {.order = order, .filter = -1};
    const char *refused = NULL;
    struct program_places given = order->places;
    given.own_shm = order->kind == SANDBOX_OWN;
    const enum confine_role role = sandbox_role(order);
    int rc = order->kind == SANDBOX_CONTAINER ? 0 : places_of_program(&given, &refused, &job.places);
    if (rc == -EACCES)
        return error_set(error, rc, CODE_PROGRAM_UNAVAILABLE, "%s: no program may read the service's own folder",
                         refused);
    if (!rc && order->kind == SANDBOX_BUBBLEWRAP && call_filter_possible()) {
        job.filter = call_filter_file(role);
        rc = job.filter < 0 ? job.filter : 0;
    }
    if (!rc && order->kind == SANDBOX_BUBBLEWRAP) {
        job.bubblewrap = sandbox_bubblewrap(order, &job.places, job.filter >= 0);
        rc = job.bubblewrap ? 0 : -ENOMEM;
    }
    if (!rc)
        rc = sandbox_start_job(&job);
    for (char **word = job.bubblewrap; word && *word; word++)
        free(*word);
    free(job.bubblewrap);
    places_free(&job.places);
    if (job.filter >= 0)
        close(job.filter);
    return rc < 0 ? error_set(error, rc, CODE_PROGRAM_SANDBOX, "start a sandbox: %s", strerror(-rc)) : rc;
}

void
sandbox_end_of(int status, struct sandbox_end *end)
{
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const bool has_signal = code > 128 && code <= 128 + MAX_SIGNAL;
    *end = (struct sandbox_end){
        .failed = !WIFEXITED(status), .exit_code = has_signal ? 0 : code, .signal = has_signal ? code - 128 : 0};
}

/* ----------------------------------------------------------------------------- the probe ---- */

/* Runs /bin/true. Returns whether that succeeded; if not, `why` has the reason. */
static bool
sandbox_try(enum sandbox_kind kind, bool host_proc, char why[256])
{
    static char path[] = "/bin/true";
    static char *const argv[] = {path, NULL};
    static char *const environment[] = {NULL};
    static const char *const given[] = {NULL};
    struct sandbox_order order = {
        .kind = kind,
        .host_proc = host_proc,
        .argv = argv,
        .environment = environment,
        .input = -1,
        .places = {.in = "/usr", .out = "/usr", .temporary = "/usr", .shared = "/usr", .given = given}};
    struct error error = {0};
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    order.output = order.errors = ends[1];
    const pid_t keeper = sandbox_start(&order, &error);
    close(ends[1]);
    if (keeper < 0)
        snprintf(why, 256, "%.200s", error.message);
    else
        while (waitpid(keeper, &status, 0) < 0 && errno == EINTR)
            ;
    process_tree_end(-1, &status); /* a keeper that was killed leaves processes, which hold the pipe open */
    char text[200] = "";
    if (read(ends[0], text, sizeof text - 1) < 0)
        text[0] = '\0';
    close(ends[0]);
    if (keeper < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return keeper > 0;
    text[strcspn(text, "\n")] = '\0';
    snprintf(why, 256, "%s: %s", sandbox_name(kind), text[0] ? text : "/bin/true did not run");
    return false;
}

/* Returns whether the kind can work at all. */
static bool
sandbox_possible(enum sandbox_kind kind, char why[256])
{
    const char *lacks = NULL;
    if (kind == SANDBOX_BUBBLEWRAP && access(SANDBOX_BUBBLEWRAP_PATH, X_OK) != 0)
        lacks = "bubblewrap is not installed";
    else if (kind != SANDBOX_BUBBLEWRAP && confine_landlock() == 0)
        lacks = "the kernel has no Landlock";
    if (lacks)
        snprintf(why, 256, "%s", lacks);
    return !lacks;
}

void
sandbox_probe(struct sandbox_probe *probe)
{
    const char *hook = test_hook_variable("NOCTULE_SANDBOX"); /* the strongest to try */
    enum sandbox_kind kind = SANDBOX_BUBBLEWRAP;
    *probe = (struct sandbox_probe){0};
    while (hook && kind > SANDBOX_CONTAINER && strcmp(hook, sandbox_name(kind)) != 0)
        kind--;
    for (; probe->kind == SANDBOX_NONE && kind > SANDBOX_CONTAINER; kind--) {
        char why[256] = "";
        bool works = sandbox_possible(kind, why);
        if (works && !sandbox_try(kind, false, why)) {
            works = kind == SANDBOX_BUBBLEWRAP && sandbox_try(kind, true, why);
            probe->host_proc = works;
        }
        probe->kind = works ? kind : SANDBOX_NONE;
        if (why[0] && !probe->why[0])
            snprintf(probe->why, sizeof probe->why, "%s", why);
    }
    probe->no_network = probe->kind > SANDBOX_WEAK || (probe->kind == SANDBOX_WEAK && call_filter_possible());
}
