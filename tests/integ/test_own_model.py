"""docs/own-model.md: each command works as printed, from an empty folder to a delivered SEG, and each code is explained."""

import json
import re

import numpy as np
from conftest import BIN, SOURCE, assert_valid
from test_first_study import study
from test_run import peer, seg_masks

PAGE = SOURCE / "docs" / "own-model.md"


def test_the_documented_program_runs_as_printed(tmp_path, capsys):
    study(tmp_path, BIN, PAGE)
    printed = capsys.readouterr().out
    images, values = peer.read_series(tmp_path / "ct" / "1")
    (delivered,) = (path for path in (tmp_path / "delivered").rglob("*") if path.is_file())
    for seg in (tmp_path / "first" / "seg.dcm", delivered):
        assert np.array_equal(seg_masks(seg, images)[0], values > 200)
        assert_valid(seg)
    job = json.loads((tmp_path / "first" / "job.json").read_text())
    assert job["outcome"] == "DONE" and not job["broken_expectations"]
    assert "PROGRAM_FAILED" in printed and "status 1" in printed
    assert not (tmp_path / "second" / "seg.dcm").exists()


def test_each_code_of_a_program_is_explained():
    codes = re.findall(r"^CODE\((PROGRAM_\w+),", (SOURCE / "base" / "codes.def").read_text(), re.M)
    section = PAGE.read_text().partition("## What to do at each code")[2].partition("\n## ")[0]
    assert codes and sorted(codes) == sorted(re.findall(r"`(PROGRAM_\w+)`", section))
