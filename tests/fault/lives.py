"""Results of fault cases (test_injected.py) in a folder, so that later runs skip finished cases."""

import collections
import hashlib
import json
import pathlib

from conftest import BIN

PROGRAMS = ("noctuled", "libnoctule_faults.so")  # points are valid for one build


class Lives:
    """points: per operation the points (test_injected.Trial), {} until they are counted. lived: the results of cases,
    by name."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.programs = hashlib.sha256(b"".join((BIN / name).read_bytes() for name in PROGRAMS)).hexdigest()
        self.points, self.lived, path = {}, {}, self.folder / "points.json"
        if path.exists():
            kept = json.loads(path.read_text())
            assert kept["programs"] == self.programs, f"{path} is of other programs"
            self.points = {operation: {(role, call, always): dict(points) for role, call, always, points in all_points}
                           for operation, all_points in kept["points"].items()}
            self.lived = dict(line.split("\t") for line in (self.folder / "lives").read_text().splitlines())
        self.file = open(self.folder / "lives", "a", buffering=1)

    def keep_points(self, points):
        """Returns the stored points, or stores the counted ones."""
        self.points = points
        (self.folder / "points.json").write_text(json.dumps({"programs": self.programs, "points": {
            operation: [(*key, list(points.items())) for key, points in all_points.items() if points]
            for operation, all_points in points.items()}}))

    def note(self, case, outcome):
        self.lived[case] = outcome
        print(case, outcome, sep="\t", file=self.file)

    def told(self):
        cases = sum(len(points) for all_points in self.points.values() for points in all_points.values())
        return f"all runs: {len(self.lived)} cases of {cases}, {dict(collections.Counter(self.lived.values()))}"
