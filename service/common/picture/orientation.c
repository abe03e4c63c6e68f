#include "service/common/picture/orientation.h"

#include <math.h>
#include <stdio.h>

#define LEAST_COMPONENT 0.05

void
orientation_letters(const double direction[3], char letters[ORIENTATION_SIZE])
{
    static const char positive[] = "LPH", negative[] = "RAF";
    int used = 0;
    bool told[3] = {false};
    while (used < 3) {
        int largest = -1;
        for (int i = 0; i < 3; i++)
            if (!told[i] && (largest < 0 || fabs(direction[i]) > fabs(direction[largest])))
                largest = i;
        if (fabs(direction[largest]) < LEAST_COMPONENT)
            break;
        letters[used++] = direction[largest] > 0 ? positive[largest] : negative[largest];
        told[largest] = true;
    }
    letters[used] = '\0';
}

void
orientation_place(const double direction[3], double position, char text[ORIENTATION_PLACE_SIZE])
{
    char letters[ORIENTATION_SIZE];
    const double side = position < 0 ? -1 : 1;
    const double towards[3] = {side * direction[0], side * direction[1], side * direction[2]};
    orientation_letters(towards, letters);
    if (letters[1]) /* "HP34.1 mm" would not be read as a position */
        snprintf(text, ORIENTATION_PLACE_SIZE, "%.1f mm to %s", fabs(position), letters);
    else
        snprintf(text, ORIENTATION_PLACE_SIZE, "%s%.1f mm", letters, fabs(position));
}

void
orientation_of_axes(const double axes[9], int patient[3])
{
    bool taken[3] = {false}, done[3] = {false};
    for (int round = 0; round < 3; round++) {
        int axis = -1, along = -1;
        for (int i = 0; i < 9; i++)
            if (!done[i / 3] && !taken[i % 3] && (axis < 0 || fabs(axes[i]) > fabs(axes[3 * axis + along]))) {
                axis = i / 3;
                along = i % 3;
            }
        patient[axis] = along;
        done[axis] = taken[along] = true;
    }
}
