"""SR of other software as job input, from highdicom's report through its C-STORE to the result. test_objects.py has
the same for RTSTRUCT."""

import pydicom
import pytest
from conftest import phantom, storescu, wait_for
from objects import send, structure_set
from test_contours import Planes
from test_objects import gtv, naming, objects, voxels
from test_run_reports import SCT_LESION, SCT_NODULE, group, report, space

WANTED = 'kind = "sr"; roi = "Nodule*";'


@pytest.fixture
def files(tmp_path):
    return phantom(tmp_path / "images", "--size", "32x32x6")


def nodule(tmp_path, files, side=5, name="Nodule 1", finding=SCT_NODULE, predecessor=None):
    """Returns a report, as a data set, with a square of that many voxels per side on the third plane, around the
    middle."""
    planes = Planes(files)
    half = side / 2
    square = [planes.point(2, 15 + x * half, 15 + y * half) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))]
    region = space(planes, square, "POLYGON")
    ds = pydicom.dcmread(report(tmp_path / "report.dcm", planes, [group(planes, name, region, finding)]))
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    ds.SeriesInstanceUID = pydicom.uid.generate_uid()
    if predecessor:
        of, series_of, study = (pydicom.Dataset() for _ in range(3))
        of.ReferencedSOPClassUID, of.ReferencedSOPInstanceUID = predecessor.SOPClassUID, predecessor.SOPInstanceUID
        series_of.SeriesInstanceUID, series_of.ReferencedSOPSequence = predecessor.SeriesInstanceUID, [of]
        study.StudyInstanceUID, study.ReferencedSeriesSequence = predecessor.StudyInstanceUID, [series_of]
        ds.PredecessorDocumentsSequence = [study]
    return ds


@pytest.mark.parametrize("first", ["the object", "the series"])
def test_a_job_waits_for_its_report(daemon, files, tmp_path, first):
    d = naming(daemon, tmp_path, wanted=WANTED)
    marks = nodule(tmp_path, files)
    if first == "the object":
        assert send(d.port, marks) == [0]
    storescu(d.port, *files)
    if first == "the series":
        job = gtv(d, "DELAYED")
        assert job["code"] == "OBJECT_WAITING" and "report (sr)" in job["message"], dict(job)
        d.kill_all()
        d.start()
        assert send(d.port, structure_set(files)) == [0]  # of another kind
        assert gtv(d, "DELAYED")["job"] == job["job"]
        assert send(d.port, marks) == [0]
    job = gtv(d, "DONE", "FAILED")
    assert (job["state"], job["revision"]) == ("DONE", 1), job["message"]
    assert voxels(d, job) == 25
    assert "sr" in [row["kind"] for row in objects(d, f"series_uid = '{job['series_uid']}'")]


def test_a_replacement_report_makes_a_new_job(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted=WANTED)
    before = nodule(tmp_path, files)
    assert send(d.port, before) == [0]
    storescu(d.port, *files)
    assert voxels(d, gtv(d, "DONE")) == 25
    assert send(d.port, nodule(tmp_path, files, 9, predecessor=before)) == [0]
    after = wait_for(lambda: (job := gtv(d, "DONE", "FAILED"))["revision"] == 2 and job, 60, "the new job")
    assert after["state"] == "DONE" and voxels(d, after) == 81, after["message"]


def test_two_reports_of_one_finding_are_refused_by_name(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted=WANTED)
    assert send(d.port, nodule(tmp_path, files), nodule(tmp_path, files, 9)) == [0, 0]
    storescu(d.port, *files)
    job = gtv(d, "DONE", "FAILED")
    assert (job["state"], job["code"]) == ("FAILED", "OBJECT_AMBIGUOUS") and job["message"].count(".dcm") == 2, dict(job)


def test_a_report_without_the_finding_and_one_from_another(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted=WANTED, sender='from_ae = "TPS";')
    storescu(d.port, *files)
    assert "report (sr) from TPS" in gtv(d, "DELAYED")["message"]
    assert send(d.port, nodule(tmp_path, files)) == [0] and gtv(d, "DELAYED")
    assert send(d.port, nodule(tmp_path, files, name="Scar", finding=SCT_LESION), calling="TPS") == [0]
    job = gtv(d, "DONE", "FAILED")
    assert job["code"] == "ROI_NOT_FOUND" and 'it has 1 "Scar"' in job["message"], dict(job)
