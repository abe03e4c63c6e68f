/*
 * fuzz_config.c - any bytes as a configuration file: refused with a reason, or read, and then its
 * text reads back to the same text.
 */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The bytes as a file in memory; its path, and the descriptor to close. */
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
