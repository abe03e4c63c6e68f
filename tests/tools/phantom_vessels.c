/*
 * phantom_vessels.c - an abdomen with contrast medium in its arteries, and similar structures near the tree. Kidneys
 * and spongy bone are hardly darker, and the blurred borders of bone are just as bright.
 */
#include "tests/tools/phantom_canvas.h"

#include <math.h>

static struct point
along(struct point from, struct point way, double share)
{
    return (struct point){from.x + share * way.x, from.y + share * way.y, from.z + share * way.z};
}

/* Puts an artery only inside the wall of muscle, and not through bone. */
static void
put_artery(struct canvas *canvas, struct point from, struct point to, double radius)
{
    put_tube(canvas, TISSUE_ARTERY, from, to, radius)->over =
        1ULL << TISSUE_VISCERAL_FAT | 1ULL << TISSUE_ORGAN | 1ULL << TISSUE_KIDNEY | 1ULL << TISSUE_HEART;
}

/* Puts an artery and two branches at its end, alternately in the slice and out of it, down to a radius of 1 mm. */
static void
put_branches(struct canvas *canvas, struct point from, struct point way, double radius)
{
    const struct point to = along(from, way, 1);
    const double length = sqrt(way.x * way.x + way.y * way.y + way.z * way.z);
    put_artery(canvas, from, to, radius);
    if (0.78 * radius < 1)
        return;
    /* Branch across, alternately in the slice and out of it. */
    const bool level = fabs(way.z) > 0.6 * length;
    const struct point across = level ? (struct point){length, 0, 0} : (struct point){0, 0, length};
    for (int side = -1; side <= 1; side += 2)
        put_branches(canvas, to, along((struct point){0.7 * way.x, 0.7 * way.y, 0.7 * way.z}, across, 0.45 * side),
                     0.78 * radius);
}

static void
put_arteries(struct canvas *canvas, double y)
{
    const struct point fork = {6, y - 2, -50}, celiac = {2, -14, 60};
    put_artery(canvas, (struct point){6, y, ENDLESS}, fork, 9);
    for (int side = -1; side <= 1; side += 2) {
        put_artery(canvas, fork, (struct point){side * 62.0, 4, -150}, 5.5);
        put_artery(canvas, (struct point){6, y, 15}, (struct point){side * 48.0, 31, 2}, 3);
    }
    put_artery(canvas, (struct point){6, y, 62}, celiac, 3.5);
    put_branches(canvas, celiac, (struct point){-30, -8, 10}, 2.8);
    put_branches(canvas, celiac, (struct point){58, 8, 12}, 2.8);
    put_artery(canvas, (struct point){6, y, 38}, (struct point){2, -22, 20}, 3.5);
    put_branches(canvas, (struct point){2, -22, 20}, (struct point){-8, -12, -34}, 3.2);
    put_branches(canvas, (struct point){6, y, -25}, (struct point){20, -30, -30}, 2.2);
}

static void
put_belly(struct canvas *canvas)
{
    put_ellipsoid(canvas, TISSUE_VISCERAL_FAT, (struct point){0, -8, 0}, (struct point){112, 66, ENDLESS});
    put_ellipsoid(canvas, TISSUE_ORGAN, (struct point){-60, -10, 72}, (struct point){44, 42, 52});
    put_ellipsoid(canvas, TISSUE_ORGAN, (struct point){82, 12, 72}, (struct point){22, 30, 40});
    put_tube(canvas, TISSUE_HEART, (struct point){-20, 20, -ENDLESS}, (struct point){-20, 20, ENDLESS},
             9); /* the vein next to the aorta */
    for (int side = -1; side <= 1; side += 2) {
        put_ellipsoid(canvas, TISSUE_KIDNEY, (struct point){side * 62, 34, -5}, (struct point){22, 20, 44});
        put_ellipsoid(canvas, TISSUE_MUSCLE, (struct point){side * 38, 46, 0}, (struct point){16, 18, ENDLESS});
    }
}

void
make_angiography(struct canvas *canvas, bool touching)
{
    const double back = 105, spine = 52;
    int32_t *value = canvas->scene->value;
    canvas->scene->noise = 60;
    value[TISSUE_ORGAN] = 110;
    value[TISSUE_HEART] = 100;
    value[TISSUE_BONE] = 450;
    value[TISSUE_MARROW] = 220;
    put_table(canvas, back);
    put_trunk(canvas, (struct point){0, 0, 0}, 150, back, 18);
    put_belly(canvas);
    put_spine(canvas, spine);
    put_arteries(canvas, touching ? 25 : 17);
}
