/*
 * fuzz_replay.c - runs a fuzz target on stored inputs, without a fuzzer, with any compiler.
 *
 *   replay_<target> FILE-OR-FOLDER...
 *
 * A target aborts if it finds an error. It is killed if it exceeds the time or memory limit. Fails if there is no
 * input, because then it has tested nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_SECONDS = 60, /* per input */
    MOST_MIB = 768,    /* for all inputs */
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_memory(const char *path)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (usage.ru_maxrss / 1024 > MOST_MIB) {
        fprintf(stderr, "%s: %ld MiB\n", path, usage.ru_maxrss / 1024);
        exit(1);
    }
}

static int
replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status)) {
        perror(path);
        exit(2);
    }
    const size_t size = (size_t)status.st_size;
    /* Allocate exactly the size of the input, so that a sanitizer detects reads beyond it. */
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes || (size > 0 && fread(bytes, size, 1, file) != 1)) {
        perror(path);
        exit(2);
    }
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    alarm(MOST_SECONDS);
    LLVMFuzzerTestOneInput(bytes, size);
    alarm(0);
    free(bytes);
    check_memory(path);
    return 1;
}

static int
replay(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return replay_file(path);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        count += replay(name);
    }
    closedir(folder);
    return count;
}

int
main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += replay(argv[i]);
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
