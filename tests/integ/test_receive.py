"""Reception by C-STORE: the real noctuled, DCMTK's senders, and a hostile client."""

import concurrent.futures
import contextlib
import json
import os
import random
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pydicom
import pytest
from conftest import PEERS, Clock, Daemon, drop, echoscu, phantom, small_file_system, storescu, wait_for
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.filebase import DicomBytesIO
from pydicom.filewriter import write_dataset
from pynetdicom import AE
from pynetdicom.sop_class import CTImageStorage, Verification
from upper_layer import (ABORTED, ACCEPTED, CT, EXPLICIT, REJECTED, ENHANCED_XA, Peer, associate_request,
                         associated, data_pdu, data_pdus, pdu, status_in, store_command)

SERIES = "1.2.826.0.1.3680043.8.498.9"
BUSY, UNKNOWN_CALLER, UNKNOWN_TITLE = b"\0\2\3\2", b"\0\1\1\3", b"\0\1\1\7"
OUT_OF_RESOURCES, MISMATCH, NOT_UNDERSTOOD, DUPLICATE = 0xA700, 0xA900, 0xC000, 0x0111


def uid(number, series=SERIES):
    return f"{series}.{1000 + number}"


def ct(number=1, series=SERIES, size=32, **changes):
    """Returns a CT slice. Equal arguments give equal slices."""
    dataset = Dataset()
    dataset.SOPClassUID = CT
    dataset.SOPInstanceUID = uid(number, SERIES)
    dataset.StudyInstanceUID = "1.2.826.0.1.3680043.8.498.1"
    dataset.SeriesInstanceUID = series
    dataset.FrameOfReferenceUID = "1.2.826.0.1.3680043.8.498.2"
    dataset.Modality = "CT"
    dataset.PatientName = "Nobody^At All"
    dataset.PatientID = "none"
    dataset.InstanceNumber = str(number)
    dataset.ImagePositionPatient = [0, 0, 2.0 * number]
    dataset.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    dataset.PixelSpacing = [1, 1]
    dataset.Rows = dataset.Columns = size
    dataset.BitsAllocated = dataset.BitsStored = 16
    dataset.HighBit = 15
    dataset.PixelRepresentation = 1
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.RescaleSlope = 1
    dataset.RescaleIntercept = 0
    dataset.PixelData = random.Random(number).randbytes(2 * size * size)
    for key, value in changes.items():
        if value is None:
            delattr(dataset, key)
        else:
            setattr(dataset, key, value)
    return dataset


def encoded(dataset):
    out = DicomBytesIO()
    out.is_little_endian, out.is_implicit_VR = True, False
    with pydicom.config.disable_value_validation():
        write_dataset(out, dataset)
    return out.getvalue()


def slice_bytes(number=1, **changes):
    return encoded(ct(number, **changes))


def write(dataset, path):
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.file_meta.TransferSyntaxUID = EXPLICIT
    dataset.save_as(path, enforce_file_format=True)
    return path


def stored(d):
    """Returns the rows of the daemon: SOP Instance UID to file."""
    return {row["sop_instance_uid"]: d.root / row["path"]
            for row in d.query("SELECT sop_instance_uid, path FROM instance")}


def data_set_of(path):
    """Returns the unchanged bytes of the data set in a Part 10 file."""
    with open(path, "rb") as file:
        file.seek(132)
        meta = pydicom.filereader.read_file_meta_info(path)
        return path.read_bytes()[132 + 12 + meta.FileMetaInformationGroupLength:]


def reasons(d):
    return [json.loads(path.read_text()) for path in sorted((d.root / "quarantine").rglob("*.reason.json"))]


def parts(d):
    return list((d.root / "incoming").iterdir())


def assert_serves(d):
    """Checks that violations of one caller have no effect on others."""
    echoscu(d.port)
    assert len(d.children("intake")) == 1


@pytest.fixture
def receiver(daemon):
    """A daemon that listens and has no rule for jobs."""
    def make(dicom=PEERS, **options):
        return daemon(dicom=dicom, quiet=600.0, **options).start()
    return make


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A daemon that listens, shared by tests of hostile bytes."""
    d = Daemon(tmp_path_factory.mktemp("shared"), quiet=600.0,
               dicom="acse_seconds = 60.0; dimse_seconds = 60.0; idle_seconds = 60.0; " + PEERS)
    try:
        yield d.start()
    finally:
        d.kill_all()
    assert "event=role.call_unknown" not in d.log.read_text(errors="replace")


@pytest.fixture
def survivor(shared):
    """The shared daemon. Its receiver must survive the test and serve others afterwards."""
    intake = shared.children("intake")
    yield shared
    assert_serves(shared)
    assert shared.children("intake") == intake


# ---- accepted ----


def test_echo(receiver):
    d = receiver()
    assert "Received Echo Response (Success)" in echoscu(d.port).stderr
    d.wait_log("association.opened calling=ECHOSCU called=NOCTULE host=127.0.0.1")


@pytest.mark.parametrize("sender", ["storescu", "dcmsend"])
def test_a_series_is_stored_as_sent(receiver, tmp_path, sender):
    d = receiver()
    files = phantom(tmp_path / "series", "--size", "64x48x10")
    if sender == "storescu":
        storescu(d.port, *files)
    else:
        subprocess.run(["dcmsend", "-aet", "DCMSEND", "-aec", "NOCTULE", "127.0.0.1", str(d.port), *files],
                       check=True, capture_output=True)
    on_record = stored(d)  # without a wait, because they have been acknowledged
    assert len(on_record) == 10 and not parts(d)
    for path in files:
        original = pydicom.dcmread(path)
        assert pydicom.dcmread(on_record[original.SOPInstanceUID]) == original
    d.wait_log("instances=10 refused=0")
    assert "Phantom" not in d.log.read_text()


def test_a_received_series_gives_a_result(daemon, tmp_path):
    d = daemon(dicom=PEERS, quiet=60.0).start()
    storescu(d.port, *phantom(tmp_path / "series", "--size", "64x64x12"))
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    (row,) = d.query("SELECT * FROM v_series")
    assert (row["called_ae"], row["sender"]) == ("NOCTULE", "STORESCU")


def test_pynetdicom_sends_instances_and_an_echo(receiver):
    d = receiver()
    client = AE(ae_title="PYNETDICOM")
    client.add_requested_context(CTImageStorage, [EXPLICIT, "1.2.840.10008.1.2"])
    client.add_requested_context(Verification)
    association = client.associate("127.0.0.1", d.port, ae_title="NOCTULE")
    assert association.is_established
    for number in range(3):
        dataset = ct(number)
        write(dataset, d.folder / "sent.dcm")
        assert association.send_c_store(dataset).Status == 0
    assert association.send_c_echo().Status == 0
    association.release()
    assert sorted(stored(d)) == [uid(0), uid(1), uid(2)]


def test_data_set_is_not_touched(receiver):
    d = receiver()
    data = slice_bytes(1)
    with associated(d.port) as peer:
        assert peer.store(data, uid(1), piece=1000) == 0
    assert data_set_of(stored(d)[uid(1)]) == data


# ---- access ----


@pytest.mark.parametrize("calling,called,answer", [
    ("STRANGER", "NOCTULE", UNKNOWN_CALLER),
    ("stORESCU", "NOCTULE", UNKNOWN_CALLER),
    ("STORESCU", "ANY-SCP", UNKNOWN_TITLE),
    ("ELSEWHERE", "NOCTULE", UNKNOWN_CALLER),
    ("HERE", "HEADS", None),
])
def test_admission(receiver, calling, called, answer):
    d = receiver('titles = ( { ae_title = "NOCTULE"; }, { ae_title = "HEADS"; } ); '
                 'peers = ( { ae_title = "STORESCU"; }, { ae_title = "ELSEWHERE"; host = "10.1.2.3"; }, '
                 '{ ae_title = "HERE"; host = "127.0.0.1"; }, { ae_title = "ECHOSCU"; } );')
    peer = Peer(d.port)
    kind, body = peer.associate(calling=calling, called=called)
    if answer:
        assert (kind, body) == (REJECTED, answer)
        assert peer.ended()
        d.wait_log("association.rejected")
    else:
        assert kind == ACCEPTED
    assert_serves(d)


def test_echo_from_anybody_permits_only_echo(receiver, tmp_path):
    d = receiver(f"echo_from_anybody = true; {PEERS}")
    echoscu(d.port, calling="STRANGER")
    result = storescu(d.port, write(ct(), tmp_path / "a.dcm"), calling="STRANGER", check=False)
    assert result.returncode != 0 and not stored(d)


def test_limits_are_transient(receiver):
    d = receiver('max_associations = 3; peers = ( { ae_title = "ONE"; max_associations = 1; }, '
                 '{ ae_title = "PYNETDICOM"; }, { ae_title = "ECHOSCU"; } );')
    with contextlib.ExitStack() as open_ones:
        one = open_ones.enter_context(associated(d.port, calling="ONE"))
        second = Peer(d.port)
        assert second.associate(calling="ONE") == (REJECTED, BUSY)
        assert second.ended()
        for _ in range(2):
            wait_for(lambda: open_unless_busy(d.port, open_ones), 60, "the limit's last place")
        fourth = Peer(d.port)
        assert fourth.associate() == (REJECTED, BUSY)
        assert fourth.ended()
        assert one.release() == 6
        one.close()
        wait_for(lambda: open_unless_busy(d.port, open_ones, calling="ONE"), 60, "the place set free")
    wait_for(lambda: echoscu(d.port, check=False).returncode == 0, 60, "an end of the rush")


def open_unless_busy(port, stack, **options):
    peer = stack.enter_context(contextlib.closing(Peer(port)))
    kind, body = peer.associate(**options)
    assert (kind, body) == (REJECTED, BUSY) or kind == ACCEPTED
    return kind == ACCEPTED


def test_unacceptable_contexts(receiver):
    d = receiver()
    with associated(d.port, contexts=((ENHANCED_XA, EXPLICIT), (CT, EXPLICIT), (CT, "1.2.3"))) as peer:
        assert peer.store(slice_bytes(1), uid(1), context=3) == 0
        peer.begin_store(uid(2), ENHANCED_XA, context=1)
        assert peer.ended()
    assert list(stored(d)) == [uid(1)]
    assert_serves(d)


# ---- bad input ----

GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "zeros": bytes(100),
    "noise": random.Random(1).randbytes(4096),
    "huge length": b"\1\0\xff\xff\xff\xff" + bytes(1000),
    "short length": b"\1\0\0\0\0\4" + bytes(4),
    "length over the limit": b"\1\0\0\1\0\0" + bytes(1000),
    "tls on the plain port": b"\x16\3\1\2\0\1\0\1\xfc\3\3" + bytes(600),
    "no association": data_pdu(1, 3, store_command(CT, "1.2.3")),
    "an empty request": pdu(1, bytes(68)),
    "a request of noise": pdu(1, random.Random(2).randbytes(3000)),
    "items that overrun": pdu(1, associate_request()[6:74] + b"\x20\0\xff\xff" + bytes(20)),
    "no contexts": associate_request(contexts=()),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_rejected(survivor, name):
    peer = Peer(survivor.port)
    with contextlib.suppress(ConnectionError):
        peer.send(GARBAGE[name])
        peer.socket.shutdown(socket.SHUT_WR)
    assert peer.ended()


@pytest.mark.parametrize("after", [
    b"\4\0\xff\xff\xff\xff" + bytes(100),                                  # a PDU of 4 GiB
    pdu(4, struct.pack(">IBB", 100000, 1, 2) + b"short"),                  # a PDV longer than its PDU
    pdu(4, struct.pack(">IBB", 0, 1, 2)),                                  # one shorter than its header
    data_pdu(99, 3, store_command(CT, "1.2.3")),                           # a context that was not negotiated
    data_pdu(1, 2, b"a data set before its command"),
    data_pdu(1, 3, random.Random(3).randbytes(500)),                       # random bytes as a command
    data_pdu(1, 3, store_command(CT, "1.2.3")) + data_pdu(1, 3, store_command(CT, "1.2.3")),
    pdu(0x42, bytes(10)),
    associate_request(),                                                   # a second request
], ids=["PDU of 4 GiB", "long PDV", "short PDV", "other context", "data before command", "noise", "two commands",
        "unknown PDU", "second request"])
def test_violations_end_the_association(survivor, after):
    d = survivor
    before = set(stored(d))
    with associated(d.port) as good:
        assert good.store(slice_bytes(1), uid(1)) == 0
        with contextlib.suppress(ConnectionError):
            good.send(after)
            good.socket.shutdown(socket.SHUT_WR)
        assert good.ended()
    assert set(stored(d)) == before | {uid(1)}
    wait_for(lambda: not parts(d), 60, "an empty incoming/")


def still_open(peers):
    """Returns the number of these connections that are still open."""
    return len(peers) - len(select.select([peer.socket for peer in peers], [], [], 0)[0])


def test_silent_connections_are_closed_and_delay_no_caller(receiver, tmp_path):
    def silent_ones(d):
        peers = [Peer(d.port) for _ in range(20)]
        for i, peer in enumerate(peers):
            peer.send(associate_request()[:3 * (i % 8)])
        return peers

    d = receiver("acse_seconds = 3600.0; " + PEERS)
    silent = silent_ones(d)
    storescu(d.port, *(write(ct(i), tmp_path / f"{i}.dcm") for i in range(3)))
    assert len(stored(d)) == 3
    assert still_open(silent) == 20, "nobody was waited for"
    clock = Clock(tmp_path)
    d = receiver("acse_seconds = 40.0; " + PEERS, environment=clock.environment)
    silent = silent_ones(d)
    echoscu(d.port)  # accepted after them
    clock.pass_time(20)
    echoscu(d.port)
    assert still_open(silent) == 20, "each has its time"
    wait_for(lambda: clock.pass_time(1) or still_open(silent) == 0, 60, "the end of all")
    for peer in silent:
        assert peer.ended()
    d.wait_log("reason=silent", 20)


def test_stalled_associations_are_ended(receiver, tmp_path):
    clock = Clock(tmp_path)
    d = receiver("dimse_seconds = 20.0; idle_seconds = 40.0; " + PEERS, environment=clock.environment)
    with associated(d.port) as idle, associated(d.port) as stuck, associated(d.port) as half:
        assert stuck.store(slice_bytes(1), uid(1)) == 0
        stuck.begin_store(uid(2))
        stuck.send(data_pdu(1, 0, slice_bytes(2)[:500]))
        half.send(data_pdu(1, 3, store_command(CT, "1.2.3"))[:20])
        wait_for(lambda: parts(d), 60, "the file in incoming/")
        wait_for(lambda: clock.pass_time(1) or still_open([stuck, half]) == 0, 60, "the end of those within a message")
        assert stuck.ended() and half.ended()
        wait_for(lambda: clock.pass_time(1) or still_open([idle]) == 0, 60, "the end of the idle one")
        assert idle.ended()
    wait_for(lambda: not parts(d), 60, "an empty incoming/")
    assert list(stored(d)) == [uid(1)]


@pytest.mark.parametrize("how", ["abort", "reset", "close"])
def test_abort_inside_a_data_set(receiver, how):
    d = receiver()
    with associated(d.port) as peer:
        assert peer.store(slice_bytes(1), uid(1)) == 0
        peer.begin_store(uid(2))
        peer.send(data_pdu(1, 0, slice_bytes(2, size=256)[:60000]))
        wait_for(lambda: parts(d), 60, "the file in incoming/")
        if how == "abort":
            peer.send(pdu(ABORTED, bytes(4)))
        elif how == "reset":
            peer.reset()
        else:
            peer.close()
        wait_for(lambda: not parts(d), 60, "an empty incoming/")
    assert list(stored(d)) == [uid(1)]
    assert [p.name for p in (d.root / "series").rglob("*.dcm")] == [f"{uid(1)}.dcm"]
    assert_serves(d)


def test_500_connections_at_once(receiver):
    d = receiver('max_associations = 20; acse_seconds = 60.0; peers = ( { ae_title = "PYNETDICOM"; max_associations = 20; }, '
                 '{ ae_title = "ECHOSCU"; } );')
    peers = [Peer(d.port) for _ in range(500)]
    for peer in peers:
        with contextlib.suppress(ConnectionError):
            peer.send(associate_request())
    answers = []
    for peer in peers:
        try:
            answers.append(peer.answer())
        except (EOFError, ConnectionError):
            answers.append(None)
    accepted = [peer for peer, answer in zip(peers, answers) if answer and answer[0] == ACCEPTED]
    assert len(accepted) >= 20
    assert all(a is None or a[0] == ACCEPTED or a == (REJECTED, BUSY) for a in answers)
    for i, peer in enumerate(accepted[:20]):
        assert peer.store(slice_bytes(i), uid(i)) == 0
    for peer in peers:
        peer.close()
    wait_for(lambda: echoscu(d.port, check=False).returncode == 0, 60, "an end of the rush")
    assert len(stored(d)) == 20
    assert_serves(d)


def test_a_flooding_host_displaces_only_its_own_connections(receiver):
    d = receiver()
    request = associate_request()
    early = Peer(d.port)
    early.send(request[:20])
    flood = [Peer(d.port, host="127.0.0.2") for _ in range(300)]
    assert all(peer.ended() for peer in flood[:300 - 128])
    early.send(request[20:])
    assert early.answer()[0] == ACCEPTED
    assert early.store(slice_bytes(1), uid(1)) == 0
    for peer in [early, *flood]:
        peer.close()


BAD_DATA_SETS = {
    "no SOP Instance UID": (dict(SOPInstanceUID=None), MISMATCH, "TAG_MISSING"),
    "no series": (dict(SeriesInstanceUID=None), MISMATCH, "TAG_MISSING"),
    "another instance": (dict(SOPInstanceUID=uid(7)), MISMATCH, "COMMAND_MISMATCH"),
    "another class": (dict(SOPClassUID="1.2.840.10008.5.1.4.1.1.4", Modality="MR"), MISMATCH, "COMMAND_MISMATCH"),
    "an unsupported class": (dict(SOPClassUID=ENHANCED_XA), MISMATCH, "SOP_CLASS_UNSUPPORTED"),
    "a path for a series": (dict(SeriesInstanceUID="../../etc"), MISMATCH, "UID_INVALID"),
    "dots for a series": (dict(SeriesInstanceUID=".."), MISMATCH, "UID_INVALID"),
    "colour": (dict(SamplesPerPixel=3), NOT_UNDERSTOOD, "PIXELS_UNSUPPORTED"),
    "pixels missing": (dict(PixelData=b"\0\0"), NOT_UNDERSTOOD, "FILE_TRUNCATED"),
}


@pytest.mark.parametrize("name", BAD_DATA_SETS)
def test_bad_data_sets_are_refused_and_kept(survivor, name):
    changes, status, code = BAD_DATA_SETS[name]
    d, number = survivor, 100 + 2 * list(BAD_DATA_SETS).index(name)
    before, reasons_before = set(stored(d)), reasons(d)
    with pydicom.config.disable_value_validation():
        bad = slice_bytes(number, **changes)
    with associated(d.port) as peer:
        for _ in range(2):  # a resent equal instance does not fill the quarantine
            assert peer.store(bad, uid(number)) == status
        assert peer.store(slice_bytes(number + 1), uid(number + 1)) == 0
    assert set(stored(d)) - before == {uid(number + 1)}
    (reason,) = [each for each in reasons(d) if each not in reasons_before]
    assert reason["code"] == code
    assert reason["original_path"] == f"scu:PYNETDICOM/{uid(number)}"
    assert not parts(d)
    assert not [p for p in d.root.rglob("*") if "etc" in p.name]


@pytest.mark.parametrize("instance", ["../../../etc/passwd", "1.2/../../x", "1.2.3\\4", "a b", "9" * 65, ""])
def test_bad_uids_in_the_command(survivor, instance):
    d = survivor
    before, stored_before = {p for p in d.folder.rglob("*")}, stored(d)
    with associated(d.port) as peer:
        peer.begin_store(instance)
        with contextlib.suppress(ConnectionError):
            peer.send(data_pdu(1, 2, slice_bytes(1)))
        try:
            kind, body = peer.answer()
        except (EOFError, ConnectionError):
            kind = ABORTED
        assert kind == ABORTED or status_in(body) not in (0, None)
    assert stored(d) == stored_before
    assert not [p for p in {p for p in d.folder.rglob("*")} - before if p.suffix == ".dcm"]


def test_data_set_of_noise(receiver):
    d = receiver()
    with associated(d.port) as peer:
        assert peer.store(random.Random(4).randbytes(50000), uid(1)) in (MISMATCH, NOT_UNDERSTOOD)
        assert peer.store(slice_bytes(2), uid(2)) == 0
    assert list(stored(d)) == [uid(2)]
    assert len(reasons(d)) == 1


# ---- duplicates ----


def test_duplicates(receiver):
    d = receiver()
    first, other = slice_bytes(1), slice_bytes(1, SeriesDescription="Other bytes")
    with associated(d.port) as peer:
        assert peer.store(first, uid(1)) == 0
        path = stored(d)[uid(1)]
        before = path.stat()
        assert peer.store(first, uid(1)) == 0
        assert path.stat().st_ino == before.st_ino and path.stat().st_mtime_ns == before.st_mtime_ns
        for _ in range(2):
            assert peer.store(other, uid(1)) == DUPLICATE
    assert data_set_of(path) == first
    (kept,) = [p for p in (d.root / "quarantine").rglob("*") if p.is_file() and p.suffix != ".json"]
    assert data_set_of(kept) == other
    (reason,) = reasons(d)
    assert (reason["code"], reason["series_uid"]) == ("DUPLICATE_UID_DIFFERENT", SERIES)
    (row,) = d.query("SELECT * FROM v_series")
    assert row["instances"] == 1 and row["duplicate_conflicts"] == 1


@pytest.mark.parametrize("first", ["inbox", "storescu"])
def test_one_image_by_two_ways_is_one_instance(receiver, tmp_path, first):
    """An enhanced image. Each way writes file meta information, lengths of sequences and VRs differently."""
    d = receiver(after="delete")
    files = phantom(tmp_path / "classic", "--size", "32x32x3")
    files += phantom(tmp_path / "enhanced", "--series", "siemens-xa")

    def by_inbox():
        for path in files:
            drop([path], d.inbox / path.parent.name)
        wait_for(lambda: not list(d.inbox.rglob("*.dcm")), 60, "the empty inbox")

    def by_network(*options, calling="STORESCU"):
        storescu(d.port, *files, options=options, calling=calling)

    ways = [by_inbox, by_network]
    ways[first == "storescu"]()
    before = {path: path.read_bytes() for path in stored(d).values()}
    ways[first == "inbox"]()
    by_network("-xi", calling="DCMSEND")  # implicit VR
    ways[first == "storescu"]()
    assert {path: path.read_bytes() for path in stored(d).values()} == before and len(before) == len(files)
    assert not d.query("SELECT * FROM v_quarantine")
    assert {row["revision"] for row in d.query("SELECT * FROM v_series")} == {1}


NEWEST = """peers = ( { ae_title = "STORESCU"; resent = "newest"; }, { ae_title = "DCMSEND"; } );"""


def corrected(path, folder, **changes):
    """Returns the image with another header, under the same UIDs."""
    folder.mkdir(parents=True, exist_ok=True)
    dataset = pydicom.dcmread(path)
    for keyword, value in changes.items():
        setattr(dataset, keyword, value)
    dataset.save_as(folder / path.name)
    return folder / path.name


def newest_inbox(d):
    d.config.write_text(d.config.read_text().replace('after = "delete";', 'after = "delete"; resent = "newest";'))


def is_stored(d, files):
    """Returns whether the rows, and the files of series/, match these files exactly."""
    on_record = {}
    for uid, path in stored(d).items():
        with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
            on_record[uid] = pydicom.dcmread(path)
    there = [path for path in (d.root / "series").rglob("*") if path.is_file()]
    expected = {dataset.SOPInstanceUID: dataset for dataset in map(pydicom.dcmread, files)}
    return on_record == expected and len(there) == len(files)


@pytest.mark.parametrize("first", ["inbox", "storescu"])
def test_a_corrected_header_takes_the_place_of_the_first(daemon, tmp_path, first):
    """By inbox and by C-STORE: the series gets a new revision, and its results are of the corrected images."""
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    better = [corrected(path, tmp_path / "better", PatientID="RIGHT", SeriesDescription="Corrected") for path in files]
    d = daemon(dicom=NEWEST, after="delete", quiet=60.0)
    newest_inbox(d)
    d.start()

    def send(paths, way):
        if way == "inbox":
            drop(paths, d.inbox)
        else:
            storescu(d.port, *paths)

    send(files, first)
    d.wait_jobs()
    send(better, "storescu" if first == "inbox" else "inbox")
    wait_for(lambda: is_stored(d, better), 60, "the corrected files")
    d.wait_jobs(2)
    rows = {row["revision"]: row for row in d.query("SELECT * FROM v_jobs")}
    last = max(rows)
    assert len(rows) == 2 and rows[last]["state"] == "DONE" and rows[last]["series_description"] == "Corrected"
    assert pydicom.dcmread(d.root / rows[last]["result_path"]).PatientID == "RIGHT"
    assert {row["replaced"] for row in d.query("SELECT replaced FROM v_instances")} == {1}
    assert len(d.query("SELECT * FROM v_events WHERE kind = 'INSTANCE_REPLACED'")) == len(files)
    assert not d.query("SELECT * FROM v_quarantine")
    # The refusal must name the remedy.
    assert "0x0111" in storescu(d.port, files[0], calling="DCMSEND", options=["-d"], check=False).stderr.lower()
    (row,) = wait_for(lambda: d.query("SELECT * FROM v_quarantine"), 60, "the quarantine")
    assert row["code"] == "DUPLICATE_UID_DIFFERENT" and 'resent = "newest" for this peer' in row["message"]
    assert is_stored(d, better)


@pytest.mark.parametrize("point", [
    "receive_after_rename_before_arrived", "receive_after_arrived_before_seal", "receive_after_stored_before_answer",
    "daemon_before_commit", "daemon_after_commit_before_reply", "intake_after_rename_before_arrived",
    "intake_after_stored_before_original"])
def test_killed_while_an_instance_is_replaced(daemon, tmp_path, point):
    """Until the row is committed, the first file exists, and afterwards the second. They never coexist permanently,
    and one always exists."""
    files = phantom(tmp_path / "series", "--size", "32x32x3")
    better = [corrected(path, tmp_path / "better", PatientID="RIGHT") for path in files]
    by_inbox = point.startswith("intake")
    d = daemon(dicom=NEWEST, after="delete", quiet=600.0)
    newest_inbox(d)
    d.start()
    storescu(d.port, *files)
    d.stop()
    once = tmp_path / "crashed"
    once.touch()
    d.environment.update(NOCTULE_CRASH_AT=point, NOCTULE_CRASH_ONCE=str(once))
    d.start()
    once.unlink()
    if by_inbox:
        drop(better, d.inbox)
    else:
        storescu(d.port, *better, check=False)
    wait_for(once.exists, 60, "the crash")
    if point.startswith("daemon"):
        d.process.wait(60)
        d.start()
    wait_for(lambda: by_inbox or storescu(d.port, *better, check=False).returncode == 0, 60, "a good sender")
    wait_for(lambda: is_stored(d, better), 60, "the corrected files")
    assert len(d.query("SELECT * FROM v_events WHERE kind = 'INSTANCE_REPLACED'")) == len(files), "once each"
    assert not d.query("SELECT * FROM v_quarantine") and not parts(d)


def test_one_uid_in_two_series_is_two_instances(receiver):
    d = receiver()
    with associated(d.port) as peer:
        for series in (SERIES, SERIES + ".1"):
            assert peer.store(slice_bytes(1, series=series), uid(1)) == 0
    assert len(d.query("SELECT * FROM instance")) == 2
    assert len(list((d.root / "series").rglob("*.dcm"))) == 2


def test_the_same_instance_on_many_associations(receiver):
    d = receiver()
    data = slice_bytes(1, size=256)

    def send(_):
        with associated(d.port) as peer:
            return peer.store(data, uid(1))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(send, range(16))) == {0}
    assert list(stored(d)) == [uid(1)] and not reasons(d) and not parts(d)


# ---- failures of the service ----


def test_a_full_disk_is_a_transient_error(daemon, tmp_path):
    d = daemon(dicom=PEERS, quiet=600.0)
    with small_file_system(tmp_path / "small", 24) as small:
        d.config.write_text(d.config.read_text().replace(f'root = "{d.root}"', f'root = "{small}"'))
        d.root = small
        (small / "inbox").mkdir()
        d.start()
        ballast = small / "ballast"
        with associated(d.port) as peer:
            assert peer.store(slice_bytes(1), uid(1)) == 0
            ballast.write_bytes(bytes(shutil.disk_usage(small).free - 2 * 1024 * 1024))
            # above the low-water mark of 1 MiB at its start, and no room for its end
            assert peer.store(slice_bytes(2, size=1536), uid(2)) == OUT_OF_RESOURCES
            ballast.write_bytes(bytes(ballast.stat().st_size + shutil.disk_usage(small).free - 512 * 1024))
            assert peer.store(slice_bytes(3), uid(3)) == OUT_OF_RESOURCES
            assert not parts(d)
            ballast.unlink()
            wait_for(lambda: peer.store(slice_bytes(3), uid(3)) == 0, 60, "recovery")
            # the file system frees the blocks of the ballast a little later
            wait_for(lambda: peer.store(slice_bytes(2, size=1536), uid(2)) == 0, 60, "recovery for a large instance")
        assert sorted(stored(d)) == [uid(1), uid(2), uid(3)]
        d.kill_all()


POINTS = ["receive_after_rename_before_arrived", "receive_after_arrived_before_seal",
          "receive_after_stored_before_answer", "intake_after_copy_before_rename", "intake_after_arrived",
          "daemon_before_commit", "daemon_after_commit_before_reply"]


def send_until_acknowledged(d, numbers, deadline):
    """Sends each file until it is acknowledged, despite all errors. Returns the acknowledged files in order."""
    acknowledged, waiting = [], list(numbers)
    while waiting and time.monotonic() < deadline:
        try:
            with associated(d.port) as peer:
                while waiting and peer.store(slice_bytes(waiting[0], size=64), uid(waiting[0])) == 0:
                    acknowledged.append(waiting.pop(0))
        except (OSError, EOFError, AssertionError):
            pass
        time.sleep(0.02)
    assert not waiting, f"{len(waiting)} were not acknowledged in time"
    return acknowledged


def assert_all_there(d, numbers):
    on_record = stored(d)
    for number in numbers:
        assert data_set_of(on_record[uid(number)]) == slice_bytes(number, size=64)
    assert not reasons(d)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at(daemon, tmp_path, point):
    once = tmp_path / "crashed"
    d = daemon(dicom=PEERS, quiet=600.0,
               environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    with contextlib.suppress(AssertionError):
        d.start()
    if point.startswith("daemon") and once.exists():
        d.process.wait(60)
        d.start()

    def revive():
        while not stop.wait(0.05):
            if d.process.poll() is not None:
                d.start()

    stop = threading.Event()
    keeper = threading.Thread(target=revive)
    keeper.start()
    try:
        send_until_acknowledged(d, range(8), time.monotonic() + 60)
    finally:
        stop.set()
        keeper.join()
    assert once.exists()
    assert_all_there(d, range(8))
    wait_for(lambda: not parts(d), 60, "an empty incoming/")


@pytest.mark.parametrize("judged", [False, True])
def test_a_file_lost_before_its_response_is_restored_by_a_resend(daemon, tmp_path, judged):
    """The row is on disk and the file name is not. The daemon reports this, and the resent instance repairs it."""
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    once = tmp_path / "crashed"
    d = daemon(dicom=PEERS, quiet=600.0)
    timers = d.config.read_text()
    d.config.write_text(timers.replace("complete_seconds = 0.3", "complete_seconds = 600.0"))
    d.start()
    storescu(d.port, *files[1:])
    d.stop()
    d.environment.update(NOCTULE_CRASH_AT="receive_after_stored_before_answer", NOCTULE_CRASH_ONCE=str(once))
    d.start()
    before = set((d.root / "series").rglob("*.dcm"))
    assert storescu(d.port, files[0], check=False).returncode != 0
    d.kill_all()
    (lost,) = set((d.root / "series").rglob("*.dcm")) - before
    lost.unlink()
    if judged:
        d.config.write_text(timers)
    d.start()
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE missing_files = 1"), 60, "the report")
    if judged:
        wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")
    storescu(d.port, files[0])
    if not judged:
        d.ctl("complete", pydicom.dcmread(files[0]).SeriesInstanceUID)
    (job,) = d.wait_jobs(seconds=30)
    assert job["state"] == "DONE", job["message"]
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["instances"], series["missing_files"], series["revision"]) == (6, 0, 2 if judged else 1)
    assert d.query("SELECT planes FROM stack WHERE accepted")[-1]["planes"] == 6


def test_random_receiver_kills_under_load(receiver, tmp_path):
    clock = Clock(tmp_path)
    d = receiver(environment=clock.environment)
    chance = random.Random(5)
    deadline = time.monotonic() + 300
    groups = [range(i * 100, i * 100 + 40) for i in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        senders = [pool.submit(send_until_acknowledged, d, group, deadline) for group in groups]
        kills = 0
        while not all(sender.done() for sender in senders):
            time.sleep(chance.uniform(0.05, 0.4) if kills < 10 else 0.05)
            intakes = d.children("intake")
            if not intakes:
                clock.pass_time(1)  # the daemon waits longer after each death, up to 30 s
            for pid in intakes if kills < 10 else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
        acknowledged = [number for sender in senders for number in sender.result()]
    assert len(acknowledged) == 160 and kills > 0
    assert_all_there(d, acknowledged)


def test_drain_finishes_current_associations(receiver):
    d = receiver()
    data = slice_bytes(1, size=256)
    with associated(d.port) as peer, associated(d.port) as idle:
        peer.begin_store(uid(1))
        peer.send(data_pdu(1, 0, data[:50000]))
        wait_for(lambda: parts(d), 60, "the file in incoming/")
        d.process.send_signal(signal.SIGTERM)
        assert idle.ended()
        peer.send(data_pdu(1, 0, data[50000:100000]) + data_pdu(1, 2, data[100000:]))
        assert peer.status() == 0
        assert peer.ended()
    d.process.wait(60)
    assert d.process.returncode == 0
    assert data_set_of(stored(d)[uid(1)]) == data


def test_reload_is_for_new_associations(receiver):
    d = receiver()
    with associated(d.port) as old:
        d.config.write_text(d.config.read_text().replace('"PYNETDICOM"', '"SOMEBODY"'))
        d.process.send_signal(signal.SIGHUP)

        def is_rejected():
            with contextlib.closing(Peer(d.port)) as peer:
                return peer.associate() == (REJECTED, UNKNOWN_CALLER)

        wait_for(is_rejected, 60, "the new configuration")
        assert old.store(slice_bytes(1), uid(1)) == 0
        with associated(d.port, calling="SOMEBODY") as new:
            assert new.store(slice_bytes(2), uid(2)) == 0
    assert d.log.read_text().count("listener.open") == 1, "the port was closed meanwhile"


# ---- TLS ----


def test_tls(receiver, certificates, tmp_path):
    d = receiver(certificates=certificates)
    path = write(ct(1), tmp_path / "a.dcm")
    storescu(d.tls_port, path, options=certificates.dcmtk("client"))
    assert list(stored(d)) == [uid(1)]
    for options in (certificates.dcmtk("stranger"), ["+tla", "-ic"], []):
        assert echoscu(d.tls_port, options=options, check=False).returncode != 0
    assert echoscu(d.port, options=certificates.dcmtk("client"), check=False).returncode != 0
    echoscu(d.tls_port, options=certificates.dcmtk("client"))
    d.wait_log("TLS_HANDSHAKE_FAILED")
    assert_serves(d)


def test_a_tls_certificate_is_required(receiver, certificates):
    d = receiver(f'peers = ( {{ ae_title = "ECHOSCU"; certificate = "{certificates.fingerprint("client")}"; }}, '
                 f'{{ ae_title = "STORESCU"; certificate = "{certificates.fingerprint("server")}"; }} );',
                 certificates=certificates)
    echoscu(d.tls_port, options=certificates.dcmtk("client"))
    for port, calling, options in [(d.tls_port, "STORESCU", certificates.dcmtk("client")), (d.port, "ECHOSCU", [])]:
        result = echoscu(port, calling=calling, options=options, check=False)
        assert result.returncode != 0 and "Calling AE Title Not Recognized" in result.stderr


def client_hello():
    sent = ssl.MemoryBIO()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def test_tls_with_a_revoked_authority(receiver, certificates):
    """The certificate of the caller is valid, but that of its issuer is revoked."""
    for crl, welcome in [(certificates.chain_revocations(), True), (certificates.chain_revocations("branch_ca"), False)]:
        d = receiver(PEERS, certificates=certificates, crl=crl)
        assert (echoscu(d.tls_port, options=certificates.dcmtk("branch"), check=False).returncode == 0) == welcome
        if welcome:
            assert "certificate revoked" not in d.log.read_text()
        else:
            d.wait_log("certificate revoked")
        echoscu(d.port)


def test_handshakes_of_one_host_leave_room_for_others(receiver, certificates):
    d = receiver("max_associations = 4; " + PEERS, certificates=certificates)
    stuck = [Peer(d.tls_port, host="127.0.0.2") for _ in range(2)]
    for peer in stuck:
        peer.send(client_hello())
        assert peer.receive(1)  # a thread has answered, and waits for more data
    third = Peer(d.tls_port, host="127.0.0.2")
    third.send(client_hello())
    echoscu(d.tls_port, options=certificates.dcmtk("client"))
    assert select.select([third.socket], [], [], 0)[0] == []
    stuck[0].close()
    assert third.receive(1)  # now its turn has come
    echoscu(d.tls_port, options=certificates.dcmtk("client"))
    for peer in [*stuck, third]:
        peer.close()


def test_silent_tls_connections_delay_no_caller(receiver, certificates, tmp_path):
    d = receiver("max_associations = 5; acse_seconds = 3600.0; " + PEERS, certificates=certificates)
    silent = [Peer(d.tls_port) for _ in range(20)]
    echoscu(d.tls_port, options=certificates.dcmtk("client"))
    assert still_open(silent) == 20, "nobody was waited for"
    clock = Clock(tmp_path)
    d = receiver("max_associations = 5; acse_seconds = 40.0; " + PEERS, certificates=certificates,
                 environment=clock.environment)
    silent = [Peer(d.tls_port) for _ in range(20)]
    wait_for(lambda: clock.pass_time(1) or still_open(silent) == 0, 60, "the end of all")
    for peer in silent:
        assert peer.ended()


# ---- memory ----


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def test_100_slow_associations(receiver):
    d = receiver('max_associations = 100; peers = ( { ae_title = "PYNETDICOM"; max_associations = 100; }, '
                 '{ ae_title = "ECHOSCU"; } );')
    (pid,) = d.children("intake")
    with associated(d.port) as peer:
        assert peer.store(slice_bytes(999, size=512), uid(999)) == 0
    before = resident_kib(pid)
    data = [slice_bytes(i, size=512) for i in range(100)]
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(associated(d.port)) for _ in range(100)]
        for i, peer in enumerate(peers):
            peer.begin_store(uid(i))
            peer.send(data_pdu(1, 0, data[i][:60000]))
        wait_for(lambda: len(parts(d)) == 100, 60, "100 files in incoming/")
        growth = resident_kib(pid) - before
        print(f"{growth / 100:.0f} KiB an association")
        assert growth / 100 <= 2048
        for i, peer in enumerate(peers):
            for part in data_pdus(1, data[i][60000:], 60000):
                peer.send(part)
        assert [peer.status() for peer in peers] == [0] * 100
    assert len(stored(d)) == 101
    assert_serves(d)
