"""Programs of a site that misbehave (tests/tools/liars/liar.py): each ends with its code and in time, and leaves no
process and no file; in each sandbox that works here, by noctule run, and in the daemon, whose queue goes on."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

import numpy as np
import pytest
from conftest import BIN, SOURCE, assert_no_sanitizer_report, phantom, put, run_program, wait_for
from test_run import peer, seg_masks

TOOL = SOURCE / "tests" / "tools" / "liars" / "liar.py"
COLUMNS, ROWS, SLICES = 40, 32, 12
INDEX = np.arange(SLICES * ROWS * COLUMNS).reshape(SLICES, ROWS, COLUMNS)
X = INDEX % COLUMNS
HONEST = INDEX % 7 == 0
DEADLINE = 10

ROW = """
  {{ name = "{name}"; command = [ "/usr/bin/python3", "{liar}", "{form}", "{{in}}", "{{out}}"{arguments} ];
    environment = [ "NOCTULE_LIAR={marker}" ]; read = [ "{folder}" ]; weights = [ "{weights}" ];
    algorithm = {{ name = "liar"; version = "1"; }}; max_attempts = 1;
    {options} }}"""
OPTIONS = {"deadline_seconds": f"{DEADLINE}.0", "memory_mib": "256.0", "processes": "32", "output_mib": "64.0",
           "output_files": "16"}
PIPELINE = """
  {{ name = "{name}"; min_slices = 1; unreviewed = true; segments = ( {{ label = "One"; method = "program";
      program = "{name}"; value = 1; type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }}"""


class Liar:
    """A form of liar.py and its truth: the code, words of the message, and the mask if there is one. weak: the code in the
    weak sandbox, where that differs."""

    def __init__(self, form, code="", says="", mask=None, weak=None, arguments=(), **options):
        self.form, self.code, self.weak, self.says, self.mask, self.arguments = form, code, weak or code, says, mask, arguments
        self.options = OPTIONS | options
        self.seconds = float(options.get("silence_seconds", self.options["deadline_seconds"])) + 5

    def row(self, name, marker, places):
        arguments = "".join(f', "{argument}"' for argument in self.arguments).format(**places)
        return ROW.format(name=name, liar=places["tool"], form=self.form, arguments=arguments, marker=marker,
                          folder=places["tool"].parent, weights=places["weights"],
                          options=" ".join(f"{key} = {value};" for key, value in self.options.items()))


IGNORE = {"other_labels": '"ignore"'}
NEAREST = {"resample": '"nearest"'}
SHORT = {"deadline_seconds": "2.0"}
WRITTEN = {"etc": "/etc/noctule-liar", "usr": "/usr/noctule-liar", "the weights": "{weights}", "the root": "{root}/liar",
           "the series": "{series}/liar", "itself": "{tool}"}
LIARS = {
    "honest": Liar("honest", mask=HONEST),
    "shift": Liar("shift", "PROGRAM_GRID_DIFFERS", "3 mm"),  # the columns are 6 mm apart
    "flip": Liar("flip", "PROGRAM_GRID_DIFFERS"),
    "flip control": Liar("flip_control", mask=HONEST),
    "swap": Liar("swap", "PROGRAM_GRID_DIFFERS"),
    "swap control": Liar("swap_control", mask=HONEST),
    "coarse": Liar("coarse", "PROGRAM_GRID_DIFFERS"),
    "coarse, nearest": Liar("coarse", mask=HONEST & (X < COLUMNS // 2), **NEAREST),
    "shifted, nearest": Liar("shifted_nearest", mask=HONEST & (X > 0), **NEAREST),
    "4-D": Liar("four_axes", "PROGRAM_NOT_3D"),
    "4-D control": Liar("four_axes_control", mask=HONEST),
    "label": Liar("label", "PROGRAM_LABEL_UNKNOWN", "7"),
    "label, ignored": Liar("label", "EMPTY", **IGNORE),
    "not a number": Liar("not_a_number", "PROGRAM_NOT_FINITE"),
    "fractions": Liar("fractions", "PROGRAM_FRACTIONS"),
    "fractions, threshold": Liar("fractions", mask=HONEST, threshold="0.5"),
    "truncated": Liar("truncated", "PROGRAM_OUTPUT_UNREADABLE"),
    "bomb": Liar("bomb", "PROGRAM_OUTPUT_SIZE"),
    "huge header": Liar("huge_header", "PROGRAM_GRID_DIFFERS"),
    "huge header, nearest": Liar("huge_header", "PROGRAM_OUTPUT_SIZE", **NEAREST),
    "link outside": Liar("link_outside", "PROGRAM_OUTPUT_NOT_REGULAR"),
    "link to the input": Liar("link_input", "PROGRAM_OUTPUT_NOT_REGULAR"),
    "pipe": Liar("pipe", "PROGRAM_OUTPUT_NOT_REGULAR"),
    "10 GB": Liar("large", "PROGRAM_OUTPUT_TOO_LARGE"),
    "10 GB in parts": Liar("large_in_parts", "PROGRAM_OUTPUT_TOO_LARGE"),
    "temporary files": Liar("fill", "PROGRAM_OUTPUT_TOO_LARGE", arguments=("$TMPDIR",)),
    "shared memory": Liar("fill", "PROGRAM_OUTPUT_TOO_LARGE", weak="PROGRAM_FAILED", arguments=("/dev/shm",)),
    "sparse": Liar("sparse", "PROGRAM_FAILED", "status 1"),  # ftruncate(2) fails
    "many files": Liar("many_files", "PROGRAM_OUTPUT_TOO_LARGE"),
    "no file": Liar("nothing", "PROGRAM_NO_OUTPUT"),
    "two files": Liar("two_files", "PROGRAM_OUTPUT_AMBIGUOUS"),
    "late file": Liar("late", "PROGRAM_NO_OUTPUT"),
    "exit 3": Liar("exit_3", "PROGRAM_FAILED", "status 3"),
    "SIGSEGV": Liar("segfault", "PROGRAM_CRASHED", "signal 11"),
    "loop": Liar("loop", "PROGRAM_TOO_LONG", **SHORT),
    "stubborn": Liar("stubborn", "PROGRAM_TOO_LONG", **SHORT),
    "silence": Liar("silence", "PROGRAM_SILENT", deadline_seconds="30.0", silence_seconds="2.0"),
    "fork bomb": Liar("fork_bomb", "PROGRAM_TOO_MANY_PROCESSES"),
    "memory": Liar("memory", "PROGRAM_OUT_OF_MEMORY"),
    "memory of children": Liar("memory_of_children", "PROGRAM_OUT_OF_MEMORY"),
    "double fork": Liar("double_fork", mask=HONEST),
    "1 GB of stderr": Liar("standard_error", mask=HONEST, deadline_seconds="20.0"),
    "write to the input": Liar("write_input", "PROGRAM_FAILED"),
    "connect": Liar("connect", "PROGRAM_FAILED", "status 4", arguments=("{port}", "{socket}")),
    "connect, host": Liar("connect", mask=HONEST, arguments=("{port}", "{socket}"), network='"host"'),
    "read others": Liar("read_others", "PROGRAM_FAILED", "status 5", arguments=("{root}", "{series}", "/etc/shadow")),
} | {f"write to {place}": Liar("write_outside", "PROGRAM_FAILED", "status 1", arguments=(path,))
     for place, path in WRITTEN.items()}

# strongest first; without NOCTULE_SANDBOX the strongest that works is taken
KINDS = ("bubblewrap", "own", "weak")


def processes_of(marker):
    """Returns the processes whose environment has the marker."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"NOCTULE_LIAR={marker}\0".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


class Stage:
    """What the liars of a module share: a series, files that they may not change, and sockets that nobody may reach."""

    def __init__(self, folder):
        self.folder = folder
        self.series = folder / "series"
        phantom(self.series, "--size", f"{COLUMNS}x{ROWS}x{SLICES}", "--kind", "ct-head")
        self.tool = folder / "liars" / TOOL.name
        self.tool.parent.mkdir()
        shutil.copy(TOOL, self.tool)
        self.weights = folder / "weights"
        self.weights.write_text("weights")
        self.root = folder / "root"
        self.root.mkdir()
        (self.root / "identifier.key").write_text("secret")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.local = socket.socket(socket.AF_UNIX)
        self.local.bind(str(folder / "socket"))
        self.local.listen()
        self.images, _ = peer.read_series(self.series)
        self.before = self.tree()

    def tree(self):
        """Returns the files of the folder that no liar may change, with their bytes."""
        kept = [self.weights, *(path for each in (self.series, self.root, self.tool.parent) for path in each.rglob("*"))]
        return {path: path.read_bytes() for path in kept}

    def places(self):
        """Returns the values of placeholders in arguments of a liar."""
        return {"tool": self.tool, "weights": self.weights, "root": self.root, "series": self.series,
                "socket": self.folder / "socket", "port": self.listener.getsockname()[1]}

    def assert_unchanged(self):
        assert self.tree() == self.before
        assert not any(pathlib.Path(path).exists() for path in ("/etc/noctule-liar", "/usr/noctule-liar"))

    def close(self):
        self.listener.close()
        self.local.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    made = Stage(tmp_path_factory.mktemp("liars"))
    yield made
    made.close()


class Outcome:
    """A liar's run by noctule run, and the sandbox that it had."""

    def __init__(self, stage, kind, name):
        liar = LIARS[name]
        folder = stage.folder / f"{kind}-{name.replace(' ', '-')}"
        scratch = folder / "tmp"
        scratch.mkdir(parents=True)
        marker = folder.name
        config = folder / "noctule.conf"
        environment = os.environ | {"NOCTULE_SANDBOX": kind, "TMPDIR": str(scratch), "NOCTULE_SECRET": "of the parent"}
        config.write_text(f'root = "{stage.root}";\nprograms = ({liar.row("liar", marker, stage.places())} );\n'
                          f"pipelines = ({PIPELINE.format(name='liar')} );\n")
        begun = time.monotonic()
        done = subprocess.run(
            [BIN / "noctule", "--config", config, "run", "--json", "--pipeline", "liar", "--output", folder / "out",
             stage.series], text=True, capture_output=True, timeout=120, check=False, env=environment)
        self.seconds = time.monotonic() - begun
        while (remaining := processes_of(marker)) and time.monotonic() < begun + self.seconds + 10:
            time.sleep(0.05)  # a busy machine ends killed processes late
        self.processes = remaining
        self.left = list(scratch.rglob("*"))
        assert_no_sanitizer_report(done.stderr)
        assert done.stdout, done.stderr
        (self.job,) = json.loads(done.stdout)["jobs"]
        self.seg = folder / "out" / "seg.dcm"
        self.sandbox = re.search(r"sandbox (\w+)", run_program("noctule", "--config", config, "check-config",
                                                               env=environment).stdout)[1]


@pytest.fixture(scope="module")
def outcomes(stage):
    """Returns a function that gives the outcome of a liar in a kind of sandbox. All of a kind run in the background."""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        running = {}

        def outcome(kind, name):
            if (kind, "honest") not in running:
                running.update({(kind, each): pool.submit(Outcome, stage, kind, each) for each in LIARS})
            return running[kind, name].result()

        yield outcome
        for each in running.values():
            each.cancel()


@pytest.mark.parametrize("name", LIARS)
@pytest.mark.parametrize("kind", KINDS)
def test_liar(stage, outcomes, kind, name):
    used = outcomes(kind, "honest").sandbox
    if used != kind:
        pytest.skip(f"the sandbox {kind} does not work here: {used} does")
    liar, outcome = LIARS[name], outcomes(kind, name)
    assert outcome.job["code"] == (liar.weak if kind == "weak" else liar.code), outcome.job["message"]
    assert liar.says in outcome.job["message"]
    assert outcome.seconds < liar.seconds
    assert not outcome.processes
    assert not outcome.left
    assert outcome.seg.exists() == (liar.mask is not None)
    if liar.mask is not None:
        assert np.array_equal(seg_masks(outcome.seg, stage.images)[0], liar.mask)
    stage.assert_unchanged()


SERVICE = """
root = "{root}";
inbox = ( {{ path = "inbox"; after = "keep"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; }};
compute = {{ lanes = 2; programs = 2; }};
min_free_mib = 1;
programs = ({programs} );
pipelines = ({pipelines} );
rules = ({rules} );
"""
# the limit of `programs` is 32
LEFT_OUT = ("control", "two files", "sparse", "shared memory", "to the input", "nearest", "ignored", "threshold", "host",
            "write to usr", "write to the", "in parts", "children")


def test_the_queue_goes_on(daemon, stage, tmp_path):
    chosen = [name for name in LIARS if not any(words in name for words in LEFT_OUT)]
    assert len(chosen) <= 32
    names = {name: f"p{number}" for number, name in enumerate(chosen)}
    rule = '{{ match = {{ modality = "CT"; }}; pipeline = "{}"; priority = {}; }}'
    d = daemon(settings=SERVICE.format(
        root=tmp_path / "daemon0" / "root",
        programs=",".join(LIARS[name].row(names[name], "of-the-daemon", stage.places()) for name in chosen),
        pipelines=",".join(PIPELINE.format(name=names[name]) for name in chosen),
        rules=", ".join(rule.format(names[name], 0 if name == "honest" else 5) for name in chosen))).start()
    put(stage.series.iterdir(), d.inbox)
    slowest = 0

    def ended():
        nonlocal slowest
        begun = time.monotonic()
        d.ctl("ping")
        slowest = max(slowest, time.monotonic() - begun)
        jobs = {job["pipeline"]: job for job in d.jobs() if job["state"] in ("DONE", "EMPTY", "FAILED")}
        return len(jobs) == len(chosen) and jobs

    jobs = wait_for(ended, 120, "the end of all jobs")
    assert {name: jobs[names[name]]["code"] or "" for name in chosen} == {name: LIARS[name].code for name in chosen}
    assert slowest < 5  # seconds for an answer, beside a fork bomb
    assert np.array_equal(seg_masks(d.root / jobs[names["honest"]]["result_path"], stage.images)[0], HONEST)

    runs = {row["program"]: row for row in d.query("SELECT * FROM v_program_runs")}
    assert len(runs) == len(chosen) == len(list((d.root / "programs").iterdir()))
    for name, run in ((name, runs[names[name]]) for name in chosen):
        kept = {"output.txt"} | ({"mask"} if run["state"] == "DONE" else set())
        assert {path.name for path in (d.root / "programs" / str(run["run"])).iterdir()} == kept, name
        assert (d.root / run["output_path"]).stat().st_size <= 65536
    assert "why: the model" in (d.root / runs[names["exit 3"]]["output_path"]).read_text()
    assert (d.root / runs[names["1 GB of stderr"]]["output_path"]).read_text().endswith("end of the output\n")
    assert not processes_of("of-the-daemon")
    assert not d.query("SELECT 1 FROM v_events WHERE event = 'PROGRAM_DIED'")
    stage.assert_unchanged()
    assert d.stop() == 0
