/*
 * bench_admission.c - times the steps before any job: reading the headers of a folder's files, and grouping them into
 * stacks. Prints a JSON line per number of threads. Times are medians; CPU times are minima.
 *
 *   bench_admission FOLDER [THREADS [REPEATS]]   1 to THREADS threads (2), 5 repeats
 *
 * The files are read once before timing, so that they are in the page cache. Files without an image are skipped.
 */
#include "dicom/read/geometry/geometry.h"
#include "service/pipeline/headers.h"
#include "tests/tools/seconds.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_REPEATS = 99,
};

static void
give_up(const char *what)
{
    perror(what);
    exit(1);
}

static int
is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static char **
list_files(const char *folder, size_t *count)
{
    struct dirent **entries;
    const int found = scandir(folder, &entries, is_visible, alphasort);
    char **paths = found > 0 ? calloc((size_t)found, sizeof(*paths)) : NULL;
    if (!paths)
        give_up(folder);
    for (int i = 0; i < found; i++) {
        if (asprintf(&paths[i], "%s/%s", folder, entries[i]->d_name) < 0)
            give_up(folder);
        free(entries[i]);
    }
    free(entries);
    *count = (size_t)found;
    return paths;
}

/* Seconds of one admission. */
struct times {
    double reading, grouping, processor;
};

static struct times
admit(char *const *paths, size_t count, int threads, int32_t *accepted)
{
    const struct geometry_limits limits = {.min_planes = 1, .spacing_tolerance = 0.01};
    struct headers headers;
    struct geometry_series *series;
    struct dicom_instance **instances = calloc(count, sizeof(struct dicom_instance *));
    struct error error;
    if (!instances)
        give_up("memory");
    const double processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    const double start = seconds_of(CLOCK_MONOTONIC);
    if (headers_read(paths, count, threads, NULL, &headers))
        give_up("headers");
    const double between = seconds_of(CLOCK_MONOTONIC);
    int32_t images = 0;
    for (size_t i = 0; i < count; i++)
        if (headers.instances[i])
            instances[images++] = headers.instances[i];
    if (geometry_group(instances, images, &limits, &series, &error))
        give_up(error.message);
    const double end = seconds_of(CLOCK_MONOTONIC);
    const struct times times = {between - start, end - between, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor};
    *accepted = 0;
    for (int32_t i = 0; i < series->stack_count; i++)
        *accepted += series->stacks[i].accepted;
    geometry_series_free(series);
    headers_free(&headers);
    free(instances);
    return times;
}

static int
compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void
time_threads(char *const *paths, size_t count, int threads, int repeats)
{
    double reading[MAX_REPEATS], grouping[MAX_REPEATS], processor[MAX_REPEATS];
    int32_t accepted = 0;
    for (int i = 0; i < repeats; i++) {
        const struct times times = admit(paths, count, threads, &accepted);
        reading[i] = times.reading;
        grouping[i] = times.grouping;
        processor[i] = times.processor;
    }
    qsort(reading, (size_t)repeats, sizeof(*reading), compare);
    qsort(grouping, (size_t)repeats, sizeof(*grouping), compare);
    qsort(processor, (size_t)repeats, sizeof(*processor), compare);
    printf("{\"bench\": \"admission\", \"files\": %zu, \"stacks\": %d, \"threads\": %d, "
           "\"repeats\": %d, \"reading_s\": %.4f, \"grouping_s\": %.4f, \"cpu_s\": %.4f}\n",
           count, accepted, threads, repeats, reading[repeats / 2], grouping[repeats / 2], processor[0]);
}

int
main(int argc, char **argv)
{
    const int threads = argc > 2 ? atoi(argv[2]) : 2, repeats = argc > 3 ? atoi(argv[3]) : 5;
    if (argc < 2 || threads < 1 || repeats < 1 || repeats > MAX_REPEATS) {
        fputs("usage: bench_admission FOLDER [THREADS [REPEATS]]\n", stderr);
        return 2;
    }
    size_t count;
    int32_t accepted;
    char **paths = list_files(argv[1], &count);
    dicom_init();
    (void)admit(paths, count, threads, &accepted);
    for (int n = 1; n <= threads; n++)
        time_threads(paths, count, n, repeats);
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    return 0;
}
