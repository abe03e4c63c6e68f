"""Warm programs: one start for many cases, and a new start after a case in which the program ends or does not answer."""

import pathlib
import re

import numpy as np
import pytest
from conftest import SOURCE, phantom, put
from test_liars import COLUMNS, ROWS, SLICES, TOOL
from test_run import peer, seg_masks

SEVENTH = 30  # slices

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; }};
jobs = {{ retry_seconds = 0.2; }};
min_free_mib = 1;
programs = ( {{ name = "model"; command = [ "/usr/bin/python3", {words} ]; warm = true;
  read = [ "{folder}" ]; algorithm = {{ name = "model"; version = "1"; }}; deadline_seconds = 10.0; silence_seconds = 3.0;
  max_attempts = {attempts}; }} );
pipelines = ( {{ name = "model"; min_slices = 1; unreviewed = true; segments = ( {{ label = "One"; method = "program";
  program = "model"; value = 1; type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "model"; }} );
"""


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Returns twenty folders of a series each, the seventh of which has more slices."""
    folder = tmp_path_factory.mktemp("series")
    size = f"{COLUMNS}x{ROWS}x"
    phantom(folder / "others", "--size", f"{size}{SLICES}", "--kind", "ct-head", "--count", "19")
    phantom(folder / "seventh", "--size", f"{size}{SEVENTH}", "--kind", "ct-head", "--seed", "20")
    others = sorted(path for path in (folder / "others").iterdir() if path.is_dir())
    return [*others[:6], folder / "seventh", *others[6:]]


@pytest.fixture
def served(daemon, tmp_path, series):
    """Returns a function that sends series to a daemon and returns it with its runs, when all jobs have ended."""
    def serve(*words, count=20, attempts=1):
        d = daemon(settings=SETTINGS.format(root=tmp_path / "daemon0" / "root", folder=pathlib.Path(words[0]).parent,
                                            words=", ".join(f'"{word}"' for word in words), attempts=attempts)).start()
        for part in (series[:min(count, 7)], series[7:count]):  # so that other cases follow the seventh
            for each in part:
                put(each.iterdir(), d.inbox / each.name)
            d.wait_jobs(min(count, 7), seconds=120)
        d.wait_jobs(count, seconds=120)
        return d, d.query("SELECT * FROM v_program_runs ORDER BY started_at, run")

    return serve


def test_twenty_cases_need_one_start(served, series):
    d, runs = served(TOOL, "warm", "-", "-", 0)
    assert [(run["state"], run["starts"]) for run in runs] == [("DONE", 1)] + [("DONE", 0)] * 19
    (row,) = d.query("SELECT * FROM v_programs")
    assert row["starts"] == 1 and row["cases_per_start"] == 20
    of_series = {peer.read_series(each)[0][0].SeriesInstanceUID: each for each in series}
    for job in d.jobs("DONE"):
        images, _ = peer.read_series(of_series[job["series_uid"]])
        index = np.arange(len(images) * ROWS * COLUMNS).reshape(len(images), ROWS, COLUMNS)
        assert np.array_equal(seg_masks(d.root / job["result_path"], images)[0], index % 7 == 0)


@pytest.mark.parametrize("form, code", [
    ("warm_crash", "PROGRAM_CRASHED"), ("warm_silence", "PROGRAM_SILENT"), ("warm_nonsense", "PROGRAM_SILENT"),
    ("warm_error", "PROGRAM_FAILED"), ("warm_late", "PROGRAM_NO_OUTPUT")])
def test_the_seventh_of_twenty_cases_fails(served, form, code):
    d, runs = served(TOOL, form, "-", "-", SEVENTH)
    others = [run for run in runs if run["state"] == "DONE"]
    (failed,) = (run for run in runs if run["state"] == "FAILED")
    assert failed["code"] == code and len(others) == len(runs) - 1
    # an answer, even ERROR, keeps the process
    starts = 1 if form in ("warm_error", "warm_late") else 2
    assert sum(run["starts"] for run in runs) == starts
    assert [job["code"] for job in d.jobs("FAILED")] == [code]
    # nothing of a case is left, besides the folders of the warm process
    kept = {path.name for path in (d.root / "programs").iterdir()}
    assert {name for name in kept if not name.startswith("warm-")} == {str(run["run"]) for run in runs}
    assert d.stop() == 0


def test_a_crashed_case_is_done_by_the_next_process(served):
    _, runs = served(TOOL, "warm_crash", "-", "-", 2, count=2, attempts=2)
    assert [(run["state"], run["attempts"]) for run in runs] == [("DONE", 1), ("DONE", 2)]


MODEL = """
import os, subprocess, sys

def run(source, target):
    if os.path.getsize(source) > 50000:  # the seventh has more slices
        raise ValueError("too large")
    subprocess.run([sys.executable, "{tool}", "honest", os.path.dirname(source), os.path.dirname(target)], check=True)
"""


def test_the_documented_example(served, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (example,) = re.findall(r"```python\n(.*?)```", (SOURCE / "docs" / "own-model.md").read_text(), re.S)
    (folder / "serve.py").write_text(example)
    (folder / "liar.py").write_text(TOOL.read_text())
    (folder / "model.py").write_text(MODEL.format(tool=folder / "liar.py"))
    d, runs = served(folder / "serve.py")
    assert [run["starts"] for run in runs] == [1] + [0] * 19
    (failed,) = (run for run in runs if run["state"] != "DONE")
    assert failed["code"] == "PROGRAM_FAILED" and failed["state"] == "FAILED"
    assert "ERROR ValueError" in (d.root / failed["output_path"]).read_text()
