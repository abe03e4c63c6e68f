/* bound.c - see bound.h. */
#include "service/worker/bound.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

/* Returns the bytes that count against RLIMIT_DATA now, or -errno. */
static int64_t
bound_data(void)
{
    long long kib;
    char line[128];
    int64_t data = -ENODATA;
    FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return -errno;
    while (data < 0 && fgets(line, sizeof line, status))
        if (sscanf(line, "VmData: %lld kB", &kib) == 1)
            data = (int64_t)kib * 1024;
    fclose(status);
    return data;
}

int
bound_memory(int64_t more)
{
    const int64_t data = bound_data();
    if (data < 0)
        return (int)data;
    const struct rlimit limit = {(rlim_t)(data + more), (rlim_t)(data + more)};
    return setrlimit(RLIMIT_DATA, &limit) == 0 ? 0 : -errno;
}
