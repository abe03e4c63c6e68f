/*
 * main.c - noctuled: the daemon, or one of its children (role.h).
 *
 *     noctuled [--config FILE] [--root DIR] [--new-database] [--new-identifier-key]
 *     noctuled --role NAME --slot N --config FILE [--device NAME --share N]   (daemon)
 */
#include "config/config.h"
#include "dicom/dicom.h"
#include "service/common/daemon_line.h"
#include "service/common/exit_codes.h"
#include "service/common/log.h"
#include "service/common/role.h"
#include "service/daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static const char usage[] = "usage: noctuled [--config FILE] [--root DIR] [--new-database] [--new-identifier-key]\n"
                            "\n"
                            "Receives DICOM series, segments them and stores the results until it is stopped.\n"
                            "\n"
                            "  -c, --config FILE  configuration file (default: $" DAEMON_CONFIG_VARIABLE ", or\n"
                            "                     " DAEMON_CONFIG ")\n"
                            "  -r, --root DIR     root folder, in place of the configured one\n"
                            "      --new-database create a new database in place of a lost one\n"
                            "      --new-identifier-key\n"
                            "                     accept another identifier.key, or create it in place of a lost one\n"
                            "  -h, --help         print this text\n"
                            "  -V, --version      print the version\n"
                            "\n"
                            "Runs in the foreground and logs to standard error. SIGTERM: finishes running jobs and\n"
                            "stops. SIGHUP: reloads the configuration. See noctuled(8).\n";

/*
 * Prepares a child process. A child keeps the standard descriptors and fd 3, the web UI also fd 4. It dies with the
 * daemon. It ignores Ctrl-C and hang-up of the terminal, because the daemon drains it over the pipe.
 */
static int
become_child(const char *role)
{
    char name[16];
    const unsigned last = strcmp(role, "page") == 0 ? ROLE_HANDED_FD : ROLE_FD;
    snprintf(name, sizeof name, "noctule-%s", role);
    prctl(PR_SET_NAME, name);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit must be an errno, not a signal */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || close_range(last + 1, ~0u, 0) < 0)
        return -errno;
    return 0;
}

static int
run_child(const struct daemon_line *line)
{
    static const struct {
        const char *name;
        int (*run)(const struct role_args *args);
    } roles[] = {{"intake", receiver_main}, {"worker", worker_main},   {"courier", sender_main}, {"page", web_main},
                 {"cluster", slurm_main},   {"program", program_main}, {"probe", probe_main}};
    const struct role_args args = {
        .config_file = line->config_file, .slot = line->slot, .device = line->device, .share = line->share};
    log_open(line->role, "info"); /* each role sets the configured level */
    int error = become_child(line->role);
    if (error) {
        fprintf(stderr, "noctuled: %s: %s\n", line->role, strerror(-error));
        return EXIT_PARTIAL;
    }
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(line->role, roles[i].name) == 0)
            return roles[i].run(&args);
    }
    fprintf(stderr, "noctuled: %s: no such role\n", line->role);
    return EXIT_USAGE;
}

/* Raises the soft limit of descriptors, which is small only for select(2). Noctule does not use
 * it. */
static void
raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Ends after an exit() by a library. Noctule never calls exit(), but libconfig's scanner does when
 * it has no memory, which is transient. */
static void
end_for_library(void)
{
    _exit(EX_TEMPFAIL);
}

int
main(int argc, char **argv)
{
    struct daemon_line line;
    const enum daemon_action wish = daemon_line_parse(argc, argv, &line);
    if (wish == DAEMON_SHOW_VERSION)
        puts("noctuled " NOCTULE_VERSION);
    else if (wish != DAEMON_RUN)
        fputs(usage, wish == DAEMON_HELP ? stdout : stderr);
    if (wish != DAEMON_RUN)
        return wish == DAEMON_WRONG ? EXIT_USAGE : EXIT_OK;
    const char *named = daemon_line_config(line.config_file, getenv(DAEMON_CONFIG_VARIABLE));
    line.config_file = named ? named : DAEMON_CONFIG;
    const struct daemon_options options = {
        .config_file = line.config_file, .root = line.root, .new_database = line.new_database, .new_key = line.new_key};
    signal(SIGPIPE, SIG_IGN); /* writing to a closed connection must be an errno */
    umask(027);
    atexit(end_for_library);
    conf_set_dictionary(dicom_attribute_kind);
    if (!line.role)
        raise_file_limit();
    /* Skip the libraries' exit handlers: without memory, DCMTK's log aborts there. */
    _exit(line.role ? run_child(&line) : daemon_main(&options));
}
