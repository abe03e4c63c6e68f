/* choose.c - chooses a configuration for a command that has no --config (cli.h). */
#include "service/cli/cli.h"
#include "service/cli/running/running.h"
#include "service/common/daemon_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A configuration may run commands with the rights of the caller (report.command). So a daemon is
 * trusted if it belongs to this user. A daemon of root or of the service is trusted if no other
 * user can write its file. */
static bool
choose_trusts(const struct running_daemon *daemon)
{
    struct stat file;
    const uid_t self = geteuid();
    if (!daemon->config[0] || daemon->user == self)
        return daemon->config[0] != '\0';
    const struct passwd *service = getpwnam(DAEMON_USER);
    if (daemon->user != 0 && !(service && service->pw_uid == daemon->user))
        return false;
    return stat(daemon->config, &file) == 0 && (file.st_uid == 0 || file.st_uid == self) && !(file.st_mode & S_IWOTH) &&
           faccessat(AT_FDCWD, daemon->config, R_OK, AT_EACCESS) == 0;
}

/* Moves the trusted daemons that match `root` to the front, one per configuration and root, and
 * returns their number. Sets *hidden to a daemon that is not trusted, or NULL. */
static size_t
choose_sift(struct running_daemon *daemons, size_t count, const char *root, struct running_daemon **hidden)
{
    const pid_t wanted = root ? cli_find_daemon(root) : 0;
    size_t kept = 0;
    *hidden = NULL;
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        if (root && daemons[i].pid != wanted)
            continue;
        if (!choose_trusts(&daemons[i])) {
            *hidden = *hidden ? *hidden : &daemons[i];
            continue;
        }
        for (size_t k = 0; k < kept; k++)
            known |= strcmp(daemons[k].config, daemons[i].config) == 0 && strcmp(daemons[k].root, daemons[i].root) == 0;
        if (!known)
            daemons[kept++] = daemons[i];
    }
    return kept;
}

static int
choose_refuse_several(const struct running_daemon *daemons, size_t count, struct error *error)
{
    char names[sizeof error->message] = "";
    for (size_t i = 0, used = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s%s%s (process %d)", i ? ", " : "",
                                 daemons[i].config, daemons[i].root[0] ? " and root " : "", daemons[i].root,
                                 (int)daemons[i].pid);
    return error_set(error, -EEXIST, CODE_NONE,
                     "give --config, because " DAEMON_PROGRAM " runs with several configurations: %s", names);
}

static int
choose_refuse_hidden(const struct running_daemon *daemon, struct error *error)
{
    char number[16];
    const struct passwd *user = getpwuid(daemon->user);
    snprintf(number, sizeof number, "%u", (unsigned)daemon->user);
    return error_set(error, -EACCES, CODE_NONE,
                     "give --config: " DAEMON_CONFIG " does not exist, and " DAEMON_PROGRAM
                     " (process %d of user %s) runs with %s",
                     (int)daemon->pid, user ? user->pw_name : number,
                     daemon->config[0] ? daemon->config : "a file that this user cannot see");
}

static int
choose_take(struct cli_context *context, const struct running_daemon *daemon, struct error *error)
{
    context->chosen[0] = strdup(daemon->config);
    context->chosen[1] = strdup(daemon->root);
    if (!context->chosen[0] || !context->chosen[1])
        return error_set(error, -ENOMEM, CODE_NONE, "out of memory");
    context->config_path = context->chosen[0];
    if (!context->root && daemon->root[0])
        context->root = context->chosen[1];
    if (strcmp(daemon->config, DAEMON_CONFIG) != 0 || daemon->root[0])
        fprintf(stderr, "noctule: using %s%s%s of the running " DAEMON_PROGRAM " (process %d)\n", daemon->config,
                daemon->root[0] ? " and root " : "", daemon->root, (int)daemon->pid);
    return 0;
}

int
cli_choose_conf(struct cli_context *context, struct error *error)
{
    struct running_daemon *daemons, *hidden;
    size_t count;
    int rc = 0;
    if (context->config_path)
        return 0;
    if (running_daemons("/proc", &daemons, &count) == -ENOMEM)
        return error_set(error, -ENOMEM, CODE_NONE, "out of memory");
    count = choose_sift(daemons, count, context->root, &hidden);
    if (count > 1)
        rc = choose_refuse_several(daemons, count, error);
    else if (count == 1)
        rc = choose_take(context, &daemons[0], error);
    else if (hidden && access(DAEMON_CONFIG, F_OK) < 0)
        rc = choose_refuse_hidden(hidden, error);
    else
        context->config_path = DAEMON_CONFIG;
    free(daemons);
    return rc;
}
