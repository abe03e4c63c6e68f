/* families.c - the table of the families (families.def). */
#include "kernels/features/family.h"

const struct feature_family *const feature_families[FEATURE_FAMILIES] = {
#define FAMILY(id) &family_##id,
#include "base/families.def"
};
