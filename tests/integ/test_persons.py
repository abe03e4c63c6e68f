"""Persons of the web UI: searches that no address holds."""

import json
import socket
import urllib.parse

import pytest
from conftest import daemons
from test_page import ACCESSION, PATIENT, TOKEN, Page, Site, busy_site, search, series_of

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A web UI that takes no decisions, and has no token."""
    folder = tmp_path_factory.mktemp("persons")
    with daemons(folder) as daemon:
        yield busy_site(daemon, folder)


def query(site, _status=200, _headers=None, **values):
    """A search by a program."""
    headers = {"Origin": f"http://127.0.0.1:{site.port}", "Content_Type": JSON, **(_headers or {})}
    status, answered, content = site.ask("api/v1/search", method="POST", body=json.dumps(values),
                                         **{name: value for name, value in headers.items() if value is not None})
    assert status == _status, content
    return json.loads(content) if "json" in answered["Content-Type"] else content.decode()


def test_a_search_finds_the_same_as_sql(site):
    d = site.daemon
    done = series_of(d, "DONE")
    (row,) = d.query("SELECT * FROM v_work WHERE job = ?", done["job"])
    (result,) = d.query("SELECT * FROM v_results WHERE kind = 'seg' AND job = ?", done["job"])
    for text in (str(done["job"]), done["series_uid"], row["study_uid"], result["sop_instance_uid"], result["result_series_uid"]):
        found = query(site, text=text)
        assert done["job"] in [item["job"] for item in found["items"]] and found["next"] is None, text
        assert set(row.keys()) <= set(found["items"][0])
    for text in (ACCESSION, PATIENT):
        (hashed,) = {item["series_uid"] for item in query(site, text=text)["items"]}
        assert d.query("SELECT 1 FROM v_series WHERE series_uid = ? AND accession_number <> '' AND patient_id <> ''", hashed)
        assert hashed in search(site, q=text).data
    for text in ("P", "A/1", "' OR 1 --", "%", done["series_uid"][:-1]):
        assert query(site, text=text)["items"] == [], text
    # the filters of the list, and its pages
    assert query(site, text=str(done["job"]), state="FAILED")["items"] == []
    assert query(site, text=done["job"], limit=1)["items"][0]["job"] == done["job"]  # JSON has numbers, too
    assert query(site, text=str(done["job"]), format="csv").splitlines()[0].split(",") == list(found["items"][0])
    form = urllib.parse.urlencode({"text": PATIENT})
    status, _, content = site.ask("api/v1/search", method="POST", body=form, Origin=f"http://127.0.0.1:{site.port}", Content_Type=FORM)
    assert status == 200 and len(json.loads(content)["items"]) == 1


@pytest.mark.parametrize("headers, values, status", [
    ({"Origin": None}, {"text": "1"}, 403),
    ({"Origin": "http://evil.example"}, {"text": "1"}, 403),
    ({"Origin": "null"}, {"text": "1"}, 403),
    ({"Sec_Fetch_Site": "cross-site"}, {"text": "1"}, 403),
    ({"Host": "evil.example"}, {"text": "1"}, 421),
    ({"Content_Type": "text/plain"}, {"text": "1"}, 415),
    ({}, {}, 400),
    ({}, {"text": ""}, 400),
    ({}, {"text": "a\nb"}, 400),
    ({}, {"text": "1", "patient": "x"}, 400),
    ({}, {"text": "1", "state": "NONE"}, 400),
    ({}, {"text": "1", "limit": 0}, 400),
    ({}, {"text": ["1"]}, 400),
    ({}, {"text": "x" * 8192}, 413),
    ({"Accept": "image/png"}, {"text": "1"}, 406),
])
def test_searches_that_are_refused(site, headers, values, status):
    query(site, status, headers, **values)


def test_no_address_and_no_log_holds_the_text(site):
    secret = "PATIENT-4711-SECRET"
    search(site, q=secret)
    query(site, text=secret)
    for method, path in (("GET", f"search?q={secret}"), ("GET", f"api/v1/search?text={secret}")):
        status, headers, content = site.ask(path, method=method)
        assert status == (400 if path.startswith("search") else 405) and secret not in content.decode(), content
    for path, body in (("search", "q=1"), ("api/v1/search", '{"text": "1"}')):  # the address of a POST, too
        status, _, content = site.ask(f"{path}?q={secret}", method="POST", body=body, Origin=f"http://127.0.0.1:{site.port}",
                                      Content_Type=FORM if path == "search" else JSON)
        assert status == 400 and "body" in content.decode() and secret not in content.decode()
    page = site.page("search")
    assert ("form", "method", "post") in page.attributes and ("form", "action", "search") in page.attributes
    assert secret not in site.daemon.log.read_text() and not site.daemon.query("SELECT 1 FROM v_audit")


def test_a_search_needs_the_token_of_the_pages(daemon, tmp_path):
    site = Site(daemon, f'token_file = "{tmp_path / "token"}";')
    (tmp_path / "token").write_text(TOKEN)
    site.start()
    for authorization, status in ((None, 401), ("Bearer " + "0" * 32, 401), (f"Bearer {TOKEN}", 200)):
        query(site, status, {"Authorization": authorization}, text="1")
        answered, _, content = site.ask("search", method="POST", body="q=1", Content_Type=FORM, Origin=f"http://127.0.0.1:{site.port}",
                                        **({"Authorization": authorization} if authorization else {}))
        assert answered == status and (status != 200 or Page(content.decode()).titled() == "Search")
