/* families.c - the table of the families (families.def). */
#include "kernels/features/family.h"

const struct feature_family *const feature_families[FEATURE_FAMILIES] = {
#define FAMILY(id) &family_##id,
#include "base/families.def"
};

bool
feature_family_wanted(const struct feature_family *family, const struct texture_options *options)
{
    if (family->wanted)
        return family->wanted(options);
    return (family->by_first_order && options->first_order) || texture_wants(options, family->choice);
}
