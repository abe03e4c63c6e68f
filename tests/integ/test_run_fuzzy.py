"""Fuzzy connectedness, alone and together with level sets: `noctule run` and the daemon compared with the definition
in numpy."""

import json
import math
import subprocess
import sys

import highdicom
import numpy as np
import pydicom
import pytest
import scipy.sparse
from conftest import BIN, SHARED, SOURCE, assert_valid, drop, needs_shared, phantom, wait_for
from test_run import assert_no_file_left, change, exact_values, read_nrrd, seg_masks, state_codes

sys.path.insert(0, str(SOURCE / "tests" / "bench"))
import peer_pipeline as peer  # noqa: E402

PIPELINES = """
pipelines = (
  {{ name = "mixed";
    segments = (
      {{ label = "Given"; method = "fuzzy-connectedness";
        seeds = ( {{ fraction = [ 0.5, 0.5, 0.5 ]; }}, {{ voxel = [ 12, 20, 3 ]; }} );
        object_mean = 40.0; object_sigma = 25.5; homogeneity_sigma = 10.25; weight = 0.375; threshold = 0.625;
        connectedness_map = true; {type} }},
      {{ label = "Range"; range = [ 0.0, 80.0 ];
        shapes = ( {{ center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_voxels = 3.0; }} ); {type} }},
      {{ label = "Measured"; method = "fuzzy-connectedness"; seeds = ( {{ fraction = [ 0.5, 0.5, 0.5 ]; }} );
        estimate_voxels = 3; threshold = 0.55; connectedness_map = true; {type} }} );
    min_slices = 1; {extra} }},
  {{ name = "relative"; relative_connectedness = true;
    segments = (
      {{ label = "Soft"; method = "fuzzy-connectedness"; seeds = ( {{ fraction = [ 0.5, 0.5, 0.5 ]; }} );
        object_mean = 40.0; object_sigma = 400.0; homogeneity_sigma = 1000.0; {type} }},
      {{ label = "Air"; method = "fuzzy-connectedness"; seeds = ( {{ voxel = [ 0, 0, 0 ]; }} );
        object_mean = -1000.0; object_sigma = 200.0; homogeneity_sigma = 1000.0; {type} }} ); }},
  {{ name = "grown"; results = [ "seg", "codes" ];
    segments = (
      {{ label = "Core"; method = "fuzzy-connectedness"; seeds = ( {{ fraction = [ 0.5, 0.5, 0.5 ]; }} );
        object_mean = 40.0; object_sigma = 10.0; homogeneity_sigma = 5.0; threshold = 0.75;
        connectedness_map = true; {type} }},
      {{ label = "Grown"; range = [ 20.0, 60.0 ]; from = "Core";
        shapes = ( {{ center = {{ voxel = [ 2.0, 2.0, 2.0 ]; }}; radius_voxels = 2.5; }} ); {type} }} ); }},
  {{ name = "outside";
    segments = (
      {{ label = "Far"; method = "fuzzy-connectedness";
        seeds = ( {{ voxel = [ 0, 0, 0 ]; }}, {{ mm = [ 0.0, 0.0, 5000.0 ]; }} ); {type} }} ); }},
  {{ name = "white-matter";
    segments = (
      {{ label = "White matter"; method = "fuzzy-connectedness"; seeds = ( {{ fraction = [ 0.4, 0.45, 0.6 ]; }} );
        estimate_voxels = 3; connectedness_map = true; {type} }} ); }} );
"""
TYPE = 'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };'


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with the pipelines above. Returns the CompletedProcess."""
    config = tmp_path / "noctule.conf"
    config.write_text(f'root = "{tmp_path / "root"}";' + PIPELINES.format(type=TYPE, extra=""))

    def call(pipeline, output, *inputs, status=0):
        result = subprocess.run(
            [BIN / "noctule", "--config", config, "run", "--pipeline", pipeline, "--output", output,
             *map(str, inputs)], text=True, capture_output=True, timeout=300)
        assert result.returncode == status, result.stdout + result.stderr
        return result

    return call


class Object:
    """Wang 2016 for stored values (slice, row, column), with the Gaussians in real-world units."""

    def __init__(self, stored, slope, intercept, mean, sigma, homogeneity, weight, threshold, padding=None):
        self.stored = stored.astype(np.int64)
        self.threshold = math.floor(65535 * threshold)
        self.padding = padding
        self.low = int(self.stored.min())
        span = int(self.stored.max()) - self.low
        mean, sigma, homogeneity = (mean - intercept) / slope, sigma / abs(slope), homogeneity / abs(slope)
        self.first = np.array([weight * self.gaussian((s + 2 * self.low) / 2 - mean, sigma)
                               for s in range(2 * span + 1)])
        self.second = np.array([(1 - weight) * self.gaussian(d / 2, homogeneity) for d in range(span + 1)])

    @staticmethod
    def gaussian(distance, sigma):
        return math.exp(-(distance * distance) / (2 * (sigma * sigma)))

    def affinities(self, axis):
        """Returns the affinity of each voxel with the next one along the axis."""
        count = self.stored.shape[axis]
        a, b = (np.take(self.stored, range(*ends), axis) for ends in ((0, count - 1), (1, count)))
        both = self.first[a + b - 2 * self.low] + self.second[abs(a - b)]
        values = np.minimum(np.floor(65535 * both), 65535).astype(np.int64)
        return values if self.padding is None else np.where((a == self.padding) | (b == self.padding), 0, values)

    def connectedness(self, seeds):
        """Relaxes until convergence. Axes of the seeds are those of the array."""
        connectedness = np.zeros(self.stored.shape, np.int64)
        for seed in seeds:
            connectedness[tuple(seed)] = 65535
        edges = [self.affinities(axis) for axis in range(3)]
        while True:
            before = connectedness.copy()
            for axis in range(3):
                moved = np.moveaxis(connectedness, axis, 0)
                edge = np.moveaxis(edges[axis], axis, 0)
                for i in range(1, len(moved)):
                    moved[i] = np.maximum(moved[i], np.minimum(moved[i - 1], edge[i - 1]))
                for i in range(len(moved) - 2, -1, -1):
                    moved[i] = np.maximum(moved[i], np.minimum(moved[i + 1], edge[i]))
            if np.array_equal(connectedness, before):
                return connectedness


def middle(shape):
    return [math.floor(0.5 * (n - 1) + 0.5) for n in shape]


def measure(values, seed, reach):
    """Returns mean, standard deviation and root mean square of half differences in the cube around a seed."""
    cube = values[tuple(slice(max(0, at - reach), at + reach + 1) for at in seed)]
    halves = np.concatenate([np.diff(cube, axis=axis).ravel() for axis in range(3)]) / 2
    return cube.mean(), cube.std(), math.sqrt((halves ** 2).mean()), cube.size


def read(folder):
    datasets, _ = peer.read_series(folder)
    return datasets, np.stack([d.pixel_array for d in datasets]), exact_values(datasets)


def maps_of(path, datasets):
    """Returns the stored values of a FRACTIONAL SEG, (segment, slice, row, column), read by highdicom."""
    seg = highdicom.seg.segread(path)
    assert seg.segmentation_type == highdicom.seg.SegmentationTypeValues.FRACTIONAL
    pixels = seg.get_pixels_by_source_instance(
        [d.SOPInstanceUID for d in datasets], combine_segments=False, assert_missing_frames_are_empty=True,
        rescale_fractional=False)
    return np.moveaxis(pixels, 3, 0)


def eight_bits(connectedness):
    return (connectedness * 510 + 65535) // 131070


def expect(stored, values, rescale, padding=None):
    """Returns the three masks and two maps of "mixed", and its measurements."""
    centre = middle(values.shape)
    given = Object(stored, *rescale, 40, 25.5, 10.25, 0.375, 0.625, padding)
    given_map = given.connectedness([centre, (3, 20, 12)])
    measured = measure(values, centre, 3)
    other = Object(stored, *rescale, *measured[:3], 0.5, 0.55, padding)
    other_map = other.connectedness([centre])
    start = peer.sphere(values.shape, [(n - 1) / 2 for n in reversed(values.shape)], 3)
    level_set = peer.level_set((values >= 0) & (values <= 80), start)
    masks = [given_map > given.threshold, level_set, other_map > other.threshold]
    return masks, [given_map, other_map], measured


@pytest.mark.parametrize("options", [
    ("--size", "40x36x9"),
    ("--size", "63x41x7", "--bits", "16", "--signed"),
    ("--size", "33x56x8", "--bits", "16"),
], ids=" ".join)
def test_objects_and_maps_are_the_reference(run, tmp_path, options):
    phantom(tmp_path / "in", *options)
    output = tmp_path / "out"
    run("mixed", output, tmp_path / "in")
    assert sorted(p.name for p in output.iterdir()) == ["job.json", "preview.png", "seg-fractional.dcm", "seg.dcm"]
    datasets, stored, values = read(tmp_path / "in")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    masks, maps, measured = expect(stored, values, rescale)
    found = seg_masks(output / "seg.dcm", datasets)
    for number, mask in enumerate(masks):
        assert mask.any() and not mask.all(), number
        assert np.array_equal(found[number], mask), number
    assert np.array_equal(maps_of(output / "seg-fractional.dcm", datasets), eight_bits(np.stack(maps)))
    assert_valid(output / "seg.dcm")
    assert_valid(output / "seg-fractional.dcm")

    job = json.loads((output / "job.json").read_text())
    assert [r["kind"] for r in job["results"]] == ["seg", "seg-fractional"]
    assert pydicom.dcmread(output / "seg-fractional.dcm").SeriesNumber == 9007
    given, level_set, estimated = job["segments"]
    assert [s["voxels"] for s in job["segments"]] == [int(m.sum()) for m in masks]
    assert level_set["method"] == "level-set" and "object_mean" not in level_set
    assert given["method"] == "fuzzy-connectedness" and given["measured"] == [] and given["object_sigma"] == 25.5
    assert estimated["measured"] == ["object_mean", "object_sigma", "homogeneity_sigma"]
    numbers = [estimated[key] for key in estimated["measured"]]
    assert numbers == pytest.approx(measured[:3], rel=1e-8) and estimated["measured_voxels"] == measured[3]
    assert job["note"].startswith("Measured: measured mean ")


def test_objects_record_their_settings(run, tmp_path):
    phantom(tmp_path / "in", "--size", "40x36x9")
    told = run("mixed", tmp_path / "out", tmp_path / "in").stdout
    assert "Measured: measured mean " in told
    binary, fractional = (pydicom.dcmread(tmp_path / "out" / f"seg{kind}.dcm") for kind in ("", "-fractional"))
    assert [s.SegmentLabel for s in binary.SegmentSequence] == ["Given", "Range", "Measured"]
    assert [s.SegmentLabel for s in fractional.SegmentSequence] == ["Given", "Measured"]
    for segment in (*binary.SegmentSequence, *fractional.SegmentSequence):
        (algorithm,) = segment.SegmentationAlgorithmIdentificationSequence
        fuzzy = segment.SegmentLabel != "Range"
        assert algorithm.AlgorithmName == ("Noctule fuzzy connectedness" if fuzzy else "Noctule level set")
        family = algorithm.AlgorithmFamilyCodeSequence[0].CodeValue
        assert family == ("123101" if fuzzy else "123111")
        assert ("(measured)" in algorithm.AlgorithmParameters) == (segment.SegmentLabel == "Measured")
    given = binary.SegmentSequence[0].SegmentationAlgorithmIdentificationSequence[0]
    assert given.AlgorithmParameters == (
        "object mean 40, sigma 25.5; homogeneity sigma 10.25; weight 0.375; threshold 0.625; "
        "seeds in voxels 20,18,4 12,20,3")
    assert binary.SOPInstanceUID != fractional.SOPInstanceUID
    run("mixed", tmp_path / "again", tmp_path / "in")
    for kind in ("", "-fractional"):
        first, again = (pydicom.dcmread(tmp_path / name / f"seg{kind}.dcm") for name in ("out", "again"))
        assert first.SOPInstanceUID == again.SOPInstanceUID and first.PixelData == again.PixelData


def test_relative_connectedness(run, tmp_path):
    phantom(tmp_path / "in", "--size", "40x36x9")
    run("relative", tmp_path / "out", tmp_path / "in")
    datasets, stored, values = read(tmp_path / "in")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    soft = Object(stored, *rescale, 40, 400, 1000, 0.5, 0.5)
    air = Object(stored, *rescale, -1000, 200, 1000, 0.5, 0.5)
    maps = [soft.connectedness([middle(values.shape)]), air.connectedness([(0, 0, 0)])]
    both = (maps[0] > soft.threshold) & (maps[1] > air.threshold)
    assert both.any(), "nothing to decide"
    found = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert np.array_equal(found[0], (maps[0] > soft.threshold) & ~(both & (maps[1] >= maps[0])))
    assert np.array_equal(found[1], (maps[1] > air.threshold) & ~(both & (maps[0] >= maps[1])))
    assert not (found[0] & found[1]).any()


def test_a_level_set_starts_from_an_object(run, tmp_path):
    phantom(tmp_path / "in", "--size", "70x36x9")
    run("grown", tmp_path / "out", tmp_path / "in")
    datasets, stored, values = read(tmp_path / "in")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    core = Object(stored, *rescale, 40, 10, 5, 0.5, 0.75)
    connectedness = core.connectedness([middle(values.shape)])
    mask = connectedness > core.threshold
    grown = peer.level_set((values >= 20) & (values <= 60), mask | peer.sphere(values.shape, (2, 2, 2), 2.5))
    assert mask.any() and (grown & ~mask).any()
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets), np.stack([mask, grown]))
    assert np.array_equal(maps_of(tmp_path / "out" / "seg-fractional.dcm", datasets)[0], eight_bits(connectedness))
    codes, _ = read_nrrd(tmp_path / "out" / "codes-2.nrrd")
    assert np.array_equal(codes, state_codes(grown))


def test_a_wall_of_padding_is_not_crossed(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "40x36x9")

    def pad(_, dataset):
        pixels = dataset.pixel_array.copy()
        pixels[pixels == 1060] = 1061
        pixels[:, 24:26] = 1060
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "SS" if dataset.PixelRepresentation else "US", 1060)

    change(files, pad)
    run("mixed", tmp_path / "out", tmp_path / "in")
    datasets, stored, values = read(tmp_path / "in")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    masks, _, _ = expect(stored, values, rescale, padding=1060)
    unpadded, _, _ = expect(stored, values, rescale)
    assert not np.array_equal(masks[0], unpadded[0])
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], masks[0])


@pytest.mark.parametrize("pipeline, options, code", [
    ("outside", (), "SEED_OUTSIDE"),
])
def test_refusals_have_a_code_and_leave_no_file(run, tmp_path, pipeline, options, code):
    phantom(tmp_path / "in", "--size", "32x32x10", *options)
    result = run(pipeline, tmp_path / "out", tmp_path / "in", "--json", status=1)
    (job,) = json.loads(result.stdout)["jobs"]
    assert job["outcome"] == "REJECT" and job["code"] == code
    assert len(job["files"]) == 0
    assert code != "SEED_OUTSIDE" or 'seed 2 of segment "Far"' in job["message"]
    assert_no_file_left(tmp_path / "out")


def assert_is_the_object(mask, thing, seed):
    """Checks the definition of the object: it contains the seed, is connected by edges above the threshold, and no
    such edge leaves it."""
    assert mask[tuple(seed)]
    number = np.full(mask.shape, -1, np.int32)
    number[mask] = np.arange(np.count_nonzero(mask), dtype=np.int32)
    ends = []
    for axis in range(3):
        strong = thing.affinities(axis) > thing.threshold
        count = mask.shape[axis]
        a, b = (np.take(number, range(*part), axis)[strong] for part in ((0, count - 1), (1, count)))
        assert not ((a < 0) != (b < 0)).any(), "a strong edge leaves the object"
        ends.append((a[a >= 0], b[a >= 0]))
    rows, columns = (np.concatenate([pair[i] for pair in ends]) for i in range(2))
    size = int(number.max()) + 1
    graph = scipy.sparse.coo_matrix((np.ones(len(rows), np.bool_), (rows, columns)), shape=(size, size))
    assert scipy.sparse.csgraph.connected_components(graph, directed=False, return_labels=False) == 1


@needs_shared
def test_white_matter_of_a_real_brain(run, tmp_path):
    run("white-matter", tmp_path / "out", SHARED / "mr-brain-t1")
    datasets, stored, values = read(SHARED / "mr-brain-t1")
    seed = [math.floor(f * (n - 1) + 0.5) for f, n in zip((0.6, 0.45, 0.4), values.shape)]
    mean, sigma, homogeneity, _ = measure(values, seed, 3)
    mask = seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0]
    assert_is_the_object(mask, Object(stored, 1, 0, mean, sigma, homogeneity, 0.5, 0.5), seed)
    millilitres = json.loads((tmp_path / "out" / "job.json").read_text())["segments"][0]["millilitres"]
    assert 300 < millilitres < 1500
    # Values above the threshold, 32767 of 65535, are 128 and more of 255.
    assert np.array_equal(maps_of(tmp_path / "out" / "seg-fractional.dcm", datasets)[0] >= 128, mask)
    assert_valid(tmp_path / "out" / "seg-fractional.dcm")


def test_the_daemon_makes_and_delivers_both_objects(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "40x36x9")
    shelf = tmp_path / "shelf"
    settings = f"""
        root = "{tmp_path / 'daemon0' / 'root'}";
        inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
        series = {{ quiet_seconds = 1.0; complete_seconds = 0.1; patience_seconds = 1.0; }};
        min_free_mib = 1; log_level = "debug";
        destinations = ( {{ name = "shelf"; folder = "{shelf}"; }} );
        rules = ( {{ pipeline = "mixed"; }} );
        """ + PIPELINES.format(type=TYPE, extra='deliver = [ "shelf" ];')
    d = daemon(settings=settings).start()
    drop(files, d.inbox)
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE", job["message"]
    assert job["result_path"].endswith("/seg.dcm") and job["note"].startswith("Measured: measured mean ")
    wait_for(lambda: [r["state"] for r in d.query("SELECT state FROM v_deliveries")] == ["SENT", "SENT"], 30,
             "both deliveries")
    datasets, stored, values = read(tmp_path / "series")
    rescale = float(datasets[0].RescaleSlope), float(datasets[0].RescaleIntercept)
    masks, maps, _ = expect(stored, values, rescale)
    delivered = {pydicom.dcmread(p).SegmentationType: p for p in shelf.rglob("*.dcm")}
    assert sorted(delivered) == ["BINARY", "FRACTIONAL"]
    assert np.array_equal(seg_masks(delivered["BINARY"], datasets), np.stack(masks))
    assert np.array_equal(maps_of(delivered["FRACTIONAL"], datasets), eight_bits(np.stack(maps)))
    assert job["segmented_voxels"] == int(np.any(masks, axis=0).sum())
