#include "tests/bench/mask_cases.h"
#include "tests/kernels/ref_volumes.h"

#include <stdlib.h>
#include <string.h>

#define TRUNK                                                                                                          \
    {                                                                                                                  \
        512, 512, 300                                                                                                  \
    }
#define CUBE_512                                                                                                       \
    {                                                                                                                  \
        512, 512, 512                                                                                                  \
    }
#define COARSE                                                                                                         \
    {                                                                                                                  \
        230, 230, 190                                                                                                  \
    }
#define FINE                                                                                                           \
    {                                                                                                                  \
        0.8, 0.8, 1                                                                                                    \
    }

#define EVEN                                                                                                           \
    {                                                                                                                  \
        2, 2, 2                                                                                                        \
    }

const struct mask_case mask_cases[] = {
    {"mask/copy-body", "a body as it is", MASK_BODY, TRUNK, FINE, {{KERNELS_MASK_STEPS, 0, false, false}}, 0, false},
    {"mask/copy-noise",
     "noise as it is, 31 % in",
     MASK_NOISE,
     TRUNK,
     FINE,
     {{KERNELS_MASK_STEPS, 0, false, false}},
     0,
     false},
    {"mask/keep-1-body",
     "largest component of a body",
     MASK_BODY,
     TRUNK,
     FINE,
     {{KERNELS_MASK_KEEP, 1, false, false}},
     1,
     false},
    {"mask/keep-1-noise",
     "largest component of noise, 31 % in",
     MASK_NOISE,
     TRUNK,
     FINE,
     {{KERNELS_MASK_KEEP, 1, false, false}},
     1,
     false},
    {"mask/fill-slices-body",
     "holes of a body, slice by slice",
     MASK_BODY,
     TRUNK,
     FINE,
     {{KERNELS_MASK_FILL_SLICES, 0, false, false}},
     1,
     false},
    {"mask/fill-volume-body",
     "holes of a body",
     MASK_BODY,
     TRUNK,
     FINE,
     {{KERNELS_MASK_FILL_VOLUME, 0, false, false}},
     1,
     false},
    {"mask/open-3-body",
     "a body opened by 3 mm",
     MASK_BODY,
     TRUNK,
     FINE,
     {{KERNELS_MASK_OPEN, 3, false, false}},
     1,
     false},
    {"mask/open-10-body",
     "a body opened by 10 mm",
     MASK_BODY,
     TRUNK,
     FINE,
     {{KERNELS_MASK_OPEN, 10, false, false}},
     1,
     false},
    {"mask/close-5-lungs",
     "lungs closed by 5 mm",
     MASK_LUNGS,
     TRUNK,
     FINE,
     {{KERNELS_MASK_CLOSE, 5, false, false}},
     1,
     false},
    {"mask/close-25-coarse",
     "lungs on a coarse grid of 10 million voxels closed by 25 mm",
     MASK_LUNGS,
     COARSE,
     EVEN,
     {{KERNELS_MASK_CLOSE, 25, false, false}},
     1,
     false},
    {"mask/drop-mean-lungs",
     "components of lungs by their means",
     MASK_LUNGS,
     TRUNK,
     FINE,
     {{KERNELS_MASK_DROP_MEAN_BELOW, 50, false, false}},
     1,
     false},
    {"mask/cut-bridges-3-lungs",
     "lungs without what joins them",
     MASK_LUNGS,
     TRUNK,
     FINE,
     {{KERNELS_MASK_CUT_BRIDGES, 3, false, false}},
     1,
     false},
    {"mask/preset-body",
     "a body without its table and holes",
     MASK_BODY,
     TRUNK,
     FINE,
     {{KERNELS_MASK_OPEN, 3, false, false},
      {KERNELS_MASK_KEEP, 1, false, false},
      {KERNELS_MASK_FILL_SLICES, 0, false, false}},
     3,
     false},
    {"mask/preset-lungs",
     "both lungs, airways cut, vessels filled",
     MASK_LUNGS,
     TRUNK,
     FINE,
     {{KERNELS_MASK_KEEP_AT_LEAST, 0.2, false, false},
      {KERNELS_MASK_CUT_BRIDGES, 3, false, false},
      {KERNELS_MASK_KEEP_AT_LEAST, 0.2, false, false},
      {KERNELS_MASK_FILL_VOLUME, 0, false, false}},
     4,
     false},
    {"mask/keep-1-body-512",
     "largest component of a body",
     MASK_BODY,
     CUBE_512,
     FINE,
     {{KERNELS_MASK_KEEP, 1, false, false}},
     1,
     true},
    {"mask/keep-1-noise-512",
     "largest component of noise, 31 % in",
     MASK_NOISE,
     CUBE_512,
     FINE,
     {{KERNELS_MASK_KEEP, 1, false, false}},
     1,
     true},
    {"mask/fill-slices-body-512",
     "holes of a body, slice by slice",
     MASK_BODY,
     CUBE_512,
     FINE,
     {{KERNELS_MASK_FILL_SLICES, 0, false, false}},
     1,
     true},
    {"mask/fill-volume-body-512",
     "holes of a body",
     MASK_BODY,
     CUBE_512,
     FINE,
     {{KERNELS_MASK_FILL_VOLUME, 0, false, false}},
     1,
     true},
    {"mask/open-3-body-512",
     "a body opened by 3 mm",
     MASK_BODY,
     CUBE_512,
     FINE,
     {{KERNELS_MASK_OPEN, 3, false, false}},
     1,
     true},
    {"mask/open-10-body-512",
     "a body opened by 10 mm",
     MASK_BODY,
     CUBE_512,
     FINE,
     {{KERNELS_MASK_OPEN, 10, false, false}},
     1,
     true},
};

const size_t mask_case_count = sizeof(mask_cases) / sizeof(mask_cases[0]);

/* Returns ((x - cx) / rx)^2 + ... in fractions of the volume; below 1 inside. */
static double
case_ellipsoid(const double at[3], const double center[3], const double radius[3])
{
    double sum = 0;

    for (int axis = 0; axis < 3; axis++) {
        double away = (at[axis] - center[axis]) / radius[axis];

        sum += away * away;
    }
    return sum;
}

/* Returns whether the point is in the lungs, the trachea or its two branches. */
static bool
case_is_air(const double at[3])
{
    static const double far = 1e9;
    const double left[3] = {0.33, 0.48, 0.5}, right[3] = {0.67, 0.48, 0.5};
    const double lung[3] = {0.12, 0.17, 0.42};
    const double trachea[3] = {0.5, 0.5, 0.8}, tube[3] = {0.017, 0.017, far};
    const double branch[3] = {0.5, 0.5, 0.55}, across[3] = {0.14, 0.012, 0.02};

    return case_ellipsoid(at, left, lung) < 1 || case_ellipsoid(at, right, lung) < 1 ||
           (at[2] > 0.55 && case_ellipsoid(at, trachea, tube) < 1) || case_ellipsoid(at, branch, across) < 1;
}

static bool
case_is_body(const double at[3])
{
    static const double far = 1e9;
    const double middle[3] = {0.5, 0.5, 0.5}, trunk[3] = {0.4, 0.28, far};

    return case_ellipsoid(at, middle, trunk) < 1;
}

static bool
case_is_table(const double at[3])
{
    return at[1] > 0.775 && at[1] < 0.795 && at[0] > 0.1 && at[0] < 0.9;
}

static bool
case_is_marrow(const double at[3])
{
    static const double far = 1e9;
    const double spine[3] = {0.5, 0.68, 0.5}, canal[3] = {0.02, 0.02, far};

    return case_ellipsoid(at, spine, canal) < 1;
}

void
mask_case_draw(enum mask_content content, struct image_extent extent, uint8_t *in)
{
    uint64_t random = 1;
    int64_t count = ref_voxels(extent);
    uint16_t *vessels;

    if (content == MASK_NOISE) {
        ref_noise(extent, 0.31, 1, in);
        return;
    }
    vessels = malloc((size_t)count * sizeof(*vessels));
    if (!vessels)
        abort();
    ref_smooth(extent, IMAGE_UINT16, 1000, 1, vessels);
    for (int64_t i = 0; i < count; i++) {
        const double at[3] = {((double)(i % extent.columns) + 0.5) / (double)extent.columns,
                              ((double)(i / extent.columns % extent.rows) + 0.5) / (double)extent.rows,
                              ((double)(i / extent.columns / extent.rows) + 0.5) / (double)extent.slices};
        const bool air = case_is_air(at) && vessels[i] < 620;
        const bool speck = ref_random(&random) % 4096 == 0;

        if (content == MASK_LUNGS)
            in[i] = air != (speck && case_is_body(at));
        else
            in[i] = case_is_table(at) || speck || (case_is_body(at) && !air && !case_is_marrow(at));
    }
    free(vessels);
}

struct kernels_mask_demand
mask_case_demand(const struct mask_case *chosen)
{
    struct kernels_mask_demand demand = {.masks = 2};

    memcpy(demand.spacing, chosen->spacing, sizeof(demand.spacing));
    for (size_t i = 0; i < chosen->count; i++) {
        const struct kernels_mask_step *step = &chosen->steps[i];

        if (mask_step_has_ball(step->kind) && step->amount > demand.reach_mm)
            demand.reach_mm = step->amount;
        demand.closings |= step->kind == KERNELS_MASK_CLOSE;
        demand.bridges |= step->kind == KERNELS_MASK_CUT_BRIDGES;
    }
    return demand;
}

bool
mask_case_parse(const char *text, struct kernels_mask_step *step)
{
    static const char *const names[KERNELS_MASK_STEPS] = {
        [KERNELS_MASK_KEEP] = "keep",
        [KERNELS_MASK_KEEP_AT_LEAST] = "keep-at-least",
        [KERNELS_MASK_DROP_BELOW] = "drop-below",
        [KERNELS_MASK_FILL_SLICES] = "fill-slices",
        [KERNELS_MASK_FILL_VOLUME] = "fill-volume",
        [KERNELS_MASK_GROW] = "grow",
        [KERNELS_MASK_SHRINK] = "shrink",
        [KERNELS_MASK_OPEN] = "open",
        [KERNELS_MASK_CLOSE] = "close",
        [KERNELS_MASK_CUT_BRIDGES] = "cut-bridges",
        [KERNELS_MASK_DROP_MEAN_BELOW] = "drop-mean-below",
    };
    const size_t length = strcspn(text, "=,");

    *step = (struct kernels_mask_step){.kind = KERNELS_MASK_STEPS};
    for (int kind = 0; kind < KERNELS_MASK_STEPS; kind++)
        if (strlen(names[kind]) == length && strncmp(names[kind], text, length) == 0)
            step->kind = (enum kernels_mask_step_kind)kind;
    text += length;
    if (*text == '=') {
        char *end;

        step->amount = strtod(text + 1, &end);
        text = end;
    }
    step->corners = strcmp(text, ",corners") == 0;
    step->in_slice = strcmp(text, ",slice") == 0;
    return step->kind != KERNELS_MASK_STEPS && (*text == '\0' || step->corners || step->in_slice);
}

int64_t
mask_case_floor(struct image_extent extent)
{
    return 2 * (int64_t)sizeof(uint64_t) * ((extent.columns + 63) / 64) * extent.rows * extent.slices;
}
