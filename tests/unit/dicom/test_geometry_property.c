/*
 * Checks that an accepted stack is one of the original volumes, for any change to the files of a valid series.
 *
 * Series of several kinds are permuted, reduced, partly duplicated, and mixed with others. Every accepted stack must
 * be exactly one of the original volumes (or of copies of its slices). One case cannot be detected: a series that
 * loses the same end slices of all its volumes without a count of them. Therefore, series lose any number of slices
 * if Images in Acquisition counts them, else fewer than they have volumes. One more case is ambiguous: if it counts
 * per volume and that number of slices is left in total, it may also be a count of all.
 */
#include "tests/unit/series_sample.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

enum { ROUNDS = 150, MOST_VOLUMES = 16 };

/* Volume and slice of each instance of the sample. */
static struct {
    int volume[MOST], slice[MOST];
    int32_t size[MOST_VOLUMES]; /* slices of each volume; 0: must not be accepted */
    int volumes;
} truth;

static uint32_t state;

static int
draw(int count)
{
    return (int)(next_random(&state) % (uint32_t)count);
}

/* ---- valid series ---- */

static struct dicom_frame *
add_of_volume(int volume, int slice, const double orientation[6], double x, double y, double z)
{
    struct dicom_frame *frame = add_frames(1);
    place_frame(frame, orientation, x, y, z);
    const int32_t last_one = series.count - 1;
    truth.volume[last_one] = volume;
    truth.slice[last_one] = slice;
    truth.size[volume]++;
    if (volume >= truth.volumes)
        truth.volumes = volume + 1;
    return frame;
}

static struct dicom_frame *
add_axial(int volume, int slice)
{
    return add_of_volume(volume, slice, axial, -10, -20, 1.5 * slice - 30);
}

static void
time_text(char text[DICOM_DS_SIZE], double seconds)
{
    snprintf(text, DICOM_DS_SIZE, "2026110117%02d%09.6f", (int)(seconds / 60), fmod(seconds, 60));
}

static void
make_plain(int slices)
{
    for (int i = 0; i < slices; i++)
        add_axial(0, i);
}

/* Makes volumes, ordered by volume or by slice. */
static void
make_volumes(int volumes, int slices, bool by_slice, void (*tell)(struct dicom_frame *, int, int))
{
    for (int i = 0; i < volumes * slices; i++) {
        const int volume = by_slice ? i % volumes : i / slices;
        const int slice = by_slice ? i / volumes : i % slices;
        tell(add_axial(volume, slice), volume, slice);
    }
}

static void
tell_echo(struct dicom_frame *frame, int volume, int slice)
{
    (void)slice;
    snprintf(frame->echo, DICOM_DS_SIZE, "%d", volume + 1);
}

/* One without weight, the others by direction. */
static void
tell_direction(struct dicom_frame *frame, int volume, int slice)
{
    (void)slice;
    strcpy(frame->b_value, volume == 0 ? "0" : "1000");
    if (volume > 0)
        snprintf(frame->direction, DICOM_DS_SIZE, "0.%d 0.5 -0.1", volume);
}

/* Same with two without weight, which differ only in their numbers. */
static void
tell_unweighted(struct dicom_frame *frame, int volume, int slice)
{
    tell_direction(frame, volume < 2 ? 0 : volume - 1, slice);
}

static void
tell_time(struct dicom_frame *frame, int volume, int slice)
{
    (void)slice;
    snprintf(frame->temporal, DICOM_DS_SIZE, "%d", volume + 1);
}

static void
tell_part(struct dicom_frame *frame, int volume, int slice)
{
    (void)slice;
    strcpy(frame->component, volume == 0 ? "M" : volume == 1 ? "P" : "R");
    strcpy(frame->image_type, "ND");
}

static void
tell_nothing(struct dicom_frame *frame, int volume, int slice)
{
    (void)frame;
    (void)volume;
    (void)slice;
}

/* Sets acquisition times: one volume after the other, its odd slices last. */
static void
tell_acquired(struct dicom_frame *frame, int volume, int slice)
{
    last()->instance_number = 0;
    time_text(frame->acquired, 3 * volume + 0.1 * (slice % 2 ? 10 + slice : slice));
}

static void
tell_content(struct dicom_frame *frame, int volume, int slice)
{
    (void)frame;
    (void)slice;
    last()->instance_number = 0;
    time_text(last()->content, 7 * volume);
}

static void
make_orientations(int slices)
{
    for (int i = 0; i < slices; i++)
        add_axial(0, i);
    for (int i = 0; i < slices; i++)
        add_of_volume(1, i, coronal, 0, 2 * i, 0);
}

static void
make_scouts(int slices)
{
    for (int i = 0; i < 3; i++) {
        struct dicom_frame *frame = add_of_volume(1, i, i ? sagittal : coronal, 0, 0, 5);
        frame->excluded = CODE_LOCALIZER;
        last()->rows = last()->columns = 512;
    }
    truth.size[1] = 0;
    for (int i = 0; i < slices; i++)
        add_axial(0, i);
}

static const struct {
    const char *name;
    void (*tell)(struct dicom_frame *frame, int volume, int slice); /* NULL: one volume */
    int volumes;
    bool by_slice;
    void (*make)(int slices);
} kinds[] = {
    {"plain", NULL, 1, false, make_plain},
    {"echoes", tell_echo, 3, true, NULL},
    {"echoes, one after the other", tell_echo, 2, false, NULL},
    {"directions", tell_direction, 7, false, NULL},
    {"directions and two without", tell_unweighted, 7, false, NULL},
    {"temporal positions", tell_time, 5, false, NULL},
    {"temporal positions, slice by slice", tell_time, 5, true, NULL},
    {"magnitude, phase and real", tell_part, 3, true, NULL},
    {"numbered volume by volume", tell_nothing, 4, false, NULL},
    {"numbered slice by slice", tell_nothing, 4, true, NULL},
    {"by acquisition time", tell_acquired, 4, false, NULL},
    {"by content time", tell_content, 4, false, NULL},
    {"two orientations", NULL, 1, false, make_orientations},
    {"scouts", NULL, 1, false, make_scouts},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Selects whether and how the series has a count of its images. */
enum counting { UNCOUNTED, COUNTED_ALL, COUNTED_BY_VOLUME };

static void
announce(enum counting counting)
{
    int32_t images = 0;
    for (int v = 0; v < truth.volumes; v++)
        images += truth.size[v];
    for (int32_t i = 0; i < series.count && counting != UNCOUNTED; i++) {
        struct dicom_instance *instance = &series.storage[i];
        instance->images_in_acquisition = counting == COUNTED_ALL ? images : truth.size[truth.volume[i]];
        instance->expected_instances = images;
    }
}

static void
make_series(int kind, enum counting counting)
{
    const int slices = 4 + draw(9);
    free_series();
    memset(&truth, 0, sizeof(truth));
    if (kinds[kind].make)
        kinds[kind].make(slices);
    else
        make_volumes(kinds[kind].volumes, slices, kinds[kind].by_slice, kinds[kind].tell);
    announce(counting);
}

/* ---- changes ---- */

static void
lose(int32_t count)
{
    for (; count > 0; count--) {
        const int32_t lost = draw(series.count);
        series.instances[lost] = series.instances[series.count - 1];
        series.count--;
    }
}

/* Finds the removed instances, which are still in storage and freed with it. */
static void
find_lost(int32_t stored)
{
    series.count = stored;
}

/* Adds a copy of a slice with another UID and path and a later time. */
static void
send_again(int32_t i)
{
    const struct dicom_instance *first = series.instances[i];
    const int32_t of = (int32_t)(first - series.storage);
    const struct dicom_frame frame = first->frames[0];
    add_frames(1)[0] = frame;
    struct dicom_instance *again = last();
    char *path = again->path;
    struct dicom_frame *frames = again->frames;
    *again = *first;
    again->path = path;
    again->frames = frames;
    snprintf(again->sop_instance_uid, DICOM_UID_SIZE, "1.2.%d", 5000 - series.count);
    time_text(again->created, 1800 + series.count);
    truth.volume[series.count - 1] = truth.volume[of];
    truth.slice[series.count - 1] = truth.slice[of];
}

/* ---- conditions ---- */

static void
must_be_a_volume(const struct geometry_stack *stack, const char *kind)
{
    const int32_t first = (int32_t)(series.instances[stack->planes[0].instance] - series.storage);
    const int volume = truth.volume[first];
    bool seen[MOST] = {0};
    ck_assert_msg(stack->plane_count == truth.size[volume], "%s, stack %s: %d of %d slices", kind, stack->name,
                  stack->plane_count, truth.size[volume]);
    for (int32_t p = 0; p < stack->plane_count; p++) {
        const int32_t i = (int32_t)(series.instances[stack->planes[p].instance] - series.storage);
        ck_assert_msg(truth.volume[i] == volume && !seen[truth.slice[i]],
                      "%s, stack %s: slice %d of volume %d is in volume %d", kind, stack->name, truth.slice[i],
                      truth.volume[i], volume);
        seen[truth.slice[i]] = true;
    }
}

static int
accepted_of(const struct geometry_series *result, const char *kind)
{
    int accepted = 0;
    for (int32_t i = 0; i < result->stack_count; i++) {
        ck_assert(result->stacks[i].accepted == (result->stacks[i].error.code == CODE_NONE));
        ck_assert(i == 0 || strverscmp(result->stacks[i - 1].name, result->stacks[i].name) < 0);
        if (!result->stacks[i].accepted)
            continue;
        accepted++;
        must_be_a_volume(&result->stacks[i], kind);
    }
    return accepted;
}

static int
accepted(const char *kind, const struct geometry_limits *with)
{
    struct geometry_series *result = group_with(with);
    const int count = accepted_of(result, kind);
    geometry_series_free(result);
    return count;
}

static int
volumes_to_accept(void)
{
    int volumes = 0;
    for (int v = 0; v < truth.volumes; v++)
        volumes += truth.size[v] > 0;
    return volumes;
}

static void
must_be_the_same(const struct geometry_series *a, struct dicom_instance *const *a_instances,
                 const struct geometry_series *b)
{
    ck_assert_int_eq(a->stack_count, b->stack_count);
    for (int32_t i = 0; i < a->stack_count; i++) {
        const struct geometry_stack *s = &a->stacks[i], *t = &b->stacks[i];
        ck_assert_str_eq(s->name, t->name);
        ck_assert_str_eq(s->split_by, t->split_by);
        ck_assert_str_eq(s->error.message, t->error.message);
        ck_assert_int_eq(s->plane_count, t->plane_count);
        for (int32_t p = 0; p < s->plane_count; p++)
            ck_assert_ptr_eq(a_instances[s->planes[p].instance], series.instances[t->planes[p].instance]);
    }
}

START_TEST(a_valid_series_in_any_order)
{
    state = 1000 + (uint32_t)_i;
    for (int round = 0; round < 10; round++) {
        make_series(_i, (enum counting)draw(3));
        struct dicom_instance *as_made[MOST];
        memcpy(as_made, series.instances, sizeof(as_made));
        struct geometry_series *a = group();
        ck_assert_msg(accepted_of(a, kinds[_i].name) == volumes_to_accept(), "%s: %s", kinds[_i].name,
                      a->stacks[0].error.message);
        for (uint32_t seed = 0; seed < 10; seed++) {
            shuffle(seed);
            struct geometry_series *b = group();
            must_be_the_same(a, as_made, b);
            geometry_series_free(b);
        }
        geometry_series_free(a);
    }
}

END_TEST

START_TEST(a_series_without_some_slices)
{
    state = 2000 + (uint32_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        make_series(_i, kinds[_i].volumes > 1 ? (enum counting)draw(3) : COUNTED_ALL);
        const int32_t made = series.count;
        const bool counted = series.storage[made - 1].images_in_acquisition > 0;
        shuffle((uint32_t)round);
        lose(1 + draw(counted ? (int)made - 2 : kinds[_i].volumes - 1));
        if (series.count != series.instances[0]->images_in_acquisition)
            accepted(kinds[_i].name, &limits);
        find_lost(made);
    }
}

END_TEST

/* Removes one slice, if only numbers count slices: any but the one with the highest number. */
START_TEST(a_numbered_series)
{
    static const int numbered[] = {0, 12, 13}; /* plain, two orientations, scouts */
    const int kind = numbered[_i];
    make_series(kind, UNCOUNTED);
    const int32_t made = series.count;
    struct dicom_instance *as_made[MOST];
    memcpy(as_made, series.instances, sizeof(as_made));
    for (int32_t i = 0; i + 1 < made; i++) {
        memcpy(series.instances, as_made, sizeof(as_made));
        series.count = made - 1;
        series.instances[i] = as_made[made - 1];
        accepted(kinds[kind].name, &limits);
    }
    find_lost(made);
}

END_TEST

START_TEST(a_series_with_repeated_slices)
{
    state = 3000 + (uint32_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        make_series(_i, (enum counting)draw(3));
        const int32_t made = series.count;
        for (int32_t more = 1 + draw(round % 3 ? 3 : made); more > 0; more--)
            send_again(draw(made));
        shuffle((uint32_t)round);
        accepted(kinds[_i].name, &limits);
    }
}

END_TEST

START_TEST(a_series_with_missing_and_repeated_slices)
{
    state = 4000 + (uint32_t)_i;
    const struct geometry_limits newest = {.min_planes = 2, .spacing_tolerance = 0.01, .newest_of_duplicates = true};
    for (int round = 0; round < ROUNDS; round++) {
        make_series(_i, (enum counting)(1 + draw(2)));
        const int32_t made = series.count;
        for (int32_t more = 1 + draw(3); more > 0; more--)
            send_again(draw(made));
        const int32_t sent = series.count;
        shuffle((uint32_t)round);
        lose(1 + draw(3));
        accepted(kinds[_i].name, round % 2 ? &newest : &limits);
        find_lost(sent);
    }
}

END_TEST

/* Must use the newest slice of each position, and must not use a slice of another volume. */
START_TEST(the_newest_of_repeated_slices)
{
    state = 5000 + (uint32_t)_i;
    const struct geometry_limits newest = {.min_planes = 2, .spacing_tolerance = 0.01, .newest_of_duplicates = true};
    for (int round = 0; round < ROUNDS; round++) {
        make_series(_i, (enum counting)draw(3));
        const int32_t made = series.count;
        for (int32_t i = 0; i < made; i++)
            time_text(series.storage[i].created, i);
        const int32_t again = draw(made);
        send_again(again);
        shuffle((uint32_t)round);
        struct geometry_series *result = group_with(&newest);
        accepted_of(result, kinds[_i].name);
        for (int32_t i = 0; i < result->stack_count; i++)
            for (int32_t p = 0; result->stacks[i].accepted && p < result->stacks[i].plane_count; p++)
                ck_assert_ptr_ne(series.instances[result->stacks[i].planes[p].instance], &series.storage[again]);
        geometry_series_free(result);
    }
}

END_TEST

START_TEST(a_series_with_a_foreign_slice)
{
    static const struct {
        size_t offset;
        enum code code;
    } others[] = {
        {offsetof(struct dicom_instance, patient), CODE_MIXED_PATIENTS},
        {offsetof(struct dicom_instance, patient_name), CODE_MIXED_PATIENTS},
        {offsetof(struct dicom_instance, study_uid), CODE_MIXED_STUDIES},
        {offsetof(struct dicom_instance, frame_of_reference_uid), CODE_MIXED_FRAMES_OF_REFERENCE},
    };

    state = 6000 + (uint32_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t other = (size_t)draw(4);
        make_series(_i, (enum counting)draw(3));
        const int32_t made = series.count;
        send_again(made - 1 - draw(4));
        strcpy((char *)last() + others[other].offset, "9");
        if (draw(2))
            last()->frames[0].position[2] += 100;
        shuffle((uint32_t)round);
        struct geometry_series *result;
        struct error error;
        ck_assert_int_eq(geometry_group(series.instances, series.count, &limits, &result, &error), -EINVAL);
        ck_assert_int_eq(error.code, others[other].code);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry_property");
    TCase *property = new_case(suite, "property");
    tcase_add_loop_test(property, a_valid_series_in_any_order, 0, KINDS);
    tcase_add_loop_test(property, a_series_without_some_slices, 0, KINDS);
    tcase_add_loop_test(property, a_numbered_series, 0, 3);
    tcase_add_loop_test(property, a_series_with_repeated_slices, 0, KINDS);
    tcase_add_loop_test(property, a_series_with_missing_and_repeated_slices, 0, KINDS);
    tcase_add_loop_test(property, the_newest_of_repeated_slices, 0, KINDS);
    tcase_add_loop_test(property, a_series_with_a_foreign_slice, 0, KINDS);
    return suite_run(suite);
}
