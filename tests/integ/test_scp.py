"""dicom_serve, through a small program: valid input of all kinds of peers, and violations."""

import contextlib
import errno
import os
import pathlib
import random
import select
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import pydicom
import pynetdicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import generate_uid

from conftest import BIN, Clock, echoscu, storescu, wait_for
from raw_peer import (ABORT, ASSOCIATE_RJ, COMMITMENT, COMMITMENT_INSTANCE, CT, DATA, EXPLICIT, IMPLICIT, MR,
                         RELEASE_RQ, SEG, VERIFICATION, Raw, associate_rq, command, pdu, pdv)

TRANSFER_SYNTAXES = ["1.2.840.10008.1.2" + end for end in (
    "", ".1", ".1.99", ".2", ".4.50", ".4.51", ".4.57", ".4.70", ".4.80", ".4.81", ".4.90", ".4.91", ".4.201",
    ".4.202", ".4.203", ".5")]
PMAP = "1.2.840.10008.5.1.4.1.1.30"
STORAGE_CLASSES = ["1.2.840.10008.5.1.4.1.1." + end for end in (
    "2", "2.1", "2.2", "4", "4.1", "4.4", "128", "130", "128.1", "481.3", "66.4", "66.7", "88.22", "88.33", "88.34")]
C_STORE, C_FIND, C_ECHO, N_EVENT_REPORT, N_ACTION = 0x0001, 0x0020, 0x0030, 0x0100, 0x0130
SUCCESS, UNSUPPORTED_CLASS, UNRECOGNIZED = 0x0000, 0x0122, 0x0211
OUT_OF_RESOURCES, MISMATCH, CANNOT_UNDERSTAND = 0xA700, 0xA900, 0xC000


class Server:
    """A running `serve`. `lines` is its output."""

    def __init__(self, folder, *options, clock=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [BIN / "serve", self.folder, *map(str, options)], env={**os.environ, **(clock.environment if clock else {})},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.port = int(self.wait("port")[0])

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split())

    def lines_of(self, event):
        return [line[1:] for line in self.lines if line[:1] == [event]]

    def wait(self, event, count=1, seconds=60):
        """Waits for the event's `count`-th line, and returns it."""
        return wait_for(lambda: self.lines_of(event)[count - 1:count], seconds, f"{event} {count}")[0]

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def stop(self):
        self.process.stdin.close()
        lines_of = self.process.stderr.read()
        assert (self.process.wait(60), lines_of) == (0, ""), "leaves are silent"
        self.reader.join(20)

    def memory_peak(self):
        """Returns bytes."""
        status = pathlib.Path("/proc", str(self.process.pid), "status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@contextlib.contextmanager
def serving(folder, *options, clock=None):
    server = Server(folder, *options, clock=clock)
    try:
        yield server
        server.stop()
    finally:
        server.process.kill()


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path) as server:
        yield server


def image(instance=None):
    """Returns a small CT image as a data set with file meta information."""
    dataset = Dataset()
    dataset.SOPClassUID, dataset.SOPInstanceUID = CT, instance or generate_uid()
    dataset.StudyInstanceUID, dataset.SeriesInstanceUID = generate_uid(), generate_uid()
    dataset.Modality, dataset.PatientID, dataset.PatientName = "CT", "1", "None^Of"
    dataset.Rows = dataset.Columns = 16
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 16, 15, 0
    dataset.PixelData = random.Random(1).randbytes(512)
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = EXPLICIT
    return dataset


def data_set_bytes(path):
    """Returns the bytes of a Part 10 file after its meta information."""
    data = pathlib.Path(path).read_bytes()
    assert data[:132] == bytes(128) + b"DICM"
    return data[144 + struct.unpack_from("<I", data, 140)[0]:]


def meta_of(path):
    with open(path, "rb") as file:
        file.seek(132)
        return pydicom.filereader._read_file_meta_info(file)


# ---- correct peers ----


def test_echo(server):
    echoscu(server.port)
    assert server.wait("closed")[:5] == ["ECHOSCU", "0", "0", "0", "0"]
    assert server.wait("admit")[:4] == ["ECHOSCU", "NOCTULE", "127.0.0.1", "tls=0"]


@pytest.mark.parametrize("tool", ["storescu", "dcmsend", "pynetdicom"])
def test_tools_store(server, tmp_path_factory, tool):
    sent = tmp_path_factory.mktemp("sent")
    images = [image() for _ in range(5)]
    for i, dataset in enumerate(images):
        dataset.save_as(sent / f"{i}.dcm", enforce_file_format=True)
    if tool == "storescu":
        storescu(server.port, sent)
    elif tool == "dcmsend":
        subprocess.run(["dcmsend", "--scan-directories", "127.0.0.1", str(server.port), sent], check=True,
                       capture_output=True, env={**os.environ, "TCP_NODELAY": "1"})
    else:
        entity = pynetdicom.AE("PYNETDICOM")
        entity.add_requested_context(CT, EXPLICIT)
        association = entity.associate("127.0.0.1", server.port)
        assert association.is_established
        for dataset in images:
            assert association.send_c_store(dataset).Status == SUCCESS
        association.release()
    closed = server.wait("closed")
    assert closed[1:3] == ["5", "0"] and closed[4] == "0"
    for i, dataset in enumerate(images):
        path = server.folder / f"{dataset.SOPInstanceUID}.dcm"
        if tool != "dcmsend":  # dcmsend may choose another transfer syntax
            assert data_set_bytes(path) == data_set_bytes(sent / f"{i}.dcm")
        assert pydicom.dcmread(path).PixelData == dataset.PixelData


@pytest.mark.parametrize("transfer", TRANSFER_SYNTAXES)
def test_transfer_syntaxes_are_kept_bit_by_bit(server, transfer):
    """The data set is not parsed: the stored bytes are those of the sent file."""
    data = random.Random(transfer).randbytes(70000)
    with Raw(server.port) as raw:
        assert raw.associate([(CT, [transfer])], calling=" RAW ") == {1: (0, transfer)}
        assert raw.implementation_uid.startswith("2.25.")
        assert raw.store(1, CT, "1.2.3", data) == SUCCESS
        raw.release()
    path = server.folder / "1.2.3.dcm"
    assert data_set_bytes(path) == data
    meta = meta_of(path)
    assert meta.FileMetaInformationVersion == b"\0\1"
    assert (meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID) == (CT, "1.2.3")
    assert meta.TransferSyntaxUID == transfer
    assert meta.ImplementationClassUID == raw.implementation_uid
    assert meta.SourceApplicationEntityTitle == "RAW"


def test_storage_classes(server):
    with Raw(server.port) as raw:
        answers = raw.associate([(uid, [EXPLICIT]) for uid in STORAGE_CLASSES])
        assert set(answers.values()) == {(0, EXPLICIT)}
        for i, uid in enumerate(STORAGE_CLASSES):
            assert raw.store(2 * i + 1, uid, f"1.2.{i}", b"ab") == SUCCESS
        raw.release()
    assert len(server.files()) == len(STORAGE_CLASSES)


def test_the_first_proposed_transfer_syntax_is_taken(server):
    jpeg, mpeg, private = TRANSFER_SYNTAXES[7], "1.2.840.10008.1.2.4.100", "1.2.840.113619.5.2"
    with Raw(server.port) as raw:
        answers = raw.associate([
            (CT, [EXPLICIT, jpeg, IMPLICIT]), (CT, [jpeg, EXPLICIT]), (CT, [private, mpeg, IMPLICIT, EXPLICIT]),
            (CT, [mpeg, private]), (PMAP, [EXPLICIT]), (VERIFICATION, [jpeg, IMPLICIT]), ("1.2.3", [IMPLICIT]),
        ])
        assert [answers[i] for i in (1, 3, 5)] == [(0, EXPLICIT), (0, jpeg), (0, IMPLICIT)]
        assert (answers[7][0], answers[9][0], answers[13][0]) == (4, 3, 3)
        assert answers[11] == (0, IMPLICIT)
        raw.release()


def test_a_uid_with_an_embedded_nul_is_refused(server):
    """Read as C strings, these would equal valid UIDs."""
    nul = "\0.5"
    with Raw(server.port) as raw:
        answers = raw.associate([(CT, [EXPLICIT + nul]), (CT, [EXPLICIT + nul, IMPLICIT]), (CT + nul, [IMPLICIT]),
                                 (VERIFICATION, [IMPLICIT + nul])])
        assert [answers[i][0] for i in (1, 5, 7)] == [4, 3, 4]
        assert answers[3] == (0, IMPLICIT)
        raw.release()


def test_many_messages_in_one_packet(server):
    """A sender that does not wait for responses, with command and data set in one PDU."""
    with Raw(server.port) as raw:
        raw.associate([(CT, [IMPLICIT])])
        raw.send(b"".join(
            pdu(DATA, pdv(1, 3, command(C_STORE, i, CT, f"1.2.{i}")) + pdv(1, 0, b"odd") + pdv(1, 2, b"x" * i))
            for i in range(1, 20)))
        assert [raw.status() for _ in range(1, 20)] == [SUCCESS] * 19
        raw.release()
    assert data_set_bytes(server.folder / "1.2.7.dcm") == b"oddxxxxxxx"


def test_commands_in_fragments(server):
    with Raw(server.port) as raw:
        raw.associate([(VERIFICATION, [IMPLICIT])])
        data = command(C_ECHO, 77, VERIFICATION, data_set=False)
        for i in range(0, len(data) - 2, 2):
            raw.send(pdu(DATA, pdv(1, 1, data[i:i + 2])))
        raw.send(pdu(DATA, pdv(1, 3, data[-2:])))
        response = raw.response()
        assert response[0x0120] == struct.pack("<H", 77) and response[0x0900] == bytes(2)
        assert response[0x0100] == b"\x30\x80" and response[0x0800] == b"\x01\x01"
        assert response[0x0000] == struct.pack("<I", sum(len(value) + 8 for value in response.values()) - 12)
        raw.release()


def test_empty_fragments_of_a_command_are_limited(server):
    echo = command(C_ECHO, 1, VERIFICATION, data_set=False)
    with Raw(server.port) as raw:
        raw.associate([(VERIFICATION, [IMPLICIT])])
        raw.send(pdu(DATA, pdv(1, 1, b"") * 3 + pdv(1, 3, echo)))
        assert raw.status() == SUCCESS
        with contextlib.suppress(ConnectionError):
            raw.send(pdu(DATA, pdv(1, 1, b"") * 1000))
        assert raw.ends() in (ABORT, None)
    assert server.wait("served")[1] == "ASSOCIATION_INVALID"


@pytest.mark.parametrize("size", [4096, 131072])
def test_max_pdu(tmp_path, size):
    with serving(tmp_path, "--max-pdu", size) as server:
        with Raw(server.port) as raw:
            raw.associate([(CT, [IMPLICIT])])
            assert raw.max_pdu == size
            raw.command(1, command(C_STORE, 1, CT, "1.2"))
            raw.data_set(1, bytes(3 * size), fragment=size - 6)
            assert raw.status() == SUCCESS
            raw.command(1, command(C_STORE, 1, CT, "1.3"))
            with contextlib.suppress(ConnectionError):
                raw.data_set(1, bytes(3 * size), fragment=size)
            assert raw.ends() in (ABORT, None)
        assert server.wait("served")[1] == "ASSOCIATION_INVALID"
        assert server.files() == ["1.2.dcm"]


@pytest.mark.parametrize("size", [1, 80, 100, 0])
def test_responses_fit_the_peer(server, size):
    """0 is no limit. A limit too small for any fragment is ignored."""
    with Raw(server.port) as raw:
        raw.associate([(CT, [IMPLICIT])], max_pdu=size)
        raw.command(1, command(C_STORE, 1, CT, "1.2.3"))
        raw.data_set(1, b"ab")
        lengths, flags = [], 0
        while flags != 3:
            kind, body = raw.pdu()
            assert kind == DATA
            lengths.append(len(body))
            flags = body[5]
        assert (len(lengths) == 1) == (size == 0) and max(lengths) <= (max(size, 64) if size else 4096)
        raw.release()


# ---- admission ----


@pytest.mark.parametrize("what, answer", [
    ("calling", (1, 1, 3)), ("called", (1, 1, 7)), ("host", (1, 1, 1)), ("busy", (2, 3, 2))])
def test_refusals(tmp_path, what, answer):
    with serving(tmp_path, "--refuse", what, "STRANGER") as server:
        with Raw(server.port) as raw:
            raw.send(associate_rq([(VERIFICATION, [IMPLICIT])], calling="STRANGER"))
            kind, body = raw.pdu()
            assert kind == ASSOCIATE_RJ and tuple(body[1:]) == answer
            assert raw.ends() is None
        assert server.wait("served")[:2] == [str(-errno.EACCES), "ASSOCIATION_REFUSED"]
        assert not server.lines_of("opened") and not server.lines_of("closed")
        echoscu(server.port, calling="FRIEND")


def test_echo_only(tmp_path):
    with serving(tmp_path, "--echo-only", "GUEST") as server:
        with Raw(server.port) as raw:
            answers = raw.associate([(CT, [IMPLICIT]), (VERIFICATION, [IMPLICIT]), (COMMITMENT, [IMPLICIT])],
                                    calling="GUEST")
            assert [answers[i][0] for i in (1, 3, 5)] == [3, 0, 3]
            raw.command(3, command(C_ECHO, 1, VERIFICATION, data_set=False))
            assert raw.status() == SUCCESS
            raw.release()


def test_another_application_context_is_refused(server):
    with Raw(server.port) as raw:
        raw.send(associate_rq([(VERIFICATION, [IMPLICIT])], application="1.2.3"))
        kind, body = raw.pdu()
        assert kind == ASSOCIATE_RJ and tuple(body[1:]) == (1, 1, 2)
    assert server.wait("served")[1] == "ASSOCIATION_INVALID"


def test_titles_are_fit_for_logs(server):
    with Raw(server.port) as raw:
        raw.associate([(VERIFICATION, [IMPLICIT])], calling="A\nB\x1b[31m")
        raw.release()
    assert server.wait("admit")[0] == "A?B?[31m"


# ---- instances that cannot be stored ----


@pytest.mark.parametrize("instance", ["../../../tmp/evil", "/etc/passwd", "1.2/3", "", ".", "1..2", "1.2.", "x" * 30,
                                      "1." * 32 + "1", "1" * 20000, "1.2\0.3", "1.2\n3"])
def test_instances_without_a_uid(server, instance):
    with Raw(server.port) as raw:
        raw.associate([(CT, [IMPLICIT])])
        raw.command(1, command(C_STORE, 9, CT, instance))
        if len(instance) > 16384:
            assert raw.ends() == ABORT  # no command may be that long
        else:
            raw.data_set(1, bytes(50000))
            assert raw.status() == CANNOT_UNDERSTAND
            assert raw.store(1, CT, "1.2.3", b"ab") == SUCCESS
            raw.release()
    server.wait("closed")
    assert server.files() == ([] if len(instance) > 16384 else ["1.2.3.dcm"])


def test_class_and_context_must_agree(server):
    with Raw(server.port) as raw:
        raw.associate([(CT, [IMPLICIT]), (VERIFICATION, [IMPLICIT])])
        assert raw.store(1, MR, "1.2.3", b"ab") == MISMATCH
        assert raw.store(3, CT, "1.2.3", b"ab") == UNSUPPORTED_CLASS
        raw.command(1, command(C_STORE, 1, CT, "1.2.3", data_set=False))
        assert raw.status() == CANNOT_UNDERSTAND
        raw.release()
    assert server.files() == [] and server.wait("closed")[1:3] == ["0", "2"]


def test_full_disk(tmp_path):
    """Writing fails at every position, including the last byte. The association continues."""
    with serving(tmp_path, "--full-after", 300000) as server:
        with Raw(server.port) as raw:
            raw.associate([(CT, [IMPLICIT])])
            assert raw.store(1, CT, "1.2.1", bytes(2000000)) == OUT_OF_RESOURCES
            assert raw.store(1, CT, "1.2.2", bytes(299000)) == SUCCESS
            assert raw.store(1, CT, "1.2.3", bytes(300000)) == OUT_OF_RESOURCES
            raw.release()
        assert server.wait("closed")[1:3] == ["1", "2"]
        assert server.files() == ["1.2.2.dcm"]
        ends = server.lines_of("end")
        assert [end[2] for end in ends] == [str(-errno.EFBIG), "0", str(-errno.EFBIG)]


def test_no_file_can_be_made(server):
    server.folder.joinpath("1.2.3.part").mkdir()
    with Raw(server.port) as raw:
        raw.associate([(CT, [IMPLICIT])])
        assert raw.store(1, CT, "1.2.3", bytes(100000)) == OUT_OF_RESOURCES
        assert raw.store(1, CT, "1.2.4", bytes(100000)) == SUCCESS
        raw.release()
    assert not [end for end in server.lines_of("end") if end[0] == "1.2.3"]


def test_unsupported_operations_are_refused(server):
    with Raw(server.port) as raw:
        raw.associate([(CT, [IMPLICIT]), (VERIFICATION, [IMPLICIT]), (COMMITMENT, [IMPLICIT])])
        raw.command(1, command(C_FIND, 5, CT))
        raw.data_set(1, bytes(40000))
        assert raw.status() == UNRECOGNIZED
        raw.command(1, command(0x0FFF, 5, data_set=False, x0120=5))  # C-CANCEL has no response
        raw.command(3, command(0x0777, 6, VERIFICATION, data_set=False))
        assert raw.status() == UNRECOGNIZED
        raw.command(1, command(C_ECHO, 7, VERIFICATION, data_set=False))
        assert raw.status() == UNSUPPORTED_CLASS
        raw.command(5, command(N_ACTION, 8, data_set=False, x0003=COMMITMENT, x1001=COMMITMENT_INSTANCE))
        assert raw.status() == UNRECOGNIZED
        raw.release()


# ---- peers that disconnect ----


@pytest.mark.parametrize("how", ["abort", "close", "reset", "release", "command"])
def test_breaking_off_within_a_data_set(server, how):
    with Raw(server.port) as raw:
        raw.associate([(CT, [IMPLICIT])])
        assert raw.store(1, CT, "1.2.1", b"ab") == SUCCESS
        raw.command(1, command(C_STORE, 2, CT, "1.2.3"))
        raw.data_set(1, bytes(1000000), last=False)
        wait_for(lambda: "1.2.3.part" in server.files(), what="the file")
        if how == "abort":
            raw.send(pdu(ABORT, bytes(4)))
        elif how == "release":
            raw.send(pdu(RELEASE_RQ, bytes(4)))
        elif how == "command":
            raw.command(1, command(C_ECHO, 3, VERIFICATION, data_set=False))
        elif how == "reset":
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if how in ("release", "command"):
            assert raw.ends() == ABORT
    assert server.wait("end", 2)[2] == str(-errno.ECONNABORTED)
    closed = server.wait("closed")
    assert closed[1:3] == ["1", "1"]
    assert closed[5] == ("ASSOCIATION_INVALID" if how in ("release", "command") else "ASSOCIATION_ABORTED")
    assert server.files() == ["1.2.1.dcm"]


def test_a_killed_sender_leaves_no_instance(server, tmp_path_factory):
    big = image("1.2.9")
    big.Rows = big.Columns = 16384
    big.PixelData = bytes(2 * 16384 * 16384)
    path = tmp_path_factory.mktemp("sent") / "big.dcm"
    big.save_as(path, enforce_file_format=True)
    sender = subprocess.Popen(["storescu", "127.0.0.1", str(server.port), path], stderr=subprocess.DEVNULL)
    server.wait("begin")
    sender.send_signal(signal.SIGKILL)
    sender.wait()
    assert server.wait("served")[1] == "ASSOCIATION_ABORTED"
    assert server.files() == []


# ---- peers that send nonsense ----

HELLO = bytes.fromhex("16030100750100007103030000000000000000000000000000000000000000000000000000000000000000")


@pytest.mark.parametrize("data", [
    b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\xff" * 100, HELLO,
    pdu(DATA, pdv(1, 3, b"ab")), pdu(RELEASE_RQ, bytes(4)), pdu(9, b""),
    struct.pack(">BBI", 1, 0, 0xFFFFFFFF), struct.pack(">BBI", 1, 0, 4) + bytes(4), pdu(1, bytes(68)),
    associate_rq([(CT, [IMPLICIT])])[:-9] + b"\xff" * 9,
    associate_rq([])[:6] + b"\0\2" + associate_rq([])[8:],
], ids=lambda data: data[:12].hex())
def test_garbage_instead_of_a_request(server, data):
    with Raw(server.port, timeout=60) as raw:
        raw.send(data)
        with contextlib.suppress(OSError):
            raw.socket.shutdown(socket.SHUT_WR)
        raw.ends()
    assert server.wait("served")[0] != "0"
    echoscu(server.port)


def test_requests_with_flipped_bits(server):
    """The server must not crash or hang for any request."""
    good = associate_rq([(CT, TRANSFER_SYNTAXES), (VERIFICATION, [IMPLICIT])], roles=[(COMMITMENT, 0, 1)])
    rng = random.Random(3)
    for count in range(1, 301):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.choice([0, 1, 255, rng.randrange(256)])
        with Raw(server.port, timeout=20) as raw, contextlib.suppress(OSError):
            raw.send(bytes(bad))
            raw.socket.shutdown(socket.SHUT_WR)
            raw.ends()
        server.wait("served", count)
    echoscu(server.port)


GOOD = command(C_STORE, 1, CT, "1.2.3")


@pytest.mark.parametrize("data", [
    pdu(DATA, b""), pdu(DATA, b"abc"), pdu(DATA, struct.pack(">I", 0)), pdu(DATA, struct.pack(">IB", 1, 1)),
    pdu(DATA, struct.pack(">IBB", 1000, 1, 3) + GOOD), pdu(DATA, struct.pack(">IBB", 0xFFFFFFFF, 1, 3) + GOOD),
    pdu(DATA, pdv(1, 2, b"ab")), pdu(DATA, pdv(9, 3, GOOD)), pdu(DATA, pdv(2, 3, GOOD)),
    pdu(DATA, pdv(1, 3, GOOD[:-1])), pdu(DATA, pdv(1, 3, GOOD + b"ab")), pdu(DATA, pdv(1, 3, b"")),
    pdu(DATA, pdv(1, 3, command(0x8001, 1, CT, "1.2.3"))), pdu(DATA, pdv(1, 1, GOOD) + pdv(3, 3, GOOD)),
    pdu(DATA, pdv(1, 3, GOOD) + pdv(3, 2, b"ab")), pdu(DATA, pdv(1, 3, GOOD[20:])),
    b"".join(pdu(DATA, pdv(1, 1, bytes(8000))) for _ in range(100)),
    struct.pack(">BBI", 4, 0, 0xFFFFFFFF), struct.pack(">BBI", 4, 0, 131073), associate_rq([(CT, [IMPLICIT])]),
    pdu(3, bytes(4)), pdu(9, bytes(4)),
], ids=range(22))
def test_violations_end_the_association(server, data):
    with Raw(server.port, timeout=60) as raw:
        raw.associate([(CT, [IMPLICIT]), (MR, [IMPLICIT])])
        with contextlib.suppress(ConnectionError):
            raw.send(data)
        assert raw.ends() in (ABORT, None)
    served = server.wait("served")
    assert served[1] in ("ASSOCIATION_INVALID", "ASSOCIATION_ABORTED")
    assert len(server.lines_of("closed")) == 1 and server.files() == []
    echoscu(server.port)


# ---- many peers, slow peers ----


def test_silent_peers_delay_no_peer(tmp_path):
    with serving(tmp_path, "--acse", 3600, "--dimse", 3600, "--idle", 3600) as server:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(Raw(server.port)) for _ in range(300)]
            for raw in silent[::2]:
                raw.send(associate_rq([(CT, [IMPLICIT])])[:100])
            for i, raw in enumerate(silent[1::20]):
                raw.associate([(CT, [IMPLICIT])])
                raw.command(1, command(C_STORE, 1, CT, f"1.2.{i}"))
            echoscu(server.port)
            assert server.wait("served") and len(server.lines_of("served")) == 1, "nobody else was waited for"
        wait_for(lambda: len(server.lines_of("served")) == 301, what="the end of all")
        assert server.files() == []


def test_hundreds_of_associations_at_once(server):
    """All send at the same time."""
    failures = []

    def send(number):
        try:
            with Raw(server.port, timeout=60) as raw:
                raw.associate([(CT, [EXPLICIT])])
                for i in range(3):
                    assert raw.store(1, CT, f"1.2.{number}.{i}", struct.pack("<I", number) * 5000) == SUCCESS
                raw.release()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(server.files()) == 900
    for number in range(0, 300, 37):
        assert data_set_bytes(server.folder / f"1.2.{number}.2.dcm") == struct.pack("<I", number) * 5000


def has_news(raw):
    """Returns whether there is data to read, or the end."""
    return bool(select.select([raw.socket], [], [], 0)[0])


def pass_time_until_data(clock, raw):
    """Lets time pass on the clock of the server until it sends data."""
    wait_for(lambda: clock.pass_time(1) or has_news(raw), what="something from the server")


def test_a_slow_request_runs_into_the_acse_limit(tmp_path):
    """Also for a request that arrives byte by byte."""
    clock = Clock(tmp_path)
    with serving(tmp_path / "served", "--acse", 30, clock=clock) as server:
        with Raw(server.port) as silent, Raw(server.port) as dripping:
            sent = 0
            with contextlib.suppress(ConnectionError):
                for byte in associate_rq([(CT, [IMPLICIT])]):
                    dripping.send(bytes([byte]))
                    sent += 1
                    clock.pass_time(1)
                    time.sleep(0.05)
                    if len(server.lines_of("served")) == 2:
                        break
            assert sent >= 20, "each has its time"
            assert silent.ends() in (ABORT, None)
            server.wait("served", 2)
        assert [line[1] for line in server.lines_of("served")] == ["ASSOCIATION_TIMEOUT"] * 2


def test_idle_association(tmp_path):
    clock = Clock(tmp_path)
    with serving(tmp_path / "served", "--idle", 30, clock=clock) as server:
        with Raw(server.port) as raw:
            raw.associate([(VERIFICATION, [IMPLICIT])])
            raw.command(1, command(C_ECHO, 1, VERIFICATION, data_set=False))
            assert raw.status() == SUCCESS
            pass_time_until_data(clock, raw)
            assert raw.ends() == ABORT
        assert server.wait("closed")[4:] == [str(-errno.ETIMEDOUT), "ASSOCIATION_TIMEOUT"]


@pytest.mark.parametrize("sent", [pdu(DATA, pdv(1, 3, GOOD)), pdu(DATA, pdv(1, 3, GOOD)) + pdu(DATA, bytes(50))[:20],
                                  pdu(DATA, pdv(1, 1, GOOD[:20])), pdu(DATA, pdv(1, 3, GOOD))[:9]], ids=range(4))
def test_silence_within_a_message(tmp_path, sent):
    clock = Clock(tmp_path)
    with serving(tmp_path / "served", "--dimse", 30, clock=clock) as server:
        with Raw(server.port) as raw:
            raw.associate([(CT, [IMPLICIT])])
            raw.send(sent)
            pass_time_until_data(clock, raw)
            assert raw.ends() in (ABORT, None)
        assert server.wait("closed")[5] == "ASSOCIATION_TIMEOUT"
        assert server.files() == []


def test_a_peer_that_never_reads_is_dropped(tmp_path):
    """Unread responses fill the socket. Then the DIMSE limit applies."""
    clock = Clock(tmp_path)
    with serving(tmp_path / "served", "--dimse", 30, clock=clock) as server:
        with Raw(server.port) as raw:
            raw.associate([(VERIFICATION, [IMPLICIT])])
            raw.socket.settimeout(0.05)
            echo = pdu(DATA, pdv(1, 3, command(C_ECHO, 1, VERIFICATION, data_set=False))) * 200
            with contextlib.suppress(OSError):
                while not server.lines_of("closed"):
                    try:
                        raw.socket.send(echo)
                    except TimeoutError:  # the server stops reading, because it cannot send
                        clock.pass_time(1)
            assert server.wait("closed")[5] == "ASSOCIATION_TIMEOUT"


def test_stopping_finishes_the_message_under_way(server):
    with Raw(server.port) as silent, Raw(server.port) as idle, Raw(server.port) as busy:
        for raw in (idle, busy):
            raw.associate([(CT, [IMPLICIT])])
        busy.command(1, command(C_STORE, 1, CT, "1.2.3"))
        busy.data_set(1, bytes(100000), last=False)
        server.wait("begin")
        server.process.stdin.close()
        assert idle.ends() == silent.ends() == ABORT
        busy.data_set(1, b"end!")
        assert busy.status() == SUCCESS
        assert busy.ends() == ABORT
    assert [line[5] for line in (server.wait("closed"), server.wait("closed", 2))] == ["ASSOCIATION_STOPPED"] * 2
    assert data_set_bytes(server.folder / "1.2.3.dcm") == bytes(100000) + b"end!"


def test_a_large_object_needs_no_memory(server):
    size = 300 * 1024 * 1024
    with Raw(server.port) as raw:
        raw.associate([(STORAGE_CLASSES[1], [EXPLICIT])])
        assert raw.store(1, STORAGE_CLASSES[1], "1.2.1", bytes(1000000)) == SUCCESS
        before = server.memory_peak()
        raw.command(1, command(C_STORE, 1, STORAGE_CLASSES[1], "1.2.3"))
        raw.data_set(1, bytes(size), fragment=131066)
        assert raw.status() == SUCCESS
        raw.release()
    grown = server.memory_peak() - before
    assert (server.folder / "1.2.3.dcm").stat().st_size > size
    assert grown < 20 * 1024 * 1024, grown


# ---- TLS ----


def client_context(certificates, name=None, trusted="ca"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(getattr(certificates, trusted))
    if name:
        context.load_cert_chain(getattr(certificates, name), getattr(certificates, f"{name}_key"))
    return context


def tls_options(certificates):
    return "--tls", certificates.server, certificates.server_key, certificates.ca


def test_tls_with_certificates(tmp_path, certificates):
    with serving(tmp_path, *tls_options(certificates), "--require-peer") as server:
        echoscu(server.port, options=certificates.dcmtk("client"))
        admitted = server.wait("admit")
        assert admitted[3:5] == ["tls=1", "cn=client"]
        assert admitted[5] == "sha256=" + certificates.fingerprint("client").replace(":", "").lower()
        data = random.Random(5).randbytes(3000000)
        with Raw(server.port, tls=client_context(certificates, "client")) as raw:
            assert raw.socket.version() in ("TLSv1.2", "TLSv1.3")
            raw.associate([(CT, [EXPLICIT])])
            assert raw.store(1, CT, "1.2.3", data) == SUCCESS
            raw.release()
        assert data_set_bytes(server.folder / "1.2.3.dcm") == data


def test_tls_without_client_certificate(tmp_path, certificates):
    with serving(tmp_path, *tls_options(certificates)) as server:
        with Raw(server.port, tls=client_context(certificates)) as raw:
            raw.associate([(VERIFICATION, [IMPLICIT])])
            raw.release()
        assert server.wait("admit")[3:] == ["tls=1", "cn=", "sha256="]


@pytest.mark.parametrize("peer", ["missing", "stranger", "plain", "old", "silent"])
def test_tls_refusals(tmp_path, certificates, peer):
    options = tls_options(certificates) + ("--require-peer", "--acse", 2 if peer == "silent" else 60)
    with serving(tmp_path, *options) as server:
        if peer in ("plain", "silent"):
            with Raw(server.port) as raw:
                if peer == "plain":
                    raw.send(associate_rq([(VERIFICATION, [IMPLICIT])]))
                raw.ends()
        else:
            context = client_context(certificates, "stranger" if peer == "stranger" else None)
            if peer == "old":
                context.set_ciphers("ALL:@SECLEVEL=0")
                context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                with Raw(server.port, tls=context) as raw:
                    raw.send(associate_rq([(VERIFICATION, [IMPLICIT])]))
                    assert raw.ends() is None
        code = server.wait("served")[1]
        assert code == "TLS_HANDSHAKE_FAILED" or (peer == "silent" and code == "ASSOCIATION_TIMEOUT")
        assert not server.lines_of("admit")


def test_slow_handshakes_delay_no_peer(tmp_path, certificates):
    with serving(tmp_path, *tls_options(certificates), "--acse", 3600) as server, contextlib.ExitStack() as stack:
        for raw in [stack.enter_context(Raw(server.port)) for _ in range(50)]:
            raw.send(HELLO[:20])
        echoscu(server.port, options=certificates.dcmtk("client"))
        assert server.wait("served") and len(server.lines_of("served")) == 1, "nobody else was waited for"


@pytest.mark.parametrize("certificate, key, ca, code", [
    ("nothing", "server_key", "ca", "TLS_CERTIFICATE_INVALID"),
    ("empty", "server_key", "ca", "TLS_CERTIFICATE_INVALID"),
    ("server", "nothing", "ca", "TLS_KEY_INVALID"),
    ("server", "client_key", "ca", "TLS_KEY_INVALID"),
    ("elsewhere", "client_key", "ca", "TLS_KEY_INVALID"),
    ("server", "server_key", "nothing", "TLS_CA_INVALID"),
    ("server", "server_key", "empty", "TLS_CA_INVALID"),
])
def test_tls_settings(tmp_path, certificates, certificate, key, ca, code):
    def path(name):
        (tmp_path / "empty").touch()
        return tmp_path / name if name in ("nothing", "empty") else getattr(certificates, name)

    run = subprocess.run([BIN / "serve", tmp_path, "--tls", path(certificate), path(key), path(ca)], text=True,
                         capture_output=True, stdin=subprocess.DEVNULL)
    assert run.returncode == 1 and run.stdout.split()[:2] == ["fault", code], run.stdout
    assert run.stderr == ""


# ---- storage commitment ----


def report(transaction="1.2.9", good=("1.2.3",), failed=()):
    dataset = Dataset()
    dataset.TransactionUID = transaction

    def item(uid, reason=None):
        entry = Dataset()
        entry.ReferencedSOPClassUID, entry.ReferencedSOPInstanceUID = SEG, uid
        if reason:
            entry.FailureReason = reason
        return entry

    dataset.ReferencedSOPSequence = [item(uid) for uid in good]
    if failed:
        dataset.FailedSOPSequence = [item(uid, reason) for uid, reason in failed]
    return dataset


def encoded(dataset):
    return pynetdicom.dsutils.encode(dataset, True, True)


def test_commitment_reports_in_the_scp_role_are_accepted(server):
    entity = pynetdicom.AE("ARCHIVE")
    entity.add_requested_context(COMMITMENT, [IMPLICIT, EXPLICIT])
    role = pynetdicom.build_role(COMMITMENT, scp_role=True)
    association = entity.associate("127.0.0.1", server.port, ext_neg=[role])
    assert association.is_established
    assert association.accepted_contexts[0].as_scp
    status, _ = association.send_n_event_report(report(failed=[("1.2.4", 0x0112)]), 2, COMMITMENT, COMMITMENT_INSTANCE)
    assert status.Status == SUCCESS
    association.release()
    assert server.wait("committed") == ["ARCHIVE", "1.2.9", "2", f"1.2.4={0x0112}", "1.2.3=0"]


@pytest.mark.parametrize("roles", [(), [(COMMITMENT, 0, 1)], [(COMMITMENT, 1, 1)], [(COMMITMENT, 0, 1)] * 2339])
def test_commitment_roles(server, roles):
    with Raw(server.port) as raw:
        assert raw.associate([(COMMITMENT, [IMPLICIT])], roles=roles)[1] == (0, IMPLICIT)
        assert raw.roles == ({COMMITMENT: (0, 1)} if roles else {})
        raw.command(1, command(N_EVENT_REPORT, 1, COMMITMENT, COMMITMENT_INSTANCE, x1002=1))
        raw.data_set(1, encoded(report()))
        response = raw.response()
        assert response[0x0900] == bytes(2) and response[0x1002] == b"\1\0"
        raw.release()
    assert server.wait("committed")[1:] == ["1.2.9", "1", "1.2.3=0"]


def nested(depth):
    """Returns nested implicit sequences of undefined length."""
    return (struct.pack("<HHI", 0x0008, 0x1199, 0xFFFFFFFF) + struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)) * depth


@pytest.mark.parametrize("instance, event, data, status", [
    ("1.2.3", 1, encoded(report()), 0x0112),
    (COMMITMENT_INSTANCE, 3, encoded(report()), 0x0113),
    (COMMITMENT_INSTANCE, 1, encoded(report(transaction="")), 0x0115),
    (COMMITMENT_INSTANCE, 1, encoded(report(good=[""])), 0x0115),
    (COMMITMENT_INSTANCE, 1, random.Random(1).randbytes(5000), 0x0115),
    (COMMITMENT_INSTANCE, 1, nested(4096), 0x0115),
    (COMMITMENT_INSTANCE, 1, nested(100000), 0x0213),
    (COMMITMENT_INSTANCE, 1, None, 0x0115),
], ids=["instance", "event", "transaction", "reference", "noise", "nested", "long", "empty"])
def test_invalid_reports_are_refused(server, instance, event, data, status):
    with Raw(server.port) as raw:
        raw.associate([(COMMITMENT, [IMPLICIT])], roles=[(COMMITMENT, 0, 1)])
        raw.command(1, command(N_EVENT_REPORT, 1, COMMITMENT, instance, data_set=data is not None, x1002=event))
        if data is not None:
            raw.data_set(1, data)
        assert raw.status() == status
        raw.release()
    assert not server.lines_of("committed")
