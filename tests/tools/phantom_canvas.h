/*
 * phantom_canvas.h - puts bodies into a scene. Sizes are relative to the volume, or in mm at a patient's size, from
 * the middle of the volume (x to the left, y to the back, z to the head).
 */
#ifndef NOCTULE_PHANTOM_CANVAS_H
#define NOCTULE_PHANTOM_CANVAS_H

#include "tests/tools/phantom_scene.h"

struct point {
    double x, y, z;
};

/* A scene at a patient's size. */
struct canvas {
    struct scene *scene;
    double extent[3]; /* mm */
};

#define ENDLESS 5000.0 /* mm: through all slices */

/*
 * Adds an ellipsoid, with sizes relative to the volume; later bodies cover it. Returns the scene's body, which the
 * caller may change.
 */
struct body *scene_add(struct scene *scene, enum tissue tissue, double x, double y, double z, double rx, double ry,
                       double rz);

/* Same in mm. A tube has round ends. */
struct body *put_ellipsoid(struct canvas *canvas, enum tissue tissue, struct point center, struct point radius);
struct body *put_box(struct canvas *canvas, enum tissue tissue, struct point center, struct point half);
struct body *put_tube(struct canvas *canvas, enum tissue tissue, struct point from, struct point to, double radius);

/* Puts skin, fat and muscle, each inside the other, through all slices. */
void put_trunk(struct canvas *canvas, struct point center, double rx, double ry, double fat);

/* Puts vertebrae of bone around marrow every 30 mm, discs between them, and the canal behind. */
void put_spine(struct canvas *canvas, double y);

/* Puts a table of 6 mm that touches the back of the body at y. */
void put_table(struct canvas *canvas, double y);

/*
 * Makes an abdomen with contrast medium in its arteries (phantom_vessels.c). `touching`: the aorta touches the spine.
 */
void make_angiography(struct canvas *canvas, bool touching);

#endif
