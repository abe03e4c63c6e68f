"""docs/first-study.md from its first command to its tables, with every command as printed, on real patients with
contours if they are here."""

import csv
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import BIN, SHARED, SOURCE, phantom
from test_contours import Planes, nifti_mask, ring
from test_run_cohort import give_contours, values_of

PAGE = SOURCE / "docs" / "first-study.md"


def patients(folder):
    """Makes the folder with which the document begins. Returns the values in HU within the contour of each region, by
    patient and label."""
    inside = {}
    for name in ("STS_001", "STS_002", "STS_006", "STS_008") if SHARED.is_dir() else ():
        home = SHARED / "sarcoma" / name
        shutil.copytree(home / "CT", folder / "patients" / name, copy_function=shutil.copyfile)
        values, _ = values_of((home / "CT" / "image").glob("*.dcm"))
        inside[name, "GTV_Mass_CT"] = values[nifti_mask(home / "nifti" / "CT_mask.nii.gz")]
    for number in range(1, 0 if inside else 4):
        files = phantom(folder / "patients" / f"P{number}", "--size", "70x61x9", "--seed", number)
        planes = Planes(files)
        rois = {f"GTV {at}": [("CLOSED_PLANAR", ring(planes, z, (33 + at, 30), (8, 9), 90)) for z in (3, 4, 5)]
                for at in range(1, 1 + number)}
        for label, mask in give_contours(folder / "patients" / f"P{number}", planes, rois).items():
            inside[planes.files[0].PatientID, label] = values_of(files)[0][mask]
    return inside


def study(folder, programs, page=PAGE):
    """Runs the commands of a document in one folder, with the programs of another folder. Returns its Python blocks."""
    blocks = re.findall(r"```(sh|python)\n(.*?)```", page.read_text(), re.S)
    shell = "".join(text for kind, text in blocks if kind == "sh")
    # Background processes end with the script, also when a command fails.
    script = "set -em\ntrap 'kill %1 2>/dev/null || true; wait' EXIT\n" + shell
    done = subprocess.run(["bash", "-c", script], cwd=folder, text=True, capture_output=True, timeout=300,
                          env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"})
    print(done.stdout + done.stderr)
    assert done.returncode == 0
    return [text for kind, text in blocks if kind == "python"]


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_documented_study_runs_as_printed(tmp_path):
    inside = patients(tmp_path)
    (python,) = study(tmp_path, BIN)
    assert (tmp_path / "first" / "preview.png").stat().st_size > 10000
    for path in (tmp_path / "results" / "cohort.csv", tmp_path / "cohort.csv"):  # without and with the service
        rows = {(row["patient"], row["label"]): row for row in rows_of(path)}
        assert rows.keys() == inside.keys() and len(rows_of(path)) == len(rows)
        for region, values in inside.items():
            volume = np.prod([float(rows[region][f"spacing_{axis}_mm"]) for axis in "xyz"]) * len(values) / 1000
            # ibsi-c resamples to 2 mm, and excludes values outside -1000 .. 400 HU
            assert float(rows[region]["shape.volume.linear.iso2"]) == pytest.approx(volume, rel=0.05)
            mean = float(rows[region]["first_order.mean.linear.iso2.from_m1000.to_400"])
            assert mean == pytest.approx(values[values <= 400].mean(), abs=0.1 * values.std())
    first, service = (rows_of(tmp_path / folder / "cohort.csv") for folder in ("results", "."))
    features = [row["column"] for row in rows_of(tmp_path / "dictionary.csv") if row["family"]]
    assert len(features) > 100
    by_region = {(row["patient"], row["label"]): row for row in service}
    for row in first:
        assert [row[name] for name in features] == [by_region[row["patient"], row["label"]][name] for name in features]
    assert rows_of(tmp_path / "results" / "failed.csv") == rows_of(tmp_path / "failed.csv") == []
    table = subprocess.run([sys.executable, "-c", python], cwd=tmp_path, text=True, capture_output=True, check=True).stdout
    assert all(word in table for word in ("shape.volume", "glcm.joint_entropy", *(region[0] for region in inside)))
    lungs = rows_of(tmp_path / "lungs-results" / "cohort.csv")
    assert [(row["source"], row["label"]) for row in lungs] == [
        (f"folder:{number}", label) for number in (1, 2, 3) for label in ("Aerated lungs", "Right lung", "Left lung")]
    assert len({row["patient"] for row in lungs}) == 3
    assert all(4000 < float(row["shape.volume.linear.iso2"]) < 5000 for row in lungs if row["label"] == "Aerated lungs")
