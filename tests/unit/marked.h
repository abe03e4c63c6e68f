/* marked.h - counts the processes that a test has started, by a variable of their environment. */
#ifndef NOCTULE_TESTS_UNIT_MARKED_H
#define NOCTULE_TESTS_UNIT_MARKED_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the number of processes with the mark, "NAME=VALUE", in their environment. */
static int
count_marked(const char *mark)
{
    char path[300], text[8192];
    int count = 0;
    DIR *directory = opendir("/proc");
    for (const struct dirent *entry; (entry = readdir(directory));) {
        snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text);
        count += size > 0 && memmem(text, (size_t)size, mark, strlen(mark)) != NULL;
        if (fd >= 0)
            close(fd);
    }
    closedir(directory);
    return count;
}

#endif
