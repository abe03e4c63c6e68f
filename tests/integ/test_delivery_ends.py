"""Daemon, sender and destination together. Destinations are real programs or misbehaving peers of this test. The row
has the right code, other destinations are served, and the object arrives once."""

import contextlib
import io
import os
import signal
import socket
import struct
import threading
import time

import pydicom
import pytest
from conftest import PEERS, Clock, echoscu, orthanc, put, storescp, wait_for
from pydicom.uid import ExplicitVRLittleEndian
from pynetdicom.sop_class import SegmentationStorage, Verification
from raw_peer import ABORT, ASSOCIATE_RQ, DATA, RELEASE_RP, RELEASE_RQ, associate_ac, command, elements_of, pdu, pdv
from test_deliver import SENT, TRANSIENT, archive, sender, data_set_bytes, destination, seg  # noqa: F401 - fixtures
from test_deliveries import DAY, destinations, objects, small, states, to_archive, to_folder, wait_states


PATIENCE = 15.0  # seconds; less than the minute after which the daemon replaces a silent sender


class Destination:
    """A destination that accepts associations and handles each C-STORE with `act(self, connection, request)`. It
    counts stored instances by SOP Instance UID. Its socket buffers are small, so that unread data stays with the
    sender."""

    def __init__(self, act=None):
        self.act = act or Destination.take
        self.stored = []
        self.server = socket.socket()
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.server.bind(("127.0.0.1", 0))
        self.server.listen()
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with contextlib.suppress(OSError, EOFError), connection:
            kind, body = read_pdu(connection)
            assert kind == ASSOCIATE_RQ
            connection.sendall(self.accept(body))
            while True:
                kind, body = read_pdu(connection)
                if kind == RELEASE_RQ:
                    connection.sendall(pdu(RELEASE_RP, bytes(4)))
                if kind in (RELEASE_RQ, ABORT):
                    return
                self.act(self, connection, body)

    def accept(self, request):
        return associate_ac(request)

    def take(self, connection, request, answer=True):
        """Reads the data set, keeps the instance, and responds with success."""
        while not ends_data_set(read_pdu(connection)[1]):
            pass
        self.stored.append(elements_of(request[6:])[0x1000].rstrip(b"\0").decode())
        if answer:
            connection.sendall(response(request))

    def close(self):
        self.server.close()


def read_exactly(connection, size, piece=65536, pause=None):
    data = b""
    while len(data) < size:
        if pause:
            pause()
        more = connection.recv(min(piece, size - len(data)))
        if not more:
            raise EOFError
        data += more
    return data


def read_pdu(connection, **how):
    kind, _, length = struct.unpack(">BBI", read_exactly(connection, 6, **how))
    return kind, read_exactly(connection, length, **how)


def ends_data_set(body):
    return body[5] == 2


def response(request, status=0x0000, message=None):
    """Returns the PDU with the response to a request (C-STORE, N-ACTION)."""
    asked = elements_of(request[6:])
    field, number = (struct.unpack("<H", asked[tag])[0] for tag in (0x0100, 0x0110))
    sop_class, instance = ((asked.get(tag) or asked[tag + 1]).rstrip(b"\0").decode() for tag in (0x0002, 0x1000))
    return pdu(DATA, pdv(request[4], 3, command(0x8000 | field, 1, sop_class, instance, data_set=False, x0900=status,
                                                x0120=number if message is None else message)))


@contextlib.contextmanager
def listening(act=None):
    made = Destination(act)
    try:
        yield made
    finally:
        made.close()


# ---- responses, and failures in place of one ----


def reads(connection):
    while not ends_data_set(read_pdu(connection)[1]):
        pass


def answers(status, kept=False):
    def act(self, connection, request):
        if kept:
            self.take(connection, request, answer=False)
        else:
            reads(connection)
        connection.sendall(response(request, status))
    return act


def closes_after_the_data(self, connection, request):
    reads(connection)
    connection.shutdown(socket.SHUT_RDWR)


def closes_in_the_middle(self, connection, request):
    connection.recv(512)
    connection.shutdown(socket.SHUT_RDWR)


def aborts_in_the_middle(self, connection, request):
    connection.recv(512)
    connection.sendall(pdu(ABORT, bytes(4)))
    connection.shutdown(socket.SHUT_WR)


def answers_for_another(self, connection, request):
    reads(connection)
    connection.sendall(response(request, message=4711))


def answers_before_the_data(self, connection, request):
    connection.sendall(response(request, 0xA700))
    reads(connection)


def stays_silent(self, connection, request):
    """Reads the request and does not respond. The clock of the service passes the dimse_seconds of impatient()."""
    reads(connection)
    self.clock.pass_time(PATIENCE + 1)
    connection.recv(1)


def run_with(daemon, tmp_path, *entries, **options):
    """Starts a daemon that sends results to each of these destinations, and drops one series."""
    names = ", ".join('"%s"' % entry.split('"')[1] for entry in entries)
    d = daemon(quiet=600.0, pipeline_extra=f"deliver = [ {names} ];", extra=destinations(*entries), **options).start()
    put(small(tmp_path / "ct"), d.inbox)
    return d


def impatient(port, more=""):
    return to_archive(port, more=more).replace("dimse_seconds = 60.0", f"dimse_seconds = {PATIENCE}")


def row(d, destination="PACS"):
    rows = d.query("SELECT * FROM v_deliveries WHERE destination = ?", destination)
    return rows[0] if rows else None


def wait_state(d, state, destination="PACS"):
    return wait_for(lambda: (found := row(d, destination)) and found["state"] == state and found, 60,
                    f"{destination} {state}")


def attempts_of(d, destination="PACS"):
    """Returns the end of each attempt, from the events: "attempt 1, status 0xA700, STORE_FAILED: ..."."""
    return [event["detail"] for event in d.query(
        "SELECT e.* FROM v_events e JOIN v_deliveries v ON v.delivery = e.delivery WHERE v.destination = ? "
        "AND e.kind IN ('DELIVERY_SENT', 'DELIVERY_DELAYED', 'DELIVERY_FAILED') ORDER BY e.event", destination)]


@pytest.mark.parametrize("act, code, words", [
    (answers(0xA700), "STORE_FAILED", "status 0xA700"), (answers(0x0110), "STORE_FAILED", "status 0x0110"),
    (closes_after_the_data, "PEER_ABORTED", "aborted, or closed"),
    (closes_in_the_middle, "PEER_ABORTED", "aborted, or closed"),
    (aborts_in_the_middle, "PEER_ABORTED", "aborted, or closed"),
    (answers_for_another, "PEER_ABORTED", "does not match the request"),
    (stays_silent, "PEER_ABORTED", "silent for too long"),
], ids=["out of resources", "processing failure", "closes after the data", "closes in the middle", "aborts in the middle",
        "another message", "silence"])
def test_transient_errors_are_retried(daemon, tmp_path, act, code, words):
    """A transient error is retried without a delay for other destinations. After recovery the destination receives
    the object once."""
    with listening(act) as ill:
        ill.clock = Clock(tmp_path)
        d = run_with(daemon, tmp_path, impatient(ill.port), to_folder(tmp_path / "out"), environment=ill.clock.environment)
        wait_for(lambda: len(attempts_of(d)) >= 2, 60, "two attempts")
        assert all(code in each and words in each for each in attempts_of(d)), attempts_of(d)
        wait_state(d, "SENT", "OUT")
        assert row(d)["state"] in ("DELAYED", "SENDING") and row(d)["sent_at"] is None
        ill.act = Destination.take
        sent = wait_state(d, "SENT")
        assert (sent["code"], sent["dimse_status"], ill.stored) == ("", 0, [sent["sop_instance_uid"]])
        assert sent["attempts"] == len(attempts_of(d)) and len(objects(tmp_path / "out")) == 1


@pytest.mark.parametrize("status", [0xB000, 0xB006, 0x0107, 0x0111])
def test_a_warning_is_sent(daemon, tmp_path, status):
    with listening(answers(status, kept=True)) as pacs:
        d = run_with(daemon, tmp_path, to_archive(pacs.port), to_folder(tmp_path / "out"))
        sent = wait_state(d, "SENT")
        assert (sent["code"], sent["dimse_status"], sent["attempts"]) == ("", status, 1)
        wait_state(d, "SENT", "OUT")
        assert pacs.stored == [sent["sop_instance_uid"]]


@pytest.mark.parametrize("status", [0xA900, 0xC123, 0x0122])
def test_permanent_errors_are_retried_only_by_command(daemon, tmp_path, status):
    with listening(answers(status)) as ill:
        d = run_with(daemon, tmp_path, to_archive(ill.port), to_folder(tmp_path / "out"))
        failed = wait_state(d, "FAILED")
        assert (failed["code"], failed["dimse_status"], failed["attempts"]) == ("STORE_REFUSED", status, 1)
        wait_state(d, "SENT", "OUT")
        ill.act = Destination.take
        d.ctl("resend", failed["delivery"])
        wait_state(d, "SENT")
        assert ill.stored == [failed["sop_instance_uid"]]


def test_a_second_response_is_ignored(daemon, tmp_path):
    """The second response must be ignored. It must not be taken for the response to the next object."""
    def act(self, connection, request):
        self.take(connection, request)
        connection.sendall(response(request, 0xC000))

    with listening(act) as twice:
        d = run_with(daemon, tmp_path, to_archive(twice.port), to_folder(tmp_path / "out"))
        wait_state(d, "SENT")
        put(small(tmp_path / "other", seed=2), d.inbox / "other")
        wait_states(d, *2 * [("PACS", "SENT"), ("OUT", "SENT")])
        rows = d.query("SELECT * FROM v_deliveries WHERE destination = 'PACS'")
        assert [(each["code"], each["dimse_status"], each["attempts"]) for each in rows] == 2 * [("", 0, 1)]
        assert set(twice.stored) == {each["sop_instance_uid"] for each in rows}


def test_an_answer_before_the_data(daemon, tmp_path):
    """The archive refuses before the data set has been sent. Its status counts, and its association continues."""
    with listening(answers_before_the_data) as hasty:
        d = run_with(daemon, tmp_path, to_archive(hasty.port), to_folder(tmp_path / "out"))
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert "status 0xA700, STORE_FAILED" in attempts_of(d)[0]
        hasty.act = Destination.take
        sent = wait_state(d, "SENT")
        wait_state(d, "SENT", "OUT")
        assert hasty.stored == [sent["sop_instance_uid"]]


# ---- real archives ----


def test_a_result_waits_until_its_ae_title_is_accepted(daemon, tmp_path):
    """A first day: Orthanc has another AE title. The result waits, an alert names the remedy, and it is sent without
    a command."""
    with orthanc(tmp_path / "orthanc", {"DicomCheckCalledAet": True}) as pacs:
        d = run_with(daemon, tmp_path, to_archive(pacs.port))
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert "PEER_REJECTED" in attempts_of(d)[0] and row(d)["state"] != "FAILED"
        told = wait_for(lambda: "it has another AE title. Correct ae_title here" in (text := d.ctl("status", check=False).stdout) and text,
                        60, "the alert")
        assert "rejects us by an AE title; 1 result waits for it" in told or "destination PACS is down" in told
        d.config.write_text(d.config.read_text().replace('ae_title = "ARCHIVE"', 'ae_title = "ORTHANC"'))
        d.process.send_signal(signal.SIGHUP)
        wait_state(d, "SENT")
        assert "rejects us" not in d.ctl("status", check=False).stdout and len(pacs.instances()) == 1


@pytest.mark.parametrize("option, state, code", [
    ("--refuse", "FAILED", "PEER_REJECTED"), ("--abort-after", "DELAYED", "PEER_ABORTED"),
    ("--abort-during", "DELAYED", "PEER_ABORTED"),
])
def test_a_restarted_storescp_receives_the_result(daemon, tmp_path, option, state, code):
    with storescp(tmp_path / "archive", [option]) as archive:
        d = run_with(daemon, tmp_path, to_archive(archive.port), to_folder(tmp_path / "out"))
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert code in attempts_of(d)[0] and (state == "FAILED") == (row(d)["state"] == "FAILED")
        wait_state(d, "SENT", "OUT")
        archive.stop()
        for file in archive.files():
            file.unlink()
        archive.options.clear()
        archive.start()
        if state == "FAILED":
            d.ctl("resend", row(d)["delivery"])
        sent = wait_state(d, "SENT")
        (file,) = archive.files()
        assert pydicom.dcmread(file).SOPInstanceUID == sent["sop_instance_uid"]
        assert data_set_bytes(file) == data_set_bytes(d.root / sent["path"])


@pytest.mark.parametrize("kind", ["storescp", "Orthanc"])
def test_a_stopped_archive_receives_the_result_after_it_continues(daemon, tmp_path, kind):
    """An archive stopped by SIGSTOP accepts connections and does not reply. After SIGCONT it receives the requests
    that were given up."""
    start = {"storescp": storescp, "Orthanc": orthanc}[kind]
    clock = Clock(tmp_path)
    with start(tmp_path / "archive") as archive:
        os.killpg(archive.process.pid, signal.SIGSTOP)
        d = run_with(daemon, tmp_path, to_archive(archive.port, ae_title="ORTHANC"), to_folder(tmp_path / "out"),
                     dicom=f"acse_seconds = {PATIENCE};", environment=clock.environment)
        wait_for(lambda: clock.pass_time(1) or len(attempts_of(d)) >= 2, 60, "two attempts")
        assert all("PEER_ABORTED" in each and "silent for too long" in each for each in attempts_of(d))
        wait_state(d, "SENT", "OUT")
        os.killpg(archive.process.pid, signal.SIGCONT)
        sent = wait_state(d, "SENT")
        held = [file.read_bytes() for file in archive.files()] if kind == "storescp" else list(
            map(archive.file, archive.instances()))
        assert [pydicom.dcmread(io.BytesIO(each)).SOPInstanceUID for each in held] == [sent["sop_instance_uid"]]


def test_an_archive_killed_between_two_results(daemon, tmp_path):
    """The archive is killed between two results. The second result waits for its restart, and both are stored once."""
    with storescp(tmp_path / "archive") as archive:
        d = run_with(daemon, tmp_path, to_archive(archive.port, more="idle_seconds = 600.0;"),
                     to_folder(tmp_path / "out"))
        wait_state(d, "SENT")
        archive.stop()
        put(small(tmp_path / "other", seed=2), d.inbox / "other")
        wait_for(lambda: len(attempts_of(d)) >= 2, 60, "an attempt at the second")
        assert "PEER_" in attempts_of(d)[1]
        wait_for(lambda: states(d).count(("OUT", "SENT")) == 2, 60, "what goes elsewhere")
        archive.start()
        wait_for(lambda: states(d).count(("PACS", "SENT")) == 2, 60, "the second")
        uids = {each["sop_instance_uid"] for each in d.query("SELECT * FROM v_deliveries")}
        assert {pydicom.dcmread(file).SOPInstanceUID for file in archive.files()} == uids
        assert len(archive.files()) == len(uids) == 2


def test_stopped_children_are_replaced(daemon, tmp_path):
    """Children stopped by SIGSTOP: the daemon kills them after a minute of silence, and new children do the work."""
    clock, given_up = Clock(tmp_path), threading.Event()
    with listening(lambda *_: given_up.wait(600)) as slow:
        d = run_with(daemon, tmp_path, to_archive(slow.port).replace("dimse_seconds = 60.0", "dimse_seconds = 3600.0"),
                     to_folder(tmp_path / "out"), dicom=PEERS, environment=clock.environment)
        wait_state(d, "SENT", "OUT")
        wait_state(d, "SENDING")
        children = set(d.children())
        assert len(children) == 4  # receiver, worker and one sender per destination
        for pid in children:
            os.kill(pid, signal.SIGSTOP)
        slow.act = Destination.take
        given_up.set()
        put(small(tmp_path / "other", seed=2), d.inbox / "other")
        clock.pass_time(61)
        wait_for(lambda: children.isdisjoint(d.children()), 200, "the end of all four")
        wait_states(d, *2 * [("PACS", "SENT"), ("OUT", "SENT")])
        assert "COURIER_DIED" in attempts_of(d)[0] and len(objects(tmp_path / "out")) == 2
        assert sorted(slow.stored) == sorted(each["sop_instance_uid"] for each in d.query(
            "SELECT * FROM v_deliveries WHERE destination = 'PACS'"))
        echoscu(d.port)


def test_a_refused_sop_class_is_sent_after_it_is_accepted(daemon, tmp_path):
    with archive(classes=(Verification,)) as pacs:
        d = run_with(daemon, tmp_path, to_archive(pacs.port), to_folder(tmp_path / "out"))
        failed = wait_state(d, "FAILED")
        assert (failed["code"], failed["dimse_status"], failed["attempts"]) == ("NO_PRESENTATION_CONTEXT", None, 1)
        wait_state(d, "SENT", "OUT")
        pacs.ae.add_supported_context(SegmentationStorage, ExplicitVRLittleEndian)
        pacs.server.contexts = pacs.ae.supported_contexts
        d.ctl("resend", failed["delivery"])
        wait_state(d, "SENT")
        assert len(pacs.stored) == 1


# ---- deliveries age only while they are tried ----


@pytest.mark.parametrize("how", ["destination", "queue", "down"])
def test_held_deliveries_are_not_given_up(daemon, tmp_path, how):
    """A delivery that is held, or not tried because the service is down, does not age. It is given up after an hour
    of tries."""
    clock = Clock(tmp_path)
    hold = {"destination": ("--destination", "PACS"), "queue": ("--queue",)}.get(how)
    with storescp(tmp_path / "archive") as away:
        away.stop()
        d = daemon(quiet=600.0, pipeline_extra='deliver = [ "PACS" ];', environment=clock.environment,
                   extra="delivery = { retry_seconds = 0.2; retry_max_seconds = 0.5; breaker_failures = 99; "
                         f"give_up_seconds = 3600.0; }};\ndestinations = ( {to_archive(away.port)} );\n").start()
        put(small(tmp_path / "ct"), d.inbox)
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        if hold:
            d.ctl("hold", *hold)
        assert d.stop() == 0
        clock.jump(DAY)  # as if the service were down for a day
        before = len(attempts_of(d))
        d.start()
        if hold:
            d.ctl("release", *hold)
        wait_for(lambda: len(attempts_of(d)) > before, 60, "another attempt")
        assert row(d)["state"] != "FAILED", attempts_of(d)
        away.start()
        wait_state(d, "SENT")
        assert len(away.files()) == 1


# ---- throughput of a destination ----


def slowly(piece, clock, seconds):
    """Reads that many bytes at a time. Before each piece, while the sender waits, the sender's clock moves by these
    seconds."""
    def pause():
        time.sleep(0.01)  # until the sender waits again, because only its waits count
        clock.pass_time(seconds)

    def act(self, connection, request):
        while not ends_data_set(read_pdu(connection, piece=piece, pause=pause)[1]):
            pass
        connection.sendall(response(request))
    return act


@pytest.fixture(scope="session")
def large(seg, tmp_path_factory):
    """Returns a result larger than all socket buffers together."""
    dataset = pydicom.dcmread(seg)
    dataset.PixelData = bytes(256 << 10)
    path = tmp_path_factory.mktemp("large") / "large.dcm"
    dataset.save_as(path)
    return path


@pytest.mark.parametrize("floor, outcome, code", [(1, SENT, ""), (0, SENT, ""), (500, TRANSIENT, "PEER_ABORTED")])
def test_a_slow_destination(sender, large, tmp_path, floor, outcome, code):
    """The destination reads 32 KiB per second of the sender's clock. An earlier version expected 128 KiB within
    dimse_seconds."""
    clock = Clock(tmp_path)
    with listening(slowly(2048, clock, 1 / 16)) as slow:
        one = sender(destination(port=slow.port, dimse=3.0, more=f"min_kib_per_second = {floor}.0;"),
                      environment=clock.environment)
        told = one.deliver(large, seconds=60)
        assert (told["outcome"], told["code"]) == (outcome, code), told
        assert outcome == SENT or "too slow" in told["message"]


def test_a_destination_that_reads_one_byte_per_second(daemon, tmp_path):
    """The sender gives up this destination and retries later. Other destinations are served meanwhile."""
    clock = Clock(tmp_path)
    crawl = slowly(1, clock, 1.0)

    def act(self, connection, request):
        (crawl if self.crawls else Destination.take)(self, connection, request)

    with listening(act) as slow:
        slow.crawls = True
        d = run_with(daemon, tmp_path, impatient(slow.port), to_folder(tmp_path / "out"), environment=clock.environment)
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert "PEER_ABORTED" in attempts_of(d)[0] and "too slow" in attempts_of(d)[0]
        wait_state(d, "SENT", "OUT")
        assert not slow.stored
        slow.crawls = False
        wait_states(d, ("PACS", "SENT"), ("OUT", "SENT"))
        assert len(slow.stored) == 1 and len(objects(tmp_path / "out")) == 1
