"""`noctule report` as text, JSON and HTML, for a report period with every kind of event."""

import base64
import datetime
import html.parser
import json
import re

import pydicom
import pytest
from conftest import StoreScp, drop, phantom, wait_for
from test_deliveries import destinations, small, to_archive, to_folder

# Text of a hostile sender: markup, quotes, the end of a style, a change of writing direction, terminal control codes.
DESCRIPTION = "<script>alert(\"1\")</script>\u202e'&amp;\u009b2J"
STATION = "\"><img src=x>"

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 600.0; complete_seconds = 0.1; patience_seconds = 600.0; }};
jobs = {{ max_attempts = 2; retry_seconds = 0.2; retry_max_seconds = 1.0; memory_mib = 8.0; }};
compute = {{ lanes = 2; backend = "cpu"; threads = 2; }};
min_free_mib = 1;
pipelines = ( {{ name = "head-ct"; segments = ( {{ {segment} }} ); deliver = [ "OUT", "PACS" ]; }},
              {{ name = "brain-mr"; segments = ( {{ {segment} expect = {{ volume_ml = [ 1.0, 2.0 ]; }}; }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "head-ct"; }},
          {{ match = {{ modality = "MR"; }}; pipeline = "brain-mr"; }} );
"""
SEGMENT = """label = "Brain"; method = "level-set"; range = [ 0.0, 2000.0 ];
    shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 30.0; } );
    category = { code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; };
    type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };"""


def about(files, **values):
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.SpecificCharacterSet = "ISO_IR 192"
        for keyword, value in values.items():
            setattr(dataset, keyword, value)
        dataset.save_as(path)
    return files


class Page(html.parser.HTMLParser):
    """The tags, attributes and text of an HTML page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.data, self.open = [], [], "", []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.data += data


def report_of(d, *arguments, status=1):
    done = d.ctl("report", *arguments, check=False)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout


def page_of(d, path, status=1):
    assert report_of(d, "--html", path, status=status) == ""
    return Page(path.read_text())


@pytest.fixture
def night(daemon, tmp_path):
    """A daemon after a report period: one job done, one failed, one under review; one series refused, one without a
    rule; a result that an archive did not accept; a file that is not an image."""
    archive = StoreScp(tmp_path / "archive", ["--refuse"])
    d = daemon(settings=SETTINGS.format(root=tmp_path / "0" / "root", segment=SEGMENT))
    d.config.write_text(SETTINGS.format(root=d.root, segment=SEGMENT)
                        + destinations(to_folder(tmp_path / "out"), to_archive(archive.port)))
    d.start()
    archive.start()
    try:
        drop(about(small(tmp_path / "done"), StationName="CT1", Manufacturer="Acme"), d.inbox / "done")
        drop(phantom(tmp_path / "large", "--size", "256x256x64", "--seed", "2"), d.inbox / "large")
        drop(phantom(tmp_path / "mr", "--kind", "mr-brain", "--size", "32x32x6", "--seed", "3"), d.inbox / "mr")
        drop(phantom(tmp_path / "pet", "--kind", "pet", "--size", "32x32x6", "--seed", "4"), d.inbox / "pet")
        with pydicom.config.disable_value_validation():
            gap = about(phantom(tmp_path / "gap", "--size", "32x32x8", "--gap", "4", "--seed", "5"),
                        SeriesDescription=DESCRIPTION, StationName=STATION)
            drop(gap, d.inbox / "gap")
        (d.inbox / "photo.dcm").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(range(256)) * 20)
        d.declare_complete(gap)
        wait_for(lambda: sorted(job["state"] for job in d.jobs()) == ["DONE", "FAILED", "REVIEW"], 90, "the jobs")
        wait_for(lambda: len(d.query("SELECT 1 FROM v_series WHERE state <> 'GATHERING'")) == 5, 60, "the series")
        wait_for(lambda: len(d.query("SELECT 1 FROM v_deliveries WHERE state IN ('SENT', 'FAILED')")) == 2, 60, "deliveries")
        wait_for(lambda: d.query("SELECT 1 FROM v_quarantine"), 60, "the quarantine")
    finally:
        archive.stop()
    return d


def test_a_period_with_every_kind_of_event(night, tmp_path, monkeypatch):
    d = night
    report = json.loads(report_of(d, "--json"))
    (series,) = d.query("SELECT series_uid FROM v_series WHERE state = 'REFUSED'")
    assert report["attention"] is True and report["daemon"] == "running"
    assert any(trouble["level"] == "attention" for trouble in report["troubles"])
    counted = report["series"]
    assert (counted["settled"], counted["refused"], counted["unruled"], counted["instances"]) == (4, 1, 1, 6 + 64 + 6 + 6 + 7)
    assert counted["series_per_hour"] == round(5 / 24, 1) and counted["instances_per_hour"] == round(89 / 24, 1)
    assert {key: report["jobs"][key] for key in ("done", "empty", "review", "failed", "waiting")} == {
        "done": 1, "empty": 0, "review": 1, "failed": 1, "waiting": 0}
    assert 0 < report["jobs"]["median_seconds"] <= report["jobs"]["longest_seconds"]
    assert (report["deliveries"]["sent"], report["deliveries"]["failed"]) == (1, 1)
    assert report["files"] == {"quarantined": 1} and report["disk"]["free_gib"] > 0

    (failed,) = report["failed"]
    assert (failed["code"], failed["jobs"], failed["pipelines"]) == ("JOB_TOO_LARGE", 1, "head-ct")
    assert failed["to_do"] and "voxels need" in failed["message"]
    (refused,) = report["refused"]
    assert (refused["code"], refused["series"], refused["in_part"]) == ("MISSING_SLICE", 1, 0)
    assert refused["series_uid"] == series["series_uid"] and refused["to_do"]
    (sender,) = report["senders"]
    assert (sender["station"], sender["refused"], sender["series"], sender["codes"]) == (STATION, 1, 1, "MISSING_SLICE")
    (undelivered,) = report["undelivered"]
    assert (undelivered["destination"], undelivered["state"], undelivered["code"]) == ("PACS", "FAILED", "PEER_REJECTED")
    (review,) = report["review"]
    assert review["pipeline"] == "brain-mr" and "expected 1 to 2 ml" in review["message"]
    (quarantined,) = report["quarantined"]
    assert (quarantined["code"], quarantined["files"]) == ("NOT_DICOM", 1)
    (unruled,) = report["unruled"]
    assert (unruled["modality"], unruled["series"]) == ("PT", 1)
    assert {row["pipeline"]: row["done"] for row in report["pipelines"]} == {"head-ct": 1, "brain-mr": 0}
    assert report["compute"][0]["jobs"] == 2 and len(report["slowest"]) == 2
    assert len(report["hours"]) == 24
    assert [sum(hour[key] for hour in report["hours"]) for key in ("accepted", "refused", "done", "failed")] == [4, 1, 2, 1]

    text = report_of(d)
    assert max(map(len, text.splitlines())) <= 80 and "An operator must act." in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    for word in ("JOB_TOO_LARGE", "MISSING_SLICE", "PEER_REJECTED", "NOT_DICOM", "brain-mr", series["series_uid"]):
        assert word in text
    assert "1 failed" in text and "<script>" in text

    # Times are local, and the report states the zone.
    monkeypatch.setenv("TZ", "XST-5:30")
    since = datetime.datetime.fromisoformat(review["since"]) + datetime.timedelta(hours=5, minutes=30)
    text = report_of(d)
    assert re.match(r"Noctule, \S+ [\d:]{8} \+0530 to \S+ [\d:]{8} \+0530\n", text)
    assert since.strftime(" %Y-%m-%d %H:%M:%S +0530\n") in text

    page = page_of(d, tmp_path / "night.html")
    assert len(re.findall(r"\d [A-Z][a-z]{2} \d\d:\d\d: ", page.data)) == 3 * 24 and "UTC" not in page.data
    assert since.strftime("%-d %b %H:%M") in page.data
    assert "script" not in page.tags and page.tags.count("img") == 1 and page.attributes.count(("class", "chart")) == 3
    assert "<script>alert(\"1\")</script>\ufffd'&amp;\ufffd2J" in page.data and STATION in page.data
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", (tmp_path / "night.html").read_text())
    (image,) = [value for name, value in page.attributes if name == "src"]
    assert base64.b64decode(image.removeprefix("data:image/png;base64,")) == (d.root / review["preview_path"]).read_bytes()
    assert not [value for name, value in page.attributes if name == "href" and value[:3] != "#i-" or name.startswith("on")]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in page.attributes
    assert "http" not in page.data
    for word in ("JOB_TOO_LARGE", "MISSING_SLICE", "PEER_REJECTED", "NOT_DICOM", "brain-mr", refused["to_do"]):
        assert word in page.data

    # A preview that is too large, or is not a file, is left out. The page has all other content.
    preview = d.root / review["preview_path"]
    preview.write_bytes(preview.read_bytes().ljust(1025 * 1024, b"\0"))
    assert "img" not in page_of(d, tmp_path / "night.html").tags
    preview.unlink()
    preview.symlink_to("/etc/passwd")
    page = page_of(d, tmp_path / "night.html")
    assert "img" not in page.tags and "expected 1 to 2 ml" in page.data

    # Another period has no such events. Results that are under review now are reported in each.
    before = json.loads(report_of(d, "--json", "--since", "2026-01-01", "--until", "2026-01-02"))
    assert (before["since"], before["until"]) == ("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z")
    assert before["refused"] == before["failed"] == before["undelivered"] == [] and before["series"]["settled"] == 0
    assert len(before["review"]) == 1


def test_a_period_without_events(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    assert "Nothing needs attention." in report_of(d, status=0)
    report = json.loads(report_of(d, "--json", status=0))
    assert report["attention"] is False and report["refused"] == [] and len(report["hours"]) == 24
    assert "Nothing needs attention." in page_of(d, tmp_path / "night.html", status=0).data
    assert json.loads(report_of(d, "--json", "--since", "today", status=0))["since"].endswith("0:00.000Z")
    assert len(json.loads(report_of(d, "--json", "--since", "20d", status=0))["hours"]) in (20, 21)  # and the second run
    for wrong in (("--since", "tomorrow"), ("--since", "2026-13"), ("--until", "2026-02-30"), ("--since", "2026-02", "--until", "2026-01"),
                  ("--since", "1000d"), ("more",)):
        assert d.ctl("report", *wrong, check=False).returncode == 2, wrong
    done = d.ctl("report", "--html", tmp_path / "nowhere" / "night.html", check=False)
    assert done.returncode == 1 and "cannot write the page: No such file" in done.stderr
    d.stop()
    text = " ".join(report_of(d).split())  # lines are wrapped
    assert "Broken noctuled does not run" in text and "it was stopped" in text


@pytest.mark.parametrize("zone, hours", [("Europe/Berlin", ("22", "23")), ("UTC", ("00",))])
def test_yesterday_begins_at_midnight_here(daemon, monkeypatch, zone, hours):
    monkeypatch.setenv("TZ", zone)
    d = daemon(quiet=600.0).start()
    report = json.loads(report_of(d, "--json", "--since", "yesterday", "--until", "today", status=0))
    assert report["since"].endswith(":00:00.000Z") and len(report["hours"]) in (23, 24, 25)
    assert report["since"][11:13] in hours and report["until"][11:13] in hours
