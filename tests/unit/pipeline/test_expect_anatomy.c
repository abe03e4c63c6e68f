/* Expectations of anatomy: each limit at and beyond its edge, in the patient's axes, on boxes of known size. */
#include "kernels/mask/mask.h"
#include "kernels/smooth/smooth.h"
#include "service/pipeline/expectations.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

/* Voxels of 2 x 3 x 4 mm. */
enum { COLUMNS = 70, ROWS_ = 20, SLICES = 16, WORDS = 2, VOXELS = COLUMNS * ROWS_ * SLICES };

static uint64_t bits[2][WORDS * ROWS_ * SLICES];
static int16_t voxels[VOXELS];
static struct image_mask masks[2];
static struct conf_expect expect;
static struct conf_segment segments[2];
static struct image_rescale rescale[SLICES];
static struct image_range padding[SLICES];
static const double positions[SLICES];
static struct expect_frame frame;
static struct expect_breaches found;
static struct segment_measures measures[2];
static struct expect_volume volume;

static const struct conf_pipeline pipeline = {.segments = segments, .segment_count = 2};

static void
begin(void)
{
    memset(bits, 0, sizeof bits);
    memset(voxels, 0, sizeof voxels);
    expect = (struct conf_expect){.touches = CONF_TOUCHES_ANY};
    frame = (struct expect_frame){.axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}, .positions = positions};
    volume = (struct expect_volume){.masks = masks,
                                    .extent = {COLUMNS, ROWS_, SLICES},
                                    .spacing = {2, 3, 4},
                                    .voxels = voxels,
                                    .pixel = IMAGE_INT16,
                                    .rescale = rescale,
                                    .padding = padding,
                                    .unit = " HU",
                                    .ucum = "[hnsf'U]",
                                    .frame = &frame,
                                    .threads = 2};
    segments[0] = (struct conf_segment){.label = (char *)"Right lung", .expect = &expect};
    segments[1] = (struct conf_segment){.label = (char *)"Left lung"};
    for (int i = 0; i < 2; i++)
        masks[i] = (struct image_mask){bits[i], WORDS, 0};
    for (int z = 0; z < SLICES; z++)
        rescale[z] = (struct image_rescale){1, 0}, padding[z] = (struct image_range){1, 0};
}

static struct kernels_device *device;
static struct kernels_lane *lane;

static void
end(void)
{
    expect_clear(&found);
    if (lane)
        kernels_lane_close(lane);
    if (device)
        kernels_device_close(device);
    lane = NULL;
    device = NULL;
}

/* Opens a lane with the values of `voxels` and the demand of the first segment. */
static void
fill_lane(void)
{
    const struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    const struct expect_demand wanted = expect_demand_of(&segments[0], volume.spacing);
    struct kernels_mask_demand masks_demand = {
        .masks = wanted.masks, .spacing = {2, 3, 4}, .reach_mm = wanted.reach_mm, .closings = true};
    struct smooth_demand smooth = {.spacing = {2, 3, 4}, .sigma_mm = wanted.smooth_mm};
    struct kernels_demand demand = {.of = {[KERNELS_MASK] = &masks_demand}};
    struct error error;
    void *slices;
    if (wanted.smooth_mm > 0)
        demand.of[KERNELS_SMOOTH] = &smooth;
    ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, &error), 0);
    ck_assert_int_eq(kernels_volume_begin(lane, volume.extent, IMAGE_INT16, &demand, &slices, &error), 0);
    memcpy(slices, voxels, sizeof voxels);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, SLICES, &error), 0);
    volume.lane = lane;
    volume.voxels = slices;
}

/* Sets or clears the voxels of a box; all ends are inclusive. */
static void
put(int mask, bool set, int x0, int x1, int y0, int y1, int z0, int z1)
{
    masks[mask].voxels = 0;
    for (int z = z0; z <= z1; z++)
        for (int y = y0; y <= y1; y++)
            for (int x = x0; x <= x1; x++) {
                uint64_t *word = &bits[mask][(z * ROWS_ + y) * WORDS + x / 64];
                *word = set ? *word | UINT64_C(1) << (x % 64) : *word & ~(UINT64_C(1) << (x % 64));
            }
    for (size_t i = 0; i < sizeof bits[mask] / sizeof bits[mask][0]; i++)
        masks[mask].voxels += __builtin_popcountll(bits[mask][i]);
}

static size_t
check(void)
{
    struct error error;
    expect_clear(&found);
    ck_assert_int_eq(expect_check(&pipeline, &volume, NULL, measures, &found, &error), 0);
    return found.count;
}

static void
assert_broken(const char *expectation, const char *text)
{
    const size_t count = check();
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(found.at[0].expectation, expectation);
    ck_assert_str_eq(found.at[0].text, text);
}

/* Turns the axes of the volume: columns run to the feet, rows to the right and slices to the front. */
static void
turn(void)
{
    static const double axes[9] = {0, 0, -1, -1, 0, 0, 0, -1, 0};
    memcpy(frame.axes, axes, sizeof axes);
}

START_TEST(extents)
{
    struct conf_extent_mm extent = {.height = {true, {20, 20}}, .depth = {true, {12, 12}}, .width = {true, {6, 6}}};
    put(0, true, 3, 5, 2, 5, 7, 11);
    expect.extent_mm = &extent;
    ck_assert_uint_eq(check(), 0);
    extent.height.at[0] = 20.5;
    extent.height.at[1] = 30;
    assert_broken("extent_mm", "Right lung: height 20 mm, expected 20.5 to 30 mm");
    turn();
    extent = (struct conf_extent_mm){.height = {true, {6, 6}}, .depth = {true, {20, 20}}, .width = {true, {12, 12}}};
    ck_assert_uint_eq(check(), 0);
    extent.depth.at[1] = 19;
    extent.depth.at[0] = 1;
    assert_broken("extent_mm", "Right lung: depth 20 mm, expected 1 to 19 mm");
    frame.axes[2] = -0.79;
    assert_broken("extent_mm", "Right lung: the images are oblique to the patient's axes");
    volume.frame = NULL;
    assert_broken("extent_mm", "Right lung: the orientation of the images is not known");
}

END_TEST

START_TEST(contact_with_faces)
{
    struct conf_face_cm2 faces = {.lowest = {true, 0.48}, .highest = {true, 0}, .sides = {true, 0}};
    put(0, true, 3, 6, 2, 3, 0, 11); /* 8 voxels of 6 mm2 */
    expect.face_cm2 = &faces;
    ck_assert_uint_eq(check(), 0);
    faces.lowest.at = 0.4;
    assert_broken("face_cm2", "Right lung: cut off by the lowest face: 0.48 cm2, at most 0.4 cm2 expected");
    ck_assert(found.at[0].bounded && found.at[0].found == 0.48 && found.at[0].allowed[1] == 0.4);
    faces.lowest.given = false;
    put(0, true, 0, 6, 2, 3, 5, 6); /* 2 rows of 2 slices, 12 mm2 each */
    put(0, true, 6, 6, 18, 19, 7, 7);
    assert_broken("face_cm2", "Right lung: cut off at the right: 0.48 cm2, at most 0 cm2 expected");
    turn(); /* the first column is at the head, the lowest slice at the back */
    faces = (struct conf_face_cm2){.highest = {true, 0.2}};
    assert_broken("face_cm2", "Right lung: cut off by the highest face: 0.48 cm2, at most 0.2 cm2 expected");
    faces = (struct conf_face_cm2){.sides = {true, 0.1}};
    assert_broken("face_cm2", "Right lung: cut off at the back: 0.48 cm2, at most 0.1 cm2 expected");
}

END_TEST

START_TEST(contact_with_padding)
{
    struct conf_face_cm2 faces = {.sides = {true, 0.1}};
    put(0, true, 3, 6, 2, 3, 1, 11);
    expect.face_cm2 = &faces;
    voxels[(4 * ROWS_ + 3) * COLUMNS + 7] = -2000;
    padding[4] = (struct image_range){-2000, -2000};
    assert_broken("face_cm2", "Right lung: cut off at padding: 0.12 cm2, at most 0.1 cm2 expected");
}

END_TEST

/* A box of 10 columns is its own mirror image. */
START_TEST(mirror_images)
{
    put(0, true, 3, 12, 2, 9, 3, 8);
    expect.mirror = (struct conf_limit){true, 1};
    ck_assert_uint_eq(check(), 0);
    put(0, false, 8, 12, 2, 5, 3, 8); /* 360 voxels stay; 240 rest on the mirror line between 7 and 8 */
    expect.mirror.at = 240.0 / 360;
    ck_assert_uint_eq(check(), 0);
    expect.mirror.at = 0.7;
    assert_broken("mirror", "Right lung: left and right differ: 67 % of it is symmetric, at least 70 % expected");
    turn(); /* rows are from left to right: 4 of 5 columns with 8 rows, and 5 with 4 */
    expect.mirror.at = 1;
    ck_assert_uint_eq(check(), 1);
    put(0, true, 8, 12, 2, 5, 3, 8);
    ck_assert_uint_eq(check(), 0);
}

END_TEST

START_TEST(parts_in_slices)
{
    put(0, true, 3, 12, 2, 9, 3, 8);
    expect.slice_parts = (struct conf_limit){true, 1};
    ck_assert_uint_eq(check(), 0);
    put(0, true, 13, 13, 10, 10, 5, 5); /* at a corner */
    assert_broken("slice_parts", "Right lung: 2 parts in a slice, at most 1 expected");
    expect.slice_parts.at = 2;
    ck_assert_uint_eq(check(), 0);
}

END_TEST

START_TEST(dropped_volumes)
{
    struct conf_dropped dropped = {.ml = 0.24};
    expect.dropped = &dropped;
    ck_assert_uint_eq(check(), 0); /* empty */
    put(0, true, 3, 12, 2, 2, 3, 3);
    ck_assert_uint_eq(check(), 0);
    dropped.ml = 0.2;
    assert_broken("dropped", "Right lung: 0.24 ml, at most 0.2 ml expected");
    dropped.label = (char *)"Left lung";
    dropped.share = 0.1;
    put(1, true, 3, 12, 4, 13, 3, 3); /* 2.4 ml */
    ck_assert_uint_eq(check(), 0);
    put(1, true, 3, 12, 4, 12, 3, 3);
    put(1, false, 3, 12, 13, 13, 3, 3);
    assert_broken("dropped", "Right lung: 0.24 ml beside the left lung, at most 0.216 ml expected");
}

END_TEST

START_TEST(areas_that_jump)
{
    struct conf_jump jump = {.mm = 4, .most = 0.5};
    put(0, true, 0, 9, 0, 9, 2, 4);
    put(0, true, 0, 9, 0, 4, 5, 9);
    expect.jump = &jump;
    ck_assert_uint_eq(check(), 0);
    jump.most = 0.25;
    assert_broken("jump", "Right lung: its area jumps by 50 % of the largest within 4 mm, 8 mm above the lowest "
                          "section; at most 25 % expected");
    jump.mm = 30;
    assert_broken("jump", "Right lung: it is too short to compare its areas over 30 mm");
    /* As shares of a segment that is half as large in its lowest slice. */
    jump = (struct conf_jump){.mm = 4, .most = 0.49, .label = (char *)"Left lung"};
    assert_broken("jump", "Right lung: it cannot be compared: the left lung is empty");
    put(1, true, 0, 19, 0, 9, 2, 4);
    put(1, true, 0, 9, 0, 9, 5, 9);
    ck_assert_uint_eq(check(), 0);
    put(1, true, 0, 9, 0, 9, 1, 1);
    assert_broken("jump", "Right lung: its area jumps by 50 % of the left lung within 4 mm, 0 mm above the lowest "
                          "section; at most 49 % expected");
}

END_TEST

START_TEST(ends_that_are_cut)
{
    put(0, true, 0, 9, 0, 9, 3, 6);
    put(0, true, 0, 4, 0, 4, 2, 7);
    expect.ends = (struct conf_limit){true, 0.25};
    ck_assert_uint_eq(check(), 0);
    put(0, true, 0, 4, 5, 5, 7, 7);
    assert_broken("ends", "Right lung: cut off at its top: the highest section has 30 % of the largest area, at most "
                          "25 % expected");
    frame.axes[8] = -1;
    frame.axes[0] = -1;
    assert_broken("ends", "Right lung: cut off at its base: the lowest section has 30 % of the largest area, at most "
                          "25 % expected");
}

END_TEST

/* 16 sections of 4 mm. Sections 6 to 11 are compared, 4 (15 mm) at a time; the last 4 are the upper ones. */
START_TEST(halves_of_a_pair)
{
    struct conf_beside beside = {
        .label = (char *)"Left lung", .tops_mm = 0, .bases_mm = 0, .over_mm = 15, .share = 1, .upper_share = 1};
    put(0, true, 0, 9, 0, 9, 0, 15);
    put(1, true, 20, 29, 0, 9, 0, 15);
    expect.beside = &beside;
    ck_assert_uint_eq(check(), 0);
    put(1, false, 20, 29, 0, 9, 0, 5);
    put(1, false, 20, 29, 0, 9, 13, 15);
    put(1, true, 20, 20, 0, 0, 0, 0);
    put(1, true, 20, 20, 0, 0, 15, 15);
    ck_assert_uint_eq(check(), 0);
    put(1, false, 20, 29, 0, 9, 6, 7); /* the windows at 6 and at 7 lack 2 sections and one */
    beside.share = 0.6;
    assert_broken("beside",
                  "Right lung: beside the left lung, the smaller area is 50 % of the larger over 15 mm, at least "
                  "60 % expected");
    beside.share = 0.5;
    put(1, false, 20, 29, 0, 9, 11, 11);
    assert_broken("beside",
                  "Right lung: beside the left lung, the smaller upper area is 75 % of the larger over 15 mm, at "
                  "least 100 % expected");
    beside.upper_share = 0;
    put(1, false, 20, 29, 0, 9, 15, 15);
    assert_broken("beside", "Right lung: its top and that of the left lung are 12 mm apart, at most 0 mm expected");
    beside.tops_mm = 12;
    put(1, false, 20, 29, 0, 9, 0, 0);
    beside.share = 0;
    assert_broken("beside", "Right lung: its base and that of the left lung are 32 mm apart, at most 0 mm expected");
}

END_TEST

/* The rim of 3.1 mm is 1 voxel along columns and rows. "Bone" lies around the upper 6 of 10 slices. */
START_TEST(outlines_near_bone)
{
    struct conf_near near = {.label = (char *)"Bone", .mm = 4, .share = 0.6, .outline_mm = 3.1};
    segments[0].label = (char *)"Intracranial";
    segments[1].label = (char *)"Bone";
    expect.near = &near;
    put(0, true, 20, 29, 5, 9, 3, 12);
    put(1, true, 17, 32, 3, 11, 7, 12);
    put(1, false, 19, 30, 4, 10, 7, 12);
    fill_lane();
    ck_assert_uint_eq(check(), 0);
    near.share = 0.8;
    assert_broken("near",
                  "Intracranial: the outline lies off the bone: 60 % of it within 4 mm, 80 % expected; worst at "
                  "the base");
    ck_assert(found.at[0].bounded && found.at[0].found == 0.6);
    volume.frame = NULL;
    assert_broken("near", "Intracranial: the outline lies off the bone: 60 % of it within 4 mm, 80 % expected");
    near.space = CONF_SPACE_SLICE;
    near.share = 0.6;
    ck_assert_uint_eq(check(), 0);
    near.slice_share = 0.5; /* number 0 of the 10 shares in ascending order */
    assert_broken("near",
                  "Intracranial: the outline lies off the bone: 0 % of it within 4 mm in the worst slices, 50 % "
                  "expected");
    near.outline_mm = 0;
    near.slice_share = 0;
    near.share = 0.24; /* 10 of 26 voxels in 6 of 10 slices */
    assert_broken("near", "Intracranial: the outline lies off the bone: 23 % of it within 4 mm in the mean slice, 24 % "
                          "expected");
    put(1, false, 0, COLUMNS - 1, 0, ROWS_ - 1, 0, SLICES - 1);
    near.share = 0.01;
    assert_broken("near", "Intracranial: the outline lies off the bone: 0 % of it within 4 mm in the mean slice, 1 % "
                          "expected");
}

END_TEST

/* A box without its inner 4 x 4 x 2 voxels, which a closing fills. */
START_TEST(gaps)
{
    struct conf_solidity solidity = {.mm = 12, .at_least = 0.9, .thick_mm = 6, .dense_ml = 0.575};
    expect.solidity = &solidity;
    put(0, true, 20, 31, 4, 13, 3, 9);
    put(0, false, 23, 26, 6, 9, 5, 6); /* 32 of 840 voxels; the opening keeps 24 */
    fill_lane();
    assert_broken("solidity",
                  "Right lung: 0.576 ml of tissue thicker than 6 mm lie in its gaps, at most 0.575 ml expected");
    solidity.dense_ml = 0.577;
    ck_assert_uint_eq(check(), 0);
    solidity.thick_mm = 0;
    solidity.at_least = 0.97;
    assert_broken("solidity", "Right lung: it has gaps: 96 % of its closing by 12 mm, at least 97 % expected");
    solidity.within = (char *)"Left lung";
    put(1, true, 20, 31, 4, 13, 3, 9);
    put(1, false, 23, 26, 6, 9, 5, 6);
    ck_assert_uint_eq(check(), 0);
}

END_TEST

/* Soft tissue of 40 HU with steps of 8 HU from column to column, in air of -1000 HU; values are in 1/8 HU. */
START_TEST(values_in_hu)
{
    segments[0].label = (char *)"Body";
    expect.frame = CONF_FRAME_CT_BODY;
    put(0, true, 10, 59, 3, 16, 0, 15); /* 269 ml */
    for (int i = 0; i < VOXELS; i++) {
        const int x = i % COLUMNS, y = i / COLUMNS % ROWS_;
        voxels[i] = x >= 10 && x < 60 && y >= 3 && y < 17 ? (int16_t)(320 + 64 * (x & 1)) : -8000;
    }
    for (int z = 0; z < SLICES; z++)
        rescale[z].slope = 0.125;
    expect.noise = (struct conf_limit){true, 10};
    fill_lane();
    assert_broken("frame", "Body: not a body: 0.2688 l, expected 0.5 to 1000 l");
    ck_assert(isfinite(measures[0].noise));
    rescale[0].intercept = 1;
    assert_broken("frame", "Body: the values of the images are not in HU");
    ck_assert(isnan(measures[0].noise));
}

END_TEST

/* A segment with grid_mm is checked on the coarse volume, and measured on the images if it has a mask there. */
START_TEST(segments_of_a_coarse_grid)
{
    static uint64_t blocks[WORDS];
    static const int16_t values[4] = {8, 16, 24, 32};
    struct image_mask coarse_masks[2] = {{blocks, 1, 2}, {NULL, 1, 0}};
    struct error error;
    struct expect_volume coarse = volume;
    coarse.masks = coarse_masks;
    coarse.extent = (struct image_extent){4, 1, 1};
    coarse.voxels = values;
    blocks[0] = 3;
    segments[0].grid_mm = 4;
    expect.volume_ml = (struct conf_bounds){true, {1, 2}};
    put(0, true, 3, 4, 2, 2, 3, 3);
    voxels[(3 * ROWS_ + 2) * COLUMNS + 3] = 50;
    for (int hidden = 0; hidden < 2; hidden++) {
        masks[0].bits = hidden ? NULL : bits[0];
        expect_clear(&found);
        ck_assert_int_eq(expect_check(&pipeline, &volume, &coarse, measures, &found, &error), 0);
        ck_assert_uint_eq(found.count, 1);
        ck_assert_str_eq(found.at[0].text, "Right lung: volume 0.048 ml, expected 1 to 2 ml");
        ck_assert_double_eq(measures[0].mean, hidden ? 12 : 25);
        ck_assert_int_eq(measures[0].first[0], hidden ? 0 : 3);
    }
}

END_TEST

/* Blocks of 2 x 1 x 1 voxels: padding beside the last block of a row, in half of a block, and in the block itself. */
START_TEST(padding_beside_blocks)
{
    static uint64_t blocks[ROWS_ * SLICES];
    static const int16_t values[VOXELS];
    const int at = (4 * ROWS_ + 5) * COLUMNS;
    struct conf_face_cm2 faces = {.sides = {true, 0.1}};
    struct image_mask coarse_masks[2] = {{blocks, 1, 1}, {NULL, 1, 0}};
    struct error error;
    struct expect_volume coarse = volume;
    coarse.masks = coarse_masks;
    coarse.extent.columns = COLUMNS / 2;
    coarse.spacing[0] = 4;
    coarse.voxels = values;
    blocks[4 * ROWS_ + 5] = UINT64_C(1) << 10; /* columns 20 and 21 */
    masks[0].bits = NULL;
    segments[0].grid_mm = 4;
    expect.face_cm2 = &faces;
    padding[4] = (struct image_range){-2000, -2000};
    for (int x = 15; x < 27; x++) {
        voxels[at + x] = -2000;
        expect_clear(&found);
        ck_assert_int_eq(expect_check(&pipeline, &volume, &coarse, measures, &found, &error), 0);
        ck_assert_uint_eq(found.count, x >= 18 && x <= 23);
        ck_assert(found.count == 0 ||
                  strcmp(found.at[0].text, "Right lung: cut off at padding: 0.12 cm2, at most 0.1 cm2 expected") == 0);
        voxels[at + x] = 0;
    }
}

END_TEST

START_TEST(empty_segments)
{
    expect.extent_mm = &(struct conf_extent_mm){.height = {true, {20, 20}}};
    assert_broken("expect", "Right lung: the segment is empty");
    expect.may_be_empty = true;
    ck_assert_uint_eq(check(), 0);
}

END_TEST

int
main(void)
{
    const TTest *const tests[] = {extents,
                                  contact_with_faces,
                                  contact_with_padding,
                                  mirror_images,
                                  parts_in_slices,
                                  dropped_volumes,
                                  areas_that_jump,
                                  ends_that_are_cut,
                                  halves_of_a_pair,
                                  outlines_near_bone,
                                  gaps,
                                  values_in_hu,
                                  segments_of_a_coarse_grid,
                                  padding_beside_blocks,
                                  empty_segments};
    Suite *suite = suite_create("expect_anatomy");
    TCase *tcase = tcase_create("expect_anatomy");
    tcase_add_checked_fixture(tcase, begin, end);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
