/* confine.c - see confine.h. The kernel's interface is called as it is: there is no library for it. */
#include "service/common/confine.h"

#include "service/common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the headers of older systems do not have. */
#define FS_REFER       (1u << 13)
#define FS_TRUNCATE    (1u << 14)
#define NET_BIND       1u
#define NET_CONNECT    2u
#define SCOPE_ABSTRACT 1u
#define SCOPE_SIGNAL   2u

struct ruleset {
    uint64_t fs, net, scoped;
};

/* All that changes what is on disk, and running a program. */
static uint64_t
confine_fs(long abi)
{
    uint64_t access =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
        LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
        LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
        LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
    access |= abi >= 2 ? FS_REFER : 0;
    return access | (abi >= 3 ? FS_TRUNCATE : 0);
}

static int
confine_allow_below(int ruleset, const char *folder, uint64_t access)
{
    const struct landlock_path_beneath_attr rule = {
        .allowed_access = access, .parent_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)};
    if (rule.parent_fd < 0)
        return -errno;
    int rc = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
                 ? -errno
                 : 0;
    close(rule.parent_fd);
    return rc;
}

/* Beside its folder: what libraries put aside, and devices such as /dev/null. */
static int
confine_allow_writes(int ruleset, const char *folder, uint64_t access)
{
    const uint64_t writes = access & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE;
    int rc = confine_allow_below(ruleset, folder, writes);
    if (rc == 0)
        rc = confine_allow_below(ruleset, "/tmp", writes);
    return rc ? rc : confine_allow_below(ruleset, "/dev", LANDLOCK_ACCESS_FS_WRITE_FILE);
}

static int
confine_by(const struct ruleset *rules, size_t size, const struct confine *confine)
{
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, rules, size, 0);
    if (ruleset < 0)
        return -errno;
    int rc = rules->fs ? confine_allow_writes(ruleset, confine->writes_below, rules->fs) : 0;
    if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        rc = -errno;
    if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        rc = -errno;
    close(ruleset);
    return rc;
}

int
confine_self(const struct confine *confine)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    const struct ruleset rules = {
        .fs = abi >= 1 && confine->writes_below ? confine_fs(abi) : 0,
        .net = abi >= 4
                   ? (confine->may_listen ? 0 : NET_BIND) | (confine->may_connect ? 0 : NET_CONNECT)
                   : 0,
        .scoped = abi >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0,
    };
    const size_t size = abi >= 6   ? sizeof rules
                        : abi >= 4 ? offsetof(struct ruleset, scoped)
                                   : offsetof(struct ruleset, net);
    int rc = 0;
    if (rules.fs || rules.net || rules.scoped)
        rc = confine_by(&rules, size, confine);
    if (rc)
        log_warn("role.confine", LOG_STR("error", strerror(-rc)));
    else
        log_debug("role.confined", LOG_INT("landlock", abi), LOG_INT("files", rules.fs != 0),
                  LOG_INT("net", rules.net != 0), LOG_INT("signals", rules.scoped != 0));
    return rc;
}
