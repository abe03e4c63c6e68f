"""nginx before the web UI on a Unix socket, with the lines of docs/operations.md: persons, a decision, an upload."""

import base64
import contextlib
import http.client
import re
import shutil
import subprocess
import urllib.parse

import pytest
from conftest import PEERS, SOURCE, drop, free_port, wait_for
from test_corrections import cut, jobs, result, segment, wait_job
from test_decide import Answer, audit
from test_review import expecting, small, under_review, wait_review
from test_upload import MIB, file_bytes, multipart, padded

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
NAME = "noctule.example.org"
pytestmark = pytest.mark.skipif(not NGINX, reason="nginx is not here")


def documented(socket):
    """The lines for nginx of the section on proxies over a Unix socket."""
    text = (SOURCE / "docs/operations.md").read_text()
    (lines,) = re.findall(r"```\n( +proxy_pass http://unix:.*?)```", text, re.S)
    assert "client_max_body_size" in lines and "X-Remote-User $remote_user" in lines
    return lines.replace("/run/noctule-web/page.sock", str(socket))


class Proxied:
    """A service whose web UI is on a Unix socket, and nginx before it, which knows passwords."""

    def __init__(self, daemon, folder):
        self.folder, self.socket = folder, folder / "page.sock"
        page = (f'page = {{ socket = "{self.socket}"; hosts = [ "{NAME}" ]; may = [ "review", "masks" ]; undo_seconds = 600.0; '
                'user_header = "X-Remote-User"; reviewers = [ "rita" ]; };')
        self.daemon = daemon(quiet=600.0, dicom=PEERS, extra=page)
        self.port = free_port()

    @contextlib.contextmanager
    def nginx(self):
        (self.folder / "passwords").write_text("rita:{PLAIN}a\nvera:{PLAIN}b\n")
        (self.folder / "nginx.conf").write_text(f"""
daemon off; pid {self.folder}/nginx.pid; error_log stderr; user root; worker_processes 1;
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path {self.folder}/bodies; proxy_temp_path {self.folder}/answers;
    fastcgi_temp_path {self.folder}/f; uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;
    server {{
        listen 127.0.0.1:{self.port}; auth_basic "Noctule"; auth_basic_user_file {self.folder}/passwords;
        location / {{
{documented(self.socket)}
        }}
    }}
}}
""")
        with open(self.folder / "nginx.log", "w") as log:
            process = subprocess.Popen([NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")], stderr=log)
        try:
            wait_for(lambda: process.poll() is not None or self.answers(), 60, "nginx")
            assert process.poll() is None, (self.folder / "nginx.log").read_text()
            yield
        finally:
            process.terminate()
            process.wait(60)

    def answers(self):
        with contextlib.suppress(OSError):
            return self.send("GET", "healthz").status == 200

    def send(self, method, path, body=None, person="rita", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        password = {"rita": "a", "vera": "b"}.get(person, "")
        connection.request(method, f"/{path}", body, {
            "Host": NAME, "Origin": f"http://{NAME}", "Authorization": "Basic " + base64.b64encode(f"{person}:{password}".encode()).decode(),
            **{name.replace("_", "-"): value for name, value in headers.items()}})
        with contextlib.closing(connection):
            return Answer(connection.getresponse())

    def fields(self, form, path):
        (part,) = (part for part in re.findall(r"<form[^>]*>.*?</form>", self.send("GET", path).body, re.S) if form in part)
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part))


def test_decisions_and_uploads_through_nginx(daemon, tmp_path):
    site = Proxied(daemon, tmp_path)
    d = site.daemon
    expecting(d)
    d.start()
    drop(small(tmp_path / "ct"), d.inbox)
    wait_review(d)
    with site.nginx():
        assert site.send("GET", "", person="eve").status == 401  # nginx asks for a password
        assert "(reviewer)" in site.send("GET", "review").body and "(viewer)" in site.send("GET", "review", person="vera").body
        # nginx replaces a name that the client sends.
        assert site.send("GET", "api/v1/me", person="vera", X_Remote_User="rita").json["name"] == "vera"
        # A decision and its undo, by the forms.
        kind = {"Content_Type": "application/x-www-form-urlencoded"}
        accept = site.fields('value="accept"', "review")
        assert site.send("POST", "decide", urllib.parse.urlencode(accept), **kind).status == 303
        assert [row["decision"] for row in under_review(d)] == ["accept"]
        undo = site.fields('value="undo"', "review")
        assert site.send("POST", "decide", urllib.parse.urlencode(undo), **kind).status == 303
        # An upload larger than nginx's own limit of 1 MiB.
        before = segment(d, 1)["voxels"]
        edited, removed = cut(result(d))
        body, kind = multipart(site.fields('action="upload"', "job?id=1"), padded(edited, 3))
        answer = site.send("POST", "upload", body, person="vera", Content_Type=kind)
        assert answer.status == 403 and len(jobs(d)) == 1
        answer = site.send("POST", "upload", body, Content_Type=kind)
        assert (answer.status, answer.headers["Location"]) == (303, "job?id=1"), answer.body
        wait_job(d, 2)
        assert segment(d, 2)["voxels"] == before - removed
        assert [(row["action"], row["actor"], row["how"], row["address"]) for row in audit(d)] == [
            (action, "rita", "proxy", "socket") for action in ("accept", "undo", "correct")]
        # By the API, and too large for nginx.
        upload = {"Content_Type": "application/dicom", "Noctule_Form": site.send("GET", "api/v1/me").json["form"]}
        assert site.send("POST", "api/v1/jobs/2/corrections", file_bytes(cut(result(d, 2), frames=0.5)[0]), **upload).status == 200
        assert wait_job(d, 3)["corrects"] == 2
        link = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
        link.putrequest("POST", "/upload")
        link.putheader("Content-Length", str(300 * MIB))
        link.endheaders()
        with contextlib.closing(link):
            assert link.getresponse().status == 413
