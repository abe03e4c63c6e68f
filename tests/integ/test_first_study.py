"""docs/first-study.md from its first command to its table, with every command as printed."""

import csv
import os
import re
import subprocess
import sys

from conftest import BIN, SOURCE

PAGE = SOURCE / "docs" / "first-study.md"


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


def test_the_documented_study_runs_as_printed(tmp_path):
    (python,) = study(tmp_path, BIN)
    assert (tmp_path / "first" / "preview.png").stat().st_size > 10000
    with open(tmp_path / "cohort.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["job"], row["label"]) for row in rows] == [
        (str(job), label) for job in (1, 2, 3) for label in ("Aerated lungs", "Right lung", "Left lung")]
    rows = [row for row in rows if row["label"] == "Aerated lungs"]
    assert len({row["patient"] for row in rows}) == len({row["series_uid"] for row in rows}) == 3
    assert all(4000 < float(row["shape.volume.linear.iso2"]) < 5000 for row in rows)
    table = subprocess.run([sys.executable, "-c", python], cwd=tmp_path, text=True, capture_output=True, check=True).stdout
    assert all(word in table for word in ("Aerated lungs", "shape.volume", "glcm.joint_entropy"))
