"""Decisions through the web UI: roles, refused requests, and that each is made whole or not at all."""

import base64
import contextlib
import hashlib
import http.client
import json
import re
import socket
import sqlite3
import time
import urllib.parse

import pytest
from conftest import SOURCE, Clock, daemons, drop, phantom, wait_for
from test_deliveries import destinations, states, to_folder, wait_states
from test_page import Site
from test_review import expecting, small, under_review, wait_review

TOKENS = {name: hashlib.sha256(name.encode()).hexdigest()[:32] for name in ("vera", "rita", "otto")}
ROLES = {"vera": "viewer", "rita": "reviewer", "otto": "operator"}
ALL = 'may = [ "review", "deliveries", "quarantine", "jobs", "alerts", "masks" ];'
SECRET = "0f" * 20


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read().decode()
        self.json = json.loads(self.body) if self.body and self.headers.get("Content-Type", "").endswith("json") else None


class Deciding(Site):
    """A web UI that takes decisions of persons with tokens."""

    def __init__(self, daemon, folder, options="", undo=0, **others):
        folder.mkdir(exist_ok=True)
        self.tokens = folder / "tokens"
        self.write_tokens(ROLES)
        super().__init__(daemon, f'tokens_file = "{self.tokens}"; undo_seconds = {float(undo)}; {options or ALL}', **others)
        self.origin = f"http://127.0.0.1:{self.port}"

    def write_tokens(self, roles):
        self.tokens.write_text("# name role digest\n" + "".join(
            f"{name} {role} {hashlib.sha256(TOKENS[name].encode()).hexdigest()}\n" for name, role in roles.items()))

    def send(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.request(method, "/" + path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def post(self, person, _path="api/v1/decisions", _headers=None, **values):
        """A decision by a program with the token of that person."""
        headers = {"Origin": self.origin, "Content_Type": "application/json",
                   **({"Authorization": f"Bearer {TOKENS[person]}"} if person else {}), **(_headers or {})}
        return self.send("POST", _path, json.dumps(values), **{name: value for name, value in headers.items() if value is not None})

    def log_in(self, person):
        """Returns the cookie of a login."""
        answer = self.send("POST", "login", urllib.parse.urlencode({"secret": TOKENS[person]}), Origin=self.origin,
                           Content_Type="application/x-www-form-urlencoded")
        assert answer.status == 303, answer.body
        cookie, *attributes = answer.headers["Set-Cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes) and cookie.startswith("noctule=")
        return cookie

    def form(self, cookie, action, path="review", **headers):
        """Returns the fields of the first form with that action on a page."""
        text = self.send("GET", path, Cookie=cookie, **headers).body
        for part in re.findall(r"<form[^>]*>(.*?)</form>", text, re.S):
            fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part))
            if fields.get("action") == action or f'name="action" value="{action}"' in part:
                return {**fields, "action": action}
        raise AssertionError(f"no form {action} in {text}")

    def submit(self, cookie, fields, **headers):
        return self.send("POST", "decide", urllib.parse.urlencode(fields), **{
            "Cookie": cookie, "Origin": self.origin, "Content_Type": "application/x-www-form-urlencoded", **headers})


def audit(d):
    """The rows of decisions."""
    return d.query("SELECT * FROM v_audit WHERE action <> 'looked' ORDER BY audit")


def reviewing(daemon, tmp_path, undo=0, options="", **others):
    """A service with a result under review, and its web UI."""
    site = Deciding(daemon, tmp_path / "secrets", options, undo, quiet=600.0, pipeline_extra='deliver = [ "OUT" ];',
                    extra=destinations(to_folder(tmp_path / "out")), **others)
    expecting(site.daemon)
    site.start()
    drop(small(tmp_path / "ct"), site.daemon.inbox)
    wait_review(site.daemon)
    return site


@pytest.fixture(scope="module")
def undecided(tmp_path_factory):
    """A result under review for tests that must not change it."""
    folder = tmp_path_factory.mktemp("undecided")
    with daemons(folder) as daemon:
        yield reviewing(daemon, folder)


def untouched(d):
    (row,) = under_review(d)
    assert audit(d) == [] and row["decision"] == "" and states(d) == []


ACCEPT = {"action": "accept", "subject": "job 1"}


@pytest.mark.parametrize("person, headers, values, status", [
    ("rita", {"Origin": None}, ACCEPT, 403),
    ("rita", {"Origin": "http://evil.example"}, ACCEPT, 403),
    ("rita", {"Origin": "null"}, ACCEPT, 403),
    ("rita", {"Origin": "http://127.0.0.1"}, ACCEPT, 403),  # another port
    ("rita", {"Sec_Fetch_Site": "cross-site"}, ACCEPT, 403),
    ("rita", {"Sec_Fetch_Site": "same-site"}, ACCEPT, 403),
    ("rita", {"Host": "evil.example"}, ACCEPT, 421),
    (None, {}, ACCEPT, 401),
    (None, {"Authorization": "Bearer " + "0" * 32}, ACCEPT, 401),
    (None, {"Authorization": "Basic " + base64.b64encode(b"rita:x").decode()}, ACCEPT, 401),
    (None, {"Authorization": "Basic " + base64.b64encode(f"rita:{TOKENS['rita']}".encode()).decode()}, ACCEPT, 403),  # no form token
    (None, {"Cookie": "noctule=rita:9999999999:" + "0" * 64}, ACCEPT, 401),
    (None, {"X_Remote_User": "otto"}, ACCEPT, 401),
    (None, {"X_Remote_User": "otto", "Noctule_Proxy_Secret": SECRET}, ACCEPT, 401),
    ("vera", {}, ACCEPT, 403),
    ("rita", {}, {"action": "retry", "subject": "job 1"}, 403),
    ("rita", {}, {"action": "hold", "subject": "destination OUT"}, 403),
    ("rita", {}, {"action": "acknowledge", "subject": "alert review"}, 403),
    ("rita", {}, {"action": "forget", "subject": "file 1"}, 403),
    ("rita", {}, {"action": "reject", "subject": "job 1"}, 400),
    ("rita", {}, {"action": "reject", "subject": "job 1", "reason": "x" * 401}, 400),
    ("rita", {}, {"action": "reject", "subject": "job 1", "reason": "a\nb"}, 400),
    ("rita", {}, {"action": "accept", "subject": "job"}, 400),
    ("rita", {}, {"action": "accept", "subject": "job x"}, 400),
    ("rita", {}, {"action": "accept", "subject": "job 99"}, 404),
    ("rita", {}, {"action": "accept", "subject": "destination OUT"}, 400),
    ("rita", {}, {**ACCEPT, "value": "1"}, 400),
    ("rita", {}, {**ACCEPT, "seen": "0.0.0"}, 409),
    ("rita", {}, {**ACCEPT, "seen": "0" * 401}, 400),
    ("rita", {}, {**ACCEPT, "reason": 1.5}, 400),
    ("rita", {}, {**ACCEPT, "other": "1"}, 400),
    ("rita", {}, {"action": ["accept"], "subject": "job 1"}, 400),
    ("rita", {}, {"action": "purge", "subject": "job 1"}, 400),
    ("otto", {}, {"action": "release", "subject": "job 1"}, 404),
    ("otto", {}, {"action": "release", "subject": "file 1"}, 404),
    ("otto", {}, {"action": "hold", "subject": "destination NONE"}, 400),
    ("otto", {}, {"action": "priority", "subject": "job 1"}, 400),
    ("rita", {"Content_Type": "text/plain"}, ACCEPT, 415),
    ("rita", {"Content_Type": "application/x-www-form-urlencoded"}, ACCEPT, 400),
])
def test_a_refused_request_changes_nothing(undecided, person, headers, values, status):
    answer = undecided.post(person, _headers=headers, **values)
    assert answer.status == status, answer.body
    if answer.json:
        assert answer.json["detail"]
    untouched(undecided.daemon)


@pytest.mark.parametrize("body", ["", "{", "[]", "1", '{"action": "accept", "action": "accept"}', '{"action": {"a": 1}}', "null",
                                  '{"action": "accept\\u0000", "subject": "job 1"}', '{"action": "accept", "subject": "job 1\\u0000"}'])
def test_bodies_that_are_no_decision(undecided, body):
    answer = undecided.send("POST", "api/v1/decisions", body, Origin=undecided.origin, Content_Type="application/json",
                            Authorization=f"Bearer {TOKENS['rita']}")
    assert answer.status == 400, (answer.status, answer.body)
    untouched(undecided.daemon)


def test_get_changes_nothing(undecided):
    query = urllib.parse.urlencode(ACCEPT)
    for path in ("decide", "api/v1/decisions"):
        for method in ("GET", "HEAD"):
            answer = undecided.send(method, f"{path}?{query}", Authorization=f"Bearer {TOKENS['rita']}")
            assert answer.status == 405 and answer.headers["Allow"] == "POST"
    for path in ("", "review", "healthz", "style.css", "metrics"):
        assert undecided.post("rita", _path=path, **ACCEPT).status == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert undecided.send(method, "decide", Authorization=f"Bearer {TOKENS['rita']}").status == 405
    untouched(undecided.daemon)


def raw(site, text, shut=True):
    """Sends bytes and returns the first line of the response."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as peer:
        peer.sendall(text)
        if shut:
            peer.shutdown(socket.SHUT_WR)
        got = b""
        while part := peer.recv(65536):
            got += part
    return got.split(b"\r\n")[0]


def head(site, *lines):
    return "\r\n".join(("POST /api/v1/decisions HTTP/1.1", f"Host: 127.0.0.1:{site.port}", f"Origin: {site.origin}",
                        f"Authorization: Bearer {TOKENS['rita']}", "Content-Type: application/json", *lines, "", "")).encode()


def test_the_size_of_a_body_is_limited(undecided):
    body = json.dumps({**ACCEPT, "reason": "x" * 8192}).encode()
    assert b" 413 " in raw(undecided, head(undecided, f"Content-Length: {len(body)}") + body)
    assert b" 413 " in raw(undecided, head(undecided, "Content-Length: 99999999999999999999"))
    for lines in ((), ("Transfer-Encoding: chunked",)):
        assert raw(undecided, head(undecided, *lines)).split()[1] in (b"411", b"400")
    body = json.dumps(ACCEPT).encode()
    assert raw(undecided, head(undecided, f"Content-Length: {len(body) + 1}") + body) == b""  # it ends early
    untouched(undecided.daemon)


def test_slow_posts_hold_nothing(undecided):
    """More connections than there are, each with a body that never comes. A reviewer's request is answered at once."""
    peers = []
    for _ in range(100):
        peer = socket.create_connection(("127.0.0.1", undecided.port))
        peers.append(peer)
        peer.sendall(head(undecided, "Content-Length: 100") + b"{")
    began = time.monotonic()
    assert undecided.send("GET", "healthz").status == 200
    assert undecided.post("vera", **ACCEPT).status == 403
    assert time.monotonic() - began < 10
    (page,) = undecided.daemon.children("page")
    for peer in peers:
        peer.close()
    assert undecided.daemon.children("page") == [page]
    untouched(undecided.daemon)


def test_a_foreign_form_is_refused(undecided):
    """The token of a form belongs to its person."""
    rita, vera = undecided.log_in("rita"), undecided.log_in("vera")
    fields = undecided.form(rita, "accept")
    assert fields["subject"] == "job 1" and fields["seen"]
    for wrong in ("", "0" * 64, fields["form"][:-1]):
        assert undecided.submit(rita, {**fields, "form": wrong}).status == 403
    assert undecided.submit(vera, fields).status == 403
    assert undecided.submit("", fields).status == 401
    assert undecided.submit(rita, fields, Origin="https://evil.example").status == 403
    untouched(undecided.daemon)


def test_wrong_tokens(undecided):
    for secret in ("", "x", TOKENS["rita"][:-1], hashlib.sha256(TOKENS["rita"].encode()).hexdigest()):
        answer = undecided.send("POST", "login", urllib.parse.urlencode({"secret": secret}), Origin=undecided.origin,
                                Content_Type="application/x-www-form-urlencoded")
        assert answer.status == 401 and "Set-Cookie" not in answer.headers
    assert undecided.send("POST", "login", f"secret={TOKENS['rita']}", Content_Type="application/x-www-form-urlencoded").status == 403
    assert undecided.send("GET", "review").status == 401 and "WWW-Authenticate" not in undecided.send("GET", "review").headers
    assert "<form" in undecided.send("GET", "login").body
    untouched(undecided.daemon)
    assert not [token for token in TOKENS.values() if token in undecided.daemon.log.read_text()]


def test_accepted_by_a_form(daemon, tmp_path):
    """As by noctule accept, with the person and the version that was shown."""
    site = reviewing(daemon, tmp_path)
    d = site.daemon
    cookie = site.log_in("rita")
    fields = site.form(cookie, "accept")
    answer = site.submit(cookie, {**fields, "reason": "it is <fine> & \u00fc"})
    assert (answer.status, answer.headers["Location"]) == (303, "review")
    wait_states(d, ("OUT", "SENT"))
    (job,) = d.jobs()
    assert (job["state"], job["reviewed_by"]) == ("DONE", "rita")
    (row,) = audit(d)
    assert {name: row[name] for name in ("action", "subject", "job", "revision", "reason", "actor", "how", "role", "address", "seen")} == {
        "action": "accept", "subject": "job 1", "job": 1, "revision": 1, "reason": "it is <fine> & \u00fc", "actor": "rita",
        "how": "token", "role": "reviewer", "address": "127.0.0.1", "seen": fields["seen"]}
    assert "rita" in d.ctl("show", "1").stdout and json.loads(d.ctl("show", "--json", "1").stdout)["audit"][0]["actor"] == "rita"
    # The second reviewer, by the page and by a command, gets the name of the first.
    again = site.submit(cookie, fields)
    assert again.status == 409 and "job 1 is DONE: rita accepted it" in again.body
    assert d.ctl("reject", "1", "no", check=False).stderr == "noctule: job 1 is DONE: rita accepted it\n"
    assert len(audit(d)) == 1
    # The row is final.
    with sqlite3.connect(d.root / "noctule.db") as db:
        for sql in ("UPDATE audit SET actor = 'eve'", "DELETE FROM audit"):
            with pytest.raises(sqlite3.IntegrityError, match="audit rows are final"):
                db.execute(sql)
    db.close()
    assert d.stop() == 0


def test_rejected_by_a_program(daemon, tmp_path):
    site = reviewing(daemon, tmp_path)
    answer = site.post("rita", action="reject", subject="job 1", reason="the table")
    assert (answer.status, answer.json["message"]) == (200, "job 1 is rejected; its results are not delivered")
    (job,) = site.daemon.jobs()
    assert (job["state"], job["reviewed_by"]) == ("REJECTED", "rita") and job["message"].startswith("by rita: the table (")
    assert site.post("otto", **ACCEPT).status == 409
    assert "rita rejected it" in site.post("otto", **ACCEPT).json["detail"]
    assert [row["actor"] for row in audit(site.daemon)] == ["rita"]


def addresses_of(site):
    told = site.send("GET", "api/v1/openapi.json", Authorization=f"Bearer {TOKENS['otto']}").json
    return {path.removeprefix("/api/v1/") for path, operations in told["paths"].items() if "post" in operations}


def test_each_decision_has_an_address(daemon, tmp_path):
    """The action and the subject are in the path. The document has those that page.may allows, docs/api.md has all."""
    site = reviewing(daemon, tmp_path)
    d = site.daemon
    assert site.post("rita", "api/v1/review/1/decision", action="reject").status == 400  # without a reason
    for body in ({"action": "retry"}, {}, {"action": "accept", "subject": "job 1"}):
        assert site.post("otto", "api/v1/review/1/decision", **body).status == 400
    assert site.post("otto", "api/v1/jobs/1/retry", action="retry").status == 400
    assert site.post("rita", "api/v1/jobs/1/hold").status == 403
    for path in ("jobs/1/retry", "review/1/decision"):
        for method in ("GET", "HEAD", "PUT", "DELETE"):
            answer = site.send(method, f"api/v1/{path}", Authorization=f"Bearer {TOKENS['otto']}")
            assert (answer.status, answer.headers["Allow"]) == (405, "POST"), (method, path)
            assert method == "HEAD" or answer.json["code"] == "WRONG_METHOD"
    for headers, status, code in (({"Content_Length": "9000"}, 413, "TOO_LARGE"), ({"Transfer_Encoding": "chunked"}, 411, "NO_LENGTH"),
                                  ({"Content_Type": "text/plain"}, 415, "WRONG_TYPE")):
        answer = site.post("otto", "api/v1/jobs/1/retry", headers)
        assert (answer.status, answer.json["code"]) == (status, code)
    untouched(d)
    assert site.post("rita", "api/v1/review/1/decision", action="accept", seen="0.0.0").status == 409
    answer = site.post("rita", "api/v1/review/1/decision", action="reject", reason="the table")
    assert (answer.status, answer.json["message"]) == (200, "job 1 is rejected; its results are not delivered")
    assert site.post("otto", "api/v1/jobs/1/priority", value=7).status == 409
    assert site.post("otto", "api/v1/jobs/1/priority", value=7.0).status == 409  # a whole number in JSON
    assert site.post("otto", "api/v1/destinations/OUT/hold", reason="it moves").status == 200
    assert site.post("otto", "api/v1/destinations/OUT/release").status == 200
    for path in ("deliveries/99/resend", "quarantine/99/release", "series/1.2.3/complete", "jobs/99/retry"):
        assert site.post("otto", f"api/v1/{path}").status == 404, path
    drop(phantom(tmp_path / "late", "--size", "24x24x6", "--seed", "9")[:3], d.inbox)
    (series,) = wait_for(lambda: d.query("SELECT series_uid FROM v_series WHERE state = 'GATHERING' AND instances = 3"), 60, "the series")
    answer = site.post("otto", f"api/v1/series/{series['series_uid']}/complete", reason="it is all")
    assert answer.status == 200, answer.body
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE state <> 'GATHERING' AND series_uid = ?", series["series_uid"]), 60, "its end")
    assert [(row["action"], row["subject"], row["actor"]) for row in audit(d)] == [
        ("reject", "job 1", "rita"), ("hold", "destination OUT", "otto"), ("release", "destination OUT", "otto"),
        ("complete", f"series {series['series_uid']}", "otto")]
    (table,) = re.findall(r"## Decisions\n(.*?)\n## ", (SOURCE / "docs" / "api.md").read_text(), re.S)
    rows = re.findall(r"^\| (`.*?) \| `(\w+)` \|", table, re.M)
    others = {"search", "found", "decisions", "views", "session", "session/end"}  # integ.persons; decisions: the same without an action
    assert addresses_of(site) == others | {name for cell, _ in rows for name in re.findall(r"`(.*?)`", cell)}
    d.config.write_text(d.config.read_text().replace(ALL, 'may = [ "jobs" ];'))
    d.stop()
    site.start()
    assert addresses_of(site) == others | {name for cell, may in rows if may == "jobs" for name in re.findall(r"`(.*?)`", cell)}


def test_decisions_are_off_by_default(daemon, tmp_path):
    site = Deciding(daemon, tmp_path / "secrets", "hosts = [ ];", quiet=600.0).start()
    assert site.post("otto", **ACCEPT).status == 405
    config = site.daemon.config.read_text()
    for options, word in (('may = [ "review" ];', "page.may"), ('user_header = "X-Remote-User";', "page.user_header")):
        site.daemon.config.write_text(config.replace(site.settings, f"page = {{ port = {site.port}; {options} }};\n"))
        done = site.daemon.ctl("check-config", check=False)
        assert done.returncode != 0 and word in done.stdout + done.stderr
    site.daemon.config.write_text(config)


def test_only_what_page_may_names(daemon, tmp_path):
    site = Deciding(daemon, tmp_path / "secrets", 'may = [ "review" ];', quiet=600.0).start()
    answer = site.post("otto", action="hold", subject="destination OUT")
    assert answer.status == 403 and "page.may" in answer.json["detail"]


def test_a_role_that_was_withdrawn(daemon, tmp_path):
    """The daemon reads the roles itself: the web process has the old ones until a reload."""
    site = reviewing(daemon, tmp_path)
    site.write_tokens({**ROLES, "rita": "viewer"})
    answer = site.post("rita", **ACCEPT)
    assert answer.status == 403 and "has changed" in answer.json["detail"]
    site.write_tokens({"vera": "viewer"})
    assert site.post("rita", **ACCEPT).status == 403
    untouched(site.daemon)


def test_behind_a_proxy(daemon, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    site = reviewing(daemon, tmp_path, options=f'{ALL} user_header = "X-Remote-User"; secret_file = "{secret}"; '
                     'reviewers = [ "r\u00e4", "bob" ]; operators = [ "ann" ]; hosts = [ "noctule.example.org" ];')
    own = {"Noctule_Proxy_Secret": SECRET, "Origin": "https://noctule.example.org"}
    for headers in ({"X_Remote_User": "bob", "Noctule_Proxy_Secret": SECRET[:-1]}, {"X_Remote_User": "bob"}, {}):
        assert site.send("GET", "review", **headers).status == 401
        assert site.post(None, _headers=headers, **ACCEPT).status == 401
    # A forged name beside a good token, or beside the proxy's own header, is refused as well.
    assert site.post("otto", _headers={"X_Remote_User": "ann"}, **ACCEPT).status == 401
    twice = head(site, "Content-Length: 2", f"Noctule-Proxy-Secret: {SECRET}", "X-Remote-User: carl", "X-Remote-User: ann")
    assert b" 401 " in raw(site, twice.replace(f"Authorization: Bearer {TOKENS['rita']}\r\n".encode(), b"") + b"{}")
    assert site.post(None, _headers={**own, "X_Remote_User": "carl"}, **ACCEPT).status == 403
    untouched(site.daemon)
    text = site.send("GET", "review", X_Remote_User="bob", **own).body
    form = re.search(r'name="form" value="(\w+)"', text)[1]
    assert site.post(None, _headers={**own, "X_Remote_User": "bob"}, **ACCEPT).status == 403  # without the form's token
    assert site.post(None, _headers={**own, "X_Remote_User": "ann"}, form=form, **ACCEPT).status == 403
    assert site.post(None, _headers={**own, "X_Remote_User": "bob"}, form=form, **ACCEPT).status == 200
    (row,) = audit(site.daemon)
    assert (row["actor"], row["how"], row["role"]) == ("bob", "proxy", "reviewer")
    # Behind TLS the cookie of a login is bound to the host.
    login = site.send("POST", "login", f"secret={TOKENS['vera']}", Content_Type="application/x-www-form-urlencoded", **own)
    assert login.headers["Set-Cookie"].startswith("__Host-noctule=vera:") and "; Secure" in login.headers["Set-Cookie"]
    assert SECRET not in site.daemon.log.read_text()


@pytest.mark.parametrize("point, made", [("daemon_at_decision", False), ("daemon_before_decision_commit", False),
                                         ("daemon_before_commit", False), ("daemon_after_commit_before_reply", True),
                                         ("daemon_before_answer", True)])
@pytest.mark.parametrize("undo", [0, 600])
def test_killed_during_a_decision(daemon, tmp_path, point, made, undo):
    """The decision and its audit row exist both, or neither."""
    once = tmp_path / "crashed"
    site = reviewing(daemon, tmp_path, undo)
    d = site.daemon
    d.stop()
    once.touch()  # no crash yet
    d.environment.update({"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    site.start()
    once.unlink()
    with contextlib.suppress(http.client.HTTPException, OSError):  # the web process ends with the daemon
        status = site.post("rita", **ACCEPT).status
        assert status == 504 or "commit" in point
    wait_for(once.exists, 60, f"the crash at {point}")
    d.process.wait(60)
    site.start()
    rows = audit(d)
    if "_commit" in point and "decision" not in point:  # it may have been another commit
        made = len(rows) == 1
    assert len(rows) == made
    if undo:
        (row,) = under_review(d)
        assert row["decision"] == ("accept" if made else "") and states(d) == []
    else:
        assert len(under_review(d)) == (not made)
        if made:
            wait_states(d, ("OUT", "SENT"))
    assert d.stop() == 0


def test_undone(daemon, tmp_path):
    """Within its time a decision has no effect, and can be undone. It survives a restart, and takes effect then."""
    site = reviewing(daemon, tmp_path, undo=600)
    d = site.daemon
    assert "undone for 600 s" in site.post("rita", reason="fine", **ACCEPT).json["message"]
    (row,) = under_review(d)
    assert (row["decision"], row["decided_by"], row["decision_reason"]) == ("accept", "rita", "fine")
    assert "accept by rita" in d.ctl("review").stdout and states(d) == []
    second = site.post("otto", action="reject", subject="job 1", reason="no")
    assert second.status == 409 and "rita accepted it" in second.json["detail"]
    assert "rita accepted it" in d.ctl("accept", "1", check=False).stderr
    assert site.post("vera", action="undo", subject="job 1").status == 403
    assert site.post("rita", action="undo", subject="job 1").status == 200
    assert under_review(d)[0]["decision"] == "" and site.post("rita", action="undo", subject="job 1").status == 409
    # The command undoes as well.
    site.post("rita", **ACCEPT)
    assert d.ctl("undo", "1").stdout == "job 1 is under review again\n"
    assert [row["action"] for row in audit(d)] == ["accept", "undo", "accept", "undo"]
    assert [row["how"] for row in audit(d)] == ["token", "token", "token", "command"]
    # Pending while the daemon is stopped.
    site.post("rita", **ACCEPT)
    d.stop()
    d.config.write_text(d.config.read_text().replace("undo_seconds = 600.0", "undo_seconds = 4.0"))
    site.start()
    assert under_review(d)[0]["decision"] == "accept" and states(d) == []
    assert site.post("rita", action="undo", subject="job 1").status == 200
    began = time.time()
    site.post("rita", **ACCEPT)
    wait_states(d, ("OUT", "SENT"))
    assert time.time() - began >= 4
    late = site.post("rita", action="undo", subject="job 1")
    assert late.status == 409 and "final" in late.json["detail"]
    (job,) = d.jobs()
    assert (job["state"], job["reviewed_by"]) == ("DONE", "rita")
    assert d.stop() == 0


def test_the_last_moment_of_an_undo(daemon, tmp_path):
    """Of 600 s by the clock of the daemon: after 540 s a decision is undone, after 660 s it is final and its result is sent."""
    clock = Clock(tmp_path)
    site = reviewing(daemon, tmp_path, undo=600, environment=clock.environment)
    d = site.daemon
    assert site.post("rita", **ACCEPT).status == 200
    clock.pass_time(540)
    assert site.post("rita", action="undo", subject="job 1").status == 200 and states(d) == []
    assert site.post("rita", **ACCEPT).status == 200
    clock.pass_time(660)
    wait_states(d, ("OUT", "SENT"))
    late = site.post("rita", action="undo", subject="job 1")
    assert late.status == 409 and "final" in late.json["detail"]
    assert [row["action"] for row in audit(d)] == ["accept", "undo", "accept"]
    assert d.stop() == 0


def test_every_decision(daemon, tmp_path):
    """The page and the command do the same and leave the same rows."""
    site = reviewing(daemon, tmp_path)
    d = site.daemon
    (d.inbox / "photo.dcm").write_bytes(b"\xff\xd8\xff\xe0" + bytes(range(256)) * 20)
    wait_for(lambda: d.query("SELECT 1 FROM v_quarantine"), 60, "the quarantine")
    drop(small(tmp_path / "second", 2), d.inbox / "second")
    wait_review(d, 2)
    d.ctl("hold", "--destination", "OUT")
    d.ctl("accept", "1")
    d.ctl("release", "--destination", "OUT")
    wait_states(d, ("OUT", "SENT"))
    d.ctl("hold", "--queue")
    drop(phantom(tmp_path / "more", "--size", "32x32x6", "--seed", "9"), d.inbox / "more")
    wait_for(lambda: d.jobs("READY"), 60, "a waiting job")
    (job,) = [row["job"] for row in d.jobs("READY")]
    alert = [row["id"] for row in json.loads(d.ctl("status", "--json", check=False).stdout)["alerts"] if row["id"] == "review"]
    pairs = [
        ({"action": "hold", "subject": "destination OUT", "reason": "moving"}, ("hold", "--reason", "moving", "--destination", "OUT")),
        ({"action": "resend", "subject": "destination OUT"}, ("resend", "--destination", "OUT", "--failed")),
        ({"action": "release", "subject": "destination OUT"}, ("release", "--destination", "OUT")),
        ({"action": "hold", "subject": f"job {job}"}, ("hold", str(job))),
        ({"action": "priority", "subject": f"job {job}", "value": "-7"}, ("priority", str(job), "-7")),
        ({"action": "release", "subject": f"job {job}"}, ("release", str(job))),
        ({"action": "cancel", "subject": f"job {job}"}, ("cancel", str(job))),
        ({"action": "retry", "subject": f"job {job}"}, ("retry", str(job))),
        ({"action": "acknowledge", "subject": f"alert {alert[0]}", "reason": "seen"}, ("ack", "--reason", "seen", alert[0])),
        ({"action": "unacknowledge", "subject": f"alert {alert[0]}"}, ("ack", "--undo", alert[0])),
    ]
    before = len(audit(d))
    for values, _ in pairs:
        answer = site.post("otto", **values)
        assert answer.status == 200, (values, answer.body)
    by_page = audit(d)[before:]
    for _, words in pairs:
        d.ctl(*words)
    by_command = audit(d)[before + len(pairs):]
    names = ("action", "subject", "job", "revision", "reason")
    assert [{name: row[name] for name in names} for row in by_page] == [{name: row[name] for name in names} for row in by_command]
    assert {row["actor"] for row in by_page} == {"otto"} and {row["how"] for row in by_command} == {"command"}
    (file,) = d.query("SELECT quarantine AS file FROM v_quarantine")
    answer = site.post("otto", action="forget", subject=f"file {file['file']}")
    assert answer.status == 200 and "forgotten" in answer.json["message"], answer.body
    assert audit(d)[-1]["subject"] == f"file {file['file']}" and audit(d)[-1]["action"] == "forget"
    assert d.stop() == 0


def forms_of(text):
    """Returns the hidden fields of each form of a decision."""
    parts = [re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part)
             for part in re.findall(r'<form class="decide"[^>]*>(.*?)</form>', text, re.S)]
    return [dict(part) for part in parts if "action" in dict(part)]


def test_buttons_by_role(daemon, tmp_path):
    """Each page has the buttons that its person may press, and pressing them has the effect."""
    site = reviewing(daemon, tmp_path)
    d = site.daemon
    (d.inbox / "photo.dcm").write_bytes(b"\xff\xd8\xff\xe0" + bytes(range(256)) * 20)
    wait_for(lambda: d.query("SELECT 1 FROM v_quarantine"), 60, "the quarantine")
    d.ctl("hold", "--queue")
    drop(phantom(tmp_path / "more", "--size", "32x32x6", "--seed", "9"), d.inbox / "more")
    wait_for(lambda: d.jobs("READY"), 60, "a waiting job")
    wait_for(lambda: any(form["subject"] == "alert review" for form in forms_of(site.send(
        "GET", "", Authorization=f"Bearer {TOKENS['otto']}").body)), 60, "the alert")
    pages = {"": {("acknowledge", "alert review")}, "deliveries": {("hold", "destination OUT"), ("resend", "destination OUT")},
             "received": {("release", "file 1"), ("forget", "file 1")}, "job?id=2": {("hold", "job 2"), ("priority", "job 2"), ("cancel", "job 2")},
             "review": {("accept", "job 1"), ("reject", "job 1")}}

    def shown(person, path):
        answer = site.send("GET", path, Authorization=f"Bearer {TOKENS[person]}")
        if answer.status == 301:
            answer = site.send("GET", answer.headers["Location"], Authorization=f"Bearer {TOKENS[person]}")
        return {(form["action"], form["subject"]) for form in forms_of(answer.body)}

    for path, decisions in pages.items():
        assert shown("vera", path) == set()
        assert shown("rita", path) == (decisions if path == "review" else set())
        assert decisions <= shown("otto", path), (path, shown("otto", path))
    cookie = site.log_in("otto")
    for path, fields in (("", {"action": "acknowledge", "reason": "seen"}), ("deliveries", {"action": "hold"}), ("received", {"action": "forget"}),
                         ("job?id=2", {"action": "priority", "value": "9"})):
        form = next(form for form in forms_of(site.send("GET", path, Cookie=cookie).body)
                    if form["action"] == fields["action"] and form["subject"] in {subject for _, subject in pages[path]})
        answer = site.submit(cookie, {**form, **fields})
        assert answer.status == 303 and answer.headers["Location"] == (path or "./"), answer.body
    assert [(row["action"], row["subject"], row["reason"]) for row in audit(d)[-4:]] == [
        ("acknowledge", "alert review", "seen"), ("hold", "destination OUT", ""), ("forget", "file 1", ""), ("priority", "job 2", "9")]
    assert ("release", "destination OUT") in shown("otto", "deliveries")
    assert ("unacknowledge", "alert review") in shown("otto", "")
    assert d.stop() == 0


def test_too_many(daemon, tmp_path):
    site = Deciding(daemon, tmp_path / "secrets", quiet=600.0).start()
    statuses = [site.post("otto", action="cancel", subject="job 9").status for _ in range(70)]
    assert statuses[:60] == [404] * 60 and 429 in statuses[60:]
    assert site.post("rita", action="accept", subject="job 9").status == 404  # another person
    logins = [site.send("POST", "login", "secret=x", Origin=site.origin, Content_Type="application/x-www-form-urlencoded").status
              for _ in range(70)]
    assert logins[:60] == [401] * 60 and 429 in logins[60:]
    assert site.post("rita", action="accept", subject="job 9").status == 404
