/*
 * write_pmap.c - for tests: writes a parametric map of DICOM files with codes given as bytes, reads
 * it back, and prints what it did as a line of JSON.
 *
 *   write_pmap [OPTION...] CODES OUTPUT INPUT...
 *
 * CODES holds one byte for each voxel that is not on its plane's edge, columns fastest, then rows,
 * then planes in ascending position. On a fault, code and sentence go to standard error, and the
 * status is 1.
 */
#include "pmap.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct options {
    const char *kind;
    const char *description;
    const char *explanation;
};

struct inputs {
    struct dicom_instance **instances;
    int32_t count;
};

static _Noreturn void
die(const char *code, const char *sentence)
{
    fprintf(stderr, "%s: %s\n", code, sentence);
    exit(1);
}

static void
check(int error, const struct dicom_fault *fault)
{
    if (error)
        die(fault->code, fault->sentence);
}

static void *
need(void *memory)
{
    if (!memory)
        die("OUT_OF_MEMORY", "no memory");
    return memory;
}

static int
parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"kind", required_argument, NULL, 'k'},
        {"description", required_argument, NULL, 'd'},
        {"explanation", required_argument, NULL, 'e'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){"lbp", "", "Local binary pattern"};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'k')
            options->kind = optarg;
        else if (option == 'd')
            options->description = optarg;
        else if (option == 'e')
            options->explanation = optarg;
        else
            return -1;
    }
    return argc - optind < 3 ? -1 : optind;
}

static struct inputs
peek_all(char **paths, int count)
{
    struct inputs inputs = {
        .instances = need(calloc((size_t)count, sizeof(struct dicom_instance *))),
        .count = count,
    };
    struct dicom_fault fault;
    for (int i = 0; i < count; i++)
        check(dicom_peek(paths[i], &inputs.instances[i], &fault), &fault);
    return inputs;
}

static const struct geometry_stack *
only_stack(const struct geometry_series *series)
{
    if (series->stack_count != 1)
        die("STACK_NOT_FOUND", "there are several");
    check(!series->stacks[0].accepted, &series->stacks[0].fault);
    return &series->stacks[0];
}

static uint8_t *
read_codes(const char *path, const struct geometry_stack *stack)
{
    int64_t inner = (int64_t)(stack->columns - 2) * (stack->rows - 2);
    size_t count = stack->columns < 3 || stack->rows < 3 ? 0 : (size_t)(inner * stack->plane_count);
    uint8_t *codes = need(malloc(count + 1));
    FILE *file = fopen(path, "rb");
    if (!file)
        die("FILE_UNREADABLE", path);
    if (fread(codes, 1, count + 1, file) != count)
        die("FILE_UNREADABLE", "not as many codes as voxels");
    fclose(file);
    return codes;
}

static double
seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The most that this process has had in memory. */
static long
peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void
write_and_verify(const struct pmap_request *request, const char *output)
{
    struct seg_summary summary;
    struct dicom_fault fault;
    int fd = open(output, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        die("OUTPUT_UNWRITABLE", output);
    long before = peak_kib();
    double start = seconds();
    check(pmap_write(request, fd, &summary, &fault), &fault);
    double written = seconds();
    long between = peak_kib();
    close(fd);
    check(pmap_verify(request, output, &fault), &fault);
    printf("{\"sop_instance_uid\": \"%s\", \"series_uid\": \"%s\", \"frames\": %lld, "
           "\"bytes\": %lld, \"write_seconds\": %.4f, \"verify_seconds\": %.4f, "
           "\"write_kib\": %ld, \"verify_kib\": %ld}\n",
           summary.identity.sop_instance_uid, summary.identity.series_uid,
           (long long)summary.frames, (long long)summary.bytes, written - start,
           seconds() - written, between - before, peak_kib() - between);
}

int
main(int argc, char **argv)
{
    struct options options;
    int first = parse(argc, argv, &options);
    if (first < 0) {
        fprintf(stderr, "usage: write_pmap [--kind NAME] [--description TEXT] "
                        "[--explanation TEXT] CODES OUTPUT INPUT...\n");
        return 2;
    }
    dicom_init();
    struct inputs inputs = peek_all(argv + first + 2, argc - first - 2);
    const struct geometry_limits limits = {.min_planes = 1, .spacing_tolerance = 0.01};
    struct geometry_series *series;
    struct dicom_fault fault;
    check(geometry_group(inputs.instances, inputs.count, &limits, &series, &fault), &fault);
    const struct geometry_stack *stack = only_stack(series);
    uint8_t *codes = read_codes(argv[first], stack);
    const struct seg_request source = {
        .instances = inputs.instances,
        .instance_count = inputs.count,
        .stack = stack,
        .pipeline = "test-pipeline",
        .pipeline_settings = "settings",
        .software_version = NOCTULE_VERSION,
        .device_serial_number = "TEST-1",
        .series_description = "",
        .series_number = 5001,
        .content_time_ms = INT64_C(1732190400123),
    };
    const struct pmap_request request = {
        .source = &source,
        .kind = options.kind,
        .quantity = {"LBP", "99NOCTULE", "Local binary pattern"},
        .explanation = options.explanation,
        .codes = codes,
        .series_description = options.description,
        .series_number = 5003,
    };
    write_and_verify(&request, argv[first + 1]);
    free(codes);
    geometry_series_free(series);
    for (int32_t i = 0; i < inputs.count; i++)
        dicom_instance_free(inputs.instances[i]);
    free(inputs.instances);
    return 0;
}
