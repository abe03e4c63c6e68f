"""C-FIND and C-MOVE to archives: Orthanc, dcmqrscp, and faulty peers."""

import contextlib
import os
import subprocess
import threading

import pydicom
import pydicom.misc
import pynetdicom
import pytest
from pydicom.dataset import Dataset
from pydicom.uid import ImplicitVRLittleEndian, generate_uid
from pynetdicom import build_context

from conftest import BIN, Peer, free_port, orthanc, phantom, storescp, storescu

FIND, MOVE = "1.2.840.10008.5.1.4.1.2.2.1", "1.2.840.10008.5.1.4.1.2.2.2"
PENDING, SUCCESS, CANCELLED, SOME_FAILED, DESTINATION_UNKNOWN, NO_RESOURCES = 0xFF00, 0, 0xFE00, 0xB000, 0xA801, 0xA702


def query(port, called, *arguments, seconds=60):
    """Returns the split lines of the output. The last but one word of a failure is its code. The archive may take
    that many seconds."""
    done = subprocess.run([BIN / "query", str(port), called, *map(str, arguments)], text=True, capture_output=True,
                          timeout=300, env={**os.environ, "NOCTULE_QUERY_SECONDS": str(seconds)})
    assert done.stderr == "" and done.returncode in (0, 1), done
    return [line.split(maxsplit=1) for line in done.stdout.splitlines()]


def rows_of(lines, word):
    return [rest.split() for first, rest in lines if first == word]


def code(lines):
    return lines[-1][0] if lines[-1][0] != "STATUS" else None


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Returns two series of one study, with accession number A-1, and one of another, A-2."""
    folder = tmp_path_factory.mktemp("study")
    uids = [generate_uid(), generate_uid()]
    for number, (accession, uid) in enumerate([("A-1", uids[0]), ("A-1", uids[0]), ("A-2", uids[1])]):
        phantom(folder / str(number), "--size", "32x32x4", "--spacing", "5,5,5")
        series = generate_uid()
        for file in (folder / str(number)).rglob("*.dcm"):
            image = pydicom.dcmread(file)
            image.StudyInstanceUID, image.SeriesInstanceUID, image.AccessionNumber = uid, series, accession
            image.SOPInstanceUID = image.file_meta.MediaStorageSOPInstanceUID = generate_uid()
            image.PatientID = accession
            image.save_as(file)
    return folder, uids


def stored(peer):
    return [pydicom.dcmread(file) for file in peer.folder.rglob("*")
            if file.is_file() and pydicom.misc.is_dicom(file)]


class Dcmqrscp(Peer):
    """DCMTK's archive with AE title ARCHIVE. It has NOCTULE at a port as move destination."""

    def __init__(self, folder, destination):
        super().__init__(folder)
        storage = self.folder / "ARCHIVE"
        storage.mkdir()
        self.config = self.folder / "dcmqrscp.cfg"
        self.config.write_text(
            f"NetworkTCPPort = {self.port}\nMaxPDUSize = 16384\nMaxAssociations = 16\n"
            f"HostTable BEGIN\nnoctule = (NOCTULE, 127.0.0.1, {destination})\nHostTable END\n"
            f"VendorTable BEGIN\nVendorTable END\n"
            f"AETable BEGIN\nARCHIVE {storage} RW (200, 1024mb) ANY\nAETable END\n")

    def command(self):
        return ["dcmqrscp", "-c", str(self.config)]


@contextlib.contextmanager
def an_orthanc(folder, destination, certificates=None, name="server"):
    """With certificates it uses TLS in both directions, and presents the certificate of that name."""
    tls = {} if certificates is None else {
        "DicomTlsEnabled": True, "DicomTlsCertificate": str(getattr(certificates, name)),
        "DicomTlsPrivateKey": str(getattr(certificates, f"{name}_key")), "DicomTlsTrustedCertificates": str(certificates.ca)}
    ours = {"AET": "NOCTULE", "Host": "127.0.0.1", "Port": destination, "UseDicomTls": bool(tls)}
    with orthanc(folder, {"DicomModalities": {"noctule": ours}, "DicomAlwaysAllowFind": True, "DicomAlwaysAllowMove": True,
                          **tls}) as peer:
        yield peer, "ORTHANC"


@contextlib.contextmanager
def a_dcmqrscp(folder, destination):
    peer = Dcmqrscp(folder, destination)
    try:
        yield peer.start(), "ARCHIVE"
    finally:
        peer.stop()


# Orthanc reports one status for all errors, also for an unknown move destination.
@pytest.mark.parametrize("archive, unknown", [(an_orthanc, "MOVE_REFUSED"), (a_dcmqrscp, "MOVE_DESTINATION_UNKNOWN")])
def test_an_archive_answers_and_sends(tmp_path, study, archive, unknown):
    folder, uids = study
    with storescp(tmp_path / "noctule") as ours, archive(tmp_path / "archive", ours.port) as (peer, title):
        storescu(peer.port, folder, called=title)
        lines = query(peer.port, title, "find", "study", "A-1")
        assert code(lines) is None
        assert [match[0] for match in rows_of(lines, "MATCH")] == [uids[0]]
        lines = query(peer.port, title, "find", "series", uids[0])
        series = rows_of(lines, "MATCH")
        assert len(series) == 2 and code(lines) is None
        assert {match[2] for match in series} == {"CT"} and {match[3] for match in series} <= {"4", "-1"}
        assert rows_of(query(peer.port, title, "find", "study", "A-3"), "MATCH") == []

        lines = query(peer.port, title, "move", "NOCTULE", uids[0], series[0][1])
        assert code(lines) is None and rows_of(lines, "MOVED")[0][1] == "4"
        got = stored(ours)
        assert len(got) == 4 and {image.SeriesInstanceUID for image in got} == {series[0][1]}

        lines = query(peer.port, title, "move", "NOBODY", uids[0], series[0][1])
        assert code(lines) == unknown and "NOBODY" in lines[-1][1]


class Liar:
    """An archive of this test. `find` and `move` are generators of its statuses and identifiers."""

    def __init__(self, find=None, move=None):
        self.port = free_port()
        self.cancelled = threading.Event()
        entity = pynetdicom.AE(ae_title="LIAR")
        entity.add_supported_context(FIND, ImplicitVRLittleEndian)
        entity.add_supported_context(MOVE, ImplicitVRLittleEndian)
        handlers = [(pynetdicom.evt.EVT_C_FIND, lambda event: find(self, event)),
                    (pynetdicom.evt.EVT_C_MOVE, lambda event: move(self, event))]
        self.server = entity.start_server(("127.0.0.1", self.port), block=False, evt_handlers=handlers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cancelled.set()
        self.server.shutdown()


def match(**elements):
    found = Dataset()
    found.QueryRetrieveLevel = "STUDY"
    for keyword, value in elements.items():
        setattr(found, keyword, value)
    return found


def test_an_unrequested_match_fails_the_query(tmp_path):
    def find(_, event):
        yield PENDING, match(StudyInstanceUID="1.2.3", AccessionNumber="A-1")
        yield PENDING, match(StudyInstanceUID="1.2.4", AccessionNumber="A-2")

    with Liar(find) as liar:
        lines = query(liar.port, "LIAR", "find", "study", "A-1")
    assert code(lines) == "FIND_FAILED" and len(rows_of(lines, "MATCH")) == 1


@pytest.mark.parametrize("status, expected", [(NO_RESOURCES, "FIND_FAILED"), (0xA900, "FIND_REFUSED"),
                                              (0xC001, "FIND_REFUSED")])
def test_a_failed_query_is_reported(status, expected):
    def find(_, event):
        yield status, None

    with Liar(find) as liar:
        lines = query(liar.port, "LIAR", "find", "study", "A-1")
    assert code(lines) == expected and f"0x{status:04X}" in lines[-1][1]


def test_a_query_is_cancelled():
    def find(liar, event):
        for number in range(10000):
            if event.is_cancelled:
                liar.cancelled.set()
                yield CANCELLED, None
                return
            yield PENDING, match(StudyInstanceUID=f"1.2.{number + 1}", AccessionNumber="A-1")

    with Liar(find) as liar:
        lines = query(liar.port, "LIAR", "find", "study", "A-1", "3")
        assert liar.cancelled.is_set()
    assert len(rows_of(lines, "MATCH")) == 3 and code(lines) is None and rows_of(lines, "STATUS") == [["0xFE00"]]


def test_an_uncancellable_query_is_aborted():
    def find(liar, event):
        number = 0
        while not liar.cancelled.is_set():
            number += 1
            yield PENDING, match(StudyInstanceUID=f"1.2.{number}", AccessionNumber="A-1")

    with Liar(find) as liar:
        lines = query(liar.port, "LIAR", "find", "study", "A-1", "3", seconds=2)
    assert len(rows_of(lines, "MATCH")) == 3 and code(lines) == "PEER_ABORTED"


def test_a_silent_archive_ends_after_a_timeout():
    def find(liar, event):
        liar.cancelled.wait()
        yield SUCCESS, None

    with Liar(find) as liar:
        lines = query(liar.port, "LIAR", "find", "study", "A-1", seconds=0.5)
    assert code(lines) == "PEER_ABORTED" and "silent" in lines[-1][1]


@pytest.mark.parametrize("accession", ["*", "A?1", "A\\B", "12345678901234567", "\xc4-1"])
def test_invalid_keys_are_refused(accession):
    with Liar(lambda *_: iter(())) as liar:
        assert code(query(liar.port, "LIAR", "find", "study", accession)) == "FIND_REFUSED"


def images(study):
    return [pydicom.dcmread(file) for file in sorted((study[0] / "0").rglob("*.dcm"))]


def test_some_of_a_series_cannot_be_sent(tmp_path, study):
    sent = images(study)
    sent[-1].SOPClassUID = "1.2.840.10008.5.1.4.1.1.4"  # a class that was not negotiated

    def move(_, event):
        yield "127.0.0.1", ours.port, {"contexts": [build_context(sent[0].SOPClassUID)], "ae_title": "STORESCP"}
        yield len(sent)
        for image in sent:
            yield PENDING, image

    with storescp(tmp_path / "noctule") as ours, Liar(move=move) as liar:
        lines = query(liar.port, "LIAR", "move", "NOCTULE", sent[0].StudyInstanceUID, sent[0].SeriesInstanceUID)
        assert len(stored(ours)) == 3
    assert code(lines) == "MOVE_INCOMPLETE" and "sent 3" in lines[-1][1] and "failed to send 1" in lines[-1][1]
    assert rows_of(lines, "STATUS") == [["0xB000"]]


def test_a_move_is_cancelled(tmp_path, study):
    sent = images(study)

    def move(liar, event):
        yield "127.0.0.1", ours.port, {"contexts": [build_context(sent[0].SOPClassUID)], "ae_title": "STORESCP"}
        yield 1000
        for number in range(1000):
            if event.is_cancelled:
                liar.cancelled.set()
                yield CANCELLED, None
                return
            yield PENDING, sent[number % len(sent)]

    with storescp(tmp_path / "noctule") as ours, Liar(move=move) as liar:
        lines = query(liar.port, "LIAR", "move", "NOCTULE", sent[0].StudyInstanceUID, sent[0].SeriesInstanceUID, "1")
        assert liar.cancelled.is_set()
    assert len(rows_of(lines, "PROGRESS")) == 1 and rows_of(lines, "STATUS") == [["0xFE00"]]


def test_an_unreachable_move_destination(study):
    image = images(study)[0]

    def move(_, event):
        yield None, None

    with Liar(move=move) as liar:
        lines = query(liar.port, "LIAR", "move", "NOCTULE", image.StudyInstanceUID, image.SeriesInstanceUID)
    assert code(lines) == "MOVE_DESTINATION_UNKNOWN" and "NOCTULE" in lines[-1][1]
