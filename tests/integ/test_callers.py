"""Rejected callers on a site's first day. Each is recorded, and its alert names the configuration line that admits
it."""

import html
import json
import re

import pytest
from conftest import PEERS, echoscu, free_port, phantom, storescu, wait_for
from pynetdicom import AE
from test_page import Site

KNOWN = 'peers = ( { ae_title = "CT1"; host = "127.0.0.9"; }, { ae_title = "ECHOSCU"; } );'
VERIFICATION = "1.2.840.10008.1.1"


def callers(d):
    return d.query("SELECT * FROM v_callers ORDER BY last_at")


def wait_rejected(d, count):
    """Waits until that many rejected associations are recorded."""
    return wait_for(lambda: sum(row["rejected"] for row in callers(d)) >= count and callers(d), 60, f"{count} rejections")


def status(d):
    return d.ctl("status", check=False).stdout


def reload(d, old, new):
    d.config.write_text(d.config.read_text().replace(old, new))
    before = d.log.read_text().count("event=config.reloaded")
    d.process.send_signal(1)
    d.wait_log("event=config.reloaded", before + 1)


def call(d, calling, called="NOCTULE"):
    entity = AE(ae_title=calling)
    entity.add_requested_context(VERIFICATION)
    association = entity.associate("127.0.0.1", d.port, ae_title=called)
    admitted = association.is_established
    if admitted:
        association.release()
    return admitted


@pytest.mark.parametrize("calling, called, reason, admit", [
    ("NEW", "NOCTULE", "unknown_caller", 'peers: { ae_title = "NEW"; host = "127.0.0.1"; }'),
    ("CT1", "NOCTULE", "other_address", 'peers: { ae_title = "CT1"; host = "127.0.0.1"; }'),
    ("ECHOSCU", "WRONG", "unknown_title", 'titles: { ae_title = "WRONG"; }'),
    ('A"B <b>', "NOCTULE", "unknown_caller", 'peers: { ae_title = "A\\"B <b>"; host = "127.0.0.1"; }'),
])
def test_the_suggested_line_admits_the_caller(daemon, calling, called, reason, admit):
    """A caller is rejected twice, and every place reports it. With the suggested configuration line it is admitted,
    and the alert ends."""
    port = free_port()
    d = daemon(quiet=600.0, dicom=KNOWN + ' titles = ( { ae_title = "NOCTULE"; } );', extra=f"page = {{ port = {port}; }};\n").start()
    assert not call(d, calling, called) and not call(d, calling, called)
    row, = wait_rejected(d, 2)
    assert (row["calling_ae"], row["called_ae"], row["host"]) == (calling, called, "127.0.0.1")
    assert (row["reason"], row["rejected"], row["admit"], row["admitted_at"]) == (reason, 2, admit, None)
    assert row["first_at"] <= row["last_at"]
    told = f'"{calling}" at 127.0.0.1 called "{called}" and was rejected 2 times'
    assert told in status(d) and f"to admit it, add to dicom.{admit}" in status(d)
    doctor = json.loads(d.ctl("doctor", "--json", check=False).stdout)
    (alerts,) = [check for check in doctor["checks"] if check["check"] == "alerts"]
    assert [finding["verdict"] for finding in alerts["findings"] if told in finding["text"]] == ["attention"]
    where, row_to_add = admit.split(": ", 1)
    reload(d, f"{where} = ( ", f"{where} = ( {row_to_add}, ")
    wait_for(lambda: callers(d)[0]["admitted_at"], 60, "the admission")
    assert "was rejected" not in status(d)
    wait_for(lambda: call(d, calling, called), 60, "the receiver's new configuration")
    assert d.stop() == 0


def test_a_first_list_of_titles_must_have_the_default(daemon):
    """A new list of titles replaces the default NOCTULE, so the advice has both rows."""
    d = daemon(quiet=600.0, dicom=KNOWN).start()
    assert call(d, "ECHOSCU", "NOCTULE") and not call(d, "ECHOSCU", "WRONG")
    wait_rejected(d, 1)
    advice = re.search(r"add to dicom\.titles: (.*?); if that list is new, its first row must be (\{.*?\}) \(since", status(d))
    assert advice, status(d)
    reload(d, KNOWN, f"{KNOWN} titles = ( {advice[2]}, {advice[1]} );")
    wait_for(lambda: call(d, "ECHOSCU", "WRONG"), 60, "the receiver's new configuration")
    assert call(d, "ECHOSCU", "NOCTULE")
    assert d.stop() == 0


def test_page_report_and_metric(daemon):
    """An AE title is foreign text. The web UI must escape it."""
    site = Site(daemon, quiet=600.0, dicom=KNOWN).start()
    d = site.daemon
    call(d, "<b>X</b>")
    wait_rejected(d, 1)
    for path, words in (("received", "Rejected"), ("", "was rejected 1 time")):
        text = site.text(path)
        assert "<b>X</b>" in html.unescape(text) and "<b>X" not in text and words in text
    assert site.figures()['noctule_rejected_callers{reason="unknown_caller"}'] == 1
    report = d.ctl("report", check=False).stdout
    assert "<b>X</b>" in report and "Rejected callers" in report
    assert d.stop() == 0


def test_only_refused_operations_beyond_echo_are_alerted(daemon, tmp_path):
    """With echo_from_anybody an unknown peer may send C-ECHO without an alert. Its refused C-STORE is alerted."""
    d = daemon(quiet=600.0, dicom=KNOWN + " echo_from_anybody = true;").start()
    assert echoscu(d.port, calling="ANY", check=False).returncode == 0
    assert storescu(d.port, *phantom(tmp_path / "a", "--size", "16x16x3"), calling="ANY", check=False).returncode != 0
    row, = wait_rejected(d, 1)
    assert (row["calling_ae"], row["reason"], row["rejected"]) == ("ANY", "unknown_caller", 1)
    assert d.stop() == 0


def test_a_flood_makes_few_rows(daemon):
    """At most 16 rows per address are kept, the latest ones, and the status stays short."""
    d = daemon(quiet=600.0, dicom=PEERS).start()
    for number in range(40):
        assert not call(d, f"SCAN{number:02}")
    rows = wait_for(lambda: [row["calling_ae"] for row in callers(d)][-1:] == ["SCAN39"] and callers(d), 60, "the last")
    assert len(rows) == 16 and {row["calling_ae"] for row in rows} == {f"SCAN{number}" for number in range(24, 40)}
    lines = re.findall(r"was rejected|more callers were rejected", status(d))
    assert len(lines) == 6 and "11 more callers" in status(d)
    assert d.stop() == 0
