"""noctule validate, the validations that it stores, and the jobs that they allow."""

import json
import re

import numpy as np
import pydicom
import pytest

from cluster import cluster  # noqa: F401, the fixture
from conftest import drop, phantom, wait_for
from objects import save, segmentation
from test_review import expecting, under_review
from test_slurm import on_slurm

SCANNERS = (("SIEMENS", "Force", "Br40"), ("GE", "Revolution", "STANDARD"))


def series(folder, seed, kernel=None, patient=None):
    """Writes a small series of one of two scanners, and returns its files."""
    files = phantom(folder, "--size", "32x32x6", "--seed", str(seed))
    maker, model, own = SCANNERS[seed % 2]
    for file in files:
        ds = pydicom.dcmread(file)
        ds.PatientID = patient or f"P{seed}"
        ds.Manufacturer, ds.ManufacturerModelName, ds.ConvolutionKernel = maker, model, kernel or own
        ds.save_as(file)
    return files


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """21 series of 20 patients with references that equal the result, and one of another region."""
    home = tmp_path_factory.mktemp("cases")
    for seed in range(1, 22):
        files = series(home / f"references/{seed}/images", seed, patient="P1" if seed == 21 else None)
        images = sorted(map(pydicom.dcmread, files), key=lambda ds: float(ds.ImagePositionPatient[2]))
        stored = np.stack([ds.pixel_array * float(ds.RescaleSlope) + float(ds.RescaleIntercept) for ds in images])
        save(segmentation(files, label="Tissue", mask=((stored >= 5) & (stored <= 80)).astype(np.uint8)),
             home / f"references/{seed}/reference.dcm")
    phantom(home / "others", "--kind", "sphere", "--size", "32x32x6")
    return home


def needing(d):
    """Starts a daemon whose pipeline needs a validation; a sphere breaks its limits."""
    expecting(d, 'expect = { volume_ml = [ 100.0, 5000.0 ]; trust = "local"; };')
    text = re.sub(r'method = "level-set".*?\);\n', 'method = "range"; range = [ 5.0, 80.0 ];\n', d.config.read_text(), flags=re.S)
    d.config.write_text(text)
    return d.start()


@pytest.fixture
def d(daemon):
    return needing(daemon())


def validate(d, cases, output, *arguments, status=0):
    done = d.ctl("validate", "--references", cases / "references", "--others", cases / "others", "--output", output,
                 "--region", "Brain=Tissue", "--quiet", *arguments, "head-ct", check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def outcome_of(d, files):
    """Sends a series, and returns the state and the message of its job."""
    before = len(d.jobs())
    drop(files, d.inbox)
    wait_for(lambda: len(d.jobs()) > before and d.jobs()[-1]["state"] in ("DONE", "REVIEW"), 120, "the job")
    return d.jobs()[-1]["state"], d.jobs()[-1]["message"]


def test_a_validation_releases_jobs_of_its_images(d, cases, tmp_path):
    state, message = outcome_of(d, series(tmp_path / "before", 100))
    assert state == "REVIEW" and "not validated at this site" in message
    said = validate(d, cases, tmp_path / "out")
    assert "head-ct: passed\n20 patients, 21 of 21 results DONE; 0 of 1 of other regions DONE; 0 wrong and DONE" in said
    assert "at most 13.6 %" in said and "SIEMENS Force, kernel Br40" in said
    (row,) = json.loads(d.ctl("validations", "--json").stdout)
    assert (row["name"], row["passed"], row["in_force"], row["patients"], row["cases"], row["wrong"]) == (
        "head-ct", 1, 1, 20, 21, 0)
    ranges = d.query("SELECT manufacturer, kernel, patients FROM v_validated_ranges ORDER BY manufacturer")
    assert [tuple(each) for each in ranges] == [("GE", "STANDARD", 10), ("SIEMENS", "Br40", 10)]
    assert "P1" not in str([tuple(row) for row in d.query("SELECT * FROM v_validation_cases")]), "patients are hashed"
    page = (tmp_path / "out/validation.html").read_text()
    assert page.count("data:image/png;base64,") == 5 and "head-ct: passed" in page
    for number, (kernel, expected) in enumerate(((None, "DONE"), ("Br64", "REVIEW"))):
        state, message = outcome_of(d, series(tmp_path / f"after-{number}", 101 + number, kernel))
        assert state == expected, message
    assert "not validated for this kernel (Br64)" in message
    # Without the daemon, `run` reads the same ranges.
    assert d.ctl("run", "-p", "head-ct", "-o", tmp_path / "run-0", tmp_path / "after-0").returncode == 0
    assert d.ctl("run", "-p", "head-ct", "-o", tmp_path / "run-1", tmp_path / "after-1", check=False).returncode == 8
    # A job is compared with a reference by its number.
    images = sorted((tmp_path / "after-0").glob("*.dcm"))
    drawn = save(segmentation(images, label="Tissue"), tmp_path / "drawn.dcm")
    (row,) = json.loads(d.ctl("compare", "--json", "--region", "Brain=Tissue", "2", drawn).stdout)["regions"]
    assert 0 < row["dice"] < 1 and row["found"].endswith("outbox/2/seg.dcm")
    # A later validation with a wrong result ends it.
    images = sorted((cases / "references/1/images").glob("*.dcm"))
    (tmp_path / "wrong/references").mkdir(parents=True)
    save(segmentation(images, label="Tissue"), tmp_path / "wrong/references/reference.dcm")
    phantom(tmp_path / "wrong/others", "--kind", "sphere", "--size", "32x32x6")
    for image in images:
        (tmp_path / "wrong/references" / image.name).write_bytes(image.read_bytes())
    said = validate(d, tmp_path / "wrong", tmp_path / "out-wrong", status=8)
    assert "WRONG" in said and "not passed: 1 results are wrong, but DONE" in said
    assert [row["in_force"] for row in json.loads(d.ctl("validations", "--json").stdout)] == [0, 0]
    state, message = outcome_of(d, series(tmp_path / "last", 103))
    assert state == "REVIEW" and len(under_review(d)) == 3


def test_jobs_in_slurm_need_the_same_validation(daemon, cluster, cases, tmp_path):  # noqa: F811
    d = needing(on_slurm(daemon, cluster()))
    state, message = outcome_of(d, series(tmp_path / "before", 100))
    assert state == "REVIEW" and "not validated at this site" in message
    validate(d, cases, tmp_path / "out")
    state, message = outcome_of(d, series(tmp_path / "inside", 101))
    assert state == "DONE", message
    state, message = outcome_of(d, series(tmp_path / "outside", 102, "Br64"))
    assert state == "REVIEW" and "not validated for this kernel (Br64)" in message
    assert {job["executor"] for job in d.jobs()} == {"slurm"}


def test_few_patients_and_missing_references(d, cases, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    (few / "references").symlink_to(cases / "references/2")
    (few / "others").symlink_to(cases / "others")
    said = validate(d, few, tmp_path / "out", "--dry-run", status=8)
    assert "not passed: 1 patients with a reference of each segment, 20 are needed" in said
    assert json.loads(d.ctl("validations", "--json").stdout) == []
    said = d.ctl("validate", "--references", few / "references", "--output", tmp_path / "unnamed", "--dry-run", "--quiet",
                 "head-ct", check=False)
    assert said.returncode == 8 and "no region has the same name" in said.stderr
    record = json.loads((tmp_path / "out/validation.json").read_text())
    assert [case["outcome"] for case in record["cases"]] == ["DONE", "REVIEW"]
    assert "volume" in record["cases"][1]["checks"]
