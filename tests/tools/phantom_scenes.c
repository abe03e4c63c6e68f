/*
 * phantom_scenes.c - the content of each kind of phantom.
 *
 * The first five kinds consist of simple bodies, whose sizes are relative to the volume. A skull is at least a voxel
 * and a half thick, so that it stays closed. The others have a patient's size, in mm from the middle of the volume (x
 * to the left, y to the back, z to the head). They are scaled to the volume. They include difficulties for
 * segmentation: blurred borders, parts that touch, holes that leak.
 */
#include "tests/tools/phantom_canvas.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define HEAD                                                                                                           \
    {                                                                                                                  \
        "69536005", "Head"                                                                                             \
    }
#define CHEST                                                                                                          \
    {                                                                                                                  \
        "51185008", "Chest"                                                                                            \
    }
#define BELLY                                                                                                          \
    {                                                                                                                  \
        "818983003", "Abdomen"                                                                                         \
    }

static const struct phantom_picture pictures[] = {
    [PHANTOM_CT_HEAD] = {"ct-head", "HEAD", "Synthetic CT head", HEAD, {240, 240, 160}, 0},
    [PHANTOM_MR_BRAIN] = {"mr-brain", "BRAIN", "Synthetic MR brain", HEAD, {240, 240, 160}, 0},
    [PHANTOM_PET] = {"pet", "CHEST", "Synthetic PET", CHEST, {240, 240, 160}, 0},
    [PHANTOM_SPHERE] = {"sphere", "HEAD", "Synthetic CT head", HEAD, {240, 240, 160}, 0},
    [PHANTOM_MAZE] = {"maze", "HEAD", "Synthetic CT head", HEAD, {240, 240, 160}, 0},
    [PHANTOM_CHEST] = {"chest", "CHEST", "Synthetic CT chest", CHEST, {400, 400, 300}, 0},
    [PHANTOM_CHEST_OPEN] = {"chest-open", "CHEST", "Synthetic CT chest", CHEST, {400, 400, 300}, 0},
    [PHANTOM_HEAD_TILTED] = {"head-tilted", "HEAD", "Synthetic CT head", HEAD, {240, 240, 200}, 18},
    [PHANTOM_BODY] = {"body", "ABDOMEN", "Synthetic CT abdomen", BELLY, {480, 480, 200}, 0},
    [PHANTOM_BODY_CUT] = {"body-cut", "ABDOMEN", "Synthetic CT abdomen", BELLY, {300, 300, 200}, 0},
    [PHANTOM_ANGIOGRAPHY] = {"angiography", "ABDOMEN", "Synthetic CT angiography", BELLY, {320, 320, 240}, 0},
    [PHANTOM_ANGIOGRAPHY_TOUCHING] =
        {"angiography-touching", "ABDOMEN", "Synthetic CT angiography", BELLY, {320, 320, 240}, 0},
};

const struct phantom_picture *
phantom_picture(enum phantom_kind kind)
{
    return &pictures[kind];
}

bool
phantom_find_kind(const char *name, enum phantom_kind *kind)
{
    for (size_t i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++)
        if (strcmp(pictures[i].name, name) == 0) {
            *kind = (enum phantom_kind)i;
            return true;
        }
    return false;
}

/* --------------------------------------------------------------- relative to the volume ---- */

/* Returns the radius inside a wall, whose thickness is relative to the volume and at least 1.5 voxels. */
static double
within(double radius, double wall, int32_t size)
{
    double thickness = fmax(wall, 1.5 / size);
    return fmax(radius - thickness, 0);
}

static void
add_head(struct scene *scene, const struct phantom *phantom)
{
    /* Few slices show only the middle of a tall head. */
    const double height = phantom->slices < 4 ? 100.0 : 0.44;
    const double outer[3] = {0.36, 0.43, height};
    const int32_t size[3] = {phantom->columns, phantom->rows, phantom->slices};
    double brain[3];
    for (int axis = 0; axis < 3; axis++)
        brain[axis] = within(outer[axis], 0.05, size[axis]);
    scene_add(scene, TISSUE_SCALP, 0.5, 0.5, 0.5, outer[0] + 0.03, outer[1] + 0.03, height + 0.03);
    scene_add(scene, TISSUE_SKULL, 0.5, 0.5, 0.5, outer[0], outer[1], outer[2]);
    scene_add(scene, TISSUE_GREY, 0.5, 0.5, 0.5, brain[0], brain[1], brain[2]);
    scene_add(scene, TISSUE_WHITE, 0.5, 0.5, 0.5, 0.85 * brain[0], 0.85 * brain[1], 0.85 * brain[2]);
    scene_add(scene, TISSUE_VENTRICLE, 0.44, 0.47, 0.52, 0.035, 0.12, 0.10);
    scene_add(scene, TISSUE_VENTRICLE, 0.56, 0.47, 0.52, 0.035, 0.12, 0.10);
}

static void
make_ct_head(struct scene *scene, const struct phantom *phantom)
{
    scene->noise = 10;
    scene_add(scene, TISSUE_TABLE, 0.5, 0.975, 0.5, 0.4, 0.01, 10.0)->shape = BODY_BOX;
    add_head(scene, phantom);
}

static void
make_mr_brain(struct scene *scene, const struct phantom *phantom)
{
    static const int32_t signal[TISSUE_COUNT] = {[TISSUE_AIR] = 6,   [TISSUE_SCALP] = 110, [TISSUE_SKULL] = 8,
                                                 [TISSUE_GREY] = 44, [TISSUE_WHITE] = 66,  [TISSUE_VENTRICLE] = 14};
    memcpy(scene->value, signal, sizeof(signal));
    scene->noise = 5;
    add_head(scene, phantom);
}

static void
make_pet(struct scene *scene)
{
    static const int32_t activity[TISSUE_COUNT] = {
        [TISSUE_AIR] = 20, [TISSUE_WARM] = 2000, [TISSUE_HOT] = 12000, [TISSUE_HOTTER] = 20000};
    memcpy(scene->value, activity, sizeof(activity));
    scene->noise = 20;
    scene_add(scene, TISSUE_WARM, 0.5, 0.5, 0.5, 0.40, 0.30, 10.0);
    scene_add(scene, TISSUE_HOTTER, 0.45, 0.45, 0.5, 0.08, 0.08, 0.12);
    scene_add(scene, TISSUE_HOT, 0.62, 0.55, 0.5, 0.05, 0.05, 0.20);
}

static void
make_sphere(struct scene *scene, const struct phantom *phantom)
{
    const int32_t size[3] = {phantom->columns, phantom->rows, phantom->slices};
    int32_t smallest = size[0];
    for (int axis = 1; axis < 3; axis++)
        smallest = size[axis] < smallest ? size[axis] : smallest;
    scene_add(scene, TISSUE_BALL, 0.5, 0.5, 0.5, 0.25 * smallest / size[0], 0.25 * smallest / size[1],
              0.25 * smallest / size[2]);
}

/* -------------------------------------------------------------------------------- chest ---- */

#define LUNGS (1ULL << TISSUE_LUNG_RIGHT | 1ULL << TISSUE_LUNG_LEFT)

/* Puts a pair of ribs at height z, lower at the front, as a row of tubes along the wall of the chest. */
static void
put_ribs(struct canvas *canvas, double z)
{
    enum { PIECES = 7 };

    for (int side = -1; side <= 1; side += 2) {
        struct point last = {0};
        for (int i = 0; i <= PIECES; i++) {
            const double angle = M_PI * (0.12 + 0.72 * i / PIECES); /* from the back */
            const struct point at = {side * 148 * sin(angle), 92 * cos(angle) - 12, z - 40.0 * i / PIECES};
            if (i > 0)
                put_tube(canvas, TISSUE_BONE, last, at, 5);
            last = at;
        }
    }
}

/* Puts a vessel and its branches, only inside the lungs. */
static void
put_vessels(struct canvas *canvas, struct point from, struct point along, double radius)
{
    const struct point to = {from.x + along.x, from.y + along.y, from.z + along.z};
    put_tube(canvas, TISSUE_VESSEL, from, to, radius)->over = LUNGS;
    if (radius < 1.5)
        return;
    const struct point branches[3] = {{0.75 * along.x, 0.35 * along.y + 18, 0.7 * along.z + 6},
                                      {0.70 * along.x, 0.35 * along.y - 20, 0.7 * along.z - 4},
                                      {0.35 * along.x, 0.6 * along.y, 0.8 * along.z}};
    for (int i = 0; i < 3; i++)
        put_vessels(canvas, to, branches[i], 0.62 * radius);
}

/* Puts a lung (side -1: the right one) with vessels, emphysema, and a bronchus that opens into it. */
static void
put_lung(struct canvas *canvas, int side)
{
    const struct point carina = {0, -4, 32}, hilum = {side * 38, -2, 4}, deep = {side * 52, -2, -6};
    put_ellipsoid(canvas, side < 0 ? TISSUE_LUNG_RIGHT : TISSUE_LUNG_LEFT, (struct point){side * 78, -12, 0},
                  (struct point){58, 78, 122});
    put_tube(canvas, TISSUE_MUSCLE, carina, hilum, 8.5);
    put_tube(canvas, TISSUE_AIRWAY, carina, deep, 6.5);
    put_vessels(canvas, (struct point){side * 34, -2, 10}, (struct point){side * 30, 4, 34}, 6);
    put_vessels(canvas, (struct point){side * 34, -2, -6}, (struct point){side * 26, 6, -40}, 6);
    const struct point bullae[3] = {{side * 84, -40, 62}, {side * 96, 8, 74}, {side * 66, -20, 84}};
    for (int i = 0; i < 3; i++)
        put_ellipsoid(canvas, TISSUE_EMPHYSEMA, bullae[i], (struct point){16 - 2 * i, 14, 18})->over = LUNGS;
}

static void
make_chest(struct canvas *canvas, bool open)
{
    const double back = 104;
    const struct point head_end = {0, -4, ENDLESS}, carina = {0, -4, 32};
    canvas->scene->noise = 50;
    put_table(canvas, back);
    put_trunk(canvas, (struct point){0, -12, 0}, 172, back + 12, 14);
    for (int i = -1; i <= 5; i++)
        put_ribs(canvas, 120 - 36.0 * i);
    put_box(canvas, TISSUE_BONE, (struct point){0, -101, 20}, (struct point){16, 5, 80});
    put_spine(canvas, 45);
    put_tube(canvas, TISSUE_MUSCLE, carina, head_end, 10.5);
    put_lung(canvas, -1);
    put_lung(canvas, 1);
    put_tube(canvas, TISSUE_AIRWAY, carina, head_end, 8.5);
    put_ellipsoid(canvas, TISSUE_HEART, (struct point){24, -34, -52}, (struct point){52, 44, 60});
    put_tube(canvas, TISSUE_HEART, (struct point){16, 22, -ENDLESS}, (struct point){16, 22, 40}, 12);
    if (!open)
        return;
    put_tube(canvas, TISSUE_AIR, (struct point){-90, -12, -30}, (struct point){-250, -12, -30}, 6);
    put_tube(canvas, TISSUE_AIR, (struct point){0, -4, 120}, (struct point){0, -250, 120}, 6);
}

/* --------------------------------------------------------------------------------- head ---- */

/* Puts holes through the base of the skull, of the size of nerves and vessels, through which a segmentation leaks. */
static void
put_holes(struct canvas *canvas, struct point middle)
{
    static const struct {
        struct point inside, outside;
        double radius;
    } holes[] = {
        {{12, -40, -40}, {24, -66, -70}, 3.0}, /* to the orbit */
        {{26, -18, -48}, {34, -24, -76}, 3.5}, /* to the face */
        {{30, 4, -50}, {36, 2, -76}, 3.5},     /* to the neck, in front of the ear */
        {{24, 24, -52}, {34, 30, -78}, 4.0},   /* to the neck, behind the ear */
        {{48, -30, -24}, {76, -34, -30}, 1.6}, /* through the temple */
        {{30, 62, 10}, {44, 96, 14}, 1.4},     /* to the scalp */
    };

    for (size_t i = 0; i < sizeof(holes) / sizeof(holes[0]); i++)
        for (int side = -1; side <= 1; side += 2) {
            struct point from = holes[i].inside, to = holes[i].outside;
            from = (struct point){side * from.x + middle.x, from.y + middle.y, from.z + middle.z};
            to = (struct point){side * to.x + middle.x, to.y + middle.y, to.z + middle.z};
            put_tube(canvas, TISSUE_NERVE, from, to, holes[i].radius)->over =
                1ULL << TISSUE_SKULL | 1ULL << TISSUE_SINUS;
        }
}

static void
put_face_and_neck(struct canvas *canvas, struct point middle)
{
    const struct point face = {0, -36, middle.z - 60}, neck = {0, 22, middle.z - 90};
    put_ellipsoid(canvas, TISSUE_SCALP, face, (struct point){62, 58, 62});
    put_tube(canvas, TISSUE_SCALP, neck, (struct point){0, 30, -ENDLESS}, 62);
    put_ellipsoid(canvas, TISSUE_FAT, (struct point){0, 66, middle.z - 110},
                  (struct point){40, 20, 50}); /* at the back of the neck */
}

/* Puts the vertebrae of the neck around the canal, and the holes between them, through which it leaks. */
static void
put_neck_bones(struct canvas *canvas, struct point middle)
{
    const struct point top = {0, 22, middle.z - 66}, bottom = {0, 22, -ENDLESS};
    put_tube(canvas, TISSUE_BONE, top, bottom, 18);
    put_tube(canvas, TISSUE_CORD, (struct point){0, 22, middle.z - 50}, bottom, 9.5);
    for (int i = 0; i < 8; i++) {
        const double z = middle.z - 92 - 16.0 * i;
        put_ellipsoid(canvas, TISSUE_BONE, (struct point){0, 2, z}, (struct point){16, 11, 6.5});
        put_tube(canvas, TISSUE_NERVE, (struct point){-22, 22, z - 8}, (struct point){22, 22, z - 8}, 3)->over =
            1ULL << TISSUE_BONE;
    }
}

static void
make_head_tilted(struct canvas *canvas)
{
    const struct point middle = {0, 2, 10};
    canvas->scene->noise = 16;
    canvas->scene->sheared = true;
    put_face_and_neck(canvas, middle);
    put_ellipsoid(canvas, TISSUE_SCALP, middle, (struct point){78, 95, 78});
    put_neck_bones(canvas, middle);
    put_ellipsoid(canvas, TISSUE_SKULL, middle, (struct point){72, 89, 72});
    put_box(canvas, TISSUE_SKULL, (struct point){0, -70, middle.z - 62}, (struct point){36, 14, 34}); /* of the face */
    put_box(canvas, TISSUE_SINUS, (struct point){0, -70, middle.z - 62}, (struct point){26, 10, 28});
    put_ellipsoid(canvas, TISSUE_GREY, middle, (struct point){66, 82, 64});
    put_ellipsoid(canvas, TISSUE_WHITE, middle, (struct point){56, 70, 54});
    for (int side = -1; side <= 1; side += 2)
        put_ellipsoid(canvas, TISSUE_VENTRICLE, (struct point){side * 13.0, middle.y - 6, middle.z + 6},
                      (struct point){8, 30, 16});
    put_holes(canvas, middle);
    put_tube(canvas, TISSUE_GREY, (struct point){0, 22, middle.z - 50}, (struct point){0, 22, middle.z - 74},
             13); /* the foramen magnum */
}

/* --------------------------------------------------------------------------------- body ---- */

static void
put_arm(struct canvas *canvas, double x)
{
    const struct point center = {x, 20, 0};
    put_trunk(canvas, center, 38, 38, 7);
    put_ellipsoid(canvas, TISSUE_BONE, center, (struct point){12, 12, ENDLESS});
    put_ellipsoid(canvas, TISSUE_MARROW, center, (struct point){7, 7, ENDLESS});
}

/* Puts loops of bowel, with gas above their content. */
static void
put_bowel(struct canvas *canvas)
{
    for (int i = -2; i <= 2; i++) {
        const struct point from = {-56, -44 + 4.0 * (i & 1), 34.0 * i};
        const struct point to = {50, -40 - 4.0 * (i & 1), 34.0 * i + 8};
        put_tube(canvas, TISSUE_ORGAN, from, to, 14);
        put_tube(canvas, TISSUE_BOWEL_GAS, (struct point){from.x + 20, from.y - 5, from.z + 2},
                 (struct point){to.x - 40, to.y - 5, to.z - 3}, 5);
    }
}

static void
make_body(struct canvas *canvas)
{
    const double back = 110;
    canvas->scene->noise = 40;
    put_table(canvas, back);
    put_arm(canvas, -193);
    put_trunk(canvas, (struct point){0, 0, 0}, 150, back, 22);
    put_arm(canvas, 186); /* touches the trunk */
    put_ellipsoid(canvas, TISSUE_VISCERAL_FAT, (struct point){0, -8, 0}, (struct point){112, 66, ENDLESS});
    put_ellipsoid(canvas, TISSUE_ORGAN, (struct point){-58, -6, 70}, (struct point){46, 46, 60});
    put_ellipsoid(canvas, TISSUE_ORGAN, (struct point){78, 10, 70}, (struct point){22, 30, 44});
    for (int side = -1; side <= 1; side += 2) {
        put_ellipsoid(canvas, TISSUE_ORGAN, (struct point){side * 56, 34, -10}, (struct point){22, 20, 44});
        put_ellipsoid(canvas, TISSUE_MUSCLE, (struct point){side * 38, 46, 0}, (struct point){18, 20, ENDLESS});
    }
    put_bowel(canvas);
    put_spine(canvas, 52);
    put_tube(canvas, TISSUE_HEART, (struct point){6, 20, -ENDLESS}, (struct point){6, 20, ENDLESS}, 10);
}

/* -------------------------------------------------------------------------------------------- */

static const int32_t hounsfield[TISSUE_COUNT] = {
    [TISSUE_AIR] = -1000,       [TISSUE_TABLE] = 200,      [TISSUE_SKIN] = 20,           [TISSUE_FAT] = -100,
    [TISSUE_MUSCLE] = 50,       [TISSUE_BONE] = 700,       [TISSUE_MARROW] = 180,        [TISSUE_DISC] = 80,
    [TISSUE_LUNG_RIGHT] = -850, [TISSUE_LUNG_LEFT] = -850, [TISSUE_EMPHYSEMA] = -958,    [TISSUE_AIRWAY] = -1000,
    [TISSUE_VESSEL] = 40,       [TISSUE_HEART] = 45,       [TISSUE_VISCERAL_FAT] = -100, [TISSUE_ORGAN] = 55,
    [TISSUE_BOWEL_GAS] = -950,  [TISSUE_SCALP] = 50,       [TISSUE_SKULL] = 1000,        [TISSUE_GREY] = 38,
    [TISSUE_WHITE] = 33,        [TISSUE_VENTRICLE] = 5,    [TISSUE_CORD] = 35,           [TISSUE_NERVE] = 40,
    [TISSUE_SINUS] = -950,      [TISSUE_BALL] = 40,        [TISSUE_CORRIDOR] = 40,       [TISSUE_ARTERY] = 350,
    [TISSUE_KIDNEY] = 170,
};

/* Bodies beyond the kind's extent are outside the volume. */
static struct canvas
make_canvas(struct scene *scene, enum phantom_kind kind)
{
    struct canvas canvas = {.scene = scene};
    memcpy(canvas.extent, phantom_picture(kind)->extent, sizeof(canvas.extent));
    scene->blurred = true;
    scene->value[TISSUE_TABLE] = -150;
    return canvas;
}

void
scene_make(struct scene *scene, const struct phantom *phantom)
{
    *scene = (struct scene){.body_count = 0};
    memcpy(scene->value, hounsfield, sizeof(hounsfield));
    struct canvas canvas;
    switch (phantom->kind) {
    case PHANTOM_CT_HEAD:
        make_ct_head(scene, phantom);
        break;
    case PHANTOM_MR_BRAIN:
        make_mr_brain(scene, phantom);
        break;
    case PHANTOM_PET:
        make_pet(scene);
        break;
    case PHANTOM_SPHERE:
        make_sphere(scene, phantom);
        break;
    case PHANTOM_MAZE:
        break;
    case PHANTOM_CHEST:
    case PHANTOM_CHEST_OPEN:
        canvas = make_canvas(scene, phantom->kind);
        make_chest(&canvas, phantom->kind == PHANTOM_CHEST_OPEN);
        break;
    case PHANTOM_HEAD_TILTED:
        canvas = make_canvas(scene, phantom->kind);
        make_head_tilted(&canvas);
        break;
    case PHANTOM_BODY:
    case PHANTOM_BODY_CUT:
        canvas = make_canvas(scene, phantom->kind);
        make_body(&canvas);
        break;
    case PHANTOM_ANGIOGRAPHY:
    case PHANTOM_ANGIOGRAPHY_TOUCHING:
        canvas = make_canvas(scene, phantom->kind);
        make_angiography(&canvas, phantom->kind == PHANTOM_ANGIOGRAPHY_TOUCHING);
        break;
    }
}
