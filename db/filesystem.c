/* filesystem.c - see filesystem.h. Thread-safe. */
#include "db/filesystem.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

/* linux/magic.h has some of these; the others are only in the sources of the file systems. */
static const struct {
    unsigned long type;
    const char *name;
} remote[] = {
    {0x00006969, "NFS"},    {0x0000517b, "SMB"},      {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"},
    {0x0000564c, "NCP"},    {0x5346414f, "AFS"},      {0x6b414653, "kAFS"},   {0x73757245, "Coda"},
    {0x00c36400, "Ceph"},   {0x01021997, "9P"},       {0x65735546, "FUSE"},   {0x0bd00bd0, "Lustre"},
    {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},   {0xaad7aaea, "PanFS"},  {0x01161970, "GFS2"},
    {0x7461636f, "OCFS2"},  {0xbeefdead, "StorNext"}, {0x786f4256, "vboxsf"}, {0x7c7c6673, "Parallels"},
    {0xbacbacbc, "vmhgfs"},
};

const char *
filesystem_remote_name(unsigned long type)
{
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++) {
        /* f_type is signed on some architectures: compare the 32 bits that count. */
        if ((type & 0xffffffffUL) == remote[i].type)
            return remote[i].name;
    }
    return NULL;
}

int
filesystem_check(const char *path, const char **name)
{
    *name = NULL;
    struct statfs status;
    int rc = statfs(path, &status) < 0 ? -errno : 0; /* follows a link to the file */
    if (rc == -ENOENT) {
        char *copy = strdup(path);
        rc = -ENOMEM;
        if (copy)
            rc = statfs(dirname(copy), &status) < 0 ? -errno : 0;
        free(copy);
    }
    if (rc < 0)
        return rc;
    *name = filesystem_remote_name((unsigned long)status.f_type);
    return *name ? -EREMOTE : 0;
}
