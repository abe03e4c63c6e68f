"""What the integration tests share: where the programs are, a daemon in a temporary root, waiting."""

import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED = SOURCE.parent / "shared" / "data"
BIN = pathlib.Path(os.environ.get("NOCTULE_BIN", SOURCE / "build" / "release" / "bin"))

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real series are not here")


def wait_for(condition, seconds=60, what="the condition"):
    """Calls condition() until it returns something true, and returns that; fails at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come within {seconds} s")
        time.sleep(0.02)


def run_program(name, *arguments, check=True, **options):
    """Runs one of the project's programs to its end and returns the CompletedProcess."""
    return subprocess.run(
        [BIN / name, *map(str, arguments)], check=check, text=True, capture_output=True, **options
    )


# Timers short enough for a test; everything else as shipped.
SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; after = "{after}"; settle_seconds = 0.3; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = {quiet}; complete_seconds = 0.3; patience_seconds = {quiet}; }};
jobs = {{ max_attempts = {attempts}; retry_seconds = 0.2; retry_max_seconds = 1.0; }};
compute = {{ lanes = 2; }};
min_free_mib = 1;
log_level = "debug";
pipelines = (
  {{ name = "head-ct";
    segments = (
      {{ label = "Brain"; method = "level-set"; range = [ 0.0, 80.0 ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} );
        category = {{ code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; }};
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} );
    {pipeline_extra}
  }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "head-ct"; priority = 5; }} );
"""


class Daemon:
    """A noctuled of its own in a temporary root; its log is kept in root/../log."""

    def __init__(self, folder, after="keep", quiet=1.0, attempts=3, pipeline_extra="", settings=None,
                 environment=None):
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "root"
        self.root.mkdir(parents=True, exist_ok=True)
        self.inbox = self.root / "inbox"
        self.inbox.mkdir(exist_ok=True)
        self.config = self.folder / "noctule.conf"
        self.config.write_text(
            settings
            or SETTINGS.format(root=self.root, after=after, quiet=quiet, attempts=attempts,
                               pipeline_extra=pipeline_extra)
        )
        self.log = self.folder / "log"
        self.environment = {**os.environ, **(environment or {})}
        self.process = None

    def start(self, wait=True):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [BIN / "noctuled", "--config", self.config], stderr=log, stdout=log,
                env=self.environment, start_new_session=True,
            )
        if wait:
            wait_for(self.answers, 20, "the daemon's answer")
        return self

    def answers(self):
        assert self.process.poll() is None, f"noctuled ended:\n{self.log.read_text()}"
        return (self.root / "run" / "control.sock").exists() and self.query("SELECT 1")

    def stop(self, signal_number=signal.SIGTERM, seconds=60):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal_number)
            self.process.wait(seconds)
        status = self.process.returncode if self.process else None
        self.process = None
        return status

    def kill_all(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)
            self.process = None

    def children(self, role=None):
        """Process IDs of the daemon's children, those of one role if given."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError, ValueError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes().split(b"\0")
                if int(stat[1]) == self.process.pid and b"--role" in command:
                    name = command[command.index(b"--role") + 1].decode()
                    if role in (None, name) and stat[0] != "Z":
                        found.append(int(entry.name))
        return sorted(found)

    def query(self, sql, *values):
        """Rows of a read-only query, as an administrator would ask; [] while there is no database."""
        path = self.root / "noctule.db"
        try:
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as db:
                db.row_factory = sqlite3.Row
                return db.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if "unable to open" in str(error) or "no such table" in str(error):
                return []
            raise

    def jobs(self, state=None):
        rows = self.query("SELECT * FROM v_jobs ORDER BY job")
        return [row for row in rows if state in (None, row["state"])]

    def wait_jobs(self, count=1, states=("DONE", "EMPTY", "FAILED", "CANCELLED"), seconds=90):
        def ended():
            rows = [row for row in self.jobs() if row["state"] in states]
            return rows if len(rows) >= count else None

        try:
            return wait_for(ended, seconds, f"{count} job(s) in {states}")
        except pytest.fail.Exception:
            print(self.log.read_text()[-8000:])
            raise

    def ctl(self, *arguments, check=True):
        return run_program("noctule", "--config", self.config, *arguments, check=check)


@pytest.fixture
def daemon(tmp_path):
    """Makes daemons; those still running are killed at the end, and leave no process behind."""
    made = []

    def make(**options):
        folder = tmp_path / f"daemon{len(made)}"
        made.append(Daemon(folder, **options))
        return made[-1]

    yield make
    for each in made:
        each.kill_all()


def phantom(folder, *arguments):
    """Writes a synthetic series and returns its files, sorted."""
    run_program("noctule-phantom", "--output", folder, *arguments)
    return sorted(path for path in pathlib.Path(folder).rglob("*.dcm"))


def drop(files, folder):
    """Copies files into a folder the way people do: each in place, growing."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, folder / path.name)


def assert_valid(path):
    """dciodvfy finds nothing to say, but for how the source spells its patient, which is copied as it is."""
    result = subprocess.run(["dciodvfy", path], text=True, capture_output=True)
    words = [line for line in (result.stdout + result.stderr).splitlines()
             if line.startswith(("Error", "Warning"))
             and not ("Patient's Name" in line and "Retired Person Name form" in line)]
    assert words == [], words
