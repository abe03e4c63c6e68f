"""Delivery by STOW-RS: the sender, with this test as its daemon, to Orthanc's DICOMweb plugin and to a server with
wrong answers, errors and a foreign identity. Only instances that the response lists as stored count as delivered."""

import contextlib
import email.parser
import email.policy
import http.server
import json
import pathlib
import socket
import ssl
import threading
import time

import pydicom
import pytest
from conftest import drop, orthanc, run_program, wait_for
from test_deliver import PERMANENT, SENT, SETTINGS, TRANSIENT, sender, seg  # noqa: F401 - fixtures
from test_deliveries import destinations, objects, small, to_folder, wait_states

PLUGIN = pathlib.Path("/usr/share/orthanc/plugins/libOrthancDicomWeb.so")
PATH = "/dicom-web/studies"


def by_stow(url, name="WEB", more="", seconds=60.0):
    return f'{{ name = "{name}"; stow = "{url}"; connect_seconds = 60.0; dimse_seconds = {seconds}; {more} }}'


def item(uid, **more):
    return {"00081150": {"vr": "UI", "Value": ["1.2.840.10008.5.1.4.1.1.66.4"]}, "00081155": {"vr": "UI", "Value": [uid]},
            **{tag: {"vr": "US", "Value": [number]} for tag, number in more.items()}}


def stored(uid, **more):
    return json.dumps({"00081190": {"vr": "UR", "Value": ["http://elsewhere/"]},
                       "00081199": {"vr": "SQ", "Value": [item(uid, **more)]}})


def failed(uid, reason, others=()):
    return json.dumps({"00081199": {"vr": "SQ", "Value": [item(other) for other in others]},
                       "00081198": {"vr": "SQ", "Value": [item(uid, **{"00081197": reason})]}})


def xml(uid, sequence, reason=None):
    number = f'<DicomAttribute tag="00081197" vr="US"><Value number="1">{reason}</Value></DicomAttribute>' if reason else ""
    return (f'<?xml version="1.0"?><NativeDicomModel><DicomAttribute tag="{sequence}" vr="SQ"><Item number="1">'
            f'<DicomAttribute tag="00081155" vr="UI"><Value number="1"> {uid} </Value></DicomAttribute>{number}'
            "</Item></DicomAttribute></NativeDicomModel>")


class Service:
    """A service that keeps received parts, and responds with `answer(service, uid)`: (status, body, headers...)."""

    def __init__(self, answer=None, tls=None):
        self.answer = answer or (lambda service, uid: (200, stored(uid)))
        self.requests, self.bodies, self.connections = [], [], set()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                service.connections.add(self.client_address)
                service.requests.append(self.headers)
                given = service.answer(service, None)
                if given and given[0] == "before":
                    return given[1](self)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if body.startswith(b"--nothing--"):
                    return self.reply(400, "")
                service.bodies.append(part_of(self.headers["Content-Type"], body))
                with pydicom_bytes(service.bodies[-1]) as dataset:
                    uid = dataset.SOPInstanceUID
                given = service.answer(service, uid)
                if callable(given[0]):
                    return given[0](self)
                return self.reply(*given)

            def reply(self, status, body, headers=()):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}{PATH}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def pydicom_bytes(content):
    yield pydicom.dcmread(pydicom.filebase.DicomBytesIO(content), stop_before_pixels=True)


def part_of(content_type, body):
    """Returns the only part of a multipart body, by Python's own parser."""
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    assert message.get_content_type() == "multipart/related" and message.get_param("type") == "application/dicom"
    (part,) = message.get_payload()
    assert part.get_content_type() == "application/dicom"
    # Python decodes binary parts in its own way, so the bytes are taken between the first empty line and the last
    # boundary.
    boundary = b"--" + message.get_boundary().encode()
    assert body.startswith(boundary + b"\r\n") and body.endswith(b"\r\n" + boundary + b"--\r\n") and body.count(boundary) == 2
    return body[body.index(b"\r\n\r\n") + 4:-len(boundary) - 6]


@pytest.fixture
def service():
    made = []

    def make(*arguments, **options):
        made.append(Service(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@contextlib.contextmanager
def web_archive(folder, options=None):
    with orthanc(folder, {"Plugins": [str(PLUGIN)], "DicomWeb": {"Enable": True, "Root": "/dicom-web/"}, **(options or {})}) as peer:
        yield peer


# --------------------------------------------------------------------------------- an archive


def test_orthanc_stores_the_bytes_unchanged(sender, seg, tmp_path):  # noqa: F811
    with web_archive(tmp_path / "orthanc") as archive:
        to = sender(by_stow(f"http://127.0.0.1:{archive.http_port}{PATH}"))
        told = to.deliver(seg, "WEB")
        assert (told["outcome"], told["dimse_status"], told["code"]) == (SENT, 0, "")
        (instance,) = archive.instances()
        assert archive.file(instance) == seg.read_bytes()
        assert to.deliver(seg, "WEB")["outcome"] == SENT  # a repetition has no effect
        assert len(archive.instances()) == 1
        structures = seg.with_name("rtstruct.dcm")  # in Implicit VR
        assert to.deliver(structures, "WEB")["outcome"] == SENT
        (other,) = set(archive.instances()) - {instance}
        assert archive.file(other) == structures.read_bytes()


def test_the_whole_way(daemon, tmp_path):
    with web_archive(tmp_path / "orthanc") as archive:
        d = daemon(quiet=0.5, pipeline_extra='deliver = [ "WEB", "OUT" ];', extra=destinations(
            by_stow(f"http://127.0.0.1:{archive.http_port}{PATH}"), to_folder(tmp_path / "out"))).start()
        assert f"STOW-RS at http://127.0.0.1:{archive.http_port}{PATH}" in run_program("noctule", "check-config", d.config).stdout
        assert "WEB: http://127.0.0.1" in run_program("noctule", "--config", d.config, "echo", "WEB").stdout
        drop(small(tmp_path / "ct"), d.inbox)
        wait_states(d, ("WEB", "SENT"), ("OUT", "SENT"))
        (instance,) = archive.instances()
        (file,) = objects(tmp_path / "out")
        assert archive.file(instance) == file.read_bytes()
        assert "call_unknown" not in d.log.read_text()


# ------------------------------------------------------------------- interpretation of responses


@pytest.mark.parametrize("status, body, outcome, code, dimse", [
    (200, lambda uid: stored(uid), SENT, "", 0),
    (200, lambda uid: stored(uid, **{"00081196": 0xB000}), SENT, "", 0xB000),
    (202, lambda uid: failed("1.2.3", 0xA700, others=[uid]), SENT, "", 0),
    (200, lambda uid: xml(uid, "00081199"), SENT, "", 0),
    # The response names another instance as failed, with a reason.
    (202, lambda uid: failed(uid, 0xA700, others=["1.2.3"]), TRANSIENT, "STORE_FAILED", 0xA700),
    (202, lambda uid: failed(uid, 0x0110), TRANSIENT, "STORE_FAILED", 0x0110),
    (409, lambda uid: failed(uid, 0xC122), PERMANENT, "STORE_REFUSED", 0xC122),
    (409, lambda uid: failed(uid, 0x0122), PERMANENT, "STORE_REFUSED", 0x0122),
    (409, lambda uid: xml(uid, "00081198", 0xA900), PERMANENT, "STORE_REFUSED", 0xA900),
    (409, lambda uid: failed(uid, 0x0111), SENT, "", 0x0111),  # the instance is already stored
    (200, lambda uid: json.dumps({"0008119A": {"vr": "SQ", "Value": [{"00081197": {"vr": "US", "Value": [0xC000]}}]}}), PERMANENT,
     "STORE_REFUSED", 0xC000),
    # The response does not list this instance as stored.
    (200, lambda uid: "", TRANSIENT, "HTTP_FAILED", -1),
    (200, lambda uid: "<html>Welcome</html>", TRANSIENT, "HTTP_FAILED", -1),
    (200, lambda uid: stored(uid + "9"), TRANSIENT, "HTTP_FAILED", -1),
    (200, lambda uid: stored(uid)[:-40], TRANSIENT, "HTTP_FAILED", -1),
    (200, lambda uid: '{"00081199": {"vr": "SQ", "Value": [{"00081150": "' + uid + '"}]}}', TRANSIENT, "HTTP_FAILED", -1),
    (200, lambda uid: '{"x": "' * 30000, TRANSIENT, "HTTP_FAILED", -1),
    (204, lambda uid: "", TRANSIENT, "HTTP_FAILED", -1),
    # Another status lists it as stored.
    (400, lambda uid: stored(uid), PERMANENT, "HTTP_REFUSED", -1),
    (401, lambda uid: "who?", TRANSIENT, "HTTP_FAILED", -1),
    (403, lambda uid: "", PERMANENT, "HTTP_REFUSED", -1),
    (404, lambda uid: "", PERMANENT, "HTTP_REFUSED", -1),
    (413, lambda uid: "too\tlarge\x1b[2J", PERMANENT, "HTTP_REFUSED", -1),
    (415, lambda uid: "", PERMANENT, "HTTP_REFUSED", -1),
    (409, lambda uid: "", PERMANENT, "HTTP_REFUSED", -1),
    (429, lambda uid: "", TRANSIENT, "HTTP_FAILED", -1),
    (500, lambda uid: stored(uid), TRANSIENT, "HTTP_FAILED", -1),
    (503, lambda uid: "", TRANSIENT, "HTTP_FAILED", -1),
])
def test_an_answer(sender, seg, service, status, body, outcome, code, dimse):  # noqa: F811
    web = service(lambda _, uid: (status, body(uid)) if uid else None)
    told = sender(by_stow(web.url)).deliver(seg, "WEB")
    assert (told["outcome"], told["code"], told["dimse_status"]) == (outcome, code, dimse), told["message"]
    assert web.bodies == [seg.read_bytes()]
    assert "\x1b" not in told["message"] and (outcome == SENT or web.url in told["message"])


DOE = "name=DOE^JOHN id=4711 born 1950-01-31"


@pytest.mark.parametrize("status, reason", [(400, "bad request"), (413, "the object is too large"),
                                            (503, "unavailable for now"), (507, "see its log"), (418, "see its log")])
def test_text_of_the_service_is_not_repeated(sender, seg, service, status, reason):  # noqa: F811
    """A server's error page often repeats refused attributes, so its text must not be logged."""
    web = service(lambda _, uid: (status, f"<h1>{DOE}</h1>", [("X-Reason", DOE), ("Warning", f'299 - "{DOE}"')]) if uid else None)
    to = sender(by_stow(web.url))
    told = to.deliver(seg, "WEB")
    assert told["message"] == f"{web.url} answers HTTP {status}: {reason}"
    assert "DOE" not in to.log.read_text() + str(told) and "4711" not in to.log.read_text() + str(told)


def test_a_redirect_is_not_followed(sender, seg, service):  # noqa: F811
    there = service()
    web = service(lambda _, uid: (307, "", [("Location", there.url)]))
    told = sender(by_stow(web.url)).deliver(seg, "WEB")
    assert (told["outcome"], told["code"]) == (PERMANENT, "HTTP_REFUSED") and there.requests == []


def test_retry_after_is_heeded(sender, seg, service):  # noqa: F811
    web = service(lambda _, uid: (503, "", [("Retry-After", "3")]) if len(web.bodies) == 1 else (200, stored(uid)))
    to = sender(by_stow(web.url))
    begun = time.monotonic()
    assert to.deliver(seg, "WEB")["code"] == "HTTP_FAILED"
    told = to.deliver(seg, "WEB")
    assert (told["outcome"], told["code"]) == (TRANSIENT, "HTTP_FAILED") and "Retry-After" in told["message"]
    assert len(web.bodies) == 1  # no further request was sent
    wait_for(lambda: to.deliver(seg, "WEB")["outcome"] == SENT, 60, "the delivery after its time")
    assert len(web.bodies) == 2 and time.monotonic() - begun >= 2.9


def test_one_connection_carries_many(sender, seg, service):  # noqa: F811
    web = service()
    to = sender(by_stow(web.url))
    assert [to.deliver(seg, "WEB")["outcome"] for _ in range(3)] == [SENT] * 3
    assert len(web.connections) == 1


# ----------------------------------------------------------------------------- interrupted requests


def cut(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def silent(handler):
    """Stays silent until the sender gives up."""
    with contextlib.suppress(OSError):
        while handler.connection.recv(65536):
            pass
    handler.close_connection = True


def endless(handler):
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b" " * 65536)


def endless_head(handler):
    with contextlib.suppress(OSError):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            handler.wfile.write(b"X: " + b"y" * 8000 + b"\r\n")


def no_http(handler):
    handler.wfile.write(b"220 mail.example ESMTP\r\n")
    handler.close_connection = True


@pytest.mark.parametrize("act", [cut, silent, endless, endless_head, no_http])
@pytest.mark.parametrize("when", ["before", "behind"])
def test_interrupted_requests_are_retried(sender, seg, service, when, act):  # noqa: F811
    web = service(lambda _, uid: ("before", act) if when == "before" and uid is None else (act,))
    to = sender(by_stow(web.url, seconds=1.0))
    told = to.deliver(seg, "WEB")
    assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_ABORTED"), told["message"]
    web.answer = lambda _, uid: (200, stored(uid))
    wait_for(lambda: to.deliver(seg, "WEB")["outcome"] == SENT, 60, "the next attempt, which may take too long, too")


def test_an_unreachable_server_is_a_transient_error(sender, seg):  # noqa: F811
    to = sender(by_stow("http://127.0.0.1:1/studies"), by_stow("http://no.such.host.invalid/studies", name="NAME"))
    for name in ("WEB", "NAME"):
        told = to.deliver(seg, name)
        assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_UNREACHABLE"), told["message"]


def test_a_missing_file_is_an_error(sender, seg, service, tmp_path):  # noqa: F811
    web = service()
    to = sender(by_stow(web.url))
    copy = tmp_path / "copy.dcm"
    copy.write_bytes(seg.read_bytes())
    number = copy  # this test reads the header, and the sender the file
    meta = pydicom.dcmread(copy, stop_before_pixels=True).file_meta
    copy.unlink()
    to.deliveries += 1
    to.peer.send("DELIVER", to.deliveries, "WEB", "seg", str(number), "", "", meta.MediaStorageSOPClassUID,
                 meta.MediaStorageSOPInstanceUID, 0, "", "", "", 0)
    told = to.next("DELIVERED", 20, delivery=to.deliveries)
    assert told["code"] == "FILE_UNREADABLE" and web.requests == []


# --------------------------------------------------------------------------- TLS and credentials


def tls_of(certificates, name="server", ask=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(getattr(certificates, name), getattr(certificates, f"{name}_key"))
    if ask:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.ca)
    return context


def test_tls_with_a_replaced_token(sender, seg, service, certificates, tmp_path):  # noqa: F811
    web = service(tls=tls_of(certificates))
    token = tmp_path / "token"
    token.write_text("first-token\n")
    to = sender(by_stow(web.url, more=f'ca = "{certificates.ca}"; token_file = "{token}";'))
    assert to.deliver(seg, "WEB")["outcome"] == SENT
    token.write_text("second-token")
    assert to.deliver(seg, "WEB")["outcome"] == SENT
    assert [request["Authorization"] for request in web.requests] == ["Bearer first-token", "Bearer second-token"]
    token.write_text("\n")
    told = to.deliver(seg, "WEB")
    assert (told["outcome"], told["code"]) == (TRANSIENT, "CREDENTIALS_UNREADABLE") and len(web.requests) == 2
    assert "first line" in told["message"] and "st-token" not in to.log.read_text() and "second-token" not in to.log.read_text()


def test_basic_authentication(sender, seg, service, certificates, tmp_path):  # noqa: F811
    web = service(tls=tls_of(certificates))
    login = tmp_path / "login"
    login.write_text("noctule:se:cret\n")
    to = sender(by_stow(web.url, more=f'ca = "{certificates.ca}"; login_file = "{login}";'))
    assert to.deliver(seg, "WEB")["outcome"] == SENT
    assert web.requests[0]["Authorization"] == "Basic bm9jdHVsZTpzZTpjcmV0"


def test_a_client_certificate(sender, seg, service, certificates):  # noqa: F811
    web = service(tls=tls_of(certificates, ask=True))
    ours = f'client_certificate = "{certificates.client}"; client_key = "{certificates.client_key}";'
    to = sender(by_stow(web.url, more=f'ca = "{certificates.ca}"; {ours}'), by_stow(web.url, "BARE", f'ca = "{certificates.ca}";'))
    assert to.deliver(seg, "WEB")["outcome"] == SENT
    assert to.deliver(seg, "BARE")["outcome"] == TRANSIENT and len(web.requests) == 1


@pytest.mark.parametrize("name, ca, reason", [
    ("elsewhere", "ca", "the certificate is of another host"), ("stranger", "ca", "unable to get local issuer certificate"),
    ("server", "stranger_ca", "unable to get local issuer certificate"), ("server", None, "unable to get local issuer certificate")])
def test_a_server_with_a_wrong_certificate_receives_no_data(sender, seg, service, certificates, name, ca, reason):  # noqa: F811
    """A certificate of another host, of an untrusted authority, or of one that the system lacks."""
    web = service(tls=tls_of(certificates, name))
    to = sender(by_stow(web.url, more=f'ca = "{getattr(certificates, ca)}";' if ca else ""))
    told = to.deliver(seg, "WEB")
    assert (told["outcome"], told["code"]) == (TRANSIENT, "TLS_FAILED"), told["message"]
    assert told["message"].endswith(f": {reason}."), told["message"]
    assert web.requests == []


# ------------------------------------------------------------------------------- configuration


@pytest.mark.parametrize("entry, complaint", [
    ('stow = "ftp://x/studies";', "must be https://HOST/"),
    ('stow = "https://user:secret@x/studies";', "without a user"),
    ('stow = "https:///studies";', "must be https://HOST/"),
    ('stow = "https://x/studies"; port = 104;', "port: is not allowed with stow"),
    ('stow = "https://x/studies"; commit = true;', "commit: is not allowed with stow"),
    ('stow = "https://x/studies"; folder = "/srv/x";', "stow: is not allowed with folder"),
    ('stow = "http://x/studies"; token_file = "t";', "unencrypted"),
    ('stow = "https://x/studies"; token_file = "t"; login_file = "l";', "remove one of the two"),
    ('stow = "https://x/studies"; client_key = "k";', "requires client_certificate"),
    ('ae_title = "A"; host = "h"; port = 104; ca = "c";', "ca: is not allowed with an AE"),
])
def test_contradictory_options_are_refused(tmp_path, entry, complaint):
    path = tmp_path / "noctule.conf"
    path.write_text(SETTINGS.format(folder=tmp_path, acse=1.0, tls="", destinations='{ name = "WEB"; ' + entry + " }"))
    refused = run_program("noctule", "check-config", path, check=False)
    assert refused.returncode == 5 and complaint in refused.stderr, refused.stderr


def test_echo_names_the_server(tmp_path, service, certificates):
    web = service(tls=tls_of(certificates))
    path = tmp_path / "noctule.conf"
    path.write_text(SETTINGS.format(folder=tmp_path, acse=1.0, tls="", destinations=", ".join([
        by_stow(web.url, more=f'ca = "{certificates.ca}";'), by_stow(web.url, "STRANGE", f'ca = "{certificates.stranger_ca}";')])))
    assert f"WEB: {web.url} answers HTTP 400" in run_program("noctule", "--config", path, "echo", "WEB").stdout
    refused = run_program("noctule", "--config", path, "echo", "STRANGE", check=False)
    assert refused.returncode == 1 and "TLS_FAILED" in refused.stderr
