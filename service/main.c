/*
 * main.c - noctuled: the daemon, or one of its children (role.h).
 *
 *     noctuled [--config FILE] [--root DIR]
 *     noctuled --role NAME --slot N --config FILE [--device NAME --share N]     by the daemon only
 */
#include "config/config.h"
#include "dicom/dicom.h"
#include "service/common/exit_codes.h"
#include "service/common/log.h"
#include "service/common/role.h"
#include "service/daemon/daemon.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static const char usage[] =
    "usage: noctuled [--config FILE] [--root DIR]\n"
    "\n"
    "Takes in DICOM series, segments them and keeps the results, until it is told to stop.\n"
    "\n"
    "  -c, --config FILE  the configuration (default: $NOCTULE_CONFIG, or\n"
    "                     /etc/noctule/noctule.conf)\n"
    "  -r, --root DIR     where everything is kept, instead of the configured root\n"
    "  -h, --help         this text\n"
    "  -V, --version      the version\n"
    "\n"
    "Runs in the foreground and logs to standard error. SIGTERM: lets running jobs end and\n"
    "stops. SIGHUP: reads the configuration again. See noctuled(8).\n";

struct arguments {
    struct daemon_options daemon;
    const char *role;
    const char *device;
    int slot, share;
};

enum parsed { PARSED_RUN, PARSED_OVER, PARSED_WRONG };

static bool
to_number(const char *text, int *number)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > 1023)
        return false;
    *number = (int)value;
    return true;
}

static enum parsed
parse(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"root", required_argument, NULL, 'r'},
        {"role", required_argument, NULL, 'R'},
        {"slot", required_argument, NULL, 'S'},
        {"device", required_argument, NULL, 'D'},
        {"share", required_argument, NULL, 'H'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "c:r:hV", options, NULL)) != -1) {
        if (option == 'c') {
            arguments->daemon.config_file = optarg;
        } else if (option == 'r') {
            arguments->daemon.root = optarg;
        } else if (option == 'R') {
            arguments->role = optarg;
        } else if (option == 'D') {
            arguments->device = optarg;
        } else if (option == 'h') {
            fputs(usage, stdout);
            return PARSED_OVER;
        } else if (option == 'V') {
            puts("noctuled " NOCTULE_VERSION);
            return PARSED_OVER;
        } else if (!(option == 'S' && to_number(optarg, &arguments->slot)) &&
                   !(option == 'H' && to_number(optarg, &arguments->share))) {
            fputs(usage, stderr);
            return PARSED_WRONG;
        }
    }
    if (optind == argc)
        return PARSED_RUN;
    fprintf(stderr, "noctuled: %s: unexpected argument\n%s", argv[optind], usage);
    return PARSED_WRONG;
}

/*
 * A child keeps fd 3 and the standard ones, dies with the daemon, and leaves the terminal's Ctrl-C
 * and hang-up to the daemon, which drains it over the pipe.
 */
static int
become_child(const char *role)
{
    char name[16];
    snprintf(name, sizeof name, "noctule-%s", role);
    prctl(PR_SET_NAME, name);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an errno, not a death */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || close_range(ROLE_FD + 1, ~0u, 0) < 0)
        return -errno;
    return 0;
}

static int
run_child(const struct arguments *arguments)
{
    static const struct {
        const char *name;
        int (*run)(const struct role_args *args);
    } roles[] = {{"intake", intake_main}, {"worker", worker_main},   {"courier", courier_main},
                 {"page", page_main},     {"cluster", cluster_main}, {"probe", probe_main}};
    const struct role_args args = {.config_file = arguments->daemon.config_file,
                                   .slot = arguments->slot,
                                   .device = arguments->device,
                                   .share = arguments->share};
    log_open(arguments->role, "info"); /* each role sets the configured level */
    int error = become_child(arguments->role);
    if (error) {
        fprintf(stderr, "noctuled: %s: %s\n", arguments->role, strerror(-error));
        return EXIT_PARTIAL;
    }
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(arguments->role, roles[i].name) == 0)
            return roles[i].run(&args);
    }
    fprintf(stderr, "noctuled: %s: no such role\n", arguments->role);
    return EXIT_USAGE;
}

/* The soft limit of descriptors is small for the sake of select(2), which nobody here calls. */
static void
raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* We never call exit: it is libconfig's scanner, which had no memory, and that passes. */
static void
end_for_library(void)
{
    _exit(EX_TEMPFAIL);
}

int
main(int argc, char **argv)
{
    const char *named = getenv("NOCTULE_CONFIG");
    struct arguments arguments = {.daemon.config_file =
                                      named && *named ? named : "/etc/noctule/noctule.conf",
                                  .device = "cpu",
                                  .share = 1};
    enum parsed parsed = parse(argc, argv, &arguments);
    if (parsed != PARSED_RUN)
        return parsed == PARSED_OVER ? EXIT_OK : EXIT_USAGE;
    signal(SIGPIPE, SIG_IGN); /* a peer that left is an error of write(2) */
    umask(027);
    atexit(end_for_library);
    conf_set_dictionary(dicom_attribute_kind);
    if (!arguments.role)
        raise_file_limit();
    /* Without what libraries do at exit: short of memory, DCMTK's log aborts there. */
    _exit(arguments.role ? run_child(&arguments) : daemon_main(&arguments.daemon));
}
