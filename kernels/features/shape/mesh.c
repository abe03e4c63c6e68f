#include "kernels/features/shape/mesh.h"

#include "kernels/morphology/morphology.h"

#include <math.h>
#include <string.h>

enum { MESH_WHOLE = 48, FACE_WHOLE = 8 };

__extension__ typedef unsigned __int128 mesh_sum; /* 2^33 cells and more */

static const char mesh_triangles[MORPHOLOGY_CONFIGURATIONS][MESH_CORNERS + 1] = {
#include "kernels/features/shape/mesh.def"
};

int
mesh_configuration_edges(int configuration, int edges[MESH_CORNERS])
{
    const char *letters = mesh_triangles[configuration];
    const int count = (int)strlen(letters);

    for (int i = 0; i < count; i++)
        edges[i] = letters[i] - 'a';
    return count;
}

void
mesh_edge_middle(int edge, int32_t middle[3])
{
    const int axis = edge / 4, lower = axis == 0, upper = axis == 2 ? 1 : 2;

    middle[axis] = 1;
    middle[lower] = 2 * (edge & 1);
    middle[upper] = edge & 2;
}

/* Computes the flux out of the cell's part of the region, of a field directed away from its first
 * voxel: through its triangles, and through the three faces without that voxel (Gauss). */
int32_t
mesh_configuration_volume(int configuration)
{
    /* The part of a face inside the region, in eighths, by the number of its corners inside. */
    static const int32_t inside[5] = {0, 1, 4, 7, FACE_WHOLE};
    int32_t volume = 0;
    int edges[MESH_CORNERS];
    const int count = mesh_configuration_edges(configuration, edges);

    for (int i = 0; i < count; i += 3) {
        int32_t a[3], b[3], c[3];

        mesh_edge_middle(edges[i], a);
        mesh_edge_middle(edges[i + 1], b);
        mesh_edge_middle(edges[i + 2], c);
        volume += a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
                  a[2] * (b[0] * c[1] - b[1] * c[0]);
    }
    for (int axis = 0; axis < 3; axis++) {
        int corners = 0, next = 0; /* the four bits of the configuration on the far side */

        for (int corner = 0; corner < 8; corner++)
            if (corner >> axis & 1)
                corners |= (configuration >> corner & 1) << next++;
        volume +=
            MESH_WHOLE / 3 / FACE_WHOLE *
            (corners == 6 || corners == 9 ? 2 /* not connected */ : inside[__builtin_popcount((unsigned)corners)]);
    }
    return volume;
}

double
mesh_volume(const uint64_t *counts, const double spacing[3])
{
    mesh_sum volume = 0;

    for (int c = 0; c < MORPHOLOGY_CONFIGURATIONS; c++)
        volume += (mesh_sum)counts[c] * (uint32_t)mesh_configuration_volume(c);
    return (double)volume / MESH_WHOLE * (spacing[0] * spacing[1] * spacing[2]);
}

static double
triangle_area(const int edges[3], const double spacing[3])
{
    double sides[2][3], normal[3];
    int32_t middle[3][3];

    for (int i = 0; i < 3; i++)
        mesh_edge_middle(edges[i], middle[i]);
    for (int i = 0; i < 3; i++)
        for (int side = 0; side < 2; side++)
            sides[side][i] = (double)(middle[side + 1][i] - middle[0][i]) / 2 * spacing[i];
    for (int i = 0; i < 3; i++) {
        const int next = (i + 1) % 3, last = (i + 2) % 3;

        normal[i] = sides[0][next] * sides[1][last] - sides[0][last] * sides[1][next];
    }
    return sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]) / 2;
}

double
mesh_area(const uint64_t *counts, const double spacing[3])
{
    double sum = 0;

    for (int c = 0; c < MORPHOLOGY_CONFIGURATIONS; c++) {
        int edges[MESH_CORNERS];
        const int count = mesh_configuration_edges(c, edges);
        double area = 0;

        for (int i = 0; i < count; i += 3)
            area += triangle_area(edges + i, spacing);
        sum += (double)counts[c] * area;
    }
    return sum;
}
