/* glcm_sets.cu - groups matrices of a request into sets that are counted together, and assigns
 * blocks to them, on the host for glcm_pairs.cu and glcm_bits.cu. */
#include "kernels/texture/texture_cuda.cuh"

#include <stdlib.h>
#include <string.h>

enum { WARP = 32 };

/* Matrices to arrange in sets: pairs at the front, singles at the back. */
struct arranging {
    const struct texture_glcm *request;
    size_t first, count; /* matrices */
    struct glcm_set *sets;
    size_t pairs, singles;
    bool upwards; /* no offset points down; otherwise none to the left */
    bool in_z;    /* lines along z */
};

/* Returns the offset of matrix `i`, or its opposite. */
static struct texture_offset
offset_of(const struct arranging *arranging, size_t i, bool *is_reversed = NULL)
{
    const struct texture_offset offset =
        arranging->request->offsets[(arranging->first + i) % arranging->request->offset_count];
    const bool upwards = arranging->upwards && offset.y != 0;
    const bool reversed = upwards ? offset.y > 0 : offset.x < 0;

    if (is_reversed)
        *is_reversed = reversed;
    return reversed ? texture_offset{-offset.x, -offset.y, -offset.z} : offset;
}

/* Returns whether a matrix can share a set: its neighbours, which are never to the left, lie in the same or the next
 * word (glcm_pairs.cu). A matrix per slice that is counted by the opposite offset may begin in another slice than the
 * other matrix of its set. */
static bool
glcm_sets_is_near(const struct arranging *arranging, size_t i)
{
    const struct texture_offset offset = offset_of(arranging, i);

    return offset.x >= 0 && offset.x <= (int32_t)sizeof(uint32_t) && (offset.z == 0 || !arranging->request->per_slice);
}

static bool
is_own(const struct arranging *arranging, size_t i)
{
    const struct texture_offset offset = offset_of(arranging, i);

    return offset.y == 0 && offset.z == 0;
}

/* Returns whether neighbours are in the previous or next row of a line. */
static bool
is_beside(const struct arranging *arranging, size_t i)
{
    const struct texture_offset offset = offset_of(arranging, i);

    return arranging->in_z ? offset.y == 0 && abs(offset.z) == 1 : offset.z == 0 && abs(offset.y) == 1;
}

static bool
in_one_row(const struct arranging *arranging, size_t i, size_t j)
{
    const struct texture_offset one = offset_of(arranging, i);
    const struct texture_offset two = offset_of(arranging, j);

    return one.y == two.y && one.z == two.z;
}

/* Matrix indices of the request vary fastest by offset, then by slice. */
static void
glcm_sets_put_matrix(const struct arranging *arranging, size_t i, int place, struct glcm_set *set)
{
    const size_t index = arranging->first + i;
    const struct texture_offset offset = offset_of(arranging, i, &set->reversed[place]);

    set->x[place] = offset.x;
    set->y[place] = offset.y;
    set->z[place] = offset.z;
    set->matrix[place] = (uint32_t)i;
    set->first_slice = 0;
    if (arranging->request->per_slice)
        set->first_slice = (int32_t)(index / arranging->request->offset_count) - (set->reversed[place] ? offset.z : 0);
}

static void
add_single(struct arranging *arranging, size_t i)
{
    struct glcm_set *set = &arranging->sets[arranging->count - ++arranging->singles];

    memset(set, 0, sizeof(*set));
    glcm_sets_put_matrix(arranging, i, 0, set);
    if (!glcm_sets_is_near(arranging, i))
        set->kind = GLCM_SINGLE_FAR;
    else if (is_own(arranging, i))
        set->kind = GLCM_SINGLE_OWN;
    else
        set->kind = is_beside(arranging, i) ? GLCM_SINGLE_KEPT : GLCM_SINGLE;
}

static void
glcm_sets_add_pair(struct arranging *arranging, size_t i, size_t j)
{
    struct glcm_set *set = &arranging->sets[arranging->pairs++];
    const bool turned = !is_own(arranging, i) && is_own(arranging, j);
    const size_t one = turned ? j : i, two = turned ? i : j;
    const bool own = is_own(arranging, one), kept = is_beside(arranging, two);

    memset(set, 0, sizeof(*set));
    glcm_sets_put_matrix(arranging, one, 0, set);
    glcm_sets_put_matrix(arranging, two, 1, set);
    if (!in_one_row(arranging, one, two))
        set->kind = !own ? GLCM_TWO_ROWS : kept ? GLCM_ONE_OWN_KEPT : GLCM_ONE_OWN;
    else
        set->kind = own ? GLCM_BOTH_OWN : kept ? GLCM_ONE_ROW_KEPT : GLCM_ONE_ROW;
}

/* Pairs two matrices if 16-bit counters suffice, preferably with neighbours in one row. */
static void
arrange(struct arranging *arranging, bool in_pairs)
{
    const size_t each = arranging->request->offset_count;
    size_t waiting = SIZE_MAX; /* a matrix without a partner in its row */

    for (size_t i = 0; i < arranging->count; i++) {
        const bool last_of_slice = (arranging->first + i) % each == each - 1;
        const bool near = in_pairs && glcm_sets_is_near(arranging, i);

        if (!near) {
            add_single(arranging, i);
        } else if (!last_of_slice && i + 1 < arranging->count && glcm_sets_is_near(arranging, i + 1) &&
                   in_one_row(arranging, i, i + 1)) {
            glcm_sets_add_pair(arranging, i, i + 1);
            i++;
        } else if (waiting == SIZE_MAX) {
            waiting = i;
        } else {
            glcm_sets_add_pair(arranging, waiting, i);
            waiting = SIZE_MAX;
        }
        if (waiting != SIZE_MAX && ((arranging->first + i) % each == each - 1 || i + 1 == arranging->count)) {
            add_single(arranging, waiting);
            waiting = SIZE_MAX;
        }
    }
    memmove(arranging->sets + arranging->pairs, arranging->sets + arranging->count - arranging->singles,
            arranging->singles * sizeof(*arranging->sets));
}

struct glcm_share
glcm_arrange(const struct texture_glcm *request, size_t first, size_t count, const struct glcm_image *image,
             size_t processors, struct glcm_set *sets)
{
    /* Costs: accesses to shared memory and the cache for 512 voxels, the bottleneck. */
    static const uint64_t costs[GLCM_KINDS] = {26, 31, 26, 33, 42, 48, 43, 47, 42, 53};
    struct arranging arranging = {request, first, count, sets, 0, 0, false, image->in_z};
    struct glcm_share share = {};

    arrange(&arranging, image->copies == WARP);
    share.sets = (uint32_t)(arranging.pairs + arranging.singles);
    /* Give each set a block. While processors are left, the slowest set gets another. */
    for (uint32_t i = 0; i < share.sets; i++)
        sets[i].parts = 1;
    for (size_t shared = share.sets; shared < processors; shared++) {
        struct glcm_set *slowest = sets;

        for (uint32_t i = 1; i < share.sets; i++)
            if (costs[sets[i].kind] * slowest->parts > costs[slowest->kind] * sets[i].parts)
                slowest = &sets[i];
        slowest->parts++;
    }
    for (uint32_t i = 0; i < share.sets; i++) {
        sets[i].first_block = share.blocks;
        share.blocks += sets[i].parts;
    }
    return share;
}

static enum glcm_place
place_of(const struct texture_offset *offset)
{
    if (offset->y == 0)
        return GLCM_PLACE_OWN;
    if (offset->x == 0)
        return GLCM_PLACE_ABOVE;
    return offset->x > 0 ? GLCM_PLACE_RIGHT : GLCM_PLACE_LEFT;
}

struct glcm_share
glcm_arrange_bits(const struct texture_glcm *request, size_t first, size_t count, struct glcm_set *sets)
{
    const struct arranging arranging = {request, first, count, sets, 0, 0, true, false};
    struct glcm_share share = {};

    for (size_t i = 0; i < count; i++) {
        const struct texture_offset offset = offset_of(&arranging, i);
        const bool begins = i == 0 || (first + i) % request->offset_count == 0;
        const enum glcm_place place = place_of(&offset);
        const uint32_t behind = (uint32_t)-offset.y;
        struct glcm_set *set = &sets[share.sets - (begins ? 0 : 1)];

        /* The set needs a free place, and the same row behind. */
        if (begins || (set->places >> place & 1) || (behind != 0 && set->behind != 0 && set->behind != behind)) {
            set = &sets[share.sets++];
            memset(set, 0, sizeof(*set));
        }
        glcm_sets_put_matrix(&arranging, i, place, set);
        set->places |= 1u << place;
        set->behind |= behind;
        share.behind = (uint32_t)texture_most(share.behind, set->behind);
    }
    return share;
}
