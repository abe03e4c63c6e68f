"""
The n-th call of each kind fails, in each process, once or for good, through whole operations of the service
(operations.py). Afterwards everything is there once, and nothing is left over.

An operation is lived through once without a fault, which counts its calls; then each call is a case of its own, and so
is each from which on all fail. NOCTULE_FAULT_POINTS is how many cases of each process and call are tried, spread over all:
a few for every day, all (0) for a night. NOCTULE_FAULT_WORKERS is how many lives are lived at once, NOCTULE_FAULT_SECONDS
when to begin no more, NOCTULE_FAULT_PART=I/N the Ith of N shares, and NOCTULE_FAULT_ONLY cases by name, with commas
between; a name with a * stands for those of the cases that it matches. NOCTULE_FAULT_LOG is a folder that many runs of the
same programs add to: the first counts the points, and each lives those lives that no run before it has (lives.py).
"""

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

from disasters import happened
from lives import Lives
from operations import OPERATIONS, Archive, Life, adopt

POINTS = int(os.environ.get("NOCTULE_FAULT_POINTS", "1"))
WORKERS = int(os.environ.get("NOCTULE_FAULT_WORKERS", 2 * os.cpu_count()))
LIMIT = float(os.environ.get("NOCTULE_FAULT_SECONDS", "inf"))
PART, PARTS = map(int, os.environ.get("NOCTULE_FAULT_PART", "1/1").split("/"))
ONLY = os.environ.get("NOCTULE_FAULT_ONLY")
LOG = os.environ.get("NOCTULE_FAULT_LOG")

# What a call says that fails once, and for good.
ERRORS = {"open": (errno.EMFILE, errno.EMFILE), "read": (errno.EIO, errno.EIO), "write": (errno.EIO, errno.ENOSPC),
          "truncate": (errno.EIO, errno.ENOSPC), "fsync": (errno.EIO, errno.EIO), "rename": (errno.EIO, errno.ENOSPC),
          "mkdir": (errno.EIO, errno.ENOSPC), "unlink": (errno.EIO, errno.EIO), "malloc": (errno.ENOMEM, errno.ENOMEM),
          "descriptor": (errno.EMFILE, errno.ENFILE), "fork": (errno.EAGAIN, errno.EAGAIN),
          "connect": (errno.ECONNREFUSED, errno.ENETUNREACH), "send": (errno.ENOBUFS, errno.ENOBUFS),
          "receive": (errno.ECONNRESET, errno.ENOMEM)}
# As faults.c has them: what it counts of a role, and where it allocates.
ROLES = ("daemon", "intake", "courier", "worker", "page")
PLACES_MAX = 32768
COUNTS, PLACES = struct.Struct(f"={len(ERRORS) + 1}q"), struct.Struct(f"={2 * PLACES_MAX}Q")
LIBC, NOT_RANDOM = ctypes.CDLL(None), 0x0040000  # personality(2): of addresses


class Case(collections.namedtuple("Case", "operation role call n always")):
    def __str__(self):
        return " ".join(map(str, self[:4])) + (" always" if self.always else "")

    @classmethod
    def named(cls, name):
        operation, role, call, n, *always = name.split()
        return cls(operation, role, call, int(n), bool(always))

    def number(self):
        """The same in every run, and evenly spread."""
        return zlib.crc32(str(self).encode())

    def environment(self):
        error = ERRORS[self.call][self.always]
        return {"NOCTULE_FAULT": f"{self.role} {self.call} {self.n} {error}{' always' if self.always else ''}"}


class Trial:
    """An operation that was lived through once: what is usual."""

    def __init__(self, operation, folder, known, points=None):
        """known: of each role the places that allocate, which other operations have been through; points: as counted before."""
        self.operation, self.folder, self.points = operation, folder, points or {}
        counts = folder / f"{operation.name}.counts"
        counts.write_bytes(bytes(len(ROLES) * (COUNTS.size + PLACES.size)))
        life = Life(operation, folder / f"{operation.name}-0", Archive())
        try:
            if points:
                life.start(NOCTULE_FAULT_HIT=str(life.hit))
            else:
                before = LIBC.personality(NOT_RANDOM)
                life.start(NOCTULE_FAULT_COUNTS=str(counts), NOCTULE_FAULT_UNDER=str(life.folder))
                LIBC.personality(before)
            life.finish()
            self.usual = life.usual()
            life.end({0})
            life.check()
            self.results = life.results()
        finally:
            life.close(keep=True)
        if not points:
            self.note(counts.read_bytes(), known)

    def note(self, counts, known):
        for i, role in enumerate(ROLES):
            at = i * (COUNTS.size + PLACES.size)
            for call, most in zip(ERRORS, COUNTS.unpack_from(counts, at)[1:], strict=True):
                self.points[role, call] = range(1, most + 1)
            places = PLACES.unpack_from(counts, at + COUNTS.size)
            places = {stack: first for stack, first in zip(places[::2], places[1::2]) if stack}
            assert len(places) < PLACES_MAX, "more places than faults.c can tell apart"
            self.points[role, "malloc"] = sorted({places[stack] for stack in places.keys() - known[role]})
            known[role] |= places.keys()

    def cases(self):
        for (role, call), points in self.points.items():
            if 0 < POINTS < len(points):
                points = [points[int((i + 0.5) * len(points) / POINTS)] for i in range(POINTS)]
            for n in points:
                for always in (False, True):
                    yield Case(self.operation.name, role, call, n, always)

    def live(self, case, archive):
        """Does the work come to where it fails? What comes of it is checked."""
        life = Life(self.operation, self.folder / f"{case.operation}-{case.number():08x}", archive)
        good = False
        try:
            life.start(NOCTULE_FAULT_HIT=str(life.hit), NOCTULE_FAULT_UNDER=str(life.folder), **case.environment())
            if case.always:
                life.endure()
                life.finish()
            restarted = not case.always and life.finish_or_restart()
            life.leaks_no_descriptor(self.usual)
            life.end({0} if case.always or restarted else {0, 6})  # 6: it came at the very end
            life.check()
            assert life.results() == self.results
            good = True
            return happened(life.hit), restarted
        except BaseException as error:
            raise AssertionError(f"{case}, whose log ends\n{life.text()[-8000:]}") from error
        finally:
            life.close(keep=not good)


# ------------------------------------------------------------------- in processes of their own ----

began = time.monotonic()
trials, archive = {}, None


def seconds_of_processors():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def live(case):
    """
    The case, whether it came to the fault and took a restart, what is wrong, and how long it took: by the wall's clock,
    and the processors'. None where there was no time for it.
    """
    global archive
    if time.monotonic() > began + LIMIT:
        return None
    archive = archive or Archive()
    start, before = time.monotonic(), seconds_of_processors()
    reached, wrong = (False, False), ""
    try:
        reached = trials[case.operation].live(case, archive)
    except BaseException:
        wrong = traceback.format_exc()
    return case, reached, wrong, time.monotonic() - start, seconds_of_processors() - before


def begin_worker():
    """What is there now stays; what its daemons leave behind is its own."""
    gc.freeze()
    adopt()


def report(cases, lived, seconds):
    kinds = collections.Counter(" ".join(case[:3]) for case, (reached, _), *_ in lived if reached)
    restarted = collections.Counter(" ".join(case[:3]) for case, (_, restarted), *_ in lived if restarted)
    lasted = sorted(((round(each[3], 1), str(each[0])) for each in lived), reverse=True)
    print(f"{len(lived)} lives of {len(cases)}, {sum(kinds.values())} faults of {len(kinds)} kinds in {seconds:.0f} s; each "
          f"{sum(each[4] for each in lived) / max(1, len(lived)):.2f} s of processors, the longest {lasted[:5]}")
    print("reached:", dict(sorted(kinds.items())))
    print("once, and it took a restart:", dict(sorted(restarted.items())))


def only(cases, names):
    """Those of the names, and any others that are named whole: points shift from build to build."""
    for name in names:
        if "*" in name:
            yield from (case for case in cases if fnmatch.fnmatchcase(str(case), name))
        else:
            yield Case.named(name)


def test_any_call_may_fail(tmp_path):
    adopt()
    known = {role: set() for role in ROLES}
    lives = Lives(LOG or tmp_path / "log")
    for kind in OPERATIONS:
        (tmp_path / kind.name).mkdir()
        trials[kind.name] = Trial(kind(tmp_path / kind.name), tmp_path, known, lives.points.get(kind.name))
        print(kind.name, {" ".join(key): len(points) for key, points in trials[kind.name].points.items() if points})
    lives.keep_points({name: trial.points for name, trial in trials.items()})
    cases = sorted((each for trial in trials.values() for each in trial.cases()), key=Case.number)
    cases = [each for each in cases if each.number() % PARTS == PART - 1]
    if ONLY:
        cases = list(only(cases, ONLY.split(",")))
    else:
        cases = [each for each in cases if str(each) not in lives.lived]
    lived = []
    with concurrent.futures.ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork"), begin_worker) as pool:
        futures = [pool.submit(live, case) for case in cases]
        for future in concurrent.futures.as_completed(futures):
            if not future.result():
                continue
            lived.append(future.result())
            case, reached, wrong, *_ = lived[-1]
            lives.note(str(case), *reached, wrong)
            if wrong:
                print(f"NOCTULE_FAULT_ONLY='{case}' in {tmp_path}\n{wrong}", flush=True)
    report(cases, lived, time.monotonic() - began)
    print(lives.told())
    failed = [str(case) for case, _, wrong, *_ in lived if wrong]
    assert not failed, failed
