"""/api/v1: every address of its document, filters and pages, types, problems, ETags, the token, no identifiers."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import urllib.parse

import pydicom
import pytest
from conftest import BIN, SOURCE, daemons, free_port, wait_for
from test_deliveries import to_archive
from test_page import ACCESSION, PATIENT, PIPELINES, TOKEN, Site, busy_site, post_form, series_of, settings_of

PROBLEM = {"type", "title", "status", "detail", "code", "to_do"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    with daemons(folder) as daemon:
        yield busy_site(daemon, folder)


def get(site, path, **headers):
    return json.loads(site.get(f"api/v1/{path}", **headers)[1])


def problem(site, path, status, code, **headers):
    answer = site.get(f"api/v1/{path}", status, **headers)
    assert answer[0]["Content-Type"] == "application/problem+json"
    told = json.loads(answer[1])
    assert set(told) == PROBLEM and told["status"] == status and told["code"] == code and told["detail"] and told["to_do"]
    return told


def examples(site):
    """Every address of the document, with a job, a series and an instance that are there."""
    job = series_of(site.daemon, "DONE")
    (result,) = site.daemon.query("SELECT sop_instance_uid FROM v_results WHERE kind = 'seg' AND job = ?", job["job"])
    values = {"job": job["job"], "series": job["series_uid"], "instance": result["sop_instance_uid"],
              "plane": "ax", "index": 0}
    paths = get(site, "openapi.json")["paths"]
    return {path: path.removeprefix("/api/v1/").format(**values) for path in paths}


def needed(operation):
    return "".join(f"?{p['name']}=head-ct" for p in operation["get"]["parameters"] if p["required"] and p["in"] == "query")


UNMEASURED = ("cohort", "similar")  # addresses of features
LOGINS = {"/api/v1/session", "/api/v1/session/end"}  # only with page.tokens_file: integ.persons


def others_of(paths):
    """Addresses of planes (integ.page_planes), and those that take a POST only or need a person (integ.persons)."""
    return {path for path in paths if "/planes" in path or "get" not in paths[path] or path.endswith(("audit", "views"))}


def test_every_route_is_in_the_document(site):
    """The rows of both tables of addresses, as their sources have them. This site takes no decisions: integ.decide."""
    web = SOURCE / "service" / "web"
    rows = (web / "api" / "web_api_routes.c").read_text()
    addresses = set(re.findall(r'\{\.path = "([^"]*)"', rows)) | set(re.findall(r'(?:LIST|ANSWER)\("([^"]*)"', rows))
    addresses -= {"decisions", "jobs/{job}/corrections"}
    pages = (web / "server" / "web_routes.c").read_text()
    assert set(re.findall(r'\.path = API_ROOT "([^"]*)"', pages)) <= addresses | {"{}", "jobs/{job}/corrections"} and ".path = WEB_PLANES_PATH" in pages
    assert {"jobs/{job}/planes", "jobs/{job}/planes/{plane}/{index}", "jobs/{job}/planes/{plane}/{index}.png"} <= addresses
    paths = get(site, "openapi.json")["paths"]
    assert set(paths) == {"/api/v1/" + address for address in addresses} - LOGINS
    for path, operations in paths.items():
        in_path = [p["name"] for p in next(iter(operations.values()))["parameters"] if p["in"] == "path"]
        assert in_path == re.findall(r"\{(\w+)\}", path)


def test_every_address_answers(site):
    document = get(site, "openapi.json")
    assert document["openapi"].startswith("3.1")
    others = others_of(document["paths"])
    assert len(document["paths"]) - len(others) == 29
    for path, address in examples(site).items():
        if path in others:
            continue
        headers, content = site.get(f"api/v1/{address}{needed(document['paths'][path])}", 404 if path.endswith(UNMEASURED) else 200)
        if path.endswith(UNMEASURED):
            continue  # none were measured here
        assert headers["Content-Type"] == "application/json" and headers["ETag"], path
        told = json.loads(content)
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        rows = told["items"] if "items" in schema.get("properties", {}) else [told]
        properties = schema["properties"]["items"]["items"]["properties"] if "items" in schema.get("properties", {}) \
            else schema.get("properties")
        for row in rows:
            assert properties is None or set(row) == set(properties), path
        changes = path.endswith(("status", "alerts", "groups", "work", "{job}", "deliveries", "events", "destinations"))  # by an attempt
        assert site.ask(f"api/v1/{address}", If_None_Match=headers["ETag"])[0] in ((200, 304) if changes else (304,)), path


def texts_of(told):
    """Every text of an answer with its name."""
    for name, value in told.items() if isinstance(told, dict) else enumerate(told):
        if isinstance(value, (dict, list)):
            yield from texts_of(value)
        elif isinstance(value, str):
            yield name, value


def test_every_address_keeps_the_promises(site):
    """Of the whole document: unknown parameters, other methods, times, entity tags, and CSV with the rows of JSON."""
    document = get(site, "openapi.json")["paths"]
    for path, address in examples(site).items():
        gets = "get" in document[path]
        for method in ("POST" if gets else "GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
            told = problem(site, address, 405, "WRONG_METHOD", method=method)
            allowed = site.ask(f"api/v1/{address}", method=method)[1]["Allow"]
            assert allowed == ("GET, HEAD" if gets else "POST") and "Allow" in told["to_do"], path
        if path in others_of(document):
            continue
        query = needed(document[path])
        problem(site, f"{address}{query}{'&' if query else '?'}unknown=1", 400, "UNKNOWN_PARAMETER")
        problem(site, f"{address}{query}", 406, "NOT_ACCEPTABLE", Accept="image/png")
        if path.endswith(UNMEASURED):
            continue  # none were measured here
        headers, content = site.get(f"api/v1/{address}")
        for name, text in texts_of(json.loads(content)):
            if isinstance(name, str) and (name.endswith("_at") or name in ("at", "since", "until")) and text:
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text), (path, name, text)
        assert re.fullmatch(r'"[0-9a-f]{16}"', headers["ETag"]) and headers["Cache-Control"] == "no-store", path
        status, headers, none = site.ask(f"api/v1/{address}", If_None_Match="*")
        assert (status, none) == (304, b"") and headers["ETag"], path
        assert site.ask(f"api/v1/{address}", If_None_Match='"0123456789abcdef"')[0] == 200, path
        answers = document[path]["get"]["responses"]
        assert {"200", "304", "400", "401", "404", "406", "421", "503"} == set(answers)
        if "text/csv" in answers["200"]["content"]:
            rows = json.loads(content)["items"]
            table = list(csv.reader(io.StringIO(site.get(f"api/v1/{address}", Accept="text/csv")[1].decode(), newline="")))
            assert not rows or (table[0] == list(rows[0]) and len(table) >= 1 + len(rows)), path
            assert site.get(f"api/v1/{address}?limit=1&format=csv")[0]["Content-Type"].startswith("text/csv"), path


def rows_of(d, sql):
    return [{key: pytest.approx(row[key], rel=1e-14) if isinstance(row[key], float) else row[key] for key in row.keys()}
            for row in d.query(sql)]


def test_rows_are_those_of_the_views(site):
    d = site.daemon
    job = series_of(d, "DONE")["job"]
    for path, view, order in ((f"jobs/{job}/segments", "v_segments", "segment"), (f"jobs/{job}/results", "v_results", "path"),
                              (f"jobs/{job}/events", "v_events", "event"), ("review", "v_review", "job")):
        where = f"WHERE job = {job}" if "jobs/" in path else ""
        expected = rows_of(d, f"SELECT * FROM {view} {where} ORDER BY {order}")
        assert get(site, path)["items"][:len(expected)] == expected, path  # a delivery goes on being tried
    assert get(site, f"jobs/{job}")["results"] == rows_of(d, f"SELECT * FROM v_results WHERE job = {job} ORDER BY path")
    work = get(site, "work")["items"]
    assert {(row["job"], row["state"]) for row in work} == {
        (row["job"], row["state"]) for row in d.query("SELECT job, state FROM v_work")}
    assert sorted(row["state"] for row in work) == ["DONE", "FAILED", "REFUSED", "REVIEW"]
    (done,) = get(site, "work?state=DONE")["items"]
    assert done["deliveries"] == "PACS WAITING" and done["reason"] == ""
    (refused,) = get(site, "work?state=REFUSED")["items"]
    assert refused["job"] is None and refused["reason"] == "MISSING_SLICE"


def test_pages_of_rows(site):
    job = series_of(site.daemon, "DONE")["job"]
    whole = get(site, f"jobs/{job}/events")["items"]
    rows, after, pages = [], "", 0
    while after is not None:
        mark = f"&after={urllib.parse.quote(after)}" if after else ""
        headers, content = site.get(f"api/v1/jobs/{job}/events?limit=2{mark}")
        told = json.loads(content)
        rows, after, pages = rows + told["items"], told["next"], pages + 1
        assert (headers["Link"] is None) == (after is None)
        if after:
            link = headers["Link"].removeprefix("<").removesuffix('>; rel="next"')
            assert urllib.parse.parse_qs(link.removeprefix("?")) == {"limit": ["2"], "after": [after]}
    assert rows[:len(whole)] == whole and pages == (len(rows) + 1) // 2  # a delivery goes on being tried


def test_csv(site):
    headers, content = site.get("api/v1/work?sort=job", Accept="text/csv")
    assert headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    work = get(site, "work?sort=job")["items"]
    assert [row["series_description"] for row in rows] == [row["series_description"] for row in work]
    assert [row["at"] for row in rows] == [row["at"] for row in work]
    assert site.get("api/v1/work?sort=job&format=csv")[1] == content


def test_a_result_as_a_file(site):
    d = site.daemon
    (result,) = d.query("SELECT sop_instance_uid, path FROM v_results WHERE kind = 'seg' AND state = 'DONE'")
    headers, content = site.get(f"api/v1/results/{result['sop_instance_uid']}", Accept="application/dicom")
    assert headers["Content-Type"] == "application/dicom" and content == (d.root / result["path"]).read_bytes()
    assert get(site, f"results/{result['sop_instance_uid']}")["path"] == result["path"]
    assert site.get(f"api/v1/results/{result['sop_instance_uid']}?format=dicom")[1] == content
    assert site.get(f"api/v1/results/{result['sop_instance_uid']}", method="HEAD",
                    Accept="application/dicom")[0]["Content-Length"] == str(len(content))
    problem(site, "results/1.2.3", 404, "NOT_FOUND")
    problem(site, "results/1.2.3", 404, "NOT_FOUND", Accept="application/dicom")


@pytest.mark.parametrize("query, word", [
    ("work?pipelin=x", "pipelin"), ("work?state=done", "state"), ("work?since=now", "since"), ("work?limit=0", "limit"),
    ("work?limit=10001", "limit"), ("work?limit=1e3", "limit"), ("work?sort=message", "sort"), ("work?after=x", "after"),
    ("work?state=DONE&state=DONE", "twice"), ("work?sender=", "empty"), ("work?format=xml", "format"), ("status?format=json", "format"),
    ("work?sender=A%00B", "NUL"), ("work?scanner=%00", "NUL"), ("work?state=x", "state"), ("jobs/1?x=1", "x"), ("jobs/1/events?job=2", "job"), ("cohort", "pipeline"), ("cohort?pipeline=a&table=b", "table"),
    ("cohort?pipeline=a&since=x", "since"), ("deliveries?job=1.5", "job"), ("work?longer=x", "longer"),
    ("work?" + "&".join(f"a{i}=1" for i in range(40)), "32"), ("work?<script>=1", "<script>")])
def test_a_bad_request_is_explained(site, query, word):
    code = "UNKNOWN_PARAMETER" if word in ("pipelin", "twice", "x", "32", "<script>") or query in (
        "status?format=json", "jobs/1/events?job=2") else "BAD_PARAMETER"
    assert word in problem(site, query, 400, code)["detail"]


def test_what_is_not_there(site):
    for path in ("", "x", "jobs", "jobs/", "jobs/0", "jobs/999", "jobs/1x", "jobs/-1", "jobs/1/", "jobs/1/x", "jobs/999/events",
                 "jobs/" + 30 * "9", "series/1.2.3", "series/", "work/", "results/../../x", "openapi", "decision"):
        problem(site, path, 404, "NOT_FOUND")
    problem(site, "work", 406, "NOT_ACCEPTABLE", Accept="image/png")
    problem(site, "work", 406, "NOT_ACCEPTABLE", Accept="application/json;q=0, text/csv;q=0.0")
    problem(site, "work", 421, "WRONG_HOST", Host="evil.example")
    for accept, kind in (("*/*", "json"), ("text/*", "csv"), ("text/csv;q=0.4, application/json;q=0.5", "json"),
                         ("text/csv, */*;q=0.1", "csv"), ("", "json")):
        assert kind in site.get("api/v1/work", Accept=accept)[0]["Content-Type"], accept
    status, headers, _ = site.ask("api/v1/work", method="DELETE")
    assert status == 405 and headers["Allow"] == "GET, HEAD"


def test_identifiers_stay_where_they_are(site):
    """A text finds accession numbers as hashes, but in no address; names of files of the site are in no answer."""
    d = site.daemon
    (row,) = d.query("SELECT accession_number, patient_id FROM v_series WHERE accession_number <> '' AND patient_id <> '' "
                     "AND series_uid = ?", series_of(d, "DONE")["series_uid"])
    assert row["accession_number"].startswith("h:")
    for text in (ACCESSION, PATIENT):
        (found,) = json.loads(post_form(site, "api/v1/found", text=text))["items"]
        assert found["accession_number"] == row["accession_number"]
    quarantined = site.text("api/v1/quarantine")
    assert "photo" not in quarantined and len(json.loads(quarantined)["items"]) == 1


def test_the_command_has_the_same_lists(site):
    """noctule list takes the words of the addresses, and prints the same rows, CSV and marks."""
    d = site.daemon
    names = {line.split()[0] for line in d.ctl("list").stdout.splitlines() if not line.startswith(" ")}
    listed = [path.removeprefix("/api/v1/") for path, told in get(site, "openapi.json")["paths"].items()
              if "{" not in path and "get" in told and "text/csv" in told["get"]["responses"]["200"]["content"] and "cohort" not in path]
    assert names >= set(listed) and len(listed) == 13
    for name in listed:
        if name not in ("deliveries", "groups", "destinations", "work", "audit"):  # a delivery is tried again; the audit needs a person
            assert json.loads(d.ctl("list", name, "--json").stdout) == get(site, name)["items"], name
            assert d.ctl("list", name, "--csv").stdout == site.text(f"api/v1/{name}?format=csv").replace("\r\n", "\n"), name
    (failed,) = json.loads(d.ctl("list", "work", "state=FAILED", "since=24h", "--json").stdout)
    assert failed["job"] == get(site, "work?state=FAILED&since=24h")["items"][0]["job"]
    first = d.ctl("list", "work", "--sort", "job", "--limit", "1", "--csv")
    (mark,) = re.findall(r'--after "(.*)"', first.stderr)
    assert mark == get(site, "work?sort=job&limit=1")["next"]
    rest = json.loads(d.ctl("list", "work", "--sort", "job", "--after", mark, "--json").stdout)
    assert [row["job"] for row in rest] == [row["job"] for row in get(site, "work?sort=job")["items"]][1:]
    assert d.ctl("list", "found", "text=" + ACCESSION).stdout.count("\n") == 2
    assert d.ctl("list", "quarantine").stdout.split()[:2] == ["File", "Since"] and "photo" not in d.ctl("list", "quarantine").stdout
    for words, message in ((["none"], "there is no list"), (["work", "stat=DONE"], "no word"), (["work", "state=DONE", "state=DONE"], "once"),
                           (["work", "state=done"], "one of these is expected"), (["work", "since=now"], "a time is expected"),
                           (["work", "--csv", "--json"], "cannot be combined"), (["work", "--sort", "x"], "no such order")):
        done = d.ctl("list", *words, check=False)
        assert done.returncode == 2 and message in done.stderr, (words, done)


def test_the_documented_examples_run(site, tmp_path):
    """The blocks of docs/api.md, in their order: the shell ones one by one, the Python ones as one program."""
    text = (SOURCE / "docs" / "api.md").read_text()
    environment = {**os.environ, "NOCTULE": f"http://127.0.0.1:{site.port}", "no_proxy": "*"}
    job = series_of(site.daemon, "DONE")["job"]
    shells = [block.replace("jobs/1", f"jobs/{job}") for block in re.findall(r"```sh\n(.*?)```", text, re.S)]
    told = [subprocess.run(["bash", "-euo", "pipefail", "-c", block], env=environment, cwd=tmp_path, check=True,
                           stdout=subprocess.PIPE).stdout.decode() for block in shells]
    assert len(told) == 5 and json.loads(told[0])["figures"]["jobs_review"] == 1
    (failed,) = json.loads(told[1])["items"]
    (row,) = csv.DictReader(io.StringIO(told[2], newline=""))
    assert row["code"] == failed["code"] == "JOB_TOO_LARGE"
    assert json.loads(told[3])["job"] == job and pydicom.dcmread(tmp_path / "seg.dcm").Modality == "SEG"
    assert json.loads(told[4])["items"][0]["destination"] == "PACS"
    program = "".join(re.findall(r"```python\n(.*?)```", text, re.S)).replace("jobs/1", f"jobs/{job}")
    told = subprocess.run([sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE).stdout.decode()
    lines = told.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == [row["state"] for row in get(site, "work?modality=CT")["items"]]
    assert lines[-1].startswith("Brain ")


def test_the_page_of_the_document_has_every_address(site):
    text = (SOURCE / "docs" / "api.md").read_text()
    (addresses,) = re.findall(r"## Addresses\n(.*?)\n## ", text, re.S)
    named = {name for line in re.findall(r"^\| (`.*?) \|", addresses, re.M) for name in re.findall(r"`(.*?)`", line)}
    assert {"/api/v1/" + name for name in named} - LOGINS == set(get(site, "openapi.json")["paths"])
    (problems,) = re.findall(r"## Problems\n(.*)", text, re.S)
    codes = set(re.findall(r"`([A-Z_]{6,})`", problems))
    source = (SOURCE / "service" / "web" / "api" / "web_api.c").read_text()
    assert codes == set(re.findall(r'"[A-Z][a-z ]+",\s+"([A-Z_]+)"', source))


def test_rules_for_a_described_series(site):
    """By the rules of the configuration CT is head-ct, and MR is brain-mr."""
    def holding(query):
        return [row["pipeline"] for row in get(site, f"rules/try{query}")["items"] if row["holds"]]

    assert holding("?modality=CT") == holding("?modality=ct&description=any") == ["head-ct"] and holding("?modality=MR") == ["brain-mr"]
    assert holding("") == holding("?modality=PT&body_part=HEAD") == []
    (first, second) = get(site, "rules/try?modality=CT")["items"]
    assert (first["rule"], second["rule"]) == (1, 2) and not first["otherwise"] and not first["depends_on_images"]
    (condition,) = second["conditions"]
    assert condition["condition"] == "modality MR" and not condition["holds"] and "CT" in condition["reason"]
    problem(site, "rules/try?inbox=none", 404, "NOT_FOUND")
    assert holding(f"?modality=CT&description={'%C3%A9' * 256}") == ["head-ct"]
    problem(site, f"rules/try?modality=CT&description={'%C3%A9' * 257}", 400, "BAD_PARAMETER")


def test_nothing_is_written(site):
    d = site.daemon
    before = d.query("SELECT count(*) AS n, max(event) AS event FROM v_events WHERE kind NOT LIKE 'D%'")
    for address in examples(site).values():
        site.ask(f"api/v1/{address}")
    assert d.query("SELECT count(*) AS n, max(event) AS event FROM v_events WHERE kind NOT LIKE 'D%'") == before


def test_warnings_are_those_of_check_config(daemon, tmp_path):
    """A pipeline that no rule and no title uses."""
    unused = PIPELINES.replace('pipeline = "brain-mr"', 'pipeline = "head-ct"')
    site = Site(daemon, settings=settings_of(tmp_path / "daemon0" / "root", unused),
                extra=f"destinations = ( {to_archive(free_port())} );\n").start()
    checked = subprocess.run([BIN / "noctule", "check-config", "--config", site.daemon.config], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT).stdout.decode()
    warnings = get(site, "warnings")
    assert warnings["items"] and warnings["more"] == 0
    assert all(warning in checked for warning in warnings["items"]), (warnings, checked)


def test_the_token(daemon, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    site = Site(daemon, f'token_file = "{file}";').start()
    problem(site, "work", 401, "TOKEN_REQUIRED")
    problem(site, "openapi.json", 401, "TOKEN_REQUIRED", Authorization="Bearer x")
    problem(site, "nothing", 401, "TOKEN_REQUIRED")
    assert get(site, "work", Authorization=f"Bearer {TOKEN}") == {"items": [], "next": None}
    wait_for(lambda: get(site, "status", Authorization=f"Bearer {TOKEN}")["ready"], 30, "the service")
