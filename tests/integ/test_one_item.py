"""An error of one item affects only that item. One service gets every faulty item of the tables below at the same
time, and valid items by each way. Each faulty item has its own code, and each valid item has its result once."""

import contextlib
import os
import re
from collections import Counter

import proto
import pydicom
import pytest
from conftest import PEERS, Daemon, drop, free_port, phantom, storescp, storescu, wait_for
from raw_peer import ASSOCIATE_RJ, Raw, pdu
from test_admission import PIPELINE
from test_daemon import answer, control, ready_children
from test_deliver import data_set_bytes
from test_deliveries import deliveries, objects, small, to_archive, to_folder
from test_delivery_ends import Destination, aborts_in_the_middle, answers
from upper_layer import associated, data_pdu

SUCCESS, MISMATCH = 0x0000, 0xA900

# ---- tables of faulty items and their codes ----

# A file in an inbox, and its code in v_quarantine. "": the file stays in the inbox, and the log reports it once.
FILES = {
    "empty.dcm": "FILE_EMPTY", "noise.dcm": "NOT_DICOM", "cut.dcm": "FILE_TRUNCATED", "fifo.dcm": "", "dangling.dcm": "",
}
# A series, and its code in v_series. "flat" is valid until its pixels are read.
SERIES = {
    "siemens-mosaic": "MOSAIC", "ct-two-patients": "MIXED_PATIENTS", "ct-two-studies": "MIXED_STUDIES",
    "ct-end-missing-count": "INCOMPLETE_SERIES", "ct-gap": "MISSING_SLICE", "ct-uneven": "SPACING_NOT_UNIFORM",
    "fmri-nothing": "DUPLICATE_POSITION", "flat": "", "broken off": "INCOMPLETE_SERIES",
}
# Images that the receiver refuses, so that they never form a series: number of files, and their code in v_quarantine.
UNSUPPORTED = {"nm-frames": (1, "SOP_CLASS_UNSUPPORTED"), "ct-32-bit": (8, "PIXELS_UNSUPPORTED")}
# A peer, the log text about its association, and the code in v_quarantine of its files.
CALLERS = {
    "stranger": ("no peer has the calling AE title", ""), "noise": ("not an association request", ""),
    "broken off": ("ASSOCIATION_ABORTED", "NOT_RECEIVED"), "lies": ("", "COMMAND_MISMATCH"),
}
# A job by series and pipeline: its state and its code in v_jobs. "large" is valid.
JOBS = {
    ("large", "frugal"): ("FAILED", "JOB_TOO_LARGE"), ("large", "hasty"): ("FAILED", "DEADLINE_EXCEEDED"),
    ("large", "held"): ("READY", ""), ("flat", "good"): ("FAILED", "CONSTANT_PIXELS"),
}
# A destination: the state and code of each delivery to it.
ENDS = {
    "DEAD": ("DELAYED", "PEER_UNREACHABLE"), "REFUSES": ("FAILED", "STORE_REFUSED"), "REJECTS": ("FAILED", "PEER_REJECTED"),
    "ABORTS": ("DELAYED", "PEER_ABORTED"), "SHUT": ("DELAYED", "FOLDER_UNWRITABLE"), "HELD": ("PENDING", ""),
}
# A client of the control socket: its bytes, and the status of the answer (None: no answer).
CLIENTS = {
    "noise": (b"GET / HTTP/1.1\r\n\r\n", None), "leaves": (proto.encode("PING")[:3], None),
    "in vain": (proto.encode("RETRY", 4711, 0, 0, 0), -2),
}
# Valid series: one per way of reception, all for the pipeline "good". Their results are sent to these destinations
# too.
NEIGHBOURS = ("inbox", "second inbox", "series", "peer", "clients", "large")
GOOD_ENDS = ("OUT", "PACS")
NOISE = bytes(range(256)) * 16

SETTINGS = """root = "%(root)s"; min_free_mib = 1; compute = { lanes = 2; };
inbox = ( { path = "inbox"; settle_seconds = 0.3; sweep_seconds = 1.0; },
          { path = "second"; settle_seconds = 0.3; sweep_seconds = 1.0; } );
series = { quiet_seconds = 600.0; complete_seconds = 0.3; patience_seconds = 600.0; };
jobs = { max_attempts = 1; };
delivery = { retry_seconds = 600.0; retry_max_seconds = 600.0; breaker_failures = 99; };
pipelines = ( %(pipelines)s );
rules = ( { match = { modality = "CT"; }; pipeline = "good"; }, %(rules)s );
destinations = ( %(destinations)s );
"""
# Makes a job of the valid series "large" last seconds: matrices of each slice, direction and distance.
LASTING = """texture = { regions = [ "volume" ]; levels = 256;
    glcm = { aggregation = "2d-averaged"; distances = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 ]; }; };"""


class Rejecting(Destination):
    def accept(self, _):
        return pdu(ASSOCIATE_RJ, b"\0\1\1\1")  # permanent, without a reason


def configuration(folder, ports):
    names = ", ".join(f'"{name}"' for name in (*GOOD_ENDS, *ENDS))
    options = {"frugal": "memory_mib = 1.0;", "hasty": "deadline_seconds = 0.5; " + LASTING, "held": ""}
    good = (PIPELINE % ("good", f"deliver = [ {names} ];")).replace("radius_mm = 5.0", "radius_mm = 30.0")
    (folder / "file").write_text("no folder")
    patient = [to_archive(port, name).replace("connect_seconds = 60.0; dimse_seconds = 60.0;", "")
               for name, port in ports.items()]
    ends = [to_folder(folder / "out"), '{ name = "SHUT"; folder = "%s"; }' % (folder / "file" / "in")]
    return SETTINGS % {
        "root": folder / "root", "destinations": ", ".join(ends + patient),
        "pipelines": ", ".join([good, *(PIPELINE % item for item in options.items())]),
        "rules": ", ".join('{ match = { modality = "MR"; }; pipeline = "%s"; }' % name for name in ("good", *options))}


def uid_of(files):
    return str(pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID)


class Night:
    """The service, its input and its results."""

    def __init__(self, folder, ports):
        self.folder = folder
        self.second = folder / "root" / "second"
        self.second.mkdir(parents=True)
        self.d = Daemon(folder, settings=configuration(folder, ports), dicom=PEERS)
        self.uids, self.sent = {}, {}  # by name of the series: its UID, and its number of valid images

    def made(self, name, *arguments):
        """Returns the files of a series."""
        files = phantom(self.folder / "made" / name, *(arguments or ("--series", name)))
        self.uids[name], self.sent[name] = uid_of(files), len(files) - (name == "broken off")
        return files

    def neighbour(self, name):
        kind = ("--kind", "mr-brain", "--size", "128x128x64") if name == "large" else ("--size", "32x32x6")
        return self.made(name, *kind, "--seed", str(NEIGHBOURS.index(name) + 1))

    @contextlib.contextmanager
    def split_around(self, name, into):
        """Sends half of a valid series before the block, and the rest after it."""
        files = self.neighbour(name)
        drop(files[::2], into)
        yield
        drop(files[1::2], into)

    def give_files(self):
        cut = small(self.folder / "made" / "cut", seed=90)[0].read_bytes()[:-300]
        with self.split_around("inbox", self.d.inbox), self.split_around("second inbox", self.second):
            for inbox in (self.d.inbox, self.second):  # the quarantine gets two files with one name
                for name, content in (("empty.dcm", b""), ("noise.dcm", NOISE), ("cut.dcm", cut)):
                    (inbox / name).write_bytes(content)
                os.mkfifo(inbox / "fifo.dcm")
                (inbox / "dangling.dcm").symlink_to("nowhere")
                (inbox / "folder.dcm").mkdir()

    def give_series(self):
        flat = self.made("flat", "--size", "32x32x6", "--seed", "91")
        for path in flat:
            dataset = pydicom.dcmread(path)
            dataset.PixelData = bytes(len(dataset.PixelData))
            dataset.save_as(path)
        with self.split_around("series", self.d.inbox / "series"):
            drop(flat, self.d.inbox / "flat")
            for kind in (*SERIES, *UNSUPPORTED):
                if kind not in ("flat", "broken off"):
                    drop(self.made(kind), self.d.inbox / kind)

    def call(self):
        good, (lie, *_) = self.neighbour("peer"), small(self.folder / "made" / "lie", seed=92)
        broken = self.made("broken off", "--size", "32x32x6", "--seed", "93")
        with associated(self.d.port) as leaves, associated(self.d.port) as lies, Raw(self.d.port) as noise:
            for path in broken[:-1]:
                assert leaves.store(data_set_bytes(path), pydicom.dcmread(path).SOPInstanceUID) == SUCCESS
            leaves.begin_store(pydicom.dcmread(broken[-1]).SOPInstanceUID)
            leaves.send(data_pdu(1, 0, data_set_bytes(broken[-1])[:900]))
            noise.send(NOISE)
            storescu(self.d.port, *good[:3])
            leaves.reset()
            assert lies.store(data_set_bytes(lie), "1.2.3") == MISMATCH
            assert storescu(self.d.port, lie, calling="STRANGER", check=False).returncode != 0
            storescu(self.d.port, *good[3:])
            lies.release()

    def call_clients(self):
        with self.split_around("clients", self.second / "clients"), self.split_around("large", self.second / "large"):
            for name, (words, status) in CLIENTS.items():
                with control(self.d) as client:
                    client.sendall(words)
                    heard = answer(client) if name != "leaves" else None
                    assert (heard and heard[0]) == status, name

    def live(self):
        self.d.start()
        self.children = [pid for (pid,) in ready_children(self.d)]
        self.d.ctl("hold", "--pipeline", "held")
        self.d.ctl("hold", "--destination", "HELD")
        for give in (self.give_files, self.give_series, self.call, self.call_clients):
            give()
        instances = sum(self.sent[name] for name in (*SERIES, *NEIGHBOURS))
        wait_for(lambda: len(self.d.query("SELECT 1 FROM v_instances")) == instances, 90, "the last file")
        for name in SERIES:
            if name != "flat":  # other headers do not state the number of images
                self.d.ctl("complete", self.uids[name])
        wait_for(lambda: not self.waits(), 90, "the end of all work")
        return self

    def waits(self):
        """Returns whether the service still has work."""
        series = {row["series_uid"]: row for row in self.d.query("SELECT * FROM v_series")}
        return (any(self.uids[name] not in series or series[self.uids[name]]["state"] == "GATHERING"
                    for name in (*SERIES, *NEIGHBOURS))
                or any(row["state"] == "SETTLED" and not row["jobs"] for row in series.values())
                or sum(self.quarantined().values()) < sum(QUARANTINED.values())
                or any(job["state"] in ("READY", "RUNNING", "DELAYED") and not job["held"] for job in self.d.jobs())
                or any(end["state"] in ("PENDING", "SENDING") and not end["held"] for end in deliveries(self.d)))

    def quarantined(self):
        """Returns the number of files by folder and name, or by sender, and code."""
        def name(path):
            return path.partition("/")[0] if path.startswith("scu:") else "/".join(path.split("/")[-2:])
        return Counter((name(row["original_path"]), row["code"]) for row in self.d.query("SELECT * FROM v_quarantine"))

    def log_lines(self, *events):
        """Returns the log lines with these events."""
        return [line for line in self.d.log.read_text().splitlines() if re.search(rf" event=({'|'.join(events)}) ", line)]


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    folder = tmp_path_factory.mktemp("night")
    with contextlib.ExitStack() as stack:
        ports = {name: stack.enter_context(contextlib.closing(made)).port for name, made in (
            ("REFUSES", Destination(answers(0xA900))), ("ABORTS", Destination(aborts_in_the_middle)),
            ("REJECTS", Rejecting()))}
        archive = stack.enter_context(storescp(folder / "archive", ["--unique-filenames"]))
        made = Night(folder, {**ports, "PACS": archive.port, "DEAD": free_port(), "HELD": archive.port})
        stack.callback(made.d.kill_all)
        yield made.live()


# ---- results ----


QUARANTINED = Counter(
    [(f"{inbox}/{name}", code) for inbox in ("inbox", "second") for name, code in FILES.items() if code]
    + [(f"{kind}/IM{number + 1:05}.dcm", code) for kind, (files, code) in UNSUPPORTED.items() for number in range(files)]
    + [("scu:PYNETDICOM", code) for _, code in CALLERS.values() if code])


@pytest.mark.parametrize("name", FILES)
def test_a_file(night, name):
    for inbox in (night.d.inbox, night.second):
        assert os.path.lexists(inbox / name)
        rows = night.d.query("SELECT * FROM v_quarantine WHERE original_path = ?", str(inbox / name))
        assert [row["code"] for row in rows] == [FILES[name]] * bool(FILES[name])
        assert all((night.d.root / row["path"]).read_bytes() == (inbox / name).read_bytes() for row in rows)
        kinds = {"fifo.dcm": "special file", "dangling.dcm": "symbolic link"}
        skipped = [line for line in night.log_lines("inbox.skipped") if f'inbox={inbox} kind="{kinds.get(name)}"' in line]
        assert len(skipped) == (name in kinds)


@pytest.mark.parametrize("name", SERIES)
def test_a_series(night, name):
    (row,) = night.d.query("SELECT * FROM v_series WHERE series_uid = ?", night.uids[name])
    assert (row["state"], row["code"]) == ("REFUSED" if SERIES[name] else "SETTLED", SERIES[name])
    assert row["jobs"] == (name == "flat") and row["quarantined"] == (name == "broken off")


@pytest.mark.parametrize("series, pipeline", JOBS)
def test_a_job(night, series, pipeline):
    (row,) = [job for job in night.d.jobs() if (job["series_uid"], job["pipeline"]) == (night.uids[series], pipeline)]
    assert (row["state"], row["code"]) == JOBS[series, pipeline]
    assert row["held"] == ("pipeline" if pipeline == "held" else "") and row["attempts"] == (pipeline != "held")


@pytest.mark.parametrize("name", ENDS)
def test_a_destination(night, name):
    rows = [row for row in deliveries(night.d) if row["destination"] == name]
    assert [(row["state"], row["code"], row["attempts"]) for row in rows] == len(NEIGHBOURS) * [
        (*ENDS[name], name != "HELD")]
    assert {row["held"] for row in rows} == {"destination" if name == "HELD" else ""}


@pytest.mark.parametrize("name", CALLERS)
def test_a_caller(night, name):
    words, code = CALLERS[name]
    log_lines = night.log_lines("connection.refused", "association.rejected", "association.closed")
    assert not words or len([line for line in log_lines if words in line]) == 1
    assert not code or len(night.d.query("SELECT * FROM v_quarantine WHERE code = ?", code)) == 1


def test_a_client(night):
    (line,) = night.log_lines("control.broken", "control.refused")
    assert "Bad message" in line, "the noise; who leaves is no news"


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_good_neighbour(night, name):
    (row,) = night.d.query("SELECT * FROM v_series WHERE series_uid = ?", night.uids[name])
    assert (row["state"], row["code"], row["revision"], row["quarantined"]) == ("SETTLED", "", 1, 0)
    (job,) = [job for job in night.d.jobs() if (job["series_uid"], job["pipeline"]) == (night.uids[name], "good")]
    assert (job["state"], job["code"], job["attempts"]) == ("DONE", "", 1)
    for destination in GOOD_ENDS:
        (end,) = [end for end in deliveries(night.d) if (end["job"], end["destination"]) == (job["job"], destination)]
        assert (end["state"], end["code"], end["attempts"]) == ("SENT", "", 1)
        arrived = [path for path in objects(night.folder / {"OUT": "out", "PACS": "archive"}[destination])
                   if pydicom.dcmread(path).SOPInstanceUID == end["sop_instance_uid"]]
        assert len(arrived) == 1, "once"


def test_only_faulty_items_have_errors(night):
    assert night.quarantined() == QUARANTINED
    assert len(night.d.query("SELECT * FROM v_series")) == len(NEIGHBOURS) + len(SERIES)
    assert len(night.d.jobs()) == len(NEIGHBOURS) + len(JOBS)
    assert len(deliveries(night.d)) == len(NEIGHBOURS) * len({*ENDS, *GOOD_ENDS})
    assert len(objects(night.folder / "out")) == len(objects(night.folder / "archive")) == len(NEIGHBOURS)
    assert not re.search("level=error|event=role.call_unknown", night.d.log.read_text())


def test_no_child_was_restarted(night):
    """The children are those of the start, and one sender per destination with a delivery."""
    intake, worker = night.children
    assert [intake, worker] == [*night.d.children("intake"), *night.d.children("worker")]
    assert len(night.d.children("courier")) == len({*GOOD_ENDS, *ENDS} - {"HELD"})
    assert [line for line in night.log_lines("child.gone", "child.kill") if "child=probe" not in line] == []
    assert not night.d.query("SELECT * FROM v_events WHERE kind LIKE '%_DIED'")
    assert night.d.ctl("ping").returncode == 0
