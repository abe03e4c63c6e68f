/* region_cpu.c - a held region on the CPU, where its bits stay: its box. */
#include "kernels/op.h"
#include "kernels/texture/region.h"

static void
cpu_region_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    (void)memory;
    texture_region_release(lane);
}

static int
cpu_region_run(struct kernels_lane *lane, const void *bits, struct error *error)
{
    struct texture_region_state *held = kernels_state(lane, KERNELS_REGION);

    (void)error;
    held->bits = bits;
    texture_box_of(bits, &lane->extent, &held->box);
    return 0;
}

const struct kernels_op cpu_region_op = {
    .name = "a held region",
    .state_size = sizeof(struct texture_region_state),
    .needs = kernels_op_asked,
    .place = cpu_region_place,
    .run = cpu_region_run,
};
