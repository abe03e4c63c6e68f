/*
 * pull_accessions.c - see pull_attempt.h. A line of a file is the item's number in its batch, a space, and the
 * accession number.
 */
#include "service/daemon/pull/pull_attempt.h"

#include "base/durable.h"
#include "base/text.h"
#include "db/pull_queue.h"
#include "service/common/layout.h"
#include "service/common/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the descriptor of the folder, or -errno. */
static int
accessions_open(const struct core *core)
{
    char *path = core_path(core, LAYOUT_PULL);
    const int folder = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
    const int rc = folder >= 0 ? folder : path ? -errno : -ENOMEM;
    free(path);
    return rc;
}

int
pull_accessions_store(const struct core *core, int64_t batch, const char *const *accessions, size_t count)
{
    struct text_stream text;
    char name[32];
    const int folder = accessions_open(core);
    if (folder < 0)
        return folder;
    int rc = text_open(&text);
    if (rc == 0) {
        for (size_t i = 0; i < count; i++)
            if (accessions[i])
                fprintf(text.out, "%zu %s\n", i, accessions[i]);
        rc = text_close(&text);
        snprintf(name, sizeof name, "%" PRId64, batch);
        if (rc == 0)
            rc = durable_write(folder, name, text.bytes, strlen(text.bytes), 0600, DURABLE_REPLACE);
        if (rc == 0)
            rc = durable_sync_folder(folder, ".");
        free(text.bytes);
    }
    close(folder);
    return rc;
}

/* Reads the line of this number. Returns 0, -EBADMSG for an invalid line, or -ENOENT. */
static int
accessions_read_line(FILE *file, int32_t line, char accession[PULL_ACCESSION_SIZE])
{
    char text[64];
    while (fgets(text, sizeof text, file)) {
        char *end;
        text[strcspn(text, "\n")] = '\0';
        if (strtol(text, &end, 10) != line || end == text || *end != ' ')
            continue;
        if (!pull_accession_fits(end + 1))
            return -EBADMSG;
        strcpy(accession, end + 1);
        return 0;
    }
    return ferror(file) ? -EIO : -ENOENT;
}

int
pull_accessions_find(const struct core *core, int64_t batch, int32_t line, char accession[PULL_ACCESSION_SIZE])
{
    char name[32];
    const int folder = accessions_open(core);
    if (folder < 0)
        return folder;
    snprintf(name, sizeof name, "%" PRId64, batch);
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd < 0 ? -errno : 0;
    close(folder);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        if (fd >= 0)
            close(fd);
        return rc ? rc : -ENOMEM;
    }
    rc = accessions_read_line(file, line, accession);
    fclose(file);
    return rc;
}

void
pull_accessions_sweep(const struct core *core)
{
    const int folder = accessions_open(core);
    DIR *directory = folder < 0 ? NULL : fdopendir(folder);
    const struct dirent *entry;
    if (!directory) {
        log_error("pull.vault", LOG_STR("error", strerror(folder < 0 ? -folder : errno)));
        if (folder >= 0)
            close(folder);
        return;
    }
    while ((entry = readdir(directory))) {
        char *end;
        const int64_t batch = strtoll(entry->d_name, &end, 10);
        /* the file belongs to no batch, or to one that no longer needs it */
        if (entry->d_name[0] != '.' && (*end || queue_pulls_need_keys(core->queue, batch) == 0))
            unlinkat(folder, entry->d_name, 0);
    }
    closedir(directory);
}
