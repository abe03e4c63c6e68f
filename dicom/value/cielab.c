#include "dicom/value/value.h"

#include <math.h>

static double
linear_from_srgb(double value)
{
    value = fmin(fmax(value, 0.0), 1.0);
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

static double
lab_curve(double t)
{
    const double delta = 6.0 / 29.0;
    return t > delta * delta * delta ? cbrt(t) : t / (3.0 * delta * delta) + 4.0 / 29.0;
}

static uint16_t
cielab_encode(double value)
{
    return (uint16_t)lround(fmin(fmax(value, 0.0), 65535.0));
}

static double
srgb_from_linear(double value)
{
    value = fmin(fmax(value, 0.0), 1.0);
    return value <= 0.0031308 ? 12.92 * value : 1.055 * pow(value, 1 / 2.4) - 0.055;
}

static double
lab_curve_back(double value)
{
    const double delta = 6.0 / 29.0;
    return value > delta ? value * value * value : 3.0 * delta * delta * (value - 4.0 / 29.0);
}

/* IEC 61966-2-1 primaries, adapted from D65 to D50 with the Bradford matrix. The sum of a row is
 * white. */
static const double matrix[3][3] = {
    {0.4360747, 0.3850649, 0.1430804},
    {0.2225045, 0.7168786, 0.0606169},
    {0.0139322, 0.0971045, 0.7141733},
};

void
value_srgb_from_lab(const uint16_t lab[3], double rgb[3])
{
    static const double inverse[3][3] = {
        {3.1338561, -1.6168667, -0.4906146},
        {-0.9787684, 1.9161415, 0.0334540},
        {0.0719453, -0.2289914, 1.4052427},
    };
    const double lightness = (lab[0] / 65535.0 * 100.0 + 16.0) / 116.0;
    const double curve[3] = {lightness + (lab[1] / 257.0 - 128.0) / 500.0, lightness,
                             lightness - (lab[2] / 257.0 - 128.0) / 200.0};
    for (int i = 0; i < 3; i++) {
        double sum = 0.0;
        for (int k = 0; k < 3; k++)
            sum += inverse[i][k] * lab_curve_back(curve[k]) * (matrix[k][0] + matrix[k][1] + matrix[k][2]);
        rgb[i] = srgb_from_linear(sum);
    }
}

void
value_lab_from_srgb(const double rgb[3], uint16_t lab[3])
{
    double relative[3];
    for (int i = 0; i < 3; i++) {
        double white = 0.0;
        double sum = 0.0;
        for (int k = 0; k < 3; k++) {
            white += matrix[i][k];
            sum += matrix[i][k] * linear_from_srgb(rgb[k]);
        }
        relative[i] = lab_curve(sum / white);
    }
    double lightness = 116.0 * relative[1] - 16.0;
    double a = 500.0 * (relative[0] - relative[1]);
    double b = 200.0 * (relative[1] - relative[2]);
    lab[0] = cielab_encode(lightness / 100.0 * 65535.0);
    lab[1] = cielab_encode((a + 128.0) * 257.0);
    lab[2] = cielab_encode((b + 128.0) * 257.0);
}
