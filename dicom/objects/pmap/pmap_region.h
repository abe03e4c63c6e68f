/* pmap_region.h - where in the body a source is, coded. */
#ifndef NOCTULE_PMAP_REGION_H
#define NOCTULE_PMAP_REGION_H

#include "dicom/write/derived.h"

/*
 * The region that a Body Part Examined means (PS3.16 Annex L), of those that are no pair: nobody
 * tells the side of the others. Else the entire body, which holds them all.
 */
const struct coded_concept *pmap_region(const char *body_part);

#endif
