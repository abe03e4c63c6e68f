"""
Finds the segments of a pipeline in NumPy and SciPy, by the definitions of noctule.conf(5), and voxel for voxel like the
service: the truth of tests of presets. Knows CT with one rescale, and the methods and steps of the presets.
"""

import dataclasses
import functools
import math
import pathlib
import re

import numpy as np
from scipy import ndimage

FAR = 1 << 62
FACES = ndimage.generate_binary_structure(3, 1)

# ------------------------------------------------------------------------------- configuration

TOKEN = re.compile(r'\s*(?:#[^\n]*|//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*")|([-+]?[\d.][\w.+-]*)|([A-Za-z][\w-]*)|([=:;,(){}\[\]]))', re.S)


def read_text(path):
    """Returns the text of a preset with the parts that it includes."""
    parts = pathlib.Path(__file__).resolve().parents[2] / "config"
    return re.sub(r'^@include "(.*)"$', lambda match: read_text(parts / match[1]), path.read_text(), flags=re.M)


def tokens(text):
    for string, number, name, sign in TOKEN.findall(text):
        if string:
            yield "value", string[1:-1]
        elif number:
            yield "value", float(number)
        elif name:
            yield ("value", name == "true") if name in ("true", "false") else ("name", name)
        elif sign:
            yield "sign", sign


def parse(text):
    """Returns the settings of a text of libconfig as dictionaries, lists and values."""
    rest = list(tokens(text))[::-1]

    def group(end):
        found = {}
        while rest and rest[-1] != ("sign", end):
            kind, name = rest.pop()
            if kind == "name":
                rest.pop()
                found[name] = value()
        if rest:
            rest.pop()
        return found

    def items(end):
        found = []
        while rest[-1] != ("sign", end):
            if rest[-1] == ("sign", ","):
                rest.pop()
            else:
                found.append(value())
        rest.pop()
        return found

    def value():
        kind, first = rest.pop()
        if kind == "value":
            return first
        return group("}") if first == "{" else items({"(": ")", "[": "]"}[first])

    return group(None)


def preset(path):
    """Returns the segments of a preset."""
    return parse(read_text(pathlib.Path(path)))["segments"]


# --------------------------------------------------------------------------------------- volumes


@dataclasses.dataclass
class Volume:
    voxels: np.ndarray  # stored values: slice, row, column
    slope: float
    intercept: float
    spacing: tuple  # along columns, rows and slices: x, y, z
    axes: np.ndarray  # a row per axis: its direction in the patient
    padding: tuple = None  # first and last stored value

    @property
    def padded(self):
        if self.padding is None:
            return np.zeros(self.voxels.shape, bool)
        return (self.voxels >= self.padding[0]) & (self.voxels <= self.padding[1])

    @functools.cached_property
    def clipped(self):
        """Stored values from -1024 to 3071 HU. Padding has the lowest."""
        low = math.ceil((-1024 - self.intercept) / self.slope)
        high = math.floor((3071 - self.intercept) / self.slope)
        values = np.clip(self.voxels, low, high).astype(np.int32)
        if self.padding is not None:
            values[self.padded] = low
        return values

    def within(self, values, low, high):
        """Returns which stored values lie in a range of real-world values."""
        return (values >= math.ceil((low - self.intercept) / self.slope)) & (values <= math.floor((high - self.intercept) / self.slope))

    @property
    def ml(self):
        return self.spacing[0] * self.spacing[1] * self.spacing[2] / 1000.0


def volume_of(datasets):
    """Returns the volume of the images of an upright stack, sorted along its normal."""
    first = datasets[0]
    across = np.array(first.ImageOrientationPatient, float).reshape(2, 3)
    steps = np.diff([np.array(dataset.ImagePositionPatient, float) for dataset in datasets], axis=0)
    padding = (first.PixelPaddingValue, first.get("PixelPaddingRangeLimit", first.PixelPaddingValue)) if "PixelPaddingValue" in first else None
    down, right = (float(mm) for mm in first.PixelSpacing)
    return Volume(np.stack([dataset.pixel_array for dataset in datasets]), float(first.get("RescaleSlope", 1)),
                  float(first.get("RescaleIntercept", 0)), (right, down, float(np.linalg.norm(steps.mean(axis=0)))),
                  np.vstack([across, np.cross(*across)]), padding and tuple(sorted(padding)))


def factors(volume, mm):
    """Returns the number of voxels per block along x, y and z."""
    return [max(1, math.floor(mm / step + 0.5)) for step in volume.spacing]


def coarse(volume, mm):
    """Returns the volume of the mean values of blocks, in 1/8 of a stored value."""
    factor, scale = factors(volume, mm), 8
    offset = math.floor(-volume.intercept / volume.slope + 0.5)
    total, count = volume.clipped.astype(np.int64) - offset, np.ones((1, 1, 1), np.int64)
    for axis, step in enumerate(reversed(factor)):
        starts = np.arange(0, volume.voxels.shape[axis], step)
        total = np.add.reduceat(total, starts, axis=axis)
        shape = [1, 1, 1]
        shape[axis] = -1
        count = count * np.minimum(step, volume.voxels.shape[axis] - starts).reshape(shape)
    means = (2 * total * scale + count) // (2 * count)
    return Volume(means.astype(np.int16), volume.slope / scale, volume.slope * offset + volume.intercept,
                  tuple(step * by for step, by in zip(volume.spacing, factor)), volume.axes)


def expand(mask, factor, shape):
    for axis, step in enumerate(reversed(factor)):
        mask = np.repeat(mask, step, axis=axis)
    return mask[:shape[0], :shape[1], :shape[2]]


def weights(sigma):
    radius = math.floor(3 * sigma + 0.5)
    bell = np.exp(-np.arange(-radius, radius + 1) ** 2 / (2 * sigma ** 2))
    whole = np.floor(2 ** 14 * (bell / bell.sum()) + 0.5)
    whole[radius] += 2 ** 14 - whole.sum()
    return whole


def smoothed(volume, mm):
    """Returns the values after a Gaussian filter in integers, along x, y and z."""
    values = volume.clipped.astype(np.float64)
    for axis, step in enumerate(volume.spacing):
        values = ndimage.correlate1d(values, weights(mm / step), axis=2 - axis, mode="nearest")
        values += 2 ** 13
        values /= 2 ** 14
        np.floor(values, out=values)
    return values


# ----------------------------------------------------------------------------------------- steps


def box_of(mask, reach):
    """Returns the slices of the box of a mask, with a margin."""
    box = []
    for axis, margin in enumerate(reach):
        at = np.flatnonzero(mask.any(axis=tuple(other for other in range(3) if other != axis)))
        box.append(slice(max(0, at[0] - margin), at[-1] + 1 + margin))
    return tuple(box)


def ball_rows(mm, spacing, in_slice):
    """Yields (k, j, i) of a ball: the offsets along z and y, and the highest along x."""
    sx, sy, sz = spacing
    for k in range(0 if in_slice else -int(mm / sz) - 1, 1 if in_slice else int(mm / sz) + 2):
        for j in range(-int(mm / sy) - 1, int(mm / sy) + 2):
            inside = [i for i in range(int(mm / sx) + 2) if (i * sx) ** 2 + (j * sy) ** 2 + (k * sz) ** 2 <= mm * mm]
            if inside:
                yield k, j, inside[-1]


def reach_of(mm, spacing, in_slice=False):
    reach = [int(mm / step) + 1 for step in reversed(spacing)]
    return [0, *reach[1:]] if in_slice else reach


def grow(mask, mm, spacing, in_slice=False):
    grown = np.zeros_like(mask)
    if not mask.any():
        return grown
    box = box_of(mask, reach_of(mm, spacing, in_slice))
    part, result = mask[box], grown[box]
    rows = list(ball_rows(mm, spacing, in_slice))
    for reach in {i for _, _, i in rows}:
        wide = ndimage.maximum_filter1d(part.view(np.uint8), 2 * reach + 1, axis=2, mode="constant").view(bool)
        for k, j, _ in (row for row in rows if row[2] == reach):
            size_z, size_y = part.shape[0] - abs(k), part.shape[1] - abs(j)
            if size_z > 0 and size_y > 0:
                result[max(k, 0):max(k, 0) + size_z, max(j, 0):max(j, 0) + size_y] |= (
                    wide[max(-k, 0):max(-k, 0) + size_z, max(-j, 0):max(-j, 0) + size_y])
    return grown


def shrink(mask, mm, spacing, in_slice=False):
    result = np.zeros_like(mask)
    if mask.any():
        box = box_of(mask, reach_of(mm, spacing, in_slice))
        result[box] = ~grow(~mask[box], mm, spacing, in_slice)
    return result


def opened(mask, mm, spacing, in_slice=False):
    return grow(shrink(mask, mm, spacing, in_slice), mm, spacing, in_slice)


def closed(mask, mm, spacing, in_slice=False):
    """On a padded copy, whose margin is outside of the mask."""
    if not mask.any():
        return mask.copy()
    reach = reach_of(mm, spacing, in_slice)
    around = tuple(slice(step, step + size) for step, size in zip(reach, mask.shape))
    return shrink(grow(np.pad(mask, [(step, step) for step in reach]), mm, spacing, in_slice), mm, spacing, in_slice)[around]


def parts(mask):
    """Returns the labels of the components, in the order of their first voxels, and their voxels; of label 0: 0."""
    labels, _ = ndimage.label(mask, FACES)
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return labels, sizes


def keep(mask, count):
    labels, sizes = parts(mask)
    kept = np.zeros(len(sizes), bool)
    kept[np.argsort(-sizes, kind="stable")[:count]] = True
    kept[0] = False
    return kept[labels]


def keep_at_least(mask, share):
    labels, sizes = parts(mask)
    return mask & (sizes >= share * float(sizes.max()))[labels]


def drop_below_ml(mask, ml, volume):
    labels, sizes = parts(mask)
    return mask & (sizes * volume.ml >= ml)[labels]


def drop_mean_below(mask, mean, volume):
    labels, sizes = parts(mask)
    inner = labels * ndimage.binary_erosion(mask, FACES, border_value=1)
    counts = np.bincount(inner.ravel(), minlength=len(sizes))
    sums = np.bincount(inner.ravel(), weights=volume.voxels.ravel(), minlength=len(sizes))
    means = np.full(len(sizes), -np.inf)
    means[counts > 0] = sums[counts > 0] / counts[counts > 0] * volume.slope + volume.intercept
    return mask & (means >= mean)[labels]


def fill(mask, where):
    if where == "volume":
        return ndimage.binary_fill_holes(mask)
    return np.stack([ndimage.binary_fill_holes(plane) for plane in mask])


def take_step(mask, step, volume):
    in_slice = step.get("space") == "slice"
    for name, function in (("grow_mm", grow), ("shrink_mm", shrink), ("open_mm", opened), ("close_mm", closed)):
        if name in step:
            return function(mask, step[name], volume.spacing, in_slice)
    if "keep" in step:
        return keep(mask, int(step["keep"]))
    if "keep_at_least" in step:
        return keep_at_least(mask, step["keep_at_least"])
    if "drop_below_ml" in step:
        return drop_below_ml(mask, step["drop_below_ml"], volume)
    if "drop_mean_below" in step:
        return drop_mean_below(mask, step["drop_mean_below"], volume)
    return fill(mask, step["fill"])


# --------------------------------------------------------------------------------------- methods

KNIGHTS = {(1, 2): [(0, 1), (1, 1)], (2, 1): [(1, 0), (1, 1)]}


def directions(name):
    """Yields steps (z, y, x) with the steps to the voxels between."""
    near = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    if name == "26":
        yield from (((z, y, x), []) for z in (-1, 0, 1) for y, x in near if (z, y, x) != (0, 0, 0))
        return
    yield from (((0, y, x), []) for y, x in near if (y, x) != (0, 0))
    for (y, x), between in KNIGHTS.items():
        for up in (-1, 1):
            for left in (-1, 1):
                yield (0, y * up, x * left), [(0, up * b, left * c) for b, c in between]


def moved(array, step):
    """Returns the values at p + step, 0 outside."""
    result = np.zeros_like(array)
    to = tuple(slice(max(-s, 0), min(n, n - s)) for s, n in zip(step, array.shape))
    of = tuple(slice(max(s, 0), min(n, n + s)) for s, n in zip(step, array.shape))
    result[to] = array[of]
    return result


def ray(mask, step, between, most):
    """Returns which voxels meet the mask in a direction: plane by plane along an axis of the step."""
    axis = next(a for a in range(3) if step[a])
    stride, rest = step[axis], tuple(s for a, s in enumerate(step) if a != axis)
    size = mask.shape[axis]
    seen = np.moveaxis(mask, axis, 0)
    met = [np.moveaxis(moved(mask, b), axis, 0) for b in between]
    inside = np.moveaxis(moved(np.ones_like(mask), step), axis, 0)
    distance = np.zeros(seen.shape, np.int16)
    for at in range(size)[::-1 if stride > 0 else 1]:
        plane = np.zeros(seen.shape[1:], np.int16)
        if 0 <= at + stride < size:
            next_plane = moved(distance[at + stride][None], (0, *rest))[0]
            plane = np.where((next_plane > 0) & (next_plane < most), next_plane + 1, 0).astype(np.int16)
            for found in met:
                plane[found[at] & inside[at]] = 2
        plane[seen[at]] = 1
        distance[at] = plane
    return np.moveaxis(distance > 0, 0, axis)


def enclosed(mask, options, spacing):
    count = np.zeros(mask.shape, np.uint8)
    for step, between in directions(options.get("directions", "26")):
        length = math.sqrt(sum((s * mm) ** 2 for s, mm in zip(reversed(step), spacing)))
        count += ray(mask, step, between, max(2, math.floor(options.get("within_mm", 250.0) / length)))
    return count >= options["at_least"]


def sections_of(plane, middle, options, spacing):
    """Returns the sections of a slice, in the order of their first voxels."""
    sx, sy = spacing[:2]
    low, high = options.get("area_mm2", [60.0, 800.0])
    labels, _ = ndimage.label(plane)
    found = []
    for label, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
        part = labels == label
        height, width = (rows.stop - rows.start) * sy, (columns.stop - columns.start) * sx
        voxels = int(part.sum())
        away = abs(np.nonzero(part)[1].sum() / voxels - middle) * sx
        box = (rows.stop - rows.start) * (columns.stop - columns.start)
        if (low <= voxels * (sx * sy) <= high and max(height, width) <= options.get("box_mm", 45.0)
                and voxels / box >= options.get("fill", 0.5)
                and max(height, width) <= options.get("aspect", 2.6) * min(height, width) and away <= options.get("middle_mm", 40.0)):
            found.append(part)
    return found


def sections(mask, middle, options, volume):
    """Returns the longest chain from the head to the feet."""
    upwards = volume.axes[2][2] > 0
    chains, best = [], []
    for z in range(len(mask))[::-1 if upwards else 1]:
        found = []
        if middle[z].any() and mask[z].any():
            found = sections_of(mask[z], np.nonzero(middle[z])[1].sum() / middle[z].sum(), options, volume.spacing)
        free, going = list(range(len(found))), []
        for chain in chains:
            shared = [((chain[-1][1] & found[i]).sum(), i) for i in free]
            most = max(shared, default=(0, -1))
            if most[0] > 0:
                free.remove(most[1])
                going.append([*chain, (z, found[most[1]])])
            elif len(chain) > len(best):
                best = chain
        chains = going + [[(z, found[i])] for i in free]
    best = max([best, *chains], key=len)
    result = np.zeros_like(mask)
    if len(best) >= options.get("length_mm", 25.0) / volume.spacing[2]:
        for z, part in best:
            result[z] = part
    return result


def connected(allowed, start):
    """Returns the components of `allowed` that hold a voxel of the start."""
    labels, _ = ndimage.label(allowed, FACES)
    chosen = np.zeros(labels.max() + 1, bool)
    chosen[labels[start & allowed]] = True
    chosen[0] = False
    return chosen[labels]


def leak(start, allowed, options, volume):
    first, last = options["limits"]
    result, step = start, 0
    while start.any() and first + step * options["step"] <= last:
        below = allowed & volume.within(volume.voxels, -FAR, first + step * options["step"]) & ~volume.padded
        region = connected(below | start, start)
        ml, before = region.sum() * volume.ml, result.sum() * volume.ml
        if ml > options["most_ml"] or ml - before > options.get("growth", 0.35) * before + options.get("extra_ml", 6.0):
            break
        result, step = region, step + 1
    return result


def nearest(mask, spacing):
    """Returns the squared distance to the mask, summed as x, y, z."""
    at = ndimage.distance_transform_edt(~mask, sampling=spacing[::-1], return_distances=False, return_indices=True)
    apart = [(np.abs(there - here) * mm) ** 2 for there, here, mm in zip(at, np.indices(mask.shape, sparse=True), spacing[::-1])]
    return apart[2] + apart[1] + apart[0]


def side(mask, options, volume):
    """Returns the right or the left half: the nearer of the two largest parts that shrinking leaves."""
    toward_left = volume.axes[:, 0] * np.array(volume.spacing)
    for mm in options.get("shrink_mm", [0.0, 1.5, 2.5, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0]):
        labels, sizes = parts(shrink(mask, mm, volume.spacing))
        order = np.argsort(-sizes, kind="stable")[:2]
        if len(order) < 2 or sizes[order[1]] == 0:
            continue
        pair = [labels == label for label in order]
        means = [sum(np.nonzero(part)[2 - axis].mean() * toward_left[axis] for axis in range(3)) for part in pair]
        if sizes[order[1]] / sizes[order].sum() < options.get("share", 0.2) or abs(means[0] - means[1]) < options.get("apart_mm", 50.0):
            continue
        first = mask & (nearest(pair[0], volume.spacing) <= nearest(pair[1], volume.spacing))
        return first if (means[0] < means[1]) == (options["which"] == "right") else mask & ~first
    return np.zeros_like(mask)


def slices(mask, other, options, volume):
    own, shared = mask.sum(axis=(1, 2)), other.sum(axis=(1, 2))
    low, high = options["share"]
    good = (own > 0) & (shared >= low * own) & (shared <= high * own)
    labels, count = ndimage.label(good)
    runs = [np.flatnonzero(labels == label) for label in range(1, count + 1)]
    if options.get("longest"):
        runs = sorted(runs, key=len, reverse=True)[:1]
    result = np.zeros_like(mask)
    for run in runs:
        if len(run) * volume.spacing[2] >= options.get("at_least_mm", 0.0):
            result[run] = mask[run]
    return result


class Pipeline:
    """The segments of a pipeline on a volume. Finds each when it is asked for: `pipeline["Bone"]`, on its own grid."""

    def __init__(self, segments, volume):
        self.segments = {segment["label"]: segment for segment in segments}
        self.grids = {0.0: volume}
        self.masks, self.smooth = {}, {}

    def grid(self, label):
        mm = self.segments[label].get("grid_mm", 0.0)
        if mm not in self.grids:
            self.grids[mm] = coarse(self.grids[0.0], mm)
        return self.grids[mm]

    def mask(self, label, user):
        """Returns the mask of a segment on the grid of another one."""
        mm = self.segments[label].get("grid_mm", 0.0)
        if mm and not self.segments[user].get("grid_mm", 0.0):
            return expand(self[label], factors(self.grids[0.0], mm), self.grids[0.0].voxels.shape)
        return self[label]

    def in_range(self, own):
        volume, mm = self.grid(own["label"]), own.get("smooth_mm", 0.0)
        if not mm:
            return volume.within(volume.voxels, *own["range"]) & ~volume.padded
        key = own.get("grid_mm", 0.0), mm
        if key not in self.smooth:
            self.smooth = {key: smoothed(volume, mm)}
        return volume.within(self.smooth[key], *own["range"])

    def refined(self, own):
        refine, volume = own["refine"], self.grids[0.0]
        mask, grid = self[refine["label"]], self.grid(refine["label"])
        factor = factors(volume, self.segments[refine["label"]]["grid_mm"])
        inner, outer = (expand(change(mask, refine["band_mm"], grid.spacing), factor, volume.voxels.shape) for change in (shrink, grow))
        return inner | self.in_range(own) & outer

    def found(self, own):
        """Returns the voxels that the method finds."""
        label, volume, method = own["label"], self.grid(own["label"]), own["method"]
        if method == "any-of":
            return np.logical_or.reduce([self.mask(other, label) for other in own["any_of"]])
        if method == "enclosed":
            return enclosed(self.mask(own["enclosed"]["by"], label), own["enclosed"], volume.spacing)
        start = self.mask(own["from"], label) if "from" in own else True
        within = np.logical_and.reduce([np.ones(volume.voxels.shape, bool), *(self.mask(other, label) for other in own.get("within", []))])
        if method == "range":
            return self.refined(own) if "refine" in own else self.in_range(own) & start
        if method == "level-set":
            return connected(self.in_range(own) & within, start)
        if method == "sections":
            return sections(start, self.mask(own["sections"]["middle_of"], label), own["sections"], volume)
        if method == "grow-until-leak":
            return leak(start, within, own["leak"], volume)
        if method == "side":
            return side(start, own["side"], volume)
        return slices(start, self.mask(own["slices_where"]["label"], label), own["slices_where"], volume)

    def __getitem__(self, label):
        if label not in self.masks:
            own = self.segments[label]
            volume = self.grid(label)
            inside = [self.mask(other, label) for key in ("within", "intersect") for other in own.get(key, [])]
            outside = [self.mask(other, label) for other in own.get("minus", [])]

            def cut(mask):
                return np.logical_and.reduce([mask, *inside, *(~other for other in outside)])

            mask = cut(self.found(own))
            for step in own.get("then", []):
                mask = cut(take_step(mask, step, volume))
            self.masks[label] = mask
        return self.masks[label]
