"""SIGKILL of the daemon, the role, the broker, and processes below it, while programs of the site run for two pipelines.
Then each series has one mask and each job one result, and no process, no work folder and no broken invariant is left.

NOCTULE_FAULT_KILLS is the number of kills and NOCTULE_FAULT_SEED the seed of their order. A failure prints both."""

import ast
import collections
import contextlib
import hashlib
import os
import pathlib
import random
import re
import signal
import time

import numpy
import pydicom
from conftest import SOURCE, daemons, phantom, put, wait_for
from disasters import crash_points
from invariants import check_database, check_events, check_leftovers
from test_programs_daemon import BOTH, HALF, Site

KILLS = int(os.environ.get("NOCTULE_FAULT_KILLS", "40"))
SEED = int(os.environ.get("NOCTULE_FAULT_SEED", "1"))
SECONDS = 120
THRESHOLD = 20
BACKLOG = 2  # unfinished runs during the kills

POINTS = [point for point in crash_points() if re.match(r"broker_|role_|daemon_(after_run_row|before_program_run|before_finish_run)", point)]


def processes():
    """Returns parent and command line of each process."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            if stat[0] != "Z":
                found[int(entry.name)] = (int(stat[1]), (entry / "cmdline").read_bytes())
    return found


def below(pid):
    """Returns the descendants of a process."""
    everything, found = processes(), []
    parents = {pid}
    while parents:
        parents = {each for each, (parent, _) in everything.items() if parent in parents}
        found += sorted(parents)
    return found


def voxels_of(files):
    """Returns the number of voxels of at least THRESHOLD, from the files."""
    count = 0
    for path in files:
        dataset = pydicom.dcmread(path)
        values = dataset.pixel_array * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept)
        count += int(numpy.count_nonzero(values >= THRESHOLD))
    return count


def invariants():
    """Returns the queries of queue_check(), from its source: each finds rows that break an invariant."""
    text = (SOURCE / "db/queue/transaction.c").read_text()
    table = text[text.index("} rules[] = {"):]
    table = table[:table.index("\n};")]
    rows = re.findall(r'\{"(\w+)", "([^"]*)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}', table)
    assert len(rows) == table.count("\n    {")
    return [(thing, offence, "".join(ast.literal_eval(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"', sql)))
            for thing, offence, sql in rows]


class Killer:
    """Kills processes of a site. victims: counts by name. states: of the runs that had not ended then."""

    def __init__(self, site, folder):
        self.site, self.d, self.folder = site, site.d, folder
        self.chance = random.Random(SEED)
        self.victims, self.states = collections.Counter(), collections.Counter()
        self.voxels = {}  # by series
        self.usual = dict(self.d.environment)
        self.crashes = folder / "crashes"  # apart from the root, since each process may write there
        self.crashes.mkdir(parents=True)

    def ended(self):
        return self.d.query("SELECT count(*) FROM v_program_runs WHERE ended_at IS NOT NULL")[0][0]

    def feed(self):
        """Keeps some runs unfinished."""
        ended = self.ended()
        while len(self.voxels) < ended + BACKLOG:
            number = len(self.voxels) + 1
            files = phantom(self.folder / str(number), "--size", f"40x32x{8 + number % 7}", "--seed", str(number))
            self.voxels[pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID] = voxels_of(files)
            put(files, self.d.inbox / str(number))

    def start(self):
        self.d.start(wait=False)
        wait_for(lambda: self.d.process.poll() is not None or self.d.answers(), SECONDS, "the daemon")

    def revive(self):
        """Restarts the daemon like the system's service manager."""
        if self.d.process.poll() is not None:
            self.start()

    def restart(self, **more):
        with contextlib.suppress(ProcessLookupError):
            self.d.process.kill()
        self.d.process.wait(SECONDS)
        self.d.environment = {**self.usual, **more}
        self.start()

    def find(self, name):
        """Returns the process, or None while there is none."""
        if name == "daemon":
            return self.d.process.pid
        roles = self.d.children("worker" if name == "worker" else "program")
        found = roles if name in ("role", "worker") else [pid for role in roles for pid in below(role)]
        if name == "broker":
            found = found[:1]  # the only child of the role
        elif name == "below":
            found = found[1:]
        return self.chance.choice(found) if found else None

    def kill(self, name):
        """Kills a process at a random moment."""
        time.sleep(self.chance.uniform(0, 0.5))

        def found():
            self.revive()
            self.feed()  # the run in progress may end before its process is found
            return self.find(name)

        pid = wait_for(found, SECONDS, f"a {name}")
        self.states.update(row["state"] for row in self.d.query("SELECT state FROM v_program_runs WHERE ended_at IS NULL"))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            if name == "daemon":
                self.d.process.wait(SECONDS)

    def crash(self, point):
        once = self.crashes / str(sum(self.victims.values()))
        self.restart(NOCTULE_CRASH_AT=point, NOCTULE_CRASH_ONCE=str(once))

        def crashed():
            self.revive()
            self.feed()
            return once.exists()

        wait_for(crashed, SECONDS, f"the crash at {point}")

    def play(self, count):
        """Kills as many times, each victim equally often. After each victim was killed once, waits for the end of a run,
        since kills may follow faster than attempts on a slow machine."""
        victims = ["daemon", "role", "broker", "below", "worker", *POINTS]
        order, ended = [], -1

        def one_ended():
            self.revive()
            return self.ended() > ended

        for _ in range(count):
            self.revive()
            if not order:
                wait_for(one_ended, SECONDS, "the end of a run")
                order, ended = self.chance.sample(victims, len(victims)), self.ended()
            self.feed()
            name = order.pop()
            if name in POINTS:
                self.crash(name)
            else:
                self.kill(name)
            self.victims[name] += 1
        self.revive()


def check(d, voxels, folder):
    """Checks the database, the files and the processes after the daemon's end."""
    runs = {row["series_uid"]: row for row in d.query("SELECT * FROM v_program_runs")}
    assert len(runs) == len(d.query("SELECT 1 FROM v_program_runs")) == len(voxels)
    for uid, row in runs.items():
        assert (row["state"], row["code"], row["labelled_voxels"]) == ("DONE", "", voxels[uid]), dict(row)
        assert hashlib.sha256((d.root / row["mask_path"]).read_bytes()).hexdigest() == row["mask_sha256"]
    assert sorted(path.name for path in (d.root / "programs").iterdir()) == sorted(str(row["run"]) for row in runs.values())
    jobs = d.jobs()
    assert {(job["series_uid"], job["pipeline"]) for job in jobs} == {(uid, name) for uid in voxels for name in ("one", "two")}
    assert len(jobs) == 2 * len(voxels) and {job["state"] for job in jobs} == {"DONE"}
    assert all(job["program_runs"] == str(runs[job["series_uid"]]["run"]) for job in jobs)
    results = d.query("SELECT job, path FROM v_results WHERE kind = 'seg'")
    assert sorted(row["job"] for row in results) == sorted(job["job"] for job in jobs)
    found = d.query("SELECT j.series_uid, s.voxels FROM v_segments s JOIN v_jobs j USING (job) WHERE j.pipeline = 'one'")
    assert dict(map(tuple, found)) == voxels
    for thing, offence, sql in invariants():
        assert d.query(sql) == [], f"{thing}: {offence}"
    check_database(d)
    check_events(d)
    check_leftovers(d)
    left = {}

    def all_ended():
        left.clear()
        left.update({pid: found for pid, found in processes().items() if str(folder).encode() in found[1]})
        return not left

    try:
        wait_for(all_ended, SECONDS, "the end of every process")
    finally:
        print("".join(f"still runs: {pid}, parent {parent}, {command}\n" for pid, (parent, command) in left.items()), end="")


def test_kills_leave_one_mask_and_one_result(tmp_path):
    folder = tmp_path / "service"
    folder.mkdir()
    with daemons(folder) as make:
        site = Site(make, folder)
        site.script.write_text("import time\ntime.sleep(0.1)\n" + HALF)
        site.configure(threshold=THRESHOLD, rules=BOTH)
        text = site.d.config.read_text()
        site.d.config.write_text(text.replace("jobs = { max_attempts = 2;", "jobs = { max_attempts = 100;")
                                 .replace("max_attempts = 2; ", "max_attempts = 100; "))
        killer, d = Killer(site, tmp_path / "sources"), site.d
        killer.start()
        begun = time.monotonic()
        try:
            killer.play(KILLS)
            d.environment = killer.usual
            d.wait_jobs(2 * len(killer.voxels), states=("DONE",), seconds=SECONDS)
            wait_for(lambda: not list((d.root / "jobs").iterdir()), SECONDS, "the end of every job")
        finally:
            print(f"seed {SEED}, {KILLS} kills in {time.monotonic() - begun:.0f} s: {dict(sorted(killer.victims.items()))}; "
                  f"runs then: {dict(sorted(killer.states.items()))}; "
                  f"{len(killer.voxels)} series, {d.query('SELECT sum(attempts) FROM v_program_runs')[0][0]} attempts")
        assert d.stop() == 0
        check(d, killer.voxels, folder)
