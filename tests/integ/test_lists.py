"""The pages Work and Deliveries: filters, counts that equal their lists, orders, pages, links, foreign texts."""

import contextlib
import csv
import html
import io
import json
import re
import sqlite3
import sys
import urllib.parse

import pytest
from conftest import SOURCE, daemons, free_port
from test_deliveries import to_archive
from test_page import ACCESSION, PATIENT, Page, Site, busy_site, post_form, search, settings_of

sys.path.append(str(SOURCE / "tests" / "tools"))

import fill_lists  # noqa: E402

FILLED = 400


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lists")
    with daemons(folder) as daemon:
        site = busy_site(daemon, folder)
        fill_lists.fill(site.daemon.root / "noctule.db", FILLED)
        yield site


def plain_site(daemon, folder):
    return Site(daemon, settings=settings_of(folder / "daemon0" / "root"),
                extra=f"destinations = ( {to_archive(free_port())} );\n").start()


def chips(text):
    """Returns the count and the address of each chip: {"All": (404, "work")}."""
    return {re.sub("<.*?>", "", title).strip(): (int(count.replace(",", "")), html.unescape(href)) for href, title, count in
            re.findall(r'<a class="chip" href="([^"]*)"[^>]*>(.*?)<b>(.*?)</b></a>', text)}


def rows(text):
    return re.findall(r"<tr><td>.*?</tr>", text, re.S)


def all_rows(site, address):
    """Follows the links to the next rows. Returns the rows, and the total that the pages show."""
    found, totals = [], set()
    while address:
        text = site.text(address)
        found += rows(text)
        totals |= {int(n.replace(",", "")) for n in re.findall(r'<div class="pager"><span>.*?<b>([\d,]+)</b>', text)}
        more = re.search(r'<a rel="next" href="([^"]*)">', text)
        address = html.unescape(more[1]) if more else None
    (total,) = totals
    return found, total


@pytest.mark.parametrize("address, view", [("work", "v_work"), ("work?modality=CT", "v_work"), ("work?scanner=CT%27%3Cb%3E", "v_work"),
                                           ("deliveries", "v_deliveries"), ("deliveries?destination=RESEARCH", "v_deliveries")])
def test_counts_equal_their_lists(site, address, view):
    states = {"work": {"Waiting": ("READY", "DELAYED"), "Receiving": ("GATHERING",)}, "deliveries": {
        "Waiting": ("PENDING", "SENDING", "DELAYED"), "Not delivered": ("PENDING", "SENDING", "DELAYED", "FAILED")}}[address.split("?")[0]]
    where = {"modality": "modality = 'CT'", "scanner": "station = 'CT''<b>'", "destination": "destination = 'RESEARCH'"}
    condition = next((sql for word, sql in where.items() if word in address), "1")
    for title, (count, href) in chips(site.text(address)).items():
        names = states.get(title, (title.upper().replace(" ", "_"),))
        of_state = "1" if title == "All" else f"state IN ({', '.join(map(repr, names))})"
        (counted,) = site.daemon.query(f"SELECT count(*) AS n FROM {view} WHERE {condition} AND {of_state}")
        found, total = all_rows(site, href + ("&" if "?" in href else "?") + "limit=200")
        assert len(found) == total == count == counted["n"], (title, href)


def test_the_filter_is_the_address(site):
    text = site.text("work?modality=CT&scanner=CT1&since=7d&code=")
    form = re.search(r"<form class=\"filters\".*?</form>", text, re.S)[0]
    assert '<option value="CT" selected>' in form and '<option value="CT1" selected>' in form
    assert '<option value="7d" selected>' in form
    for chip in chips(text).values():
        asked = urllib.parse.parse_qs(urllib.parse.urlsplit(chip[1]).query)
        assert asked["modality"] == ["CT"] and asked["scanner"] == ["CT1"] and asked["since"] == ["7d"] and "code" not in asked
    (exported,) = re.findall(r'href="(api/v1/work[^"]*format=csv[^"]*)"', text)
    listed = list(csv.DictReader(io.StringIO(site.text(html.unescape(exported)), newline="")))
    assert listed and len(listed) == chips(text)["All"][0] and {row["modality"] for row in listed} == {"CT"}
    assert {row["station"] for row in listed} == {"CT1"}
    (exported,) = re.findall(r'href="(api/v1/work[^"]*format=json[^"]*)"', text)
    assert len(json.loads(site.text(html.unescape(exported)))["items"]) == len(listed)
    # a field without a place in the form stays
    assert 'type="hidden" name="code" value="NO_RULE"' in site.text("work?code=NO_RULE")


def forms(text):
    """The fields of each form that stands for a link, by its label: {"All": {"text": "thorax"}}."""
    found = {}
    for action, body, label in re.findall(r'<form class="link" method="post" action="([^"]*)">(.*?)<button[^>]*>(.*?)</button></form>', text, re.S):
        fields = {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', body)}
        found[re.sub("<b>.*?</b>|<.*?>|&#96[56][02];", "", label).strip()] = action, fields
    return found


def test_a_text_is_in_no_address(site):
    """A list with a text is the answer to a POST: its counts, orders, pages and exports are forms, and equal those of SQL."""
    d = site.daemon
    text = post_form(site, "work", text="thorax", modality="CT", limit="20")
    (n,) = d.query("SELECT count(*) AS n FROM v_work WHERE modality = 'CT' AND instr(lower(series_description), 'thorax') > 0")
    links, count = forms(text), int(re.search(r'class="pager"><span>20 of <b>(\d+)</b>', text)[1])
    assert count == n["n"] > 20 and 'name="text"' in text and 'value="thorax"' in text
    assert not [href for href in re.findall(r'href="([^"]*)"', text) if "thorax" in href or "text=" in href]
    assert {"All", "Done", "Next", "CSV of all", "JSON", "Scanner", "Time"} <= set(links), links
    assert links["Done"] == ("work", {"modality": "CT", "text": "thorax", "limit": "20", "state": "DONE"})
    seen, fields = set(), {"text": "thorax", "modality": "CT", "limit": "20"}
    while fields:
        page = post_form(site, "work", **fields)
        numbers = re.findall(r'<td class="t"><a href="((?:job|series)[^"]*)"', page)
        assert numbers and not seen & set(numbers)
        seen |= set(numbers)
        fields = forms(page).get("Next", (None, None))[1]
    assert len(seen) == count
    action, fields = links["CSV of all"]
    listed = list(csv.DictReader(io.StringIO(post_form(site, action, **fields), newline="")))
    assert action == "api/v1/found" and len(listed) == count and all("thorax" in row["series_description"].lower() for row in listed)
    assert len(json.loads(post_form(site, *links["JSON"][:1], **links["JSON"][1]))["items"]) == count
    # identifiers, also those that are stored as hashes
    for word in (ACCESSION, PATIENT):
        assert len(rows(post_form(site, "work", text=word))) == 1
    assert "No job and no series matches" in post_form(site, "work", text="nothing at all")
    for path in ("work?text=thorax", "api/v1/work?text=thorax"):
        assert site.ask(path)[0] == 400, path
    assert site.ask("api/v1/found?text=thorax")[0] == 405 and "thorax" not in d.log.read_text()


@pytest.mark.parametrize("sort, column", [("seconds", "total_seconds"), ("job", "job"), ("scanner", "station"), ("at", "at"),
                                          ("instances", "instances"), ("pipeline", "pipeline")])
def test_columns_sort(site, sort, column):
    """By title: a second click turns the order."""
    (link,) = {html.unescape(href) for href in re.findall(rf'<th [^>]*><a href="(work[^"]*sort=-?{sort})"', site.text("work"))}
    for _ in range(2):
        address = f"api/v1/{link}&limit=1000"
        values = [row[column] for row in json.loads(site.text(address))["items"]]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse="sort=-" in link) and len(set(known)) > 1
        text = site.text(link)
        direction = "descending" if "sort=-" in link else "ascending"
        (other,) = re.findall(rf'<th [^>]*aria-sort="{direction}"><a href="([^"]*)"', text)
        assert ("sort=-" in other) != ("sort=-" in link)
        link = html.unescape(other)


def test_foreign_texts_stay_text(site):
    for address in ("work?limit=200", "deliveries?limit=200", "<script>", "work?scanner=CT%27%3Cb%3E"):
        page = Page(post_form(site, "work", text=address)) if address == "<script>" else site.page(address)
        assert not {"script", "b>"} & set(page.tags) and not [n for _, n, _ in page.attributes if n.startswith("on") or n == "style"]
        if address != "work?scanner=CT%27%3Cb%3E":
            assert "<script>alert(1)</script>" in page.data, address
        assert "\u202e" not in page.data
    text = post_form(site, "work", limit="200", text="頭部")
    assert len(re.findall("頭部単純CT 5mm" + "脳" * 52, text)) == 2 * len(rows(text)) > 0  # whole, also as tooltip
    listed = list(csv.DictReader(io.StringIO(post_form(site, "api/v1/found", format="csv", limit="1000", text="HYPERLINK"), newline="")))
    assert listed and all(row["series_description"] == "'=HYPERLINK(\"http://x\")" for row in listed)


def test_a_row_answers_what_then(site):
    d = site.daemon
    (refused,) = (row["series_uid"] for row in d.query("SELECT series_uid FROM v_series WHERE state = 'REFUSED' AND series_uid "
                                                       "NOT LIKE '1.2.3.%'"))
    (row,) = rows(site.text(f"work?series={refused}"))
    assert f'href="series?uid={refused}"' in row and "MISSING_SLICE" in row and "Refused" in row
    (job,) = d.query("SELECT job, series_uid FROM v_jobs WHERE state = 'DONE' AND series_uid NOT LIKE '1.2.3.%'")
    (row,) = rows(site.text(f"work?series={job['series_uid']}"))
    assert f'href="job?id={job["job"]}"' in row and "PACS" in row and "Waiting" in row


def test_destinations_and_causes(site):
    """A row per destination whose numbers are links to what they count, and a group per cause."""
    text, d = site.text("deliveries"), site.daemon
    (table,) = re.findall(r"<h2>Destinations</h2>(.*?)</table>", text, re.S)
    for name in ("PACS", "RESEARCH"):
        (row,) = [row for row in re.findall(r"<tr.*?</tr>", table, re.S) if f">{name}<" in row]
        for href, count in re.findall(r'<a href="(deliveries\?[^"]*)">([\d,]+)</a>', row):
            assert f"destination={name}" in href
            assert all_rows(site, html.unescape(href) + "&limit=200")[1] == int(count.replace(",", "")) > 0
        (sent,) = d.query("SELECT count(*) AS n FROM v_deliveries WHERE destination = ? AND state = 'SENT' AND sent_at >= "
                          "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')", name)
        assert f"{sent['n']} sent in 24 hours" in row and row.count("<rect") >= 8  # 400 series, one per 100 s: 11 hours
    groups = re.findall(r'<details class="group">(.*?)</details>', text, re.S)
    expected = d.query("SELECT destination, cause, code, deliveries FROM v_undelivered ORDER BY deliveries DESC")
    assert len(groups) == len(expected) == 3
    for group, row in zip(groups, expected):
        assert f"<b>{row['destination']}</b>: {row['deliveries']} result" in group and row["code"] in group
        (href,) = re.findall(r'<a href="(deliveries[^"]*)">All of them', group)
        assert all_rows(site, html.unescape(href) + "&limit=200")[1] == row["deliveries"]


@pytest.mark.parametrize("address", ["work?x=1", "work?state=done", "work?sort=x", "work?after=x", "work?limit=0", "work?since=x", "work?sender=A%00",
                                     "deliveries?state=DONE"])
def test_a_bad_filter_is_refused(site, address):
    assert "parameter" in site.page(address, 400).data


def test_the_first_day_says_how(daemon, tmp_path):
    site = plain_site(daemon, tmp_path)
    page = site.page("work")
    assert "No series has been received" in page.data and str(site.daemon.inbox) in page.data
    assert "matches the filter" in site.page("work?state=DONE").data


def test_a_page_of_results_continues(site):
    """In a form, too: 120 series of one patient."""
    d = site.daemon
    (known,) = {link for link in search(site, q=PATIENT).links() if link.startswith("series?uid=")}
    columns = [c["name"] for c in d.query("PRAGMA table_info(series)") if c["name"] != "id"]
    with contextlib.closing(sqlite3.connect(d.root / "noctule.db", timeout=60)) as db, db:
        for number in range(120):
            values = ", ".join(f"'1.2.3.77.{number}'" if c == "series_uid" else c for c in columns)
            db.execute(f"INSERT INTO series ({', '.join(columns)}) SELECT {values} FROM series WHERE series_uid = ?", (known.removeprefix("series?uid="),))
    seen, fields = set(), {"q": PATIENT}
    for _ in range(4):
        page = search(site, **fields)
        assert ("input", "value", PATIENT) in page.attributes
        assert not [link for link in page.links() if "q=" in link or "P%27" in link]
        seen |= {link.removeprefix("series?uid=") for link in page.links() if link.startswith("series?uid=")}
        marks = [value for tag, name, value in page.attributes if tag == "input" and name == "value" and value not in ("", PATIENT)]
        if not marks:
            break
        fields["after"] = marks[0]
    assert len(seen) == 121
