"""`noctule run --cohort` makes one table of a tree of patients, without a daemon. Values are compared with NumPy on the
masks of the contours, and with published masks of real patients."""

import copy
import csv
import os
import re
import shutil
import subprocess

import numpy as np
import pandas
import pydicom
import pydicom.uid
import pytest
import scipy.ndimage
from conftest import BIN, SHARED, SOURCE, Daemon, drop, needs_shared, phantom
from test_contours import Planes, nifti_mask, peer_mask, ring, structure_set

PARTIAL = 1
PIPELINE = """{ name = "lesions"; results = [ "seg" ];
    segments = ( { label = "Lesions"; method = "object"; object = { kind = "rtstruct"; roi = "GTV*"; each = true; };
        type = { code = "52988006"; scheme = "SCT"; meaning = "Lesion"; }; } );
    texture = { families = [ "first-order", "shape" ]; discretisation = "fixed-bin-size"; bin_width = 25.0; }; }"""


def values_of(files):
    """Returns the values of a series in HU, slices in the order of Planes, and the volume of a voxel in ml."""
    datasets = [pydicom.dcmread(file) for file in files]
    datasets.sort(key=lambda ds: float(ds.ImagePositionPatient[2]))
    step = (float(datasets[-1].ImagePositionPatient[2]) - float(datasets[0].ImagePositionPatient[2])) / (len(datasets) - 1)
    voxel = step * float(datasets[0].PixelSpacing[0]) * float(datasets[0].PixelSpacing[1])
    return np.stack([ds.pixel_array * float(ds.RescaleSlope) + float(ds.RescaleIntercept) for ds in datasets]), voxel / 1000


def give_contours(folder, planes, rois):
    path = structure_set(folder, planes, rois)
    ds = pydicom.dcmread(path)
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    ds.PatientID = planes.files[0].PatientID
    ds.save_as(path)
    contours = [roi.get("ContourSequence", []) for roi in ds.ROIContourSequence]
    return {name: peer_mask(planes, [c.ContourData for c in drawn if c.ContourGeometricType == "CLOSED_PLANAR"])
            for name, drawn in zip(rois, contours, strict=True)}


def run_tree(folder, *inputs, options="", output="out", pipeline=PIPELINE):
    """Returns the CompletedProcess, and the four tables as pandas reads them."""
    (folder / "study.conf").write_text(f'root = "{folder / "root"}"; {options} pipelines = ( {pipeline} );')
    done = subprocess.run([BIN / "noctule", "--config", folder / "study.conf", "run", "--pipeline", "lesions", "--cohort",
                           "--output", folder / output, *inputs], cwd=folder, text=True, capture_output=True, timeout=300,
                          env=os.environ | {"TMPDIR": str(folder)})
    assert not list(folder.glob("noctule-step-*")) and not list((folder / output).glob("*.part"))
    return done, {path.stem: pandas.read_csv(path, dtype={"patient": str}, keep_default_na=False, na_values={})
                  for path in (folder / output).glob("*.csv")}


def assert_reasons_are_complete(tables):
    """Each empty cell of a feature has one reason, and no other cell has one."""
    cohort, reasons = tables["cohort"], tables["reasons"]
    features = list(tables["dictionary"][tables["dictionary"].family != ""].column)
    empty = {(job, segment, column) for column in features
             for job, segment, value in zip(cohort.job, cohort.segment, cohort[column], strict=True) if value == ""}
    assert sorted(empty) == sorted(zip(reasons.job, reasons.segment, reasons.column, strict=True))
    assert (reasons.message != "").all()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Six patients: one lesion, two lesions and one that is only a point, a broken image, no contours, a missing image,
    and a file that is no image in all of them. Returns the folder and the masks of patients by region."""
    folder = tmp_path_factory.mktemp("tree")
    masks = {}
    for number, name in enumerate(("anna", "ben", "cem", "dora", "emil"), start=1):
        files = phantom(folder / "in" / name / "ct", "--size", "70x61x9", "--seed", number)
        (folder / "in" / name / "notes.txt").write_text("from the PACS")
        planes = Planes(files)
        rois = {"GTV": [("CLOSED_PLANAR", ring(planes, z, (33, 31), (12, 11 + z), 90)) for z in (3, 4, 5)]}
        if name == "ben":
            rois = {"GTV-1": [("CLOSED_PLANAR", ring(planes, z, (20, 31), (6, 9), 60)) for z in (2, 3)],
                    "Heart": [("CLOSED_PLANAR", ring(planes, 4, (30, 30), (9, 9), 40))],
                    "GTV-2": [("CLOSED_PLANAR", ring(planes, z, (45, 30), (9, 5), 60)) for z in (4, 5, 6)],
                    "GTV-3": [("POINT", [planes.point(2, 20, 20)])]}
        if name != "dora":
            masks[name] = give_contours(folder / "in" / name, planes, rois)
        if name == "cem":
            files[4].write_bytes(files[4].read_bytes()[:300])
        if name == "emil":
            files[4].unlink()
    return folder, masks


def test_a_tree_of_patients_is_one_table(tree):
    folder, masks = tree
    done, tables = run_tree(folder, "in", options='identifiers = "plain";')
    assert done.returncode == PARTIAL, done.stderr
    rows = tables["cohort"]
    assert list(zip(rows.source, rows.label, rows.segment, strict=True)) == [
        ("folder:anna", "GTV", 1), ("folder:ben", "GTV-1", 1), ("folder:ben", "GTV-2", 2), ("folder:ben", "GTV-3", 3)]
    for row in rows.to_dict("records")[:3]:
        name = row["source"].removeprefix("folder:")
        files = sorted((folder / "in" / name / "ct").glob("*.dcm"))
        values, voxel = values_of(files)
        mask = masks[name][row["label"]]
        inside = values[mask]
        assert len(inside) > 100 and row["patient"] == pydicom.dcmread(files[0]).PatientID
        for feature, expected in (("mean", inside.mean()), ("minimum", inside.min()), ("maximum", inside.max()),
                                  ("variance", inside.var()), ("energy", (inside**2).sum())):
            assert float(row[f"first_order.{feature}"]) == pytest.approx(expected, rel=1e-12), feature
        count = float(row["first_order.energy"]) / float(row["first_order.root_mean_square"])**2
        assert round(count) == mask.sum() and count == pytest.approx(mask.sum(), rel=1e-9)
        assert float(row["shape.volume"]) == pytest.approx(mask.sum() * voxel, rel=1e-8)
    # a region without a voxel is a row with reasons
    assert_reasons_are_complete(tables)
    assert set(tables["reasons"].code) == {"EMPTY_REGION"} and set(tables["reasons"].label) == {"GTV-3"}
    # a patient without a row has a reason
    failed = tables["failed"]
    assert [(row.source, row.state, row.code) for row in failed.itertuples() if row.state != "UNREADABLE"] == [
        ("folder:cem", "REFUSED", failed.code[failed.source == "folder:cem"].item()),
        ("folder:dora", "FAILED", "OBJECT_MISSING"),
        ("folder:emil", "REFUSED", failed.code[failed.source == "folder:emil"].item())]
    (broken,) = failed[failed.state == "UNREADABLE"].itertuples()
    assert broken.code == "FILE_TRUNCATED" and "/in/cem/ct/" in broken.file
    assert set(failed.code[failed.state == "REFUSED"]) <= {"INCOMPLETE_SERIES", "MISSING_SLICE"}
    assert (failed.message != "").all()
    assert "without a row: 1 UNREADABLE, 2 REFUSED, 1 FAILED (jobs, series and files). 3 patients are not in the table, which " \
           f"has 2 jobs of 2 patients. {folder / 'out'}/failed.csv lists the reasons." in done.stderr
    assert "column patient" not in done.stderr
    # each patient has a folder
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "anna", "ben", "cohort.csv", "dictionary.csv", "failed.csv", "reasons.csv"]
    assert all(len(list((folder / "out" / name).glob("*/seg.dcm"))) == 1 for name in ("anna", "ben"))


def test_several_inputs_are_patients(tree):
    folder, _ = tree
    done, tables = run_tree(folder, "in/anna", "in/ben", output="two")
    assert done.returncode == 0, done.stderr
    assert list(tables["cohort"].source) == ["folder:anna"] + ["folder:ben"] * 3
    assert (tables["cohort"].patient == "").all() and tables["failed"].empty
    assert f"needs the key of {folder / 'root'}" in done.stderr and 'identifiers = "plain"' in done.stderr


def test_no_patient_with_a_region(tree):
    """No table of an earlier run stays."""
    folder, _ = tree
    (folder / "none").mkdir()
    for name in ("cohort", "dictionary", "reasons", "failed"):
        (folder / "none" / f"{name}.csv").write_text("earlier")
    done, tables = run_tree(folder, "in/dora", output="none")
    assert done.returncode == PARTIAL and set(tables) == {"failed"}
    assert list(tables["failed"].code) == ["OBJECT_MISSING"] and "no selected job of pipeline lesions has features" in done.stderr


def test_components_are_rows_as_documented(tmp_path):
    """Two contours of three components, of which one has a hole: components by size, as SciPy labels them."""
    (segments,) = re.findall(r"```\n(segments = .*?)```", (SOURCE / "docs" / "cohort.md").read_text(), re.S)
    files = phantom(tmp_path / "in" / "ct", "--size", "70x61x9", "--seed", 5)
    planes = Planes(files)
    rois = {"GTV": [("CLOSED_PLANAR", ring(planes, z, center, radii, 60)) for z in (2, 3, 4)
                    for center, radii in (((15, 20), (6, 9)), ((45, 20), (9, 9)), ((45, 20), (3, 3)))],
            "GTV small": [("CLOSED_PLANAR", ring(planes, 6, (30, 45), (7, 5), 60))]}
    masks = give_contours(tmp_path / "in", planes, rois)
    labels, count = scipy.ndimage.label(np.logical_or.reduce(list(masks.values())))
    sizes = sorted(((labels == number).sum(), number) for number in range(1, count + 1))[::-1]
    values, voxel = values_of(files)
    done, tables = run_tree(tmp_path, "in", pipeline=f'{{ name = "lesions"; {segments} '
                            'texture = { families = [ "first-order", "shape" ]; }; }')
    assert done.returncode == 0, done.stderr
    rows = tables["cohort"].to_dict("records")
    assert [row["label"] for row in rows] == ["Lesion 1", "Lesion 2", "Lesion 3"] and count == 3
    for row, (size, number) in zip(rows, sizes, strict=True):
        assert float(row["shape.volume"]) == pytest.approx(size * voxel, rel=1e-8)
        assert float(row["first_order.mean"]) == pytest.approx(values[labels == number].mean(), rel=1e-12)
    assert tables["reasons"].empty
    # a patient with one lesion
    masks = give_contours(tmp_path / "in", planes, {"GTV": rois["GTV small"]})
    _, tables = run_tree(tmp_path, "in", output="one", pipeline=f'{{ name = "lesions"; {segments} '
                         'texture = { families = [ "first-order", "shape" ]; }; }')
    assert list(tables["cohort"]["shape.volume"].astype(float)) == pytest.approx([masks["GTV"].sum() * voxel, 0, 0], rel=1e-8)
    assert set(tables["reasons"].label) == {"Lesion 2", "Lesion 3"} and set(tables["reasons"].code) == {"EMPTY_REGION"}


def test_the_daemon_makes_the_same_table(tree, tmp_path):
    """A received patient has the same cells as in the table of the tree, except those of job and arrival."""
    folder, _ = tree
    _, tables = run_tree(folder, "in/anna", "in/ben", output="again", options='identifiers = "plain";')
    d = Daemon(tmp_path / "daemon", quiet=0.5)
    d.config.write_text(d.config.read_text().replace("pipelines = (", f"identifiers = \"plain\"; pipelines = ( {PIPELINE},")
                        .replace('pipeline = "head-ct"; priority', 'pipeline = "lesions"; priority'))
    try:
        d.start()
        for number, name in enumerate(("anna", "ben"), start=1):
            drop(sorted((folder / "in" / name).rglob("*.dcm")), d.inbox)
            d.wait_jobs(count=number)
        told = subprocess.run([BIN / "noctule", "--config", d.config, "cohort", "--pipeline", "lesions"], text=True,
                              capture_output=True, check=True)
    finally:
        d.kill_all()
    assert told.stderr == ""
    rows = list(csv.DictReader(told.stdout.splitlines()))
    with open(folder / "again" / "cohort.csv", newline="") as file:
        expected = list(csv.DictReader(file))
    assert len(rows) == len(expected) == 4
    for row, other in zip(rows, expected, strict=True):
        differ = {key for key in row if row[key] != other[key]}
        assert list(row) == list(other) and differ <= {"measured_at", "source", "configuration", "version"}, differ


@needs_shared
def test_real_patients_with_published_masks(tmp_path):
    """Four soft tissue sarcomas: the contour of one is divided into two regions, one has a broken image, one no contour."""
    for name in ("STS_001", "STS_002", "STS_006", "STS_008"):
        shutil.copytree(SHARED / "sarcoma" / name / "CT", tmp_path / "in" / name, copy_function=shutil.copyfile)
    shutil.rmtree(tmp_path / "in" / "STS_008" / "mask")
    broken = sorted((tmp_path / "in" / "STS_006" / "image").glob("*.dcm"))[5]
    broken.write_bytes(broken.read_bytes()[:300])
    (path,) = (tmp_path / "in" / "STS_002" / "mask").glob("*.dcm")
    ds = pydicom.dcmread(path)
    (drawn,) = ds.ROIContourSequence
    heights = sorted(float(c.ContourData[2]) for c in drawn.ContourSequence)
    border = heights[len(heights) // 2]
    (roi,) = ds.StructureSetROISequence
    upper, upper_roi = copy.deepcopy(drawn), copy.deepcopy(roi)
    upper.ContourSequence = [c for c in drawn.ContourSequence if float(c.ContourData[2]) >= border]
    drawn.ContourSequence = [c for c in drawn.ContourSequence if float(c.ContourData[2]) < border]
    upper.ReferencedROINumber = upper_roi.ROINumber = 99
    upper_roi.ROIName = "GTV_upper"
    ds.ROIContourSequence.append(upper)
    ds.StructureSetROISequence.append(upper_roi)
    ds.save_as(path)
    done, tables = run_tree(tmp_path, "in", options='identifiers = "plain";')
    assert done.returncode == PARTIAL
    rows = tables["cohort"]
    assert list(zip(rows.patient, rows.label, strict=True)) == [
        ("STS_001", "GTV_Mass_CT"), ("STS_002", "GTV_Mass_CT"), ("STS_002", "GTV_upper")]
    for row in rows.to_dict("records"):
        name = row["patient"]
        files = sorted((SHARED / "sarcoma" / name / "CT" / "image").glob("*.dcm"))
        values, voxel = values_of(files)
        mask = nifti_mask(SHARED / "sarcoma" / name / "nifti" / "CT_mask.nii.gz")
        planes = Planes(files)
        if name == "STS_002":
            above = np.array([origin[2] >= border - 0.01 for origin in planes.origins])
            mask = mask & (above if row["label"] == "GTV_upper" else ~above)[:, None, None]
        inside = values[mask]
        assert float(row["first_order.mean"]) == pytest.approx(inside.mean(), rel=1e-12)
        assert float(row["first_order.variance"]) == pytest.approx(inside.var(), rel=1e-9)
        assert float(row["shape.volume"]) == pytest.approx(mask.sum() * voxel, rel=1e-8)
    assert_reasons_are_complete(tables)
    assert [(row.patient, row.state, row.code) for row in tables["failed"].itertuples() if row.patient] == [
        ("STS_006", "REFUSED", "MISSING_SLICE"), ("STS_008", "FAILED", "OBJECT_MISSING")]
    assert all("STS_006" in row.file for row in tables["failed"].itertuples() if row.state == "UNREADABLE")
