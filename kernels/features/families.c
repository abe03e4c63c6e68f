/* families.c - the table of the families (families.def). */
#include "kernels/features/family.h"

const struct feature_family *const feature_families[] = {
#define FAMILY(id) &family_##id,
#include "base/families.def"
};

const size_t feature_family_count = sizeof(feature_families) / sizeof(feature_families[0]);
