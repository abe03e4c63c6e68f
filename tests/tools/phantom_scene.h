/*
 * phantom_scene.h - what there is to draw: bodies of tissues, later ones over earlier ones.
 *
 * Bodies are given in parts of the volume, so that every size shows all of them. What a voxel is
 * made of is decided at its centre, and is the truth; what it is worth follows from that.
 */
#ifndef NOCTULE_PHANTOM_SCENE_H
#define NOCTULE_PHANTOM_SCENE_H

#include "tests/tools/phantom.h"

#define SCENE_MAX_BODIES 512

enum body_shape { BODY_ELLIPSOID, BODY_BOX, BODY_TUBE };

struct body {
    enum body_shape shape;
    double center[3]; /* of a tube: one end */
    double radius[3]; /* half of a side of a box */
    double end[3];    /* of a tube: the other */
    enum tissue tissue;
    uint64_t over; /* a bit for each tissue that it may cover; 0: all of them */
};

struct scene {
    struct body bodies[SCENE_MAX_BODIES];
    int body_count;
    int32_t value[TISSUE_COUNT];
    int32_t noise; /* half its width, 0: none */
    bool blurred;  /* in the plane, as a scanner does: voxels at a border lie between */
    bool sheared;  /* by the tilt: the bodies stand upright in the patient, not in the stack */
};

/* What the kind shows; a maze has no bodies. */
void scene_make(struct scene *scene, const struct phantom *phantom);

#endif
