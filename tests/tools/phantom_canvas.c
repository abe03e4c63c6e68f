#include "tests/tools/phantom_canvas.h"

struct body *
scene_add(struct scene *scene, enum tissue tissue, double x, double y, double z, double rx, double ry, double rz)
{
    struct body *body = &scene->bodies[scene->body_count++];
    *body = (struct body){.center = {x, y, z}, .radius = {rx, ry, rz}, .tissue = tissue};
    return body;
}

struct body *
put_ellipsoid(struct canvas *canvas, enum tissue tissue, struct point center, struct point radius)
{
    const double *extent = canvas->extent;
    return scene_add(canvas->scene, tissue, 0.5 + center.x / extent[0], 0.5 + center.y / extent[1],
                     0.5 + center.z / extent[2], radius.x / extent[0], radius.y / extent[1], radius.z / extent[2]);
}

struct body *
put_box(struct canvas *canvas, enum tissue tissue, struct point center, struct point half)
{
    struct body *body = put_ellipsoid(canvas, tissue, center, half);
    body->shape = BODY_BOX;
    return body;
}

struct body *
put_tube(struct canvas *canvas, enum tissue tissue, struct point from, struct point to, double radius)
{
    struct body *body = put_ellipsoid(canvas, tissue, from, (struct point){radius, radius, radius});
    const double end[3] = {to.x, to.y, to.z};
    body->shape = BODY_TUBE;
    for (int axis = 0; axis < 3; axis++)
        body->end[axis] = 0.5 + end[axis] / canvas->extent[axis];
    return body;
}

void
put_trunk(struct canvas *canvas, struct point center, double rx, double ry, double fat)
{
    put_ellipsoid(canvas, TISSUE_SKIN, center, (struct point){rx, ry, ENDLESS});
    put_ellipsoid(canvas, TISSUE_FAT, center, (struct point){rx - 2, ry - 2, ENDLESS});
    put_ellipsoid(canvas, TISSUE_MUSCLE, center, (struct point){rx - 2 - fat, ry - 2 - fat, ENDLESS});
}

void
put_spine(struct canvas *canvas, double y)
{
    const struct point center = {0, y, 0};
    put_ellipsoid(canvas, TISSUE_BONE, center, (struct point){21, 17, ENDLESS});
    put_ellipsoid(canvas, TISSUE_MARROW, center, (struct point){17, 13, ENDLESS});
    for (int i = -6; i <= 6; i++)
        put_box(canvas, TISSUE_DISC, (struct point){0, y, 30.0 * i}, (struct point){22, 18, 3})->over =
            1ULL << TISSUE_BONE | 1ULL << TISSUE_MARROW;
    put_ellipsoid(canvas, TISSUE_BONE, (struct point){0, y + 27, 0}, (struct point){15, 14, ENDLESS});
    put_ellipsoid(canvas, TISSUE_CORD, (struct point){0, y + 25, 0}, (struct point){10, 8, ENDLESS});
}

void
put_table(struct canvas *canvas, double y)
{
    put_box(canvas, TISSUE_TABLE, (struct point){0, y + 2, 0}, (struct point){200, 3, ENDLESS});
}
