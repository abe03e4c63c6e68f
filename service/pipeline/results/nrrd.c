/* nrrd.c - see nrrd.h; the format is teem's (NRRD0004). */
#include "service/pipeline/results/nrrd.h"

#include "base/durable.h"

#include <stdio.h>

int
nrrd_write_int8(int fd, const struct geometry_stack *stack, const int8_t *voxels)
{
    char header[1024];
    const double *axes = stack->axes, *spacing = stack->spacing, *origin = stack->origin;
    int length =
        snprintf(header, sizeof header,
                 "NRRD0004\n"
                 "# level set state: 2 border, 1 inside, -1 outside at the border, -2 outside\n"
                 "type: int8\n"
                 "dimension: 3\n"
                 "space: left-posterior-superior\n"
                 "sizes: %d %d %d\n"
                 "space directions: (%.17g,%.17g,%.17g) (%.17g,%.17g,%.17g) "
                 "(%.17g,%.17g,%.17g)\n"
                 "kinds: domain domain domain\n"
                 "encoding: raw\n"
                 "space origin: (%.17g,%.17g,%.17g)\n"
                 "\n",
                 stack->columns, stack->rows, stack->plane_count, axes[0] * spacing[0],
                 axes[1] * spacing[0], axes[2] * spacing[0], axes[3] * spacing[1],
                 axes[4] * spacing[1], axes[5] * spacing[1], axes[6] * spacing[2],
                 axes[7] * spacing[2], axes[8] * spacing[2], origin[0], origin[1], origin[2]);
    int error = durable_write_all(fd, header, (size_t)length);
    if (error)
        return error;
    return durable_write_all(
        fd, voxels, (size_t)stack->columns * (size_t)stack->rows * (size_t)stack->plane_count);
}
