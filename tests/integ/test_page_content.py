"""The pages Overview, Received, Reports and Settings show the state of the service: each number is that of the list it links to,
broken states are shown as soon as /readyz has them, and the first day has its steps."""

import json
import re
import socket
import subprocess

import pytest
from conftest import BIN, PEERS, phantom, storescu, wait_for
from test_callers import call, reload, wait_rejected
from test_daemon import change
from test_page import Site, busy_site, series_of

SECONDS = 5  # in which a page must show a state that /readyz has


def numbers(page):
    """Returns each number of a page that is a link to a list, a chip too: its address and the number."""
    found = []
    for before, href, after, text in re.findall(r'<a ([^>]*?)href="((?:work|deliveries|arrivals|quarantine)(?:\?[^"]*)?)"([^>]*)>(.*?)</a>', page, re.S):
        text = re.sub(r"<[^>]*>", "", text).strip()
        number = re.fullmatch(r"[^\d]* ([\d,]+)" if "chip" in before else r"([\d,]+)(?: [a-z ]+)?", text)
        if number and "limit=" not in href and not (number[1] == "0" and "aria-current" in after):
            found.append((href.replace("&amp;", "&"), int(number[1].replace(",", ""))))
    return found


def charted(page):
    """Returns each stack of a bar chart: the address of its list and the sum of its bars."""
    found = re.findall(r'<a href="((?:work|deliveries)\?[^"]*)"><title>([^<]*)</title>', page)
    return [(address.replace("&amp;", "&"), sum(map(int, re.findall(r"[:,] (\d+) ", title)))) for address, title in found]


def listed(site, address):
    """Returns the number of rows of a list."""
    return len(json.loads(site.text(f"api/v1/{address}{'&' if '?' in address else '?'}limit=1000"))["items"])


def crawled(site):
    """Returns the text of each page that links lead to, by its address, but not in each order."""
    pages, left = {}, ["./"]
    while left:
        address = left.pop()
        pages[address] = site.text(address)
        left += [link for link in site.page(address).links()
                 if not link.startswith(("api/", "preview")) and not re.search("#|sort=|live=", link) and link not in pages and link not in left]
    return pages


# Integers in tables that count no rows of a list: numbers of objects, images, attempts, measured values.
NO_COUNTS = {"Job", "Delivery", "Segment", "Max", "Min", "File", "Images", "Tries", "Attempts", "Frames", "Number", "Revision", "Priority", "Found", "Expected", "Voxels", "Parts",
             "Times", "Slices", "Planes", "Warnings", "Devices", "Instances", "Stack", "Events", "volume", "mean", "Example"}


def test_each_number_is_that_of_its_list(daemon, tmp_path):
    site = busy_site(daemon, tmp_path, dicom=PEERS)
    d = site.daemon
    storescu(d.port, *phantom(tmp_path / "us", "--size", "16x16x3", "--seed", "77"))
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the job of the sent series")
    wait_for(lambda: len(d.query("SELECT 1 FROM v_deliveries WHERE attempts > 0")) == 2, 60, "its delivery")
    d.ctl("hold", "--destination", "PACS")  # an attempt changes the code of a delivery meanwhile
    wait_for(lambda: not d.query("SELECT 1 FROM v_deliveries WHERE state <> 'DELAYED'"), 60, "the end of the attempts")
    pages, counts, lists, alone = crawled(site), {}, {}, {}
    assert {"work", "deliveries", "received", "reports", "reports?day=now", "settings", "cohort", "job?id=1"} <= set(pages)
    for path, page in pages.items():
        for address, number in numbers(page) + charted(page):
            if address not in lists:
                lists[address] = listed(site, address)
            assert lists[address] == number > 0, (path, address, lists[address], number)
            counts[path] = counts.get(path, 0) + 1
        # A number without a link is 0, or counts no rows of a list.
        cells = re.findall(r'<td class="n"[^>]*data-t="([^"]*)">(.*?)</td>', page)
        left = {title for title, text in cells if re.fullmatch(r"(<[^a][^>]*>)*[1-9][\d,]*(<[^>]*>)*", text)} - NO_COUNTS
        alone.update({path: left} if left else {})
        assert not [text for _, text in cells if re.fullmatch(r"<a[^>]*>0</a>", text)], path
    assert not alone
    assert counts["./"] >= 7 and counts["received"] >= 3 and counts["reports"] >= 7 and counts["settings"] >= 2, counts
    assert counts["reports?day=now"] >= 7 and counts["work"] >= 5 and counts["deliveries"] >= 2, counts
    assert "5 series and jobs</a>" in pages["received"]
    # The inboxes have a row with a link, as each caller has.
    (row,) = [row for row in re.findall(r"<tr.*?</tr>", pages["received"], re.S) if ">inboxes<" in row.replace("<bdi>", "").replace("</bdi>", "")]
    assert "way=inbox" in row and ">4</a>" in row
    # 0 is no link, and what does not work says what would appear
    assert re.search(r"<span>0 running</span>", pages["./"]) and "Synthetic" not in pages["settings"]
    # The menu counts what waits for a person and what is not delivered.
    assert re.search(r'href="review">Review<span class="count person">1<', pages["settings"])
    assert re.search(r'href="deliveries">Deliveries<span class="count bad">2<', pages["settings"])
    assert f'href="job?id={series_of(d, "REVIEW")["job"]}"' in site.text("cohort?of=brain-mr/Brain")
    assert d.stop() == 0


def text_of(site, path):
    """Returns a page; "" while a reload replaces the process of the web UI."""
    try:
        return site.ask(path)[2].decode()
    except OSError:
        return ""


@pytest.fixture
def quiet(daemon):
    return Site(daemon, quiet=600.0, dicom=PEERS).start()


@pytest.mark.parametrize("state", ["no GPU", "port taken", "disk full"])
def test_a_broken_service_is_shown_at_once(quiet, state):
    d = quiet.daemon
    part, word = {"no GPU": ("Workers", "no job can run"), "port taken": ("Receiver", "reception"),
                  "disk full": ("Receiver", "min_free_mib")}[state]
    wait_for(lambda: quiet.ask("readyz")[0] == 200, 60, "a ready service")
    assert "Working" in quiet.text("") and not re.search(r"\b503\b", quiet.text(""))
    other = socket.create_server(("127.0.0.1", 0))
    if state == "no GPU":
        change(d, "compute = { lanes = 2;", 'compute = { lanes = 2; backend = "cuda";')
    elif state == "port taken":
        change(d, f"port = {d.port};", f"port = {other.getsockname()[1]};")
    else:
        change(d, "min_free_mib = 1;", "min_free_mib = 1e9;")
    d.ctl("reload", check=False)

    wait_for(lambda: word in text_of(quiet, "readyz"), 90, "the broken state in /readyz")
    page = wait_for(lambda: "Broken: " in (text := text_of(quiet, "settings")) and text, SECONDS, "the state in the bar")
    page = wait_for(lambda: "Broken: " in (text := text_of(quiet, "")) and text, SECONDS, "the state on the overview")
    assert "The service does not do its work." in page and re.search(r"Broken: \d", page)
    (row,) = [row for row in re.findall(r"<tr>(.*?)</tr>", page, re.S) if f"<td>{part}</td>" in row]
    assert "Broken" in row and (word in page or str(other.getsockname()[1]) in page)
    assert d.stop() == 0
    other.close()


def test_a_rejected_caller_is_on_top_with_the_line_that_admits_it(daemon):
    site = Site(daemon, quiet=600.0, dicom='peers = ( { ae_title = "CT1"; host = "127.0.0.9"; } );').start()
    d = site.daemon
    assert not call(d, "CT9")
    wait_rejected(d, 1)
    page = site.text("received")
    rows = re.findall(r"<tr[^>]*><td>.*?</tr>", page, re.S)
    assert "Rejected" in rows[0] and "CT9" in rows[0] and 'class="act"' in rows[0] and "Quiet" in rows[1]
    (line,) = re.findall(r"<code>dicom.peers</code></p><pre>(.*?)</pre>", page)
    line = line.replace("&#34;", '"')
    assert line == '{ ae_title = "CT9"; host = "127.0.0.1"; }'
    copy = d.folder / "copy.conf"
    copy.write_text(d.config.read_text().replace("peers = ( ", f"peers = ( {line}, "))
    assert subprocess.run([BIN / "noctule", "check-config", copy], capture_output=True).returncode == 0
    reload(d, "peers = ( ", f"peers = ( {line}, ")
    wait_for(lambda: call(d, "CT9"), 60, "the admission")
    wait_for(lambda: "Admitted now" in text_of(site, "received"), 60, "the state of the caller")
    assert "<pre>{" not in site.text("received")
    assert d.stop() == 0


def test_a_refused_reload_is_shown_with_its_reason(quiet):
    d = quiet.daemon
    assert "was refused" not in quiet.text("settings")
    change(d, "quiet_seconds = 600.0", 'quiet_seconds = "long"')
    assert d.ctl("reload", check=False).returncode != 0
    page = wait_for(lambda: "was refused" in (text := quiet.text("settings")) and text, SECONDS, "the refusal")
    reason = re.search(r'id="refused">.*?<pre>(.*?)</pre>', page, re.S)[1]
    assert "quiet_seconds" in reason and "noctule.conf:" in reason and "stays in force" in page
    page = wait_for(lambda: "the configuration was refused" in (text := quiet.text("")) and text, SECONDS, "the alert")
    assert 'href="settings">Show' in page
    assert d.stop() == 0


def test_settings_have_warnings_and_no_secret(daemon):
    secret = "Authorization: 3bf1"
    site = Site(daemon, quiet=600.0, dicom=PEERS, extra=f'report = {{ at = "07:00"; command = "curl -H \'{secret}\'"; }};\n'
                'notify = ( { name = "mail"; events = [ "alert" ]; command = "mail 3bf1"; } );\n').start()
    page = site.text("settings")
    assert "3bf1" not in page and page.count("(not shown)") == 2 and "at the start" in page
    assert str(site.daemon.config) in page and "head-ct" in page and "Warnings" in page
    assert site.daemon.stop() == 0


def test_the_first_day_has_four_steps(daemon):
    site = Site(daemon, quiet=600.0, dicom=PEERS).start()
    d = site.daemon
    page = site.text("")
    steps = re.findall(r"<li><h3>(.*?)</h3>", page)
    assert len(steps) == 4 and steps[2] == f"Send a series to NOCTULE at port {d.port}"
    assert f"storescu -aec NOCTULE 127.0.0.1 {d.port} --scan-directories" in page
    assert f"noctule-phantom --kind ct-head --output {d.inbox}/try" in page
    assert "Flow" not in page and "four steps" in page
    for path, empty in (("received", "No file is in quarantine"), ("reports", "Each report period appears here"),
                        ("cohort", "No segment was measured yet"), ("", "No job and no result waits")):
        assert empty in site.text(path), path
    subprocess.run([BIN / "noctule-phantom", "--kind", "ct-head", "--size", "32x32x8", "--output", d.inbox / "try"], check=True, capture_output=True)
    wait_for(lambda: "Flow" in site.text(""), 60, "the first series")
    assert d.stop() == 0


def test_old_addresses_lead_to_their_pages(quiet):
    for old, new in (("night", "reports"), ("devices", "settings"), ("queue", "work?state=WAITING"), ("failures", "work?state=FAILED")):
        assert quiet.page(old).titled() == quiet.page(new).titled()
    assert quiet.ask("night?day=2026-13-40")[0] == 404
    assert quiet.daemon.stop() == 0
