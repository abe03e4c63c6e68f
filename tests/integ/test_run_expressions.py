"""Segments from values, other segments and steps: `noctule run` compared with scipy.ndimage, voxel for voxel."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pydicom
import pytest
from conftest import BIN, SHARED, SOURCE, assert_valid, needs_shared, phantom
from scipy import ndimage
from test_mask_peers import CORNERS, FACES, ball, bridges_cut, closed, eroded, kept, opened, serpentine, smooth
from test_run import change, exact_values, seg_masks

sys.path.insert(0, str(SOURCE / "tests" / "bench"))
import peer_pipeline as peer  # noqa: E402

TYPE = 'type = { code = "39607008"; scheme = "SCT"; meaning = "Lung"; };'
SIZE, SPACING = (96, 80, 20), (2.0, 2.0, 3.0)


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with a pipeline of these segments. Returns the CompletedProcess."""
    def call(segments, output, *inputs, status=0, more=""):
        config = tmp_path / "noctule.conf"
        config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "p"; segments = ( {segments} );'
                          f' min_slices = 1; {more} }} );')
        result = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "p", "--output", output,
                                 *map(str, inputs)], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return result

    return call


def segment(label, body, hidden=False):
    return f'{{ label = "{label}"; {body} {"hidden = true;" if hidden else TYPE} }}'


def chest():
    """Returns values of a trunk with two lungs, vessels in them, a spine, a bubble in the gut and a table: (slice,
    row, column)."""
    columns, rows, slices = SIZE
    z, y, x = np.ogrid[:slices, :rows, :columns]
    random = np.random.default_rng(11)
    values = np.full((slices, rows, columns), -1000.0)
    trunk = ((x - 48) / 40) ** 2 + ((y - 36) / 27) ** 2 < 1
    lungs = sum(((x - at) / 13) ** 2 + ((y - 34) / 17) ** 2 + ((z - 9) / 8.3) ** 2 < 1 for at in (30, 66)) > 0
    vessels = ndimage.gaussian_filter(random.normal(size=values.shape), 1.2)
    values[np.broadcast_to(trunk, values.shape)] = 40
    values[lungs] = -800
    values[lungs & (vessels > np.quantile(vessels, 0.93))] = 30
    values[np.broadcast_to((abs(x - 48) < 5) & (abs(y - 52) < 5) & (z >= 0), values.shape)] = 600
    values[(x - 48) ** 2 + (y - 20) ** 2 + (z - 15) ** 2 < 9] = -900
    values[np.broadcast_to((abs(y - 68) < 2) & (x > 4) & (x < 92) & (z >= 0), values.shape)] = 100
    return np.round(values + random.normal(scale=25, size=values.shape))


def write(folder, values, edit=lambda number, dataset: None, spacing=SPACING):
    """Writes a series with these values. Every second slice has another slope."""
    slices, rows, columns = values.shape
    files = phantom(folder, "--size", f"{columns}x{rows}x{slices}", "--spacing", ",".join(map(str, spacing)),
                    "--bits", "16", "--signed")
    order = {path: index for index, path in enumerate(
        sorted(files, key=lambda path: float(pydicom.dcmread(path, stop_before_pixels=True).ImagePositionPatient[2])))}

    def put(number, dataset):
        index = order[files[number]]
        slope = 1 if index % 2 else 0.5
        dataset.RescaleSlope, dataset.RescaleIntercept = slope, 0
        dataset.PixelData = np.round(values[index] / slope).astype(np.int16).tobytes()
        edit(index, dataset)

    change(files, put)
    datasets, _ = peer.read_series(folder)
    return datasets, exact_values(datasets)


def largest(mask, count=1, corners=False):
    return kept(mask, corners, lambda rank, size, most: rank < count)


def filled(mask):
    return np.stack([ndimage.binary_fill_holes(plane) for plane in mask])


def within(values, low, high):
    return (values >= low) & (values <= high)


def test_lungs_within_a_body(run, tmp_path):
    """The segment that others use is the last one. Hidden segments count and are not written."""
    datasets, values = write(tmp_path / "in", chest())
    result = run(", ".join([
        segment("Lungs", 'method = "range"; range = [ -1000, -320 ]; within = [ "Body" ];'
                         'then = ( { keep_at_least = 0.2; }, { fill = "slices"; } );'),
        segment("Wall", 'method = "range"; range = [ -200, 3000 ]; within = [ "Body" ]; minus = [ "Lungs", "Bone" ];'
                        'then = ( { open_mm = 4.5; }, { cut_bridges_mm = 6; connectivity = 26; }, { keep = 1; } );'),
        segment("Bone", 'method = "range"; range = [ 300, 3000 ]; then = ( { close_mm = 4; }, { drop_below_ml = 1; } );',
                hidden=True),
        segment("Body", 'method = "range"; range = [ -500, 5000 ]; then = ( { keep = 1; }, { fill = "slices"; } );',
                hidden=True),
        segment("Rind", 'method = "range"; range = [ -5000, 5000 ]; within = [ "Grown" ]; minus = [ "Lungs" ];'),
        segment("Grown", 'method = "range"; range = [ -5000, 5000 ]; from = "Lungs";'
                         'then = ( { grow_mm = 4; }, { fill = "volume"; }, { shrink_mm = 2; } );', hidden=True),
    ]), tmp_path / "out", tmp_path / "in", more='results = [ "seg", "sr" ]; texture = { };')

    body = filled(largest(within(values, -500, 5000)))
    air = within(values, -1000, -320) & body
    lungs = filled(kept(air, False, lambda rank, size, most: size >= 0.2 * most)) & body
    bone = closed(within(values, 300, 3000), ball(SPACING, 4.0))
    bone = kept(bone, False, lambda rank, size, most: size * 0.012 >= 1)
    wall = within(values, -200, 3000) & body & ~lungs & ~bone
    wall = bridges_cut(opened(wall, ball(SPACING, 4.5)), ball(SPACING, 6.0), CORNERS)
    wall = largest(wall)
    grown = ndimage.binary_fill_holes(ndimage.binary_dilation(lungs, ball(SPACING, 4.0)))
    grown = eroded(grown, ball(SPACING, 2.0))
    expected = [lungs, wall, grown & ~lungs]
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert len(masks) == 3
    for found, wanted in zip(masks, expected):
        assert 0 < wanted.sum() < wanted.size
        assert np.array_equal(found, wanted)
    assert ndimage.label(air, FACES)[1] > 2 and (filled(air) & ~lungs).any()  # the bubble was dropped

    seg = pydicom.dcmread(tmp_path / "out" / "seg.dcm")
    assert [s.SegmentLabel for s in seg.SegmentSequence] == ["Lungs", "Wall", "Rind"]
    assert_valid(tmp_path / "out" / "seg.dcm")
    parameters = seg.SegmentSequence[1].SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters
    assert parameters == ("range -200..3000; within Body; minus Lungs, Bone; then open mm 4.5, "
                          "cut bridges mm 6 26-connected, keep 1")
    record = json.loads((tmp_path / "out" / "job.json").read_text())
    assert [(s.get("number"), s.get("hidden"), s["label"], s["voxels"]) for s in record["segments"]] == [
        (1, None, "Lungs", lungs.sum()), (2, None, "Wall", wall.sum()), (None, True, "Bone", bone.sum()),
        (None, True, "Body", body.sum()), (3, None, "Rind", (grown & ~lungs).sum()), (None, True, "Grown", grown.sum())]
    assert record["volume"]["segmented_voxels"] == (lungs | wall | grown).sum()
    features = json.loads((tmp_path / "out" / "features.json").read_text())
    assert sorted({(region["segment_number"], region["label"]) for region in features}) == [
        (1, "Lungs"), (2, "Wall"), (3, "Rind")]
    assert "(hidden)" in result.stdout


def hollow(shape):
    """Boxes with walls of one voxel, which touch all faces of the volume or no face."""
    distance = np.minimum.reduce([np.minimum(i, size - 1 - i) for i, size in zip(np.indices(shape), shape)])
    return distance % 3 == 0


STEP_VOLUMES = {
    "blobs": (smooth((13, 40, 67), 2.0, 0.45, 1), (0.8, 1.3, 2.5)),
    "sponge": (smooth((9, 33, 64), 1.1, 0.6, 2), (1.0, 0.7, 1.9)),
    "noise": (np.random.default_rng(5).random((8, 30, 70)) < 0.4, (1.1, 1.0, 0.6)),
    "slice": (smooth((1, 40, 130), 2, 0.5, 4), (0.5, 0.6, 5.0)),
    "serpentine": (serpentine((7, 24, 66)), (1.0, 1.0, 1.5)),
    "checkerboard": (np.indices((5, 21, 65)).sum(axis=0) % 2 == 0, (1.0, 0.7, 2.0)),
    "hollow": (hollow((11, 26, 65)), (1.2, 0.9, 2.2)),
    "full": (np.ones((4, 20, 30), bool), (1.0, 1.0, 3.0)),
}


class Reference:
    """The steps as defined in noctule.conf(5), "Segments, voxel for voxel"."""

    def __init__(self, spacing):
        self.spacing = spacing

    def step(self, mask, name, amount, connectivity):
        corners = connectivity == 26
        near = CORNERS if corners else FACES
        ml = self.spacing[0] * self.spacing[1] * self.spacing[2] / 1000
        if name.endswith("_mm"):
            structure = ball(self.spacing, amount, connectivity == "slice")
            return {"grow_mm": ndimage.binary_dilation, "shrink_mm": eroded, "open_mm": opened, "close_mm": closed,
                    "cut_bridges_mm": lambda m, s: bridges_cut(m, s, near)}[name](mask, structure)
        if name == "fill":
            if amount == '"volume"':
                return ndimage.binary_fill_holes(mask, near)
            return np.stack([ndimage.binary_fill_holes(plane, near[1]) for plane in mask])
        if not mask.any():
            return mask
        stays = {"keep": lambda rank, size, most: rank < amount,
                 "keep_at_least": lambda rank, size, most: size >= amount * most,
                 "drop_below_ml": lambda rank, size, most: size * ml >= amount}[name]
        return kept(mask, corners, stays)

    def steps(self, mask, steps, bounds):
        for step in steps:
            mask = self.step(mask, *step) & bounds
        return mask


def chains(spacing):
    """Returns each step alone, and some chains of steps."""
    near, far = 1.01 * min(spacing), 2.3 * max(spacing[:2])
    ml = spacing[0] * spacing[1] * spacing[2] / 1000
    single = [(name, mm, 6) for name in ("grow_mm", "shrink_mm", "open_mm", "close_mm") for mm in (near, far)]
    for connectivity in (6, 26):
        single += [("keep", 1, connectivity), ("keep", 3, connectivity), ("keep_at_least", 0.1, connectivity),
                   ("drop_below_ml", 9 * ml, connectivity), ("fill", '"slices"', connectivity),
                   ("fill", '"volume"', connectivity), ("cut_bridges_mm", near, connectivity),
                   ("cut_bridges_mm", far, connectivity)]
    single += [(name, far, "slice") for name in ("grow_mm", "shrink_mm", "open_mm", "close_mm", "cut_bridges_mm")]
    random = np.random.default_rng(8)
    return [[step] for step in single] + [[single[i] for i in random.choice(len(single), 4)] for _ in range(8)]


def then(steps):
    parts = (f"{{ {name} = {amount}; space = \"slice\"; }}" if connectivity == "slice"
             else f"{{ {name} = {amount}; }}" if connectivity == 6 or name.endswith(("grow_mm", "shrink_mm"))
             else f"{{ {name} = {amount}; connectivity = {connectivity}; }}" for name, amount, connectivity in steps)
    return f"then = ( {', '.join(parts)} );"


@pytest.mark.parametrize("name", STEP_VOLUMES)
def test_each_step_equals_its_definition_in_the_manual(run, tmp_path, name):
    """Ranges, level sets, each step and chains of steps, alone and within, without and cut to other segments."""
    volume, spacing = STEP_VOLUMES[name]
    values = np.where(volume, 50, 0) + np.random.default_rng(3).integers(0, 10, volume.shape)
    datasets, values = write(tmp_path / "in", values.astype(float), spacing=spacing)
    spaces = (*map(float, datasets[0].PixelSpacing[::-1]), spacing[2])
    reference = Reference(spaces)
    other = {"Inner": within(values, 2, 57), "Hole": within(values, 9, 50), "Cut": within(values, 0, 58)}
    bounds = other["Inner"] & ~other["Hole"] & other["Cut"]
    limits = 'within = [ "Inner" ]; minus = [ "Hole" ]; intersect = [ "Cut" ];'
    box = ("shapes = ( { kind = \"box\"; center = { fraction = [ 0.4, 0.5, 0.5 ]; };"
           "radius_voxels = [ 8.0, 6.0, 3.0 ]; } );")
    at = np.indices(volume.shape)[::-1]
    start = np.logical_and.reduce([abs(i - share * (size - 1)) <= radius for i, share, size, radius in zip(
        at, (0.4, 0.5, 0.5), volume.shape[::-1], (8, 6, 3))])
    soft = within(values, 50, 59)
    segments, expected = [], []

    def add(body, mask):
        segments.append(segment(f"S{len(segments)}", body))
        expected.append(mask)

    for steps in chains(spaces):
        add(f'method = "range"; range = [ 50, 59 ]; {then(steps)}', reference.steps(soft, steps, True))
        add(f'method = "range"; range = [ 50, 59 ]; {limits} {then(steps)}',
            reference.steps(soft & bounds, steps, bounds))
    steps = chains(spaces)[3:5]
    add(f'method = "range"; range = [ 3, 55 ]; from = "Cut"; within = [ "Inner" ]; {then(steps[0])}',
        reference.steps(within(values, 3, 55) & other["Cut"] & other["Inner"], steps[0], other["Inner"]))
    add(f'range = [ 50, 59 ]; {box}', peer.level_set(soft, start))
    add(f'range = [ 50, 59 ]; {box} {limits} {then(steps[1])}',
        reference.steps(peer.level_set(soft & other["Inner"], start) & bounds, steps[1], bounds))
    add('range = [ 50, 56 ]; from = "Hole"; within = [ "Inner", "Cut" ];',
        peer.level_set(within(values, 50, 56) & other["Inner"] & other["Cut"], other["Hole"]))
    for label, (low, high) in {"Inner": (2, 57), "Hole": (9, 50), "Cut": (0, 58)}.items():
        segments.append(segment(label, f'method = "range"; range = [ {low}, {high} ];', hidden=True))
    run(", ".join(segments), tmp_path / "out", tmp_path / "in")
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert len(masks) == len(expected) and any(mask.any() for mask in expected)
    for body, found, wanted in zip(segments, masks, expected):
        assert np.array_equal(found, wanted), f"{(found & ~wanted).sum()} too many, {(wanted & ~found).sum()} missing: {body}"


def test_methods_use_each_other(run, tmp_path):
    """A level set from a range, one from that level set, and a range cut to it. The level sets of the lane run three
    times."""
    datasets, values = write(tmp_path / "in", chest())
    run(", ".join([
        segment("Third", 'range = [ -1000, 80 ]; from = "Second"; intersect = [ "Body" ];'),
        segment("Second", 'range = [ -1000, -320 ]; from = "Seed"; then = ( { fill = "volume"; } );'),
        segment("Seed", 'method = "range"; range = [ -1000, -820 ]; within = [ "First" ]; then = ( { keep = 1; } );',
                hidden=True),
        segment("First", 'range = [ -1000, -320 ];'
                         'shapes = ( { center = { voxel = [ 30.0, 34.0, 9.0 ]; }; radius_voxels = 4.0; } );'),
        segment("Body", 'method = "range"; range = [ -500, 5000 ]; then = ( { keep = 1; }, { fill = "slices"; } );',
                hidden=True),
    ]), tmp_path / "out", tmp_path / "in", more='results = [ "seg", "codes" ];')
    first = peer.level_set(within(values, -1000, -320), peer.sphere(values.shape, (30, 34, 9), 4))
    seed = largest(within(values, -1000, -820) & first)
    second = ndimage.binary_fill_holes(peer.level_set(within(values, -1000, -320), seed))
    body = filled(largest(within(values, -500, 5000)))
    found = peer.level_set(within(values, -1000, 80), second)
    third = found & body
    assert third.sum() > second.sum() > first.sum() > seed.sum() > 0 and third.sum() < found.sum()
    for made, wanted in zip(seg_masks(tmp_path / "out" / "seg.dcm", datasets), [third, second, first]):
        assert np.array_equal(made, wanted)
    assert {path.name for path in (tmp_path / "out").glob("codes-*")} == {"codes-1.nrrd", "codes-2.nrrd", "codes-3.nrrd"}


def test_fuzzy_objects_are_cut(run, tmp_path):
    """As found, and after subtraction of another segment and opening. Steps apply to the result of the method."""
    values = chest()
    files = phantom(tmp_path / "in", "--size", "96x80x20", "--spacing", "2,2,3", "--bits", "16", "--signed")
    order = sorted(files, key=lambda path: float(pydicom.dcmread(path).ImagePositionPatient[2]))

    def put(number, dataset):
        dataset.RescaleIntercept = 0
        dataset.PixelData = values[order.index(files[number])].astype(np.int16).tobytes()

    change(files, put)
    datasets, _ = peer.read_series(tmp_path / "in")
    fuzzy = ('method = "fuzzy-connectedness"; seeds = ( { voxel = [ 48, 40, 10 ]; } ); object_mean = 40.0; '
             'object_sigma = 60.0; homogeneity_sigma = 60.0;')
    run(", ".join([
        segment("Cut", fuzzy + 'minus = [ "Air" ]; then = ( { open_mm = 3; }, { fill = "volume"; } );'),
        segment("Air", 'method = "range"; range = [ -2000, -320 ]; then = ( { grow_mm = 4; } );'),
        segment("Found", fuzzy),
    ]), tmp_path / "out", tmp_path / "in")
    cut_off, air, found = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert np.array_equal(air, ndimage.binary_dilation(values <= -320, ball(SPACING, 4.0)))
    expected = ndimage.binary_fill_holes(opened(found & ~air, ball(SPACING, 3.0))) & ~air
    assert 0 < expected.sum() < found.sum() and np.array_equal(cut_off, expected)


def test_padding_is_never_in_a_range(run, tmp_path):
    def pad(_, dataset):
        pixels = dataset.pixel_array.copy()
        pixels[10:20] = -40
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "SS", -40)

    datasets, values = write(tmp_path / "in", chest(), pad)
    run(segment("Soft", 'method = "range"; range = [ -200, 200 ];'), tmp_path / "out", tmp_path / "in")
    padded = np.stack([d.pixel_array for d in datasets]) == -40
    assert (padded & within(values, -200, 200)).any()
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], within(values, -200, 200) & ~padded)


def test_segments_without_voxels_are_an_empty_result(run, tmp_path):
    """Hidden segments do not count."""
    write(tmp_path / "in", chest())
    result = run(", ".join([segment("None", 'method = "range"; range = [ -5000, 5000 ]; minus = [ "All" ];'),
                            segment("All", 'method = "range"; range = [ -5000, 5000 ];', hidden=True)]),
                 tmp_path / "out", tmp_path / "in", status=7)
    assert "EMPTY" in result.stderr
    assert not (tmp_path / "out" / "seg.dcm").exists()


def test_level_sets_find_their_start(run, tmp_path):
    """The largest component in range within a body, which excludes the larger air around it, and the middle."""
    datasets, values = write(tmp_path / "in", chest())
    run(", ".join([
        segment("Lung", 'range = [ -1000, -320 ]; auto = "largest"; within = [ "Body" ]; then = ( { fill = "volume"; } );'),
        segment("Air", 'range = [ -2000, -320 ]; auto = "largest";'),
        segment("Middle", 'range = [ -200, 200 ]; auto = "center";'),
        segment("Body", 'method = "range"; range = [ -500, 5000 ]; then = ( { keep = 1; }, { fill = "slices"; } );',
                hidden=True)]), tmp_path / "out", tmp_path / "in")
    body = filled(largest(within(values, -500, 5000)))
    lung = peer.level_set(within(values, -1000, -320) & body, largest(within(values, -1000, -320) & body))
    air = peer.level_set(within(values, -2000, -320), largest(within(values, -2000, -320)))
    middle = np.zeros(values.shape, bool)
    middle[9:11, 39:41, 47:49] = True
    middle = peer.level_set(within(values, -200, 200), middle)
    expected = [ndimage.binary_fill_holes(lung) & body, air, middle]
    for found, wanted in zip(seg_masks(tmp_path / "out" / "seg.dcm", datasets), expected):
        assert 0 < wanted.sum() < wanted.size and np.array_equal(found, wanted)
    assert not (air & lung).any()


@pytest.mark.parametrize("alike", [False, True])
def test_level_sets_start_where_the_mean_is_extreme(run, tmp_path, alike):
    """Boxes of 3 x 3 x 1 and 5 x 5 x 3 voxels. No start if each box leaves the volume or holds padding."""
    def edit(number, dataset):
        pixels = dataset.pixel_array.copy()
        if alike:
            pixels = np.round(pixels * float(dataset.RescaleSlope)).astype(np.int16)
            dataset.RescaleSlope = 1
        else:
            dataset.RescaleIntercept = number % 3 * 7 - 1
        pixels[40:44, 40:60] = -2000
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "SS", -2000)

    datasets, values = write(tmp_path / "in", chest(), edit)
    run(", ".join([
        segment("Bone", 'range = [ 300, 3000 ]; auto = "highest"; auto_mm = 10;'),
        segment("Vessel", 'range = [ -2000, -400 ]; auto = "highest"; auto_mm = 4; within = [ "Air" ];'),
        segment("Air", 'range = { sigma = 3; }; auto = "lowest"; auto_mm = 8; then = ( { grow_mm = 6; } );')]),
        tmp_path / "out", tmp_path / "in")
    padded = np.stack([d.pixel_array for d in datasets]) == -2000
    assert padded.any()

    def start(sign, mm, mask=True):
        reach = [int(mm / 2 / step) for step in reversed(SPACING)]
        window = np.lib.stride_tricks.sliding_window_view
        shape = [2 * n + 1 for n in reach]
        if alike:
            mean = sign * window(values.astype(np.int64), shape).sum((3, 4, 5)).astype(float)
        else:
            slopes = [float(d.RescaleSlope) for d in datasets]
            intercepts = [float(d.RescaleIntercept) for d in datasets]
            stored = np.stack([d.pixel_array.astype(np.int64) for d in datasets])
            planes = window(stored, shape[1:], (1, 2)).sum((3, 4)).astype(float)
            planes = np.stack([s * plane + i * (shape[1] * shape[2])
                               for s, i, plane in zip(slopes, intercepts, planes)])
            mean = np.zeros((len(planes) - 2 * reach[0], *planes.shape[1:]))
            for k in range(shape[0]):
                mean = mean + planes[k:k + mean.shape[0]]
            mean = sign * mean
        mean[window(padded, shape).any((3, 4, 5))] = -np.inf
        whole = np.full(values.shape, -np.inf)
        whole[tuple(slice(n, size - n) for n, size in zip(reach, values.shape))] = mean
        whole[~np.broadcast_to(mask, values.shape)] = -np.inf
        return largest(whole == whole.max())

    def sigma(region, share):
        chosen = values[region]
        return within(values, chosen.mean() - share * chosen.std(), chosen.mean() + share * chosen.std()) & ~padded

    low, high = start(-1, 8), start(1, 10)
    air = ndimage.binary_dilation(peer.level_set(sigma(low, 3), low), ball(SPACING, 6.0))
    vessel = peer.level_set(within(values, -2000, -400) & ~padded & air, start(1, 4, air))
    bone = peer.level_set(within(values, 300, 3000) & ~padded, high)
    for found, wanted in zip(seg_masks(tmp_path / "out" / "seg.dcm", datasets), [bone, vessel, air]):
        assert 0 < wanted.sum() < wanted.size and np.array_equal(found, wanted)


def percentile(values, share):
    """Returns the smallest value that at least that many of 100 values do not exceed."""
    ordered, counts = np.unique(values, return_counts=True)
    return ordered[np.argmax(np.cumsum(counts) >= share / 100 * values.size)]


def otsu(values, classes):
    """Returns the first and last value of each class, found by trying all splits into classes."""
    ordered, counts = np.unique(values, return_counts=True)
    numbers = np.concatenate([[0], np.cumsum(counts)])
    sums = np.concatenate([[0], np.cumsum((ordered - values.mean()) * counts)])

    def gain(first, end):
        return (sums[end] - sums[first]) ** 2 / (numbers[end] - numbers[first])

    best = max(itertools.combinations(range(1, len(ordered)), classes - 1),
               key=lambda splits: sum(gain(a, b) for a, b in zip((0, *splits), (*splits, len(ordered)))))
    return [(ordered[a], ordered[b - 1]) for a, b in zip((0, *best), (*best, len(ordered)))]


def coarse(values):
    """Returns few distinct values, so that all classes can be tried."""
    return np.round(values / 50) * 50


@pytest.mark.parametrize("padded", [False, True])
def test_relative_ranges(run, tmp_path, padded):
    def pad(_, dataset):
        pixels = dataset.pixel_array.copy()
        pixels[:7] = -2000
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "SS", -2000)

    datasets, values = write(tmp_path / "in", coarse(chest()), pad if padded else lambda number, dataset: None)
    start = "shapes = ( { center = { voxel = [ 48.0, 20.0, 10.0 ]; }; radius_voxels = 7.0; } );"
    result = run(", ".join([
        segment("Percentile", 'method = "range"; range = { percentile = [ 20.0, 90.5 ]; of = "Body"; };'
                              'within = [ "Body" ];'),
        segment("Middle", 'method = "range"; range = { otsu = 3; class = 2; };'),
        segment("Sigma", f'range = {{ sigma = 1.5; }}; {start}'),
        segment("Body sigma", 'method = "range"; range = { sigma = 0.5; of = "Body"; };'),
        segment("Warm", f'range = {{ of_max = 0.05; of = "Body"; }}; from = "Sigma"; {start}'),
        segment("Hot", 'method = "range"; range = { of_max = 0.75; };'),
        segment("Body", 'method = "range"; range = [ -500, 5000 ]; then = ( { keep = 1; }, { fill = "slices"; } );',
                hidden=True)]), tmp_path / "out", tmp_path / "in")
    stored = np.stack([d.pixel_array for d in datasets])
    real = stored != -2000 if padded else np.ones(values.shape, bool)
    body = filled(largest(within(values, -500, 5000) & real))
    region = values[body & real]
    ranges = {"Percentile": (percentile(region, 20), percentile(region, 90.5)),
              "Middle": otsu(values[real], 3)[1]}
    initial = peer.sphere(values.shape, (48, 20, 10), 7)
    for label, chosen, share in (("Sigma", values[initial & real], 1.5), ("Body sigma", region, 0.5)):
        ranges[label] = (chosen.mean() - share * chosen.std(), chosen.mean() + share * chosen.std())
    ranges["Warm"] = (0.05 * region.max(), np.inf)
    ranges["Hot"] = (0.75 * values[real].max(), np.inf)
    found = {label: within(values, *ends) & real for label, ends in ranges.items()}
    found["Percentile"] &= body
    found["Sigma"] = peer.level_set(found["Sigma"], initial)
    found["Warm"] = peer.level_set(found["Warm"], initial | found["Sigma"])
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    record = json.loads((tmp_path / "out" / "job.json").read_text())
    seg = pydicom.dcmread(tmp_path / "out" / "seg.dcm")
    for label, mask, told, item in zip(found, masks, record["segments"], seg.SegmentSequence):
        assert 0 < found[label].sum() < values.size, label
        assert np.array_equal(mask, found[label]), label
        low, high = ranges[label]
        assert told["range_from"] == pytest.approx(low, rel=1e-8) and "range_from" in told["measured"]
        assert told.get("range_to") == (pytest.approx(high, rel=1e-8) if np.isfinite(high) else None)
        parameters = item.SegmentationAlgorithmIdentificationSequence[0].AlgorithmParameters
        words = f"range {low:.9g}..{high:.9g} (" if np.isfinite(high) else f"range from {low:.9g} ("
        assert parameters.startswith(words) and item.SegmentDescription.startswith(words)
    assert record["segments"][0]["measured_voxels"] == region.size
    assert record["segments"][1]["measured_voxels"] == real.sum()
    assert "Percentile: measured range from" in result.stdout


@pytest.mark.parametrize("segments, words", [
    (segment("A", 'method = "range"; range = { of_max = 0.5; of = "None"; };') + ", "
     + segment("None", 'method = "range"; range = [ 20000, 20001 ];'), 'segment "A" has no range: it is computed from the values of None'),
    (segment("A", 'range = { otsu = 8; class = 1; of = "Two"; };'
                  'shapes = ( { center = { voxel = [ 5, 5, 5 ]; }; radius_voxels = 3; } );') + ", "
     + segment("Two", 'method = "range"; range = [ 0, 50 ];'), 'Two has 2 different values, which cannot be 8 classes'),
])
def test_empty_ranges_are_refused(run, tmp_path, segments, words):
    write(tmp_path / "in", coarse(chest()))
    result = run(segments, tmp_path / "out", tmp_path / "in", status=1)
    assert "RANGE_UNDEFINED" in result.stderr and words in result.stderr
    assert not list((tmp_path / "out").glob("*.dcm"))


@needs_shared
def test_a_phantom_of_a_head(run, tmp_path):
    """ct-head-5mm: the plastic, its filled holes, and their content."""
    source = SHARED / "ct-head-5mm"
    run(", ".join([
        segment("Head", 'method = "range"; range = [ -300, 4000 ]; then = ( { open_mm = 3; }, { keep = 1; },'
                        '{ fill = "slices"; } );'),
        segment("Inside", 'method = "range"; range = [ 0, 80 ]; within = [ "Head" ];'
                          'then = ( { open_mm = 2; }, { keep = 3; connectivity = 26; } );')]),
        tmp_path / "out", source)
    datasets, _ = peer.read_series(source)
    values = exact_values(datasets)
    spacing = json.loads((tmp_path / "out" / "job.json").read_text())["volume"]["spacing_mm"]
    head = filled(largest(opened(within(values, -300, 4000), ball(spacing, 3.0))))
    inside = opened(within(values, 0, 80) & head, ball(spacing, 2.0))
    inside = largest(inside, 3, True)
    assert 0 < inside.sum() < head.sum()
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert np.array_equal(masks[0], head) and np.array_equal(masks[1], inside)
