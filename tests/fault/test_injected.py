"""The n-th call of each kind fails, in each process, once or permanently, in complete operations of the service
(operations.py). Afterwards every result must exist once, without leftovers.

A first life of each operation without faults counts its calls. Then each call is a case, and so is each call from
which on all fail. Cases share lives (companies.py). Cases that did not reach their fault are tried again with
fewer others, finally alone, and so are the cases of a failed life.

NOCTULE_FAULT_POINTS is the number of cases tried per process and call, evenly spread: a few for daily runs, all (0) for a
night. NOCTULE_FAULT_WORKERS is the number of concurrent lives. No life starts after NOCTULE_FAULT_SECONDS.
NOCTULE_FAULT_PART=I/N selects the Ith of N shares. NOCTULE_FAULT_ONLY has names of cases, separated by commas: *
matches any text, and + joins cases of one life. NOCTULE_FAULT_LOG is a folder for many runs of the same programs:
the first run counts the points, and each run continues with unfinished cases (lives.py)."""

import collections
import concurrent.futures
import ctypes
import errno
import fnmatch
import gc
import multiprocessing
import os
import resource
import struct
import time
import traceback
import zlib

from companies import Verdicts, share_out
from disasters import happened
from lives import Lives
from operations import OPERATIONS, Archive, Life, adopt

POINTS = int(os.environ.get("NOCTULE_FAULT_POINTS", "1"))
WORKERS = int(os.environ.get("NOCTULE_FAULT_WORKERS", 2 * os.cpu_count()))
LIMIT = float(os.environ.get("NOCTULE_FAULT_SECONDS", "inf"))
PART, PARTS = map(int, os.environ.get("NOCTULE_FAULT_PART", "1/1").split("/"))
ONLY = os.environ.get("NOCTULE_FAULT_ONLY")
LOG = os.environ.get("NOCTULE_FAULT_LOG")

# Errors of a failing call, once and permanently.
ERRORS = {"open": (errno.EMFILE, errno.EMFILE), "read": (errno.EIO, errno.EIO), "write": (errno.EIO, errno.ENOSPC),
          "truncate": (errno.EIO, errno.ENOSPC), "fsync": (errno.EIO, errno.EIO), "rename": (errno.EIO, errno.ENOSPC),
          "mkdir": (errno.EIO, errno.ENOSPC), "unlink": (errno.EIO, errno.EIO), "malloc": (errno.ENOMEM, errno.ENOMEM),
          "descriptor": (errno.EMFILE, errno.ENFILE), "fork": (errno.EAGAIN, errno.EAGAIN),
          "connect": (errno.ECONNREFUSED, errno.ENETUNREACH), "send": (errno.ENOBUFS, errno.ENOBUFS),
          "receive": (errno.ECONNRESET, errno.ENOMEM)}
# As in faults.c: the counted calls of a role, and the places that allocate.
ROLES = ("daemon", "intake", "courier", "worker", "page")
PLACES_MAX = 32768
COUNTS, PLACES = struct.Struct(f"={len(ERRORS) + 1}q"), struct.Struct(f"={2 * PLACES_MAX}Q")
COUNTED = COUNTS.size + 2 * PLACES.size
LIBC, NOT_RANDOM = ctypes.CDLL(None), 0x0040000  # personality(2): address randomisation


class Case(collections.namedtuple("Case", "operation role call n always")):
    def __str__(self):
        return " ".join(map(str, self[:4])) + (" always" if self.always else "")

    @classmethod
    def named(cls, name):
        operation, role, call, n, *always = name.split()
        return cls(operation, role, call, int(n), bool(always))

    def number(self):
        """Returns the same number in every run, evenly spread."""
        return zlib.crc32(str(self).encode())

    def fault_text(self):
        """Returns the case in the syntax of faults.c."""
        error = ERRORS[self.call][self.always]
        return f"{self.role} {self.call} {self.n} {error}{' always' if self.always else ''}"


class Trial:
    """An operation after one life, with its usual results. points: per (role, call, always) the numbers of the calls
    to fail and, for malloc, the place of each. With threads or other faults the place may differ. Other calls have
    place 0."""

    def __init__(self, operation, folder, known, points=None):
        """known: per (role, always) the allocating places that other operations have tried. points: stored points."""
        self.operation, self.folder, self.points = operation, folder, points or {}
        counts = folder / f"{operation.name}.counts"
        counts.write_bytes(bytes(len(ROLES) * COUNTED))
        life = Life(operation, folder / f"{operation.name}-0", Archive())
        try:
            if points:
                life.start(NOCTULE_FAULT_HIT=str(life.hit))
            else:
                life.start(NOCTULE_FAULT_COUNTS=str(counts), NOCTULE_FAULT_UNDER=str(life.folder))
            life.finish()
            self.usual = life.usual()
            life.end({0})
            life.check()
            self.results = life.results()
        finally:
            life.close(keep=True)
        if not points:
            self.note(counts.read_bytes(), known)
        self.cases_at = {(key[0], key[2], place): Case(operation.name, *key[:2], n, key[2])
                         for key, points in self.points.items() for n, place in points.items() if place}

    def note(self, counts, known):
        for i, role in enumerate(ROLES):
            most = dict(zip(ERRORS, COUNTS.unpack_from(counts, i * COUNTED)[1:], strict=True))
            for always in (False, True):
                for call in ERRORS:
                    self.points[role, call, always] = dict.fromkeys(range(1, most[call] + 1), 0)
                places = PLACES.unpack_from(counts, i * COUNTED + COUNTS.size + always * PLACES.size)
                places = {place: first for place, first in zip(places[::2], places[1::2]) if place}
                assert len(places) < PLACES_MAX, "more places than faults.c can tell apart"
                self.points[role, "malloc", always] = {places[place]: place for place in places.keys() - known[role, always]}
                known[role, always] |= places.keys()

    def cases(self):
        for (role, call, always), points in self.points.items():
            points = sorted(points)
            if 0 < POINTS < len(points):
                points = [points[int((i + 0.5) * len(points) / POINTS)] for i in range(POINTS)]
            for n in points:
                yield Case(self.operation.name, role, call, n, always)

    def cases_reached(self, company, hit):
        """Returns the cases that reached their faults, including cases of others reached instead."""
        for case, place in zip(company, happened(hit)):
            its_own = self.points.get((case.role, case.call, case.always), {}).get(case.n, 0)
            if place and (not its_own or place == its_own or len(company) == 1):
                yield case
            elif place and (case.role, case.always, place) in self.cases_at:
                yield self.cases_at[case.role, case.always, place]

    def live(self, company, archive):
        """Lives the cases. Returns those reached, and whether they required a restart. Checks the results."""
        name = f"{self.operation.name[0]}{company[0].number():08x}{len(company):02d}"
        life, always = Life(self.operation, self.folder / name, archive), company[0].always
        good = False
        try:
            life.start(NOCTULE_FAULT_HIT=str(life.hit), NOCTULE_FAULT_UNDER=str(life.folder),
                       NOCTULE_FAULT=",".join(case.fault_text() for case in company))
            if always:
                life.endure()
                life.finish()
            restarted = not always and life.finish_or_restart()
            life.leaks_no_descriptor(self.usual)
            life.end({0} if always or restarted else {0, 6})  # 6: the fault came at the very end
            life.check()
            assert life.results() == self.results
            good = True
            return set(self.cases_reached(company, life.hit)), restarted
        except BaseException as error:
            raise AssertionError(f"{name}, whose log ends\n{life.text()[-8000:]}") from error
        finally:
            life.close(keep=not good)


# ------------------------------------------------------------------- separate processes ----

began = time.monotonic()
trials, archive = {}, None


def seconds_of_processors():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def live(company):
    """Returns the company, the reached cases, whether they required a restart, the error, and the time: wall clock
    and CPU. None if there was no time for it."""
    global archive
    if time.monotonic() > began + LIMIT:
        return None
    archive = archive or Archive()
    start, before = time.monotonic(), seconds_of_processors()
    cases_reached, restarted, wrong = set(), False, ""
    try:
        cases_reached, restarted = trials[company[0].operation].live(company, archive)
    except BaseException:
        wrong = traceback.format_exc()
    return (company, cases_reached, restarted, wrong), time.monotonic() - start, seconds_of_processors() - before


def begin_worker():
    """Initialises a process: the current state stays, and it adopts the processes that its daemons leave behind."""
    gc.freeze()
    adopt()


def report(verdicts, lives, seconds):
    """Prints the lives: for each its first case, the number of cases, and its time by wall clock and CPU."""
    kinds = collections.Counter(" ".join(case[:3]) for case, outcome in verdicts.outcomes.items() if outcome != "unreached")
    restarted = collections.Counter(" ".join(case[:3]) for case, outcome in verdicts.outcomes.items() if outcome == "restarted")
    print(f"{sum(kinds.values())} faults of {len(kinds)} kinds in {len(lives)} lives and {seconds:.0f} s; each life "
          f"{sum(each[3] for each in lives) / max(1, len(lives)):.2f} s of processors, the longest "
          f"{sorted(((round(wall, 1), f'{case}, of {count}') for case, count, wall, _ in lives), reverse=True)[:5]}")
    print("reached:", dict(sorted(kinds.items())))
    print("once, and it took a restart:", dict(sorted(restarted.items())))


def only(cases, names):
    """Returns the companies of the names. Fully named companies are included, because points shift between builds."""
    for name in names:
        if "*" in name:
            yield from ((case,) for case in cases if fnmatch.fnmatchcase(str(case), name))
        else:
            yield tuple(map(Case.named, name.split("+")))


class Session:
    """Companies that live in many processes at a time, and their results."""

    def __init__(self, pool, log, folder):
        self.pool, self.log, self.folder = pool, log, folder
        self.verdicts, self.lives = Verdicts(), []

    def live(self, companies):
        futures = [self.pool.submit(live, company) for company in companies]
        for future in concurrent.futures.as_completed(futures):
            if future.result():
                self.take(*future.result())

    def take(self, life, wall, processors):
        company, *_, wrong = life
        self.lives.append((company[0], len(company), wall, processors))
        for case in self.verdicts.take(*life):
            if str(case) not in self.log.lived:
                self.log.note(str(case), self.verdicts.outcomes[case])
        if wrong:
            print(f"NOCTULE_FAULT_ONLY='{'+'.join(map(str, company))}' in {self.folder}\n{wrong}", flush=True)

    def live_all(self, cases):
        for crowded in (True, False):
            self.live(share_out(cases, crowded))
            print(f"{len(self.verdicts.outcomes)} cases settled in {len(self.lives)} lives", flush=True)
            cases = self.verdicts.left()
        self.live((case,) for case in cases + self.verdicts.alone)


def test_any_call_may_fail(tmp_path):
    adopt()
    LIBC.personality(NOT_RANDOM)
    known = collections.defaultdict(set)
    lives = Lives(LOG or tmp_path / "log")
    for kind in OPERATIONS:
        (tmp_path / kind.name).mkdir()
        trials[kind.name] = Trial(kind(tmp_path / kind.name), tmp_path, known, lives.points.get(kind.name))
        print(kind.name, {" ".join(map(str, key)): len(points) for key, points in trials[kind.name].points.items() if points})
    lives.keep_points({name: trial.points for name, trial in trials.items()})
    cases = sorted((each for trial in trials.values() for each in trial.cases()), key=Case.number)
    cases = [each for each in cases if each.number() % PARTS == PART - 1]
    with concurrent.futures.ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork"), begin_worker) as pool:
        session = Session(pool, lives, tmp_path)
        if ONLY:
            session.live(only(cases, ONLY.split(",")))
        else:
            session.live_all([each for each in cases if str(each) not in lives.lived])
    report(session.verdicts, session.lives, time.monotonic() - began)
    print(lives.told())
    failed = session.verdicts.failed()
    assert not failed, failed
