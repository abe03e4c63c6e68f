/* seg_write and seg_identify: rejections, failures, and stability. */
#include "tests/unit/dicom/seg_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

#include <sys/mman.h>

static const struct seg_sample_shape odd = {.columns = 33, .rows = 7, .planes = 5, .segments = 3};

static struct seg_sample sample;

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return seg_write(&sample.request, fd, summary, error);
}

static int
verify_sample(const char *path, struct error *error)
{
    return seg_verify(&sample.request, path, 1, error);
}

static struct written_object object = {
    .path = sample.target,
    .mismatch = CODE_SEG_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

static struct error error;

static void
make_odd(void)
{
    dicom_init();
    seg_sample_make(&sample, &odd);
    seg_sample_set(&sample, 0, 32, 6, 1);
    seg_sample_set(&sample, 0, 0, 0, 3);
    seg_sample_set(&sample, 2, 5, 5, 3);
    error = (struct error){0};
}

/* Makes the same frames with connectedness. All other voxels have the highest value that is stored as 0. */
static void
make_fractional(void)
{
    struct seg_sample_shape shape = odd;
    shape.fractional = true;
    dicom_init();
    seg_sample_make(&sample, &shape);
    for (int i = 0; i < 3 * 5 * 7 * 33; i++)
        sample.maps[i] = 128;
    seg_sample_set_map(&sample, 0, 32, 6, 1, 65535);
    seg_sample_set_map(&sample, 0, 0, 0, 3, 129);
    seg_sample_set_map(&sample, 2, 5, 5, 3, 32768);
    error = (struct error){0};
}

static void
drop(void)
{
    written_free(&object);
    seg_sample_free(&sample);
}

START_TEST(empty_frames_are_left_out)
{
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 3);
    /* 3 * 33 * 7 = 693 bits: 87 bytes and one for an even length. The first frame's last voxel: */
    const uint8_t *pixels = object.bytes + object.size - 88;
    ck_assert_mem_eq(pixels - 12, "\xE0\x7F\x10\x00OB\0\0\x58\0\0\0", 12);
    for (int bit = 0; bit < 704; bit++) {
        bool expected = bit == 6 * 33 + 32 || bit == 231 || bit == 462 + 5 * 33 + 5;
        ck_assert_int_eq(pixels[bit / 8] >> bit % 8 & 1, expected);
    }
}

END_TEST

START_TEST(empty_frames_are_kept)
{
    sample.request.omit_empty_frames = false;
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 15);
}

END_TEST

START_TEST(an_empty_mask_gives_no_object)
{
    memset(sample.words, 0, sizeof(uint64_t) * 3 * 7 * 5);
    ck_assert_int_eq(written_try(&object, &error), -ENODATA);
    ck_assert_int_eq(error.code, CODE_SEG_EMPTY);
    sample.request.omit_empty_frames = false;
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 15);
}

END_TEST

/* Checks Segments Overlap (0062,0013), with its VR and length before the value. */
static void
expect_overlap(const char *value)
{
    const uint8_t head[8] = {0x62, 0x00, 0x13, 0x00, 'C', 'S', (uint8_t)strlen(value), 0};
    const uint8_t *place = memmem(object.bytes, object.size, head, sizeof(head));
    ck_assert_ptr_nonnull(place);
    ck_assert_mem_eq(place + sizeof(head), value, strlen(value));
}

START_TEST(overlap_is_found)
{
    written_take(&object);
    expect_overlap("NO");
    seg_sample_set(&sample, 2, 0, 0, 3);
    written_take(&object);
    expect_overlap("YES ");
}

END_TEST

START_TEST(same_input_same_bytes)
{
    written_take(&object);
    /* The same instances in another order, to which the stack points as before. */
    struct dicom_instance *last = sample.instances[4];
    sample.instances[4] = sample.instances[0];
    sample.instances[0] = last;
    sample.stack.planes[0].instance = 4;
    sample.stack.planes[4].instance = 0;
    written_expect_same_again(&object);
}

END_TEST

START_TEST(identity_follows_from_the_inputs)
{
    struct derived_identity base;
    struct derived_identity other;
    seg_identify(&sample.request, &base);
    ck_assert_str_ne(base.sop_instance_uid, base.series_uid);
    ck_assert_str_ne(base.sop_instance_uid, base.dimension_organization_uid);
    ck_assert_str_ne(base.series_uid, base.dimension_organization_uid);

    struct seg_request changed;
    written_take(&object);
    ck_assert_mem_eq(&base, &object.summary.identity, offsetof(struct derived_identity, replaces));

    const char *const texts[] = {"pipeline", "settings", "version", "serial number"};
    for (size_t i = 0; i < 4; i++) {
        changed = sample.request;
        if (i == 0)
            changed.source.pipeline = "head-ct2";
        if (i == 1)
            changed.source.pipeline_settings = "range = [ 0, 81 ]";
        if (i == 2)
            changed.source.software_version = "0.1.1";
        if (i == 3)
            changed.source.device_serial_number = "N-2";
        seg_identify(&changed, &other);
        ck_assert_msg(strcmp(base.sop_instance_uid, other.sop_instance_uid) != 0, "%s", texts[i]);
        ck_assert_msg(strcmp(base.series_uid, other.series_uid) != 0, "%s", texts[i]);
    }
    sample.stack.plane_count--;
    seg_identify(&sample.request, &other);
    sample.stack.plane_count++;
    ck_assert_str_ne(base.sop_instance_uid, other.sop_instance_uid);
    strcpy(sample.storage[2].digest, "2.25.1");
    seg_identify(&sample.request, &other);
    ck_assert_str_ne(base.sop_instance_uid, other.sop_instance_uid);
    sample.storage[2].digest[0] = '\0';
    strcpy(sample.storage[2].sop_instance_uid, "1.2.3.4.6000");
    seg_identify(&sample.request, &other);
    ck_assert_str_ne(base.sop_instance_uid, other.sop_instance_uid);
}

END_TEST

/* An object that replaces another one names it, and is not the one that replaces none. The very same object does not
 * replace itself. */
START_TEST(references_to_replaced_objects)
{
    struct derived_identity first, second, third, again;
    struct derived_earlier earlier = {0};
    seg_identify(&sample.request, &first);
    ck_assert_ptr_null(first.replaces);
    earlier.latest = (struct derived_reference){first.sop_instance_uid, first.series_uid, "1.2.3.4.1", NULL};
    sample.request.source.earlier = &earlier;
    seg_identify(&sample.request, &again);
    ck_assert_ptr_null(again.replaces);
    ck_assert_str_eq(again.sop_instance_uid, first.sop_instance_uid);

    sample.request.source.pipeline_settings = "range = [ 0, 81 ]";
    seg_identify(&sample.request, &second);
    ck_assert_ptr_eq(second.replaces, &earlier.latest);
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, first.sop_instance_uid), 2);
    ck_assert_int_eq(written_count_text(&object, first.series_uid), 1);
    ck_assert_int_eq(written_count_text(&object, "99NOCTULE"), 2);
    written_expect_same_again(&object);

    earlier.replaced = earlier.latest;
    earlier.latest = (struct derived_reference){second.sop_instance_uid, second.series_uid, "1.2.3.4.1", NULL};
    seg_identify(&sample.request, &again);
    ck_assert_ptr_eq(again.replaces, &earlier.replaced);
    ck_assert_str_eq(again.sop_instance_uid, second.sop_instance_uid);
    ck_assert_str_eq(again.series_uid, second.series_uid);

    sample.request.source.pipeline_settings = "range = [ 0, 80 ]";
    seg_identify(&sample.request, &third);
    ck_assert_ptr_eq(third.replaces, &earlier.latest);
    ck_assert_str_ne(third.sop_instance_uid, first.sop_instance_uid);
}

END_TEST

/* Archives hold objects under these UIDs: a release that makes others sends everything twice. They were computed by
 * hashlib from the fields that conformance.md, 4.4, lists. */
START_TEST(identity_is_equal_across_releases)
{
    static const struct derived_identity expected[2] = {
        {"2.25.228505698500349479464062674618803962456", "2.25.172581242355498172015516581208503109113",
         "2.25.331488610825114616680180247835233154532", NULL},
        {"2.25.143980966809164098976663927686579313155", "2.25.162665652760364619706806771690973589723",
         "2.25.107505763905447891129219943576404778438", NULL},
    };

    for (int i = 0; i < 2; i++) {
        struct derived_identity identity;
        sample.request.type = i == 1 ? SEG_FRACTIONAL : SEG_BINARY;
        seg_identify(&sample.request, &identity);
        ck_assert_str_eq(identity.sop_instance_uid, expected[i].sop_instance_uid);
        ck_assert_str_eq(identity.series_uid, expected[i].series_uid);
        ck_assert_str_eq(identity.dimension_organization_uid, expected[i].dimension_organization_uid);
    }
}

END_TEST

static void
expect_frame_of_reference(const char *begins)
{
    static const uint8_t head[6] = {0x20, 0x00, 0x52, 0x00, 'U', 'I'};
    written_take(&object);
    const uint8_t *place = memmem(object.bytes, object.size, head, sizeof(head));
    ck_assert_ptr_nonnull(place);
    ck_assert_mem_eq(place + 8, begins, strlen(begins));
}

START_TEST(a_missing_frame_of_reference_is_generated)
{
    expect_frame_of_reference("1.2.3.4.3");
    for (int32_t i = 0; i < sample.instance_count; i++)
        sample.storage[i].frame_of_reference_uid[0] = '\0';
    expect_frame_of_reference("2.25.");
}

END_TEST

START_TEST(texts_beyond_ascii_make_the_object_utf8)
{
    drop();
    struct seg_sample_shape latin = odd;
    latin.charset = "ISO_IR 100";
    latin.patient = "M\xFCller^J\xF6rg";
    seg_sample_make(&sample, &latin);
    seg_sample_set(&sample, 1, 3, 3, 2);

    written_take(&object); /* ASCII only: the source's set and bytes stay */
    ck_assert(written_count_text(&object, "ISO_IR 100"));
    ck_assert(written_count_text(&object, "M\xFCller^J\xF6rg"));

    sample.segments[1].label = "Gro\xC3\x9Fhirn";
    written_take(&object);
    ck_assert(written_count_text(&object, "ISO_IR 192"));
    ck_assert(written_count_text(&object, "M\xC3\xBCller^J\xC3\xB6rg"));
    ck_assert(written_count_text(&object, "Gro\xC3\x9Fhirn"));
}

END_TEST

START_TEST(code_extensions_become_utf8)
{
    drop();
    struct seg_sample_shape kanji = odd;
    kanji.charset = "\\ISO 2022 IR 87";
    kanji.patient = "Yamada^Tarou=\x1B$B;3ED\x1B(B^\x1B$BB@O:\x1B(B";
    seg_sample_make(&sample, &kanji);
    seg_sample_set(&sample, 1, 3, 3, 2);
    written_take(&object);
    ck_assert(written_count_text(&object, "\\ISO 2022 IR 87"));
    ck_assert(written_count_text(&object, kanji.patient));
    sample.segments[1].label = "\xE8\x84\xB3";
    written_take(&object);
    ck_assert(written_count_text(&object, "ISO_IR 192"));
    ck_assert(written_count_text(&object, "Yamada^Tarou=\xE5\xB1\xB1\xE7\x94\xB0^\xE5\xA4\xAA\xE9\x83\x8E"));
    ck_assert(written_count_text(&object, "\xE8\x84\xB3"));
}

END_TEST

/* Half-width katakana are single bytes, next to kanji with escape sequences. */
START_TEST(katakana_become_utf8)
{
    drop();
    struct seg_sample_shape katakana = odd;
    katakana.charset = "ISO 2022 IR 13\\ISO 2022 IR 87";
    katakana.patient = "\xD4\xCF\xC0\xDE^\xC0\xDB\xB3=\x1B$B;3ED\x1B(J^\x1B$BB@O:\x1B(J";
    seg_sample_make(&sample, &katakana);
    seg_sample_set(&sample, 1, 3, 3, 2);
    sample.segments[1].label = "\xE8\x84\xB3";
    written_take(&object);
    ck_assert(written_count_text(&object, "ISO_IR 192"));
    ck_assert(written_count_text(&object, "\xEF\xBE\x94\xEF\xBE\x8F\xEF\xBE\x80\xEF\xBE\x9E^"
                                          "\xEF\xBE\x80\xEF\xBE\x9B\xEF\xBD\xB3="
                                          "\xE5\xB1\xB1\xE7\x94\xB0^\xE5\xA4\xAA\xE9\x83\x8E"));
}

END_TEST

/* Bytes beyond ASCII without a declared set, and an unknown set: a name must keep the rest. */
START_TEST(names_in_unknown_sets_keep_their_ascii_characters)
{
    static const char *const charsets[] = {NULL, "ISO_IR 999"};
    for (size_t i = 0; i < 2; i++) {
        drop();
        struct seg_sample_shape unknown = odd;
        unknown.charset = charsets[i];
        unknown.patient = "M\xFCller";
        seg_sample_make(&sample, &unknown);
        seg_sample_set(&sample, 1, 3, 3, 2);
        sample.segments[1].label = "Gro\xC3\x9Fhirn";
        written_take(&object);
        ck_assert(written_count_text(&object, "ISO_IR 192"));
        ck_assert(written_count_text(&object, "M?ller"));
        ck_assert(written_count_text(&object, "Gro\xC3\x9Fhirn"));
        ck_assert_ptr_nonnull(strstr(object.summary.left_out, "(0010,0010)"));
    }
}

END_TEST

START_TEST(names_in_utf8_are_declared_as_utf8)
{
    static const char *const charsets[] = {NULL, "ISO_IR 6", "UTF-8"};
    for (size_t i = 0; i < 3; i++) {
        drop();
        struct seg_sample_shape undeclared = odd;
        undeclared.charset = charsets[i];
        undeclared.patient = "M\xC3\xBCller";
        seg_sample_make(&sample, &undeclared);
        seg_sample_set(&sample, 1, 3, 3, 2);
        written_take(&object);
        ck_assert(written_count_text(&object, "ISO_IR 192"));
        ck_assert(written_count_text(&object, "M\xC3\xBCller"));
        ck_assert_ptr_nonnull(strstr(object.summary.left_out, "(0008,0005)"));
        ck_assert_ptr_null(strstr(object.summary.left_out, "(0010,0010)"));
    }
}

END_TEST

/* An optional value that violates its VR would make the object invalid: 9:30 is not a TM. */
START_TEST(invalid_optional_values_are_omitted)
{
    written_take(&object);
    ck_assert(written_count_text(&object, "Head"));
    ck_assert(!written_count_text(&object, "9:30"));
}

END_TEST

START_TEST(geometry_is_needed)
{
    sample.stack.has_geometry = false;
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_NO_GEOMETRY);
}

END_TEST

/*
 * A frame of a 2-D image has no Frame of Reference, place and spacing of its own: it refers to the frame of its source (PS3.3
 * A.51.3). The source of the sample has a Frame of Reference, which must be left out.
 */
START_TEST(a_frame_of_a_2d_image)
{
    const enum seg_type type = (enum seg_type)(_i / 2);
    struct seg_sample_shape shape = odd;
    shape.multi_frame = _i % 2;
    shape.fractional = type == SEG_FRACTIONAL;
    drop();
    seg_sample_make(&sample, &shape);
    sample.request.type = type;
    if (shape.fractional)
        seg_sample_set_map(&sample, 1, 4, 2, 0, 65535);
    else
        seg_sample_set(&sample, 1, 4, 2, 0);
    seg_sample_flatten(&sample, shape.multi_frame ? 3 : 0);
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 1);
    ck_assert_int_eq(written_count(&object,
                                   "\x20\x00\x20\x00"
                                   "CS\0\0",
                                   8),
                     1); /* Patient Orientation, empty */
    ck_assert_int_eq(written_count(&object, "\x20\x00\x52\x00UI", 6), 0);
    ck_assert_int_eq(written_count(&object, "\x20\x00\x40\x10LO", 6), 0);
    ck_assert_int_eq(written_count(&object, "\x20\x00\x13\x91SQ", 6), 0); /* Plane Position, Plane Orientation */
    ck_assert_int_eq(written_count(&object, "\x20\x00\x16\x91SQ", 6), 0);
    ck_assert_int_eq(written_count(&object, "\x28\x00\x10\x91SQ", 6), 0); /* Pixel Measures */
    ck_assert_int_eq(written_count(&object,
                                   "\x08\x00\x60\x11IS\x02\x00"
                                   "4 ",
                                   10),
                     shape.multi_frame);
    ck_assert_int_eq(written_count(&object, "\x20\x00\x53\x94LO\x02\x00", 8), 1); /* Frame Label */
    if (!shape.multi_frame)
        return;
    written_expect_damage(&object, written_find_value(&object, 0x00081160, "IS", 1), '4' ^ '3', "which is not a plane");
    sample.stack.planes[0].frame = 2;
    ck_assert_int_eq(verify_sample(object.path, &error), -EBADMSG); /* its UID is that of another frame */
}

END_TEST

/* The stack of a 2-D image is one frame of the image itself. */
START_TEST(frames_of_several_2d_images_are_refused)
{
    seg_sample_flatten(&sample, 0);
    sample.stack.plane_count = 2;
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_NO_GEOMETRY);
}

END_TEST

START_TEST(incomplete_requests_are_refused)
{
    for (int i = 0; i < 11; i++) {
        struct seg_request good = sample.request;
        struct seg_segment segment = sample.segments[0];
        int32_t planes = sample.stack.plane_count;
        if (i == 0)
            sample.segments[0].bits = NULL;
        if (i == 1)
            sample.segments[0].words_per_row = 0;
        if (i == 2)
            sample.segments[0].label = "";
        if (i == 3)
            sample.segments[0].type.value = NULL;
        if (i == 4)
            sample.request.segment_count = 0;
        if (i == 5)
            sample.request.source.device_serial_number = "";
        if (i == 6)
            sample.stack.plane_count = 0;
        if (i == 7)
            sample.segments[0].algorithm_name = "";
        if (i == 8)
            sample.segments[0].category.meaning = "";
        if (i == 9)
            sample.segments[0].modifier = (struct coded_concept){"7771000", NULL, "Left"};
        if (i == 10)
            sample.segments[0].algorithm_family = (struct coded_concept){"123111", "DCM", ""};
        ck_assert_int_eq(written_try(&object, &error), -EINVAL);
        ck_assert_int_eq(error.code, CODE_SEG_REQUEST_INVALID);
        sample.request = good;
        sample.segments[0] = segment;
        sample.stack.plane_count = planes;
    }
}

END_TEST

START_TEST(an_unreadable_source_is_reported)
{
    unlink(sample.source);
    ck_assert_int_lt(written_try(&object, &error), 0);
    ck_assert_str_ne(code_name(error.code), "");
    ck_assert_str_eq(error.file[0], sample.source);
}

END_TEST

/* Nine planes of 65535 x 65535 are 4.5 GiB of bits. The mask is address space that is hardly touched. */
START_TEST(four_gib_are_too_much)
{
    const int64_t words_per_row = 1024;
    const size_t words = (size_t)words_per_row * 65535;
    const size_t bytes = 9 * words * sizeof(uint64_t);
    uint64_t *mask = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(mask, MAP_FAILED);
    drop();
    struct seg_sample_shape nine = {.columns = 1, .rows = 1, .planes = 9, .segments = 1};
    seg_sample_make(&sample, &nine);
    sample.stack.columns = 65535;
    sample.stack.rows = 65535;
    sample.segments[0].bits = mask;
    sample.segments[0].words_per_row = words_per_row;
    for (size_t z = 0; z < 9; z++)
        mask[z * words] = 1;
    ck_assert_int_eq(written_try(&object, &error), -EOVERFLOW);
    ck_assert_int_eq(error.code, CODE_SEG_TOO_LARGE);
    munmap(mask, bytes);
}

END_TEST

/* With bytes, two planes of 65535 x 65535 exceed 4 GiB. */
START_TEST(four_gib_of_maps_are_refused)
{
    const size_t voxels = (size_t)65535 * 65535;
    const size_t bytes = 2 * voxels * sizeof(uint16_t);
    uint16_t *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    drop();
    struct seg_sample_shape two = {.columns = 1, .rows = 1, .planes = 2, .segments = 1, .fractional = true};
    seg_sample_make(&sample, &two);
    sample.stack.columns = 65535;
    sample.stack.rows = 65535;
    sample.segments[0].map = map;
    map[0] = UINT16_MAX;
    map[voxels] = UINT16_MAX;
    ck_assert_int_eq(written_try(&object, &error), -EOVERFLOW);
    ck_assert_int_eq(error.code, CODE_SEG_TOO_LARGE);
    munmap(map, bytes);
}

END_TEST

START_TEST(a_full_device_is_reported)
{
    written_expect_full_device_told(&object);
}

END_TEST

START_TEST(a_truncated_file_is_reported)
{
    written_expect_full_disk_told(&object);
}

END_TEST

START_TEST(other_shapes_read_back)
{
    static const struct seg_sample_shape shapes[] = {
        {.columns = 1, .rows = 1, .planes = 1, .segments = 1},
        {.columns = 64, .rows = 3, .planes = 2, .segments = 2},
        {.columns = 255, .rows = 257, .planes = 3, .segments = 2},
        {.columns = 100, .rows = 9, .planes = 17, .segments = 1, .multi_frame = true},
        {.columns = 7, .rows = 5, .planes = 400, .segments = 8},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        drop();
        seg_sample_make(&sample, &shapes[i]);
        for (int32_t s = 0; s < shapes[i].segments; s++) {
            for (int32_t z = s; z < shapes[i].planes; z += 2)
                seg_sample_set(&sample, s, (s * 3 + z) % shapes[i].columns, z % shapes[i].rows, z);
        }
        written_take(&object);
        sample.request.omit_empty_frames = false;
        written_take(&object);
        ck_assert_int_eq(object.summary.frames, (int64_t)shapes[i].planes * shapes[i].segments);
    }
}

END_TEST

/* --- FRACTIONAL --- */

START_TEST(probabilities_of_frames)
{
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 3);
    /* 3 * 33 * 7 = 693 bytes and one for an even length. */
    const uint8_t *pixels = object.bytes + object.size - 694;
    ck_assert_mem_eq(pixels - 12, "\xE0\x7F\x10\x00OB\0\0\xB6\x02\0\0", 12);
    for (int i = 0; i < 694; i++) {
        int expected = 0;
        if (i == 6 * 33 + 32)
            expected = 255;
        if (i == 231)
            expected = 1;
        if (i == 462 + 5 * 33 + 5)
            expected = 128;
        ck_assert_int_eq(pixels[i], expected);
    }
}

END_TEST

START_TEST(empty_probabilities)
{
    sample.request.omit_empty_frames = false;
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 15);
    for (int i = 0; i < 3 * 5 * 7 * 33; i++)
        sample.maps[i] = 128;
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 15);
    sample.request.omit_empty_frames = true;
    ck_assert_int_eq(written_try(&object, &error), -ENODATA);
    ck_assert_int_eq(error.code, CODE_SEG_EMPTY);
}

END_TEST

START_TEST(overlap_of_probabilities)
{
    written_take(&object);
    expect_overlap("UNDEFINED ");
    sample.request.segment_count = 1;
    written_take(&object);
    expect_overlap("NO");
}

END_TEST

START_TEST(descriptions)
{
    written_take(&object);
    ck_assert(written_count_text(&object, "head-ct segmentation, fractional"));
    sample.request.series_description = "Vessels, connectedness";
    sample.request.series_number = 1002;
    sample.segments[0].algorithm_name = "Noctule fuzzy connectedness";
    written_take(&object);
    ck_assert(written_count_text(&object, "Vessels, connectedness"));
    ck_assert(!written_count_text(&object, "head-ct segmentation"));
    ck_assert(written_count_text(&object, "Noctule fuzzy connectedness"));
    ck_assert(written_count_text(&object, "IS\x04"
                                          "\0"
                                          "1002"));
}

END_TEST

/* Each type must have its own voxels, and must not read those of the other type. */
START_TEST(voxels_of_the_other_type)
{
    const uint16_t *map = sample.segments[0].map;
    sample.segments[0].map = NULL;
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_SEG_REQUEST_INVALID);
    sample.segments[0].map = map;
    sample.request.type = SEG_BINARY; /* there are no masks */
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_SEG_REQUEST_INVALID);
}

END_TEST

START_TEST(other_shapes_of_probabilities)
{
    static const struct seg_sample_shape shapes[] = {
        {.columns = 1, .rows = 1, .planes = 1, .segments = 1},
        {.columns = 1, .rows = 1, .planes = 3, .segments = 1},
        {.columns = 255, .rows = 257, .planes = 3, .segments = 2},
        {.columns = 512, .rows = 300, .planes = 2, .segments = 1},
        {.columns = 100, .rows = 9, .planes = 17, .segments = 1, .multi_frame = true},
        {.columns = 7, .rows = 5, .planes = 400, .segments = 8},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct seg_sample_shape shape = shapes[i];
        shape.fractional = true;
        drop();
        seg_sample_make(&sample, &shape);
        int64_t voxels = seg_sample_voxels(&shape) * shape.segments;
        for (int64_t v = 0; v < voxels; v++)
            sample.maps[v] = (uint16_t)((v + 7) * 40503);
        written_take(&object);
        sample.request.omit_empty_frames = false;
        written_take(&object);
        ck_assert_int_eq(object.summary.frames, (int64_t)shape.planes * shape.segments);
    }
}

END_TEST

static TCase *
fractional_case(void)
{
    TCase *tests = tcase_create("write fractional");
    tcase_add_checked_fixture(tests, make_fractional, drop);
    tcase_add_test(tests, probabilities_of_frames);
    tcase_add_test(tests, empty_probabilities);
    tcase_add_test(tests, overlap_of_probabilities);
    tcase_add_test(tests, descriptions);
    tcase_add_test(tests, voxels_of_the_other_type);
    tcase_add_test(tests, other_shapes_of_probabilities);
    tcase_add_test(tests, same_input_same_bytes);
    tcase_add_test(tests, identity_follows_from_the_inputs);
    tcase_add_test(tests, references_to_replaced_objects);
    tcase_add_test(tests, a_missing_frame_of_reference_is_generated);
    tcase_add_test(tests, geometry_is_needed);
    tcase_add_test(tests, an_unreadable_source_is_reported);
    tcase_add_test(tests, four_gib_of_maps_are_refused);
    tcase_add_test(tests, a_full_device_is_reported);
    tcase_add_test(tests, a_truncated_file_is_reported);
    return tests;
}

int
main(void)
{
    Suite *suite = suite_create("dicom_seg");
    TCase *tests = tcase_create("write");
    tcase_add_checked_fixture(tests, make_odd, drop);
    tcase_add_test(tests, empty_frames_are_left_out);
    tcase_add_test(tests, empty_frames_are_kept);
    tcase_add_test(tests, an_empty_mask_gives_no_object);
    tcase_add_test(tests, overlap_is_found);
    tcase_add_test(tests, same_input_same_bytes);
    tcase_add_test(tests, identity_follows_from_the_inputs);
    tcase_add_test(tests, references_to_replaced_objects);
    tcase_add_test(tests, identity_is_equal_across_releases);
    tcase_add_test(tests, a_missing_frame_of_reference_is_generated);
    tcase_add_test(tests, texts_beyond_ascii_make_the_object_utf8);
    tcase_add_test(tests, code_extensions_become_utf8);
    tcase_add_test(tests, katakana_become_utf8);
    tcase_add_test(tests, names_in_unknown_sets_keep_their_ascii_characters);
    tcase_add_test(tests, names_in_utf8_are_declared_as_utf8);
    tcase_add_test(tests, invalid_optional_values_are_omitted);
    tcase_add_test(tests, geometry_is_needed);
    tcase_add_loop_test(tests, a_frame_of_a_2d_image, 0, 6);
    tcase_add_test(tests, frames_of_several_2d_images_are_refused);
    tcase_add_test(tests, incomplete_requests_are_refused);
    tcase_add_test(tests, an_unreadable_source_is_reported);
    tcase_add_test(tests, four_gib_are_too_much);
    tcase_add_test(tests, a_full_device_is_reported);
    tcase_add_test(tests, a_truncated_file_is_reported);
    tcase_add_test(tests, other_shapes_read_back);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, fractional_case());
    return suite_run(suite);
}
