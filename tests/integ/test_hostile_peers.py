"""Limits on the cost of a peer: callers and destinations that nest, stall, flood or never end."""

import contextlib
import re
import select
import socket
import struct
import threading

import pytest
from conftest import PEERS, Clock, drop, echoscu, run_program, wait_for
from raw_peer import (ABORT, ASSOCIATE_RJ, ASSOCIATE_RQ, COMMITMENT, COMMITMENT_INSTANCE, CT, DATA, EXPLICIT, IMPLICIT,
                      RELEASE_RP, RELEASE_RQ, SEG, VERIFICATION, Raw, associate_ac, associate_rq, command, nested, pdu, pdv)
from test_deliver import TRANSIENT, archive, sender, destination, seg  # noqa: F401 - fixtures
from test_deliveries import deliveries, destinations, small, to_archive, wait_states
from test_receive import SERIES, parts, receiver, slice_bytes, small_file_system, stored, uid  # noqa: F401 - a fixture
from test_scp import client_context

N_EVENT_REPORT = 0x0100
ENHANCED_CT = "1.2.840.10008.5.1.4.1.1.2.1"


def element(group, number, value):
    return struct.pack("<HHI", group, number, len(value)) + value


def even(uid):
    return uid.encode() + b"\0" * (len(uid) % 2)


class Liar:
    """A destination that accepts every context and answers the first message with these PDUs."""

    def __init__(self, answer):
        self.answer = answer
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                with contextlib.suppress(OSError, EOFError), connection:
                    self.talk(connection)

    def talk(self, connection):
        kind, body = self.read(connection)
        assert kind == ASSOCIATE_RQ
        connection.sendall(associate_ac(body))
        kind, body = self.read(connection)
        connection.sendall(self.answer)
        while kind not in (ABORT, RELEASE_RQ):
            kind, body = self.read(connection)
        if kind == RELEASE_RQ:
            connection.sendall(pdu(RELEASE_RP, bytes(4)))

    @staticmethod
    def read(connection):
        def exactly(size):
            data = b""
            while len(data) < size:
                more = connection.recv(size - len(data))
                if not more:
                    raise EOFError
                data += more
            return data

        kind, _, length = struct.unpack(">BBI", exactly(6))
        return kind, exactly(length)

    def close(self):
        self.server.close()


@contextlib.contextmanager
def liar(answer):
    made = Liar(answer)
    try:
        yield made
    finally:
        made.close()


def message(command_set, data=None, context=1, piece=16000):
    """Returns the message as PDUs."""
    pieces = [command_set[at:at + piece] for at in range(0, len(command_set), piece)]
    whole = b"".join(pdu(DATA, pdv(context, 3 if each is pieces[-1] else 1, each)) for each in pieces)
    if data is not None:
        pieces = [data[at:at + piece] for at in range(0, len(data), piece)]
        whole += b"".join(pdu(DATA, pdv(context, 2 if each is pieces[-1] else 0, each)) for each in pieces)
    return whole


# ---- nesting ----


def test_a_nested_report_does_not_crash_the_receiver(receiver):
    """16 KB of nested sequences once crashed the receiver: the parser recursed in a thread with a stack of 1 MiB."""
    d = receiver()
    intake = d.children("intake")
    for depth in (1000, 4000):
        with Raw(d.port) as raw:
            raw.associate([(COMMITMENT, [IMPLICIT])], calling="STORESCU", roles=[(COMMITMENT, 0, 1)])
            raw.command(1, command(N_EVENT_REPORT, 1, COMMITMENT, COMMITMENT_INSTANCE, x1002=1))
            raw.data_set(1, nested(depth))
            assert raw.status() == 0x0115
            raw.release()
    echoscu(d.port)
    assert d.children("intake") == intake


NESTED_ANSWERS = {
    "response": message(command(0x8001, 1, x0120=1, x0900=0), nested(81250)),
    "command": message(element(0x0000, 0x0002, nested(81250)) + command(0x8001, 1)),
    "nested command": message(nested(81250)),
    "report": message(command(N_EVENT_REPORT, 1, COMMITMENT, COMMITMENT_INSTANCE, x1002=1), nested(4000)),
    "long report": message(command(N_EVENT_REPORT, 1, COMMITMENT, COMMITMENT_INSTANCE, x1002=1), nested(81250)),
}


@pytest.mark.parametrize("answer", NESTED_ANSWERS.values(), ids=NESTED_ANSWERS)
def test_a_nested_response_does_not_crash_the_sender(sender, seg, answer):
    """1.3 MB of nested sequences from a destination once crashed the sender, and with it all deliveries."""
    with liar(answer) as one:
        sending = sender(destination(port=one.port, dimse=1.0), '{ name = "OUT"; folder = "%s"; }' % seg.parent)
        told = sending.deliver(seg)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_ABORTED")
        assert sending.process.poll() is None
        assert sending.deliver(seg)["outcome"] == TRANSIENT


def test_a_nested_answer_does_not_end_echo(tmp_path):
    with liar(message(command(0x8030, 1, x0120=1, x0900=0), nested(81250))) as one:
        config = tmp_path / "noctule.conf"
        config.write_text(f'root = "{tmp_path}/root"; destinations = ( {destination(port=one.port)} );')
        done = run_program("noctule", "--config", config, "echo", "PACS", check=False)
        assert done.returncode == 1 and "PEER_ABORTED" in done.stderr, (done.returncode, done.stderr)


# ---- floods, slow peers and data sets without an end ----


@contextlib.contextmanager
def flood(strangers, once):
    """Calls repeatedly from that many threads, and counts the calls."""
    stop, counts = threading.Event(), [0] * strangers

    def call(number):
        held = []
        while not stop.is_set():
            with contextlib.suppress(OSError, EOFError):
                held.append(once())
            counts[number] += 1
            if len(held) > 50:
                held.pop(0).socket.close()
        for raw in held:
            raw.socket.close()

    threads = [threading.Thread(target=call, args=(i,), daemon=True) for i in range(strangers)]
    for thread in threads:
        thread.start()
    yield counts
    stop.set()
    for thread in threads:
        thread.join()


def test_unknown_callers_do_not_displace_a_peer(receiver):
    """Of 40 calls of a peer 32 once got "busy", while unknown peers called 51 times per second."""
    d = receiver("max_associations = 4; " + PEERS)

    def rejected():
        raw = Raw(d.port, timeout=60)
        raw.send(associate_rq([(CT, [IMPLICIT])], calling="STRANGER"))
        kind, body = raw.pdu()
        assert (kind, body) == (ASSOCIATE_RJ, b"\0\1\1\3")
        return raw  # the caller keeps it open

    with flood(4, rejected) as counts:
        wait_for(lambda: sum(counts) > 100, 60, "a flood")
        for _ in range(40):
            with Raw(d.port) as raw:
                raw.associate([(VERIFICATION, [IMPLICIT])], calling="ECHOSCU")
                raw.command(1, command(0x0030, 1, VERIFICATION, data_set=False))
                assert raw.status() == 0
                raw.release()


def test_a_peer_may_call_again_right_after_release(receiver):
    """The peer's connection still exists. An earlier version answered the third call with "busy"."""
    d = receiver("max_associations = 4; " + PEERS)
    released = []
    for _ in range(4):
        raw = Raw(d.port)
        raw.associate([(VERIFICATION, [IMPLICIT])], calling="ECHOSCU")
        raw.release()
        released.append(raw)
    for raw in released:
        raw.socket.close()


def test_unknown_callers_with_a_certificate_do_not_displace_a_peer(receiver, certificates):
    d = receiver("max_associations = 4; " + PEERS, certificates=certificates)
    tls = client_context(certificates, "client")

    def rejected():
        raw = Raw(d.tls_port, tls=tls, timeout=60)
        raw.send(associate_rq([(CT, [IMPLICIT])], calling="STRANGER"))
        assert raw.pdu() == (ASSOCIATE_RJ, b"\0\1\1\3")
        return raw

    with flood(3, rejected) as counts:
        wait_for(lambda: sum(counts) > 5, 60, "a flood")
        for _ in range(5):
            with Raw(d.tls_port, tls=tls) as raw:
                raw.associate([(VERIFICATION, [IMPLICIT])], calling="ECHOSCU")


def test_a_trickling_peer_is_limited_in_associations_and_time(receiver, tmp_path):
    """An earlier version held an association for as long as a byte arrived now and then."""
    clock = Clock(tmp_path)
    d = receiver("max_associations = 4; dimse_seconds = 30.0; " + PEERS, environment=clock.environment)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(Raw(d.port)) for _ in range(2)]
        for raw in held:
            raw.associate([(CT, [IMPLICIT])], calling="STORESCU")
            raw.command(1, command(0x0001, 1, CT, "1.2.3", x0700=0))
        third = stack.enter_context(Raw(d.port))
        third.send(associate_rq([(CT, [IMPLICIT])], calling="STORESCU"))
        assert third.pdu() == (ASSOCIATE_RJ, b"\0\2\3\2")
        echoscu(d.port)
        trickle = pdu(DATA, pdv(1, 0, bytes(16000)))
        ended, sent = set(), 0

        def trickles():
            nonlocal sent
            for raw in held:
                with contextlib.suppress(OSError):
                    raw.send(trickle[sent:sent + 1])
                if select.select([raw.socket], [], [], 0)[0]:
                    ended.add(raw)
            sent += 1
            clock.pass_time(1)
            return len(ended) == 2

        wait_for(trickles, 60, "the end of both")
    d.wait_log("ASSOCIATION_TIMEOUT")


def sent_until_ended(raw):
    """Sends a data set without an end. Returns the number of bytes sent, and the last PDU received."""
    part, sent = pdu(DATA, pdv(1, 0, bytes(65536))), 0
    with contextlib.suppress(OSError):
        while True:
            raw.send(part)
            sent += 65536
    with contextlib.suppress(OSError):
        return sent, raw.ends()
    return sent, None


def test_a_data_set_without_an_end_is_ended(receiver):
    d = receiver("max_instance_mib = 2; " + PEERS)
    with Raw(d.port) as raw:
        raw.associate([(CT, [IMPLICIT])], calling="STORESCU")
        raw.command(1, command(0x0001, 1, CT, "1.2.3", x0700=0))
        sent, _ = sent_until_ended(raw)
    assert sent < 32 << 20  # includes the socket buffers
    wait_for(lambda: "INSTANCE_TOO_LARGE" in d.log.read_text() and not parts(d), 60, "its end")
    echoscu(d.port)


def test_the_reserve_holds_while_a_file_is_received(daemon, tmp_path):
    """An earlier version used up the reserve of the disk, then read and dropped the rest: 21.8 GB."""
    with small_file_system(tmp_path / "daemon0", 96):
        d = daemon(dicom=PEERS, quiet=600.0)
        d.config.write_text(re.sub("min_free_mib = [0-9.]+", "min_free_mib = 48.0", d.config.read_text()))
        d.start()
        with Raw(d.port) as raw:
            raw.associate([(CT, [IMPLICIT])], calling="STORESCU")
            raw.command(1, command(0x0001, 1, CT, "1.2.3", x0700=0))
            sent, _ = sent_until_ended(raw)
        assert sent < 400 << 20
        wait_for(lambda: "DISK_FULL" in d.log.read_text() and not parts(d), 60, "its end")
        echoscu(d.port)
        d.kill_all()


# ---- work without a recipient ----


def implicit(group, number, value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<HHI", group, number, len(value) + len(value) % 2) + value + b" " * (len(value) % 2)


def laborious_image(instance, series):
    """A valid enhanced CT image within every limit. Its header takes a second of CPU time to read."""
    def item(content):
        return implicit(0xFFFE, 0xE000, content)

    frames, padding = 3500, item(b"") * 1000
    shared = item(implicit(0x0020, 0x9116, item(implicit(0x0020, 0x0037, "1\\0\\0\\0\\1\\0")))
                  + implicit(0x0028, 0x9110, item(implicit(0x0018, 0x0050, "1") + implicit(0x0028, 0x0030, "1\\1"))))
    own = b"".join(item(implicit(0x0020, 0x9113, item(implicit(0x0020, 0x0032, f"0\\0\\{z}")) + padding))
                   for z in range(frames))
    numbers = [(0x0028, 0x0002, 1), (0x0028, 0x0010, 1), (0x0028, 0x0011, 1), (0x0028, 0x0100, 16), (0x0028, 0x0101, 16),
               (0x0028, 0x0102, 15), (0x0028, 0x0103, 1)]
    elements = {(group, number): struct.pack("<H", value) for group, number, value in numbers} | {
        (0x0008, 0x0008): "ORIGINAL\\PRIMARY", (0x0008, 0x0016): even(ENHANCED_CT), (0x0008, 0x0018): even(instance),
        (0x0008, 0x0060): "CT", (0x0020, 0x000D): even("1.2.3"), (0x0020, 0x000E): even(series),
        (0x0020, 0x0052): even("1.2.3.4"), (0x0028, 0x0004): "MONOCHROME2", (0x0028, 0x0008): str(frames),
        (0x5200, 0x9229): shared, (0x5200, 0x9230): own, (0x7FE0, 0x0010): bytes(2 * frames)}
    return b"".join(implicit(*tag, elements[tag]) for tag in sorted(elements))


@pytest.mark.parametrize("leaves", ["abort", "close", "stay"])
@pytest.mark.parametrize("secure", [False, True], ids=["", "tls"])
def test_reading_stops_when_its_sender_disconnects(receiver, certificates, secure, leaves):
    """The sender disconnects while its header is read. The reader must stop instead of finishing."""
    d = receiver(PEERS, certificates=certificates)
    tls = client_context(certificates, "client") if secure else None
    with Raw(d.tls_port if secure else d.port, tls=tls, timeout=60) as raw:
        raw.associate([(CT, [EXPLICIT]), (ENHANCED_CT, [IMPLICIT])], calling="STORESCU")
        assert raw.store(1, CT, uid(1), slice_bytes(1)) == 0
        raw.command(3, command(0x0001, 2, ENHANCED_CT, "2.25.2", x0700=0))
        data = laborious_image("2.25.2", SERIES)
        last = pdu(DATA, pdv(3, 2, data[-1000:]))
        raw.data_set(3, data[:-1000], last=False, fragment=16000)
        raw.send(last + pdu(ABORT, bytes(4)) if leaves == "abort" else last)
        if leaves == "stay":
            assert raw.status() == 0
            raw.release()
    if leaves == "stay":
        assert len(stored(d)) == 2
        return
    (row,) = wait_for(lambda: d.query("SELECT * FROM v_quarantine"), 60, "the note that it was not stored")
    assert (row["code"], row["sop_instance_uid"]) == ("NOT_RECEIVED", "2.25.2") and "broke the association" in row["message"]
    assert len(stored(d)) == 1 and "level=error" not in d.log.read_text()
    wait_for(lambda: not parts(d), 60, "an empty incoming/")
    echoscu(d.port)


# ---- trust ----


def test_only_the_destination_can_commit(daemon, tmp_path):
    """Only a configured destination may commit. An earlier version accepted a commitment from any peer."""
    # a warning: the archive accepts the request and never reports
    with archive(commitment=True, commit_status=0x0107) as pacs:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                   dicom='peers = ( { ae_title = "ARCHIVE"; }, { ae_title = "OTHER"; } );',
                   extra=destinations(to_archive(pacs.port, more="commit = true;"))).start()
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("PACS", "SENT"))
        (delivery,) = deliveries(d)
        report = (element(0x0008, 0x1195, even(delivery["transaction_uid"]))
                  + element(0x0008, 0x1199, element(0xFFFE, 0xE000, element(0x0008, 0x1150, even(SEG))
                                                    + element(0x0008, 0x1155, even(delivery["sop_instance_uid"])))))
        for calling, commitment in [("OTHER", "REQUESTED"), ("ARCHIVE", "COMMITTED")]:
            with Raw(d.port) as raw:
                raw.associate([(COMMITMENT, [IMPLICIT])], calling=calling, roles=[(COMMITMENT, 0, 1)])
                raw.command(1, command(N_EVENT_REPORT, 1, COMMITMENT, COMMITMENT_INSTANCE, x1002=1))
                raw.data_set(1, report)
                assert raw.status() == 0
                raw.release()
            assert deliveries(d)[0]["commitment"] == commitment
        d.wait_log("commitment.disbelieved")
