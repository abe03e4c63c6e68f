/* fuzzy_cpu.c - paper 003 on the CPU. */
#include "backend_cpu.h"

#include <errno.h>

int
cpu_fuzzy_run(struct kernels_lane *base, const struct kernels_fuzzy_object *objects, bool relative,
              struct kernels_fuzzy_result *results, char *reason, size_t reason_size)
{
    (void)objects;
    (void)relative;
    (void)results;
    return base->demand.fuzzy_objects == 0
               ? 0
               : kernels_fail(-ENOSYS, reason, reason_size, "not built yet");
}
