"""What became of lives with a fault (test_injected.py), kept in a folder: runs that follow each other live what is left."""

import collections
import hashlib
import json
import pathlib

from conftest import BIN

PROGRAMS = ("noctuled", "libnoctule_faults.so")  # points are those of one build


class Lives:
    """
    points: of each operation the numbers of the calls to fail, by (role, call); {} until they are counted. lived: what
    became of each life, by the name of its case.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.programs = hashlib.sha256(b"".join((BIN / name).read_bytes() for name in PROGRAMS)).hexdigest()
        self.points, self.lived, path = {}, {}, self.folder / "points.json"
        if path.exists():
            kept = json.loads(path.read_text())
            assert kept["programs"] == self.programs, f"{path} is of other programs"
            self.points = {operation: {tuple(key.split()): points for key, points in all_points.items()}
                           for operation, all_points in kept["points"].items()}
            self.lived = dict(line.split("\t") for line in (self.folder / "lives").read_text().splitlines())
        self.file = open(self.folder / "lives", "a", buffering=1)

    def keep_points(self, points):
        """As they were counted, or as they were kept."""
        self.points = points
        (self.folder / "points.json").write_text(json.dumps({"programs": self.programs, "points": {
            operation: {" ".join(key): list(numbers) for key, numbers in all_points.items() if numbers}
            for operation, all_points in points.items()}}))

    def note(self, case, reached, restarted, wrong):
        outcome = "failed" if wrong else "restarted" if restarted else "well" if reached else "unreached"
        self.lived[case] = outcome
        print(case, outcome, sep="\t", file=self.file)

    def told(self):
        all_lives = 2 * sum(len(numbers) for points in self.points.values() for numbers in points.values())
        return f"all runs: {len(self.lived)} lives of {all_lives}, {dict(collections.Counter(self.lived.values()))}"
