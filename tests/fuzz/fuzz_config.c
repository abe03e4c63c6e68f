/*
 * fuzz_config.c - any bytes as a configuration file: rejected with a reason, or read. In that case, its printed form
 * must read back to the same text.
 */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Creates a memory file of the bytes. Returns its descriptor, which the caller must close, and its path. */
static int
make_file(const void *bytes, size_t size, char *path, size_t path_size)
{
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        abort();
    snprintf(path, path_size, "/proc/self/fd/%d", fd);
    return fd;
}

static struct conf *
load(const void *bytes, size_t size)
{
    char path[64];
    struct error error = {0};
    struct conf *conf = NULL;
    int fd = make_file(bytes, size, path, sizeof(path));
    int rc = conf_load(path, &conf, &error);
    close(fd);
    if (rc < 0 && (conf || !error.message[0]))
        abort();
    return rc == 0 ? conf : NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct conf *conf = load(bytes, size);
    if (!conf)
        return 0;
    char *text = conf_to_text(conf);
    struct conf *again = load(text, strlen(text));
    if (!again)
        abort();
    char *text_again = conf_to_text(again);
    if (strcmp(text, text_again) != 0)
        abort();
    free(text);
    free(text_again);
    conf_free(again);
    conf_free(conf);
    return 0;
}
