/* rights.c - the rights of the service. */
#include "service/cli/cli.h"

#include "service/common/daemon_line.h"

#include <errno.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

int
cli_take_rights(const struct conf *conf, const struct passwd **user)
{
    struct stat root;
    const uid_t caller = getuid();
    *user = conf && stat(conf->root, &root) == 0 ? getpwuid(root.st_uid) : getpwnam(DAEMON_USER);
    if (!*user || geteuid() != 0 || (*user)->pw_uid == 0)
        return 0;
    if (initgroups((*user)->pw_name, (*user)->pw_gid) < 0 ||
        setresgid((*user)->pw_gid, (*user)->pw_gid, (*user)->pw_gid) < 0 ||
        setresuid((*user)->pw_uid, (*user)->pw_uid, caller) < 0)
        return -errno;
    return 1;
}
