#include "service/pipeline/expectations.h"

#include "service/pipeline/expect/look.h"
#include "service/pipeline/measure/measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct segment_measures segment_measures_none = {
    .mean = NAN,
    .minimum = NAN,
    .maximum = NAN,
    .last = {-1, -1, -1},
    .centroid = {NAN, NAN, NAN},
    .noise = NAN,
};

static const char *const face_names[EXPECT_FACES] = {"first column", "last column",   "first row", "last row",
                                                     "lowest slice", "highest slice", "padding"};

static void
look_at_touches(const struct expect_look *look, const struct expect_facts *facts, enum conf_touches touches)
{
    static const unsigned allowed[] = {
        [CONF_TOUCHES_ANY] = ~0u,
        [CONF_TOUCHES_TOP_BOTTOM] = 1u << EXPECT_FACE_LOWEST_SLICE | 1u << EXPECT_FACE_HIGHEST_SLICE,
        [CONF_TOUCHES_NONE] = 0,
    };
    char names[160] = "";
    const char *between = "";
    int broken = 0;
    if (touches == CONF_TOUCHES_ANY)
        return;
    const unsigned faces = expect_facts_faces(facts) & ~allowed[touches];
    for (int face = 0; face < EXPECT_FACES; face++) {
        if (!(faces >> face & 1))
            continue;
        const size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s", between, face_names[face]);
        between = ", ";
        broken++;
    }
    const struct expect_breach breach = {.expectation = "touches", .found = broken};
    if (broken)
        look_add(look, &breach, "reaches the edge of the volume (%s), expected %s", names,
                 touches == CONF_TOUCHES_NONE ? "to reach none" : "in the lowest and the highest slice alone");
}

static void
look_at_share(const struct expect_look *look, const struct conf_share *share)
{
    size_t other = 0;
    char before[96];
    while (strcmp(look->pipeline->segments[other].label, share->label) != 0)
        other++;
    const int64_t whole = look->volume->masks[other].voxels;
    const struct expect_breach breach = {.expectation = "share_of"};
    if (whole == 0) {
        look_add(look, &breach, "its share of %s is not known: that segment is empty", share->label);
        return;
    }
    snprintf(before, sizeof before, "share of %s ", share->label);
    look_compare(look, "share_of", share->range, (double)look->volume->masks[look->segment].voxels / (double)whole,
                 before, "");
}

/* Compares the measures of the segment's voxels. */
static void
look_at_facts(const struct expect_look *look, const struct expect_facts *facts, const struct segment_measures *measures,
              int64_t components, const struct conf_expect *expect)
{
    if (expect->mean.given)
        look_compare(look, "mean", expect->mean.at, measures->mean, "mean ", look->volume->unit);
    if (expect->components.given)
        look_compare(look, "components", expect->components.at, (double)components, "components: ", "");
    if (expect->slices.given)
        look_compare(look, "slices", expect->slices.at, (double)measures->slices, "slices with voxels: ", "");
    look_at_touches(look, facts, expect->touches);
    if (expect->share_of)
        look_at_share(look, expect->share_of);
    if (expect->share_of_box.given)
        look_compare(look, "share_of_box", expect->share_of_box.at,
                     (double)facts->mask->voxels / (double)expect_box_voxels(measures), "share of the box around it ",
                     "");
}

/* Compares its box, its symmetry and its volume with those of anatomy. */
static void
look_at_shape(const struct expect_look *look, const struct expect_facts *facts, const struct segment_measures *measures,
              const struct conf_expect *expect)
{
    if (expect->mirror.given)
        look_at_mirror(look, facts, measures, expect->mirror.at);
    if (expect->extent_mm)
        look_at_extent(look, measures, expect->extent_mm);
    if (expect->face_cm2)
        look_at_face_area(look, facts, expect->face_cm2);
    if (expect->dropped)
        look_at_dropped(look, expect->dropped);
}

/* Compares its sections with those of anatomy. */
static int
look_at_sections(const struct expect_look *look, const struct segment_measures *measures,
                 const struct conf_expect *expect)
{
    int rc = 0;
    if (expect->slice_parts.given)
        rc = look_at_slice_parts(look, measures, expect->slice_parts.at);
    if (rc == 0 && expect->ends.given)
        rc = look_at_ends(look, expect->ends.at);
    if (rc == 0 && expect->jump)
        rc = look_at_jump(look, expect->jump);
    if (rc == 0 && expect->beside)
        rc = look_at_beside(look, expect->beside);
    return rc;
}

/* Compares its surroundings with those of anatomy, and measures the noise. */
static int
look_at_surroundings(const struct expect_look *look, struct segment_measures *measures,
                     const struct conf_expect *expect)
{
    int rc = 0;
    if (expect->near)
        rc = look_at_near(look, measures, expect->near);
    if (rc == 0 && expect->solidity)
        rc = look_at_solidity(look, expect->solidity);
    if (rc == 0 && (expect->frame == CONF_FRAME_CT_BODY || expect->noise.given))
        rc = look_at_values(look, expect, &measures->noise);
    return rc;
}

/* Compares a segment that has voxels with its expectations. */
static void
look_at_expectations(const struct expect_look *look, const struct expect_facts *facts,
                     const struct segment_measures *measures, int64_t components, const struct conf_expect *expect)
{
    const struct expect_volume *volume = look->volume;
    const char *unit = volume->ucum;
    const struct conf_bounds *slice_mm = &expect->slice_mm;
    if (expect->volume_ml.given)
        look_compare(look, "volume_ml", expect->volume_ml.at,
                     (double)facts->mask->voxels * volume->spacing[0] * volume->spacing[1] * volume->spacing[2] / 1000,
                     "volume ", " ml");
    look_at_facts(look, facts, measures, components, expect);
    /* Positions in decimal digits may be off by a micrometre. */
    const double slices = round(volume->slice_mm * 1000) / 1000;
    if (slice_mm->given && slices > 0)
        look_compare(look, "slice_mm", slice_mm->at, slices, "slices of ", " mm");
    else if (slice_mm->given)
        look_add(look, &(struct expect_breach){.expectation = "slice_mm"}, "how thick the slices are is not known");
    if (expect->unit && strcmp(unit, expect->unit) != 0)
        look_add(look, &(struct expect_breach){.expectation = "unit"}, "the images' values are %s%s, expected in %s",
                 *unit ? "in " : "of no known unit", value_unit_spoken(unit), value_unit_spoken(expect->unit));
    if (expect->has_contrast && volume->contrast != expect->contrast)
        look_add(look, &(struct expect_breach){.expectation = "contrast"},
                 "the images name %s contrast agent, expected %s", expect->contrast ? "no" : "a",
                 expect->contrast ? "one" : "none");
}

/* Measures the segment on one volume and checks it there; NULL: does not check it. */
static int
look_at_mask(const struct expect_look *look, const struct expect_facts *facts, const struct conf_expect *expect,
             struct segment_measures *measures)
{
    int64_t components = 0;
    expect_facts_measure(facts, measures);
    if (!expect)
        return 0;
    if (expect->components.given && expect_facts_components(facts, &components))
        return error_set_system(look->error, -ENOMEM, "measure the segments");
    look_at_expectations(look, facts, measures, components, expect);
    look_at_shape(look, facts, measures, expect);
    const int rc = look_at_sections(look, measures, expect);
    return rc ? rc : look_at_surroundings(look, measures, expect);
}

/* The facts of a segment: of the mask where it was found, and of another one that it has on the images. */
enum { FACTS_OWN, FACTS_IMAGES, FACTS };

/* Selects the masks of a segment to measure: none if it is empty. */
static void
look_choose(const struct conf_segment *segment, size_t number, const struct expect_volume *images,
            const struct expect_volume *coarse, struct expect_facts facts[FACTS])
{
    const struct conf_expect *expect = segment->expect;
    const bool is_coarse = segment->grid_mm > 0 && coarse;
    const struct expect_volume *volume = is_coarse ? coarse : images;
    facts[FACTS_OWN].volume = volume;
    facts[FACTS_OWN].faces = expect && (expect->touches != CONF_TOUCHES_ANY || expect->face_cm2);
    facts[FACTS_IMAGES].volume = images;
    if (volume->masks[number].voxels == 0)
        return;
    facts[FACTS_OWN].mask = &volume->masks[number];
    if (is_coarse && images->masks[number].bits)
        facts[FACTS_IMAGES].mask = &images->masks[number];
}

/* Checks a measured segment. */
static int
look_at_segment(struct expect_look *look, const struct expect_facts facts[FACTS], struct segment_measures *measures)
{
    const struct conf_segment *segment = &look->pipeline->segments[look->segment];
    const struct conf_expect *expect = segment->expect;
    struct segment_measures own = segment_measures_none;
    look->volume = facts[FACTS_OWN].volume;
    *measures = segment_measures_none;
    if (!facts[FACTS_OWN].mask) {
        if (expect && !expect->may_be_empty && !expect->dropped && !segment->object.optional)
            look_add(look, &(struct expect_breach){.expectation = "expect"}, "the segment is empty");
        return 0;
    }
    const int rc = look_at_mask(look, &facts[FACTS_OWN], expect, &own);
    *measures = own;
    if (rc == 0 && facts[FACTS_IMAGES].mask) {
        expect_facts_measure(&facts[FACTS_IMAGES], measures);
        measures->noise = own.noise;
    }
    return rc;
}

struct expect_demand
expect_demand_of(const struct conf_segment *segment, const double spacing[3])
{
    const struct conf_expect *expect = segment->expect;
    struct expect_demand demand = {0};
    if (!expect)
        return demand;
    if (expect->frame == CONF_FRAME_CT_BODY || expect->noise.given)
        demand = (struct expect_demand){1, fmax(LOOK_AIR_MM, LOOK_NOISE_STEPS * spacing[1]), LOOK_SMOOTH_MM};
    if (expect->near || expect->solidity)
        demand.masks = 2;
    if (expect->near)
        demand.reach_mm = fmax(fmax(demand.reach_mm, expect->near->mm),
                               fmax(expect->near->outline_mm, LOOK_OUTLINE_STEPS * spacing[1]));
    if (expect->solidity)
        demand.reach_mm = fmax(demand.reach_mm, fmax(expect->solidity->mm, expect->solidity->thick_mm / 2));
    return demand;
}

/* Returns whether results of the segment need a validation: those of a program without checks do, too. */
static bool
look_needs_trust(const struct conf_segment *segment)
{
    const struct conf_expect *expect = segment->expect;
    return expect ? expect->trust == CONF_TRUST_LOCAL : segment->method == CONF_PROGRAM;
}

/* Checks once per job whether the site has validated the pipeline for these images. */
static void
look_at_trust(struct expect_look *look, const struct expect_volume *volume, const struct segment_measures *measures)
{
    struct trust_images images = volume->images;
    char why[TRUST_WHY];
    images.slice_mm = volume->slice_mm;
    images.noise = NAN;
    look->segment = look->pipeline->segment_count;
    for (size_t i = look->pipeline->segment_count; i-- > 0;) {
        images.noise = isnan(measures[i].noise) ? images.noise : measures[i].noise;
        look->segment = look_needs_trust(&look->pipeline->segments[i]) ? i : look->segment;
    }
    if (look->segment == look->pipeline->segment_count || look->pipeline->unreviewed ||
        trust_covers(volume->validated, &images, why))
        return;
    look_add(look, &(struct expect_breach){.expectation = "trust"}, "%s", why);
    look->breaches->untrusted = true;
}

enum { MOST_OF_A_SEGMENT = 40 }; /* breaches */

int
expect_check(const struct conf_pipeline *pipeline, const struct expect_volume *volume,
             const struct expect_volume *coarse, struct segment_measures *measures, struct expect_breaches *breaches,
             struct error *error)
{
    struct expect_look look = {.pipeline = pipeline, .breaches = breaches, .error = error};
    struct expect_volume blocks = coarse ? *coarse : *volume;
    blocks.finer = volume;
    *breaches =
        (struct expect_breaches){.at = calloc(MOST_OF_A_SEGMENT * pipeline->segment_count + 2, sizeof *breaches->at)};
    struct expect_facts *facts = calloc(FACTS * pipeline->segment_count + 1, sizeof *facts);
    const size_t masks = facts ? FACTS * pipeline->segment_count : 0;
    int rc;
    for (size_t i = 0; i < masks / FACTS; i++)
        look_choose(&pipeline->segments[i], i, volume, coarse ? &blocks : NULL, &facts[FACTS * i]);
    rc = breaches->at && facts ? expect_facts_find(facts, masks, volume->threads, error)
                               : error_set_system(error, -ENOMEM, "measure the segments");
    for (; rc == 0 && look.segment < pipeline->segment_count; look.segment++)
        rc = look_at_segment(&look, &facts[FACTS * look.segment], &measures[look.segment]);
    if (rc == 0 && volume->doubt && volume->doubt[0]) {
        look.segment = 0;
        look_add(&look, &(struct expect_breach){.expectation = "unit"}, "%s", volume->doubt);
    }
    if (rc == 0)
        look_at_trust(&look, volume, measures);
    if (rc)
        expect_clear(breaches);
    expect_facts_clear(facts, masks);
    free(facts);
    return rc;
}

void
expect_clear(struct expect_breaches *breaches)
{
    free(breaches->at);
    *breaches = (struct expect_breaches){0};
}

void
expect_tell(const struct expect_breaches *breaches, char *text, size_t size)
{
    enum { ROOM_FOR_REST = 40 };

    size_t length = 0;
    *text = '\0';
    for (size_t i = 0; i < breaches->count; i++) {
        const char *next = breaches->at[i].text;
        const size_t rest = i + 1 < breaches->count ? ROOM_FOR_REST : 0;
        if (length > 0 && length + 2 + strlen(next) + rest >= size) {
            snprintf(text + length, size - length, "; and %zu more: job.json", breaches->count - i);
            return;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? "; " : "", next);
    }
}
