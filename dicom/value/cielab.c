#include "dicom/value/cielab.h"

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

void
cielab_from_srgb(const double rgb[3], uint16_t lab[3])
{
    /* IEC 61966-2-1 primaries, adapted from D65 to D50 with the Bradford matrix; white is the sum
     * of a row. */
    static const double matrix[3][3] = {
        {0.4360747, 0.3850649, 0.1430804},
        {0.2225045, 0.7168786, 0.0606169},
        {0.0139322, 0.0971045, 0.7141733},
    };
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
