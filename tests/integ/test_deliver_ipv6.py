"""Destinations by IPv6: an address, a name with both kinds of addresses, TLS for the address, an unreachable
destination."""

import contextlib
import socket
import threading

import pytest
from conftest import run_program, storescp
from test_deliver import SENT, SETTINGS, TRANSIENT, sender, destination, seg  # noqa: F401 - fixtures


@contextlib.contextmanager
def door(port):
    """Opens a port of ::1 that forwards connections to the port of 127.0.0.1."""
    server = socket.create_server(("::1", 0), family=socket.AF_INET6)

    def carry(source, to):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                inner = server.accept()[0]
                outer = socket.create_connection(("127.0.0.1", port))
                for pair in ((inner, outer), (outer, inner)):
                    threading.Thread(target=carry, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.close()


def by_host(host, port, more=""):
    return destination(port=port, more=more).replace("127.0.0.1", host)


@pytest.mark.parametrize("host", ["::1", "0:0:0:0:0:0:0:1"])
def test_an_address(sender, seg, tmp_path, host):  # noqa: F811
    with storescp(tmp_path / "archive") as archive, door(archive.port) as port:
        assert sender(by_host(host, port)).deliver(seg)["outcome"] == SENT
        assert len(archive.files()) == 1


def test_the_second_address_of_a_name_is_tried(sender, seg, tmp_path):  # noqa: F811
    """localhost is ::1 and 127.0.0.1 here. The archive listens on only one of them."""
    found = {address[4][0] for address in socket.getaddrinfo("localhost", 1, type=socket.SOCK_STREAM)}
    if found != {"::1", "127.0.0.1"}:
        pytest.skip("localhost has one address here")
    with storescp(tmp_path / "archive") as archive, door(archive.port) as port:
        to = sender(by_host("localhost", archive.port), by_host("localhost", port).replace("PACS", "DOOR"))
        assert to.deliver(seg)["outcome"] == SENT and to.deliver(seg, "DOOR")["outcome"] == SENT


def test_an_unreachable_address_is_a_transient_error(sender, seg):  # noqa: F811
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as unused:
        port = unused.getsockname()[1]
    told = sender(by_host("::1", port)).deliver(seg)
    assert (told["outcome"], told["code"]) == (TRANSIENT, "PEER_UNREACHABLE") and f"[::1]:{port}" in told["message"]


@pytest.mark.parametrize("host", ["pacs:104", "[::1]", ":::"])
def test_invalid_addresses_are_refused(tmp_path, host):
    path = tmp_path / "noctule.conf"
    path.write_text(SETTINGS.format(folder=tmp_path, acse=1.0, tls="", destinations=by_host(host, 104)))
    refused = run_program("noctule", "check-config", path, check=False)
    assert refused.returncode == 5 and "must be a host name, or an IPv4 or IPv6 address" in refused.stderr


@pytest.mark.parametrize("name, outcome, code", [("server6", SENT, ""), ("server", TRANSIENT, "TLS_FAILED")])
def test_tls_is_for_the_address(sender, seg, tmp_path, certificates, name, outcome, code):  # noqa: F811
    """The certificate must contain the IPv6 address. A certificate for 127.0.0.1 and localhost is refused."""
    if not hasattr(certificates, "server6"):
        certificates.make("server6", "-CA", certificates.ca, "-CAkey", certificates.ca_key, "-addext",
                          "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=IP:::1")
    own, key = getattr(certificates, name), getattr(certificates, f"{name}_key")
    with storescp(tmp_path / "archive", ("+tls", key, own, "-ic")) as archive, door(archive.port) as port:
        told = sender(by_host("::1", port, "tls = true;"), tls=f'tls = {{ ca = "{certificates.ca}"; }};').deliver(seg)
        assert (told["outcome"], told["code"]) == (outcome, code), told["message"]
        assert len(archive.files()) == (outcome == SENT)
