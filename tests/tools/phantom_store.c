/* phantom_store.c - stores a series of planes as DICOM objects: CT, MR and PET, classic or multi-frame. */
#include "tests/tools/phantom.h"

#include "tests/tools/part10.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Purposes of the UIDs of a series; part of their key. */
enum uid_use { UID_STUDY, UID_SERIES, UID_FRAME_OF_REFERENCE, UID_INSTANCE, UID_DIMENSIONS, UID_IRRADIATION };

struct storage {
    const char *modality;
    const char *class_uid, *enhanced_class_uid;
    const char *units; /* Rescale Type */
};

static const struct storage ct_storage = {
    .modality = "CT",
    .class_uid = "1.2.840.10008.5.1.4.1.1.2",
    .enhanced_class_uid = "1.2.840.10008.5.1.4.1.1.2.1",
    .units = "HU",
};
static const struct storage mr_storage = {
    .modality = "MR",
    .class_uid = "1.2.840.10008.5.1.4.1.1.4",
    .enhanced_class_uid = "1.2.840.10008.5.1.4.1.1.4.1",
    .units = "US",
};
static const struct storage pet_storage = {
    .modality = "PT",
    .class_uid = "1.2.840.10008.5.1.4.1.1.128",
    .enhanced_class_uid = "1.2.840.10008.5.1.4.1.1.130",
    .units = "US",
};

static const struct storage *
storage_of(enum phantom_kind kind)
{
    return kind == PHANTOM_MR_BRAIN ? &mr_storage : kind == PHANTOM_PET ? &pet_storage : &ct_storage;
}

/* The key of the UIDs must include every input that changes the bytes of the series. */
static void
make_uid(const struct phantom *phantom, enum uid_use use, uint64_t index, char uid[PART10_UID_SIZE])
{
    if (phantom->identity) {
        const uint64_t key[] = {use, index, phantom->seed, phantom->identity};
        part10_uid(key, sizeof(key) / sizeof(key[0]), uid);
        return;
    }
    uint64_t spacing[3], tilt;
    memcpy(spacing, phantom->spacing, sizeof(spacing));
    memcpy(&tilt, &phantom->tilt, sizeof(tilt));
    const uint64_t key[] = {
        use,
        index,
        phantom->seed,
        phantom->kind,
        (uint64_t)phantom->columns,
        (uint64_t)phantom->rows,
        (uint64_t)phantom->slices,
        spacing[0],
        spacing[1],
        spacing[2],
        tilt,
        (uint64_t)phantom->echoes,
        (uint64_t)phantom->gap,
        (uint64_t)phantom->duplicate,
        (uint64_t)phantom->bits,
        (uint64_t)phantom->is_signed << 2 | (uint64_t)phantom->multi_frame << 1 | (uint64_t)phantom->instances_lie,
    };
    part10_uid(key, sizeof(key) / sizeof(key[0]), uid);
}

/* ------------------------------------------------------------------------ stored values ---- */

/* Real-world value = slope * stored + intercept. */
struct rescale {
    double slope, intercept;
};

static struct rescale
rescale_of(const struct phantom *phantom, const struct phantom_plane *plane)
{
    bool ct = storage_of(phantom->kind) == &ct_storage;
    bool pet = phantom->kind == PHANTOM_PET;
    struct rescale rescale = {.slope = 1, .intercept = ct && !phantom->is_signed ? -1024 : 0};
    if (pet)
        rescale.slope = 1.0 + 0.01 * (plane->slice % 7);
    if (phantom->bits == 8) {
        rescale.slope *= ct ? 16 : pet ? 128 : 1;
        rescale.intercept = ct ? (phantom->is_signed ? 1024 : -1024) : 0;
    }
    if (pet && phantom->bits == 12)
        rescale.slope *= 16;
    return rescale;
}

static int32_t
store_value(const struct phantom *phantom, const struct rescale *rescale, int32_t value)
{
    const int32_t half = 1 << (phantom->bits - 1 < 30 ? phantom->bits - 1 : 29);
    const int32_t lowest = phantom->is_signed ? -half : 0;
    const int32_t highest = phantom->is_signed ? half - 1 : 2 * half - 1;
    int32_t stored = (int32_t)lround((value - rescale->intercept) / rescale->slope);
    return stored < lowest ? lowest : stored > highest ? highest : stored;
}

static size_t
sample_size(const struct phantom *phantom)
{
    return phantom->bits == 8 ? 1 : phantom->bits == 32 ? 4 : 2;
}

static int32_t
tiles_across(const struct phantom *phantom)
{
    return phantom->tiles ? phantom->tiles : 1;
}

static size_t
image_size(const struct phantom *phantom)
{
    const size_t across = (size_t)tiles_across(phantom);
    return across * across * (size_t)phantom->columns * (size_t)phantom->rows * sample_size(phantom);
}

/* Writes stored values, little endian. */
static void
encode(const struct phantom *phantom, const struct rescale *rescale, const int32_t *values, int32_t count,
       uint8_t *pixels)
{
    for (int32_t i = 0; i < count; i++) {
        uint32_t stored = (uint32_t)store_value(phantom, rescale, values[i]);
        if (phantom->floats) {
            const float number = (float)values[i];
            memcpy(&stored, &number, sizeof(stored));
        }
        for (size_t byte = 0; byte < sample_size(phantom); byte++)
            *pixels++ = (uint8_t)(stored >> 8 * byte);
    }
}

/* Draws the plane, or the volume as tiles, and writes it. */
static void
render(const struct phantom *phantom, const struct phantom_plane *plane, const struct phantom_drawing *drawing,
       uint8_t *pixels)
{
    const int32_t across = tiles_across(phantom);
    const struct rescale rescale = rescale_of(phantom, plane);
    const size_t run = (size_t)phantom->columns * sample_size(phantom);
    const int32_t count = phantom->tiles ? phantom->slices : 1;
    for (int32_t tile = 0; tile < count; tile++) {
        struct phantom_plane drawn = *plane;
        if (phantom->tiles)
            drawn.slice = tile;
        phantom_draw(phantom, &drawn, drawing);
        const size_t above = (size_t)(tile / across * phantom->rows), left = (size_t)(tile % across);
        for (int32_t y = 0; y < phantom->rows; y++)
            encode(phantom, &rescale, drawing->values + (ptrdiff_t)y * phantom->columns, phantom->columns,
                   pixels + ((above + (size_t)y) * (size_t)across + left) * run);
    }
}

/* ---------------------------------------------------------------------------- geometry ---- */

/* The table moves along z while the gantry is tilted: the planes of the stack are sheared. */
void
phantom_column_direction(const struct phantom *phantom, double direction[3])
{
    double angle = phantom->tilt * M_PI / 180;
    direction[0] = 0;
    direction[1] = cos(angle);
    direction[2] = sin(angle);
}

void
phantom_position(const struct phantom *phantom, int32_t slice, double position[3])
{
    double y = -0.5 * (phantom->rows - 1) * phantom->spacing[1], down[3];
    phantom_column_direction(phantom, down);
    position[0] = -0.5 * (phantom->columns - 1) * phantom->spacing[0];
    position[1] = y * down[1];
    position[2] = y * down[2] + slice * phantom->spacing[2];
}

static void
put_orientation(struct part10 *set, const struct phantom *phantom)
{
    double orientation[6] = {1, 0, 0};
    phantom_column_direction(phantom, orientation + 3);
    part10_ds(set, 0x00200037, orientation, 6);
}

static void
put_position(struct part10 *set, const struct phantom *phantom, const struct phantom_plane *plane)
{
    double position[3];
    phantom_position(phantom, plane->slice, position);
    part10_ds(set, 0x00200032, position, 3);
}

static void
put_spacing(struct part10 *set, const struct phantom *phantom)
{
    const double spacing[2] = {phantom->spacing[1], phantom->spacing[0]};
    double thickness = phantom->spacing[2] * cos(phantom->tilt * M_PI / 180);
    part10_ds(set, 0x00280030, spacing, 2);
    part10_ds(set, 0x00180050, &thickness, 1);
}

/* ----------------------------------------------------------------------------- modules ---- */

static void
put_patient_and_study(struct part10 *set, const struct phantom *phantom)
{
    char uid[PART10_UID_SIZE];
    part10_text(set, 0x00100010, "PN", "Phantom^Noctule");
    part10_text(set, 0x00100020, "LO", "NP%06llu", (unsigned long long)(phantom->seed % 1000000));
    part10_text(set, 0x00100030, "DA", "19700101");
    part10_text(set, 0x00100040, "CS", "O");
    part10_text(set, 0x00101010, "AS", "050Y");
    part10_text(set, 0x00101030, "DS", "75");
    make_uid(phantom, UID_STUDY, 0, uid);
    part10_text(set, 0x0020000d, "UI", "%s", uid);
    part10_text(set, 0x00080020, "DA", "20200101");
    part10_text(set, 0x00080030, "TM", "120000");
    part10_text(set, 0x00080050, "SH", "A%06llu", (unsigned long long)(phantom->seed % 1000000));
    part10_text(set, 0x00080090, "PN", "%s", "");
    part10_text(set, 0x00200010, "SH", "1");
}

static void
put_series(struct part10 *set, const struct phantom *phantom)
{
    const struct storage *storage = storage_of(phantom->kind);
    char uid[PART10_UID_SIZE];
    make_uid(phantom, UID_SERIES, 0, uid);
    part10_text(set, 0x0020000e, "UI", "%s", uid);
    part10_text(set, 0x00200011, "IS", "1");
    part10_text(set, 0x00080060, "CS", "%s", storage->modality);
    part10_text(set, 0x0008103e, "LO", "%s", phantom_picture(phantom->kind)->description);
    part10_text(set, 0x00080021, "DA", "20200101");
    part10_text(set, 0x00080031, "TM", "120000");
    if (phantom->kind != PHANTOM_PET) /* PET has codes instead */
        part10_text(set, 0x00185100, "CS", "HFS");
    make_uid(phantom, UID_FRAME_OF_REFERENCE, 0, uid);
    part10_text(set, 0x00200052, "UI", "%s", uid);
    part10_text(set, 0x00201040, "LO", "%s", "");
    part10_text(set, 0x00080070, "LO", "Synthetic");
    part10_text(set, 0x00081090, "LO", "Phantom generator");
    part10_text(set, 0x00181000, "LO", "1");
    part10_text(set, 0x00181020, "LO", "1");
}

static void
put_pixel_description(struct part10 *set, const struct phantom *phantom)
{
    part10_us(set, 0x00280002, 1);
    part10_text(set, 0x00280004, "CS", "MONOCHROME2");
    part10_us(set, 0x00280010, (unsigned)(phantom->rows * tiles_across(phantom)));
    part10_us(set, 0x00280011, (unsigned)(phantom->columns * tiles_across(phantom)));
    part10_us(set, 0x00280100, (unsigned)sample_size(phantom) * 8);
    part10_us(set, 0x00280101, (unsigned)phantom->bits);
    part10_us(set, 0x00280102, (unsigned)phantom->bits - 1);
    part10_us(set, 0x00280103, phantom->is_signed);
}

static void
put_pixels(struct part10 *set, const struct phantom *phantom, const uint8_t *pixels, size_t size)
{
    if (phantom->floats)
        part10_bytes(set, 0x7fe00008, "OF", pixels, size);
    else
        part10_bytes(set, 0x7fe00010, sample_size(phantom) == 1 ? "OB" : "OW", pixels, size);
}

static void
put_window(struct part10 *set, const struct phantom *phantom)
{
    bool ct = storage_of(phantom->kind) == &ct_storage;
    double center = ct ? 40 : phantom->kind == PHANTOM_PET ? 10000 : 60;
    double width = ct ? 100 : phantom->kind == PHANTOM_PET ? 20000 : 120;
    part10_ds(set, 0x00281050, &center, 1);
    part10_ds(set, 0x00281051, &width, 1);
}

static void
put_sop(struct part10 *set, const struct phantom *phantom, const char *class_uid, int32_t number)
{
    char uid[PART10_UID_SIZE];
    make_uid(phantom, UID_INSTANCE, (uint64_t)number, uid);
    part10_text(set, 0x00080016, "UI", "%s", class_uid);
    part10_text(set, 0x00080018, "UI", "%s", uid);
    part10_text(set, 0x00200013, "IS", "%d", number);
    part10_text(set, 0x00080023, "DA", "20200101");
    part10_text(set, 0x00080033, "TM", "120000");
}

static void
put_code(struct part10 *set, uint32_t tag, const char *value, const char *scheme, const char *meaning)
{
    struct part10 item = {0};
    part10_text(&item, 0x00080100, "SH", "%s", value);
    part10_text(&item, 0x00080102, "SH", "%s", scheme);
    part10_text(&item, 0x00080104, "LO", "%s", meaning);
    part10_sequence(set, tag, &item, 1);
    part10_release(&item);
}

/* ---------------------------------------------------------------------- classic images ---- */

static void
put_echo(struct part10 *set, const struct phantom_plane *plane)
{
    part10_text(set, 0x00180081, "DS", "%d", 5 + 10 * plane->echo);
    part10_text(set, 0x00180086, "IS", "%d", plane->echo + 1);
}

static void
put_rescale(struct part10 *set, const struct rescale *rescale)
{
    part10_ds(set, 0x00281052, &rescale->intercept, 1);
    part10_ds(set, 0x00281053, &rescale->slope, 1);
}

static void
put_ct(struct part10 *set, const struct phantom *phantom)
{
    part10_text(set, 0x00080008, "CS", "ORIGINAL\\PRIMARY\\AXIAL");
    part10_text(set, 0x00180060, "DS", "120");
    part10_ds(set, 0x00181120, &phantom->tilt, 1);
    part10_text(set, 0x00181210, "SH", "STANDARD");
    part10_text(set, 0x00281054, "LO", "HU");
}

static void
put_mr(struct part10 *set, const struct phantom_plane *plane)
{
    part10_text(set, 0x00080008, "CS", "ORIGINAL\\PRIMARY\\OTHER");
    part10_text(set, 0x00180020, "CS", "GR");
    part10_text(set, 0x00180021, "CS", "SP");
    part10_text(set, 0x00180022, "CS", "%s", "");
    part10_text(set, 0x00180023, "CS", "3D");
    part10_text(set, 0x00180080, "DS", "2000");
    part10_text(set, 0x00180087, "DS", "3");
    part10_text(set, 0x00180091, "IS", "1");
    put_echo(set, plane);
}

static void
put_radiopharmaceutical(struct part10 *set)
{
    struct part10 item = {0};
    part10_text(&item, 0x00180031, "LO", "Fluorodeoxyglucose");
    part10_text(&item, 0x00181072, "TM", "110000");
    part10_text(&item, 0x00181074, "DS", "370000000");
    part10_text(&item, 0x00181075, "DS", "6586.2");
    put_code(&item, 0x00540300, "77004003", "SCT", "^18^Fluorine");
    part10_sequence(set, 0x00540016, &item, 1);
    part10_release(&item);
}

static void
put_pet(struct part10 *set, const struct phantom *phantom, const struct phantom_plane *plane)
{
    part10_text(set, 0x00080008, "CS", "ORIGINAL\\PRIMARY");
    part10_text(set, 0x00541001, "CS", "BQML");
    part10_text(set, 0x00541002, "CS", "EMISSION");
    part10_text(set, 0x00541000, "CS", "STATIC\\IMAGE");
    part10_text(set, 0x00541100, "CS", "NONE");
    part10_text(set, 0x00541102, "CS", "START");
    part10_text(set, 0x00280051, "CS", "DECY\\ATTN\\SCAT");
    part10_text(set, 0x00181181, "CS", "NONE");
    part10_text(set, 0x00181242, "IS", "120000");
    part10_text(set, 0x00541300, "DS", "60000");
    part10_text(set, 0x00541321, "DS", "1");
    part10_us(set, 0x00540081, (unsigned)phantom->slices);
    part10_us(set, 0x00541330, (unsigned)plane->slice + 1);
    put_code(set, 0x00540410, "102538003", "SCT", "recumbent");
    put_code(set, 0x00540414, "102540008", "SCT", "headfirst");
    put_radiopharmaceutical(set);
}

static int32_t
expected_count(const struct phantom *phantom)
{
    int32_t made = phantom->slices * phantom->echoes + (phantom->duplicate ? 1 : 0);
    return phantom->instances_lie ? made + 5 : made;
}

static void
put_classic(struct part10 *set, const struct phantom *phantom, const struct phantom_plane *plane, int32_t number)
{
    const struct storage *storage = storage_of(phantom->kind);
    put_patient_and_study(set, phantom);
    put_series(set, phantom);
    part10_text(set, 0x00180015, "CS", "%s", phantom_picture(phantom->kind)->body_part);
    put_sop(set, phantom, storage->class_uid, number);
    part10_text(set, 0x00080022, "DA", "20200101");
    part10_text(set, 0x00080032, "TM", "120000");
    part10_text(set, 0x00200012, "IS", "1");
    if (!phantom->identity) /* kinds of series set it themselves */
        part10_text(set, 0x00201002, "IS", "%d", expected_count(phantom));
    put_orientation(set, phantom);
    put_position(set, phantom, plane);
    put_spacing(set, phantom);
    put_pixel_description(set, phantom);
    put_window(set, phantom);
    const struct rescale rescale = rescale_of(phantom, plane);
    if (storage != &mr_storage)
        put_rescale(set, &rescale);
    if (storage == &ct_storage)
        put_ct(set, phantom);
    else if (storage == &mr_storage)
        put_mr(set, plane);
    else
        put_pet(set, phantom, plane);
    if (phantom->echoes > 1 && storage != &mr_storage)
        put_echo(set, plane); /* unlike any scanner, but it makes separate stacks */
}

static int
store_classic(const struct phantom *phantom, const struct phantom_plane *plane, int32_t place, const char *folder,
              const struct phantom_drawing *drawing, uint8_t *pixels)
{
    char *path;
    if (asprintf(&path, "%s/IM%05d.dcm", folder, phantom->files_before + place) < 0)
        return -ENOMEM;
    struct part10 set = {0};
    put_classic(&set, phantom, plane, plane->number ? plane->number : place);
    render(phantom, plane, drawing, pixels);
    put_pixels(&set, phantom, pixels, image_size(phantom));
    phantom_edit(&set, phantom->edits, PHANTOM_FILE, plane);
    int rc = part10_write(&set, path);
    part10_release(&set);
    free(path);
    return rc;
}

/* ------------------------------------------------------------------------- multi-frame ---- */

/* Puts a functional group: a sequence of one item, which it empties. */
static void
put_group(struct part10 *set, uint32_t tag, struct part10 *item)
{
    part10_sequence(set, tag, item, 1);
    part10_release(item);
}

#define ENHANCED_IMAGE_TYPE "DERIVED\\PRIMARY\\VOLUME\\NONE"

static void
put_frame_type(struct part10 *set, const struct storage *storage)
{
    struct part10 item = {0};
    part10_text(&item, 0x00089007, "CS", ENHANCED_IMAGE_TYPE);
    part10_text(&item, 0x00089205, "CS", "MONOCHROME");
    part10_text(&item, 0x00089206, "CS", "VOLUME");
    part10_text(&item, 0x00089207, "CS", "NONE");
    if (storage == &mr_storage) {
        part10_text(&item, 0x00089208, "CS", "MAGNITUDE");
        part10_text(&item, 0x00089209, "CS", "T1");
    }
    uint32_t tag = storage == &ct_storage ? 0x00189329 : storage == &mr_storage ? 0x00189226 : 0x00189751;
    put_group(set, tag, &item);
}

/* Puts the groups that only one of the classes has. */
static void
put_own_groups(struct part10 *shared, const struct phantom *phantom)
{
    const struct storage *storage = storage_of(phantom->kind);
    struct part10 item = {0};
    if (storage == &ct_storage) {
        char uid[PART10_UID_SIZE];
        make_uid(phantom, UID_IRRADIATION, 0, uid);
        part10_text(&item, 0x00083010, "UI", "%s", uid);
        put_group(shared, 0x00189477, &item);
    }
    if (storage == &pet_storage) {
        part10_us(&item, 0x00189729, 1);
        put_group(shared, 0x00189737, &item);
    }
}

static void
put_shared_groups(struct part10 *set, const struct phantom *phantom)
{
    const struct storage *storage = storage_of(phantom->kind);
    struct part10 shared = {0}, item = {0};
    put_spacing(&item, phantom);
    put_group(&shared, 0x00289110, &item);
    put_orientation(&item, phantom);
    put_group(&shared, 0x00209116, &item);
    put_window(&item, phantom);
    put_group(&shared, 0x00289132, &item);
    const char *const *region = phantom_picture(phantom->kind)->region;
    put_code(&item, 0x00082218, region[0], "SCT", region[1]);
    part10_text(&item, 0x00209072, "CS", "U");
    put_group(&shared, 0x00209071, &item);
    put_frame_type(&shared, storage);
    put_own_groups(&shared, phantom);
    phantom_edit(&shared, phantom->edits, PHANTOM_SHARED, &(struct phantom_plane){0});
    part10_sequence(set, 0x52009229, &shared, 1);
    part10_release(&shared);
}

static void
put_frame_groups(struct part10 *frame, const struct phantom *phantom, const struct phantom_plane *plane, int32_t number)
{
    struct part10 item = {0};
    const struct rescale rescale = rescale_of(phantom, plane);
    part10_text(&item, 0x00209056, "SH", "1");
    part10_ul(&item, 0x00209057, (uint32_t)number);
    part10_ul(&item, 0x00209128, 1);
    part10_ul(&item, 0x00209157, (uint32_t)plane->slice + 1);
    put_group(frame, 0x00209111, &item);
    put_position(&item, phantom, plane);
    put_group(frame, 0x00209113, &item);
    put_rescale(&item, &rescale);
    part10_text(&item, 0x00281054, "LO", "%s", storage_of(phantom->kind)->units);
    put_group(frame, 0x00289145, &item);
    phantom_edit(frame, phantom->edits, PHANTOM_FRAME, plane);
}

static int
put_frames(struct part10 *set, const struct phantom *phantom, const struct phantom_plane *planes, int32_t plane_count)
{
    struct part10 *frames = calloc((size_t)plane_count, sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    for (int32_t i = 0; i < plane_count; i++)
        put_frame_groups(&frames[i], phantom, &planes[i], i + 1);
    part10_sequence(set, 0x52009230, frames, (size_t)plane_count);
    for (int32_t i = 0; i < plane_count; i++)
        part10_release(&frames[i]);
    free(frames);
    return 0;
}

/* Puts one dimension: the position of the slice. */
static void
put_dimensions(struct part10 *set, const struct phantom *phantom)
{
    static const uint8_t position[4] = {0x20, 0x00, 0x32, 0x00};
    static const uint8_t group[4] = {0x20, 0x00, 0x13, 0x91};
    char uid[PART10_UID_SIZE];
    make_uid(phantom, UID_DIMENSIONS, 0, uid);
    struct part10 item = {0};
    part10_text(&item, 0x00209164, "UI", "%s", uid);
    put_group(set, 0x00209221, &item);
    part10_text(&item, 0x00209164, "UI", "%s", uid);
    part10_bytes(&item, 0x00209165, "AT", position, sizeof(position));
    part10_bytes(&item, 0x00209167, "AT", group, sizeof(group));
    put_group(set, 0x00209222, &item);
}

static void
put_enhanced_mr(struct part10 *set)
{
    part10_text(set, 0x00089208, "CS", "MAGNITUDE");
    part10_text(set, 0x00089209, "CS", "T1");
    part10_text(set, 0x00180087, "DS", "3");
    part10_text(set, 0x00189064, "CS", "NONE");
    part10_text(set, 0x00189174, "CS", "IEC");
}

static void
put_enhanced_radiopharmaceutical(struct part10 *set)
{
    struct part10 item = {0};
    part10_us(&item, 0x00189729, 1);
    put_code(&item, 0x00540300, "77004003", "SCT", "^18^Fluorine");
    put_code(&item, 0x00540302, "47625008", "SCT", "Intravenous route");
    put_code(&item, 0x00540304, "35321007", "SCT", "Fluorodeoxyglucose F^18^");
    part10_text(&item, 0x00181074, "DS", "370000000");
    part10_text(&item, 0x00181075, "DS", "6586.2");
    part10_text(&item, 0x00181076, "DS", "0.967");
    part10_text(&item, 0x00181078, "DT", "20200101110000");
    put_group(set, 0x00540016, &item);
}

static void
put_enhanced_pet(struct part10 *set)
{
    static const uint32_t corrections[] = {0x00189758, 0x00189759, 0x00189760, 0x00189761, 0x00189762, 0x00189763,
                                           0x00189764, 0x00189765, 0x00189766, 0x00189767, 0x00189768};
    for (size_t i = 0; i < sizeof(corrections) / sizeof(corrections[0]); i++)
        part10_text(set, corrections[i], "CS", "NO");
    put_enhanced_radiopharmaceutical(set);
    part10_text(set, 0x00541002, "CS", "EMISSION");
    part10_text(set, 0x00181134, "CS", "STATIC");
    part10_text(set, 0x00189755, "CS", "FALSE");
    put_code(set, 0x00540220, "62824007", "SCT", "Transverse");
}

static void
put_enhanced_image(struct part10 *set, const struct phantom *phantom, int32_t number, int32_t frame_count)
{
    const struct storage *storage = storage_of(phantom->kind);
    put_sop(set, phantom, storage->enhanced_class_uid, number);
    part10_text(set, 0x00080008, "CS", ENHANCED_IMAGE_TYPE);
    part10_text(set, 0x00089205, "CS", "MONOCHROME");
    part10_text(set, 0x00089206, "CS", "VOLUME");
    part10_text(set, 0x00089207, "CS", "NONE");
    part10_text(set, 0x00280008, "IS", "%d", frame_count);
    part10_text(set, 0x00200012, "IS", "1");
    part10_text(set, 0x0008002a, "DT", "20200101120000");
    part10_fd(set, 0x00189073, 60000);
    part10_text(set, 0x00280301, "CS", "NO");
    part10_text(set, 0x00282110, "CS", "00");
    part10_text(set, 0x20500020, "CS", "IDENTITY");
    part10_sequence(set, 0x00400555, NULL, 0);
    part10_text(set, 0x00189004, "CS", "RESEARCH");
    if (storage == &mr_storage)
        put_enhanced_mr(set);
    if (storage == &pet_storage)
        put_enhanced_pet(set);
}

static int
store_multi_frame(const struct phantom *phantom, const struct phantom_plane *planes, int32_t plane_count,
                  const char *folder, const struct phantom_drawing *drawing)
{
    const size_t size = image_size(phantom);
    uint8_t *pixels = calloc((size_t)plane_count, size);
    char *path = NULL;
    struct part10 set = {0};
    int rc = -ENOMEM;
    if (!pixels || asprintf(&path, "%s/IM%05d.dcm", folder, phantom->files_before + 1) < 0)
        goto out;
    put_patient_and_study(&set, phantom);
    put_series(&set, phantom);
    put_enhanced_image(&set, phantom, planes[0].number ? planes[0].number : 1, plane_count);
    put_pixel_description(&set, phantom);
    put_dimensions(&set, phantom);
    put_shared_groups(&set, phantom);
    rc = put_frames(&set, phantom, planes, plane_count);
    if (rc < 0)
        goto out;
    for (int32_t i = 0; i < plane_count; i++)
        render(phantom, &planes[i], drawing, pixels + (size_t)i * size);
    put_pixels(&set, phantom, pixels, (size_t)plane_count * size);
    phantom_edit(&set, phantom->edits, PHANTOM_FILE, &planes[0]);
    rc = part10_write(&set, path);
out:
    part10_release(&set);
    free(path);
    free(pixels);
    return rc;
}

static int
store_all_classic(const struct phantom *phantom, const struct phantom_plane *planes, int32_t plane_count,
                  const char *folder, const struct phantom_drawing *drawing)
{
    uint8_t *pixels = calloc(1, image_size(phantom));
    int rc = pixels ? 0 : -ENOMEM;
    for (int32_t i = 0; i < plane_count && rc == 0; i++)
        rc = store_classic(phantom, &planes[i], i + 1, folder, drawing, pixels);
    free(pixels);
    return rc;
}

int
phantom_store(const struct phantom *phantom, const struct phantom_plane *planes, int32_t plane_count,
              const char *folder, char *uid)
{
    const size_t voxels = (size_t)phantom->columns * (size_t)phantom->rows;
    struct phantom_drawing drawing = {.tissues = malloc(voxels), .values = malloc(voxels * sizeof(*drawing.values))};
    int rc = drawing.tissues && drawing.values ? 0 : -ENOMEM;
    make_uid(phantom, UID_SERIES, 0, uid);
    if (rc == 0)
        rc = phantom->multi_frame ? store_multi_frame(phantom, planes, plane_count, folder, &drawing)
                                  : store_all_classic(phantom, planes, plane_count, folder, &drawing);
    free(drawing.values);
    free(drawing.tissues);
    return rc;
}
