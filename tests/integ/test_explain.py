"""`noctule explain` reports headers, stacks, the geometry check, rules and jobs. It runs no job, and submit makes the
same decision."""

import json
import pathlib
import re
import shutil
import signal
import subprocess

import pydicom
import pytest
from conftest import BIN, SHARED, SOURCE, drop, needs_shared, phantom, wait_for
from test_admission import KINDS, PIPELINE, fair_share, kinds  # noqa: F401 - a fixture

SEGMENT = """segments = ( { label = "Ball"; range = [ 0.0, 80.0 ];
    shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 35.0; } );
    type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } );"""
CONFIG = """
root = "%(root)s";
pipelines = (
  { name = "any"; min_slices = 1; %(segment)s },
  { name = "long"; min_slices = 50; %(segment)s },
  { name = "first-echo"; min_slices = 1; %(segment)s } );
rules = (
  { match = { modality = "CT"; }; pipeline = "any"; priority = 3; },
  { match = { modality = "MR"; body_part = "HEAD"; min_slices = 100; }; pipeline = "long"; },
  { match = { min_slices = 4; }; pipeline = "first-echo"; stacks = "first"; } );
"""


@pytest.fixture
def explain(tmp_path):
    config = tmp_path / "noctule.conf"
    config.write_text(CONFIG % {"root": tmp_path / "root", "segment": SEGMENT})

    def call(*arguments, status=0):
        result = subprocess.run([BIN / "noctule", "--config", config, "explain", *map(str, arguments)],
                                text=True, capture_output=True, timeout=120)
        assert result.returncode == status, result.stdout + result.stderr
        for line in result.stdout.splitlines() if "--json" not in arguments else ():
            assert len(line) <= 100 or " " not in line[26:], "what fits a terminal, but for long words"
        return result

    return call


def one_series(result):
    (series,) = json.loads(result.stdout)["series"]
    return series


def change(files, edit):
    for path in files:
        dataset = pydicom.dcmread(path)
        edit(dataset)
        dataset.save_as(path)


def test_a_valid_series_is_explained(explain, tmp_path):
    files = phantom(tmp_path / "in", "--size", "40x32x8")
    series = one_series(explain(tmp_path / "in", "--json"))
    header = pydicom.dcmread(files[0])
    assert series["series_uid"] == header.SeriesInstanceUID and series["modality"] == header.Modality == "CT"
    assert series["code"] == "" and series["damaged_files"] == 0
    (stack,) = series["stacks"]
    assert stack["accepted"] and stack["stack"] == "" and stack["slices"] == 8
    assert (stack["columns"], stack["rows"]) == (40, 32)
    assert [i["file"] for i in series["instances"]] == [str(f) for f in files]
    for instance, dataset in zip(series["instances"], map(pydicom.dcmread, files)):
        (image,) = instance["images"]
        assert instance["sop_instance_uid"] == dataset.SOPInstanceUID
        assert image["position_mm"] == [float(v) for v in dataset.ImagePositionPatient]
        assert image["stack"] == "" and image["size"] == "40 x 32" and image["sop_class"] == "CTImageStorage"
    assert sorted(i["images"][0]["slice"] for i in series["instances"]) == list(range(1, 9))
    assert [(r["pipeline"], r["matches"], r["reasons"]) for r in series["rules"]] == [
        ("any", True, ""), ("long", False, "modality CT is not MR; 8 slices are fewer than 100"), ("first-echo", True, "")]
    assert [(j["pipeline"], j["stack"], j["priority"], j["accepted"]) for j in series["jobs"]] == [
        ("any", "", 3, True), ("first-echo", "", 0, True)]

    text = explain(tmp_path / "in").stdout
    assert "modality CT is not MR" in text and "any on the only stack, priority 3" in text
    assert files[0].name in text
    assert not (tmp_path / "root").exists(), "nothing is run or made"


def test_the_patient_is_never_printed(explain, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x6")

    def name(dataset):
        dataset.PatientName, dataset.PatientID = "Mary^Secret", "SECRET-1"

    change(files, name)
    for arguments in ([], ["--json"]):
        result = explain(tmp_path / "in", *arguments)
        assert "secret" not in (result.stdout + result.stderr).lower()


def test_stacks_are_reported_with_their_split_attributes(explain, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6", "--echoes", "3")
    series = one_series(explain(tmp_path / "in", "--json"))
    names = [s["stack"] for s in series["stacks"]]
    assert len(names) == 3 and all(s["accepted"] and "Echo Time (0018,0081)" in s["split_by"] for s in series["stacks"])
    for instance in series["instances"]:
        (image,) = instance["images"]
        assert image["stack"].endswith(image["keys"]["echo"].split(" at ")[-1])
    jobs = [(j["pipeline"], j["stack"]) for j in series["jobs"]]
    assert jobs.count(("first-echo", names[0])) == 1 and ("first-echo", names[1]) not in jobs
    text = explain(tmp_path / "in").stdout
    assert 'first-echo: yes, for 1 of 3 stacks (stacks = "first")' in text
    assert text.count("split by") == 1, "what is the same for all is told once"


def test_pipelines_with_different_requirements(explain, tmp_path):
    config = tmp_path / "noctule.conf"
    config.write_text(config.read_text().replace('name = "any";', 'name = "any"; derived = true;'))
    phantom(tmp_path / "in", "--series", "ct-mpr-beside")
    series = one_series(explain(tmp_path / "in", "--json"))
    assert {(s["stack"], s["options"], s["code"]) for s in series["stacks"]} == {
        ("", "", ""), ("derived", "", "DERIVED_IMAGE"), ("axial", "derived", ""), ("coronal", "derived", "")}
    assert sorted((j["pipeline"], j["stack"], j["code"]) for j in series["jobs"]) == [
        ("any", "axial", ""), ("any", "coronal", ""), ("first-echo", "", "")]
    text = explain(tmp_path / "in").stdout
    assert "stacks: 2, of pipelines with derived\n" in text and "stacks: 2, of pipelines without derived" in text
    series = one_series(explain(tmp_path / "in", "--pipeline", "long", "--json"))
    assert {s["options"] for s in series["stacks"]} == {""}


def test_too_many_stacks(explain, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6", "--echoes", "9")
    series = one_series(explain(tmp_path / "in", "--json", "--pipeline", "any"))
    assert len(series["stacks"]) == 9 and series["jobs"] == []
    (rule,) = series["rules"]
    assert rule["too_many_stacks"] and rule["stacks_wanted"] == 0 and rule["stacks_accepted"] == 9
    assert "TOO_MANY_STACKS" in explain(tmp_path / "in", "--pipeline", "any").stdout


def test_a_given_pipeline_is_the_only_one_checked(explain, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x8")
    series = one_series(explain(tmp_path / "in", "--json", "--pipeline", "long"))
    (stack,) = series["stacks"]
    assert not stack["accepted"] and stack["code"] == "TOO_FEW_SLICES"
    assert [r["pipeline"] for r in series["rules"]] == ["long"] and series["jobs"] == []
    assert "nosuch" in explain(tmp_path / "in", "--pipeline", "nosuch", status=3).stderr


def test_refusals_by_geometry_and_by_folder_content(explain, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x10", "--gap", "3")
    series = one_series(explain(tmp_path / "in", "--json"))
    assert series["stacks"][0]["code"] == "MISSING_SLICE" and len(series["stacks"][0]["files"]) == 2
    assert series["jobs"] == [] and series["rules"][0]["matches"]
    assert "yes, but no stack is accepted" in explain(tmp_path / "in").stdout

    (tmp_path / "in" / "note.txt").write_text("words, words, words\n" * 20)
    files[-1].write_bytes(files[-1].read_bytes()[:-100])
    result = explain(tmp_path / "in", "--json")
    told = json.loads(result.stdout)
    assert [f["code"] for f in told["passed_over"]] == ["NOT_DICOM"]
    assert [f["code"] for f in told["warnings"]] == ["FILE_TRUNCATED"]
    assert told["series"][0]["damaged_files"] == 1
    result = explain(tmp_path / "in")
    assert "FILE_TRUNCATED" in result.stdout and "note.txt: NOT_DICOM" in result.stderr


def test_a_series_without_stacks_is_refused_whole(explain, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x6")

    def move(dataset):
        dataset.StudyInstanceUID = "1.2.3"

    change(files[3:], move)
    series = one_series(explain(tmp_path / "in", "--json"))
    assert series["code"] == "MIXED_STUDIES" and series["stacks"] == [] and series["jobs"] == []
    assert "MIXED_STUDIES" in explain(tmp_path / "in").stdout


def test_single_files_and_foreign_files(explain, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x6")
    alone = pathlib.Path(shutil.copy(files[2], tmp_path))
    text = " ".join(explain(alone).stdout.split())
    assert f"named file {alone.name}: number 3, the only stack, slice 1 of 1" in text
    assert "no other file of this series" in text
    (tmp_path / "note.txt").write_text("words, words, words\n" * 20)
    result = explain(tmp_path / "note.txt", "--json")
    assert json.loads(result.stdout)["series"] == [] and "no image to process among 1 files" in result.stderr
    assert "nowhere" in explain(tmp_path / "nowhere", status=3).stderr
    explain(status=2)


def test_one_file_selects_its_whole_series(explain, tmp_path):
    """Files of the same series in the folder of a file are checked with it. Other files there are not reported."""
    files = phantom(tmp_path / "in", "--size", "32x32x25")
    for path in phantom(tmp_path / "other", "--size", "32x32x4", "--seed", "2"):
        shutil.copy(path, tmp_path / "in" / f"other-{path.name}")
    (tmp_path / "in" / "below").mkdir()
    shutil.copy(files[3], tmp_path / "in" / "below")
    (tmp_path / "in" / "note.txt").write_text("words, words, words\n" * 20)
    folder = {s["series_uid"]: s for s in json.loads(explain(tmp_path / "in", "--json").stdout)["series"]}
    told = json.loads(explain(files[7], files[3], "--json").stdout)
    (series,) = told["series"]
    assert told["passed_over"] == told["warnings"] == []
    assert [i["file"] for i in series["instances"] if i["named"]] == [str(files[7]), str(files[3])]
    assert series["stacks"] == folder[series["series_uid"]]["stacks"] and series["jobs"]
    text = " ".join(explain(files[7]).stdout.split())
    assert text.count("named file ") == 1 and f"{files[7].name}: number 8, the only stack, slice 8 of 25" in text
    assert "files 25 with 25 images" in text and "with 24 other files" in text
    assert "named file " not in explain(*files).stdout, "all of it"

    files[24].write_bytes(files[24].read_bytes()[:-100])
    (series,) = json.loads(explain(files[7], "--json").stdout)["series"]
    assert series["stacks"][0]["code"] == "INCOMPLETE_SERIES" and series["damaged_files"] == 1


def test_all_values_of_image_type_are_printed(explain, tmp_path):
    values = ["ORIGINAL", "PRIMARY", "M", "ND", "NORM", "FM", "FIL", "DIS2D"]

    def types(dataset):
        dataset.ImageType = values

    change(phantom(tmp_path / "in", "--size", "32x32x6"), types)
    assert "\\".join(values) in explain(tmp_path / "in").stdout
    series = one_series(explain(tmp_path / "in", "--json"))
    assert {i["images"][0]["image_type"] for i in series["instances"]} == {"\\".join(values)}


def test_a_stored_series(daemon, tmp_path):
    settings = CONFIG % {"root": tmp_path / "daemon0" / "root", "segment": SEGMENT}
    settings += 'inbox = ( { path = "inbox"; settle_seconds = 0.2; sweep_seconds = 1.0; } );\n'
    settings += "series = { quiet_seconds = 1.0; complete_seconds = 0.2; patience_seconds = 1.0; };\n"
    d = daemon(settings=settings).start()
    files = phantom(tmp_path / "in", "--size", "32x32x6")
    uid = str(pydicom.dcmread(files[0]).SeriesInstanceUID)
    drop(files, d.inbox / "one")
    d.wait_jobs(2)
    before = d.query("SELECT count(*) AS events FROM v_events")[0]["events"]
    series = one_series(d.ctl("explain", uid, "--json"))
    assert series["stored"]["state"] == "SETTLED" and "6 planes" in series["stored"]["evidence"]
    assert len(series["instances"]) == 6
    assert all(i["file"].startswith(str(d.root / "series")) for i in series["instances"])
    assert [(j["pipeline"], j["stack"]) for j in series["jobs"]] == [
        (row["pipeline"], row["stack"]) for row in d.jobs()], "as the daemon did"
    text = d.ctl("explain", uid).stdout
    assert "SETTLED, revision 1" in text
    assert d.query("SELECT count(*) AS events FROM v_events")[0]["events"] == before
    d.stop()
    assert d.ctl("explain", uid).stdout == text, "the daemon need not run"
    assert d.ctl("explain", "1.2.3.4.5", check=False).returncode == 3
    shutil.rmtree(d.root / "series")
    assert "FILE_UNREADABLE" in d.ctl("explain", uid).stdout
    (d.root / "noctule.db").unlink()
    assert d.ctl("explain", uid, check=False).returncode == 6


@needs_shared
@pytest.mark.parametrize("name,stacks,code", [
    ("ct-head-5mm", 1, ""), ("ct-head-tilted", 1, ""), ("mr-brain-t1", 1, ""), ("mr-dti-canon", 13, ""),
    ("mr-fmri-ge", 3, ""), ("mr-mosaic", 2, "")])
def test_real_series(name, stacks, code):
    result = subprocess.run([BIN / "noctule", "--config", SOURCE / "config" / "noctule.conf", "explain", "--json",
                             SHARED / name], text=True, capture_output=True, check=True)
    series = one_series(result)
    assert len(series["stacks"]) == stacks and {s["code"] for s in series["stacks"]} == {code}
    assert [f["code"] for f in json.loads(result.stdout)["passed_over"]] == ["NOT_DICOM"]


SERVED = """root = "%s"; inbox = ( { path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; } );
series = { quiet_seconds = 1.0; complete_seconds = 0.1; patience_seconds = 1.0; }; min_free_mib = 1;
pipelines = ( %s, %s, %s );
"""
# Added after all series are complete. Until then no series has a job.
LATER = """
rules = ( { match = { modality = "CT"; min_slices = 8; }; pipeline = "ct"; },
          { match = { modality = "MR"; }; pipeline = "mr"; stacks = "first"; },
          { match = { modality = "MR"; }; pipeline = "plain"; },
          { match = { modality = "PT"; }; pipeline = "mr"; stacks = "time [13]"; } );
"""
PIPELINE_WAY, RULES_WAY = ("--pipeline", "plain"), ("--rules",)


def differing():
    """Returns a kind per code, and per number of volumes."""
    chosen = {}
    for name in fair_share():
        kind = KINDS[name]
        codes = {kind.fault} | {planes[1] for planes in kind.stacks.values() if isinstance(planes, tuple)}
        for way in codes - {""} or {len(kind.stacks)}:
            chosen.setdefault(way, name)
    return sorted(set(chosen.values()))


def explained(d, uid, way):
    """Returns the (pipeline, stack) pairs that would get a job, and the codes of the others."""
    told = json.loads(d.ctl("explain", "--json", *(way if way == PIPELINE_WAY else ()), uid).stdout)
    (series,) = told["series"]
    codes = {series["code"]} | {stack["code"] for stack in series["stacks"]}
    codes |= {"TOO_MANY_STACKS" for rule in series["rules"] if rule["too_many_stacks"]}
    codes |= {"NO_RULE"} if not any(rule["matches"] for rule in series["rules"]) else set()
    return {(job["pipeline"], job["stack"]) for job in series["jobs"] if job["accepted"]}, codes - {""}


def submitted(d, uid, way, *options):
    """Returns the same of submit."""
    done = d.ctl("submit", *way, *options, uid, check=False)
    jobs = re.findall(r"(?:would be|is) new \((\w+)(?:, )?([^)\n]*)\)$", done.stdout, re.MULTILINE)
    codes = set(re.findall(r"(?<!Also )\b([A-Z]{2,}(?:_[A-Z]+)*): ", done.stdout + done.stderr))
    assert len(jobs) == len(set(jobs)) and (jobs or codes), done
    return set(jobs), codes


def test_explain_agrees_with_submit(daemon, kinds, tmp_path):
    d = daemon()
    d.config.write_text(SERVED % (d.root, PIPELINE % ("plain", ""), PIPELINE % ("ct", ""), PIPELINE % ("mr", "")))
    sources = {name: kinds(name) for name in differing()}
    sources["nine echoes"] = phantom(tmp_path / "nine", "--size", "32x32x6", "--echoes", "9")
    for name, files in sources.items():
        drop(files, d.inbox / name)
    d.start()
    d.ctl("hold", "--queue")
    uids = {str(pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID) for files in sources.values()}

    def all_decided():
        rows = d.query("SELECT series_uid, state FROM v_series")
        known = {row["series_uid"] for row in [*rows, *d.query("SELECT series_uid FROM v_quarantine")]}
        return uids <= known and all(row["state"] != "GATHERING" for row in rows)

    wait_for(all_decided, 60, "the judgement of all series")
    with open(d.config, "a") as config:
        config.write(LATER)
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'RELOAD'"), 60, "the reload")
    seen = set()
    for (uid,) in d.query("SELECT series_uid FROM v_series"):
        for way, options in ((PIPELINE_WAY, ["--dry-run"]), (RULES_WAY, [])):
            jobs, reasons = explained(d, uid, way)
            done, codes = submitted(d, uid, way, *options)
            assert done == jobs, (uid, way, reasons, codes)
            assert codes <= reasons, (uid, way, "submit names what explain does not")
            seen |= codes | {len(jobs)}
        made = d.query("SELECT pipeline, stack FROM v_jobs WHERE series_uid = ?", uid)
        assert {(row["pipeline"], row["stack"]) for row in made} == jobs and len(made) == len(jobs)
    assert {0, 1, 2, 3, 4, "TOO_MANY_STACKS", "NO_RULE", "MIXED_PATIENTS", "MISSING_SLICE", "MOSAIC"} <= seen
