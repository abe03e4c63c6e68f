/* input_confined.c - see input.h. */
#include "service/cli/input/input.h"

#include "service/cli/cli.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folders of the input files, in order. */
struct confined_folders {
    struct collection real; /* without symbolic links */
    char last[PATH_MAX];    /* as given */
};

/* Adds the folder of a file. A link adds the folder of its target. Equal folders in a row are
 * resolved once. */
static int
confined_add_file(struct confined_folders *folders, const char *file)
{
    struct stat status;
    char path[PATH_MAX], real[PATH_MAX];
    const bool is_link = lstat(file, &status) == 0 && S_ISLNK(status.st_mode);
    if (is_link ? !realpath(file, path) : strlen(file) >= sizeof path)
        return 0;
    if (!is_link)
        strcpy(path, file);
    const char *folder = dirname(path);
    if (!is_link && strcmp(folder, folders->last) == 0)
        return 0;
    if (!is_link)
        memmove(folders->last, folder, strlen(folder) + 1);
    if (!realpath(folder, real)) /* reading it reports the error */
        return 0;
    const size_t count = folders->real.count;
    return count > 0 && strcmp(folders->real.paths[count - 1], real) == 0 ? 0 : input_collect_add(&folders->real, real);
}

static int
confined_complain(int rc)
{
    if (rc)
        cli_print_error("cannot confine this process (Landlock, seccomp), and foreign files must "
                        "not be read without: %s",
                        strerror(-rc));
    return rc;
}

int
cli_confine(enum confine_role role, const struct collection *files, char *const *others, size_t other_count,
            const struct command_places *places)
{
    struct command_places all = *places;
    struct confined_folders folders = {.last = ""};
    int rc = 0;
    for (size_t i = 0; i < files->count && rc == 0; i++)
        rc = confined_add_file(&folders, files->paths[i]);
    for (size_t i = 0; i < other_count && rc == 0; i++)
        rc = confined_add_file(&folders, others[i]);
    all.inputs = folders.real.paths;
    all.input_count = folders.real.count;
    if (!rc)
        rc = confine_command(role, &all);
    input_collect_free(&folders.real);
    return confined_complain(rc);
}

int
cli_confine_calls(enum confine_role role)
{
    return confined_complain(call_filter_install(role));
}
