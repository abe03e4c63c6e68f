"""The web UI: its content, its clients, its read-only access, and its limits for hostile clients."""

import base64
import contextlib
import html.parser
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import numpy
import PIL.Image
import pydicom
import pytest
from conftest import PEERS, daemons, drop, free_port, is_listening, phantom, released_only, storescu, wait_for
from test_deliveries import QUICK, to_archive
from test_pull import CALLERS, FIRST, SECOND, SOON, Archive, forever, pull, pulling, source, study, wait_ended  # noqa: F401
from test_report_night import DESCRIPTION, SEGMENT, STATION, about, small

LATER = "delivery = { retry_seconds = 600.0; retry_max_seconds = 600.0; };\n"  # failed items wait
TOKEN = "0123456789abcdef0123456789abcdef"
PAGES = ("", "work", "review", "deliveries", "received", "reports", "reports?day=now", "cohort", "settings", "search")
ACCESSION = "A/17 & <b>"
PATIENT = "P'1\""


class Page(html.parser.HTMLParser):
    """The tags, attributes and text of an HTML page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.data, self.open = [], [], "", []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in ("meta", "img", "br", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data += data

    def links(self):
        return [value for tag, name, value in self.attributes if name == "href" and tag == "a"]

    def titled(self):
        return re.search(r"^(.*) - Noctule", self.data, re.M)[1]


def rows_below(page, heading):
    """Returns the rows of the table with that heading: the columns by their titles in capitals, and the details that a row
    unfolds."""
    page = re.sub(r'<summary>(?:<span class="key">(.*?)</span> )?(.*?)</summary>',
                  lambda found: f"<dt>{found[1] or 'message'}</dt><dd>{found[2]}</dd>", re.sub("</?bdi[^>]*>", "", page))
    (text,) = re.findall(rf"<h2>{re.escape(heading)}</h2>(.*?)</section>", re.sub("<svg.*?</svg>|</?span[^>]*>", "", page), re.S)
    titles, *rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.S)]
    titles = [re.sub(r"^[^(]+", lambda words: words[0].upper(), title) for title in titles]
    return [{**dict(zip(titles, cells)), **dict(re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", cells[-1]))} for cells in rows]


class Site:
    """The web UI of a daemon, as browsers and programs see it."""

    def __init__(self, daemon, options="", host="127.0.0.1", **others):
        self.port = free_port()
        self.host = host
        self.settings = f"page = {{ port = {self.port}; {options} }};\n"
        self.daemon = daemon(extra=others.pop("extra", "") + self.settings, **others)

    def start(self):
        self.daemon.start()
        self.wait()
        return self

    def wait(self):
        wait_for(lambda: is_listening(self.port), 60, "the page's port")

    def ask(self, path="", method="GET", body=None, **headers):
        """Sends a request. Returns the status, headers and bytes of the response."""
        request = urllib.request.Request(f"http://{self.host}:{self.port}/{path.removeprefix('./')}", body and body.encode(), method=method,
                                         headers={name.replace("_", "-"): value for name, value in headers.items()})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def get(self, path="", status=200, method="GET", **headers):
        """Returns the headers and bytes of a response with that status."""
        got = self.ask(path, method, **headers)
        assert got[0] == status, (path, got[0], got[2][:2000])
        return got[1:]

    def page(self, path="", status=200, **headers):
        return Page(self.get(path, status, **headers)[1].decode())

    def text(self, path, **headers):
        return self.get(path, **headers)[1].decode()

    def figures(self, **headers):
        """Returns the lines of /metrics: name and labels to number."""
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in self.text("metrics", **headers).splitlines() if line[0] != "#")}


PIPELINES = """
pipelines = ( {{ name = "head-ct"; segments = ( {{ {segment} }} ); deliver = [ "PACS" ]; }},
              {{ name = "brain-mr";
                 segments = ( {{ {segment} expect = {{ volume_ml = [ 1.0, 2.0 ]; }}; }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "head-ct"; }},
          {{ match = {{ modality = "MR"; }}; pipeline = "brain-mr"; }} );
"""


def settings_of(root, pipelines=PIPELINES):
    return f"""
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 600.0; complete_seconds = 0.1; patience_seconds = 600.0; }};
jobs = {{ max_attempts = 2; retry_seconds = 0.2; retry_max_seconds = 1.0; memory_mib = 8.0; }};
compute = {{ lanes = 2; backend = "cpu"; }};
min_free_mib = 1;
log_level = "debug";
""" + pipelines.format(segment=SEGMENT)


def busy_site(daemon, tmp_path, make=Site, **others):
    """The web UI of a service with one failed job, one under review, one done but not delivered, and one refused
    series. Sender-controlled texts are hostile."""
    site = make(daemon, settings=settings_of(tmp_path / "daemon0" / "root", others.pop("pipelines", PIPELINES)),
                extra=QUICK + f"destinations = ( {to_archive(free_port())} );\n" + others.pop("extra", ""), **others).start()
    d = site.daemon
    with pydicom.config.disable_value_validation():
        drop(about(small(tmp_path / "done"), AccessionNumber=ACCESSION, PatientID=PATIENT), d.inbox / "done")
        drop(about(phantom(tmp_path / "mr", "--kind", "mr-brain", "--size", "32x32x6", "--seed", "3"),
                   SeriesDescription=DESCRIPTION), d.inbox / "mr")
        gap = about(phantom(tmp_path / "gap", "--size", "32x32x8", "--gap", "4", "--seed", "5"),
                    SeriesDescription=DESCRIPTION, StationName=STATION)
        drop(gap, d.inbox / "gap")
    drop(phantom(tmp_path / "large", "--size", "256x256x64", "--seed", "2"), d.inbox / "large")
    (d.inbox / "<photo>.dcm").write_bytes(b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(range(256)) * 20)
    d.declare_complete(gap)
    wait_for(lambda: sorted(job["state"] for job in d.jobs()) == ["DONE", "FAILED", "REVIEW"], 90, "the jobs")
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state = 'REFUSED'"), 60, "the refusal")
    wait_for(lambda: d.query("SELECT 1 FROM v_quarantine"), 60, "the quarantine")
    wait_for(lambda: d.query("SELECT 1 FROM v_deliveries WHERE attempts > 0"), 60, "a delivery")
    return site


@pytest.fixture
def site(daemon, tmp_path):
    return busy_site(daemon, tmp_path)


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory):
    """A site for read-only tests."""
    folder = tmp_path_factory.mktemp("shared")
    with daemons(folder) as daemon:
        yield busy_site(daemon, folder)


def series_of(d, state):
    (row,) = d.query("SELECT s.series_uid, job FROM v_series s LEFT JOIN v_jobs j USING (series_uid) "
                     "WHERE j.state = ?1 OR s.state = ?1", state)
    return row


def test_the_pages(site):
    d = site.daemon
    before = d.query("SELECT max(event) AS event FROM v_events WHERE kind NOT LIKE 'D%'")[0]["event"]
    review, refused = (series_of(d, state) for state in ("REVIEW", "REFUSED"))
    pages = {path: site.page(path) for path in PAGES}
    assert {page.titled() for page in pages.values()} == {
        "Overview", "Work", "Review", "Deliveries", "Received", "Reports", "Cohort", "Settings", "Search"}
    for path, page in pages.items():
        assert not {"iframe", "object", "embed", "style"} & set(page.tags), path
        assert path == "review" or "script" not in page.tags, path  # its keys
        assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "style"], path
        assert not [value for _, name, value in page.attributes if name in ("href", "src", "action") and any(urllib.parse.urlsplit(value)[:2])], path
        assert page.tags.count("h1") == 1 and ("a", "aria-current", "page") in page.attributes or path == "search"
    assert "to review" in pages[""].data and "PACS" in pages[""].data
    assert "Matching series" not in pages["search"].data and "patient ID" in pages["search"].data

    # Text of a sender must be escaped on every page.
    shown = "<script>alert(\"1\")</script>\ufffd'&amp;\ufffd2J"
    assert shown in pages["review"].data and shown in pages["work"].data and STATION in pages["work"].data
    assert "photo" not in pages["received"].data and "noctule quarantine show" in pages["received"].data
    for word in ("MISSING_SLICE", "JOB_TOO_LARGE", refused["series_uid"]):
        assert word in site.text("work")
    assert "expected 1 to 2 ml" in pages["review"].data and "PACS" in pages["deliveries"].data
    assert "NOT_DICOM" in pages["received"].data and "cpu" in pages[""].data and "brain-mr" in pages["settings"].data
    assert pages["reports"].attributes.count(("svg", "class", "chart")) == 3

    # Pictures are served only by their job's number.
    ((_, _, source),) = [each for each in pages["review"].attributes if each[:2] == ("img", "src")]
    assert re.fullmatch(rf"api/v1/jobs/{review['job']}/planes/ax/\d+\.png", source)  # the slice viewer
    assert site.get(source)[0]["Content-Type"] == "image/png"
    headers, picture = site.get(f"preview?id={review['job']}")
    assert headers["Content-Type"] == "image/png" and headers["Cache-Control"] == "no-store"
    assert picture == (d.root / "outbox" / str(review["job"]) / "preview.png").read_bytes()
    for path in ("preview", "preview?id=0", "preview?id=999", "preview?id=../1", "preview/1", "outbox/1/preview.png",
                 "noctule.db", "../noctule.db", "%2e%2e/noctule.db", "job?id=999", "job?id=x", "series?uid=1.2.3",
                 "series?uid=%27%20OR%201=1--", "reports?day=x", "reports?day=2026-13-40", "queue/"):
        site.get(path, status=404)

    # Every link leads to a page.
    seen, left = set(), ["./"]
    while left:
        link = left.pop()
        seen.add(link)
        left += [other for other in site.page(link).links()
                 if other[0] != "#" and not other.startswith("api/") and other not in seen | set(left)]
    assert {f"job?id={review['job']}", f"series?uid={refused['series_uid']}"} <= seen
    assert d.query("SELECT max(event) AS event FROM v_events WHERE kind NOT LIKE 'D%'")[0]["event"] == before
    assert "role=page" not in d.log.read_text().replace("level=debug role=page", "")
    assert d.stop() == 0


def test_automatic_refresh_is_a_choice(daemon):
    site = Site(daemon, quiet=600.0).start()
    for path in ("",):
        page = site.page(path)
        assert ("meta", "http-equiv", "refresh") not in page.attributes
        (link,) = [link for link in page.links() if "live=" in link]
        live = site.page(link)
        assert ("meta", "http-equiv", "refresh") in live.attributes
        assert link not in live.links() and (path or "./") in live.links()
    assert not [link for link in site.page("review").links() if "live=" in link]


def test_pulls_are_listed_without_accession_numbers(daemon, study):  # noqa: F811
    """By batches: active and waiting pulls are in the queue, and failed ones among the failures. No accession number
    is shown."""
    with Archive(study[0]) as archive, Archive(study[0], forever) as slow:
        down = source(free_port(), "LIAR", "DOWN")
        site = Site(daemon, quiet=600.0, dicom=CALLERS,
                    extra=pulling(source(archive.port, "LIAR"), source(slow.port, "LIAR", "SLOW"), down).replace(SOON, LATER)).start()
        d = site.daemon
        assert "archives" not in site.text("received") and "pulled" not in site.text("received")
        archive.destination = slow.destination = d.port
        pull(d, "PACS", "--accession", FIRST, "ZX81-NONE", "ZX81-<b>")
        wait_ended(d, 3)
        pull(d, "DOWN", "--accession", FIRST, SECOND)
        pull(d, "SLOW", "--accession", SECOND, FIRST)

        def told():
            rows = rows_below(queue := site.text("received"), "Retrievals from archives")
            return (queue, *rows) if len(rows) == 2 and rows[0]["CURRENT"] == "0" and "last code" in rows[0] and rows[1]["CURRENT"] == "1" else None

        queue, one, other = wait_for(told, 60, "what is under way")
        assert [one[title] for title in ("BATCH", "SOURCE", "CURRENT", "WAITING", "ENDED")] == ["4", "DOWN", "0", "2", "0"]
        assert one["last code"] == "PEER_UNREACHABLE" and one["message"] and one["remedy"] and one["last attempt"]
        assert [other[title] for title in ("BATCH", "SOURCE", "CURRENT", "WAITING", "ENDED")] == ["6", "SLOW", "1", "1", "0"]
        assert "last code" not in other and other["requested"]
        failures = site.text("received")
        (nothing,) = rows_below(failures, "Failed or incomplete retrievals")
        assert [nothing[title] for title in ("BATCH", "SOURCE", "CODE", "ITEMS", "state")] == [
            "1", "PACS", "PULL_NOT_FOUND", "2", "Not found"]
        assert nothing["ended"] and nothing["message"] and nothing["remedy"]
        for page in (queue, failures):
            assert "ZX" not in page and not [row for row in d.query("SELECT identifier FROM v_pulls") if row["identifier"] in page]
        pull(d, "--cancel", "6")
        pull(d, "--cancel", "4")
        assert "Retrievals from archives" not in site.text("received")
    assert d.stop() == 0


def post_form(site, path, status=200, **fields):
    """The answer to a form that has its fields in the body."""
    answered, _, content = site.ask(path, method="POST", body=urllib.parse.urlencode(fields), Origin=f"http://127.0.0.1:{site.port}",
                                    Content_Type="application/x-www-form-urlencoded")
    assert answered == status, content
    return content.decode()


def search(site, status=200, **fields):
    return Page(post_form(site, "search", status, **fields))


@pytest.mark.parametrize("identifiers", ["hashed", "plain", "none"])
def test_search(daemon, tmp_path, identifiers):
    site = Site(daemon, quiet=600.0, extra=f'identifiers = "{identifiers}";\n').start()
    d = site.daemon
    files = about(small(tmp_path / "in"), AccessionNumber="A/17", PatientID="P 1")
    first = pydicom.dcmread(files[0], stop_before_pixels=True)
    drop(files, d.inbox)
    (job,) = d.wait_jobs()
    (result,) = d.query("SELECT * FROM v_results WHERE kind = 'seg'")

    def found(text):
        page = search(site, q=text)
        assert ("input", "value", text) in page.attributes
        return first.SeriesInstanceUID in page.data

    known = identifiers != "none"
    assert found("A/17") == found("P 1") == known
    for uid in (first.SeriesInstanceUID, first.StudyInstanceUID, first.SOPInstanceUID, result["sop_instance_uid"],
                result["result_series_uid"]):
        assert found(uid), uid
    for other in ("A/1", "P", "%", "1.2.3", "' OR 1 --", "\"", "<b>", first.SeriesInstanceUID[:-1], "\u00e9" * 90):
        assert not found(other), other
    assert "job?id=1" in search(site, q="1").links() and job["job"] == 1
    page = site.page(f"series?uid={first.SeriesInstanceUID}")
    assert ("P 1" in page.data) == (identifiers == "plain") and ("h:" in page.data) == (identifiers == "hashed")


def test_the_web_ui_is_off_and_local_by_default(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    assert not d.children("page")
    port = free_port()
    config = d.config.read_text()
    d.config.write_text(config + f'page = {{ port = {port}; bind = "0.0.0.0"; }};\n')
    done = d.ctl("check-config", check=False)
    assert done.returncode != 0 and "page.token_file" in done.stdout + done.stderr

    # Turned on, moved and turned off by a reload.
    for extra in (f"page = {{ port = {port}; }};\n", f'page = {{ port = {port}; bind = "::1"; }};\n', ""):
        before = d.children("page")
        d.config.write_text(config + extra)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: set(d.children("page")).isdisjoint(before) and bool(d.children("page")) == bool(extra)
                 and is_listening(port) == bool(extra), 60, f"the page as it is with {extra!r}")
    with open("/proc/net/tcp") as table:
        assert f":{port:04X} 00000000:0000 0A" not in table.read()
    assert d.stop() == 0


def test_a_token(daemon, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    site = Site(daemon, f'bind = "0.0.0.0"; token_file = "{token}";', quiet=600.0).start()
    for path in (*PAGES, "metrics", "preview?id=1", "nothing"):
        headers, text = site.get(path, status=401)
        assert headers["WWW-Authenticate"].startswith("Basic") and b"Overview</h1>" not in text
    assert site.text("healthz") == "ok\n"
    wait_for(lambda: site.ask("readyz")[::2] == (200, b"ok\n"), 60, "that it is ready")
    for wrong in ("Bearer", "Bearer x", f"Bearer {TOKEN}0", f"Bearer {TOKEN[:-1]}", "Basic x", f"Basic {TOKEN}"):
        site.get("", status=401, Authorization=wrong)
    assert site.page("", Authorization=f"Bearer {TOKEN}").titled() == "Overview"
    basic = base64.b64encode(f"anna:{TOKEN}".encode()).decode()
    assert site.page("work", Authorization=f"Basic {basic}").titled() == "Work"
    assert site.figures(Authorization=f"Bearer {TOKEN}")['noctule_page_requests_total{status="401"}'] > 10
    assert TOKEN not in site.daemon.log.read_text()

    # A reload sets another token. An unusable token closes the web UI.
    other = "f" * 32
    token.write_text(other)
    site.daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: status_now(site, f"Bearer {other}") == 200, 60, "the other token")
    assert status_now(site, f"Bearer {TOKEN}") == 401
    token.write_text("short")
    site.daemon.process.send_signal(signal.SIGHUP)
    site.daemon.wait_log("event=page.start")
    status = wait_for(lambda: "the page" in (text := site.daemon.ctl("status", check=False).stdout) and text, 60, "the status")
    assert "Broken" not in status
    assert site.daemon.stop() == 0


def status_now(site, authorization):
    request = urllib.request.Request(f"http://127.0.0.1:{site.port}/work", headers={"Authorization": authorization})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def test_foreign_host_names_are_refused(daemon):
    site = Site(daemon, 'hosts = [ "noctule.example.org" ];', quiet=600.0).start()
    for host in ("evil.example", f"evil.example:{site.port}", "127.0.0.1.evil.example", ""):
        for path in ("", "metrics", "healthz"):
            site.get(path, status=421, Host=host)
    for host in ("localhost", f"127.0.0.1:{site.port}", "[::1]", "noctule.example.org", "NOCTULE.example.org:443"):
        site.get("", Host=host)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here")
def test_metrics(site):
    checked = subprocess.run(["promtool", "check", "metrics"], input=site.text("metrics"), text=True, capture_output=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    before = site.figures()
    assert before['noctule_jobs{state="REVIEW"}'] == before['noctule_jobs{state="FAILED"}'] == 1
    assert before['noctule_jobs_ended_total{state="DONE"}'] == before['noctule_series_judged_total{state="REFUSED"}'] == 1
    assert before['noctule_job_seconds_count{pipeline="head-ct"}'] == 1 <= before["noctule_files_quarantined_total"]
    assert before['noctule_job_seconds_bucket{pipeline="head-ct",le="+Inf"}'] == 1
    assert before["noctule_disk_free_bytes"] > 2**20 and before["noctule_compute_up"] == 1
    d = site.daemon
    (worker,) = d.children("worker")
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: site.figures().get('noctule_child_deaths_total{child="worker"}') == 1, 60, "the death")
    drop(phantom(d.folder / "more", "--size", "32x32x6", "--seed", "9"), d.inbox / "more")
    wait_for(lambda: site.figures()['noctule_jobs_ended_total{state="DONE"}'] == 2, 60, "one more")
    after = site.figures()
    for name in before:
        if re.search(r"_(total|count|bucket|sum)(\{|$)", name):
            assert after[name] >= before[name], name
    assert after['noctule_page_requests_total{status="200"}'] > before['noctule_page_requests_total{status="200"}']


def test_a_killed_web_ui_is_restarted(site):
    d = site.daemon
    for _ in range(2):
        (page,) = d.children("page")
        os.kill(page, signal.SIGKILL)
        wait_for(lambda: d.children("page") not in ([page], []) and is_listening(site.port), 60, "another page")
    assert site.page("work").titled() == "Work"
    assert len(d.query("SELECT 1 FROM v_events WHERE kind = 'PAGE_DIED'")) == 2
    assert "the page died 2 times" in (text := d.ctl("status", check=False).stdout) and "Broken" not in text
    assert d.stop() == 0


def test_a_port_in_use_is_reported(daemon):
    with socket.create_server(("127.0.0.1", 0)) as other:
        d = daemon(quiet=600.0, extra=f"page = {{ port = {other.getsockname()[1]}; }};\n").start()
        d.wait_log("event=page.listen")
        wait_for(lambda: "the page" in d.ctl("status", check=False).stdout, 60, "the status")
    wait_for(lambda: d.children("page") and is_listening(other_port(d)), 60, "the page, once it is free")
    assert d.stop() == 0


def other_port(d):
    return int(re.search(r"port = (\d+); \};", d.config.read_text())[1])


def test_hostile_peers(site):
    """The service and other clients are not affected by hostile peers, and none of them ends the child."""
    d = site.daemon
    (page,) = d.children("page")
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", site.port))) for _ in range(40)]
        for peer in slow:  # with a short request, then silence
            peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        for junk in (os.urandom(65536), b"GET /" + b"a" * 100_000, b"\r\n" * 10_000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n" + bytes(65536),
                     b"\x16\x03\x01" + bytes(512)):
            with socket.create_connection(("127.0.0.1", site.port)) as peer, contextlib.suppress(OSError):
                peer.sendall(junk)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            site.get("deliveries", status=405, method=method)
        assert site.get("work", method="HEAD")[1] == b""
        site.get("queue?after=" + urllib.parse.quote("' OR '\0'") + "&list=waiting")
        site.get("failures?list=refused&after=" + "%ff" * 100)
        site.get("search?q=" + "%00%01%ff" * 50, status=400)
        site.get("job?id=18446744073709551617", status=404)
        assert site.page().titled() == "Overview"
        drop(phantom(d.folder / "more", "--size", "32x32x6", "--seed", "9"), d.inbox / "more")
        wait_for(lambda: len(d.jobs()) == 4, 60, "one more job")
    assert d.children("page") == [page]
    assert d.stop() == 0


def test_half_requests_do_not_silence_healthz(daemon):
    """80 incomplete requests and 80 idle connections stay open. Monitoring and a browser are answered at once, not
    after 30 s."""
    site = Site(daemon, quiet=600.0).start()
    with contextlib.ExitStack() as stack:
        for text in (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b""):
            peers = [stack.enter_context(socket.create_connection(("127.0.0.1", site.port))) for _ in range(80)]
            for peer in peers:
                with contextlib.suppress(OSError):  # a later connection has displaced this one
                    peer.sendall(text)
            for path in ("healthz", "readyz"):
                with urllib.request.urlopen(f"http://127.0.0.1:{site.port}/{path}", timeout=15) as answer:
                    assert answer.status == 200 and answer.read() == b"ok\n"
            assert site.page().titled() == "Overview"
    assert site.daemon.stop() == 0


def test_a_long_list_continues_on_further_pages(daemon, tmp_path):
    """A list over several pages has each row exactly once."""
    site = Site(daemon, quiet=600.0, dicom=PEERS).start()
    d = site.daemon
    d.ctl("hold", "--queue")
    folder = tmp_path / "many"
    for number in range(60):
        phantom(folder / str(number), "--size", "16x16x3", "--seed", str(number))
    storescu(d.port, folder)
    wait_for(lambda: len(d.jobs("READY")) == 60, 120, "the jobs")
    jobs, path = [], "work"
    while path:
        page = site.page(path)
        jobs += [int(link.rpartition("=")[2]) for link in page.links() if link.startswith("job?id=")]
        path = next((link for link in page.links() if "after=" in link), None)
    assert sorted(jobs) == [row["job"] for row in d.jobs()]
    assert d.stop() == 0


def test_another_database(site):
    """If the database file is replaced, the web UI opens the new one."""
    d = site.daemon
    (page,) = d.children("page")
    assert d.stop() == 0
    copy = d.root / "copy.db"
    shutil.copy(d.root / "noctule.db", copy)
    copy.rename(d.root / "noctule.db")
    site.start()
    assert "MISSING_SLICE" in site.page("work").data
    assert d.stop() == 0


chromium = shutil.which("chromium")


@released_only
@pytest.mark.skipif(not chromium, reason="chromium is not here")
@pytest.mark.parametrize("width, dark, paths", [(1200, False, ("", "review", "received")), (400, False, (*PAGES, "job?id=1")),
                                                (400, True, ("review", "reports"))])
def test_in_a_browser(shared_site, tmp_path, width, dark, paths):
    """A browser renders it with its style sheet, dark in dark mode. On a phone no content overflows. The folder in
    NOCTULE_PICTURES receives the pictures."""
    for path in paths:
        picture = tmp_path / f"{re.sub('[?=]', '-', path) or 'now'}-{width}{'-dark' if dark else ''}.png"
        options = ["--force-dark-mode", "--enable-features=WebContentsForceDark:inversion_method/none"] if dark else []
        done = subprocess.run(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-proxy-server", *options,
             f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1600", f"--screenshot={picture}",
             f"http://127.0.0.1:{shared_site.port}/{path}"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        pixels = numpy.asarray(PIL.Image.open(picture).convert("L")).astype(int)
        assert (pixels[-1, 0] < 60) == dark and numpy.unique(pixels).size > 50
        assert numpy.unique(pixels[:, width - 4]).size <= 3, f"{path}: header, its line, and the page"
        if pictures := os.environ.get("NOCTULE_PICTURES"):
            shutil.copy(picture, pictures)
