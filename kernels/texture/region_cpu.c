/* region_cpu.c - a held region on the CPU: its box. Bits and levels stay in place. */
#include "kernels/op.h"
#include "kernels/texture/region.h"

static void
cpu_region_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    (void)memory;
    texture_region_release(lane);
}

static int
cpu_region_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_hold *hold = given;
    struct texture_region_state *held = kernels_state(lane, KERNELS_REGION);

    (void)error;
    if (hold->bits) {
        held->bits = hold->bits;
        texture_box_of(hold->bits, &lane->extent, &held->box);
    } else {
        held->level_of = hold->level_of;
    }
    return 0;
}

const struct kernels_op cpu_region_op = {
    .name = "a held region",
    .state_size = sizeof(struct texture_region_state),
    .needs = kernels_op_asked,
    .place = cpu_region_place,
    .run = cpu_region_run,
};
