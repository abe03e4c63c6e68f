"""Delivery commands: echo, destinations, deliveries, resend, with real peers and a real daemon."""

import json
import os

import pytest
from conftest import Certificates, StoreScp, drop, free_port, phantom, run_program, storescp, wait_for

OK, PARTIAL, USAGE, NOT_FOUND, NO_DAEMON = range(5)

PIPELINES = """
pipelines = (
  { name = "head-ct"; deliver = [ %s ];
    segments = (
      { label = "Brain"; method = "level-set"; range = [ 0.0, 80.0 ];
        shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 30.0; } );
        category = { code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; };
        type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } ); } );
rules = ( { match = { modality = "CT"; }; pipeline = "head-ct"; } );
"""


def archive(name, port, more=""):
    return (f'{{ name = "{name}"; ae_title = "{name}"; host = "127.0.0.1"; port = {port}; connect_seconds = 60.0; '
            f"dimse_seconds = 60.0; {more} }}")


def settings(root, destinations, deliver=(), more=""):
    """Failed deliveries wait for an hour, so that only a command sends them."""
    names = ", ".join(f'"{name}"' for name in deliver)
    return f"""
root = "{root}";
inbox = ( {{ path = "inbox"; after = "keep"; settle_seconds = 0.3; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 1.0; complete_seconds = 0.3; }};
min_free_mib = 1;
delivery = {{ retry_seconds = 3600.0; retry_max_seconds = 3600.0; breaker_failures = 2; breaker_seconds = 0.2; }};
{more}
destinations = ( {", ".join(destinations)} );
""" + PIPELINES % names


@pytest.fixture
def noctule(tmp_path):
    """Returns noctule(destinations, *arguments), which runs the command with these destinations configured and
    without a daemon."""

    def call(destinations, *arguments, more=""):
        config = tmp_path / "noctule.conf"
        config.write_text(settings(tmp_path / "root", destinations, more=more))
        return run_program("noctule", "--config", config, *arguments, check=False)

    return call


# --------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("arguments", [
    ("echo",), ("echo", "A", "B"), ("echo", "--json"), ("destinations", "PACS"), ("destinations", "--state", "SENT"),
    ("deliveries", "1"), ("deliveries", "--job", "x"), ("deliveries", "--pipeline", "x"), ("deliveries", "--limit", "0"),
    ("resend",), ("resend", "x"), ("resend", "0"), ("resend", "1", "two"), ("resend", "--job"), ("resend", "--job", "x"),
    ("resend", "--failed"), ("resend", "--failed", "1"), ("resend", "--job", "1", "2"),
    ("resend", "--job", "1", "--destination", "PACS"), ("resend", "--destination", ""), ("resend", "--all"),
], ids=" ".join)
def test_wrong_arguments(noctule, arguments):
    result = noctule([], *arguments)
    assert result.returncode == USAGE, result.stderr
    assert result.stderr and not result.stdout


def test_resend_needs_the_daemon(noctule):
    result = noctule([], "resend", "1")
    assert result.returncode == NO_DAEMON and "does not run" in result.stderr


# -------------------------------------------------------------------------------------------- echo


def test_echo_to_an_archive(noctule, tmp_path):
    with storescp(tmp_path / "archive") as peer:
        result = noctule([archive("PACS", peer.port)], "echo", "PACS")
    assert result.returncode == OK, result.stderr
    assert result.stdout.startswith("PACS: ") and " ms" in result.stdout and not result.stderr


def test_echo_to_an_unreachable_destination(noctule):
    result = noctule([archive("PACS", free_port())], "echo", "PACS")
    assert result.returncode == PARTIAL and not result.stdout
    assert "PACS: PEER_UNREACHABLE: " in result.stderr


def test_echo_to_a_refusing_destination(noctule, tmp_path):
    with storescp(tmp_path / "archive", ["--refuse"]) as peer:
        result = noctule([archive("PACS", peer.port)], "echo", "PACS")
    assert result.returncode == PARTIAL and not result.stdout
    assert "PACS: PEER_" in result.stderr


def test_echo_to_an_unconfigured_destination(noctule):
    result = noctule([archive("PACS", free_port())], "echo", "pacs")
    assert result.returncode == NOT_FOUND and '"pacs"' in result.stderr


def test_echo_to_a_folder(noctule, tmp_path):
    (tmp_path / "there").mkdir()
    destinations = [f'{{ name = "there"; folder = "{tmp_path}/there"; }}',
                    f'{{ name = "gone"; folder = "{tmp_path}/gone"; }}']
    result = noctule(destinations, "echo", "there")
    assert result.returncode == OK and f"{tmp_path}/there" in result.stdout
    result = noctule(destinations, "echo", "gone")
    assert result.returncode == PARTIAL and "No such file" in result.stderr


def test_echo_by_tls(noctule, tmp_path, certificates):
    more = (f'dicom = {{ tls = {{ certificate = "{certificates.client}"; key = "{certificates.client_key}"; '
            f'ca = "{certificates.ca}"; }}; }};')
    with StoreScpByTls(tmp_path / "archive", certificates, "server") as peer:
        result = noctule([archive("PACS", peer.port, "tls = true;")], "echo", "PACS", more=more)
        assert result.returncode == OK, result.stderr
        result = noctule([archive("PACS", peer.port)], "echo", "PACS", more=more)
        assert result.returncode == PARTIAL and not result.stdout
    with StoreScpByTls(tmp_path / "stranger", certificates, "stranger") as peer:
        result = noctule([archive("PACS", peer.port, "tls = true;")], "echo", "PACS", more=more)
        assert result.returncode == PARTIAL and "TLS_" in result.stderr


class StoreScpByTls(StoreScp):
    def __init__(self, folder, certificates: Certificates, name):
        super().__init__(folder, certificates.dcmtk(name))

    def __enter__(self):
        return self.start()

    def __exit__(self, *reason):
        self.stop()


# -------------------------------------------------------------------------------------- the outbox


def deliveries(daemon, *arguments):
    return json.loads(daemon.ctl("deliveries", "--json", *arguments).stdout)


def states(daemon):
    """Returns the state of the delivery to each destination."""
    return {row["destination"]: row["state"] for row in deliveries(daemon)}


@pytest.fixture
def outbox(daemon, tmp_path):
    """A daemon with one result, SENT to UP and DELAYED at DOWN, where no archive listens; and the archives."""
    up = StoreScp(tmp_path / "up", ["--aetitle", "UP"])
    down = StoreScp(tmp_path / "down", ["--aetitle", "DOWN"])
    root = tmp_path / "daemon0" / "root"
    destinations = [archive("UP", up.port), archive("DOWN", down.port), archive("IDLE", free_port())]
    instance = daemon(settings=settings(root, destinations, ("UP", "DOWN")))
    try:
        up.start()
        instance.start()
        drop(phantom(tmp_path / "ct", "--size", "48x48x8"), instance.inbox)
        instance.wait_jobs(states=("DONE",))
        wait_for(lambda: states(instance) == {"UP": "SENT", "DOWN": "DELAYED"}, 60, "a delivery SENT and one DELAYED")
        yield instance, up, down
    finally:
        up.stop()
        down.stop()


def test_deliveries_lists_the_outbox(outbox):
    daemon, up, _ = outbox
    sent, delayed = sorted(deliveries(daemon), key=lambda row: row["state"], reverse=True)
    assert (sent["destination"], sent["dimse_status"], sent["dimse_status_hex"], sent["attempts"]) == \
        ("UP", 0, "0x0000", 1)
    assert sent["sent_at"] and not sent["code"] and sent["path"].endswith("seg.dcm")
    assert (delayed["destination"], delayed["code"], delayed["dimse_status"]) == ("DOWN", "PEER_UNREACHABLE", None)
    assert delayed["not_before_at"] and delayed["message"]
    assert sent["sop_instance_uid"] == delayed["sop_instance_uid"] and len(up.files()) == 1

    assert [row["destination"] for row in deliveries(daemon, "--state", "delayed")] == ["DOWN"]
    assert [row["destination"] for row in deliveries(daemon, "--destination", "UP")] == ["UP"]
    assert len(deliveries(daemon, "--job", sent["job"])) == 2 and len(deliveries(daemon, "--limit", "1")) == 1
    assert daemon.ctl("deliveries", "--job", "99", check=False).returncode == NOT_FOUND
    assert daemon.ctl("deliveries", "--state", "LOST", check=False).returncode == USAGE
    table = daemon.ctl("deliveries").stdout
    assert table.startswith("DELIVERY  STATE") and "PEER_UNREACHABLE" in table
    assert "Deliveries\n" in daemon.ctl("show", sent["job"]).stdout
    assert "Deliveries  0 waiting, 1 delayed, 0 failed; 1 sent" in daemon.ctl("status").stdout


def test_destinations_lists_their_states(outbox):
    daemon, up, _ = outbox
    rows = json.loads(daemon.ctl("destinations", "--json").stdout)
    assert [row["destination"] for row in rows] == ["UP", "DOWN", "IDLE"]
    assert [(row["sent"], row["delayed"]) for row in rows] == [(1, 0), (0, 1), (0, 0)]
    assert rows[0]["last_sent_at"] and rows[1]["next_attempt_at"] and not rows[2]["last_sent_at"]
    assert rows[0]["address"] == f"UP at 127.0.0.1:{up.port}"
    assert [line.split()[:2] for line in daemon.ctl("destinations").stdout.splitlines()[1:]] == \
        [["UP", "up"], ["DOWN", "up"], ["IDLE", "up"]]


def test_resend_of_delayed_deliveries(outbox):
    daemon, up, down = outbox
    down.start()
    result = daemon.ctl("resend", "--destination", "DOWN", "--failed")
    assert "1" in result.stdout
    wait_for(lambda: states(daemon) == {"UP": "SENT", "DOWN": "SENT"}, 60, "the resent delivery")
    assert [path.name for path in down.files()] == [path.name for path in up.files()]
    assert down.files()[0].read_bytes()[-4096:] == up.files()[0].read_bytes()[-4096:]


def test_resend_of_a_sent_delivery(outbox):
    daemon, up, _ = outbox
    (sent,) = deliveries(daemon, "--state", "SENT")
    os.unlink(up.files()[0])
    daemon.ctl("resend", sent["delivery"])
    wait_for(up.files, 60, "the object in the archive")
    wait_for(lambda: states(daemon)["UP"] == "SENT", 60, "the delivery SENT once more")
    kinds = [row["kind"] for row in daemon.query("SELECT kind FROM v_events WHERE delivery = ? ORDER BY event",
                                                 sent["delivery"])]
    assert kinds == ["DELIVERY_ADDED"] + ["DELIVERY_STARTED", "DELIVERY_SENT", "DELIVERY_RESENT",
                                          "DELIVERY_STARTED", "DELIVERY_SENT"]


def test_resend_of_a_job(outbox):
    daemon, up, down = outbox
    down.start()
    os.unlink(up.files()[0])
    daemon.ctl("resend", "--job", "1")
    wait_for(lambda: up.files() and down.files(), 60, "the object in both archives")
    wait_for(lambda: states(daemon) == {"UP": "SENT", "DOWN": "SENT"}, 60, "both deliveries SENT")


def test_resend_of_a_missing_delivery(outbox):
    daemon, _, _ = outbox
    for arguments, words in ((("99",), "no delivery 99"), (("--job", "99"), "no job 99"),
                             (("--destination", "NOWHERE"), "NOWHERE"), (("--destination", "IDLE"), "IDLE")):
        result = daemon.ctl("resend", *arguments, check=False)
        assert result.returncode == NOT_FOUND and words in result.stderr, result
        assert not result.stdout
    (delayed,) = deliveries(daemon, "--state", "DELAYED")
    result = daemon.ctl("resend", delayed["delivery"], "99", check=False)
    assert result.returncode == NOT_FOUND and result.stdout and "no delivery 99" in result.stderr


def test_a_removed_destination(outbox):
    daemon, _, _ = outbox
    text = daemon.config.read_text()
    assert '"DOWN"' in text
    daemon.stop()
    start = text.index('{ name = "DOWN"')
    daemon.config.write_text((text[:start] + text[text.index('{ name = "IDLE"'):]).replace(', "DOWN"', ""))
    rows = json.loads(daemon.ctl("destinations", "--json").stdout)
    assert [(row["destination"], row["configured"]) for row in rows] == [("UP", 1), ("IDLE", 1), ("DOWN", 0)]
    assert "not configured" in daemon.ctl("destinations").stdout
