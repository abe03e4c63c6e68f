/* cooperative_groups.h - replaces the toolkit's header. Only the grid group is used, so only that is here. */
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
