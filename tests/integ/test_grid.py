"""Tilted and unevenly spaced stacks: segments on their upright grid, references of results to the source, and
refusals.

The reference is NumPy's definition of the resampling (test_resample.py) with SciPy's labels, voxel by voxel."""

import json
import subprocess

import highdicom
import numpy as np
import pydicom
import pytest

from conftest import BIN, SHARED, assert_valid, drop, needs_shared, phantom, read_truth, wait_for
from test_resample import Stack, mask_on_planes, numpy_linear, positions, stored
from test_run import peer, seg_masks
from test_texture_grid import grid_of, interpolated

SEGMENT = """
      {{ label = "{label}"; range = [ {low}, {high} ];
        shapes = ( {{ kind = "sphere"; center = {{ {center} }}; radius_mm = {radius}; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }}"""


def segment(low, high, radius, center="fraction = [ 0.5, 0.5, 0.5 ];", label="Ball"):
    return SEGMENT.format(label=label, low=float(low), high=float(high), center=center, radius=float(radius))


def noctule(tmp_path, inputs, *segments, status=0, options="", texture=""):
    """Runs one pipeline with noctule run. Returns its results and its output."""
    config, output = tmp_path / "noctule.conf", tmp_path / "out"
    config.write_text(f'root = "{tmp_path / "root"}";\npipelines = ( {{ name = "p"; segments = ( {", ".join(segments)} );'
                      f'\n min_slices = 1; {options} {texture} }} );\nrules = ();\n')
    said = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "p", "--output", output, "--json",
                           *map(str, inputs)], text=True, capture_output=True, timeout=240)
    assert said.returncode == status, said.stdout + said.stderr
    return output, json.loads(said.stdout)["jobs"][0]


class Reference(Stack):
    """The upright grid of a series, as defined in grid.h."""

    def __init__(self, files, mm=0.0):
        super().__init__(files)
        least = mm or np.diff(self.shifts[:, 2]).min()
        steps = int(np.ceil(self.shifts[-1, 2] / least - 1e-6))
        spacing = [*self.spacing, self.shifts[-1, 2] / steps]
        first = [np.floor(self.shifts[:, axis].min() / self.spacing[axis] + 1e-6) for axis in (0, 1)]
        last = [np.ceil(self.shifts[:, axis].max() / self.spacing[axis] - 1e-6) for axis in (0, 1)]
        self.report = {
            "extent": [int(n + b - a) for n, a, b in zip(self.shape[:0:-1], first, last)] + [steps + 1],
            "spacing": spacing, "origin": [first[0] * spacing[0], first[1] * spacing[1], 0.0]}
        header = self.files[0]
        self.rescale = float(header.RescaleSlope), float(header.RescaleIntercept)
        self.padding = header.get("PixelPaddingValue")

    def resampled(self, values):
        mine, self.values = self.values, values
        result = numpy_linear(self, self.report, 1)
        self.values = mine
        return result

    def grid(self):
        """Returns real-world values, NaN outside the stack."""
        values = stored(self.resampled(self.values), np.int32).astype(float)
        nothing = self.resampled(np.ones(self.shape)) == 0
        if self.padding is not None:
            nothing |= np.floor(self.resampled((self.values == self.padding) * 65535.0) + 0.5) > 0
        values[nothing] = np.nan
        return self.rescale[0] * values + self.rescale[1]

    def level_set(self, low, high, radius):
        """Returns the growth of a sphere in the middle of the grid within the range."""
        values = self.grid()
        middle = [(n - 1) / 2 for n in values.shape[::-1]]
        start = peer.ellipsoid(values.shape, middle, [radius / mm for mm in self.report["spacing"]])
        return peer.level_set((values >= low) & (values <= high), start)

    def check(self, output, mask):
        """Checks that the SEG has the mask on the source's own planes, and the record its volume on the grid."""
        datasets = [pydicom.dcmread(file.filename) for file in self.files]
        assert np.array_equal(seg_masks(output / "seg.dcm", datasets)[0], mask_on_planes(self, self.report, mask))
        seg = pydicom.dcmread(output / "seg.dcm")
        places = {file.SOPInstanceUID: file.ImagePositionPatient for file in self.files}
        for frame in seg.PerFrameFunctionalGroupsSequence:
            uid = frame.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
            assert frame.PlanePositionSequence[0].ImagePositionPatient == places[uid]
        record = json.loads((output / "job.json").read_text())
        (found,) = record["segments"]
        assert found["voxels"] == mask.sum() > 0
        assert found["millilitres"] == pytest.approx(mask.sum() * np.prod(self.report["spacing"]) / 1000, rel=1e-6)
        self.check_measures(found, mask)
        assert [record["volume"][key] for key in ("columns", "rows", "slices")] == self.report["extent"]
        assert f"to {self.report['extent'][2]} slices of" in record["note"] and "straightened" in record["note"]
        assert "straightened" in seg.SegmentSequence[0].SegmentDescription
        return record, seg


    def check_measures(self, found, mask):
        """Checks that values, box and centroid are those of the grid, and that the centroid lies in the patient."""
        z, y, x = np.nonzero(mask)
        values = self.grid()[mask]
        assert found["mean"] == pytest.approx(values.mean(), rel=1e-9)
        assert (found["minimum"], found["maximum"]) == (values.min(), values.max())
        assert found["box"] == {"first": [x.min(), y.min(), z.min()], "last": [x.max(), y.max(), z.max()]}
        along = [positions(self.report, axis)[index].mean() for axis, index in enumerate((x, y, z))]
        place = self.origins[0] + along[0] * self.axes[0] + along[1] * self.axes[1] + along[2] * self.normal
        assert found["centroid_mm"] == pytest.approx(place, abs=1e-4)


def series(tmp_path, *options, change=None):
    files = phantom(tmp_path / "in", *options)
    for file in files if change else ():
        dataset = pydicom.dcmread(file)
        change(dataset)
        dataset.save_as(file)
    return files


def uneven(files):
    """Makes every second step 1.4 times as long."""
    for i, file in enumerate(files):
        dataset = pydicom.dcmread(file)
        dataset.ImagePositionPatient[2] = float(dataset.ImagePositionPatient[2]) + (i + 1) // 2 * 0.4 * 4
        dataset.save_as(file)
    return files


@pytest.mark.parametrize("options", [
    ("--size", "70x61x23", "--tilt", "18.5"),
    ("--size", "70x61x23", "--tilt", "-12", "--bits", "16", "--signed"),
    ("--size", "70x61x23", "--tilt", "9", "--bits", "8"),
], ids=" ".join)
def test_tilted_planes_are_the_reference(tmp_path, options):
    files = series(tmp_path, *options)
    output, job = noctule(tmp_path, files, segment(0, 80, 35))
    reference = Reference(files)
    reference.check(output, reference.level_set(0, 80, 35))
    assert f"23 planes tilted by {abs(float(options[3])):.1f} degrees" in job["note"]
    assert_valid(output / "seg.dcm")


@pytest.mark.parametrize("mm", (0, 2.5))
def test_uneven_planes_are_the_reference(tmp_path, mm):
    files = uneven(series(tmp_path, "--size", "48x40x21", "--spacing", "2,2,4"))
    output, job = noctule(tmp_path, files, segment(0, 80, 35), options=f"grid = {{ mm = {float(mm)}; }};")
    reference = Reference(files, mm)
    _, seg = reference.check(output, reference.level_set(0, 80, 35))
    assert "21 planes 4 to 5.6 mm apart" in job["note"]
    volume = job["volume"]
    assert volume["straightened"] is True and volume["straightened_because"] == "4 to 5.6 mm apart"
    scan = pydicom.dcmread(files[0])
    assert volume["source"] == {
        "slices": 21, "spacing_mm": [2, 2], "steps_mm": pytest.approx([4, 5.6]), "manufacturer": scan.Manufacturer,
        "model": scan.ManufacturerModelName, "kernel": scan.ConvolutionKernel, "kvp": float(scan.KVP),
        "slice_thickness_mm": [4, 4]}
    measures = seg.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0]
    assert "SpacingBetweenSlices" not in measures, "there is not one of them"
    assert measures.SliceThickness == 4


def test_measures_are_of_each_plane(tmp_path):
    """Slices of 4 mm that continue as 6 mm ones. Spacing Between Slices is present for all frames or absent."""
    files = series(tmp_path, "--size", "48x40x16", "--spacing", "2,2,4")
    for i, file in enumerate(sorted(files)):
        dataset = pydicom.dcmread(file)
        dataset.ImagePositionPatient[2] += max(0, i - 7) * 2.0
        dataset.SliceThickness = 4.0 if i < 8 else 6.0
        dataset.save_as(file)
    output, _ = noctule(tmp_path, files, segment(0, 80, 35), options="omit_empty_frames = false;")
    assert_valid(output / "seg.dcm")
    seg = highdicom.seg.segread(output / "seg.dcm")
    assert "PixelMeasuresSequence" not in seg.SharedFunctionalGroupsSequence[0]
    images = {dataset.SOPInstanceUID: dataset for dataset in map(pydicom.dcmread, files)}
    told = []
    for frame in seg.PerFrameFunctionalGroupsSequence:
        image = images[frame.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID]
        place, measures = frame.PlanePositionSequence[0].ImagePositionPatient, frame.PixelMeasuresSequence[0]
        assert place == image.ImagePositionPatient and measures.PixelSpacing == image.PixelSpacing
        told.append((place[2], measures.SliceThickness, measures.get("SpacingBetweenSlices")))
    assert [row[1:] for row in sorted(told)] == [(4, None)] * 8 + [(6, None)] * 8
    order = sorted(images, key=lambda uid: images[uid].ImagePositionPatient[2])
    masks = seg.get_pixels_by_source_instance(order, combine_segments=True)
    assert (masks == seg_masks(output / "seg.dcm", [images[uid] for uid in order])[0]).all() and masks.any()
    assert seg.get_volume_geometry() is None  # highdicom checks positions, and finds no regular grid


def test_voxels_interpolated_from_padding_are_padding(tmp_path):
    """A value interpolated between tissue and padding must not be used, even if it lies in the range."""
    def pad(dataset):
        pixels = dataset.pixel_array.copy()
        rows, columns = np.ogrid[:61, :70]
        pixels[(rows - 30) ** 2 + (columns - 35) ** 2 > 22**2] = 0
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "US", 0)

    files = series(tmp_path, "--size", "70x61x23", "--tilt", "15", change=pad)
    output, _ = noctule(tmp_path, files, segment(-900, 80, 35),
                        texture='texture = { regions = [ "segments", "volume" ]; first_order = true; };')
    reference = Reference(files)
    mask = reference.level_set(-900, 80, 35)
    reference.check(output, mask)
    values = reference.grid()
    features = json.loads((output / "features.json").read_text())
    means = {f["segment_number"]: f["value"] for f in features if f["name"] == "mean"}
    assert means[1] == pytest.approx(values[mask].mean(), rel=1e-9)
    assert means[0] == pytest.approx(np.nanmean(values), rel=1e-9)


def test_a_grown_mask_ends_with_the_planes(tmp_path):
    files = series(tmp_path, "--size", "70x61x23", "--tilt", "18.5")
    everything = segment(-3000, 3000, 500).replace("shapes", "then = ( { grow_mm = 9.0; } ); shapes")
    output, _ = noctule(tmp_path, files, everything)
    reference = Reference(files)
    reference.check(output, ~np.isnan(reference.grid()))


def cropped(files, above, below):
    """Removes that many rows, like a field of view that is too small."""
    for file in files:
        dataset = pydicom.dcmread(file)
        pixels, down = dataset.pixel_array, np.array(dataset.ImageOrientationPatient[3:], float)
        place = np.array(dataset.ImagePositionPatient, float) + above * float(dataset.PixelSpacing[0]) * down
        dataset.ImagePositionPatient = [f"{value:.6f}" for value in place]
        dataset.PixelData = pixels[above:len(pixels) - below].tobytes()
        dataset.Rows = len(pixels) - above - below
        dataset.save_as(file)


@pytest.mark.parametrize("steps", ["{ keep = 1; }", "{ open_mm = 5.0; }, { keep = 1; }"], ids=["as it is", "opened"])
@pytest.mark.parametrize("tilt", [0, 7, 18, -18, 25])
def test_segments_cut_by_the_edge_are_held(tmp_path, tilt, steps):
    """The cut edge lies obliquely within the grid. A complete head does not touch it."""
    head = ('{ label = "Head"; method = "range"; range = [ -300.0, 100000.0 ]; then = ( ' + steps + ' );'
            'type = { code = "T"; scheme = "99X"; meaning = "t"; }; expect = { touches = "top-bottom"; }; }')
    for above, below, edge in ((0, 0, None), (40, 0, "first row"), (0, 40, "last row")):
        files = series(tmp_path, "--kind", "head-tilted", "--size", "128x128x40", "--tilt", str(tilt))
        cropped(files, above, below)
        _, job = noctule(tmp_path, files, head, status=8 if edge else 0)
        assert edge is None or f"reaches the edge of the volume ({edge})" in job["message"], job["message"]


def test_codes_have_the_positions_of_the_grid(tmp_path):
    files = series(tmp_path, "--size", "70x61x23", "--tilt", "18.5")
    output, _ = noctule(tmp_path, files, segment(0, 80, 35), options='results = [ "seg", "codes" ];')
    reference = Reference(files)
    header, _, data = (output / "codes-1.nrrd").read_bytes().partition(b"\n\n")
    codes = np.frombuffer(data, np.int8).reshape(reference.report["extent"][::-1])
    assert np.array_equal(codes > 0, reference.level_set(0, 80, 35))
    origin = next(line for line in header.decode().splitlines() if line.startswith("space origin"))
    expected = reference.origins[0] + reference.report["origin"][1] * reference.axes[1]
    assert np.allclose([float(n) for n in origin.split("(")[1].rstrip(")").split(",")], expected, atol=1e-9)


def test_connectedness_maps_are_written_on_the_planes(tmp_path):
    files = series(tmp_path, "--size", "70x61x23", "--tilt", "18.5")
    fuzzy = """{ label = "Brain"; method = "fuzzy-connectedness"; seeds = ( { fraction = [ 0.5, 0.5, 0.5 ]; } );
        object_mean = 35.0; object_sigma = 30.0; homogeneity_sigma = 30.0; connectedness_map = true; threshold = 0.5;
        type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; }"""
    output, _ = noctule(tmp_path, files, fuzzy)
    datasets = [pydicom.dcmread(file.filename) for file in Reference(files).files]
    mask = seg_masks(output / "seg.dcm", datasets)[0]
    maps = pydicom.dcmread(output / "seg-fractional.dcm")
    uids = [dataset.SOPInstanceUID for dataset in datasets]
    strength = np.zeros(mask.shape)
    for frame, groups in zip(maps.pixel_array, maps.PerFrameFunctionalGroupsSequence):
        image = groups.DerivationImageSequence[0].SourceImageSequence[0]
        strength[uids.index(image.ReferencedSOPInstanceUID)] = frame / 255
    assert mask.any() and np.array_equal(strength > 0.5, mask | (strength > 0.5))
    assert (strength[mask] >= 0.5 - 1 / 255).all() and (strength[~mask] <= 0.5 + 1 / 255).all()


def test_the_report_refers_to_its_source(tmp_path):
    files = series(tmp_path, "--size", "70x61x23", "--tilt", "18.5")
    output, _ = noctule(tmp_path, files, segment(0, 80, 35), options='results = [ "seg", "sr" ];',
                        texture="texture = { first_order = true; };")
    texts = []

    def walk(item):
        if "ConceptNameCodeSequence" in item and item.ConceptNameCodeSequence[0].CodeValue == "111002":
            texts.append(item.TextValue)
        for child in item.get("ContentSequence", []):
            walk(child)

    walk(pydicom.dcmread(output / "sr.dcm"))
    assert len(texts) == 1 and "23 planes tilted by 18.5 degrees" in texts[0]


def test_a_tilted_patient_has_the_drawn_volume(tmp_path):
    """The phantom is drawn in space. A head must keep its volume on tilted planes of 5 mm."""
    files = phantom(tmp_path / "in", "--kind", "head-tilted", "--size", "120x120x40", "--truth", tmp_path / "truth.nrrd")
    truth = read_truth(tmp_path / "truth.nrrd")
    spacing = [float(n) for n in pydicom.dcmread(files[0]).PixelSpacing]
    stack = Stack(files)
    drawn = sum(mask.sum() for name, mask in truth.items() if name == "skull") * np.prod(spacing) * stack.step / 1000
    output, job = noctule(tmp_path, files, segment(500, 3000, 120))
    (found,) = json.loads((output / "job.json").read_text())["segments"]
    assert found["millilitres"] == pytest.approx(drawn, rel=0.08), (truth.keys(), job["note"])


def ball(folder, tilt):
    """Draws a ball of 30 mm radius on tilted planes. Returns the files and its middle in the patient."""
    files = phantom(folder, "--size", "64x96x40", "--spacing", "1.5,1.5,2.5", "--tilt", tilt)
    stack = Stack(files)
    middle = sum(stack.origins) / len(files) + 32 * 1.5 * stack.axes[0] + 48 * 1.5 * stack.axes[1]
    rows, columns = np.mgrid[:96, :64]
    for file, origin in zip(stack.files, stack.origins):
        dataset = pydicom.dcmread(file.filename)
        at = origin + (columns[..., None] * stack.axes[0] + rows[..., None] * stack.axes[1]) * 1.5
        dataset.PixelData = np.where(np.linalg.norm(at - middle, axis=2) <= 30, 1064, 24).astype(np.uint16).tobytes()
        dataset.save_as(file.filename)
    return files, middle


def test_a_sphere_in_space_is_as_large_tilted_as_upright(tmp_path):
    """Planes through a ball of 30 mm radius at any tilt must give the ball's volume."""
    exact = 4 / 3 * np.pi * 30**3 / 1000
    for tilt in ("0.001", "18.5", "30"):
        folder = tmp_path / tilt
        files, middle = ball(folder / "in", tilt)
        _, job = noctule(folder, files, segment(-480, 3000, 20, f"mm = [ {middle[0]}, {middle[1]}, {middle[2]} ];"))
        found = json.loads((folder / "out" / "job.json").read_text())["segments"][0]
        assert found["millilitres"] == pytest.approx(exact, rel=0.015), tilt
        assert ("straightened" in job["note"]) == (tilt != "0.001")


@pytest.mark.parametrize("options,code", [
    ('tilt = "refuse";', "GANTRY_TILT"),
    ('results = [ "pmap" ]; texture = { patterns = [ "lbp" ]; };', "GANTRY_TILT"),
    ("memory_mib = 3.0;", "JOB_TOO_LARGE"),
    ("grid = { mm = 0.0000001; };", "VOLUME_TOO_LARGE"),
])
def test_unsupported_tilts_are_refused_by_name(tmp_path, options, code):
    files = series(tmp_path, "--size", "256x256x20", "--tilt", "12")
    output, job = noctule(tmp_path, files, segment(0, 80, 35), status=1, options=options)
    assert job["code"] == code and not output.exists() or list(output.iterdir()) == []
    if code.endswith("LARGE"):
        assert "grid.mm" in job["message"]


def rescale(dataset):
    dataset.RescaleSlope = 1 + dataset.InstanceNumber / 100


def padding(dataset):
    dataset.add_new("PixelPaddingValue", "US", 3000 + dataset.InstanceNumber)


@pytest.mark.parametrize("options,change,code,words", [
    (("--tilt", "12"), rescale, "GANTRY_TILT", "differ in their rescale"),
    (("--tilt", "12"), padding, "GANTRY_TILT", "differ in their padding"),
    (("--tilt", "50"), None, "GANTRY_TILT", "too much"),
    (("--tilt", "12", "--gap", "5"), None, "MISSING_SLICE", "slice is missing"),
])
def test_stacks_that_cannot_be_straightened_are_refused_by_name(tmp_path, options, change, code, words):
    files = series(tmp_path, "--size", "32x32x20", *options, change=change)
    _, job = noctule(tmp_path, files, segment(0, 80, 35), status=1)
    assert job["code"] == code and words in job["message"] and job["files"]


def test_no_free_value_for_outside_is_refused(tmp_path):
    def fill(dataset):
        dataset.PixelData = (np.linspace(0, 65535, 64 * 32).astype(np.uint16)).tobytes()

    files = series(tmp_path, "--size", "64x32x9", "--bits", "16", "--tilt", "12", change=fill)
    _, job = noctule(tmp_path, files, segment(0, 80, 35), status=1)
    assert job["code"] == "GRID_VALUES_FULL" and "0 to 65535" in job["message"]


def test_the_service_straightens_for_accepting_pipelines(daemon, tmp_path):
    d = daemon(quiet=0.5)
    d.start()
    drop(phantom(tmp_path / "series", "--size", "48x48x12", "--tilt", "12"), d.inbox)
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE" and "12 planes tilted by 12.0 degrees" in job["note"]


def test_the_service_refuses_for_rejecting_pipelines(daemon, tmp_path):
    d = daemon(quiet=0.5)
    text = d.config.read_text()
    d.config.write_text(text.replace('name = "head-ct";', 'name = "head-ct"; tilt = "refuse";'))
    assert d.config.read_text() != text
    d.start()
    drop(phantom(tmp_path / "series", "--size", "48x48x12", "--tilt", "12"), d.inbox)
    (row,) = wait_for(lambda: d.query("SELECT * FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")
    assert row["code"] == "GANTRY_TILT" and d.jobs() == []


@needs_shared
def test_a_real_head_on_its_own_planes(tmp_path):
    """28 planes of a tilted gantry, 4, 1.08 and 7 mm apart, with padding."""
    files = sorted((SHARED / "ct-head-tilted").glob("*.dcm"))
    output, job = noctule(tmp_path, files, segment(0, 80, 40))
    reference = Reference(files)
    assert reference.padding == -1500
    reference.check(output, reference.level_set(0, 80, 40))
    assert "28 planes tilted by 18.5 degrees and 1.08 to 7 mm apart" in job["note"]


class Upright(Stack):
    """The upright grid as a regular stack of its values."""

    def __init__(self, reference, values):
        self.values, self.shape, self.spacing, self.regular = values, values.shape, reference.spacing, True
        self.step = reference.report["spacing"][2]
        self.shifts = np.arange(len(values))[:, None] * np.array([0, 0, self.step])


class RealReference(Reference):
    """Its grid has values that are not rounded."""

    def grid(self):
        reals = self.rescale[0] * self.resampled(self.values) + self.rescale[1]
        return np.where(np.isnan(super().grid()), np.nan, reals)


def mr(dataset):
    dataset.RescaleSlope, dataset.RescaleIntercept, dataset.RescaleType = 0.37, -5.5, "US"


def assert_texture(output, values, segment_number=0):
    features = json.loads((output / "features.json").read_text())
    found = {f["name"]: f["value"] for f in features if f["segment_number"] == segment_number and f["family"] == "first-order"}
    assert (found["minimum"], found["maximum"]) == (values.min(), values.max())
    assert found["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert found["energy"] == pytest.approx((values ** 2).sum(), rel=1e-12)
    return features


@pytest.mark.parametrize("options", [("--tilt", "18.5"), ("--tilt", "-9", "--bits", "8"), ()])
def test_texture_of_mr_is_not_rounded(tmp_path, options):
    """Straightened MR is measured between its stored values, as resampled MR is. Segments and volumes are those of stored values."""
    files = series(tmp_path, "--kind", "mr-brain", "--size", "48x40x21", "--spacing", "2,2,4", *options, change=mr)
    reference = RealReference(files if options else uneven(files))
    values = reference.grid()
    low, high = map(float, np.nanquantile(values, [0.5, 0.9]))
    output, job = noctule(tmp_path, [tmp_path / "in"], segment(low, high, 8), texture='texture = { regions = [ "segments", "volume" ]; '
                          'first_order = true; families = [ "glcm" ]; discretisation = "fixed-bin-number"; levels = 32; };')
    features = assert_texture(output, values[~np.isnan(values)])
    assert not np.array_equal(values, np.round(values))
    mask = Reference([file.filename for file in reference.files]).level_set(low, high, 8)
    assert_texture(output, values[mask], 1)
    assert {f.get("rounding") for f in features if f["family"] == "first-order"} == {"none"}
    assert "values not rounded" in job["note"] and "straightened" in job["note"]


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
@pytest.mark.parametrize("rounding", ["", 'rounding = "stored";'])
def test_texture_of_other_voxels_begins_with_values_that_are_not_rounded(tmp_path, interpolation, rounding):
    reference = RealReference(uneven(series(tmp_path, "--kind", "mr-brain", "--size", "48x40x21", "--spacing", "2,2,4", change=mr)))
    output, _ = noctule(tmp_path, [tmp_path / "in"], segment(0, 1e6, 8), texture=f'texture = {{ regions = [ "volume" ]; first_order = true; '
                        f'resample = {{ isotropic_mm = 3.0; interpolation = "{interpolation}"; {rounding} }}; }};')
    values = reference.resampled(reference.values)
    values = stored(values, np.int32) if rounding else reference.rescale[0] * values + reference.rescale[1]
    upright = Upright(reference, values)
    values = interpolated(upright, values, grid_of(upright, (3.0, 3.0, 3.0)), {"linear": 1, "cubic": 3}[interpolation])
    values = reference.rescale[0] * stored(values, np.int16) + reference.rescale[1] if rounding else values
    assert_texture(output, values)
