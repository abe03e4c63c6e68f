"""A hospital around one service: modalities, users that copy into the inbox, destinations that accept, refuse, delay
or are down, and hostile peers. The acknowledged instances are recorded here for comparison in invariants.py."""

import collections
import contextlib
import http.client
import itertools
import os
import pathlib
import random
import shutil
import socket
import struct
import threading
import time

import pydicom
import raw_peer
import upper_layer
from conftest import PEERS, Clock, Daemon, free_port, phantom, wait_for
from patients import identify
from pydicom.filebase import DicomBytesIO
from pydicom.filewriter import write_dataset

SLICES = 8
SECONDS = 180  # maximum of one step
NAME = "Fault^Harness"  # of every patient, and in file names: it must not leave the root
# The modality with this title may correct its instances.
CORRECTOR = "STORESCU"
MAY_CORRECT = PEERS.replace(f'ae_title = "{CORRECTOR}";', f'ae_title = "{CORRECTOR}"; resent = "newest";')

DELIVERY = """delivery = { retry_seconds = 0.2; retry_max_seconds = 1.0; breaker_failures = 3; breaker_seconds = 0.5; };
destinations = ( """


def to_archive(name, port):
    """Returns the settings of a destination."""
    return (f'{{ name = "{name}"; ae_title = "{name}"; host = "127.0.0.1"; port = {port}; connect_seconds = 2.0; '
            "dimse_seconds = 3.0; }")


def service(folder, more="", compute="", **ports):
    """Returns a daemon that completes series only by Images in Acquisition, and never gives up. It delivers to the
    folder "out" and to archives at `ports`, and has a web UI. more, compute: further settings, of the top level and of
    that group."""
    out = pathlib.Path(folder, "out")
    out.mkdir(parents=True)
    destinations = [f'{{ name = "OUT"; folder = "{out}"; }}', *(to_archive(*each) for each in ports.items())]
    deliver = ", ".join(f'"{name}"' for name in ("OUT", *ports))
    page = free_port()
    more = f"page = {{ port = {page}; }};\n" + more
    d = Daemon(folder, after="delete", quiet=SECONDS, attempts=100, dicom=MAY_CORRECT, compute=compute,
               pipeline_extra=f"deliver = [ {deliver} ];", extra=DELIVERY + ", ".join(destinations) + " );\n" + more,
               environment=Clock(folder).environment)
    d.page_port = page
    return d


# Pages that exist without any received series.
PAGES = ("/", "/work", "/review", "/deliveries", "/received", "/reports", "/cohort", "/settings", "/search", "/job?id=1", "/metrics", "/readyz",
         "/healthz")


def read_page(d, path):
    """Returns the status of a complete page."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", d.page_port, timeout=10)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    assert not answer.getheader("Content-Type").startswith("text/html") or body.endswith(b"</html>\n"), (path, body)
    return answer.status


class Slice:
    """An instance as it is sent: its UIDs and its data set, Implicit VR."""

    def __init__(self, dataset):
        out = DicomBytesIO()
        out.is_little_endian, out.is_implicit_VR = True, False
        write_dataset(out, dataset)
        self.series, self.instance, self.data = dataset.SeriesInstanceUID, dataset.SOPInstanceUID, out.getvalue()


def make_series(folder, seed):
    """Returns the files of a series with its number of images in the headers."""
    files = phantom(folder, "--size", f"64x64x{SLICES}", "--seed", str(seed))
    for path in files:
        dataset = pydicom.dcmread(path)
        identify(dataset, ImagesInAcquisition=str(SLICES), PatientName=NAME)
        dataset.save_as(path)
    return files


class Hospital:
    """All users of the service, each in a thread, until `closing`."""

    def __init__(self, d, folder, seed):
        self.d, self.folder, self.seed = d, pathlib.Path(folder), seed
        self.numbers = itertools.count(seed * 100_000 + 1)
        self.closing = threading.Event()
        # SOP Instance UID to Slice: acknowledged with Success, or copied completely into the inbox
        self.promised = {}
        self.corrected = {}  # Series Instance UID to the right Patient ID
        self.broken = self.lies = 0
        self.pages = collections.Counter()  # by status; 0: no response

    def series(self):
        number = next(self.numbers)
        folder = self.folder / str(number)
        files = make_series(folder, number)
        return files, [Slice(pydicom.dcmread(path)) for path in files]

    def until_closing(self, one):
        while not self.closing.is_set():
            one()

    def modality(self):
        self.until_closing(self.send_series)

    def send_series(self):
        """Sends a series. In the middle of it, and at its end, the modality starts another instance and aborts before
        the series of that instance is known."""
        files, slices = self.series()
        self.send(slices[:SLICES // 2], self.break_off)
        self.send(slices[SLICES // 2:], self.break_off)
        self.has_result(slices)
        self.break_off_after(slices)
        shutil.rmtree(files[0].parent)

    def send(self, slices, afterwards=None, calling="PYNETDICOM"):
        """Sends until all instances are acknowledged. `afterwards` continues on the association, with any outcome."""
        waiting = list(slices)

        def all_sent():
            try:
                with upper_layer.associated(self.d.port, calling=calling) as peer:
                    while waiting and peer.store(waiting[0].data, waiting[0].instance) == 0:
                        done = waiting.pop(0)
                        self.promised[done.instance] = done
                    if afterwards and not waiting:
                        afterwards(peer, slices[-1])
            except (OSError, EOFError, AssertionError):
                self.broken += 1
            return not waiting

        wait_for(all_sent, SECONDS, "the acknowledgement of a series")

    @staticmethod
    def break_off(peer, of):
        peer.begin_store(f"{of.instance}.9")
        peer.send(upper_layer.data_pdu(1, 0, of.data[:64]))
        peer.reset()

    def break_off_after(self, slices):
        """Sends the same again after the series has its result, on the same association. It must have no effect."""
        self.send(slices[-1:], self.break_off)

    def corrector(self):
        self.until_closing(self.correct_series)

    def correct_series(self):
        """Sends a series with a wrong patient. After its result sends it with the right name and ID, under the same
        UIDs."""
        files, wrong = self.series()
        self.send(wrong, calling=CORRECTOR)
        self.has_result(wrong)
        right = [Slice(self.with_right_patient(path)) for path in files]
        self.corrected[right[0].series] = f"R-{right[0].series[-9:]}"
        self.send(right, calling=CORRECTOR)
        wait_for(lambda: self.d.query("SELECT 1 FROM v_jobs JOIN v_series USING (series_uid, revision) WHERE series_uid = ? "
                                      "AND revision > 1 AND v_jobs.state = 'DONE'", right[0].series),
                 SECONDS, f"the result of the corrected series {right[0].series}")
        shutil.rmtree(files[0].parent)

    @staticmethod
    def with_right_patient(path):
        dataset = pydicom.dcmread(path)
        dataset.PatientName, dataset.PatientID = f"{NAME}^Right", f"R-{dataset.SeriesInstanceUID[-9:]}"
        return dataset

    def copier(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "notes").write_text(f"{NAME} is no DICOM")
        self.copy_file(self.folder / "notes", self.d.inbox / "copied notes" / f"{NAME}.txt")
        self.until_closing(self.copy_series)

    def copy_series(self):
        """Copies like a user: each file in place, growing. With `after = "delete"` it is removed after reception."""
        files, slices = self.series()
        target = self.d.inbox / f"copied {slices[0].series[-6:]}"
        for path in files:
            self.copy_file(path, target / f"{NAME} {path.name}")
        self.promised.update((each.instance, each) for each in slices)
        self.has_result(slices)
        shutil.rmtree(files[0].parent)

    def copy_file(self, source, target):
        """Repeats the copy while the disk is full."""

        def copied():
            try:
                target.parent.mkdir(exist_ok=True)
                shutil.copy(source, target)
                return True
            except OSError:
                return False

        wait_for(copied, SECONDS, f"room for {target}")

    def has_result(self, slices):
        wait_for(lambda: self.d.query("SELECT 1 FROM v_jobs WHERE series_uid = ? AND state = 'DONE'", slices[0].series),
                 SECONDS, f"the result of series {slices[0].series}")

    def reader(self):
        """A user of the web UI. It may be down for a moment, and each received page must be complete."""
        for path in itertools.cycle(PAGES):
            status = 0
            with contextlib.suppress(OSError, http.client.HTTPException):
                status = read_page(self.d, path)
            assert status in (0, 200, 404, 503), (path, status)
            self.pages[status] += 1
            if self.closing.wait(0.05):
                break

    def stranger(self):
        chance = random.Random(self.seed)
        self.until_closing(lambda: self.lie(chance))

    def lie(self, chance):
        """Opens one connection of a hostile peer, with any outcome."""
        with contextlib.suppress(OSError, EOFError, AssertionError, KeyError, struct.error):
            chance.choice(LIES)(chance.choice((self.d.port, self.d.port, self.d.page_port)), chance)
        self.lies += 1
        self.closing.wait(chance.uniform(0.02, 0.3))


def lie_noise(port, chance):
    with raw_peer.Raw(port, timeout=2) as peer:
        peer.send(chance.randbytes(chance.randrange(1, 2000)))
        peer.ends()


def lie_length(port, chance):
    """Sends a PDU of four gigabytes."""
    with raw_peer.Raw(port, timeout=2) as peer:
        peer.send(struct.pack(">BBI", chance.randrange(1, 8), 0, 0xFFFFFFF0) + chance.randbytes(100))
        peer.ends()


def lie_unknown_title(port, chance):
    peer = upper_layer.Peer(port, seconds=2)
    with contextlib.closing(peer):
        peer.associate(calling="STRANGER")


def lie_broken_off(port, chance):
    """Disconnects within a data set."""
    with upper_layer.associated(port) as peer:
        peer.begin_store(f"1.2.826.0.1.{chance.randrange(10**9)}")
        for part in itertools.islice(upper_layer.data_pdus(1, chance.randbytes(100_000), 16000), 3):
            peer.send(part)
        peer.reset()


def lie_data_set(port, chance):
    """Sends an invalid data set, which is refused."""
    with upper_layer.associated(port) as peer:
        assert peer.store(chance.randbytes(5000), f"1.2.826.0.1.{chance.randrange(10**9)}") != 0


def lie_nested(port, chance):
    """Sends a report with deeply nested sequences."""
    with raw_peer.Raw(port, timeout=2) as peer:
        peer.associate([(raw_peer.COMMITMENT, [raw_peer.IMPLICIT])], calling="PYNETDICOM",
                       roles=[(raw_peer.COMMITMENT, 0, 1)])
        peer.command(1, raw_peer.command(0x0100, 1, raw_peer.COMMITMENT, raw_peer.COMMITMENT_INSTANCE, x1002=1))
        peer.data_set(1, raw_peer.nested(1000))
        peer.response()


def lie_idle(port, chance):
    """Stays silent for a while, with an association."""
    with upper_layer.associated(port):
        time.sleep(chance.uniform(0.1, 1))


LIES = (lie_noise, lie_length, lie_unknown_title, lie_broken_off, lie_data_set, lie_nested, lie_idle)


class SlowArchive:
    """A destination that accepts every association, and then reads one byte per second."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.port = self.listener.getsockname()[1]
        self.closing = threading.Event()
        self.associations = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.closing.is_set():
            with contextlib.suppress(OSError):
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError, struct.error, IndexError):
            header = connection.recv(6, socket.MSG_WAITALL)
            request = connection.recv(struct.unpack(">BBI", header)[2], socket.MSG_WAITALL)
            connection.sendall(raw_peer.associate_ac(request))
            self.associations += 1
            while connection.recv(1) and not self.closing.wait(1):
                pass

    def close(self):
        self.closing.set()
        self.listener.close()


def unreadable_things(inbox, chance):
    """Unreadable files in the inbox. Their names mark them as expected failures."""
    folder = pathlib.Path(inbox, f"unreadable {chance.randrange(10**9)}")
    folder.mkdir(exist_ok=True)
    chance.choice((
        lambda: os.mkfifo(folder / "pipe.dcm"),
        lambda: (folder / "nowhere.dcm").symlink_to("gone"),
        lambda: (folder / "itself.dcm").symlink_to("itself.dcm"),
        lambda: (folder / "folder.dcm").mkdir(),
        lambda: (folder / "empty.dcm").touch(),
        lambda: (folder / "noise.dcm").write_bytes(chance.randbytes(3000)),
        lambda: (folder / "cut.dcm").write_bytes(bytes(128) + b"DICM" + chance.randbytes(chance.randrange(200))),
        lambda: open(os.fsencode(folder) + b"/\xff\xfe.dcm", "wb").close(),
        lambda: deep_folder(folder),
        lambda: socket.socket(socket.AF_UNIX).bind(f"/proc/self/fd/{os.open(folder, os.O_PATH)}/socket.dcm"),
    ))()


def deep_folder(folder):
    """A path of more than 4096 bytes, with a file at its end."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("deep.dcm", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
