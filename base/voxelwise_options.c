#include "base/voxelwise_options.h"

const struct voxelwise_row voxelwise_rows[VOXELWISE_FEATURES] = {
#define VOXELWISE(family, id, home, name, pyradiomics)                                                                 \
    {VOXELWISE_FAMILY_##family, VOXELWISE_##family##_##id, home, name, pyradiomics},
#include "base/voxelwise.def"
};

#define VOXELWISE_first_order(id, home, name, pyradiomics) name,
const char *const voxelwise_first_order_names[] = {
#include "base/voxelwise.def"
    "all", NULL};
#define VOXELWISE_glcm(id, home, name, pyradiomics) name,
const char *const voxelwise_glcm_names[] = {
#include "base/voxelwise.def"
    "all", NULL};
#define VOXELWISE_glrlm(id, home, name, pyradiomics) name,
const char *const voxelwise_glrlm_names[] = {
#include "base/voxelwise.def"
    "all", NULL};
#define VOXELWISE_glszm(id, home, name, pyradiomics) name,
const char *const voxelwise_glszm_names[] = {
#include "base/voxelwise.def"
    "all", NULL};
#define VOXELWISE_ngldm(id, home, name, pyradiomics) name,
const char *const voxelwise_ngldm_names[] = {
#include "base/voxelwise.def"
    "all", NULL};
#define VOXELWISE_ngtdm(id, home, name, pyradiomics) name,
const char *const voxelwise_ngtdm_names[] = {
#include "base/voxelwise.def"
    "all", NULL};

bool
voxelwise_wants(const struct voxelwise_options *options, int row)
{
    static const int counts[VOXELWISE_FAMILIES] = {
        VOXELWISE_first_order_COUNT, VOXELWISE_glcm_COUNT,  VOXELWISE_glrlm_COUNT,
        VOXELWISE_glszm_COUNT,       VOXELWISE_ngldm_COUNT, VOXELWISE_ngtdm_COUNT,
    };
    const enum voxelwise_family family = voxelwise_rows[row].family;

    return (options->features[family] & (1u << voxelwise_rows[row].feature | 1u << counts[family])) != 0;
}

int
voxelwise_count(const struct voxelwise_options *options)
{
    int count = 0;

    for (int row = 0; row < VOXELWISE_FEATURES; row++)
        count += voxelwise_wants(options, row);
    return count;
}
