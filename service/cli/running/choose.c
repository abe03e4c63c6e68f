/* choose.c - which configuration a command goes by that was given none (cli.h). */
#include "service/cli/cli.h"
#include "service/cli/running/running.h"
#include "service/common/daemon_line.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A file and a command line that another user made may say what is run with the rights of this one (report.command).
 * So a daemon is followed that is this user's own; or root's or the service's, with a file that no other user can have
 * written.
 */
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
    return stat(daemon->config, &file) == 0 && (file.st_uid == 0 || file.st_uid == self) &&
           !(file.st_mode & S_IWOTH) && faccessat(AT_FDCWD, daemon->config, R_OK, AT_EACCESS) == 0;
}

static bool
choose_same(const struct running_daemon *one, const struct running_daemon *other)
{
    return strcmp(one->config, other->config) == 0 && strcmp(one->root, other->root) == 0;
}

/* Those that --root leaves, and of several with the same configuration and root the first, come to the front; how many.
 * *hidden, where that is none: one that is not followed, or NULL. */
static size_t
choose_sift(struct running_daemon *daemons, size_t count, const char *root,
            struct running_daemon **hidden)
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
            known |= choose_same(&daemons[k], &daemons[i]);
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
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s%s%s (process %d)",
                                 i ? ", " : "", daemons[i].config,
                                 daemons[i].root[0] ? " and root " : "", daemons[i].root,
                                 (int)daemons[i].pid);
    return error_set(error, -EEXIST, CODE_NONE,
                     "--config has to say which configuration is meant, since " DAEMON_PROGRAM
                     " runs with several: %s",
                     names);
}

static int
choose_refuse_hidden(const struct running_daemon *daemon, struct error *error)
{
    char number[16];
    const struct passwd *user = getpwuid(daemon->user);
    snprintf(number, sizeof number, "%u", (unsigned)daemon->user);
    return error_set(error, -EACCES, CODE_NONE,
                     "--config has to say which configuration is meant: " DAEMON_CONFIG
                     " is not there, and " DAEMON_PROGRAM " (process %d of user %s) runs with %s",
                     (int)daemon->pid, user ? user->pw_name : number,
                     daemon->config[0] ? daemon->config : "one that this user cannot see");
}

/* Which one is worth a line where it is not where everybody looks. */
static void
choose_tell(const struct running_daemon *daemon)
{
    if (strcmp(daemon->config, DAEMON_CONFIG) == 0 && !daemon->root[0])
        return;
    fprintf(stderr, "noctule: with %s%s%s, as " DAEMON_PROGRAM " (process %d)\n", daemon->config,
            daemon->root[0] ? " and root " : "", daemon->root, (int)daemon->pid);
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
    choose_tell(daemon);
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
