/*
 * phantom.c - noctule-phantom: writes synthetic DICOM series for demos, tests and benchmarks.
 */
#include "tests/tools/phantom.h"

#include "tests/tools/part10.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_SIDE   65535
#define MAX_SLICES 99999 /* file names have five digits */
#define MAX_BYTES  ((int64_t)0xfffffffe)

struct options {
    struct phantom phantom;
    const char *series; /* a kind of series, or NULL */
    int32_t volumes;
    bool has_size;
    const char *output;
    int32_t count;
    bool has_spacing, has_tilt;
    const char *truth; /* output path, or NULL */
};

static const char usage[] =
    "usage: noctule-phantom --output DIR [OPTION...]\n"
    "Writes a synthetic DICOM series, one file a slice, into DIR (made when missing).\n"
    "\n"
    "  --kind KIND           ct-head (default), mr-brain, pet, sphere, maze, chest, chest-open,\n"
    "                        head-tilted, body, body-cut, angiography or\n"
    "                        angiography-touching\n"
    "  --size CxRxS          columns, rows and slices; default 256x256x64\n"
    "  --spacing X,Y,Z       mm between voxels; default: a volume of 240 x 240 x 160 mm;\n"
    "                        chest 400 x 400 x 300, head-tilted 240 x 240 x 200, body\n"
    "                        480 x 480 x 200, body-cut 300 x 300 x 200, angiography\n"
    "                        320 x 320 x 240\n"
    "  --seed N              other noise and other UIDs; default 1\n"
    "  --count N             N series, with the seeds from N on, each in a folder of its own\n"
    "  --bits 8|12|16        bits stored; default 12 (16 for pet)\n"
    "  --signed              signed stored values\n"
    "  --multi-frame         one enhanced multi-frame file\n"
    "  --echoes N            every slice N times, with different echo times\n"
    "  --gap N               leave out slice N (from 1)\n"
    "  --duplicate N         write slice N twice, as two instances\n"
    "  --tilt DEGREES        tilt the gantry: the planes of the stack are sheared; default 0\n"
    "                        (18 for head-tilted)\n"
    "  --truth FILE          write what each voxel is made of as an NRRD too (.seg.nrrd opens in\n"
    "                        3D Slicer), all slices of it, and print the tissues' volumes\n"
    "  --instances-lie       Images in Acquisition names more images than there are\n"
    "  --series NAME         a series as scanners, archives or accidents make them;\n"
    "                        of the above only --size and --seed\n"
    "  --volumes N           with --series: so many volumes\n"
    "  --list                the names that --series knows, and no more\n";

__attribute__((format(printf, 1, 2))) static int
complain(const char *format, ...)
{
    va_list values;
    fputs("noctule-phantom: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("; see --help\n", stderr);
    return -EINVAL;
}

static int
parse_integer(const char *name, const char *text, int64_t lowest, int64_t highest, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < lowest || number > highest)
        return complain("%s is out of range or no number", name);
    *value = number;
    return 0;
}

static int
parse_int32(const char *name, const char *text, int32_t lowest, int32_t highest, int32_t *value)
{
    int64_t number = 0;
    int rc = parse_integer(name, text, lowest, highest, &number);
    *value = (int32_t)number;
    return rc;
}

static int
parse_size(const char *text, struct phantom *phantom)
{
    int used = 0;
    if (sscanf(text, "%6dx%6dx%6d%n", &phantom->columns, &phantom->rows, &phantom->slices, &used) != 3 || text[used] ||
        phantom->columns < 1 || phantom->columns > MAX_SIDE || phantom->rows < 1 || phantom->rows > MAX_SIDE ||
        phantom->slices < 1 || phantom->slices > MAX_SLICES)
        return complain("\"%s\" is not COLUMNSxROWSxSLICES", text);
    return 0;
}

static int
parse_spacing(const char *text, double spacing[3])
{
    int used = 0;
    if (sscanf(text, "%20lf,%20lf,%20lf%n", &spacing[0], &spacing[1], &spacing[2], &used) != 3 || text[used])
        return complain("\"%s\" is not X,Y,Z", text);
    for (int axis = 0; axis < 3; axis++)
        if (!(spacing[axis] >= 1e-3 && spacing[axis] <= 1000))
            return complain("a spacing of \"%s\" is out of range", text);
    return 0;
}

static int
parse_tilt(const char *text, double *tilt)
{
    char *end;
    *tilt = strtod(text, &end);
    if (end == text || *end || !(fabs(*tilt) <= 60))
        return complain("a tilt of \"%s\" is not within 60 degrees", text);
    return 0;
}

static int
parse_bits(const char *text, int32_t *bits)
{
    if (parse_int32("--bits", text, 8, 16, bits) < 0)
        return -EINVAL;
    if (*bits != 8 && *bits != 12 && *bits != 16)
        return complain("--bits %s: 8, 12 and 16 are known", text);
    return 0;
}

static int
parse_option(int option, const char *text, struct options *options)
{
    struct phantom *phantom = &options->phantom;
    int64_t seed;
    int rc;
    switch (option) {
    case 'o':
        options->output = text;
        return 0;
    case 'k':
        return phantom_find_kind(text, &phantom->kind) ? 0 : complain("there is no kind \"%s\"", text);
    case 'a':
        options->series = text;
        return 0;
    case 'v':
        return parse_int32("--volumes", text, 1, MAX_SLICES, &options->volumes);
    case 's':
        options->has_size = true;
        return parse_size(text, phantom);
    case 'p':
        options->has_spacing = true;
        return parse_spacing(text, phantom->spacing);
    case 'r':
        rc = parse_integer("--seed", text, 0, INT64_MAX, &seed);
        phantom->seed = rc == 0 ? (uint64_t)seed : 0;
        return rc;
    case 'e':
        return parse_int32("--echoes", text, 1, 100, &phantom->echoes);
    case 'g':
        return parse_int32("--gap", text, 1, MAX_SLICES, &phantom->gap);
    case 'd':
        return parse_int32("--duplicate", text, 1, MAX_SLICES, &phantom->duplicate);
    case 'T':
        options->truth = text;
        return 0;
    case 't':
        options->has_tilt = true;
        return parse_tilt(text, &phantom->tilt);
    case 'm':
        phantom->multi_frame = true;
        return 0;
    case 'b':
        return parse_bits(text, &phantom->bits);
    case 'i':
        phantom->is_signed = true;
        return 0;
    case 'l':
        phantom->instances_lie = true;
        return 0;
    case 'n':
        return parse_int32("--count", text, 1, 99999, &options->count);
    default:
        return complain("wrong options");
    }
}

/* Sets the defaults. */
static void
set_geometry(struct options *options)
{
    struct phantom *phantom = &options->phantom;
    const struct phantom_picture *picture = phantom_picture(phantom->kind);
    const int32_t size[3] = {phantom->columns, phantom->rows, phantom->slices};
    for (int axis = 0; axis < 3 && !options->has_spacing; axis++)
        phantom->spacing[axis] = picture->extent[axis] / size[axis];
    if (!options->has_tilt)
        phantom->tilt = picture->tilt;
}

static int
check_options(struct options *options)
{
    struct phantom *phantom = &options->phantom;
    if (!options->output)
        return complain("--output is missing");
    if (options->series ? !phantom_has_kind(options->series) : options->volumes > 0)
        return complain("--series names no kind of --list");
    if (options->series && options->truth)
        return complain("--series and --truth exclude each other");
    if (phantom->gap > phantom->slices || phantom->duplicate > phantom->slices)
        return complain("--gap or --duplicate is beyond the last slice");
    if (phantom->gap && (phantom->slices == 1 || phantom->gap == phantom->duplicate))
        return complain("--gap leaves nothing, or what --duplicate names");
    if (phantom->multi_frame && phantom->echoes > 1)
        return complain("--multi-frame and --echoes exclude each other");
    if ((int64_t)phantom->slices * phantom->echoes >= MAX_SLICES)
        return complain("too many images");
    if (phantom->multi_frame && (int64_t)phantom->columns * phantom->rows * 2 * (phantom->slices + 1) > MAX_BYTES)
        return complain("a multi-frame file of more than 4 GiB");
    if (phantom->bits == 0)
        phantom->bits = phantom->kind == PHANTOM_PET ? 16 : 12;
    set_geometry(options);
    return 0;
}

static int
parse_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"output", required_argument, NULL, 'o'},  {"kind", required_argument, NULL, 'k'},
        {"size", required_argument, NULL, 's'},    {"spacing", required_argument, NULL, 'p'},
        {"seed", required_argument, NULL, 'r'},    {"count", required_argument, NULL, 'n'},
        {"bits", required_argument, NULL, 'b'},    {"signed", no_argument, NULL, 'i'},
        {"multi-frame", no_argument, NULL, 'm'},   {"echoes", required_argument, NULL, 'e'},
        {"gap", required_argument, NULL, 'g'},     {"duplicate", required_argument, NULL, 'd'},
        {"tilt", required_argument, NULL, 't'},    {"truth", required_argument, NULL, 'T'},
        {"instances-lie", no_argument, NULL, 'l'}, {"series", required_argument, NULL, 'a'},
        {"volumes", required_argument, NULL, 'v'}, {"list", no_argument, NULL, 'L'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        if (option == 'L') {
            phantom_list_kinds();
            exit(0);
        }
        int rc = parse_option(option, optarg, options);
        if (rc < 0)
            return rc;
    }
    if (optind < argc)
        return complain("\"%s\" is one argument too many", argv[optind]);
    return check_options(options);
}

/* Lists the images of the series by slice, then echo; the duplicate last. */
static int
plan_planes(const struct phantom *phantom, struct phantom_plane **planes, int32_t *count)
{
    int32_t at = 0;
    struct phantom_plane *plan = calloc((size_t)phantom->slices * (size_t)phantom->echoes + 1, sizeof(*plan));
    if (!plan)
        return -ENOMEM;
    for (int32_t slice = 0; slice < phantom->slices; slice++)
        for (int32_t echo = 0; echo < phantom->echoes && slice != phantom->gap - 1; echo++)
            plan[at++] = (struct phantom_plane){.slice = slice, .echo = echo};
    if (phantom->duplicate)
        plan[at++] = (struct phantom_plane){.slice = phantom->duplicate - 1, .copy = 1};
    *planes = plan;
    *count = at;
    return 0;
}

static int
make_folder(const char *path)
{
    char *part = strdup(path);
    if (!part)
        return -ENOMEM;
    int rc = 0;
    for (char *slash = strchr(part + 1, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = mkdir(part, 0777) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
    }
    if (rc == 0 && mkdir(part, 0777) < 0 && errno != EEXIST)
        rc = -errno;
    free(part);
    return rc;
}

static int
write_series(const struct phantom *phantom, const char *folder)
{
    struct phantom_plane *planes;
    int32_t count;
    char uid[PART10_UID_SIZE];
    int rc = plan_planes(phantom, &planes, &count);
    if (rc < 0)
        return rc;
    rc = phantom_store(phantom, planes, count, folder, uid);
    if (rc == 0)
        printf("%s: series %s, %d image%s\n", folder, uid, count, count == 1 ? "" : "s");
    free(planes);
    return rc;
}

static int
write_kind(const struct options *options)
{
    struct phantom_changes changes = {.volumes = options->volumes, .seed = options->phantom.seed};
    if (options->has_size) {
        changes.columns = options->phantom.columns;
        changes.rows = options->phantom.rows;
        changes.slices = options->phantom.slices;
    }
    char uid[PART10_UID_SIZE];
    int32_t count;
    int rc = phantom_store_kind(options->series, &changes, options->output, uid, &count);
    if (rc == 0)
        printf("%s: series %s, %d file%s\n", options->output, uid, count, count == 1 ? "" : "s");
    return rc;
}

/* Writes the n-th of several series, in its own folder. */
static int
write_one_of_many(const struct options *options, int32_t n)
{
    struct phantom phantom = options->phantom;
    phantom.seed += (uint64_t)n;
    char *folder;
    if (asprintf(&folder, "%s/%05d", options->output, n + 1) < 0)
        return -ENOMEM;
    int rc = make_folder(folder);
    if (rc == 0)
        rc = write_series(&phantom, folder);
    free(folder);
    return rc;
}

int
main(int argc, char **argv)
{
    struct options options = {.phantom = {.columns = 256, .rows = 256, .slices = 64, .seed = 1, .echoes = 1},
                              .count = 1};
    if (parse_options(argc, argv, &options) < 0)
        return 2;
    const char *where = options.output;
    int rc = make_folder(options.output);
    if (rc == 0 && options.series)
        rc = write_kind(&options);
    else if (rc == 0 && options.count == 1)
        rc = write_series(&options.phantom, options.output);
    for (int32_t n = 0; n < options.count && options.count > 1 && !options.series && rc == 0; n++)
        rc = write_one_of_many(&options, n);
    if (rc == 0 && options.truth) {
        where = options.truth;
        rc = phantom_write_truth(&options.phantom, options.truth);
    }
    if (rc == 0 && fflush(stdout) != 0)
        rc = -errno;
    if (rc < 0)
        fprintf(stderr, "noctule-phantom: %s: %s\n", where, strerror(-rc));
    return rc < 0 ? 1 : 0;
}
