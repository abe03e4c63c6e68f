/*
 * suv_body.c - the measure of the body in an SUV, W: weight in kg, H: height in m, h: height in cm.
 *
 *   suvbw                  W
 *   suvlbm                 James 1976 (Research on Obesity), as Hallett 2003 and DCM 126415:
 *                          male 1.10 W - 128 (W / h)^2, female 1.07 W - 148 (W / h)^2
 *   suvlbm-janmahasatian   Janmahasatian et al. 2005, Clin Pharmacokinet 44:1051, DCM 126414, BMI = W / H^2:
 *                          male 9270 W / (6680 + 216 BMI), female 9270 W / (8780 + 244 BMI)
 *   suvbsa                 Du Bois 1916, as Kim et al. 1994, J Nucl Med 35:164, DCM 126412: 0.007184 W^0.425 h^0.725 m2
 *   suvibw                 Sugawara et al. 1999, Radiology 213:521, DCM 126413:
 *                          male 48.0 + 1.06 (h - 152), female 45.5 + 0.91 (h - 152)
 *
 * SUV Type LBM of stored values is James with a multiplier of 120 for males (Morgan 1994, DCM 126411). It is read, not
 * written: IBSI recommends against it.
 */
#include "dicom/read/suv/suv.h"

#include <math.h>

#define CM_PER_M   100.0
#define GRAMS      1000.0
#define CM2_PER_M2 10000.0
#define IDEAL_FROM 152.0 /* cm */

const struct suv_unit_row suv_unit_rows[SUV_UNIT_COUNT] = {

#define SUV_UNIT(id, ...) {__VA_ARGS__},
#include "base/suv_units.def"
#undef SUV_UNIT
};

static double
suv_lean_james(const struct suv_header *header, double multiplier_of_males)
{
    const double ratio = header->weight / (header->size * CM_PER_M);
    if (header->sex == 'F')
        return 1.07 * header->weight - 148 * ratio * ratio;
    return 1.10 * header->weight - multiplier_of_males * ratio * ratio;
}

static double
suv_lean_janmahasatian(const struct suv_header *header)
{
    const double bmi = header->weight / (header->size * header->size);
    if (header->sex == 'F')
        return 9270 * header->weight / (8780 + 244 * bmi);
    return 9270 * header->weight / (6680 + 216 * bmi);
}

static double
suv_ideal(const struct suv_header *header)
{
    const double above = header->size * CM_PER_M - IDEAL_FROM;
    return header->sex == 'F' ? 45.5 + 0.91 * above : 48.0 + 1.06 * above;
}

double
suv_body(enum suv_unit unit, const struct suv_header *header)
{
    double body = NAN;
    if (header->sex == 0 && unit != SUV_BW && unit != SUV_BSA)
        return NAN;
    switch (unit) {
    case SUV_BW:
        body = header->weight * GRAMS;
        break;
    case SUV_LBM:
        body = suv_lean_james(header, 128) * GRAMS;
        break;
    case SUV_LBM_120:
        body = suv_lean_james(header, 120) * GRAMS;
        break;
    case SUV_JANMA:
        body = suv_lean_janmahasatian(header) * GRAMS;
        break;
    case SUV_BSA:
        body = 0.007184 * pow(header->weight, 0.425) * pow(header->size * CM_PER_M, 0.725) * CM2_PER_M2;
        break;
    case SUV_IBW:
        body = suv_ideal(header) * GRAMS;
        break;
    case SUV_NO_UNIT:
        break;
    }
    return body > 0 ? body : NAN;
}
