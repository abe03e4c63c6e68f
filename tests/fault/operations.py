"""Complete operations of a service, each as short as possible. Each prepares the state that its lives share. It
defines the actions of users in a life, its end, and the expected results."""

import collections
import contextlib
import ctypes
import hashlib
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import struct
import threading
import time

import conftest
import first_version
import proto
import pydicom
import raw_peer
import upper_layer
from conftest import PEERS, SOURCE, Clock, Daemon, open_files, phantom, wait_for
from disasters import happened
from hospital import NAME, Slice, read_page
from invariants import check_database, check_events, check_folder, check_instances, check_jobs, check_log

SECONDS = 90  # maximum of one step of a life: the receiver tries unreadable inbox files again after a minute
DOSE = 0.5  # duration of a permanent fault after its first occurrence, and the time for further cases to reach it
STARTS = 3  # of a daemon that ends each time
POLL = 0.2  # between two checks: a check costs as much as five processes use in 20 ms
PATIENCE = 4  # maximum standstill of the work after a fault, then the service is restarted
SLICES = 3
# Exit statuses after which the service manager restarts the daemon (systemd/noctule.service).
RESTARTED = {6, 71, 75}
# Libraries that abort or crash if an allocation, a thread or a descriptor fails. If libseccomp hangs
# (seccomp_export_bpf), the daemon kills the child that sends no HELLO, by DEATHS.
LIBRARIES = ("libuv", "libconfig", "libdcmdata", "libofstd", "libseccomp", "libnss")
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
DEATHS = {signal.SIGKILL, signal.SIGTERM}  # of children, by order of the daemon

# All timers as short as possible: tests wait only for work.
SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; after = "delete"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 600.0; complete_seconds = 0.1; patience_seconds = 600.0; }};
jobs = {{ max_attempts = 100; retry_seconds = 0.1; retry_max_seconds = 0.2; }};
compute = {{ backend = "cpu"; lanes = 1; threads = 1; }};
min_free_mib = 1;
pipelines = (
  {{ name = "head-ct";
    segments = (
      {{ label = "Brain"; method = "level-set"; range = [ -50.0, {high} ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} );
        category = {{ code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; }};
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} );
    deliver = [ {deliver} ];
  }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "head-ct"; priority = 5; }} );
delivery = {{ retry_seconds = 0.1; retry_max_seconds = 0.2; breaker_failures = 100; }};
destinations = ( {{ name = "OUT"; folder = "{out}"; }},
                 {{ name = "ARC"; ae_title = "{title}"; host = "127.0.0.1"; port = {port}; }} );
page = {{ port = {page}; }};
"""


class Archive:
    """Accepts C-STORE for any called title, and keeps the data sets: title to UID to data set."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        self.taken = collections.defaultdict(dict)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError, EOFError):
            kind, request = receive_pdu(connection)
            title = request[20 - 16:20].decode().strip()
            connection.sendall(raw_peer.associate_ac(request))
            parts = {1: b"", 0: b""}
            while kind != raw_peer.RELEASE_RQ:
                kind, body = receive_pdu(connection)
                for context, flags, data in pdvs(body) if kind == raw_peer.DATA else ():
                    parts[flags & 1] += data
                    if flags == 2:
                        connection.sendall(self.stored(title, context, parts))
                        parts = {1: b"", 0: b""}
            connection.sendall(raw_peer.pdu(raw_peer.RELEASE_RP, bytes(4)))

    def stored(self, title, context, parts):
        """Returns the response to a complete C-STORE."""
        asked = raw_peer.elements_of(parts[1])
        uid = asked[0x1000].rstrip(b"\0").decode()
        assert self.taken[title].setdefault(uid, parts[0]) == parts[0], "another data set of the same UID"
        elements = {0x0002: asked[0x0002].decode().rstrip("\0"), 0x0100: 0x8001,
                    0x0120: struct.unpack("<H", asked[0x0110])[0], 0x0800: 0x0101, 0x0900: 0, 0x1000: uid}
        body = b"".join(raw_peer.element(number, elements[number]) for number in sorted(elements))
        body = raw_peer.element(0, struct.pack("<I", len(body))) + body
        return raw_peer.pdu(raw_peer.DATA, raw_peer.pdv(context, 3, body))


def receive_pdu(connection):
    header = receive(connection, 6)
    kind, _, length = struct.unpack(">BBI", header)
    return kind, receive(connection, length)


def receive(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def pdvs(body):
    while body:
        length, context, flags = struct.unpack_from(">IBB", body)
        yield context, flags, body[6:4 + length]
        body = body[4 + length:]


def make_series(folder, seed):
    """Returns the files of a series with its number of images in the headers."""
    files = phantom(folder, "--size", f"32x32x{SLICES}", "--seed", str(seed))
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.ImagesInAcquisition, dataset.PatientName, dataset.SpecificCharacterSet = str(SLICES), NAME, "ISO_IR 100"
        dataset.save_as(path)
    return files


def slices_of(files):
    return [Slice(pydicom.dcmread(path)) for path in files]


def adopt():
    """Makes this process the parent of processes that a daemon leaves behind."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) == 0


def all_ended():
    """Returns whether all processes that the daemons left behind have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    return True


class Life:
    """One life of a service, with or without faults."""

    def __init__(self, operation, folder, archive):
        """Starts from the prepared state of the operation, if there is any."""
        self.operation, self.folder = operation, pathlib.Path(folder)
        self.archive, self.title = archive, self.folder.name[:16]
        self.out = self.folder / "out"
        self.hit, self.log = self.folder.with_name(f"{self.title}.hit"), self.folder.with_name(f"{self.title}.log")
        if operation.prepared:
            shutil.copytree(operation.prepared, self.folder)
        self.out.mkdir(parents=True, exist_ok=True)
        ports = len(conftest.held_ports)
        page = conftest.free_port()
        self.d = Daemon(self.folder, dicom=PEERS, environment=Clock(self.folder.parent).environment,
                        settings=SETTINGS.format(root=self.folder / "root", out=self.out, title=self.title, port=archive.port,
                                                 page=page, deliver=operation.deliver, high=operation.high))
        self.d.page_port = page
        self.d.log = self.log  # outside the root, because log lines that cannot be written are not tested
        self.ports, conftest.held_ports[ports:] = conftest.held_ports[ports:], []
        self.statuses = []
        self.looked_at = time.monotonic()
        self.mind = operation.begin(self)

    def start(self, **more):
        self.d.environment.update(more)
        self.d.start(wait=False)

    def revive(self):
        """Restarts the daemon like the system's service manager."""
        if self.d.process.poll() is None:
            return
        self.statuses.append(self.d.process.returncode)
        self.check_status(RESTARTED)
        self.start()

    def check_status(self, statuses):
        status = self.d.process.poll()
        assert status in statuses or self.dies_in_library(self.d.process.pid), f"noctuled ended with {status}"

    def text(self):
        return self.log.read_text(errors="replace")

    def dies_in_library(self, pid):
        """Returns whether it ended in a library that aborts without memory, as reported by faults.c."""
        return re.search(rf"faults: pid={pid} dies in ({'|'.join(LIBRARIES)})\.", self.text())

    def is_finished(self):
        """Repeats all user actions. Returns True when all work is done."""
        self.revive()
        with contextlib.suppress(OSError, EOFError, AssertionError, sqlite3.OperationalError):  # tried again
            self.operation.ask(self)
            self.judge_again()
        with contextlib.suppress(sqlite3.OperationalError):  # while only the daemon can open the database
            return self.operation.is_over(self) and not self.leftovers() and self.page_answers()

    def page_answers(self):
        """Checks that the web UI responds from the database. A life with counted calls is too slow for larger pages."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return read_page(self.d, "/readyz") == 200
        return False

    def judge_again(self):
        """Sometimes repeats, as an operator would, the check of a series after three deaths of the receiver in a
        library without memory."""
        if time.monotonic() < self.looked_at + 1:
            return
        self.looked_at = time.monotonic()
        for row in self.d.query("SELECT series_uid FROM v_series WHERE code = 'INSPECT_FAILED'"):
            self.send_request("COMPLETE", series_uid=row[0])

    def below(self, *names):
        """Returns the files in these folders of the root. Files may disappear meanwhile."""
        return [pathlib.Path(folder, file) for name in names for folder, _, files in os.walk(self.d.root / name) for file in files]

    def leftovers(self):
        """Returns the partial files."""
        return self.below("incoming", "jobs", "removed") + [path for path in self.below("outbox", "series")
                                                            if path.suffix == ".part"]

    def finish(self):
        wait_for(self.is_finished, SECONDS, f"the end of the work in {self.folder}")

    def reached_faults(self):
        return sum(place != 0 for place in happened(self.hit))

    def finish_or_restart(self):
        """Returns True if a restart was required, after which no call fails."""
        deadline, came = time.monotonic() + SECONDS, 0
        while not self.is_finished():
            if (now := self.reached_faults()) > came:
                deadline, came = time.monotonic() + PATIENCE, now
            if time.monotonic() > deadline:
                self.restart({0, 6, *RESTARTED, -signal.SIGTERM})  # the daemon may be restarting
                self.finish()
                return True
            time.sleep(POLL)
        return False

    def endure(self):
        """Lets permanent faults last for a while."""
        deadline, came = time.monotonic() + SECONDS, 0
        while not self.is_finished() and len(self.statuses) < STARTS and time.monotonic() < deadline:
            if (now := self.reached_faults()) > came:
                deadline, came = time.monotonic() + DOSE, now
            time.sleep(POLL)
        self.restart({*RESTARTED, 0, -signal.SIGTERM})  # the last possible one before it handles signals

    def restart(self, statuses):
        """Restarts the daemon without faults."""
        self.end(statuses)
        for name in [name for name in self.d.environment if name.startswith("NOCTULE_FAULT")]:
            del self.d.environment[name]
        self.start()
        wait_for(self.answers, SECONDS, "the answer of a service in which nothing fails")

    def answers(self):
        with contextlib.suppress(OSError, EOFError):
            self.send_request("PING")
            return True

    def end(self, statuses):
        """Ends it by SIGTERM. Sends a second one if this takes long, like an impatient administrator."""
        for seconds in (5, SECONDS):
            self.d.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(Exception):
                self.d.process.wait(seconds)
                break
        self.check_status(statuses)
        wait_for(all_ended, SECONDS, "the end of every child")

    def descriptors(self):
        """Returns the open descriptors of each process of the service, as (role, name) to number."""
        found = collections.Counter()
        for pid in [self.d.process.pid, *self.d.children()]:
            with contextlib.suppress(OSError):
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                role = command[command.index(b"--role") + 1].decode() if b"--role" in command else "daemon"
                for name in open_files(pid):
                    found[role, re.sub(r":\[\d+\]", "", name).replace(str(self.folder), "").replace(str(self.log), "log")] += 1
        return found

    def usual(self):
        """Returns the same after a reload has replaced the web UI process."""

        def renewed():
            return self.text().rfind("event=child.ready child=page") > self.text().rfind("event=config.reloaded")

        wait_for(renewed, SECONDS, "the page")
        return self.descriptors()

    def leaks_no_descriptor(self, usual):
        """Waits until no more are open than in a life without faults. A sender without deliveries does not exist."""
        # because the disk had no room
        usual = usual + collections.Counter({("daemon", "/memfd:noctule.conf (deleted)"): 1})
        wait_for(lambda: self.descriptors() <= usual, SECONDS, f"the end of {self.descriptors() - usual}")

    def check(self):
        """Checks the state after the end."""
        with self.d.reading():
            self.operation.check(self)
            check_database(self.d)
            check_events(self.d)
        assert not self.leftovers() and not list(self.out.rglob("*.part"))
        check_log(self.d)
        for died in re.finditer(r".*child\.gone.* pid=(\d+) .*signal=(\d+).*", self.text()):
            assert int(died[2]) in {0, *DEATHS} or self.dies_in_library(died[1]), died[0]

    def results(self):
        """Returns the objects in the archive."""
        return sorted(hashlib.sha256(data).hexdigest() for data in self.archive.taken[self.title].values())

    def check_archive(self):
        """Checks that the archive has each result, at least once, as in the outbox."""
        taken = self.archive.taken[self.title]
        rows = self.d.query("SELECT sop_instance_uid, path FROM v_results WHERE kind = 'seg'")
        assert taken.keys() == {row[0] for row in rows}
        for uid, path in rows:
            file = (self.d.root / path)
            assert not file.exists() or file.read_bytes().endswith(taken[uid]), uid

    def close(self, keep):
        self.d.kill_all()
        for port in self.ports:
            port.close()
        self.archive.taken.pop(self.title, None)
        if not keep:
            shutil.rmtree(self.folder)
            for path in (self.hit, self.log):
                path.unlink(missing_ok=True)

    def send_request(self, name, **fields):
        """Sends a request of the command line to the daemon, 0 and "" by default. Raises an OSError if it is refused."""
        values = [fields.pop(field, "" if kind == "s" else 0) for field, kind in proto.TYPES[name].fields]
        assert not fields
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(3)
            client.connect(str(self.d.root / "run" / "control.sock"))
            client.sendall(proto.encode(name, *values))
            answer = proto.decode(receive(client, struct.unpack("<I", receive(client, 4))[0]))
        if answer["status"]:
            raise OSError(-answer["status"], answer["message"])


def delivered(d, count):
    """Returns whether that many results are at their destinations."""
    rows = d.query("SELECT count(*), sum(state = 'SENT') FROM v_deliveries")
    return bool(rows) and tuple(rows[0]) == (count, count)


class Operation:
    """Common parts of operations. prepared: the root before the operation, if there is any."""

    deliver, high, prepared = '"ARC"', 100.0, None

    def begin(self, life):
        """Initialises the state of the life."""

    def ask(self, life):
        """Actions of users until the end: none by default."""


def copy_into_inbox(d, files, name="copied"):
    target = d.inbox / name
    target.mkdir()
    for path in files:
        shutil.copy(path, target)


class Work(Operation):
    """A series arrives by C-STORE and another in the inbox. Both are segmented and delivered to an archive and a
    folder."""

    name, deliver = "work", '"OUT", "ARC"'

    def __init__(self, folder):
        self.sent, self.copied = make_series(folder / "sent", 1), make_series(folder / "copied", 2)
        self.slices = slices_of(self.sent)
        self.all = {each.instance: each for each in self.slices + slices_of(self.copied)}

    def begin(self, life):
        copy_into_inbox(life.d, self.copied)
        return list(self.slices)

    def ask(self, life):
        waiting = life.mind
        if not waiting:
            return
        with contextlib.closing(upper_layer.Peer(life.d.port, seconds=3)) as peer:
            peer.associate()
            while waiting and peer.store(waiting[0].data, waiting[0].instance) == 0:
                waiting.pop(0)

    def is_over(self, life):
        if life.mind or len(list(life.out.iterdir())) < 2 or len(life.archive.taken[life.title]) < 2:
            return False
        return not life.below("inbox") and delivered(life.d, 4)

    def check(self, life):
        check_instances(life.d, self.all)
        check_jobs(life.d, self.all)
        check_folder(life.d)
        life.check_archive()


class Upkeep(Operation):
    """Of three series, one is submitted, one is retried with a changed pipeline, and the third is purged. Then the
    configuration is reloaded, and all data is old enough to be removed."""

    name, high = "upkeep", 101.0
    RETENTION = "retention = { series_days = 1e-8; results_days = 1e-8; quarantine_days = 1e-8; min_days = 0.0; };\n"

    def __init__(self, folder):
        stored = Stored(folder)
        life = Life(stored, folder / "life", Archive())
        try:
            life.start()
            life.finish()
            life.end({0})
            (self.submitted, _), (self.retried, self.retried_job), (self.purged, _) = life.d.query(
                "SELECT series_uid, job FROM v_jobs ORDER BY series_uid")
        finally:
            life.close(keep=True)
        self.prepared = folder / "prepared"
        shutil.copytree(life.d.root, self.prepared / "root", ignore=shutil.ignore_patterns("*.sock"))

    def ask(self, life):
        with life.d.reading():
            self.ask_database(life)

    def ask_database(self, life):
        jobs = collections.Counter(row["series_uid"] for row in life.d.jobs())
        if jobs[self.submitted] < 2:
            life.send_request("SUBMIT", series_uid=self.submitted, pipeline="head-ct")
        if jobs[self.retried] < 2:
            life.send_request("RETRY", job=self.retried_job, current=1)
        if life.d.query("SELECT 1 FROM v_series WHERE series_uid = ? AND removed_at IS NULL", self.purged):
            life.send_request("PURGE", series_uid=self.purged)
        if not self.is_delivered(life):
            return
        if self.RETENTION not in life.d.config.read_text():
            life.d.config.write_text(life.d.config.read_text() + self.RETENTION)
            life.mind = 0
        if time.monotonic() > life.mind + 1:  # again if the request was lost
            life.mind = time.monotonic()
            life.send_request("PING")  # signals would end a daemon that does not handle them yet
            life.d.process.send_signal(signal.SIGHUP)

    def is_delivered(self, life):
        return len(life.archive.taken[life.title]) == 2 and delivered(life.d, 5)

    def is_over(self, life):
        return self.is_delivered(life) and not life.below("series", "outbox", "removed") and not life.d.query(
            "SELECT 1 FROM removal UNION ALL SELECT 1 FROM v_series WHERE removed_at IS NULL "
            "UNION ALL SELECT 1 FROM v_jobs WHERE removed_at IS NULL")

    def check(self, life):
        assert not life.below("series", "outbox", "removed")
        jobs = life.d.jobs()
        assert collections.Counter(row["series_uid"] for row in jobs) == {self.submitted: 2, self.retried: 2, self.purged: 1}
        assert {row["state"] for row in jobs} == {"DONE"}
        assert sum(row["superseded_by"] is not None for row in jobs) == 2


class Stored(Operation):
    """Initial state of Upkeep: three finished series, and a file without an image."""

    name = "stored"

    def __init__(self, folder):
        self.files = [make_series(folder / str(seed), seed) for seed in (1, 2, 3)]

    def begin(self, life):
        for i, files in enumerate(self.files):
            copy_into_inbox(life.d, files, str(i))
        (life.d.inbox / "junk.dcm").write_bytes(b"no DICOM")

    def is_over(self, life):
        return delivered(life.d, 3) and not life.below("inbox")


class Migrate(Operation):
    """A database of the first version with a received series is migrated at the start. Then the series is processed."""

    name = "migrate"

    def __init__(self, folder):
        self.files = make_series(folder / "files", 4)
        self.all = {each.instance: each for each in slices_of(self.files)}
        self.prepared = folder / "prepared"
        first_version.write(self.prepared / "root", self.files)

    def is_over(self, life):
        return len(life.archive.taken[life.title]) == 1 and delivered(life.d, 1)

    def check(self, life):
        (version,) = life.d.query("PRAGMA user_version")
        assert version[0] == len(list((SOURCE / "db" / "migrations").glob("*.sql")))
        check_jobs(life.d, self.all)
        life.check_archive()


OPERATIONS = (Work, Upkeep, Migrate)
