/*
 * bench_seg.c - times writing and reading back segmentation objects of 512 x 512 frames that contain spheres: BINARY,
 * FRACTIONAL with a fading border, or LABELMAP; native, in RLE, or deflated. Also measures their peak memory. Prints a JSON line per case. Times are
 * medians; CPU times are minima.
 *
 *   bench_seg [FOLDER [REPEATS [THREADS]]]   FOLDER for the objects, e.g. a tmpfs; /dev/shm; THREADS read back
 *
 * The sync is timed separately, because it measures the disk.
 */
#include "tests/peak.h"
#include "tests/tools/seconds.h"
#include "tests/unit/dicom/seg_sample.h"

#include <errno.h>
#include <math.h>
#include <sys/wait.h>

enum {
    SIDE = 512,
    MAX_REPEATS = 99,
};

struct timing {
    double wall_begun, processor_begun;
    double wall[MAX_REPEATS], processor[MAX_REPEATS];
    int count;
};

static void
begin(struct timing *timing)
{
    timing->wall_begun = seconds_of(CLOCK_MONOTONIC);
    timing->processor_begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void
end(struct timing *timing)
{
    timing->wall[timing->count] = seconds_of(CLOCK_MONOTONIC) - timing->wall_begun;
    timing->processor[timing->count++] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - timing->processor_begun;
}

/* Draws one sphere per segment, with different centres. Every plane must have voxels of every segment. */
static void
draw_spheres(struct seg_sample *sample)
{
    const struct geometry_stack *stack = &sample->stack;
    for (int32_t s = 0; s < sample->request.segment_count; s++) {
        const struct seg_segment *segment = &sample->segments[s];
        uint64_t *words = sample->words + (segment->bits - sample->words);
        double centre_x = SIDE / 2.0 + 12.0 * s;
        double half = stack->plane_count / 2.0;
        for (int32_t z = 0; z < stack->plane_count; z++) {
            double height = (z - half) / (half + 1.0);
            double radius = 200.0 * sqrt(1.0 - height * height);
            for (int32_t y = 0; y < SIDE; y++) {
                double dy = y - SIDE / 2.0;
                double width = radius * radius - dy * dy;
                if (width < 0.0)
                    continue;
                int32_t left = (int32_t)fmax(0.0, ceil(centre_x - sqrt(width)));
                int32_t right = (int32_t)fmin(SIDE - 1.0, floor(centre_x + sqrt(width)));
                uint64_t *row = words + ((int64_t)z * SIDE + y) * segment->words_per_row;
                for (int32_t x = left; x <= right; x++)
                    row[x / 64] |= UINT64_C(1) << x % 64;
            }
        }
    }
}

/* Draws the same spheres with a connectedness that decreases from the axis outwards. */
static void
draw_fading_spheres(struct seg_sample *sample)
{
    const struct geometry_stack *stack = &sample->stack;
    for (int32_t s = 0; s < sample->request.segment_count; s++) {
        double half = stack->plane_count / 2.0;
        for (int32_t z = 0; z < stack->plane_count; z++) {
            double height = (z - half) / (half + 1.0);
            double radius = 200.0 * sqrt(1.0 - height * height);
            for (int32_t y = 0; y < SIDE; y++) {
                for (int32_t x = 0; x < SIDE; x++) {
                    double dx = x - SIDE / 2.0 - 12.0 * s;
                    double dy = y - SIDE / 2.0;
                    double left = 1.0 - (dx * dx + dy * dy) / (radius * radius);
                    if (left > 0.0)
                        seg_sample_set_map(sample, s, x, y, z, (uint16_t)(left * 65535.0));
                }
            }
        }
    }
}

static int
compare_doubles(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;
    return (*left > *right) - (*left < *right);
}

static double
median_wall(struct timing *timing)
{
    qsort(timing->wall, (size_t)timing->count, sizeof(*timing->wall), compare_doubles);
    return timing->wall[timing->count / 2];
}

static double
least_processor(struct timing *timing)
{
    qsort(timing->processor, (size_t)timing->count, sizeof(*timing->processor), compare_doubles);
    return timing->processor[0];
}

static void
check(int rc, const struct error *error)
{
    if (rc) {
        fprintf(stderr, "%s: %s\n", code_name(error->code), error->message);
        exit(1);
    }
}

struct bench_case {
    int32_t planes;
    int32_t segments;
    enum seg_type type;
    enum derived_compression compression;
};

static const char *const types[] = {"BINARY", "FRACTIONAL", "LABELMAP"};
static const char *const compressions[] = {"none", "rle", "deflated"};

static void
run_case(const char *folder, const struct bench_case *bench, int repeats, int threads)
{
    struct seg_sample_shape shape = {.columns = SIDE,
                                     .rows = SIDE,
                                     .planes = bench->planes,
                                     .segments = bench->segments,
                                     .fractional = bench->type == SEG_FRACTIONAL};
    struct seg_sample sample;
    struct derived_summary summary = {0};
    struct error error = {.code = CODE_WRITE_FAILED};
    struct timing write = {0}, sync = {0}, verify = {0};
    long grown_write = 0;
    long grown_verify = 0;

    seg_sample_make(&sample, &shape);
    snprintf(sample.target, sizeof(sample.target), "%s/bench_seg-%d.dcm", folder, (int)getpid());
    sample.request.type = bench->type;
    sample.request.overlap_last = true;
    sample.request.source.compression = bench->compression;
    if (bench->type == SEG_FRACTIONAL)
        draw_fading_spheres(&sample);
    else
        draw_spheres(&sample);
    for (int i = 0; i < repeats; i++) {
        long before = peak_kib();
        int fd = open(sample.target, O_RDWR | O_CREAT | O_TRUNC, 0600);
        begin(&write);
        check(fd < 0 ? -errno : seg_write(&sample.request, fd, &summary, &error), &error);
        end(&write);
        begin(&sync);
        check(fdatasync(fd), &error);
        end(&sync);
        close(fd);
        long between = peak_kib();
        begin(&verify);
        check(seg_verify(&sample.request, sample.target, threads, &error), &error);
        end(&verify);
        if (i == 0) {
            grown_write = between - before;
            grown_verify = peak_kib() - between;
        }
    }
    printf(
        "{\"bench\": \"seg\", \"type\": \"%s\", \"compression\": \"%s\", \"planes\": %d, \"segments\": %d, \"frames\": "
        "%lld, "
        "\"bytes\": %lld, \"write_s\": %.4f, \"sync_s\": %.4f, \"verify_s\": %.4f, "
        "\"write_processor_s\": %.4f, \"verify_processor_s\": %.4f, "
        "\"write_peak_kib\": %ld, \"verify_peak_kib\": %ld}\n",
        types[bench->type], compressions[bench->compression], bench->planes, bench->segments, (long long)summary.frames,
        (long long)summary.bytes, median_wall(&write), median_wall(&sync), median_wall(&verify),
        least_processor(&write), least_processor(&verify), grown_write, grown_verify);
    fflush(stdout);
    seg_sample_free(&sample);
}

/* Runs each case in its own process, because peak memory is per process. */
static void
run_apart(const char *folder, const struct bench_case *bench, int repeats, int threads)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        run_case(folder, bench, repeats, threads);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(1);
}

int
main(int argc, char **argv)
{
    static const struct bench_case cases[] = {
        {300, 1, SEG_BINARY, 0},
        {1000, 1, SEG_BINARY, 0},
        {5000, 1, SEG_BINARY, 0},
        {1000, 5, SEG_BINARY, 0},
        {1000, 5, SEG_BINARY, DERIVED_DEFLATED},
        {300, 1, SEG_FRACTIONAL, 0},
        {1000, 1, SEG_FRACTIONAL, 0},
        {1000, 3, SEG_FRACTIONAL, 0},
        {1000, 3, SEG_FRACTIONAL, DERIVED_RLE},
        {1000, 5, SEG_LABELMAP, 0},
        {300, 5, SEG_LABELMAP, DERIVED_RLE},
        {1000, 5, SEG_LABELMAP, DERIVED_RLE},
        {1000, 5, SEG_LABELMAP, DERIVED_DEFLATED},
    };
    const char *folder = argc > 1 ? argv[1] : "/dev/shm";
    int repeats = argc > 2 ? atoi(argv[2]) : 9;
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    if (repeats < 1 || repeats > MAX_REPEATS) {
        fprintf(stderr, "REPEATS is 1 to %d\n", MAX_REPEATS);
        return 2;
    }
    dicom_init();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_apart(folder, &cases[i], repeats, threads);
    return 0;
}
