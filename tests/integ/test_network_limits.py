"""Each limit of docs/conformance.md for a peer, reached and exceeded: at the limit the operation succeeds, and one
beyond it has the documented effect. The service and its sender are the real ones, and the peers send given bytes."""

import contextlib
import pathlib
import re
import select
import socket
import struct

import pytest
from conftest import PEERS, SOURCE, Clock, echoscu, wait_for
from pynetdicom import AE, build_context
from raw_peer import (ABORT, ASSOCIATE_AC, ASSOCIATE_RJ, COMMITMENT, COMMITMENT_INSTANCE, CT, DATA, IMPLICIT, MR, SEG,
                      VERIFICATION, Raw, associate_ac, associate_rq, command, elements_of, item, nested, pdu, pdv)
from test_deliver import archive
from test_deliveries import to_archive
from test_delivery_ends import (Destination, answers, attempts_of, listening, read_pdu, reads, response, run_with,
                                wait_state)
from test_hostile_peers import even
from test_hostile_peers import element as tagged
from test_receive import receiver  # noqa: F401 - a fixture
from test_scp import client_context

LIMITS = {name: int(most) for name, most in re.findall(
    r"^LIMIT\((\w+), (\d+),", (SOURCE / "base" / "limits.def").read_text(), re.MULTILINE)}
BUSY = b"\0\2\3\2"
C_STORE, C_ECHO, N_EVENT_REPORT = 0x0001, 0x0030, 0x0100
MISMATCH = 0xA900


def filler(size):
    """Returns items of an association request without meaning, with that many bytes together."""
    made = b""
    while size:
        part = min(size, 60000)
        part = part if size - part == 0 or size - part >= 4 else part - 4
        made += item(0x77, bytes(part - 4))
        size -= part
    return made


def filled(request, size):
    """Returns the A-ASSOCIATE-RQ or -AC, extended until its value has that many bytes."""
    return pdu(request[0], request[6:] + filler(size - (len(request) - 6)))


def ended_with(d, code):
    d.wait_log(f"code={code}")
    echoscu(d.port)


# ---- callers ----


@pytest.mark.parametrize("beyond", [0, 1])
def test_bytes_of_a_request(receiver, certificates, beyond):
    """One limit of conformance.md, with TLS and without. The log names it."""
    d = receiver(PEERS, certificates=certificates)
    request = associate_rq([(CT, [IMPLICIT])], calling="PYNETDICOM")
    for raw in (Raw(d.tls_port, tls=client_context(certificates, "client")), Raw(d.port)):
        with raw, contextlib.suppress(ConnectionError):
            raw.send(filled(request, 262144 + beyond))
            if beyond:
                assert raw.ends() in (ABORT, None)
            else:
                assert raw.pdu()[0] == ASSOCIATE_AC
        if beyond:
            ended_with(d, "ASSOCIATION_INVALID")
            assert "the association request has 262145 bytes, and the limit is 262144" in d.log.read_text()


def test_all_contexts_with_all_transfer_syntaxes(receiver):
    """The maximum of 128 presentation contexts with 21 transfer syntaxes each is over 64 KiB. An unknown caller's
    request is rejected for its title."""
    d = receiver(PEERS)
    for title, accepted in (("PYNETDICOM", True), ("STRANGER", False)):
        entity = AE(ae_title=title)
        syntaxes = ["1.2.840.10008.1.2", *[f"1.2.840.10008.1.2.4.{number}" for number in [*range(50, 67), 70, 80, 81]]]
        entity.requested_contexts = [build_context(CT, syntaxes) for _ in range(128)]
        # each is an item with a header of 4 bytes
        assert len(syntaxes) == 21 and 128 * 21 * (4 + len(syntaxes[-1])) > 65536
        association = entity.associate("127.0.0.1", d.port, ae_title="NOCTULE")
        assert association.is_established == accepted and association.is_rejected != accepted
        if accepted:
            assert len(association.accepted_contexts) == 128
            association.release()


def test_incomplete_long_requests_use_no_more_threads_than_handshakes(receiver):
    """At most half of max_associations are read at a time per host. Complete requests are served meanwhile."""
    d = receiver(PEERS + " max_associations = 4;")
    request = filled(associate_rq([(CT, [IMPLICIT])], calling="PYNETDICOM"), 200_000)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(Raw(d.port)).send(request[:5000])
        echoscu(d.port)
        threads = len(list(pathlib.Path(f"/proc/{d.children('intake')[0]}/task").iterdir()))
        assert threads < 20, threads


def echo_of(size):
    """Returns a C-ECHO with a command set of that many bytes."""
    plain = command(C_ECHO, 1, VERIFICATION, data_set=False)
    return command(C_ECHO, 1, VERIFICATION, data_set=False, x5000=bytes(size - len(plain) - 8))


@pytest.mark.parametrize("name, right, wrong", [
    ("COMMAND_BYTES", lambda most: [(3, echo_of(most))], lambda most: [(3, echo_of(most + 2))]),
    ("EMPTY_FRAGMENTS", lambda most: most * [(1, b"")] + [(3, echo_of(200))],
     lambda most: (most + 1) * [(1, b"")] + [(3, echo_of(200))]),
], ids=["bytes", "empty fragments"])
def test_a_command_set(receiver, name, right, wrong):
    d = receiver()
    with Raw(d.port) as raw:
        raw.associate([(VERIFICATION, [IMPLICIT])], calling="PYNETDICOM")
        for flags, data in right(LIMITS[name]):
            raw.send(pdu(DATA, pdv(1, flags, data)))
        assert raw.status() == 0
        with contextlib.suppress(ConnectionError):
            for flags, data in wrong(LIMITS[name]):
                raw.send(pdu(DATA, pdv(1, flags, data)))
        assert raw.ends() in (ABORT, None)
    ended_with(d, "ASSOCIATION_INVALID")


def sequences(depth):
    """Returns that many nested sequences of undefined length."""
    end = struct.pack("<HHI", 0xFFFE, 0xE00D, 0) + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
    return nested(depth) + depth * end


def report(more=b"", reference=b""):
    return (tagged(0x0008, 0x1195, even("1.2.3.4")) + tagged(0x0008, 0x1199, tagged(
        0xFFFE, 0xE000, tagged(0x0008, 0x1150, even(SEG)) + tagged(0x0008, 0x1155, even("1.2.3")) + reference)) + more)


def padded_report(size):
    return report(tagged(0x0009, 0x1001, bytes(size - len(report()) - 8)))


@pytest.mark.parametrize("right, wrong, status", [
    (padded_report(LIMITS["REPORT_BYTES"]), padded_report(LIMITS["REPORT_BYTES"] + 2), 0x0213),
    (report(reference=sequences(LIMITS["REPORT_DEPTH"] - 1)), report(reference=sequences(LIMITS["REPORT_DEPTH"])),
     0x0115),
], ids=["bytes", "depth"])
def test_a_commitment_report(receiver, right, wrong, status):
    d = receiver()
    with Raw(d.port) as raw:
        raw.associate([(COMMITMENT, [IMPLICIT])], calling="PYNETDICOM", roles=[(COMMITMENT, 0, 1)])
        for data, expected in ((right, 0), (wrong, status), (right, 0)):
            raw.command(1, command(N_EVENT_REPORT, 1, COMMITMENT, COMMITMENT_INSTANCE, x1002=1))
            raw.data_set(1, data)
            assert raw.status() == expected
        raw.release()


def test_a_refused_data_set_is_read_up_to_its_limit(receiver):
    """The data set has another class than its context. It is read to its end for the sake of the response, but no
    further than this limit."""
    d = receiver()
    piece = pdu(DATA, pdv(1, 0, bytes(65536)))
    whole = (LIMITS["DROPPED_MIB"] << 20) // 65536
    with Raw(d.port) as raw:
        raw.associate([(CT, [IMPLICIT])], calling="PYNETDICOM")
        for beyond in (0, 1):
            raw.command(1, command(C_STORE, 1, MR, "1.2.3", x0700=0))
            with contextlib.suppress(ConnectionError):
                for _ in range(whole - (not beyond)):
                    raw.send(piece)
                raw.send(pdu(DATA, pdv(1, 2, bytes(65536 if not beyond else 2))))
            if not beyond:
                assert raw.status() == MISMATCH
        assert raw.ends() in (ABORT, None)
    ended_with(d, "INSTANCE_TOO_LARGE")


# ---- numbers and times ----


def called(d, calling="PYNETDICOM", context=VERIFICATION):
    """Returns a connection after its association request, and the response."""
    raw = Raw(d.port)
    raw.send(associate_rq([(context, [IMPLICIT])], calling=calling))
    kind, body = raw.pdu()
    assert kind == ASSOCIATE_AC or (kind, body) == (ASSOCIATE_RJ, BUSY)
    return raw, kind == ASSOCIATE_AC


@pytest.mark.parametrize("settings, calling, most", [
    ('max_associations = 3; peers = ( { ae_title = "PYNETDICOM"; } );', "PYNETDICOM", 3),
    ("max_associations = 5; " + PEERS, "PYNETDICOM", 3),
    ('max_associations = 4; peers = ( { ae_title = "TWIN"; }, { ae_title = "TWIN"; }, { ae_title = "OTHER"; } );',
     "TWIN", 2),
    ('max_associations = 4; peers = ( { ae_title = "TWIN"; max_associations = 1; }, '
     '{ ae_title = "TWIN"; max_associations = 1; } );', "TWIN", 1),
    ("max_associations = 8; echo_from_anybody = true; " + PEERS, "STRANGER", 2),
], ids=["all", "half", "identical peers", "identical peers with a limit", "strangers a quarter"])
def test_associations_at_a_time(receiver, settings, calling, most):
    d = receiver(settings)
    with contextlib.ExitStack() as stack:
        for _ in range(most):
            raw, taken = called(d, calling)
            stack.enter_context(raw)
            assert taken
        raw, taken = called(d, calling)
        assert not taken and raw.ends() is None
        raw.socket.close()

    def room():
        raw, taken = called(d, calling)
        raw.socket.close()
        return taken

    wait_for(room, 60, "the end of those before")


def has_news(raw):
    """Returns whether there is data to read, or the end."""
    return bool(select.select([raw.socket], [], [], 0)[0])


def test_time_between_messages_and_within_one(receiver, tmp_path):
    """A silent peer between two messages has idle_seconds, and one within a message dimse_seconds."""
    clock = Clock(tmp_path)
    d = receiver("dimse_seconds = 30.0; idle_seconds = 3600.0; " + PEERS, environment=clock.environment)
    idle, _ = called(d, context=CT)
    stuck, _ = called(d, context=CT)
    with idle, stuck:
        stuck.command(1, command(C_STORE, 1, CT, "1.2.3", x0700=0))
        wait_for(lambda: clock.pass_time(1) or has_news(stuck), 60, "the end of the one within a message")
        assert stuck.ends() in (ABORT, None)
        ended_with(d, "ASSOCIATION_TIMEOUT")
        idle.release()
    d = receiver("dimse_seconds = 3600.0; idle_seconds = 30.0; " + PEERS, environment=clock.environment)
    idle, _ = called(d, context=CT)
    stuck, _ = called(d, context=CT)
    with idle, stuck:
        stuck.command(1, command(C_STORE, 1, CT, "1.2.3", x0700=0))
        wait_for(lambda: clock.pass_time(1) or has_news(idle), 60, "the end of the one between messages")
        assert idle.ends() in (ABORT, None)
        ended_with(d, "ASSOCIATION_TIMEOUT")
        stuck.data_set(1, b"")
        assert stuck.status() != 0  # refused, because it is no image, after it was read to its end


# ---- destinations ----


def answered_with(more):
    """Sends a C-STORE. The destination sends the given bytes before its response, or the given data set with it."""
    def act(self, connection, request):
        reads(connection)
        more(connection, request)
        self.stored.append(request)
    return act


def is_store(request):
    return elements_of(request[6:])[0x0100] == struct.pack("<H", C_STORE)


def with_data_set(size):
    """Returns a response with a data set. Each fragment counts 6 bytes more."""
    def more(connection, request):
        answer = bytearray(response(request))
        at = bytes(answer).index(struct.pack("<HHI", 0, 0x0800, 2)) + 8
        answer[at:at + 2] = b"\1\0"
        connection.sendall(bytes(answer))
        for _ in range(size // 16384 - 1):
            connection.sendall(pdu(DATA, pdv(request[4], 0, bytes(16378))))
        connection.sendall(pdu(DATA, pdv(request[4], 2, bytes(16378 + size % 16384))))
    return more


@pytest.mark.parametrize("beyond", [0, 1])
def test_bytes_of_a_data_set_in_answer(daemon, tmp_path, beyond):
    act = answered_with(with_data_set(LIMITS["ANSWER_BYTES"] + beyond))
    with listening(act) as talker:
        d = run_with(daemon, tmp_path, to_archive(talker.port))
        if beyond:
            wait_for(lambda: attempts_of(d), 60, "an attempt")
            assert "PEER_ABORTED" in attempts_of(d)[0] and "too long" in attempts_of(d)[0]
        else:
            assert wait_state(d, "SENT")["attempts"] == 1


@pytest.mark.parametrize("beyond", [0, 1])
def test_reports_before_an_answer(daemon, tmp_path, beyond):
    def more(connection, request):
        context = 5  # the third requested context
        for _ in range(LIMITS["REPORTS"] + beyond):
            event = command(N_EVENT_REPORT, 1, COMMITMENT, COMMITMENT_INSTANCE, x1002=1)
            connection.sendall(pdu(DATA, pdv(context, 3, event)) + pdu(DATA, pdv(context, 2, report())))
            read_pdu(connection)
        connection.sendall(response(request))

    take = answered_with(more)
    with listening(lambda *told: (take if is_store(told[2]) else answers(0x0000))(*told)) as talker:
        d = run_with(daemon, tmp_path, to_archive(talker.port, more="commit = true;"))
        if beyond:
            wait_for(lambda: attempts_of(d), 60, "an attempt")
            assert "PEER_ABORTED" in attempts_of(d)[0] and "too many commitment reports" in attempts_of(d)[0]
        else:
            wait_for(lambda: talker.stored, 60, "all reports")
            assert wait_state(d, "SENT")["dimse_status"] == 0


@pytest.mark.parametrize("beyond", [0, 1])
def test_bytes_of_an_answer_to_a_request(daemon, tmp_path, beyond):
    class Talker(Destination):
        def accept(self, body):
            return filled(associate_ac(body), LIMITS["REQUEST_BYTES"] + beyond)

    with contextlib.closing(Talker()) as talker:
        d = run_with(daemon, tmp_path, to_archive(talker.port))
        if beyond:
            wait_for(lambda: attempts_of(d), 60, "an attempt")
            assert "PEER_ABORTED" in attempts_of(d)[0] and "does not speak DICOM" in attempts_of(d)[0]
        else:
            assert wait_state(d, "SENT")["attempts"] == 1


def test_time_for_a_connection(daemon, tmp_path):
    """No process accepts, and the kernel's queue of connections is full: connect_seconds."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as stack:
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        entry = to_archive(full.getsockname()[1]).replace("connect_seconds = 60.0", "connect_seconds = 0.5")
        d = run_with(daemon, tmp_path, entry)
        wait_for(lambda: attempts_of(d), 60, "an attempt")
        assert "PEER_UNREACHABLE" in attempts_of(d)[0] and "timed out" in attempts_of(d)[0]


def test_time_for_a_commitment(daemon, tmp_path):
    """The archive accepts the request and never reports: commit_seconds. Then the object is sent again."""
    with archive(commitment=True, commit_status=0x0107) as forgetful:
        d = run_with(daemon, tmp_path, to_archive(forgetful.port, more="commit = true; commit_seconds = 0.5;"))
        wait_for(lambda: any("COMMITMENT_TIMEOUT" in each for each in attempts_of(d)), 60, "the end of patience")
        wait_for(lambda: len(forgetful.stored) >= 2, 60, "the next attempt")
