/* cooperative_groups.h - in place of the toolkit's: the grid, which is all that is used of it. */
#ifndef NOCTULE_EMULATOR_COOPERATIVE_GROUPS_H
#define NOCTULE_EMULATOR_COOPERATIVE_GROUPS_H

#include <cuda_runtime.h>

namespace cooperative_groups
{

struct emulated_grid {
    void sync() const
    {
        emulator::meet_grid();
    }
};

inline emulated_grid
this_grid()
{
    return {};
}

} /* namespace cooperative_groups */

#endif
