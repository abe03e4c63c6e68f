/*
 * phantom_scene.h - the content of a picture: bodies of tissues. Later bodies cover earlier ones.
 *
 * Sizes of bodies are relative to the volume, so that every volume shows all of them. The tissue at the centre of a
 * voxel is the truth; the value of the voxel follows from it.
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
    double end[3];    /* of a tube: the other end */
    enum tissue tissue;
    uint64_t over; /* bits of the tissues that it may cover; 0: all */
};

struct scene {
    struct body bodies[SCENE_MAX_BODIES];
    int body_count;
    int32_t value[TISSUE_COUNT];
    int32_t noise; /* half the width, 0: no noise */
    bool blurred;  /* blurred in the plane like a scanner: border voxels get intermediate values */
    bool sheared;  /* sheared by the tilt: the bodies are upright in the patient, not in the stack */
};

/* Makes the bodies of the kind; a maze has no bodies. */
void scene_make(struct scene *scene, const struct phantom *phantom);

#endif
