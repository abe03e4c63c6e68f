/* web_files.c - see web_files.h. */
#include "service/web/web_files.h"

#include "service/common/layout.h"
#include "service/web/web_planes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Reads job and name. A name begins with a letter or a digit, so it is no hidden file and no way up. */
static bool
files_parse(const char *path, char job[16], char name[128])
{
    static const char files[] = "/files/";
    if (strncmp(path, WEB_PLANES_PATH, strlen(WEB_PLANES_PATH)) != 0)
        return false;
    const char *at = path + strlen(WEB_PLANES_PATH);
    const size_t digits = strspn(at, "0123456789");
    if (digits == 0 || digits > 9 || *at == '0' || strncmp(at + digits, files, strlen(files)) != 0)
        return false;
    snprintf(job, 16, "%.*s", (int)digits, at);
    at += digits + strlen(files);
    const size_t length = strlen(at);
    if (length == 0 || length > 127 || strspn(at, FILE_CHARACTERS) != length || strchr("._-", *at))
        return false;
    snprintf(name, 128, "%s", at);
    return true;
}

bool
web_files_is_path(const char *path)
{
    char job[16], name[128];
    return files_parse(path, job, name);
}

bool
web_files_are_served(const struct web *web)
{
    const struct conf_page *page = &web->conf->page;
    return page->token_file || page->tokens_file || page->user_header;
}

static const char *
files_type(const char *name)
{
    static const char *const types[][2] = {{".dcm", "application/dicom"},
                                           {".json", "application/json"},
                                           {".csv", "text/csv; charset=utf-8"},
                                           {".png", "image/png"}};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < sizeof types / sizeof *types; i++)
        if (strcmp(ending, types[i][0]) == 0)
            return types[i][1];
    return "application/octet-stream";
}

int
web_files_answer(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    char job[16], name[128], *path;
    struct stat status;
    if (!files_parse(request->path, job, name))
        return error_set(error, -ENOENT, CODE_NONE, "this file does not exist");
    if (!web_files_are_served(web))
        return error_set(
            error, -EPERM, CODE_NONE,
            "files contain patient data: they are served only with page.token_file, tokens_file or user_header");
    if (asprintf(&path, "%s/" LAYOUT_OUTBOX "/%s/%s", web->conf->root, job, name) < 0)
        return error_set_system(error, -ENOMEM, "read the file");
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    free(path);
    if (!is_file) {
        if (fd >= 0)
            close(fd);
        return error_set(error, -ENOENT, CODE_NONE, "job %s has no file %s", job, name);
    }
    answer->file = fd;
    answer->type = files_type(name);
    snprintf(answer->file_name, sizeof answer->file_name, "job-%s-%s", job, name);
    return 0;
}
