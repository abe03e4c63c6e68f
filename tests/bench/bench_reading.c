/*
 * bench_reading.c - times reading files of 512 x 512 x 16 bits: header, open, pixels into the caller's buffer, close.
 * Prints a JSON line per case; times are medians over the repeats.
 *
 *   bench_reading [THREADS [FILES [REPEATS]]]     1 to THREADS threads (2), 1000 files, 5 repeats
 *
 * The files contain noise. They are made in a temporary folder ($TMPDIR or /tmp) and read once before timing, so that
 * they are in the page cache. read_us is the time of only read(2) of the same files: the lower bound.
 */
#include "dicom/dicom.h"
#include "tests/tools/seconds.h"
#include "tests/unit/dicom_bytes.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    SIDE = 512,
    MAX_REPEATS = 99,
};

static char folder[256];
static int file_count = 1000;

static void
name_file(int index, char path[300])
{
    snprintf(path, 300, "%s/%04d.dcm", folder, index);
}

static void
make_files(void)
{
    uint16_t *pixels = malloc(SIDE * SIDE * sizeof(*pixels));
    if (!pixels)
        abort();
    uint64_t state = 1;
    for (int i = 0; i < file_count; i++) {
        for (int k = 0; k < SIDE * SIDE; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            pixels[k] = (uint16_t)(state >> 48);
        }
        char position[32], instance[64], path[300];
        snprintf(position, sizeof(position), "-128\\-128\\%d", i);
        snprintf(instance, sizeof(instance), "1.2.3.4.1.%d", i);
        struct sample_image image = SAMPLE_IMAGE;
        image.position = position;
        image.instance_uid = instance;
        image.rows = image.columns = SIDE;
        image.bits_stored = 16;
        image.high_bit = 15;
        image.pixels = pixels;
        image.pixel_size = SIDE * SIDE * sizeof(*pixels);
        name_file(i, path);
        sample_write(&image, path);
    }
    free(pixels);
}

static void
remove_files(void)
{
    for (int i = 0; i < file_count; i++) {
        char path[300];
        name_file(i, path);
        unlink(path);
    }
    rmdir(folder);
}

/* Files of a thread: every thread_count-th. */
struct share {
    int first, step;
    void (*read_one)(const char *path, uint8_t *buffer);
};

static void
read_image(const char *path, uint8_t *buffer)
{
    struct error error;
    struct dicom_instance *instance;
    struct dicom_pixels *pixels;
    if (dicom_peek(path, &instance, &error) || dicom_pixels_open(instance, &pixels, &error) ||
        dicom_pixels_read(pixels, 0, buffer, &error)) {
        fprintf(stderr, "%s: %s\n", code_name(error.code), error.message);
        exit(1);
    }
    dicom_pixels_close(pixels);
    dicom_instance_free(instance);
}

static void
read_bytes(const char *path, uint8_t *buffer)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (read(fd, buffer, SIDE * SIDE * 2) > 0)
        ;
    close(fd);
}

static void *
read_share(void *argument)
{
    const struct share *share = argument;
    uint8_t *buffer = malloc(SIDE * SIDE * 2);
    if (!buffer)
        abort();
    for (int i = share->first; i < file_count; i += share->step) {
        char path[300];
        name_file(i, path);
        share->read_one(path, buffer);
    }
    free(buffer);
    return NULL;
}

static double
time_all(int thread_count, void (*read_one)(const char *, uint8_t *))
{
    pthread_t threads[64];
    struct share shares[64];
    const double start = seconds_of(CLOCK_MONOTONIC);
    for (int i = 0; i < thread_count; i++) {
        shares[i] = (struct share){i, thread_count, read_one};
        if (pthread_create(&threads[i], NULL, read_share, &shares[i]))
            abort();
    }
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    return (seconds_of(CLOCK_MONOTONIC) - start) / file_count * 1e6;
}

static int
compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double
median_us(int thread_count, int repeats, void (*read_one)(const char *, uint8_t *))
{
    double times[MAX_REPEATS];
    for (int i = 0; i < repeats; i++)
        times[i] = time_all(thread_count, read_one);
    qsort(times, (size_t)repeats, sizeof(*times), compare);
    return times[repeats / 2];
}

static int
argument(int argc, char **argv, int index, int otherwise, int most)
{
    const int value = argc > index ? atoi(argv[index]) : otherwise;
    return value < 1 ? 1 : value > most ? most : value;
}

int
main(int argc, char **argv)
{
    const int most_threads = argument(argc, argv, 1, 2, 64);
    file_count = argument(argc, argv, 2, 1000, 9999);
    const int repeats = argument(argc, argv, 3, 5, MAX_REPEATS);
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/bench_reading.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    dicom_init();
    make_files();
    time_all(1, read_bytes);
    double alone = 0;
    for (int threads = 1; threads <= most_threads; threads++) {
        const double read_us = median_us(threads, repeats, read_bytes);
        const double cpu_start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        const double us = median_us(threads, repeats, read_image);
        const double cpu_us = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_start) / repeats / file_count * 1e6;
        if (threads == 1)
            alone = us;
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"bench\": \"reading\", \"files\": %d, \"bytes\": %d, \"threads\": %d, "
               "\"repeats\": %d, \"us_per_file\": %.1f, \"speedup\": %.2f, \"cpu_us\": %.1f, "
               "\"read_us\": %.1f, "
               "\"max_rss_mib\": %ld}\n",
               file_count, SIDE * SIDE * 2, threads, repeats, us, alone / us, cpu_us, read_us, usage.ru_maxrss / 1024);
    }
    remove_files();
    return 0;
}
