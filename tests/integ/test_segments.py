"""Measures of each segment: volume, values, box and centroid in job.json, the database, show, the web UI and the
report.

Expected values are NumPy's over the written SEG and the rescaled source pixels, and SimpleITK's for centroids."""

import json
import subprocess

import numpy as np
import pydicom
import pytest
import SimpleITK

from conftest import BIN, SHARED, drop, needs_shared, phantom, wait_for
from test_page import Site, rows_below
from test_run import seg_masks

RANGE = """{{ label = "{label}"; method = "range"; range = [ {low}, {high} ]; {extra}
    type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }}"""
EMPTY = RANGE.format(label="Nothing", low=30000.0, high=30001.0, extra="")
EXPECT = "expect = { volume_ml = [ 1.0, 2.0 ]; mean = [ 1.0, 2.0 ]; };"


def measured(label, low, high, extra=""):
    return RANGE.format(label=label, low=float(low), high=float(high), extra=extra)


def pipeline(*segments, options=""):
    return (f'pipelines = ( {{ name = "p"; min_slices = 1; review = "hold"; {options} segments = ( {", ".join(segments)} ); }} );\n'
            'rules = ( { pipeline = "p"; } );\n')


def run(tmp_path, inputs, *segments, status=0):
    """Runs noctule run. Returns its output folder and job.json."""
    config, output = tmp_path / "noctule.conf", tmp_path / "out"
    config.write_text(f'root = "{tmp_path / "root"}";\n' + pipeline(*segments))
    said = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "p", "--output", output, *map(str, inputs)],
                          text=True, capture_output=True, timeout=240)
    assert said.returncode == status, said.stdout + said.stderr
    return output, json.loads((output / "job.json").read_text())


class Source:
    """The slices of a series along their normal, with real-world values."""

    def __init__(self, files):
        datasets = [pydicom.dcmread(file) for file in files]
        self.axes = np.array(datasets[0].ImageOrientationPatient, float).reshape(2, 3)
        normal = np.cross(*self.axes)
        self.datasets = sorted(datasets, key=lambda d: np.dot(normal, np.array(d.ImagePositionPatient, float)))
        self.places = np.array([d.ImagePositionPatient for d in self.datasets], float)
        self.pixel = np.array(datasets[0].PixelSpacing, float)  # between rows, between columns
        self.step = np.dot(normal, self.places[-1] - self.places[0]) / max(1, len(self.places) - 1)
        self.values = np.array([d.pixel_array * float(d.get("RescaleSlope", 1)) + float(d.get("RescaleIntercept", 0))
                                for d in self.datasets])

    def measures(self, mask):
        """Returns the measures in the form of job.json."""
        z, y, x = np.nonzero(mask)
        volume = len(z) * np.prod(self.pixel) * self.step / 1000
        if len(z) == 0:
            return {"voxels": 0, "millilitres": 0, "mean": None, "minimum": None, "maximum": None, "box": None,
                    "centroid_mm": None}
        places = self.places[z] + np.outer(x * self.pixel[1], self.axes[0]) + np.outer(y * self.pixel[0], self.axes[1])
        values = self.values[mask]
        return {"voxels": len(z), "millilitres": pytest.approx(volume, rel=1e-6),
                "mean": pytest.approx(values.mean(), rel=1e-9, abs=1e-9), "minimum": pytest.approx(values.min(), rel=1e-12),
                "maximum": pytest.approx(values.max(), rel=1e-12),
                "box": {"first": [x.min(), y.min(), z.min()], "last": [x.max(), y.max(), z.max()]},
                "centroid_mm": pytest.approx(places.mean(axis=0), abs=1e-4)}

    def itk(self, mask):
        """Returns centroid and box by SimpleITK, for images at these positions."""
        image = SimpleITK.GetImageFromArray(mask.astype(np.uint8))
        normal = np.cross(*self.axes)
        image.SetSpacing([self.pixel[1], self.pixel[0], self.step])
        image.SetOrigin(self.places[0].tolist())
        image.SetDirection(np.array([*self.axes, normal]).T.ravel().tolist())
        shape = SimpleITK.LabelShapeStatisticsImageFilter()
        shape.Execute(image)
        first, size = shape.GetBoundingBox(1)[:3], shape.GetBoundingBox(1)[3:]
        return {"centroid_mm": pytest.approx(shape.GetCentroid(1), abs=1e-3), "millilitres": pytest.approx(shape.GetPhysicalSize(1) / 1000),
                "box": {"first": list(first), "last": [a + n - 1 for a, n in zip(first, size)]}}


def assert_measured(source, output, record):
    """Checks that every segment of job.json has the measures of its mask in the SEG."""
    masks = seg_masks(output / "seg.dcm", source.datasets)
    for segment in record["segments"]:
        mask = masks[segment["number"] - 1] if segment["number"] <= len(masks) else np.zeros(source.values.shape, bool)
        expected = source.measures(mask)
        assert {key: segment[key] for key in expected} == expected
        if mask.any():
            assert {key: segment[key] for key in ("centroid_mm", "millilitres", "box")} == source.itk(mask)


def turn(files, rows, columns, origin):
    """Rotates a series: its rows and columns get these directions, and slices follow the new normal."""
    normal = np.cross(rows, columns)
    for file in files:
        dataset = pydicom.dcmread(file)
        height = float(dataset.ImagePositionPatient[2])
        dataset.ImageOrientationPatient = [f"{c:.10f}" for c in (*rows, *columns)]
        dataset.ImagePositionPatient = [f"{c:.9g}" for c in np.array(origin) + height * normal]
        dataset.save_as(file)
    return files


def oblique():
    """Returns row and column cosines rotated about all three axes."""
    a, b, c = 0.3, -0.5, 0.8
    turns = [np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]]),
             np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]]),
             np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])]
    whole = turns[0] @ turns[1] @ turns[2]
    return whole[:, 0], whole[:, 1]


SERIES = {
    "ct": (("--size", "70x61x23", "--spacing", "2.5,3,4"), (-200, 60)),
    "signed": (("--size", "48x40x9", "--bits", "16", "--signed"), (0, 80)),
    "mr": (("--size", "64x48x12", "--kind", "mr-brain"), (40, 200)),
    "pet": (("--size", "48x40x12", "--kind", "pet"), (2000, 1e6)),
}


@pytest.mark.parametrize("name", SERIES)
def test_measures_equal_those_of_the_seg(tmp_path, name):
    options, (low, high) = SERIES[name]
    files = phantom(tmp_path / "in", *options)
    output, record = run(tmp_path, files, measured("All", low, high), measured("Some", low, (low + high) / 2), EMPTY)
    assert record["segments"][0]["voxels"] > 100 and record["segments"][2]["voxels"] == 0
    assert_measured(Source(files), output, record)
    assert {s["unit"] for s in record["segments"]} == {{"ct": "[hnsf'U]", "signed": "[hnsf'U]", "mr": "1", "pet": "Bq/ml"}[name]}


@pytest.mark.parametrize("rows,columns", [((0, 1, 0), (0, 0, -1)), ((-1, 0, 0), (0, 1, 0)), oblique()],
                         ids=("sagittal", "feet-first", "oblique"))
def test_centroids_are_in_patient_coordinates(tmp_path, rows, columns):
    files = turn(phantom(tmp_path / "in", "--size", "50x41x13", "--spacing", "2,3,4"), rows, columns, (-31.5, 12.25, 700))
    output, record = run(tmp_path, files, measured("Part", 20, 90))
    assert record["segments"][0]["voxels"] > 100
    assert_measured(Source(files), output, record)


def test_slices_with_a_rescale_each(tmp_path):
    """As in PET: slope and intercept differ per slice, and one slope is negative."""
    files = phantom(tmp_path / "in", "--size", "40x40x8", "--kind", "pet")
    for i, file in enumerate(files):
        dataset = pydicom.dcmread(file)
        dataset.RescaleSlope = str(0.5 + 0.125 * i)
        dataset.RescaleIntercept = "0"
        dataset.save_as(file)
    output, record = run(tmp_path, files, measured("Hot", 1000, 1e6))
    assert record["segments"][0]["voxels"] > 50
    assert_measured(Source(files), output, record)


@needs_shared
@pytest.mark.parametrize("name,low,high", [("ct-head-5mm", 100, 3000), ("brain/mprage-sagittal", 100, 4000),
                                           ("chest/lung-kernel", -1000, -500)])
def test_real_series(tmp_path, name, low, high):
    files = sorted(f for f in (SHARED / name).rglob("*") if f.is_file() and pydicom.misc.is_dicom(f))
    output, record = run(tmp_path, files, measured("Region", low, high))
    assert record["segments"][0]["voxels"] > 1000
    assert_measured(Source(files), output, record)


# ------------------------------------------------------------------------------------ the service


def as_row(job, segment):
    """Returns a segment of job.json in the form of v_segments."""
    box = segment["box"] or {"first": [None] * 3, "last": [None] * 3}
    return {"job": job, "segment": segment["number"], "label": segment["label"], "method": segment["method"],
            "voxels": segment["voxels"], "volume_ml": pytest.approx(segment["millilitres"], rel=1e-6),
            **{key: segment[key] for key in ("mean", "minimum", "maximum", "unit")},
            **{f"{end}_{axis}": box[end][i] for end in ("first", "last") for i, axis in enumerate(("column", "row", "slice"))},
            **{f"{axis}_mm": segment["centroid_mm"] and pytest.approx(segment["centroid_mm"][i], abs=1e-4)
               for i, axis in enumerate("xyz")}}


def configured(d, *segments):
    """The daemon, with a pipeline of these segments for all series."""
    before, _, after = d.config.read_text().partition("pipelines = (")
    d.config.write_text(before + pipeline(*segments) + after[after.index("rules = "):].partition("\n")[2])
    return d


def test_every_segment_has_a_row(daemon, tmp_path):
    """v_segments, show and job.json agree, also for an empty segment. Hidden segments are only in job.json."""
    hidden = measured("Draft", 0, 50, "hidden = true;")
    site = Site(daemon, quiet=0.5)
    d = configured(site.daemon, hidden, measured("Head", -200, 60), EMPTY)
    site.start()
    files = phantom(tmp_path / "series", "--size", "48x40x8", "--spacing", "5,6,20")
    drop(files, d.inbox)
    d.wait_jobs()
    output = d.root / "outbox" / "1"
    record = json.loads((output / "job.json").read_text())
    assert [s.get("number") for s in record["segments"]] == [None, 1, 2]
    shown = [s for s in record["segments"] if "number" in s]
    assert_measured(Source(files), output, {"segments": shown})
    rows = [dict(row) for row in d.query("SELECT * FROM v_segments ORDER BY segment")]
    assert len(rows) == 2
    for row, segment in zip(rows, shown):
        expected = as_row(1, segment)
        assert {key: row[key] for key in expected} == expected
        assert (row["pipeline"], row["state"], row["superseded_by"]) == ("p", "DONE", None)
    head = rows[0]
    sizes = [(head[f"last_{axis}"] - head[f"first_{axis}"] + 1) * mm for axis, mm in (("column", 5), ("row", 6), ("slice", 20))]
    assert [head[key] for key in ("width_mm", "height_mm", "depth_mm")] == sizes
    assert rows[1]["width_mm"] is None and rows[1]["x_mm"] is None
    told = json.loads(d.ctl("show", "1", "--json").stdout)
    assert told["breaches"] == []
    for row, printed in zip(rows, told["segments"], strict=True):
        assert printed == {key: pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
                           for key, value in row.items()}
    lines = {line.split()[1]: line.split() for line in d.ctl("show", "1").stdout.splitlines() if " Head " in line or " Nothing " in line}
    assert lines["Nothing"] == ["2", "Nothing", "0.00", "HU"]
    line = lines["Head"]
    assert line[:7] == ["1", "Head", f"{head['volume_ml']:.2f}", *(f"{head[k]:.6g}" for k in ("mean", "minimum", "maximum")), "HU"]
    assert "<h1>Job 1</h1>" in site.text("job?id=1") and site.page("job?id=1").titled() == "Job 1"
    page = rows_below(site.text("job?id=1"), "Segments")
    assert [(row["LABEL"], row["VOLUME (ml)"]) for row in page] == [("Head", f"{head['volume_ml']:.2f}"), ("Nothing", "0.00")]
    (report,) = [json.loads(d.ctl("report", "--json").stdout)["segments"]]
    assert [(r["label"], r["found"], r["empty"], r["median_ml"]) for r in report] == [
        ("Head", 1, 0, round(head["volume_ml"], 2)), ("Nothing", 0, 1, None)]
    assert "Nothing" in d.ctl("report").stdout


def test_spacing_and_orientation_of_stacks(daemon, tmp_path):
    d = daemon(quiet=0.5).start()
    files = turn(phantom(tmp_path / "series", "--size", "48x40x8", "--spacing", "5,6,20"), (0, 1, 0), (0, 0, -1), (1, 2, 3))
    drop(files, d.inbox)
    wait_for(lambda: d.query("SELECT 1 FROM v_stacks"), 60, "the stack")
    (row,) = d.query("SELECT * FROM v_stacks")
    assert (row["spacing_x_mm"], row["spacing_y_mm"], row["spacing_mm"]) == pytest.approx((5, 6, 20))
    assert (row["orientation"], row["image_orientation"]) == ("sagittal", "0\\1\\0\\0\\0\\-1")


def test_broken_expectations_are_columns(daemon, tmp_path):
    d = configured(daemon(quiet=0.5), measured("Head", -200, 60, EXPECT)).start()
    drop(phantom(tmp_path / "series", "--size", "48x40x8"), d.inbox)
    d.wait_jobs(states=("REVIEW",))
    (job,) = d.jobs()
    (segment,) = d.query("SELECT * FROM v_segments")
    assert (job["broken_expectation"], job["broken_label"], job["broken_low"], job["broken_high"]) == ("volume_ml", "Head", 1, 2)
    assert job["broken_found"] == pytest.approx(segment["volume_ml"], rel=1e-6) and segment["state"] == "REVIEW"
    rows = d.query("SELECT * FROM v_breaches ORDER BY place")
    assert [(r["expectation"], r["segment"], r["found"], r["low"], r["high"]) for r in rows] == [
        ("volume_ml", 1, job["broken_found"], 1, 2), ("mean", 1, segment["mean"], 1, 2)]
