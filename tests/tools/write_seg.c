/*
 * write_seg.c - for tests: writes a segmentation of DICOM files from masks in a file, and reads it back. Prints the
 * result as a line of JSON.
 *
 *   write_seg [OPTION...] MASKS OUTPUT INPUT...
 *
 * MASKS has one byte per voxel (0: outside), columns fastest, then rows, planes in ascending position, and segments.
 * With --fractional, it has maps: two bytes per voxel, little endian. --labelmap writes a label map instead. With --measurements and --report, also writes
 * and reads back a measurement report of the segmentation (format of the measurements: measurements.h). On an error,
 * prints code and message to standard error and exits with 1.
 */
#include "dicom/objects/sr/sr.h"
#include "tests/tools/measurements.h"
#include "tests/tools/object_source.h"

#include <endian.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_SEGMENTS = 256,
};

struct options {
    const char *labels[MAX_SEGMENTS];
    int32_t label_count;
    const char *description;
    const char *stack; /* name of the stack; NULL: the only one */
    const char *pipeline;
    bool keep_empty_frames;
    bool fractional, labelmap, overlap_last;
    enum derived_compression compression;
    bool modifier;            /* gives every segment a laterality and a region */
    const char *measurements; /* for a report; NULL: no report */
    const char *report;
    const char *kind; /* of the report: "enhanced", "3d", or "root" of the SEG and of objects that do not exist */
};

static int
parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"label", required_argument, NULL, 'l'},
        {"description", required_argument, NULL, 'd'},
        {"stack", required_argument, NULL, 's'},
        {"pipeline", required_argument, NULL, 'p'},
        {"keep-empty-frames", no_argument, NULL, 'k'},
        {"fractional", no_argument, NULL, 'f'},
        {"modifier", no_argument, NULL, 'm'},
        {"measurements", required_argument, NULL, 'M'},
        {"report", required_argument, NULL, 'r'},
        {"labelmap", no_argument, NULL, 'b'},
        {"overlap-last", no_argument, NULL, 'o'},
        {"rle", no_argument, NULL, 'R'},
        {"deflated", no_argument, NULL, 'D'},
        {"kind", required_argument, NULL, 'K'},
        {NULL, 0, NULL, 0},
    };
    *options = (struct options){.description = "", .pipeline = "test-pipeline", .kind = "enhanced"};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'l' && options->label_count < MAX_SEGMENTS)
            options->labels[options->label_count++] = optarg;
        else if (option == 'd')
            options->description = optarg;
        else if (option == 's')
            options->stack = optarg;
        else if (option == 'p')
            options->pipeline = optarg;
        else if (option == 'k')
            options->keep_empty_frames = true;
        else if (option == 'f')
            options->fractional = true;
        else if (option == 'b')
            options->labelmap = true;
        else if (option == 'o')
            options->overlap_last = true;
        else if (option == 'R' || option == 'D')
            options->compression = option == 'R' ? DERIVED_RLE : DERIVED_DEFLATED;
        else if (option == 'm')
            options->modifier = true;
        else if (option == 'M')
            options->measurements = optarg;
        else if (option == 'r')
            options->report = optarg;
        else if (option == 'K')
            options->kind = optarg;
        else
            return -1;
    }
    if (options->label_count == 0)
        options->labels[options->label_count++] = "Brain";
    if (!options->measurements != !options->report)
        return -1;
    return argc - optind < 3 ? -1 : optind;
}

/* Reads all segments' masks as bits from the bytes of the file. */
static uint64_t *
read_masks(const char *path, const struct geometry_stack *stack, int32_t segments)
{
    int64_t words_per_row = (stack->columns + 63) / 64;
    int64_t rows = (int64_t)segments * stack->plane_count * stack->rows;
    uint64_t *words = need(calloc((size_t)(rows * words_per_row), sizeof(*words)));
    uint8_t *row = need(malloc((size_t)stack->columns));
    FILE *file = fopen(path, "rb");
    if (!file)
        die("FILE_UNREADABLE", path);
    for (int64_t y = 0; y < rows; y++) {
        if (fread(row, (size_t)stack->columns, 1, file) != 1)
            die("FILE_TRUNCATED", path);
        for (int32_t x = 0; x < stack->columns; x++)
            words[y * words_per_row + x / 64] |= (uint64_t)(row[x] != 0) << x % 64;
    }
    if (fgetc(file) != EOF)
        die("FILE_UNREADABLE", "more masks than segments and planes");
    fclose(file);
    free(row);
    return words;
}

static uint16_t *
read_maps(const char *path, const struct geometry_stack *stack, int32_t segments)
{
    size_t voxels = (size_t)segments * (size_t)stack->plane_count * (size_t)stack->rows * (size_t)stack->columns;
    uint16_t *maps = need(malloc(voxels * sizeof(*maps)));
    FILE *file = fopen(path, "rb");
    if (!file)
        die("FILE_UNREADABLE", path);
    if (fread(maps, sizeof(*maps), voxels, file) != voxels)
        die("FILE_TRUNCATED", path);
    if (fgetc(file) != EOF)
        die("FILE_UNREADABLE", "more maps than segments and planes");
    fclose(file);
    for (size_t i = 0; i < voxels; i++)
        maps[i] = le16toh(maps[i]);
    return maps;
}

/* Masks or maps of all segments; the other is NULL. */
struct voxels {
    uint64_t *words;
    uint16_t *maps;
};

static struct voxels
read_voxels(const char *path, const struct geometry_stack *stack, const struct options *options)
{
    struct voxels voxels = {0};
    if (options->fractional)
        voxels.maps = read_maps(path, stack, options->label_count);
    else
        voxels.words = read_masks(path, stack, options->label_count);
    return voxels;
}

static void
place_voxels(const struct voxels *voxels, const struct geometry_stack *stack, int32_t index,
             struct seg_segment *segment)
{
    int64_t words_per_row = (stack->columns + 63) / 64;
    int64_t rows = (int64_t)index * stack->rows * stack->plane_count;
    if (voxels->maps) {
        segment->map = voxels->maps + rows * stack->columns;
        return;
    }
    segment->bits = voxels->words + rows * words_per_row;
    segment->words_per_row = words_per_row;
}

static void
describe_segments(const struct options *options, struct seg_segment *segments)
{
    for (int32_t i = 0; i < options->label_count; i++) {
        segments[i] = (struct seg_segment){
            .label = options->labels[i],
            .description = options->description,
            .category = {"123037004", "SCT", "Anatomical Structure"},
            .type = {"12738006", "SCT", "Brain"},
            .color_rgb = {1.0, 0.25 * (i % 4), 0.5},
            .algorithm_name = options->fractional ? "fuzzy-connectedness" : "level-set",
            .algorithm_version = "1",
            .algorithm_parameters = "range = [ 0, 80 ]",
        };
        if (options->modifier) {
            segments[i].type = (struct coded_concept){"52988006", "SCT", "Lesion"};
            segments[i].modifier = (struct coded_concept){"7771000", "SCT", "Left"};
            segments[i].region = (struct coded_concept){"12738006", "SCT", "Brain"};
        }
    }
}

static void
write_and_verify(const struct seg_request *request, const char *output)
{
    struct derived_summary summary;
    struct error error;
    int fd = object_create(output);
    check(seg_write(request, fd, &summary, &error), &error);
    close(fd);
    check(seg_verify(request, output, 1, &error), &error);
    printf("{\"sop_instance_uid\": \"%s\", \"series_uid\": \"%s\", \"frames\": %lld, "
           "\"bytes\": %lld, \"left_out\": \"%s\"}\n",
           summary.identity.sop_instance_uid, summary.identity.series_uid, (long long)summary.frames,
           (long long)summary.bytes, summary.left_out);
}

static void
report_and_verify(const struct seg_request *seg, const struct options *options)
{
    struct measurements measurements;
    struct derived_identity identity;
    struct derived_summary summary;
    struct error error;
    measurements_read(options->measurements, &measurements);
    seg_identify(seg, &identity);
    bool of_segments = false;
    for (size_t i = 0; i < measurements.group_count; i++)
        of_segments |= measurements.groups[i].segment != SR_WHOLE_VOLUME;
    const struct sr_result results[] = {
        {SEG_SOP_CLASS_UID, identity.sop_instance_uid, identity.series_uid},
        {"1.2.840.10008.5.1.4.1.1.481.3", "2.25.11", "2.25.10"},
        {SEG_LABELMAP_SOP_CLASS_UID, "2.25.31", "2.25.30"},
        {"1.2.840.10008.5.1.4.1.1.7.4", "2.25.21", "2.25.20"},
        {"1.2.840.10008.5.1.4.1.1.7.4", "2.25.22", "2.25.20"},
    };
    const struct sr_request request = {
        .seg = seg,
        .seg_identity = of_segments ? &identity : NULL,
        .groups = measurements.groups,
        .group_count = measurements.group_count,
        .series_description = options->description,
        .series_number = 6001,
        .comprehensive_3d = strcmp(options->kind, "enhanced") != 0,
        .results = results,
        .result_count = strcmp(options->kind, "root") == 0 ? sizeof results / sizeof results[0] : 0,
    };
    int fd = object_create(options->report);
    const double start = seconds();
    check(sr_write(&request, fd, &summary, &error), &error);
    const double written = seconds();
    close(fd);
    check(sr_verify(&request, options->report, &error), &error);
    printf("{\"sop_instance_uid\": \"%s\", \"series_uid\": \"%s\", \"bytes\": %lld, "
           "\"write_seconds\": %.4f, \"verify_seconds\": %.4f}\n",
           summary.identity.sop_instance_uid, summary.identity.series_uid, (long long)summary.bytes, written - start,
           seconds() - written);
    measurements_free(&measurements);
}

int
main(int argc, char **argv)
{
    struct options options;
    int first = parse(argc, argv, &options);
    if (first < 0) {
        fprintf(stderr, "usage: write_seg [--label TEXT]... [--description TEXT] [--stack NAME] "
                        "[--pipeline NAME] [--keep-empty-frames] [--fractional | --labelmap [--overlap-last]] "
                        "[--rle | --deflated] [--modifier] "
                        "[--measurements FILE --report OUTPUT [--kind enhanced|3d|root]] MASKS OUTPUT INPUT...\n");
        return 2;
    }
    dicom_init();
    struct object_source source;
    object_source_read(argv + first + 2, argc - first - 2, options.stack, &source);
    struct voxels voxels = read_voxels(argv[first], source.stack, &options);
    static struct seg_segment segments[MAX_SEGMENTS];
    describe_segments(&options, segments);
    for (int32_t i = 0; i < options.label_count; i++)
        place_voxels(&voxels, source.stack, i, &segments[i]);
    struct seg_request request = object_source_request(&source, options.pipeline);
    request.segments = segments;
    request.segment_count = options.label_count;
    request.omit_empty_frames = !options.keep_empty_frames;
    request.type = options.fractional ? SEG_FRACTIONAL : options.labelmap ? SEG_LABELMAP : SEG_BINARY;
    request.overlap_last = options.overlap_last;
    request.source.compression = options.compression;
    write_and_verify(&request, argv[first + 1]);
    if (options.report)
        report_and_verify(&request, &options);
    free(voxels.words);
    free(voxels.maps);
    object_source_free(&source);
    return 0;
}
