/*
 * phantom_canvas.h - puts bodies into a scene: in parts of the volume, and at a patient's size, in mm
 * from the middle of the volume (x to the left, y to the back, z to the head).
 */
#ifndef NOCTULE_PHANTOM_CANVAS_H
#define NOCTULE_PHANTOM_CANVAS_H

#include "tests/tools/phantom_scene.h"

struct point {
    double x, y, z;
};

/* What is drawn at a patient's size. */
struct canvas {
    struct scene *scene;
    double extent[3]; /* mm */
};

#define ENDLESS 5000.0 /* mm: through all slices */

/* An ellipsoid, in parts of the volume; what comes later covers it. The scene's, to be changed. */
struct body *scene_add(struct scene *scene, enum tissue tissue, double x, double y, double z,
                       double rx, double ry, double rz);

/* The same in mm; a tube is round at both ends. */
struct body *put_ellipsoid(struct canvas *canvas, enum tissue tissue, struct point center,
                           struct point radius);
struct body *put_box(struct canvas *canvas, enum tissue tissue, struct point center,
                     struct point half);
struct body *put_tube(struct canvas *canvas, enum tissue tissue, struct point from, struct point to,
                      double radius);

/* Skin, fat and muscle, each within the other, through all slices. */
void put_trunk(struct canvas *canvas, struct point center, double rx, double ry, double fat);

/* Vertebrae of bone around marrow every 30 mm with discs between them, and the canal behind. */
void put_spine(struct canvas *canvas, double y);

/* A table of 6 mm that the body's back, at y, touches. */
void put_table(struct canvas *canvas, double y);

/* phantom_vessels.c: an abdomen with contrast medium in its arteries. `touching`: the aorta lies
 * against the spine. */
void make_angiography(struct canvas *canvas, bool touching);

#endif
