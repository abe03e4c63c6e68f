/*
 * write_pmap.c - for tests: writes a parametric map of DICOM files from codes in a file, and reads it back. Prints
 * the result as a line of JSON.
 *
 *   write_pmap [OPTION...] CODES OUTPUT INPUT...
 *
 * CODES has one byte for each voxel that is not on its plane's edge: columns fastest, then rows, then planes in
 * ascending position. On an error, prints code and message to standard error and exits with 1.
 */
#include "dicom/objects/pmap/pmap.h"
#include "tests/peak.h"
#include "tests/tools/object_source.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct options {
    const char *kind;
    const char *description;
    const char *explanation;
};

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

static void
write_and_verify(const struct pmap_request *request, const char *output)
{
    struct derived_summary summary;
    struct error error;
    int fd = object_create(output);
    long before = peak_kib();
    double start = seconds();
    check(pmap_write(request, fd, &summary, &error), &error);
    double written = seconds();
    long between = peak_kib();
    close(fd);
    check(pmap_verify(request, output, &error), &error);
    printf("{\"sop_instance_uid\": \"%s\", \"series_uid\": \"%s\", \"frames\": %lld, "
           "\"bytes\": %lld, \"write_seconds\": %.4f, \"verify_seconds\": %.4f, "
           "\"write_kib\": %ld, \"verify_kib\": %ld}\n",
           summary.identity.sop_instance_uid, summary.identity.series_uid, (long long)summary.frames,
           (long long)summary.bytes, written - start, seconds() - written, between - before, peak_kib() - between);
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
    struct object_source source;
    object_source_read(argv + first + 2, argc - first - 2, NULL, &source);
    uint8_t *codes = read_codes(argv[first], source.stack);
    const struct seg_request of_source = object_source_request(&source, "test-pipeline");
    const struct pmap_request request = {
        .source = &of_source.source,
        .kind = options.kind,
        .quantity = {"LBP", CONCEPT_OWN_SCHEME, "Local binary pattern"},
        .explanation = options.explanation,
        .codes = codes,
        .series_description = options.description,
        .series_number = 5003,
    };
    write_and_verify(&request, argv[first + 1]);
    free(codes);
    object_source_free(&source);
    return 0;
}
