"""`noctule cohort` prints measurements of jobs as one table with exact values. The examples of docs/cohort.md run as
printed."""

import csv
import json
import math
import re
import shutil
import sqlite3
import subprocess
import sys

import pandas
import pydicom
import pytest
from conftest import BIN, SOURCE, Daemon, drop, phantom, run_program, wait_for

TEXTURE = """texture = ( { profile = "ibsi-b"; regions = [ "segments", "volume" ]; resample = { in_plane_mm = 7.0; }; },
                         { families = [ "glcm" ]; discretisation = "fixed-bin-size"; bin_width = 30.0; } );"""
USAGE, NOT_FOUND = 2, 3


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A daemon with two finished jobs and a refused series. Tests only read its database, so they share it."""
    folder = tmp_path_factory.mktemp("measured")
    d = Daemon(folder / "daemon", quiet=0.5, pipeline_extra=TEXTURE)
    try:
        d.start()
        for number in (1, 2):
            files = phantom(folder / f"series{number}", "--size", "48x40x8", "--seed", number)
            for place, path in enumerate(files):
                dataset = pydicom.dcmread(path)
                if number == 1:
                    dataset.Manufacturer, dataset.ManufacturerModelName = "Scan, Son & Co", "Uno"
                    dataset.ConvolutionKernel, dataset.KVP = ["FC13", "soft"], "120.0"
                    dataset.SliceThickness *= 1 + (place == 3)
                elif place >= 4:  # a larger step between the fourth and the fifth slice
                    dataset.ImagePositionPatient[2] += 1.5
                if number == 2:
                    del dataset.ConvolutionKernel, dataset.KVP
                if number == 2 and place == 7:
                    del dataset.SliceThickness
                dataset.save_as(path)
            drop(files, d.inbox)
            d.wait_jobs(count=number)
        files = phantom(folder / "series3", "--size", "48x40x8", "--seed", 3)
        drop(files[:3] + files[4:], d.inbox)
        wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")
        yield d
    finally:
        d.kill_all()
    assert "event=role.call_unknown" not in d.log.read_text(errors="replace")


def run_cohort(d, *arguments, **options):
    return subprocess.run([BIN / "noctule", "--config", d.config, "cohort", *map(str, arguments)], text=True, capture_output=True,
                          **options)


def read(d, *arguments):
    dictionary = d.root / "dictionary.csv"
    table = run_cohort(d, "--pipeline", "head-ct", "--dictionary", dictionary, *arguments, check=True).stdout
    return list(csv.DictReader(table.splitlines())), list(csv.DictReader(dictionary.read_text().splitlines()))


def defining(settings):
    parts = settings.split(";")
    width = any(part.startswith("bin_width=") for part in parts)
    return ";".join(part for part in parts if not (width and part.startswith("levels=")))


def test_the_table_marks_straightened_volumes(measured):
    rows, _ = read(measured)
    source = pydicom.dcmread(next(measured.root.parent.parent.glob("series1/*")))
    dy, dx = map(float, source.PixelSpacing)
    step = float(source.SliceThickness)
    assert rows[0]["job"] == "1" and rows[-1]["job"] == "2"
    for row in rows:
        even = row["job"] == "1"
        assert [float(row[key]) for key in ("source_x_mm", "source_y_mm", "source_step_min_mm", "source_step_max_mm")] == \
            pytest.approx([dx, dy, step, step if even else step + 1.5], abs=1e-5)
        assert row["straightened"] == ("0" if even else "1")
        assert row["straightened_because"] == ("" if even else f"{step:.3g} to {step + 1.5:.3g} mm apart")
        assert float(row["spacing_x_mm"]) == pytest.approx(dx) and float(row["spacing_y_mm"]) == pytest.approx(dy)
        keys = ("spacing_z_mm", "straightened", "straightened_because", "source_step_max_mm")
        (told,) = measured.query(f"SELECT DISTINCT {', '.join(keys)} FROM v_features WHERE job = {row['job']}")
        assert [str(told[key]) for key in keys] == [row[key] for key in keys]
    assert float(rows[0]["spacing_z_mm"]) == pytest.approx(step)


def test_the_table_names_the_scan(measured):
    rows, _ = read(measured)
    keys = ("manufacturer", "model", "kernel", "kvp", "slice_thickness_min_mm", "slice_thickness_max_mm")
    source = pydicom.dcmread(sorted(measured.root.parent.parent.glob("series2/*"))[0])
    thick = float(source.SliceThickness)
    expected = {"1": ["Scan, Son & Co", "Uno", "FC13/soft", "120.0", str(thick), str(2 * thick)],
                "2": [source.Manufacturer, source.ManufacturerModelName, "", "", "", ""]}
    assert {row["job"] for row in rows} == set(expected)
    for row in rows:
        assert [row[key] for key in keys] == expected[row["job"]]
    for job, values in expected.items():
        for view in ("v_features", "v_jobs"):
            (found,) = measured.query(f"SELECT DISTINCT {', '.join(keys)} FROM {view} WHERE job = {job}")
            assert ["" if found[key] is None else str(found[key]) for key in keys] == values
        record = json.loads((measured.root / f"outbox/{job}/job.json").read_text())["volume"]["source"]
        assert [record[key] or "" for key in keys[:4]] == values[:3] + [float(values[3]) if values[3] else ""]
        assert record["slice_thickness_mm"] == [float(value) if value else None for value in values[4:]]


def test_the_table_has_every_bit(measured):
    rows, dictionary = read(measured)
    keys = [line["column"] for line in dictionary if not line["family"]]
    columns = {(line["family"], line["name"], line["settings"]): line for line in dictionary if line["family"]}
    names = [line["column"] for line in columns.values()]
    assert list(rows[0]) == keys + names and names == sorted(set(names)) and len(names) + len(keys) == len(dictionary)
    assert [(row["job"], row["segment"]) for row in rows] == [("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")]
    for row in rows:
        told = measured.query("SELECT * FROM v_features WHERE job = ? AND segment = ?", row["job"], row["segment"])
        assert len(told) > 100
        expected = {}
        for feature in told:
            line = columns[feature["family"], feature["name"], defining(feature["settings"])]
            assert (line["unit"], line["ibsi_code"]) == (feature["unit"], feature["ibsi_code"])
            assert line["column"] not in expected
            expected[line["column"]] = feature["value"]
        assert {name: float(row[name]) if row[name] else None for name in expected} == expected
        assert not any(row[name] for name in set(names) - set(expected))
        assert row["label"] == told[0]["label"] and row["series_uid"] == told[0]["series_uid"]
        assert re.fullmatch("h:[0-9a-f]{24}", row["patient"])
    assert {"first_order.mean.linear.plane7.from_m500.to_400", "glcm.joint_entropy.3d_merged.fbs30",
            "ngldm.low_dependence_emphasis.2d.fbn32.linear.plane7.from_m500.to_400"} <= set(names)
    assert {row["version"] for row in rows} == {run_program("noctule", "version").stdout.split()[1]}
    assert len({row["series_uid"] for row in rows}) == 2 and len({row["configuration"] for row in rows}) == 1


def test_regions_are_chosen(measured):
    assert len(read(measured, "--modality", "CT", "--since", "1h")[0]) == 4
    for arguments, status in (((), USAGE), (("--pipeline", "none"), NOT_FOUND),
                              (("--pipeline", "head-ct", "--modality", "MR"), NOT_FOUND),
                              (("--pipeline", "head-ct", "--since", "2999-01-01"), NOT_FOUND)):
        refused = run_cohort(measured, *arguments)
        assert refused.returncode == status and refused.stdout == "" and refused.stderr


def test_patients_without_a_row_are_counted_and_listed(measured):
    table = run_cohort(measured, "--pipeline", "head-ct", check=True)
    counted = "noctule: without a row: 1 REFUSED (jobs, series and files). 1 patient is not in the table, which has 2 jobs of 2 patients."
    assert f"{counted} The option --failed lists the reasons.\n" in table.stderr
    listed = run_cohort(measured, "--pipeline", "head-ct", "--failed", check=True)
    assert counted in listed.stderr
    (row,) = csv.DictReader(listed.stdout.splitlines())
    (told,) = measured.query("SELECT * FROM v_series WHERE state = 'REFUSED'")
    missing = pydicom.dcmread(next(measured.root.parent.parent.glob("series3/*")))
    assert row["series_uid"] == missing.SeriesInstanceUID and row["patient"] == told["patient_id"] != missing.PatientID
    assert (row["state"], row["code"], row["message"], row["file"]) == ("REFUSED", told["code"], told["message"], told["file_a"])
    assert row["code"] in ("MISSING_SLICE", "INCOMPLETE_SERIES") and row["source"] == f"inbox:{measured.inbox}"
    assert run_cohort(measured, "--pipeline", "head-ct", "--failed", "--reasons", "x").returncode == USAGE
    assert run_cohort(measured, "--pipeline", "other", "--failed").returncode == NOT_FOUND


def test_each_empty_cell_has_a_reason(measured, tmp_path):
    rows, dictionary = read(measured, "--reasons", tmp_path / "reasons.csv")
    features = [line["column"] for line in dictionary if line["family"]]
    expected = {}
    for row in rows:
        told = measured.query("SELECT * FROM v_features WHERE job = ? AND segment = ?", row["job"], row["segment"])
        reasons = {(line["family"], line["name"], defining(line["settings"])): line["reason"] for line in told}
        for line in dictionary:
            if line["column"] in features and not row[line["column"]]:
                expected[row["job"], row["segment"], row["patient"], line["column"]] = reasons.get(
                    (line["family"], line["name"], line["settings"]), "NOT_MEASURED")
    with open(tmp_path / "reasons.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert {(row["job"], row["segment"], row["patient"], row["column"]): row["code"] for row in found} == expected
    assert len(found) == len(expected) > 0 and all(row["message"] for row in found)


def test_the_form_of_patients_is_reported(measured, tmp_path):
    note = run_cohort(measured, "--pipeline", "head-ct", check=True).stderr
    assert 'the column patient has pseudonyms, because the option identifiers was "hashed"' in note
    for forms, expected in ((("P1", "P2"), ""), (("P1", None), "mixes pseudonyms (1 job) and plain IDs (1)"),
                            (("P1", ""), "the column patient is empty for 1 job:")):
        root = tmp_path / f"root{len(list(tmp_path.iterdir()))}"
        root.mkdir()
        with sqlite3.connect(f"file:{measured.root}/noctule.db?mode=ro", uri=True) as original, \
                sqlite3.connect(root / "noctule.db") as copy:
            original.backup(copy)
            for job, patient in enumerate(forms, start=1):
                if patient is not None:
                    copy.execute("UPDATE series SET patient_id = ? WHERE id = (SELECT series_id FROM job WHERE id = ?)", (patient, job))
        told = subprocess.run([BIN / "noctule", "--config", measured.config, "--root", root, "cohort", "-p", "head-ct"], text=True,
                              capture_output=True, check=True)
        assert expected in told.stderr and ("column patient" in told.stderr) == bool(expected)


def snippet(language):
    page = (SOURCE / "docs" / "cohort.md").read_text()
    (code,) = re.findall(rf"```{language}\n(.*?)```", page, re.S)
    return code


@pytest.fixture
def files(measured, tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    command = snippet("sh").split()
    assert command[:2] == ["noctule", "cohort"] and command[-2:] == [">", "cohort.csv"]
    (folder / "cohort.csv").write_text(run_cohort(measured, *command[2:-2], cwd=folder, check=True).stdout)
    return folder


def test_pandas_reads_the_table_as_documented(files):
    told = subprocess.run([sys.executable, "-c", snippet("python")], cwd=files, text=True, capture_output=True, check=True)
    assert "first_order.coefficient_of_variation" in told.stdout and "Number of voxels" in told.stdout and told.stderr == ""
    cohort = pandas.read_csv(files / "cohort.csv")
    assert cohort["first_order.mean.linear.plane7.from_m500.to_400"].dtype == float and len(cohort) == 4
    assert math.isfinite(cohort["glcm.joint_entropy.3d_merged.fbs30"].mean())


@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed")
def test_r_reads_the_table_as_documented(files):
    told = subprocess.run(["Rscript", "-e", snippet("r")], cwd=files, text=True, capture_output=True, check=True)
    # Names of columns are unchanged, and so are the values.
    assert "glcm.joint_entropy.3d_merged.fbs30" in told.stdout
    cohort = pandas.read_csv(files / "cohort.csv")
    mean = cohort[cohort.label == "Brain"]["glcm.joint_entropy.3d_merged.fbs30"].mean()
    printed = subprocess.run(["Rscript", "-e", 'x <- read.csv("cohort.csv"); cat(sprintf("%.17g", mean(x[x$label == "Brain", '
                              '"glcm.joint_entropy.3d_merged.fbs30"])))'], cwd=files, text=True, capture_output=True, check=True)
    assert math.isclose(float(printed.stdout), mean, rel_tol=1e-15)
