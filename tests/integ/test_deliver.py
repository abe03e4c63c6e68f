"""The sender process alone, with this test as its daemon, against correct and faulty archives."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import proto
import pydicom
import pytest
from conftest import BIN, Clock, drop, free_port, orthanc, phantom, run_program, storescp, wait_for
from pydicom.dataset import Dataset
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian
from pynetdicom import AE, evt
from pynetdicom.sop_class import SegmentationStorage, StorageCommitmentPushModel, Verification
from test_deliveries import destinations, objects, small, to_archive, to_folder, wait_states

SENT, TRANSIENT, PERMANENT, RETURNED = range(4)
NONE, REQUESTED, REFUSED = range(3)

SETTINGS = """
root = "{folder}/root";
log_level = "debug";
inbox = ();
dicom = {{ titles = ( {{ ae_title = "NOCTULE"; }} ); acse_seconds = {acse}; {tls} }};
destinations = ( {destinations} );
pipelines = ( {{ name = "ball"; segments = ( {{ label = "Ball"; method = "level-set"; range = [ 0.0, 80.0 ];
  shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} );
  category = {{ code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; }};
  type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); min_slices = 1; results = [ "seg", "rtstruct" ]; }} );
"""


def destination(name="PACS", port=0, ae_title="ARCHIVE", more="", dimse=60.0):
    return (f'{{ name = "{name}"; ae_title = "{ae_title}"; host = "127.0.0.1"; port = {port}; '
            f"connect_seconds = 60.0; dimse_seconds = {dimse}; {more} }}")


@pytest.fixture(scope="session")
def seg(tmp_path_factory):
    """Returns a result file as the pipeline writes it."""
    folder = tmp_path_factory.mktemp("result")
    config = folder / "noctule.conf"
    config.write_text(SETTINGS.format(folder=folder, acse=2.0, tls="", destinations=""))
    phantom(folder / "ct", "--size", "64x64x12")
    run_program("noctule", "--config", config, "run", "--pipeline", "ball", "--output", folder / "out", folder / "ct")
    return folder / "out" / "seg.dcm"


def data_set_bytes(path):
    """Returns the bytes after the file meta information."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<I", content, 140)
    return content[144 + length :]


class Sender:
    def __init__(self, folder, *destinations, tls="", acse=60.0, environment=None):
        self.folder = pathlib.Path(folder)
        self.config = self.folder / "courier.conf"
        self.log = self.folder / "courier.log"
        self.acse = acse
        self.configure(*destinations, tls=tls)
        self.peer = proto.Peer()
        self.deliveries = 0
        fd = self.peer.child.fileno()
        command = [BIN / "noctuled", "--role", "courier", "--slot", "0", "--config", self.config]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{fd}', "bash", *command], stderr=log,
                                            stdout=log, stdin=subprocess.DEVNULL, pass_fds=[fd],
                                            env={**os.environ, "NOCTULE_TEST_PLACE": tempfile.gettempdir(),
                                                 **(environment or {})})
        self.peer.child.close()
        hello = self.next("HELLO")
        assert hello["role"] == "courier"

    def configure(self, *destinations, tls=""):
        self.config.write_text(SETTINGS.format(folder=self.folder, acse=self.acse, tls=tls,
                                               destinations=", ".join(destinations)))

    def next(self, name, seconds=60, clock=None, **fields):
        """Returns the next unread frame of the type with these field values. Time passes on the sender's clock
        meanwhile."""
        deadline = time.monotonic() + seconds
        while True:
            for frame in self.peer.frames:
                if frame.name == name and all(frame[key] == value for key, value in fields.items()):
                    self.peer.frames.remove(frame)
                    return frame
            if time.monotonic() > deadline or self.peer.ended:
                pytest.fail(f"{name} {fields} did not come; the log:\n{self.log.read_text()[-4000:]}")
            self.peer.read(0.05)
            if clock:
                clock.pass_time(1)

    def pass_waiting(self, clock, seconds, why):
        """Lets time pass: the sender must send signs of life, and must not end a delivery."""
        clock.pass_time(seconds)
        self.next("ALIVE")
        assert "DELIVERED" not in [frame.name for frame in self.peer.frames], why

    def send(self, path, to="PACS"):
        """Requests a delivery and returns its number."""
        meta = pydicom.dcmread(path, stop_before_pixels=True).file_meta
        self.deliveries += 1
        self.peer.send("DELIVER", self.deliveries, to, "seg", str(path), "", "", meta.MediaStorageSOPClassUID,
                       meta.MediaStorageSOPInstanceUID, 0, "", "", "", 0)
        return self.deliveries

    def deliver(self, path, to="PACS", seconds=60, clock=None):
        """Requests a delivery and returns its outcome."""
        return self.next("DELIVERED", seconds, clock, delivery=self.send(path, to))

    def hang_up(self):
        """Closes the pipe, as a daemon that has ended after it read all frames."""
        self.peer.socket.shutdown(socket.SHUT_WR)
        wait_for(lambda: self.peer.read(0.05) is not None and self.peer.ended, 60, "the end of the courier")

    def drain(self):
        self.peer.send("DRAIN")
        assert self.process.wait(60) == 0, self.log.read_text()[-4000:]


@pytest.fixture
def sender(tmp_path):
    made = []

    def make(*destinations, **options):
        folder = tmp_path / f"courier{len(made)}"
        folder.mkdir()
        made.append(Sender(folder, *destinations, **options))
        return made[-1]

    yield make
    for each in made:
        if each.process.poll() is None:
            each.hang_up()
        each.peer.close()
        assert each.process.wait(60) == 0, each.log.read_text()[-4000:]
        assert "level=error" not in each.log.read_text()


class Archive:
    """A pynetdicom archive with configurable behaviour."""

    def __init__(self, status=0x0000, classes=(SegmentationStorage,), syntaxes=(ExplicitVRLittleEndian,),
                 commitment=False, commit_status=0x0000, on_store=None, titles=(), failed=False):
        self.status, self.on_store, self.commitment, self.failed = status, on_store, commitment, failed
        self.commit_status = commit_status
        self.stored, self.associations, self.requests, self.statuses = [], [], [], []
        self.ae = AE(ae_title="ARCHIVE")
        self.ae.require_calling_aet = list(titles)
        for each in classes:
            self.ae.add_supported_context(each, list(syntaxes))
        if commitment:
            self.ae.add_supported_context(StorageCommitmentPushModel)
        self.server = self.ae.start_server(
            ("127.0.0.1", 0), block=False,
            evt_handlers=[(evt.EVT_C_STORE, self.take), (evt.EVT_N_ACTION, self.promise),
                          (evt.EVT_ACCEPTED, lambda event: self.associations.append(event.assoc))])
        self.port = self.server.socket.getsockname()[1]

    def take(self, event):
        self.stored.append(event.encoded_dataset(include_meta=False))
        if self.on_store:
            self.on_store(event)
        return self.status

    def promise(self, event):
        request = event.action_information
        self.requests.append(request)
        if self.commit_status == 0x0000:
            threading.Thread(target=self.report, args=(event.assoc, request), daemon=True).start()
        return self.commit_status, None

    def report(self, association, request):
        """Reports the committed instances on the association of the request."""
        report = Dataset()
        report.TransactionUID = request.TransactionUID
        if self.failed:
            for item in request.ReferencedSOPSequence:
                item.FailureReason = 0x0112
            report.FailedSOPSequence = request.ReferencedSOPSequence
        else:
            report.ReferencedSOPSequence = request.ReferencedSOPSequence
        status, _ = association.send_n_event_report(report, 2 if self.failed else 1, StorageCommitmentPushModel,
                                                    "1.2.840.10008.1.20.1.1")
        self.statuses.append(status.get("Status"))

    def close(self):
        self.server.shutdown()


@contextlib.contextmanager
def archive(**options):
    made = Archive(**options)
    try:
        yield made
    finally:
        made.close()


# ------------------------------------------------------------------------------- successful ----


def test_storescp_gets_the_bytes_of_the_file(sender, seg, tmp_path):
    with storescp(tmp_path / "pacs") as pacs:
        one = sender(destination(port=pacs.port))
        told = one.deliver(seg)
        assert (told["outcome"], told["dimse_status"], told["code"], told["commitment"]) == (SENT, 0, "", NONE)
        (received,) = pacs.files()
        assert data_set_bytes(received) == data_set_bytes(seg)
        one.drain()


def test_an_implicit_archive_gets_the_same_values(sender, seg):
    with archive(syntaxes=(ImplicitVRLittleEndian,)) as pacs:
        told = sender(destination(port=pacs.port)).deliver(seg)
        assert (told["outcome"], told["dimse_status"]) == (SENT, 0)
        (received,) = pacs.stored
        got = pydicom.filereader.read_dataset(pydicom.filebase.DicomBytesIO(received), True, True)
        want = pydicom.dcmread(seg)
        assert got.PixelData == want.PixelData
        assert got.PerFrameFunctionalGroupsSequence == want.PerFrameFunctionalGroupsSequence
        assert [element.tag for element in got] == [element.tag for element in want]


def test_orthanc_stores_and_returns_the_result(sender, seg, tmp_path):
    with orthanc(tmp_path / "orthanc") as pacs:
        one = sender(destination(port=pacs.port, ae_title="ORTHANC"))
        assert [one.deliver(seg)["outcome"] for _ in range(2)] == [SENT, SENT]
        (instance,) = pacs.instances()
        tags = pacs.rest(f"/instances/{instance}/simplified-tags")
        assert tags["Modality"] == "SEG"
        assert tags["SOPInstanceUID"] == pydicom.dcmread(seg, stop_before_pixels=True).SOPInstanceUID
        held = pydicom.dcmread(pydicom.filebase.DicomBytesIO(pacs.file(instance)))
        assert held.PixelData == pydicom.dcmread(seg).PixelData


def test_one_association_for_many(sender, seg, tmp_path):
    clock = Clock(tmp_path)
    with archive() as pacs:
        one = sender(destination(port=pacs.port, more="idle_seconds = 60.0;"), environment=clock.environment)
        numbers = [one.send(seg) for _ in range(4)]
        assert [one.next("DELIVERED", delivery=number)["outcome"] for number in numbers] == [SENT] * 4
        assert len(pacs.associations) == 1
        (association,) = pacs.associations
        wait_for(lambda: clock.pass_time(2) or association.is_released, 60, "the release of the idle association")
        assert one.deliver(seg)["outcome"] == SENT
        assert len(pacs.associations) == 2


def test_an_association_the_peer_ended_is_replaced(sender, seg):
    with archive() as pacs:
        one = sender(destination(port=pacs.port))
        assert one.deliver(seg)["outcome"] == SENT
        pacs.associations[0].abort()
        assert one.deliver(seg)["outcome"] == SENT
        assert len(pacs.associations) == 2


# --------------------------------------------------------------------- refused ---------


@pytest.mark.parametrize("status, outcome, code", [
    (0xB000, SENT, ""), (0xB007, SENT, ""), (0x0111, SENT, ""), (0x0107, SENT, ""),
    (0xA700, TRANSIENT, "STORE_FAILED"), (0x0110, TRANSIENT, "STORE_FAILED"),
    (0xA900, PERMANENT, "STORE_REFUSED"), (0xC000, PERMANENT, "STORE_REFUSED"),
    (0x0122, PERMANENT, "STORE_REFUSED"), (0x0124, PERMANENT, "STORE_REFUSED"),
])
def test_statuses(sender, seg, status, outcome, code):
    with archive(status=status) as pacs:
        told = sender(destination(port=pacs.port)).deliver(seg)
        assert (told["outcome"], told["dimse_status"], told["code"]) == (outcome, status, code)
        assert len(pacs.stored) == 1


def test_an_archive_without_seg(sender, seg):
    with archive(classes=(Verification,)) as pacs:
        one = sender(destination(port=pacs.port))
        told = one.deliver(seg)
        assert (told["outcome"], told["dimse_status"], told["code"]) == (PERMANENT, -1, "NO_PRESENTATION_CONTEXT")


def test_an_unreachable_archive_is_a_transient_error(sender, seg):
    one = sender(destination(port=free_port()))
    told = one.deliver(seg)
    assert (told["outcome"], told["dimse_status"], told["code"]) == (TRANSIENT, -1, "PEER_UNREACHABLE")


def test_a_host_without_address(sender, seg):
    one = sender('{ name = "PACS"; ae_title = "A"; host = "no-such-host.invalid"; port = 104; }')
    told = one.deliver(seg)
    assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_UNREACHABLE")


def test_an_archive_that_rejects_the_calling_title(sender, seg):
    with archive(titles=["SOMEBODY"]) as pacs:
        told = sender(destination(port=pacs.port)).deliver(seg)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_REJECTED")
        assert "does not know Noctule's AE title. Add it there" in told["message"]


def test_orthanc_with_title_check_rejects_the_sender(sender, seg, tmp_path):
    with orthanc(tmp_path / "orthanc", {"DicomCheckCalledAet": True}) as pacs:
        told = sender(destination(port=pacs.port, ae_title="WRONG")).deliver(seg)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_REJECTED")
        assert "Correct ae_title here" in told["message"] and pacs.instances() == []


def test_a_busy_archive(sender, seg):
    with archive() as pacs:
        pacs.ae.maximum_associations = 1
        holder = AE(ae_title="HOLDER")
        holder.add_requested_context(SegmentationStorage)
        held = holder.associate("127.0.0.1", pacs.port)
        one = sender(destination(port=pacs.port))
        told = one.deliver(seg)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_BUSY")
        held.release()
        wait_for(lambda: not pacs.associations[0].is_alive(), 60, "the end of the other association")
        assert one.deliver(seg)["outcome"] == SENT


@pytest.mark.parametrize("option", ["--refuse", "--abort-after", "--abort-during"])
def test_store_failures_of_storescp_are_reported(sender, seg, tmp_path, option):
    with storescp(tmp_path / "pacs", [option]) as pacs:
        told = sender(destination(port=pacs.port)).deliver(seg)
        assert told["outcome"] in (TRANSIENT, PERMANENT)
        expected = {"--refuse": "PEER_REJECTED"}.get(option, "PEER_ABORTED")
        assert (told["code"], told["dimse_status"]) == (expected, -1)
        assert told["outcome"] == (PERMANENT if option == "--refuse" else TRANSIENT)


def test_an_abort_is_reported(sender, seg):
    with archive(on_store=lambda event: event.assoc.abort()) as pacs:
        told = sender(destination(port=pacs.port)).deliver(seg)
        assert (told["outcome"], told["code"], told["dimse_status"]) == (TRANSIENT, "PEER_ABORTED", -1)


@pytest.mark.parametrize("words", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n", b"\x02\x00\xff\xff\xff\xff" + b"x" * 4096,
                                   b"\x04\x00\x00\x00\x00\x06\x00\x00\x00\x02\x01\x03"])
def test_a_peer_that_is_no_dicom_server_is_reported(sender, seg, words):
    with socket.create_server(("127.0.0.1", 0)) as server:
        def talk():
            connection, _ = server.accept()
            connection.recv(65536)
            connection.sendall(words)
            connection.close()

        talker = threading.Thread(target=talk, daemon=True)
        talker.start()
        told = sender(destination(port=server.getsockname()[1])).deliver(seg)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_ABORTED")


def test_a_stopped_archive_is_given_up_after_a_timeout(sender, seg, tmp_path):
    """An archive stopped by SIGSTOP: the kernel accepts the connection, and no reply comes."""
    with orthanc(tmp_path / "orthanc") as pacs, storescp(tmp_path / "other") as other:
        both = destination(port=pacs.port, ae_title="ORTHANC"), destination("OTHER", other.port)
        clock = Clock(tmp_path)
        patient, one = sender(*both, acse=3600.0), sender(*both, environment=clock.environment)
        os.killpg(pacs.process.pid, signal.SIGSTOP)
        stuck = patient.send(seg)
        assert patient.deliver(seg, "OTHER")["outcome"] == SENT, "another destination held this one up"
        assert stuck not in [frame["delivery"] for frame in patient.peer.frames if frame.name == "DELIVERED"]
        number = one.send(seg)
        one.pass_waiting(clock, 30, "acse_seconds are 60")
        told = one.next("DELIVERED", clock=clock, delivery=number)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_ABORTED")
        os.killpg(pacs.process.pid, signal.SIGCONT)
        assert one.deliver(seg)["outcome"] == SENT


def test_a_missing_response_ends_after_dimse_seconds(sender, seg, tmp_path):
    """The archive receives the data set and never replies: dimse_seconds ends the wait."""
    clock, begun, given_up = Clock(tmp_path), threading.Event(), threading.Event()
    with archive(on_store=lambda event: begun.set() or given_up.wait(600)) as pacs:
        one = sender(destination(port=pacs.port), environment=clock.environment)
        number = one.send(seg)
        assert begun.wait(60)
        one.pass_waiting(clock, 30, "dimse_seconds are 60")
        told = one.next("DELIVERED", clock=clock, delivery=number)
        given_up.set()
        assert (told["outcome"], told["code"], told["dimse_status"]) == (TRANSIENT, "PEER_ABORTED", -1)


def test_a_missing_or_invalid_file_is_an_error(sender, tmp_path, seg):
    broken = tmp_path / "broken.dcm"
    broken.write_bytes(b"no DICOM")
    with archive() as pacs:
        one = sender(destination(port=pacs.port))
        for number, path, outcome, code in ((1, tmp_path / "gone.dcm", TRANSIENT, "FILE_UNREADABLE"),
                                            (2, broken, PERMANENT, "NOT_DICOM")):
            one.peer.send("DELIVER", number, "PACS", "seg", str(path), "", "", SegmentationStorage, "1.2.3", 0, "", "", "", 0)
            told = one.next("DELIVERED", delivery=number)
            assert (told["outcome"], told["code"]) == (outcome, code)
        one.deliveries = 2
        assert one.deliver(seg)["outcome"] == SENT
        assert len(pacs.associations) == 1


# ------------------------------------------------------------------------------ commitment -----


def test_commitment_on_the_same_association(sender, seg):
    with archive(commitment=True) as pacs:
        one = sender(destination(port=pacs.port, more="commit = true;"))
        told = one.deliver(seg)
        assert (told["outcome"], told["dimse_status"], told["commitment"]) == (SENT, 0, REQUESTED)
        (request,) = pacs.requests
        assert request.TransactionUID == told["transaction_uid"]
        committed = one.next("COMMITTED")
        instance = pydicom.dcmread(seg, stop_before_pixels=True).SOPInstanceUID
        assert list(committed.values()) == [0, "ARCHIVE", "PACS", told["transaction_uid"], [dict(sop_instance=instance, ok=1, failure_reason=0)]]
        wait_for(lambda: pacs.statuses == [0], 60, "the answer to the report")
        again = one.deliver(seg)
        assert again["transaction_uid"] != told["transaction_uid"]
        assert len(pacs.associations) == 1


def test_failed_commitment_is_reported(sender, seg):
    with archive(commitment=True, failed=True) as pacs:
        one = sender(destination(port=pacs.port, more="commit = true;"))
        told = one.deliver(seg)
        committed = one.next("COMMITTED")
        instance = pydicom.dcmread(seg, stop_before_pixels=True).SOPInstanceUID
        assert list(committed.values()) == [0, "ARCHIVE", "PACS", told["transaction_uid"], [dict(sop_instance=instance, ok=0, failure_reason=0x0112)]]


def test_commitment_refused(sender, seg):
    with archive(commitment=True, commit_status=0x0110) as pacs:
        told = sender(destination(port=pacs.port, more="commit = true;")).deliver(seg)
        assert (told["outcome"], told["code"], told["dimse_status"]) == (SENT, "COMMIT_FAILED", 0)
        assert (told["commitment"], told["transaction_uid"]) == (REFUSED, "")


def test_an_archive_without_commitment(sender, seg):
    with archive() as pacs:
        told = sender(destination(port=pacs.port, more="commit = true;")).deliver(seg)
        assert (told["outcome"], told["code"], told["dimse_status"]) == (SENT, "COMMIT_UNSUPPORTED", 0)
        assert (told["commitment"], told["transaction_uid"]) == (REFUSED, "")


# ------------------------------------------------------------------------------------- TLS -----


def tls_settings(certificates, name="client", more=""):
    return (f'tls = {{ certificate = "{getattr(certificates, name)}"; key = "{getattr(certificates, name + "_key")}"; '
            f'ca = "{certificates.ca}"; {more} }};')


def test_tls_both_ways(sender, seg, tmp_path, certificates):
    with storescp(tmp_path / "pacs", [*certificates.dcmtk("server"), "--require-peer-cert"]) as pacs:
        one = sender(destination(port=pacs.port, more="tls = true;"), tls=tls_settings(certificates))
        assert one.deliver(seg)["outcome"] == SENT
        (received,) = pacs.files()
        assert data_set_bytes(received) == data_set_bytes(seg)


@pytest.mark.parametrize("ours, theirs", [("stranger", "server"), ("client", "stranger")])
def test_tls_with_a_stranger(sender, seg, tmp_path, certificates, ours, theirs):
    with storescp(tmp_path / "pacs", [*certificates.dcmtk(theirs), "--require-peer-cert"]) as pacs:
        one = sender(destination(port=pacs.port, more="tls = true;"), tls=tls_settings(certificates, ours))
        told = one.deliver(seg)
        assert told["outcome"] == TRANSIENT
        assert told["code"] in ("TLS_FAILED", "PEER_ABORTED")
        assert pacs.files() == []


def test_tls_with_another_of_the_same_authority(sender, seg, tmp_path, certificates):
    """Another certificate of the same authority must not be accepted as the archive's."""
    with storescp(tmp_path / "pacs", certificates.dcmtk("elsewhere")) as pacs:
        told = sender(destination(port=pacs.port, more="tls = true;"), tls=tls_settings(certificates)).deliver(seg)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "TLS_FAILED") and "mismatch" in told["message"]
        assert pacs.files() == []
        for name, outcome in [("server", TRANSIENT), ("elsewhere", SENT)]:
            pinned = f'tls = true; certificate = "{certificates.fingerprint(name)}";'
            one = sender(destination(port=pacs.port, more=pinned), tls=tls_settings(certificates))
            assert one.deliver(seg)["outcome"] == outcome


def test_tls_with_a_revoked_certificate(sender, seg, tmp_path, certificates):
    for revoked, outcome in [("client", SENT), ("server", TRANSIENT)]:
        crl = f'crl = "{certificates.revocations(revoked)}";'
        with storescp(tmp_path / revoked, certificates.dcmtk("server")) as pacs:
            one = sender(destination(port=pacs.port, more="tls = true;"), tls=tls_settings(certificates, more=crl))
            told = one.deliver(seg)
            assert told["outcome"] == outcome
            assert outcome == SENT or (told["code"] == "TLS_FAILED" and "revoked" in told["message"])


def test_tls_with_a_revoked_authority(sender, seg, tmp_path, certificates):
    """The certificate is valid. Its issuer is revoked, or has no revocation list."""
    for crl, outcome in [(certificates.chain_revocations(), SENT), (certificates.chain_revocations("branch_ca"), TRANSIENT),
                         (certificates.revocations(), TRANSIENT)]:
        with storescp(tmp_path / crl.parent.name, certificates.dcmtk("branch")) as pacs:
            settings = tls_settings(certificates, more=f'crl = "{crl}";')
            told = sender(destination(port=pacs.port, more="tls = true;"), tls=settings).deliver(seg)
            assert (told["outcome"], told["code"]) == (outcome, "" if outcome == SENT else "TLS_FAILED"), told
            assert len(pacs.files()) == (outcome == SENT)


# ---------------------------------------------------------------------------------- folders ----


def test_a_folder(sender, seg, tmp_path):
    folder = tmp_path / "results" / "here"
    one = sender(f'{{ name = "FOLDER"; folder = "{folder}"; }}')
    instance = pydicom.dcmread(seg, stop_before_pixels=True).SOPInstanceUID
    for _ in range(2):
        told = one.deliver(seg, "FOLDER")
        assert (told["outcome"], told["dimse_status"], told["code"]) == (SENT, -1, "")
        assert [path.name for path in folder.iterdir()] == [f"{instance}.dcm"]
        assert (folder / f"{instance}.dcm").read_bytes() == seg.read_bytes()
    (folder / f"{instance}.dcm").write_bytes(b"other")
    told = one.deliver(seg, "FOLDER")
    assert (told["outcome"], told["code"]) == (PERMANENT, "FOLDER_CONFLICT")
    assert (folder / f"{instance}.dcm").read_bytes() == b"other"
    assert len(list(folder.iterdir())) == 1


def test_an_unusable_folder_is_an_error(sender, seg, tmp_path):
    (tmp_path / "file").write_text("")
    one = sender(f'{{ name = "FOLDER"; folder = "{tmp_path}/file/below"; }}')
    told = one.deliver(seg, "FOLDER")
    assert (told["outcome"], told["code"]) == (TRANSIENT, "FOLDER_UNWRITABLE")


# ---------------------------------------------------------------------------- the sender process -


def test_drain_finishes_one_and_returns_the_rest(sender, seg):
    release = threading.Event()
    begun = threading.Event()

    def wait(_event):
        begun.set()
        release.wait(600)

    with archive(on_store=wait) as pacs:
        one = sender(destination(port=pacs.port))
        numbers = [one.send(seg) for _ in range(3)]
        assert begun.wait(60)
        one.peer.send("DRAIN")
        late = one.send(seg)
        assert one.next("DELIVERED", delivery=late)["outcome"] == RETURNED
        release.set()
        told = [one.next("DELIVERED", delivery=number) for number in numbers]
        assert [each["outcome"] for each in told] == [SENT, RETURNED, RETURNED]
        assert one.process.wait(60) == 0
        assert len(pacs.stored) == 1


def test_reload_changes_destinations(sender, seg):
    with archive() as first, archive() as second:
        one = sender(destination(port=first.port))
        assert one.deliver(seg)["outcome"] == SENT
        one.configure(destination(port=second.port))
        one.peer.send("RELOAD", one.config.read_text())
        assert one.deliver(seg)["outcome"] == SENT
        assert (len(first.stored), len(second.stored)) == (1, 1)
        wait_for(lambda: first.associations[0].is_released, 60, "the release of the old association")
        one.configure()
        one.peer.send("RELOAD", one.config.read_text())
        assert one.deliver(seg)["outcome"] == RETURNED
        one.drain()


def test_the_sender_ends_with_its_pipe(sender, seg):
    begun, gone = threading.Event(), threading.Event()

    def wait(_event):
        begun.set()
        gone.wait(60)

    with archive(on_store=wait) as pacs:
        one = sender(destination(port=pacs.port))
        one.send(seg)
        assert begun.wait(60)
        one.hang_up()
        assert one.process.wait(60) == 0
        gone.set()


def test_the_sender_sends_signs_of_life(sender, seg, tmp_path):
    clock, begun, said = Clock(tmp_path), threading.Event(), threading.Event()
    with archive(on_store=lambda event: begun.set() or said.wait(600)) as pacs:
        one = sender(destination(port=pacs.port), environment=clock.environment)
        number = one.send(seg)
        assert begun.wait(60)
        one.pass_waiting(clock, 5, "the archive has not answered")
        said.set()
        assert one.next("DELIVERED", delivery=number)["outcome"] == SENT


@pytest.mark.parametrize("frame", [("RUN", 1, "x"), ("DELIVER", 1, "PACS", "seg", "relative", "", "", "1.2", "1.2", 0, "", "", "", 0),
                                   ("DELIVER", 1, "PACS", "seg", "/x", "", "", "1.2", "../../1", 0, "", "", "", 0),
                                   ("DELIVER", 1, "PACS", "images", "/x", "1.2.lung.1", "1.2", "", "", -1, "", "", "", 0),
                                   ("DELIVER", 1, "PACS", "nifti", "/x", "1.2.lung.1", "../x.nii.gz", "", "", 0, "", "", "", 0)])
def test_invalid_frames_end_the_sender(tmp_path, frame):
    one = Sender(tmp_path, destination(port=free_port()))
    one.peer.send(*frame)
    assert one.process.wait(60) == 1
    assert "courier.protocol" in one.log.read_text()


@pytest.mark.parametrize("point", ["courier_after_part", "courier_after_store"])
def test_the_next_sender_delivers_after_a_kill(daemon, tmp_path, point):
    """The next sender process delivers the current item, once."""
    once = tmp_path / "crashed"
    with storescp(tmp_path / "archive") as pacs:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "OUT", "PACS" ];',
                   extra=destinations(to_folder(tmp_path / "out"), to_archive(pacs.port)),
                   environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)}).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_for(once.exists, 60, f"the crash at {point}")
        wait_states(d, ("OUT", "SENT"), ("PACS", "SENT"))
        (copied,), (stored,) = objects(tmp_path / "out"), pacs.files()
        assert data_set_bytes(copied) == data_set_bytes(stored)
