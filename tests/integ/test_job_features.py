"""Features of a job from the worker to the database and the command line, also after kills."""

import csv
import io
import json
import subprocess

import pytest
from conftest import BIN, SETTINGS, drop, phantom, uncounted, wait_for

NOT_FOUND, USAGE = 3, 2
TEXTURE = """texture = {
      regions = [ "segments", "volume" ];
      sigma = 5.0; glcm = { levels = 16; distances = [ 1, 2 ]; range = [ -1000.0, 400.0 ]; };
      patterns = [ "lbp", "tlbap" ]; };
    results = [ "seg", "sr" ];"""
# No voxel is left for levels: each statistic has a number, and each texture a reason.
NO_LEVELS = 'texture = { glcm = { levels = 16; range = [ 5000.0, 6000.0 ]; }; };'


def measured(daemon, tmp_path, texture=TEXTURE, **options):
    d = daemon(quiet=0.5, pipeline_extra=texture, **options).start()
    drop(phantom(tmp_path / "series", "--size", "48x40x8"), d.inbox)
    d.wait_jobs()
    return d


def output(d, job, name):
    return d.root / "outbox" / str(job) / name


def objects(d, job):
    """Returns the rows of v_features in the words of features.json."""
    found = []
    for row in d.query("SELECT * FROM v_features WHERE job = ? ORDER BY place", job):
        bounds = [row["range_low"], row["range_high"]]
        settings = dict(setting.split("=") for setting in row["settings"].split(";") if setting)
        texts = {key: row[key] or None for key in (
            "label", "name", "meaning", "family", "ibsi_code", "reason", "unit", "aggregation",
            "aggregation_ibsi_code", "discretisation", "directions")}
        numbers = {key: row[key] for key in ("value", "levels", "bin_width", "distance")}
        found.append({
            **texts, **numbers, "segment_number": row["segment"], "range": None if bounds == [None, None] else bounds,
            "symmetric": None if row["symmetric"] is None else bool(row["symmetric"]),
            **{key: settings.get(key) for key in ("interpolation", "rounding", "filter", "filter_settings", "image_type")},
            **{key: int(settings[key]) if key in settings else None for key in ("alpha", "percent")},
            **{key: float(settings[key]) if key in settings else None
               for key in ("sigma", "isotropic_mm", "in_plane_mm", "energy_shift", "normalise_scale", "normalise_sigma")}})
    return found


def histograms(d, job):
    return [{"segment_number": row["segment"], "label": row["label"] or None, "pattern": row["pattern"],
             "settings": row["settings"], "histogram": json.loads(row["counts"])}
            for row in d.query("SELECT * FROM v_pattern_histograms WHERE job = ?", job)]


def in_order(patterns):
    return sorted(patterns, key=lambda p: (p["segment_number"], p["pattern"], p["settings"]))


def assert_one_set(d, job=1):
    """Checks that the database has the values of the job's files exactly, and once."""
    told = json.loads(output(d, job, "features.json").read_text())
    assert objects(d, job) == told
    assert d.query("SELECT features FROM v_jobs WHERE job = ?", job)[0][0] == len(told) > 0
    assert [row[0] for row in d.query("SELECT place FROM v_features WHERE job = ? ORDER BY place", job)] == list(
        range(1, len(told) + 1))
    patterns = output(d, job, "patterns.json")
    assert in_order(histograms(d, job)) == in_order(json.loads(patterns.read_text()) if patterns.exists() else [])
    return told


# ------------------------------------------------------------------------------- without failures


def test_the_database_equals_the_files(daemon, tmp_path):
    d = measured(daemon, tmp_path)
    told = assert_one_set(d)
    assert {(f["segment_number"], f["distance"]) for f in told} == {(n, k) for n in (0, 1) for k in (None, 1, 2)}
    assert all((f["range"], f["sigma"]) == ([-1000, 400], 5) for f in told if f["family"] != "shape")
    assert len(histograms(d, 1)) == 4
    volume = next(f["value"] for f in told if f["segment_number"] == 0 and f["name"] == "voxel_count")
    assert volume == 48 * 40 * 8
    assert sum(1 for f in told if isinstance(f["value"], float) and f["value"] != round(f["value"], 9)) > 50


@pytest.mark.parametrize("form,file", [("--json", "features.json"), ("--csv", "features.csv")])
def test_the_command_prints_the_files_again(daemon, tmp_path, form, file):
    d = measured(daemon, tmp_path)

    def printed(*arguments):
        return subprocess.run([BIN / "noctule", "--config", d.config, "features", "1", form, *arguments], check=True,
                              capture_output=True).stdout

    whole = output(d, 1, file).read_bytes()
    assert printed() == whole
    if form == "--json":
        told = json.loads(whole)
        for number in (0, 1):
            assert json.loads(printed("--segment", str(number))) == [
                f for f in told if f["segment_number"] == number]
    else:
        rows = list(csv.DictReader(io.StringIO(whole.decode())))
        for number in ("0", "1"):
            assert list(csv.DictReader(io.StringIO(printed("--segment", number).decode()))) == [
                r for r in rows if r["segment_number"] == number]


def test_tables_on_a_terminal(daemon, tmp_path):
    d = measured(daemon, tmp_path)
    told = assert_one_set(d)
    text = d.ctl("features", "1").stdout
    assert text.startswith(f"Job 1, pipeline head-ct: {len(told)} features\n")
    tables = text.split("\n\n")[1:]
    kinds = ["shape", "first-order", "first-order, fixed-bin-number", "glcm, 3d-merged (IAZD), distance 1",
             "glcm, 3d-merged (IAZD), distance 2"]
    headings = [f"{region}: {kind}" for region in ("Segment 1, Brain", "Whole volume") for kind in kinds]
    assert len(tables) == len(headings) + 1 and tables[-1].startswith("Pattern histograms\n")
    for table, heading in zip(tables, headings):
        assert table.startswith(heading) and "NO VALUE BECAUSE" not in table
    assert sum(len(table.splitlines()) - 2 for table in tables[:-1]) == len(told)
    assert "distance 2, symmetric, fixed-bin-number, 16 levels, values from -1000 to 400, sigma 5\n" in text
    entropy = next(f["value"] for f in told if f["name"] == "joint_entropy")
    assert ["joint_entropy", f"{entropy:.6g}", "1", "TU9B"] in [line.split() for line in text.splitlines()]
    assert "Whole volume" not in d.ctl("features", "1", "--segment", "1").stdout
    assert "Segment 1" not in d.ctl("features", "1", "--segment", "0").stdout


def test_absent_values_have_a_reason(daemon, tmp_path):
    d = measured(daemon, tmp_path, NO_LEVELS)
    told = assert_one_set(d)
    absent = [f for f in told if f["value"] is None]
    assert {f["name"] for f in told if f["value"] is not None} >= {"volume", "voxel_count"}
    assert {f["family"] for f in absent} >= {"glcm"} and all(f["reason"] for f in absent)
    assert not any(f["reason"] for f in told if f["value"] is not None)
    reason = next(f["reason"] for f in absent if f["name"] == "joint_entropy")
    (line,) = [line for line in d.ctl("features", "1").stdout.splitlines() if line.startswith("joint_entropy ")]
    assert line.split() == ["joint_entropy", "1", "TU9B", reason]
    assert json.loads(d.ctl("features", "1", "--json").stdout) == told
    rows = list(csv.DictReader(io.StringIO(d.ctl("features", "1", "--csv").stdout)))
    assert [(r["name"], r["reason"]) for r in rows if r["value"] == ""] == [(f["name"], f["reason"]) for f in absent]


def test_more_features_than_a_frame_holds(daemon, tmp_path):
    """The worker sends at most 512 per frame."""
    distances = ", ".join(map(str, range(1, 17)))
    d = measured(daemon, tmp_path, f"""texture = {{ regions = [ "segments", "volume" ];
        glcm = {{ levels = 8; distances = [ {distances} ]; }}; patterns = [ "lanadp" ]; }};""")
    told = assert_one_set(d)
    assert len(told) > 512 and {f["distance"] for f in told} == {None, *range(1, 17)}


def test_an_empty_job_is_measured_too(daemon, tmp_path):
    settings = SETTINGS.format(root=tmp_path / "daemon0" / "root", after="keep", quiet=0.5, attempts=3,
                               pipeline_extra=TEXTURE).replace("[ 0.0, 80.0 ]", "[ 5000.0, 6000.0 ]")
    d = measured(daemon, tmp_path, settings=settings)
    assert [job["state"] for job in d.jobs()] == ["EMPTY"]
    told = assert_one_set(d)
    assert {f["reason"] for f in told if f["segment_number"] == 1} == {None, "EMPTY_REGION"}
    assert next(f["value"] for f in told if f["name"] == "volume") == 0
    assert next(f["value"] for f in told if f["name"] == "mean" and f["segment_number"] == 0) is not None


def test_a_pipeline_without_texture(daemon, tmp_path):
    d = measured(daemon, tmp_path, "")
    assert d.jobs()[0]["features"] == 0 and not output(d, 1, "features.json").exists()
    assert d.ctl("features", "1").stdout == "Job 1, pipeline head-ct: no features, it has neither texture nor quantities\n"
    assert json.loads(d.ctl("features", "1", "--json").stdout) == []
    assert d.ctl("features", "1", "--csv").stdout.startswith("segment_number,label,name,")


def test_missing_jobs_and_invalid_requests_are_errors(daemon, tmp_path):
    d = measured(daemon, tmp_path, NO_LEVELS)
    for form in ((), ("--json",), ("--csv",)):
        for arguments, words in ((("7",), "there is no job 7"), (("1", "--segment", "2"), "a segment 2"),
                                 (("1", "--segment", "0"), "the whole volume")):
            result = d.ctl("features", *arguments, *form, check=False)
            assert result.returncode == NOT_FOUND and words in result.stderr and not result.stdout
    for arguments in ((), ("x",), ("1", "2"), ("1", "--segment", "-1"), ("1", "--segment", "all"),
                      ("1", "--json", "--csv"), ("1", "--no-such")):
        result = d.ctl("features", *arguments, check=False)
        assert result.returncode == USAGE and result.stderr and not result.stdout


# ---------------------------------------------------------------------------------- repeated jobs


def test_a_retry_replaces_the_features(daemon, tmp_path):
    d = measured(daemon, tmp_path)
    before = assert_one_set(d)
    d.ctl("retry", "--force", "1")
    wait_for(lambda: len(d.jobs("DONE")) == 2, 30, "the second run")
    assert assert_one_set(d) == assert_one_set(d, 2) == before
    assert {tuple(row) for row in d.query("SELECT job, superseded_by FROM v_features")} == {(1, 2), (2, None)}


def test_late_slices_supersede_earlier_features(daemon, tmp_path):
    d = daemon(quiet=0.5, pipeline_extra=TEXTURE).start()
    files = uncounted(phantom(tmp_path / "series", "--size", "48x40x8"))
    drop(files[:-1], d.inbox)
    d.wait_jobs()
    drop(files[-1:], d.inbox)
    d.wait_jobs(2)
    for job in (1, 2):
        assert_one_set(d, job)
    rows = d.query("SELECT job, revision, superseded_by, count(*) FROM v_features GROUP BY job")
    assert [tuple(row) for row in rows] == [
        (1, 1, 2, len(objects(d, 1))), (2, 2, None, len(objects(d, 2)))]
    assert {tuple(row) for row in d.query("SELECT job, superseded_by FROM v_pattern_histograms")} == {(1, 2), (2, None)}


# ---------------------------------------------------------------------------------- killed processes


@pytest.mark.parametrize("point", ["worker_after_features_before_done", "daemon_after_done_before_commit",
                                   "daemon_after_done_after_commit"])
def test_killed_at(daemon, tmp_path, point):
    once = tmp_path / "crashed"
    d = daemon(quiet=0.5, pipeline_extra=TEXTURE,
               environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)}).start()
    drop(phantom(tmp_path / "series", "--size", "48x40x8"), d.inbox)
    wait_for(once.exists, 60, f"the crash at {point}")
    if point.startswith("daemon"):
        d.process.wait(30)
        committed = point.endswith("after_commit")
        assert (d.query("SELECT count(*) FROM v_features")[0][0] > 0) == committed
        assert [job["state"] for job in d.jobs()] == ["DONE" if committed else "RUNNING"]
        d.start()
    (job,) = d.wait_jobs()
    assert (job["state"], job["attempts"]) == ("DONE", 1 if point.endswith("after_commit") else 2)
    assert_one_set(d)
    assert d.stop() == 0
    assert d.query("PRAGMA integrity_check")[0][0] == "ok"
