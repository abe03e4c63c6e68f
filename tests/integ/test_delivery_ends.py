"""
Both ends of a delivery against each other: daemon and courier as they run, and destinations that are real programs or
of our own making, of every temper. The row has the right code, what goes elsewhere goes on, and it arrives once.
"""

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
from test_deliver import SENT, TRANSIENT, archive, courier, data_set_bytes, destination, seg  # noqa: F401 - fixtures
from test_deliveries import DAY, destinations, objects, small, states, to_archive, to_folder, wait_states


PATIENCE = 15.0  # seconds; less than the minute after which the daemon would replace a silent courier


class Destination:
    """
    A destination that takes associations as every other, and does with each C-STORE as `act(self, connection, request)`
    says; what it has stored is counted by SOP Instance UID. Its buffers are small: what it has not read has not gone.
    """

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
        """Reads the data set, keeps the instance, and answers success."""
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
    """What answers the request (C-STORE, N-ACTION) in this PDU."""
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


# ---- what it answers, or does instead ----


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


def says_nothing(self, connection, request):
    """Reads the request and does not answer; the clock of the service passes the dimse_seconds of impatient()."""
    reads(connection)
    self.clock.pass_time(PATIENCE + 1)
    connection.recv(1)


def run_with(daemon, tmp_path, *entries, **options):
    """A daemon whose results go to each of these destinations; one series is on its way."""
    names = ", ".join('"%s"' % entry.split('"')[1] for entry in entries)
    d = daemon(quiet=600.0, pipeline_extra=f"deliver = [ {names} ];", extra=destinations(*entries), **options).start()
    put(small(tmp_path / "ct"), d.inbox)
    return d


def impatient(port, more=""):
    return to_archive(port, more=more).replace("dimse_seconds = 60.0", f"dimse_seconds = {PATIENCE}")


def row(d, destination="PACS"):
    rows = d.query("SELECT * FROM v_deliveries WHERE destination = ?", destination)
    return rows[0] if rows else None


def settled(d, state, destination="PACS"):
    return wait_for(lambda: (found := row(d, destination)) and found["state"] == state and found, 60,
                    f"{destination} {state}")


def attempts_of(d, destination="PACS"):
    """How each attempt ended, from the events: "attempt 1, status 0xA700, STORE_FAILED: ..."."""
    return [event["detail"] for event in d.query(
        "SELECT e.* FROM v_events e JOIN v_deliveries v ON v.delivery = e.delivery WHERE v.destination = ? "
        "AND e.kind IN ('DELIVERY_SENT', 'DELIVERY_DELAYED', 'DELIVERY_FAILED') ORDER BY e.event", destination)]


@pytest.mark.parametrize("act, code, words", [
    (answers(0xA700), "STORE_FAILED", "status 0xA700"), (answers(0x0110), "STORE_FAILED", "status 0x0110"),
    (closes_after_the_data, "PEER_ABORTED", "aborted, or closed"),
    (closes_in_the_middle, "PEER_ABORTED", "aborted, or closed"),
    (aborts_in_the_middle, "PEER_ABORTED", "aborted, or closed"),
    (answers_for_another, "PEER_ABORTED", "does not match the request"),
    (says_nothing, "PEER_ABORTED", "silent for too long"),
], ids=["out of resources", "processing failure", "closes after the data", "closes in the middle", "aborts in the middle",
        "another message", "silence"])
def test_what_passes_is_tried_again(daemon, tmp_path, act, code, words):
    """For as long as the destination is ill it is tried, and nothing else waits for it; well again, it gets it once."""
    with listening(act) as ill:
        ill.clock = Clock(tmp_path)
        d = run_with(daemon, tmp_path, impatient(ill.port), to_folder(tmp_path / "out"), environment=ill.clock.environment)
        wait_for(lambda: len(attempts_of(d)) >= 2, 60, "two attempts")
        assert all(code in each and words in each for each in attempts_of(d)), attempts_of(d)
        settled(d, "SENT", "OUT")
        assert row(d)["state"] in ("DELAYED", "SENDING") and row(d)["sent_at"] is None
        ill.act = Destination.take
        sent = settled(d, "SENT")
        assert (sent["code"], sent["dimse_status"], ill.stored) == ("", 0, [sent["sop_instance_uid"]])
        assert sent["attempts"] == len(attempts_of(d)) and len(objects(tmp_path / "out")) == 1


@pytest.mark.parametrize("status", [0xB000, 0xB006, 0x0107, 0x0111])
def test_a_warning_is_sent(daemon, tmp_path, status):
    with listening(answers(status, kept=True)) as pacs:
        d = run_with(daemon, tmp_path, to_archive(pacs.port), to_folder(tmp_path / "out"))
        sent = settled(d, "SENT")
        assert (sent["code"], sent["dimse_status"], sent["attempts"]) == ("", status, 1)
        settled(d, "SENT", "OUT")
        assert pacs.stored == [sent["sop_instance_uid"]]


@pytest.mark.parametrize("status", [0xA900, 0xC123, 0x0122])
def test_what_lasts_is_not_tried_again_unless_somebody_says_so(daemon, tmp_path, status):
    with listening(answers(status)) as ill:
        d = run_with(daemon, tmp_path, to_archive(ill.port), to_folder(tmp_path / "out"))
        failed = settled(d, "FAILED")
        assert (failed["code"], failed["dimse_status"], failed["attempts"]) == ("STORE_REFUSED", status, 1)
        settled(d, "SENT", "OUT")
        ill.act = Destination.take
        d.ctl("resend", failed["delivery"])
        settled(d, "SENT")
        assert ill.stored == [failed["sop_instance_uid"]]


def test_what_answers_twice(daemon, tmp_path):
    """The second answer belongs to nothing, and not to what is sent next."""
    def act(self, connection, request):
        self.take(connection, request)
        connection.sendall(response(request, 0xC000))

    with listening(act) as twice:
        d = run_with(daemon, tmp_path, to_archive(twice.port), to_folder(tmp_path / "out"))
        settled(d, "SENT")
        put(small(tmp_path / "other", seed=2), d.inbox / "other")
        wait_states(d, *2 * [("PACS", "SENT"), ("OUT", "SENT")])
        rows = d.query("SELECT * FROM v_deliveries WHERE destination = 'PACS'")
        assert [(each["code"], each["dimse_status"], each["attempts"]) for each in rows] == 2 * [("", 0, 1)]
        assert set(twice.stored) == {each["sop_instance_uid"] for each in rows}


def test_an_answer_before_the_data(daemon, tmp_path):
    """It knows already that it will not take it: what it says counts, and its association goes on."""
    with listening(answers_before_the_data) as hasty:
        d = run_with(daemon, tmp_path, to_archive(hasty.port), to_folder(tmp_path / "out"))
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert "status 0xA700, STORE_FAILED" in attempts_of(d)[0]
        hasty.act = Destination.take
        sent = settled(d, "SENT")
        settled(d, "SENT", "OUT")
        assert hasty.stored == [sent["sop_instance_uid"]]


# ---- real archives ----


def test_an_ae_title_that_is_not_entered_yet(daemon, tmp_path):
    """A first day: Orthanc has another AE title. The result waits, an alert says what to do, and nobody has to resend it."""
    with orthanc(tmp_path / "orthanc", {"DicomCheckCalledAet": True}) as pacs:
        d = run_with(daemon, tmp_path, to_archive(pacs.port))
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert "PEER_REJECTED" in attempts_of(d)[0] and row(d)["state"] != "FAILED"
        told = wait_for(lambda: "it has another AE title. Correct ae_title here" in (text := d.ctl("status", check=False).stdout) and text,
                        60, "the alert")
        assert "rejects us by an AE title; 1 result waits for it" in told or "destination PACS is down" in told
        d.config.write_text(d.config.read_text().replace('ae_title = "ARCHIVE"', 'ae_title = "ORTHANC"'))
        d.process.send_signal(signal.SIGHUP)
        settled(d, "SENT")
        assert "rejects us" not in d.ctl("status", check=False).stdout and len(pacs.instances()) == 1


@pytest.mark.parametrize("option, state, code", [
    ("--refuse", "FAILED", "PEER_REJECTED"), ("--abort-after", "DELAYED", "PEER_ABORTED"),
    ("--abort-during", "DELAYED", "PEER_ABORTED"),
])
def test_a_storescp_that_fails_and_comes_back(daemon, tmp_path, option, state, code):
    with storescp(tmp_path / "archive", [option]) as archive:
        d = run_with(daemon, tmp_path, to_archive(archive.port), to_folder(tmp_path / "out"))
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert code in attempts_of(d)[0] and (state == "FAILED") == (row(d)["state"] == "FAILED")
        settled(d, "SENT", "OUT")
        archive.stop()
        for file in archive.files():
            file.unlink()
        archive.options.clear()
        archive.start()
        if state == "FAILED":
            d.ctl("resend", row(d)["delivery"])
        sent = settled(d, "SENT")
        (file,) = archive.files()
        assert pydicom.dcmread(file).SOPInstanceUID == sent["sop_instance_uid"]
        assert data_set_bytes(file) == data_set_bytes(d.root / sent["path"])


@pytest.mark.parametrize("kind", ["storescp", "Orthanc"])
def test_an_archive_that_stands_still(daemon, tmp_path, kind):
    """SIGSTOP: the kernel takes the connection, and nobody answers; then it goes on, and finds what was given up."""
    start = {"storescp": storescp, "Orthanc": orthanc}[kind]
    clock = Clock(tmp_path)
    with start(tmp_path / "archive") as archive:
        os.killpg(archive.process.pid, signal.SIGSTOP)
        d = run_with(daemon, tmp_path, to_archive(archive.port, ae_title="ORTHANC"), to_folder(tmp_path / "out"),
                     dicom=f"acse_seconds = {PATIENCE};", environment=clock.environment)
        wait_for(lambda: clock.pass_time(1) or len(attempts_of(d)) >= 2, 60, "two attempts")
        assert all("PEER_ABORTED" in each and "silent for too long" in each for each in attempts_of(d))
        settled(d, "SENT", "OUT")
        os.killpg(archive.process.pid, signal.SIGCONT)
        sent = settled(d, "SENT")
        held = [file.read_bytes() for file in archive.files()] if kind == "storescp" else list(
            map(archive.file, archive.instances()))
        assert [pydicom.dcmread(io.BytesIO(each)).SOPInstanceUID for each in held] == [sent["sop_instance_uid"]]


def test_an_archive_that_goes_away_with_an_association_open(daemon, tmp_path):
    """Between two results its process is killed: the second waits for it, and both are there once."""
    with storescp(tmp_path / "archive") as archive:
        d = run_with(daemon, tmp_path, to_archive(archive.port, more="idle_seconds = 600.0;"),
                     to_folder(tmp_path / "out"))
        settled(d, "SENT")
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


def test_children_that_stand_still_are_replaced(daemon, tmp_path):
    """SIGSTOP: the daemon kills children that are silent for a minute; the next ones do the work."""
    clock, given_up = Clock(tmp_path), threading.Event()
    with listening(lambda *_: given_up.wait(600)) as slow:
        d = run_with(daemon, tmp_path, to_archive(slow.port).replace("dimse_seconds = 60.0", "dimse_seconds = 3600.0"),
                     to_folder(tmp_path / "out"), dicom=PEERS, environment=clock.environment)
        settled(d, "SENT", "OUT")
        settled(d, "SENDING")
        children = set(d.children())
        assert len(children) == 4  # intake, worker and a courier for each destination
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


def test_an_archive_that_refuses_the_class_and_then_takes_it(daemon, tmp_path):
    with archive(classes=(Verification,)) as pacs:
        d = run_with(daemon, tmp_path, to_archive(pacs.port), to_folder(tmp_path / "out"))
        failed = settled(d, "FAILED")
        assert (failed["code"], failed["dimse_status"], failed["attempts"]) == ("NO_PRESENTATION_CONTEXT", None, 1)
        settled(d, "SENT", "OUT")
        pacs.ae.add_supported_context(SegmentationStorage, ExplicitVRLittleEndian)
        pacs.server.contexts = pacs.ae.supported_contexts
        d.ctl("resend", failed["delivery"])
        settled(d, "SENT")
        assert len(pacs.stored) == 1


# ---- what is not tried grows no older ----


@pytest.mark.parametrize("how", ["destination", "queue", "down"])
def test_what_is_not_tried_is_not_given_up(daemon, tmp_path, how):
    """Held, or with the service down, for a day: it is given up after an hour of trying."""
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
        clock.jump(DAY)  # as a day passes for a service that is down
        before = len(attempts_of(d))
        d.start()
        if hold:
            d.ctl("release", *hold)
        wait_for(lambda: len(attempts_of(d)) > before, 60, "another attempt")
        assert row(d)["state"] != "FAILED", attempts_of(d)
        away.start()
        settled(d, "SENT")
        assert len(away.files()) == 1


# ---- how fast it takes what is sent ----


def slowly(piece, clock, seconds):
    """Takes so many bytes at a time. Before each piece, while the sender waits, its clock moves by these seconds."""
    def pause():
        time.sleep(0.01)  # until the sender waits again: it counts the time that it waits
        clock.pass_time(seconds)

    def act(self, connection, request):
        while not ends_data_set(read_pdu(connection, piece=piece, pause=pause)[1]):
            pass
        connection.sendall(response(request))
    return act


@pytest.fixture(scope="session")
def large(seg, tmp_path_factory):
    """A result that fills no socket's buffers with all of itself."""
    dataset = pydicom.dcmread(seg)
    dataset.PixelData = bytes(256 << 10)
    path = tmp_path_factory.mktemp("large") / "large.dcm"
    dataset.save_as(path)
    return path


@pytest.mark.parametrize("floor, outcome, code", [(1, SENT, ""), (0, SENT, ""), (500, TRANSIENT, "PEER_ABORTED")])
def test_a_slow_destination(courier, large, tmp_path, floor, outcome, code):
    """32 KiB per second of its clock: the sender once wanted 128 KiB within dimse_seconds."""
    clock = Clock(tmp_path)
    with listening(slowly(2048, clock, 1 / 16)) as slow:
        one = courier(destination(port=slow.port, dimse=3.0, more=f"min_kib_per_second = {floor}.0;"),
                      environment=clock.environment)
        told = one.deliver(large, seconds=60)
        assert (told["outcome"], told["code"]) == (outcome, code), told
        assert outcome == SENT or "too slow" in told["message"]


def test_a_destination_that_takes_a_byte_a_second(daemon, tmp_path):
    """It is left, and tried again later; what goes elsewhere goes on."""
    clock = Clock(tmp_path)
    crawl = slowly(1, clock, 1.0)

    def act(self, connection, request):
        (crawl if self.crawls else Destination.take)(self, connection, request)

    with listening(act) as slow:
        slow.crawls = True
        d = run_with(daemon, tmp_path, impatient(slow.port), to_folder(tmp_path / "out"), environment=clock.environment)
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert "PEER_ABORTED" in attempts_of(d)[0] and "too slow" in attempts_of(d)[0]
        settled(d, "SENT", "OUT")
        assert not slow.stored
        slow.crawls = False
        wait_states(d, ("PACS", "SENT"), ("OUT", "SENT"))
        assert len(slow.stored) == 1 and len(objects(tmp_path / "out")) == 1
