"""
Every process is killed at random moments under load, and nothing that was acknowledged is lost.

NOCTULE_SOAK_KILLS is how many kills there are: a dozen for every day, hundreds for a night.
"""

import collections
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import random
import signal
import threading
import time

import pydicom
from conftest import PEERS, phantom, storescp, wait_for
from pydicom.filebase import DicomBytesIO
from pydicom.filewriter import write_dataset
from test_deliveries import destinations, objects, to_archive, to_folder
from test_receive import data_set_of, stored
from upper_layer import associated

KILLS = int(os.environ.get("NOCTULE_SOAK_KILLS", "12"))
VICTIMS = ("intake", "courier", "worker", "daemon")
MODALITIES = 6  # each has one series under way
SLICES = 12
SECONDS = 120  # the longest that one step may take

Slice = collections.namedtuple("Slice", "series instance data")


def make_series(folder, seed):
    """The slices of a series that says how many it has, as they go over the network."""
    slices = []
    for path in phantom(folder, "--size", f"96x96x{SLICES}", "--seed", str(seed)):
        dataset = pydicom.dcmread(path)
        dataset.ImagesInAcquisition = str(SLICES)
        out = DicomBytesIO()
        out.is_little_endian, out.is_implicit_VR = True, False
        write_dataset(out, dataset)
        slices.append(Slice(dataset.SeriesInstanceUID, dataset.SOPInstanceUID, out.getvalue()))
    return slices


class Hospital:
    """Modalities that send series after series, each until it has a result; what was acknowledged to them."""

    def __init__(self, d, folder):
        self.d, self.folder = d, folder
        self.seeds = itertools.count(1)
        self.acknowledged = {}
        self.broken = 0
        self.closing = threading.Event()

    def work(self):
        while not self.closing.is_set():
            seed = next(self.seeds)
            slices = make_series(self.folder / str(seed), seed)
            self.send(slices)
            wait_for(lambda: self.has_result(slices[0].series), SECONDS, f"the result of series {seed}")

    def has_result(self, series):
        return self.d.query("SELECT 1 FROM v_jobs WHERE series_uid = ? AND state = 'DONE'", series)

    def send(self, slices):
        """Sends what was not acknowledged again and again, as modalities do."""
        waiting = list(slices)

        def all_sent():
            try:
                with associated(self.d.port) as peer:
                    while waiting and peer.store(waiting[0].data, waiting[0].instance) == 0:
                        done = waiting.pop(0)
                        self.acknowledged[done.instance] = done
            except (OSError, EOFError, AssertionError):
                self.broken += 1
            return not waiting

        wait_for(all_sent, SECONDS, "the acknowledgement of a series")


class Killer:
    """Kills each kind of process as often as every other, in random order at random moments."""

    def __init__(self, d, seed=20261121):
        self.d = d
        self.chance = random.Random(seed)
        self.killed = collections.Counter()
        self.sessions = {d.process.pid}

    def kill(self, count):
        order = []
        for _ in range(count):
            order = order or self.chance.sample(VICTIMS, len(VICTIMS))
            time.sleep(self.chance.uniform(0.02, 1.5))
            self.strike(order.pop())

    def strike(self, victim):
        if victim == "daemon":
            self.d.process.kill()
            self.d.process.wait()
            self.d.start()
            self.sessions.add(self.d.process.pid)
        else:
            wait_for(lambda: self.strike_child(victim), SECONDS, f"a {victim} to kill")
        self.killed[victim] += 1

    def strike_child(self, role):
        for pid in self.d.children(role):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False


def in_sessions(sessions):
    """What runs in the sessions that the daemons began, which their children never leave."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(stat[3]) in sessions and stat[0] != "Z":
                found.append(int(entry.name))
    return found


def pixels_of(path):
    return pydicom.dcmread(path).PixelData


def assert_received(d, slices):
    on_record = stored(d)
    assert on_record.keys() == slices.keys()
    for instance, sent in slices.items():
        assert data_set_of(on_record[instance]) == sent.data
    assert not list((d.root / "quarantine").iterdir())


def assert_computed(d, slices):
    jobs = [(row["series_uid"], row["state"]) for row in d.jobs()]
    assert sorted(jobs) == sorted((series, "DONE") for series in {each.series for each in slices.values()})


def assert_delivered(d, out, archive):
    """What the destinations hold is what the outbox holds: each result, whatever copies, nothing else."""
    results = {row["sop_instance_uid"]: d.root / row["path"]
               for row in d.query("SELECT * FROM v_results WHERE kind = 'seg'")}
    assert len(results) == len(d.jobs())
    assert sorted(path.name for path in objects(out)) == sorted(f"{uid}.dcm" for uid in results)
    for path in objects(out):
        assert path.read_bytes() == results[path.stem].read_bytes()
    arrived = set()
    for path in archive.files():
        uid = pydicom.dcmread(path, stop_before_pixels=True).SOPInstanceUID
        assert pixels_of(path) == pixels_of(results[uid]), path
        arrived.add(uid)
    assert arrived == results.keys()


def unsent(d):
    """Results that are not yet at both destinations."""
    return d.query("SELECT path FROM v_results WHERE kind = 'seg' AND 2 > (SELECT count(*) FROM v_deliveries v "
                   "WHERE v.path = v_results.path AND v.state = 'SENT')")


def repeated(d, view):
    """How many took more than one attempt: that many kills hit something at work."""
    return d.query(f"SELECT count(*) FROM {view} WHERE attempts > 1")[0][0]


def test_random_kills_of_everything_lose_nothing(daemon, tmp_path):
    out = tmp_path / "out"
    with storescp(tmp_path / "archive", ["--unique-filenames"]) as archive:
        d = daemon(dicom=PEERS, quiet=SECONDS, attempts=100, pipeline_extra='deliver = [ "OUT", "PACS" ];',
                   extra=destinations(to_folder(out), to_archive(archive.port))).start()
        hospital, killer = Hospital(d, tmp_path / "modalities"), Killer(d)
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(MODALITIES) as pool:
            modalities = [pool.submit(hospital.work) for _ in range(MODALITIES)]
            try:
                killer.kill(KILLS)
            finally:
                hospital.closing.set()
            for modality in modalities:
                modality.result()
        wait_for(lambda: not unsent(d), SECONDS, "the delivery of every result")
        seconds = time.monotonic() - start
        wait_for(lambda: not list(tmp_path.rglob("*.part")), SECONDS, "an end of what was half-done")
        assert d.stop() == 0
        wait_for(lambda: not in_sessions(killer.sessions), SECONDS, "the end of every child")
        print(f"{KILLS} kills {dict(killer.killed)} in {seconds:.0f} s: {len(hospital.acknowledged)} instances "
              f"acknowledged, {hospital.broken} associations broken; {len(d.jobs())} jobs, {repeated(d, 'v_jobs')} "
              f"of them tried again; {repeated(d, 'v_deliveries')} deliveries tried again, "
              f"{len(archive.files())} copies in the archive")
        assert_received(d, hospital.acknowledged)
        assert_computed(d, hospital.acknowledged)
        assert_delivered(d, out, archive)
        assert [tuple(row) for row in d.query("PRAGMA integrity_check")] == [("ok",)]
