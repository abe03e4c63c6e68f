/*
 * report_send.c - runs the site's report command with the text on standard input and the page in a
 * file.
 */
#include "service/cli/report/report_print.h"

#include "base/durable.h"
#include "base/text.h"
#include "service/cli/cli.h"
#include "service/common/html/html.h"
#include "service/common/layout.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns a descriptor with the text, or -errno. */
static int
send_text(const struct report_content *report)
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc)
        return rc;
    report_write_text(report, text.out);
    rc = text_close(&text);
    if (rc)
        return rc;
    const int fd = memfd_create("report", MFD_CLOEXEC);
    rc = fd < 0 ? -errno : durable_write_all(fd, text.bytes, text.size);
    free(text.bytes);
    if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
        rc = -errno;
    if (rc && fd >= 0)
        close(fd);
    return rc ? rc : fd;
}

static int
send_set_environment(const struct report_content *report, const char *page)
{
    char since[SHOWN_TIME], until[SHOWN_TIME], host[128] = "", subject[256];
    shown_time(report->period->since, since);
    shown_time(report->period->until, until);
    gethostname(host, sizeof host - 1);
    snprintf(subject, sizeof subject, "Noctule on %s, %s to %s: %s", host, since, until,
             report->attention ? "an operator must act" : "no action needed");
    return setenv("NOCTULE_REPORT_HTML", page, 1) || setenv("NOCTULE_REPORT_SUBJECT", subject, 1) ||
                   setenv("NOCTULE_REPORT_ATTENTION", report->attention ? "1" : "0", 1)
               ? -errno
               : 0;
}

/* Runs the command with its output on standard error. Sets *how to the status of waitpid. Returns 0
 * or -errno. */
static int
send_run(const char *command, int text, int *how)
{
    char shell[] = "/bin/sh", option[] = "-c";
    char *copy = strdup(command), *arguments[] = {shell, option, copy, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    if (!copy)
        return -ENOMEM;
    int rc = -posix_spawn_file_actions_init(&actions);
    if (rc == 0) {
        rc = -posix_spawn_file_actions_adddup2(&actions, text, STDIN_FILENO);
        if (rc == 0)
            rc = -posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
        if (rc == 0)
            rc = -posix_spawn(&child, shell, &actions, NULL, arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(copy);
    while (rc == 0 && waitpid(child, how, 0) < 0)
        rc = errno == EINTR ? 0 : -errno;
    return rc;
}

int
report_send(const struct report_content *report, const char *command)
{
    char page[PATH_MAX];
    int how = 0;
    snprintf(page, sizeof page, "%s/" LAYOUT_REPORT, report->root);
    const int status = report_save(report, page);
    if (status != EXIT_OK)
        return status;
    const int text = send_text(report);
    int rc = text < 0 ? text : send_set_environment(report, page);
    if (rc == 0)
        rc = send_run(command, text, &how);
    if (text >= 0)
        close(text);
    if (rc)
        cli_print_error("cannot run report.command: %s", strerror(-rc));
    else if (WIFSIGNALED(how))
        cli_print_error("report.command was killed by signal %d", WTERMSIG(how));
    else if (WEXITSTATUS(how))
        cli_print_error("report.command failed with exit status %d", WEXITSTATUS(how));
    else
        return EXIT_OK;
    return EXIT_PARTIAL;
}
