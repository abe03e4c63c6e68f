"""Persons of the web UI: searches that no address holds, who looked at which job, sessions of programs, the zone
of times, the proxy over a Unix socket."""

import contextlib
import datetime
import html
import http.client
import http.server
import json
import re
import socket
import stat
import threading
import urllib.parse
import zoneinfo

import pytest
from conftest import daemons, wait_for
from test_decide import TOKENS, Deciding, audit, reviewing
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
    before = [tuple(row) for row in site.daemon.query("SELECT * FROM v_audit")]
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
    assert secret not in site.daemon.log.read_text() and [tuple(row) for row in site.daemon.query("SELECT * FROM v_audit")] == before


def test_a_search_needs_the_token_of_the_pages(daemon, tmp_path):
    site = Site(daemon, f'token_file = "{tmp_path / "token"}";')
    (tmp_path / "token").write_text(TOKEN)
    site.start()
    for authorization, status in ((None, 401), ("Bearer " + "0" * 32, 401), (f"Bearer {TOKEN}", 200)):
        query(site, status, {"Authorization": authorization}, text="1")
        answered, _, content = site.ask("search", method="POST", body="q=1", Content_Type=FORM, Origin=f"http://127.0.0.1:{site.port}",
                                        **({"Authorization": authorization} if authorization else {}))
        assert answered == status and (status != 200 or Page(content.decode()).titled() == "Search")


# ------------------------------------------------------------------------------------------------------------------ looks


def looked(d):
    return d.query("SELECT * FROM v_audit WHERE action = 'looked' ORDER BY audit")


def looks(d):
    return [(row["actor"], row["role"], row["how"], row["job"], row["revision"], row["subject"]) for row in looked(d)]


def bearer(person):
    return {"Authorization": f"Bearer {TOKENS[person]}"}


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A result under review, and persons with tokens."""
    folder = tmp_path_factory.mktemp("watched")
    with daemons(folder) as daemon:
        yield reviewing(daemon, folder)


@pytest.mark.parametrize("path", ["job?id=1", "review", "review?id=1", "preview?id=1", "api/v1/jobs/1", "api/v1/jobs/1/segments",
                                  "api/v1/jobs/1/planes", "api/v1/jobs/1/planes/ax/0", "api/v1/jobs/1/planes/ax/0.png", "FILE"])
def test_who_looked_at_a_job_is_in_the_audit(daemon, tmp_path, path):
    site = reviewing(daemon, tmp_path)
    d = site.daemon
    accept = {}
    if path == "FILE":
        (result,) = d.query("SELECT sop_instance_uid FROM v_results WHERE kind = 'seg'")
        path, accept = f"api/v1/results/{result['sop_instance_uid']}", {"Accept": "application/dicom"}
    # lists, other jobs and refused requests are no looks
    for other in ("", "work", "deliveries", "job?id=99", "preview?id=99", "api/v1/jobs/99", "api/v1/work", "api/v1/review"):
        site.send("GET", other, **bearer("vera"))
    assert site.ask(path, **accept)[0] == 401
    for person, times in (("rita", 2), ("vera", 1)):
        for _ in range(times):
            assert site.ask(path, **bearer(person), **accept)[0] == 200
    wait_for(lambda: len({look[0] for look in looks(d)}) == 2, 60, "the rows of two persons")
    hours = {row["at"][:13] for row in looked(d)}
    assert set(looks(d)) == {("rita", "reviewer", "token", 1, 1, "job 1"), ("vera", "viewer", "token", 1, 1, "job 1")}
    assert len(looks(d)) <= 2 * len(hours)
    assert all(row["address"] == "127.0.0.1" for row in looked(d))
    assert "looked" in d.ctl("show", "1").stdout and d.stop() == 0


def test_the_audit_of_the_api_is_for_operators(watched):
    d = watched.daemon
    assert watched.send("GET", "job?id=1", **bearer("rita")).status == 200
    wait_for(lambda: looks(d), 60, "the row")
    for person, status in (("vera", 403), ("rita", 403), ("otto", 200)):
        answer = watched.send("GET", "api/v1/audit?job=1&action=looked&actor=rita", **bearer(person))
        assert answer.status == status and (status == 403) == (answer.json.get("code") == "NOT_ALLOWED")
    (row,) = answer.json["items"]
    assert dict(row) == dict(next(r for r in looked(d) if r["actor"] == "rita"))


# --------------------------------------------------------------------------------------------------------------- session


def test_me(watched):
    def may(person):
        told = watched.send("GET", "api/v1/me", **bearer(person)).json
        assert (told["name"], told["how"], len(told["form"])) == (person, "token", 64)
        return told["role"], {(row["action"], row["subject"]) for row in told["may"]}

    review = {("accept", "job"), ("reject", "job"), ("undo", "job"), ("correct", "job"), ("accept", "delivery"),
              ("reject", "delivery")}
    assert may("vera") == ("viewer", set()) and may("rita") == ("reviewer", review)
    role, all_of = may("otto")
    assert role == "operator" and review < all_of and ("hold", "destination") in all_of and ("forget", "file") in all_of
    assert watched.send("GET", "api/v1/me").status == 401


def test_me_without_persons(site):
    told = json.loads(site.get("api/v1/me")[1])
    assert told == {"name": None, "role": "viewer", "how": "none", "may": [], "form": ""}
    assert site.ask("api/v1/session", method="POST", body="{}", Content_Type=JSON)[0] == 405  # no tokens_file


def test_a_session_of_a_program(watched):
    def post(path, values, **headers):
        return watched.send("POST", f"api/v1/{path}", json.dumps(values), **{"Origin": watched.origin, "Content_Type": JSON, **headers})

    assert post("session", {"secret": "0" * 32}).status == 401
    assert post("session", {"secret": TOKENS["rita"]}, Origin="http://evil.example").status == 403
    answer = post("session", {"secret": TOKENS["rita"]})
    assert answer.status == 200 and answer.json["name"] == "rita" and answer.json["role"] == "reviewer"
    cookie, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes)
    me = watched.send("GET", "api/v1/me", Cookie=cookie).json
    assert me == answer.json
    # the form of the answer is good for decisions, and to log out
    assert post("decisions", {"action": "retry", "subject": "job 1", "form": me["form"]}, Cookie=cookie).status == 403
    assert "needs an operator" in post("decisions", {"action": "retry", "subject": "job 1", "form": me["form"]}, Cookie=cookie).json["detail"]
    assert post("session/end", {"form": "0" * 64}, Cookie=cookie).status == 403
    ended = post("session/end", {"form": me["form"]}, Cookie=cookie)
    assert ended.status == 200 and ended.headers["Set-Cookie"].startswith("noctule=; Max-Age=0") and ended.json["name"] is None


# ------------------------------------------------------------------------------------------------------------------ zone


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata"])
def test_times_are_those_of_the_zone(daemon, zone):
    """Of the year's both halves: times of rows that are shown as they are stored."""
    site = Site(daemon, f'zone = "{zone}";', environment={"TZ": "Pacific/Auckland"}, quiet=600.0).start()
    shown = 0
    for path in ("", "settings"):
        text = site.text(path)
        for at, title, words in re.findall(r'<time datetime="([^"]*)" title="([^"]*)">([^<]*)</time>', text):
            moment = datetime.datetime.fromisoformat(at.replace("Z", "+00:00"))
            local = moment.astimezone(zoneinfo.ZoneInfo(zone))
            assert title == f"{moment:%Y-%m-%d %H:%M:%S} UTC" and words == f"{local.day} {local:%b %H:%M}", (at, title, words)
            shown += 1
        offset = datetime.datetime.now(zoneinfo.ZoneInfo(zone)).strftime("%z")
        assert f"(UTC {offset})" in text
    assert shown > 0
    json_times = re.findall(r'"\d{4}-\d\d-\d\dT[^"]*"', site.text("api/v1/config"))
    assert json_times and all(time.endswith('Z"') for time in json_times)


# ---------------------------------------------------------------------------------------------------- proxy over a socket


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(str(self.path))


def over(path, address, method="GET", body=None, **headers):
    """Returns status and text of the answer over the socket."""
    with contextlib.closing(UnixConnection(path)) as connection:
        connection.request(method, "/" + address, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@contextlib.contextmanager
def proxy(path, user):
    """A proxy on a port that authenticates everyone as `user`, and replaces the header if a client sends it."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kept = {n.replace("-", "_"): v for n, v in self.headers.items() if n.lower() not in ("x-remote-user", "connection")}
            size = int(self.headers.get("Content-Length", 0))
            status, text = over(path, self.path[1:], self.command, self.rfile.read(size) if size else None, **kept, X_Remote_User=user)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_POST = do_GET

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def serving(daemon, options):
    d = daemon(quiet=600.0, extra='page = { socket = "page.sock"; ' + options + " };\n").start()
    path = d.root / "page.sock"

    def answers():
        with contextlib.suppress(OSError):
            return over(path, "healthz") == (200, "ok\n")

    wait_for(answers, 60, "the socket")
    return d, path


def test_a_proxy_over_a_socket_names_the_person(daemon):
    d, path = serving(daemon, 'user_header = "X-Remote-User"; operators = [ "otto" ]; may = [ "jobs", "alerts" ];')
    assert stat.S_IMODE(path.stat().st_mode) == 0o660 and stat.S_ISSOCK(path.stat().st_mode)
    assert over(path, "work")[0] == 401  # the proxy has named nobody
    for name, role in (("otto", "operator"), ("vera", "viewer")):
        status, text = over(path, "api/v1/me", X_Remote_User=name)
        told = json.loads(text)
        assert status == 200 and (told["name"], told["role"], told["how"]) == (name, role, "proxy")
    with proxy(path, "vera") as port:  # a forged header does not pass a proxy that replaces it
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/api/v1/me", headers={"X-Remote-User": "otto", "Host": "localhost"})
        assert json.loads(connection.getresponse().read())["name"] == "vera"
        connection.close()
    # both headers of a proxy that only adds its own: no person
    with contextlib.closing(UnixConnection(path)) as connection:
        connection.putrequest("GET", "/api/v1/me")
        connection.putheader("X-Remote-User", "otto")
        connection.putheader("X-Remote-User", "vera")
        connection.endheaders()
        assert connection.getresponse().status == 401
    form = json.loads(over(path, "api/v1/me", X_Remote_User="otto")[1])["form"]
    values = {"action": "hold", "subject": "job 99", "form": form}
    for headers, status in (({"Origin": "http://evil.example"}, 403), ({}, 403), ({"Origin": "http://localhost"}, 404)):
        answer = over(path, "api/v1/decisions", "POST", json.dumps(values), Content_Type=JSON, X_Remote_User="otto", **headers)
        assert answer[0] == status, answer
    assert over(path, "work", Host="evil.example", X_Remote_User="otto")[0] == 421
    # a new process replaces the socket
    (page,) = d.children("page")
    d.ctl("reload")
    wait_for(lambda: d.children("page") not in ([], [page]), 60, "a new process")

    def named():
        with contextlib.suppress(OSError):
            return over(path, "api/v1/me", X_Remote_User="vera")[0] == 200

    wait_for(named, 60, "the new process")
    assert d.stop() == 0


def test_a_socket_with_a_secret_needs_it(daemon, tmp_path):
    (tmp_path / "secret").write_text("0f" * 20)
    d, path = serving(daemon, f'user_header = "X-Remote-User"; secret_file = "{tmp_path / "secret"}"; socket_mode = "0600";')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert over(path, "work", X_Remote_User="otto")[0] == 401
    assert over(path, "work", X_Remote_User="otto", Noctule_Proxy_Secret="0e" * 20)[0] == 401
    assert over(path, "work", X_Remote_User="otto", Noctule_Proxy_Secret="0f" * 20)[0] == 200
    assert d.stop() == 0


@pytest.mark.parametrize("options, reason", [
    ('socket = "p"; port = 8043; user_header = "X-User";', "page.socket: replaces the port"),
    ('socket = "p";', "page.socket: requires"),
    ('port = 8043; user_header = "X-User";', "page.user_header: requires page.secret_file or page.socket"),
    ('port = 8043; zone = "Europe/Nowhere";', "page.zone: Europe/Nowhere is not in"),
    ('port = 8043; zone = "../../etc/passwd";', "page.zone"),
    ('port = 8043; zone = "CET-1CEST,M3.5.0";', "page.zone"),
    ('port = 8043; socket_mode = "0777";', "page.socket_mode"),
])
def test_options_that_are_refused(daemon, options, reason):
    d = daemon(extra=f"page = {{ {options} }};\n")
    refused = d.ctl("check-config", check=False)
    assert refused.returncode != 0 and reason in refused.stderr + refused.stdout


# --------------------------------------------------------------------------------------------------------- saved filters


def saved(site, person):
    return {row["name"]: (row["list"], row["filter"]) for row in site.send("GET", "api/v1/views", **bearer(person)).json["items"]}


def test_persons_save_filters(daemon, tmp_path):
    site = Deciding(daemon, tmp_path / "secrets", 'may = [ "filters" ];', quiet=600.0).start()
    d = site.daemon
    mine = {"list": "work", "name": "Failed <CT> ä", "filter": "state=FAILED&modality=CT&sort=-seconds"}
    assert site.post("vera", "api/v1/views", **mine).status == 200
    assert saved(site, "vera") == {mine["name"]: ("work", mine["filter"])} and saved(site, "rita") == {}
    assert site.send("GET", "api/v1/views").status == 401
    page = Page(site.send("GET", "work", **bearer("vera")).body)
    assert "work?" + mine["filter"] in page.links() and mine["name"] in page.data and "ct>" not in page.tags
    assert mine["name"] not in site.send("GET", "work", **bearer("rita")).body
    assert mine["name"] not in Page(site.send("GET", "deliveries", **bearer("vera")).body).data
    assert site.send("GET", "work?" + mine["filter"], **bearer("vera")).status == 200
    # the form of the page saves the filter of its address
    cookie = site.log_in("rita")
    text = site.send("GET", "work?modality=MR&scanner=CT%271&sort=job", Cookie=cookie).body
    (form,) = re.findall(r'<form class="decide" method="post" action="views">(.*?)</form>', text, re.S)
    fields = {name: html.unescape(value) for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form)}
    assert set(fields) == {"form", "list", "filter", "back"}
    answer = site.send("POST", "views", urllib.parse.urlencode({**fields, "name": "MR"}), Cookie=cookie, Origin=site.origin, Content_Type=FORM)
    assert answer.status == 303 and answer.headers["Location"].startswith("work?")
    assert saved(site, "rita") == {"MR": ("work", "modality=MR&scanner=CT%271&sort=job")}
    # the same name replaces it; it is deleted by its person only
    assert site.post("rita", "api/v1/views", list="work", name="MR", filter="modality=MR").status == 200
    assert saved(site, "rita") == {"MR": ("work", "modality=MR")}
    gone = {"action": "delete", "subject": "filter work MR"}
    assert site.post("vera", **gone).status == 404 and site.post("rita", **gone).status == 200 and saved(site, "rita") == {}
    assert [(row["action"], row["actor"], row["role"], row["subject"]) for row in audit(d)] == [
        ("save", "vera", "viewer", "filter work " + mine["name"]), ("save", "rita", "reviewer", "filter work MR"),
        ("save", "rita", "reviewer", "filter work MR"), ("delete", "rita", "reviewer", "filter work MR")]
    before = len(audit(d))
    for values in ({"list": "review"}, {"name": ""}, {"name": "x" * 61}, {"filter": ""}, {"filter": "a=" + "x" * 400}, {"filter": "text=4711"},
                   {"filter": "state=DONE&text=4711"}, {"filter": 'a="><script>'}, {"other": "1"}):
        assert site.post("rita", "api/v1/views", **{**mine, **values}).status == 400, values
    assert site.post(None, "api/v1/views", **mine).status == 401
    assert site.post("rita", "api/v1/views", {"Origin": "http://evil.example"}, **mine).status == 403
    assert site.post("rita", action="save", subject="filter work x", reason="text=4711").status == 400
    assert len(audit(d)) == before and saved(site, "rita") == {}
    for number in range(50):
        assert site.post(("rita", "otto")[number % 2], "api/v1/views", **{**mine, "name": str(number)}).status == 200
    assert len(saved(site, "rita")) == 25 and d.stop() == 0


def test_filters_are_not_saved_unless_allowed(watched):
    assert watched.post("otto", "api/v1/views", list="work", name="a", filter="state=DONE").status == 403
    assert "Save filter" not in watched.send("GET", "work?state=DONE", **bearer("otto")).body
