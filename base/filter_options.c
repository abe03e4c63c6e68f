/* filter_options.c - see filter_options.h. */
#include "base/filter_options.h"

const char *const filter_kind_names[] = {
    "mean", "log", "laws", "wavelet", "gabor", "simoncelli", "riesz-log", "riesz-simoncelli", NULL};
const char *const filter_boundary_names[] = {"zero", "nearest", "periodic", "mirror", NULL};
const char *const filter_pooling_names[] = {"none", "max", "mean", "min", NULL};
const char *const filter_laws_names[] = {"L5", "E5", "S5", "W5", "R5", "L3", "E3", "S3", NULL};
const char *const filter_wavelet_names[] = {"haar", "db2", "db3", "coif1", NULL};
