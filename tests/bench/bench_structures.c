/*
 * bench_structures.c - measures the CPU time of writing and reading back structure sets of ellipses with ragged outlines
 * on planes of 512 x 512, and of a BINARY SEG of the same masks. Prints a JSON line per case, with the peak memory beyond
 * the masks.
 *
 *   bench_structures [FOLDER [REPEATS]]   FOLDER for the objects; /dev/shm
 *
 * Reading back includes drawing the contours and comparing each voxel.
 */
#include "dicom/objects/rtstruct/rtstruct_object.h"
#include "kernels/mask/contours.h"
#include "tests/peak.h"
#include "tests/tools/seconds.h"
#include "tests/unit/dicom/seg_sample.h"

#include <math.h>
#include <sys/wait.h>

enum { SIDE = 512 };

struct drawing {
    struct image_planes planes;
    uint64_t *bits;
    const struct seg_request *seg;
    int64_t points, contours;
};

static void
check(int rc, const struct error *error)
{
    if (rc) {
        fprintf(stderr, "%s: %s\n", code_name(error->code), error->message);
        exit(1);
    }
}

/* Draws an ellipse. Its rows end at random within three voxels, as those of a threshold do. */
static void
draw_ellipses(struct seg_sample *sample)
{
    uint32_t state = 1;
    for (int32_t s = 0; s < sample->request.segment_count; s++)
        for (int32_t z = 0; z < sample->stack.plane_count; z++)
            for (int32_t y = 90 + 4 * s; y < 420; y++) {
                const double dy = (y - 255) / 165.0, half = 210 * sqrt(fmax(0, 1 - dy * dy));
                state = state * 1664525 + 1013904223;
                const int32_t left = (int32_t)(256 - half) + (int32_t)(state >> 30);
                const int32_t right = (int32_t)(256 + half) - (int32_t)(state >> 28 & 3);
                for (int32_t x = left; x < right; x++)
                    seg_sample_set(sample, s, x, y, z);
            }
}

static int
compare(void *context, int32_t segment, const struct rtstruct_contours *contours, struct error *error)
{
    struct drawing *drawing = context;
    struct contours_drawn drawn;
    const struct contours_request request = {&drawing->planes, contours->contours, contours->count, false, false};
    const int rc = kernels_mask_contours(&request, drawing->bits, &drawn, error);
    const size_t bytes = SIDE / 8 * SIDE * (size_t)drawing->planes.extent.slices;
    if (!rc && memcmp(drawing->bits, drawing->seg->segments[segment].bits, bytes) != 0)
        abort();
    drawing->points += drawn.points;
    drawing->contours += contours->count;
    return rc;
}

static void
run_case(const char *folder, int32_t count, int32_t segments, int repeats)
{
    static const char *const types[SEG_SAMPLE_MAX_SEGMENTS] = {"ORGAN", "", "", "", "", "", "", ""};
    const struct seg_sample_shape shape = {.columns = SIDE, .rows = SIDE, .planes = count, .segments = segments};
    struct seg_sample sample;
    struct derived_summary structures, seg;
    struct error error = {0};
    double write = INFINITY, verify = INFINITY, write_seg = INFINITY, verify_seg = INFINITY;
    long grown_write = 0, grown_verify = 0;
    seg_sample_make(&sample, &shape);
    snprintf(sample.target, sizeof(sample.target), "%s/bench_structures-%d.dcm", folder, (int)getpid());
    draw_ellipses(&sample);
    const struct rtstruct_request request = {.seg = &sample.request, .types = types, .series_description = ""};
    struct drawing drawing = {.seg = &sample.request, .bits = calloc((size_t)count * SIDE, SIDE / 8)};
    double *origins = calloc((size_t)count, 3 * sizeof(*origins));
    if (!drawing.bits || !origins)
        abort();
    for (int32_t p = 0; p < count; p++)
        memcpy(origins + 3 * p, sample.frames[p].position, 3 * sizeof(*origins));
    drawing.planes = (struct image_planes){.extent = {SIDE, SIDE, count},
                                           .axes = {1, 0, 0, 0, 1, 0},
                                           .spacing = {0.75, 0.5},
                                           .thickness = 1,
                                           .origins = origins};
    memset(drawing.bits, 1, (size_t)count * SIDE * SIDE / 8);
    for (int i = 0; i < repeats; i++) {
        const long before = peak_kib();
        int fd = open(sample.target, O_RDWR | O_CREAT | O_TRUNC, 0600);
        double begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        check(rtstruct_write(&request, fd, &structures, &error), &error);
        write = fmin(write, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun);
        close(fd);
        const long between = peak_kib();
        drawing.points = drawing.contours = 0;
        begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        check(rtstruct_verify(&request, sample.target, compare, &drawing, &error), &error);
        verify = fmin(verify, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun);
        if (i == 0) {
            grown_write = between - before;
            grown_verify = peak_kib() - between;
        }
        fd = open(sample.target, O_RDWR | O_CREAT | O_TRUNC, 0600);
        begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        check(seg_write(&sample.request, fd, &seg, &error), &error);
        write_seg = fmin(write_seg, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun);
        close(fd);
        begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        check(seg_verify(&sample.request, sample.target, 1, &error), &error);
        verify_seg = fmin(verify_seg, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun);
    }
    printf("{\"bench\": \"structures\", \"planes\": %d, \"segments\": %d, \"contours\": %lld, \"points\": %lld, "
           "\"bytes\": "
           "%lld, \"write_s\": %.4f, \"verify_s\": %.4f, \"write_peak_kib\": %ld, \"verify_peak_kib\": %ld, "
           "\"seg_bytes\": "
           "%lld, \"seg_write_s\": %.4f, \"seg_verify_s\": %.4f}\n",
           count, segments, (long long)drawing.contours, (long long)drawing.points, (long long)structures.bytes, write,
           verify, grown_write, grown_verify, (long long)seg.bytes, write_seg, verify_seg);
    free(drawing.bits);
    free(origins);
    seg_sample_free(&sample);
}

int
main(int argc, char **argv)
{
    static const int32_t cases[][2] = {{60, 1}, {600, 1}, {600, 4}};
    const char *folder = argc > 1 ? argv[1] : "/dev/shm";
    const int repeats = argc > 2 ? atoi(argv[2]) : 3;
    dicom_init();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = 0;
        const pid_t child = fork(); /* peak memory is per process */
        if (child == 0) {
            run_case(folder, cases[i][0], cases[i][1], repeats);
            exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
