"""Segments by rules of anatomy: `noctule run` compared with definitions in NumPy and SciPy, voxel for voxel."""

import itertools
import json

import numpy as np
import pydicom
import pytest
from conftest import SHARED, needs_shared
from scipy import ndimage
from test_mask_peers import FACES
from test_run import exact_values, peer, seg_masks
from test_run_expressions import STEP_VOLUMES, filled, largest, run, segment, within, write  # noqa: F401 (run is a fixture)


def moved(mask, step):
    """Returns the mask of the voxels whose voxel at this step (z, y, x) is in the mask."""
    result = np.zeros_like(mask)
    to = tuple(slice(max(0, -s), min(n, n - s)) for s, n in zip(step, mask.shape))
    source = tuple(slice(max(0, s), min(n, n + s)) for s, n in zip(step, mask.shape))
    if all(part.start < part.stop for part in to):
        result[to] = mask[source]
    return result


def directions(name):
    near = [s for s in itertools.product((-1, 0, 1), repeat=3) if any(s)]
    if name == "26":
        return near
    knights = [(0, *s) for s in itertools.product((-2, -1, 1, 2), repeat=2) if abs(s[0]) != abs(s[1])]
    return [s for s in near if s[0] == 0] + knights


def enclosed(mask, name, at_least, mm, spacing):
    """As the manual defines it: rays of n voxels, with the two voxels between two of a knight's ray."""
    count = np.zeros(mask.shape, int)
    for step in directions(name):
        length = np.sqrt(sum((k * s) ** 2 for k, s in zip(step[::-1], spacing)))
        meets = mask.copy()
        inside = np.ones_like(mask)
        for k in range(1, max(2, int(mm / length))):
            before = tuple((k - 1) * s for s in step)
            at = tuple(k * s for s in step)
            inside = moved(np.ones_like(mask), at)
            meets |= moved(mask, at)
            if max(map(abs, step)) == 2:
                for between in (tuple(int(s / 2) for s in step), tuple(int(np.sign(s)) for s in step)):
                    meets |= moved(mask, tuple(a + b for a, b in zip(before, between))) & inside
        count += meets
    return count >= at_least


def chain(mask, middle, spacing, area=(60, 800), box=45, fill=0.5, aspect=2.6, away=40, length=25):
    """The longest chain of sections, from the last slice to the first one. Returns the mask and its length in mm."""
    sx, sy, sz = spacing
    sections = []
    for plane, body in zip(mask, middle):
        labels, _ = ndimage.label(plane)
        found = []
        for number, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
            part = labels == number
            voxels, height, width = part.sum(), (rows.stop - rows.start) * sy, (columns.stop - columns.start) * sx
            if (body.any() and area[0] <= voxels * (sx * sy) <= area[1] and max(height, width) <= box
                    and voxels / ((rows.stop - rows.start) * (columns.stop - columns.start)) >= fill
                    and max(height, width) <= aspect * min(height, width)
                    and abs(np.nonzero(part)[1].sum() / voxels
                            - np.nonzero(body)[1].sum() / body.sum()) * sx <= away):
                found.append(part)
        sections.append(found)
    chains, best = [], []
    for z in reversed(range(len(mask))):
        taken, kept = set(), []
        for links in chains:
            shared = [((links[-1][1] & part).sum(), i) for i, part in enumerate(sections[z]) if i not in taken]
            most = max(shared, default=(0, 0))
            if most[0] > 0:
                taken.add(most[1])
                kept.append([*links, (z, sections[z][most[1]])])
            elif len(links) > len(best):
                best = links
        chains = kept + [[(z, part)] for i, part in enumerate(sections[z]) if i not in taken]
    for links in chains:
        best = links if len(links) > len(best) else best
    result = np.zeros_like(mask)
    if len(best) * sz >= length:
        for z, part in best:
            result[z] = part
    return result, len(best) * sz


def grown(values, start, bounds, limits, step, spacing, most, growth=0.35, extra=6):
    """The region before the first one that leaks, and its limit."""
    ml = spacing[0] * spacing[1] * spacing[2] / 1000
    region, found, limit = start, None, limits[0]
    while limit <= limits[1]:
        labels, _ = ndimage.label((bounds & (values <= limit)) | start, FACES)
        larger = np.isin(labels, np.unique(labels[start])) & (labels > 0)
        volume, last = larger.sum() * ml, region.sum() * ml
        if volume > most or volume - last > growth * last + extra:
            break
        region, found, limit = larger, limit, limit + step
    return region, found


@pytest.mark.parametrize("name", ["blobs", "noise", "slice", "serpentine", "checkerboard", "hollow", "full"])
def test_enclosed_voxels(run, tmp_path, name):  # noqa: F811
    volume, spacing = STEP_VOLUMES[name]
    if name == "noise":
        volume = np.random.default_rng(1).random(volume.shape) < 0.03
    datasets, values = write(tmp_path / "in", np.where(volume, 50.0, 0.0), spacing=spacing)
    spaces = (*map(float, datasets[0].PixelSpacing[::-1]), spacing[2])
    volume = within(values, 50, 50)
    cases = [("26", 1, 250.0), ("26", 13, 9.0), ("26", 22, 250.0), ("26", 26, 250.0), ("axial-16", 1, 250.0),
             ("axial-16", 9, 5.5), ("axial-16", 13, 250.0), ("axial-16", 16, 1.0)]
    segments = [segment(f"S{i}", f'method = "enclosed"; enclosed = {{ by = "Wall"; directions = "{name}"; at_least ='
                                 f' {at_least}; within_mm = {mm}; }};')
                for i, (name, at_least, mm) in enumerate(cases)]
    segments.append(segment("Wall", 'method = "range"; range = [ 50, 50 ];'))
    run(", ".join(segments), tmp_path / "out", tmp_path / "in")
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert len(masks) == len(cases) + 1
    for case, found in zip(cases, masks):
        wanted = enclosed(volume, *case, spaces)
        assert np.array_equal(found, wanted), f"{(found & ~wanted).sum()} too many, {(wanted & ~found).sum()} missing: {case}"
    seg = pydicom.dcmread(tmp_path / "out" / "seg.dcm")
    parameters = [s.SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters for s in seg.SegmentSequence]
    assert parameters[2] == "segment Wall within 250 mm in at least 22 of 26 directions"
    assert parameters[5] == "segment Wall within 5.5 mm in at least 9 of 16 directions in the slice"


def neck():
    """Returns values of a trunk with a lung below a wandering trachea, bubbles beside it, and a bronchus that leaks."""
    slices, rows, columns = 30, 60, 80
    z, y, x = np.ogrid[:slices, :rows, :columns]
    random = np.random.default_rng(4)
    values = np.full((slices, rows, columns), -1000.0)
    values[np.broadcast_to(((x - 40) / 34) ** 2 + ((y - 30) / 25) ** 2 < 1, values.shape)] = 40
    values[((x - 24) / 12) ** 2 + ((y - 30) / 16) ** 2 + ((z - 6) / 8) ** 2 < 1] = -850
    values[(x - 40 - np.sin(z / 3) * 2) ** 2 + (y - 26) ** 2 + 0 * z < 14 + (z % 5)] = -990
    values[((x - 52) ** 2 + (y - 20) ** 2 < 14) & (z > 8) & (z < 26)] = -985
    values[((x - 40) ** 2 + (y - 42) ** 2 < 11) & (z > 20)] = -995
    values[(abs(y - 26) < 2) & (x > 26) & (x < 44) & (abs(z - 7) < 2)] = -930
    return np.round(values + random.normal(scale=12, size=values.shape))


def test_airways(run, tmp_path):  # noqa: F811
    """The trachea as a chain of sections, and the airways to the limit at which they leak into the lung."""
    datasets, values = write(tmp_path / "in", neck())
    spacing = (2.0, 2.0, 3.0)
    starts = 'sections = { middle_of = "Body"; };'
    limits = 'leak = { limits = [ -980.0, -700.0 ]; step = 20.0; most_ml = 150.0; };'
    run(", ".join([
        segment("Airways", f'method = "grow-until-leak"; from = "Trachea"; within = [ "Body" ]; {limits}'
                           'then = ( { grow_mm = 2.5; } );'),
        segment("Small", 'method = "grow-until-leak"; from = "Trachea"; within = [ "Body" ]; leak = { limits = '
                         '[ -1010.0, -700.0 ]; step = 7.0; most_ml = 30.0; growth = 0.0; extra_ml = 0.5; };'),
        segment("Trachea", f'method = "sections"; from = "Air"; {starts}'),
        segment("Short", f'method = "sections"; from = "Air"; minus = [ "Trachea" ]; sections = {{ middle_of = "Body"; area_mm2 ='
                         ' [ 0.0, 100.0 ]; middle_mm = 100.0; length_mm = 0.0; fill = 0.0; aspect = 99.0; };'),
        segment("Air", 'method = "range"; range = [ -5000, -700 ]; within = [ "Body" ];'),
        segment("Body", 'method = "range"; range = [ -500, 5000 ]; then = ( { keep = 1; }, { fill = "slices"; } );'),
    ]), tmp_path / "out", tmp_path / "in")
    airways, small, trachea, short, air, body = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    expected, mm = chain(air, body, spacing)
    assert 60 < expected.sum() < air.sum() / 2 and mm >= 60
    assert np.array_equal(trachea, expected)
    expected_short, _ = chain(air, body, spacing, area=(0, 100), away=100, length=0, fill=0, aspect=99)
    assert np.array_equal(short, expected_short & ~trachea)
    region, limit = grown(values, trachea, body, (-980, -700), 20, spacing, 150)
    assert trachea.sum() < region.sum() < air.sum() and limit < -700
    near = ndimage.distance_transform_edt(~region, sampling=spacing[::-1]) <= 2.5
    assert np.array_equal(airways, near & body)
    region, other = grown(values, trachea, body, (-1010, -700), 7, spacing, 30, 0, 0.5)
    assert np.array_equal(small, region)
    record = json.loads((tmp_path / "out" / "job.json").read_text())
    by_label = {s["label"]: s for s in record["segments"]}
    assert by_label["Airways"]["leak_limit"] == limit and by_label["Trachea"]["chain_mm"] == mm
    assert by_label["Small"].get("leak_limit") == other
    seg = pydicom.dcmread(tmp_path / "out" / "seg.dcm")
    parameters = seg.SegmentSequence[0].SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters
    assert parameters == ("grown from segment Trachea; limits -980..-700 by 20, at most 150 ml, and per step 0.35 + 6 ml; "
                          f"limit {limit}; within Body; then grow mm 2.5")


@pytest.mark.parametrize("seed", range(3))
def test_chains_and_growth_in_noise(run, tmp_path, seed):  # noqa: F811
    """Sections that merge, split, tie and take each other's continuation, and growth from scattered starts."""
    random = np.random.default_rng(seed)
    spacing = (1.5, 1.0, 2.0)
    field = ndimage.gaussian_filter(random.normal(size=(14, 40, 70)), (1.5, 1, 1))
    datasets, values = write(tmp_path / "in", np.round(field / field.std() * 100), spacing=spacing)
    few = 'sections = { middle_of = "All"; area_mm2 = [ 2.0, 60.0 ]; middle_mm = 200.0; length_mm = 4.0; };'
    leak = 'leak = {{ limits = [ -250.0, {} ]; step = {}; most_ml = {}; growth = {}; extra_ml = {}; }};'
    cases = [(100, 10, 1000, 0.0, 1000.0), (100, 33.5, 9, 0.5, 0.1), (-100, 10, 1000, 0.02, 0.02), (50, 10, 0.001, 9.0, 9.0)]
    segments = [segment(f"Leak {i}", f'method = "grow-until-leak"; from = "Chain"; within = [ "Most" ];'
                                     + leak.format(*map(float, case))) for i, case in enumerate(cases)]
    run(", ".join([*segments, segment("Chain", f'method = "sections"; from = "Low"; {few}'),
                   segment("Low", 'method = "range"; range = [ -5000, -60 ];'),
                   segment("Most", 'method = "range"; range = [ -5000, 150 ];', hidden=True),
                   segment("All", 'method = "range"; range = [ -5000, 5000 ];', hidden=True)]),
        tmp_path / "out", tmp_path / "in")
    *leaks, found, low = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    expected, _ = chain(low, np.ones_like(low), spacing, area=(2, 60), away=200, length=4)
    assert expected.any() and np.array_equal(found, expected)
    for (to, step, most, growth, extra), mask in zip(cases, leaks):
        region, _ = grown(values, found, within(values, -5000, 150), (-250, to), step, spacing, most, growth, extra)
        assert np.array_equal(mask, region & within(values, -5000, 150))


def blocks(values, spacing, mm=2.0):
    """Returns the coarse grid of CT values, in HU with a step of 1/8, its spacing and its factors."""
    factors = [max(1, int(np.floor(mm / s + 0.5))) for s in spacing]
    total, count = np.clip(values, -1024, 3071).astype(np.int64), np.ones(values.shape, np.int64)
    for axis, factor in enumerate(factors[::-1]):
        starts = np.arange(0, total.shape[axis], factor)
        total, count = np.add.reduceat(total, starts, axis), np.add.reduceat(count, starts, axis)
    return (2 * 8 * total + count) // (2 * count) / 8, [s * f for s, f in zip(spacing, factors)], factors


@needs_shared
def test_a_real_chest_on_a_coarse_grid(run, tmp_path):  # noqa: F811
    """The cage of bone, trachea and airways of a patient, in blocks of about 2 mm."""
    source = SHARED / "chest" / "lung-kernel" / "dicom"
    coarse = 'grid_mm = 2.0; method = "range"; range = '
    run(", ".join([
        segment("Airways", 'grid_mm = 2.0; method = "grow-until-leak"; from = "Trachea"; within = [ "Inside" ]; leak = {'
                           ' limits = [ -980.125, -700.125 ]; step = 20.0; most_ml = 150.0; };'),
        segment("Trachea", 'grid_mm = 2.0; method = "sections"; from = "Air"; sections = { middle_of = "Body"; };'),
        segment("Caged", 'grid_mm = 2.0; method = "enclosed"; enclosed = { by = "Bone"; directions = "26"; at_least = 13;'
                         ' within_mm = 60.0; };'),
        segment("Walled", 'grid_mm = 2.0; method = "enclosed"; enclosed = { by = "Bone"; directions = "axial-16"; at_least'
                          ' = 9; within_mm = 100.0; };'),
        segment("Bone", coarse + '[ 200.0, 3071.0 ];'),
        segment("Air", coarse + '[ -1024.0, -700.125 ]; within = [ "Body" ];'),
        segment("Inside", coarse + '[ -1024.0, -400.125 ]; within = [ "Body" ];'),
        segment("Body", coarse + '[ -400.0, 3071.0 ]; then = ( { keep = 1; }, { fill = "slices"; } );'),
    ]), tmp_path / "out", source)
    datasets, _ = peer.read_series(source)
    spacing = json.loads((tmp_path / "out" / "job.json").read_text())["volume"]["spacing_mm"]
    values, spaces, factors = blocks(exact_values(datasets), spacing)
    body = filled(largest(values >= -400))
    air, inside, bone = (values <= -700.125) & body, (values <= -400.125) & body, values >= 200
    trachea, _ = chain(air, body, spaces)
    airways, limit = grown(values, trachea, inside, (-980.125, -700.125), 20, spaces, 150)
    expected = [airways & inside, trachea, enclosed(bone, "26", 13, 60.0, spaces), enclosed(bone, "axial-16", 9, 100.0, spaces),
                bone, air, inside, body]
    for found, wanted in zip(seg_masks(tmp_path / "out" / "seg.dcm", datasets), expected, strict=True):
        for axis, factor in enumerate(factors[::-1]):
            wanted = np.repeat(wanted, factor, axis)
        assert wanted.any() and np.array_equal(found, wanted[tuple(map(slice, found.shape))])
    assert trachea.sum() < airways.sum() and limit is not None
