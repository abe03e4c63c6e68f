#include "service/cli/running/running.h"

#include "service/common/daemon_line.h"
#include "service/common/file_ops.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_WORDS 32 /* max arguments of a daemon */

static FILE *
running_open(int process, const char *name)
{
    const int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

/* Checks that a process has the same root directory. If that cannot be read, returns true. */
static bool
running_shares_root(int process)
{
    struct stat own, other;
    return stat("/", &own) < 0 || fstatat(process, "root", &other, 0) < 0 ||
           (own.st_dev == other.st_dev && own.st_ino == other.st_ino);
}

/* Checks the name and the PID namespace of a process. Child processes have another name. */
static bool
running_is_daemon(int process, struct running_daemon *daemon)
{
    char line[256];
    unsigned user = 0, effective = 0;
    bool named = false, here = true, has_user = false;
    FILE *file = running_open(process, "status");
    while (file && fgets(line, sizeof line, file)) {
        named |= strcmp(line, "Name:\t" DAEMON_PROGRAM "\n") == 0;
        has_user |= sscanf(line, "Uid: %u %u", &user, &effective) == 2;
        if (strncmp(line, "NSpid:\t", 7) == 0) /* one number per PID namespace */
            here = !strchr(line + 7, '\t');
    }
    if (file)
        fclose(file);
    daemon->user = effective;
    return named && here && has_user && running_shares_root(process);
}

/* Reads the arguments of a process into `words`, ended by NULL. The caller must free each word.
 * Returns their number, or 0 if there are too many or no arguments. */
static int
running_words(int process, char *words[MAX_WORDS + 1])
{
    int count = 0;
    size_t size = 0;
    FILE *file = running_open(process, "cmdline");
    words[0] = NULL;
    while (file && count < MAX_WORDS && getdelim(&words[count], &size, '\0', file) > 0) {
        words[++count] = NULL;
        size = 0;
    }
    free(words[count]);
    words[count] = NULL;
    if (file)
        fclose(file);
    return count < MAX_WORDS ? count : 0;
}

/* Reads NOCTULE_CONFIG of a process into *value, or NULL if it is not set. The caller must free it.
 * Returns 0 or -errno. */
static int
running_variable(int process, char **value)
{
    static const char variable[] = DAEMON_CONFIG_VARIABLE "=";
    char *entry = NULL;
    size_t size = 0;
    FILE *file = running_open(process, "environ");
    *value = NULL;
    if (!file)
        return -errno;
    while (!*value && getdelim(&entry, &size, '\0', file) > 0)
        if (strncmp(entry, variable, strlen(variable)) == 0)
            *value = strdup(entry + strlen(variable));
    const int rc = ferror(file) ? -EACCES : 0;
    free(entry);
    fclose(file);
    return rc;
}

/* Makes a path absolute, relative to the working directory of the process. */
static int
running_path(int process, const char *path, char absolute[PATH_MAX])
{
    ssize_t length = 0;
    if (path[0] != '/')
        length = readlinkat(process, "cwd", absolute, PATH_MAX);
    if (length < 0)
        return -errno;
    const size_t used = (size_t)length, room = PATH_MAX - used;
    const int more = room ? snprintf(absolute + used, room, "%s%s", used ? "/" : "", path) : -1;
    return more >= 0 && (size_t)more < room ? 0 : -ENAMETOOLONG;
}

static int
running_config(int process, const struct daemon_line *line, struct running_daemon *daemon)
{
    char *variable = NULL;
    int rc = line->config_file ? 0 : running_variable(process, &variable);
    const char *named = daemon_line_config(line->config_file, variable);
    if (rc == 0)
        rc = running_path(process, named ? named : DAEMON_CONFIG, daemon->config);
    if (rc == 0 && line->root)
        rc = running_path(process, line->root, daemon->root);
    if (rc < 0)
        daemon->config[0] = daemon->root[0] = '\0';
    free(variable);
    return rc;
}

/* Returns true if the process is a daemon. Details may be missing if this user cannot read them. */
static bool
running_is_one(int process, struct running_daemon *daemon)
{
    char *words[MAX_WORDS + 1], *order[MAX_WORDS + 1];
    struct daemon_line line;
    const int saved_opterr = opterr;
    if (!running_is_daemon(process, daemon))
        return false;
    const int count = running_words(process, words);
    memcpy(order, words, sizeof order);
    opterr = 0;
    const bool runs = count > 0 && daemon_line_parse(count, order, &line) == DAEMON_RUN;
    opterr = saved_opterr;
    const bool is_daemon = runs && !line.role;
    if (is_daemon)
        running_config(process, &line, daemon);
    for (char **word = words; *word; word++)
        free(*word);
    return is_daemon;
}

static int
running_add(int folder, const char *name, struct running_daemon **daemons, size_t *count)
{
    struct running_daemon daemon = {.pid = (pid_t)strtol(name, NULL, 10)};
    const int process = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_one = process >= 0 && running_is_one(process, &daemon);
    if (process >= 0)
        close(process);
    struct running_daemon *more = is_one ? realloc(*daemons, (*count + 1) * sizeof **daemons) : NULL;
    if (is_one && !more)
        return -ENOMEM;
    if (is_one) {
        *daemons = more;
        more[(*count)++] = daemon;
    }
    return 0;
}

static int
running_compare(const void *a, const void *b)
{
    const struct running_daemon *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

int
running_daemons(const char *proc, struct running_daemon **daemons, size_t *count)
{
    DIR *folder;
    const struct dirent *entry;
    *daemons = NULL;
    *count = 0;
    int rc = file_open_directory(AT_FDCWD, proc, 0, &folder);
    if (rc < 0)
        return rc;
    while (rc == 0 && (entry = readdir(folder)))
        if (isdigit((unsigned char)entry->d_name[0]))
            rc = running_add(dirfd(folder), entry->d_name, daemons, count);
    closedir(folder);
    if (*count > 1)
        qsort(*daemons, *count, sizeof **daemons, running_compare);
    if (rc == 0)
        return 0;
    free(*daemons);
    *daemons = NULL;
    *count = 0;
    return rc;
}
