"""Upload of corrected masks by the web UI and /api/v1: stored as a C-STORE stores them, or refused without a trace."""

import contextlib
import hashlib
import http.client
import io
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import threading

import chromium
import numpy as np
import pydicom
import pytest
from conftest import PEERS, drop, released_only, small_file_system, wait_for
from objects import segmentation, send, structure_set
from pydicom.uid import generate_uid
from test_corrections import add_pipeline, cut, jobs, refusals, result, segment, voxels, wait_job
from test_decide import SECRET, TOKENS, Answer, Deciding, audit
from test_deliveries import destinations, states, to_folder, wait_states
from test_page_look import log_in, open_page, wait_text
from test_review import expecting, small, under_review, wait_review

MAY = 'may = [ "review", "masks", "jobs" ];'
MIB = 1 << 20


@pytest.fixture
def files(tmp_path):
    return small(tmp_path / "ct")


@pytest.fixture
def site(daemon, tmp_path, files):
    """A result under review (job 1), and a web UI in which rita is a reviewer who may upload masks."""
    return reviewing(daemon, tmp_path, files)


def reviewing(daemon, tmp_path, files, options=MAY, **others):
    site = Deciding(daemon, tmp_path / "secrets", options, undo=600, quiet=600.0, dicom=PEERS,
                    pipeline_extra='deliver = [ "OUT" ]; results = [ "seg" ];',
                    extra=destinations(to_folder(tmp_path / "out")), **others)
    expecting(site.daemon)
    site.start()
    drop(files, site.daemon.inbox)
    wait_review(site.daemon)
    return site


def file_bytes(dataset):
    buffer = io.BytesIO()
    pydicom.dcmwrite(buffer, dataset, enforce_file_format=True)
    return buffer.getvalue()


def api(site, body, job=1, person="rita", **headers):
    """Uploads as curl and urllib3 do: a server may answer, and close, before it has read the body."""
    connection = http.client.HTTPConnection(site.host, site.port, timeout=180)
    connection.putrequest("POST", f"/api/v1/jobs/{job}/corrections")
    for name, value in {"Authorization": f"Bearer {TOKENS[person]}", "Origin": site.origin, "Content_Type": "application/dicom",
                        "Content_Length": str(len(body)), **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.send(body)
    with contextlib.closing(connection):
        return Answer(connection.getresponse())


def fields_of(site, cookie, path):
    """The hidden fields of the form for uploads on a page."""
    text = site.send("GET", path, Cookie=cookie).body
    (part,) = re.findall(r'<form class="decide upload" method="post" action="upload" enctype="multipart/form-data">(.*?)</form>', text, re.S)
    assert 'type="file" name="file"' in part
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part))


def multipart(fields, body, name="mask.dcm"):
    """A form as Firefox and Chromium send it, with its type."""
    boundary = "----WebKitFormBoundary" + secrets.token_hex(8)
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode() for key, value in fields.items()]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                 f'Content-Type: application/dicom\r\n\r\n'.encode() + body + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def submit(site, cookie, fields, body, name="mask.dcm", **headers):
    data, kind = multipart(fields, body, name)
    return site.send("POST", "upload", data, **{"Cookie": cookie, "Origin": site.origin, "Content_Type": kind, **headers})


def nothing_kept(site):
    """No row, file or job of an upload exists."""
    d = site.daemon
    assert audit(d) == [] and len(jobs(d)) == 1 and d.query("SELECT 1 FROM upload") == []
    assert list((d.root / "released").iterdir()) == [] and list((d.root / "incoming").iterdir()) == []
    assert d.query("SELECT 1 FROM object") == [] and d.query("SELECT 1 FROM quarantine") == []
    assert len(list((d.root / "series").iterdir())) == 1


def test_a_form_of_a_browser(site, tmp_path):
    d = site.daemon
    rita = site.log_in("rita")
    before = segment(d, 1)["voxels"]
    edited, removed = cut(result(d))
    body = file_bytes(edited)
    for path in ("job?id=1", "review?id=1"):
        fields = fields_of(site, rita, path)
        assert set(fields) == {"form", "job", "seen"} and fields["job"] == "1"
    answer = submit(site, rita, fields, body, name="Müller \"1\".dcm")
    assert (answer.status, answer.headers["Location"]) == (303, "job?id=1"), answer.body
    page = site.send("GET", "job?id=1", Cookie=rita).body
    assert "comes under review" in page  # received, or measured by now
    job = wait_job(d, 2)
    assert (job["corrects"], job["corrected_by"]) == (1, "Doe^Jane")
    assert segment(d, 2)["voxels"] == before - removed
    (row,) = audit(d)
    assert (row["action"], row["subject"], row["job"], row["actor"], row["how"], row["role"], row["address"]) == (
        "correct", "job 1", 1, "rita", "token", "reviewer", "127.0.0.1")
    assert row["reason"] == f"seg {edited.SOPInstanceUID}, {len(body)} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}"
    assert row["seen"] == fields["seen"] != ""
    # The file is stored as every received one: byte by byte, once, and nothing else stays.
    (stored,) = (d.root / "series" / edited.SeriesInstanceUID).glob("*.dcm")
    assert stored.read_bytes() == body
    wait_for(lambda: list((d.root / "released").iterdir()) == [], 60, "the receiver to finish the file")
    assert d.query("SELECT 1 FROM upload") == []
    assert [tuple(row) for row in d.query("SELECT source FROM object")] == [("web:rita",)]
    # The page of the old job has no form any more, and says who decides on what.
    page = site.send("GET", "job?id=1", Cookie=rita).body
    assert 'action="upload"' not in page and "Corrected masks" in page and "uploaded by <bdi>rita</bdi>" in page
    assert 'Decide on <a href="review?id=2">job 2</a>' in site.send("GET", "review?id=1", Cookie=rita).body
    # A correction is corrected again, and delivered with the person.
    assert submit(site, rita, fields_of(site, rita, "review?id=2"), file_bytes(cut(result(d, 2), frames=0.5)[0])).status == 303
    assert wait_job(d, 3)["corrects"] == 2
    d.ctl("accept", "3")
    wait_states(d, ("OUT", "SENT"))
    (sent,) = (tmp_path / "out").iterdir()
    assert voxels(pydicom.dcmread(sent)) == segment(d, 3)["voxels"]


def test_a_program(site, files):
    """highdicom writes a Segmentation without a person: the masks are those of the person who uploads it."""
    d = site.daemon
    mask = np.zeros((len(files), 32, 32), np.uint8)
    mask[1:4, 10:20, 8:13] = 1  # 3 x 10 x 5 voxels
    answer = api(site, file_bytes(segmentation(files, "Brain", mask=mask)))
    assert answer.status == 200 and "comes under review" in answer.json["message"], answer.body
    job = wait_job(d, 2)
    assert segment(d, 2)["voxels"] == 150 and job["corrects"] == 1
    assert [(row["actor"], row["how"]) for row in audit(d)] == [("rita", "token")]
    # A second one while the first waits for a decision corrects the correction only.
    again = api(site, file_bytes(segmentation(files, "Brain", mask=mask)))
    assert again.status == 409 and "job 2 measures a correction of job 1" in again.json["detail"] and len(jobs(d)) == 2
    document = site.send("GET", "api/v1/openapi.json", Authorization=f"Bearer {TOKENS['rita']}").json
    operation = document["paths"]["/api/v1/jobs/{job}/corrections"]["post"]
    assert operation["requestBody"]["content"] == {"application/dicom": {"schema": {"type": "string", "format": "binary", "minLength": 1}}}
    assert {"200", "403", "409", "413", "415", "422", "429", "507"} <= set(operation["responses"])
    assert site.send("GET", "api/v1/jobs/1/corrections", Authorization=f"Bearer {TOKENS['rita']}").status == 405


def test_an_rtstruct_with_the_cookie_of_a_login(site, files):
    """A cookie needs the token of a form: programs get it from /api/v1/me."""
    d = site.daemon
    cookie = site.log_in("rita")
    body = file_bytes(structure_set(files, roi="Brain"))
    headers = {"Authorization": None, "Cookie": cookie}
    send_it = lambda **more: site.send("POST", "api/v1/jobs/1/corrections", body, Origin=site.origin,
                                       Content_Type="application/dicom", Cookie=cookie, **more)
    assert send_it().status == 403
    nothing_kept(site)
    form = site.send("GET", "api/v1/me", Cookie=cookie).json["form"]
    assert send_it(Noctule_Form=form).status == 200
    assert wait_job(d, 2)["corrects"] == 1 and headers


def junk(files, old):
    """Bodies that are no correction of job 1, with the code of each."""
    ct = pydicom.dcmread(files[0])
    renamed, _ = cut(old)
    renamed.SegmentSequence[0].SegmentLabel = "Skull"
    unnamed, _ = cut(old, person="")
    plain = file_bytes(cut(old)[0])
    own = file_bytes(old)
    return {
        "no DICOM": (b"%PDF-1.4" + bytes(4000), "NOT_DICOM"),
        "cut short": (plain[:len(plain) // 2], None),
        "an image": (file_bytes(ct), "CORRECTION_NOT_MASK"),
        "other regions": (file_bytes(renamed), "CORRECTION_NO_SEGMENT"),
        "the result itself": (own, "OWN_RESULT"),
        "without a person": (file_bytes(unnamed), "OWN_RESULT"),
    }


def test_what_is_no_correction_is_refused_by_name(site, files, tmp_path):
    d = site.daemon
    old = result(d)
    cookie = site.log_in("rita")
    for kind, (body, code) in junk(files, old).items():
        answer = api(site, body)
        assert answer.status == 422 and answer.json["code"] == "NOT_A_CORRECTION", (kind, answer.body)
        assert code is None or answer.json["detail"].startswith(f"{code}: "), (kind, answer.body)
        nothing_kept(site)
    other = segmentation(small(tmp_path / "other", 2), "Brain")
    answer = api(site, file_bytes(other))
    assert answer.status == 422 and answer.json["detail"].startswith("CORRECTION_OTHER_JOB: "), answer.body
    page = submit(site, cookie, fields_of(site, cookie, "job?id=1"), file_bytes(other))
    assert page.status == 422 and "CORRECTION_OTHER_JOB" in page.body and "<title>" in page.body
    assert 'href="job?id=1"' in page.body  # a way back
    nothing_kept(site)
    assert refusals(d) == [] and states(d) == []


def test_a_correction_of_another_job(daemon, tmp_path, files):
    """Two pipelines have a segment Brain. By C-STORE it is ambiguous; here the person names the job."""
    site = Deciding(daemon, tmp_path / "secrets", MAY, undo=600, quiet=600.0, dicom=PEERS)
    d = site.daemon
    expecting(d)
    add_pipeline(d)
    site.start()
    drop(files, d.inbox)
    wait_review(d, 2)
    answer = api(site, file_bytes(cut(result(d, 2))[0]), job=1)
    assert answer.status == 422 and "CORRECTION_OTHER_JOB: it refers to the result of job 2" in answer.json["detail"], answer.body
    assert audit(d) == [] and len(jobs(d)) == 2
    assert api(site, file_bytes(segmentation(files, "Brain")), job=2).status == 200
    assert wait_job(d, 3)["corrects"] == 2


@pytest.mark.parametrize("change, status", [
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": None}, 403),
    ({"Sec_Fetch_Site": "cross-site"}, 403),
    ({"Host": "evil.example"}, 421),
    ({"Authorization": None}, 401),
    ({"Authorization": "Bearer " + "0" * 32}, 401),
    ({"Authorization": f"Bearer {TOKENS['vera']}"}, 403),
    ({"X_Remote_User": "rita", "Authorization": None}, 401),
    ({"Content_Type": "application/json"}, 415),
    ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
])
def test_requests_that_must_not_pass(undecided, change, status):
    site, body = undecided
    headers = {"Authorization": f"Bearer {TOKENS['rita']}", "Origin": site.origin, "Content_Type": "application/dicom", **change}
    answer = site.send("POST", "api/v1/jobs/1/corrections", body, **{k: v for k, v in headers.items() if v is not None})
    assert answer.status == status, answer.body
    nothing_kept(site)


@pytest.fixture(scope="module")
def undecided(tmp_path_factory):
    """A result under review for tests that must not change it, and a body that would correct it."""
    from conftest import daemons
    folder = tmp_path_factory.mktemp("undecided")
    with daemons(folder) as daemon:
        site = reviewing(daemon, folder, small(folder / "ct"))
        yield site, file_bytes(cut(result(site.daemon))[0])


@pytest.mark.parametrize("spoil", ["token", "no token", "other's token", "no file", "two files", "unknown field", "no end", "boundary",
                                   "long head", "job", "seen"])
def test_broken_forms(undecided, spoil):
    site, body = undecided
    cookie = site.log_in("rita")
    fields = fields_of(site, cookie, "job?id=1")
    if spoil == "token":
        fields["form"] = "0" * 64
    elif spoil == "no token":
        fields.pop("form")
    elif spoil == "other's token":
        fields["form"] = site.send("GET", "api/v1/me", Cookie=site.log_in("otto")).json["form"]
    elif spoil == "unknown field":
        fields["role"] = "operator"
    elif spoil == "job":
        fields["job"] = "99"
    elif spoil == "seen":
        fields["seen"] = "of yesterday"
    data, kind = multipart(fields, b"" if spoil == "no file" else body)
    edge = kind.partition("boundary=")[2].encode()
    if spoil == "two files":
        head, tail = data.split(b"--" + edge + b'\r\nContent-Disposition: form-data; name="file"')
        part = b"--" + edge + b'\r\nContent-Disposition: form-data; name="file"' + tail
        data = head + part.removesuffix(b"--" + edge + b"--\r\n") + part
    elif spoil == "no end":
        data = data[:-len(edge) - 8]
    elif spoil == "boundary":
        kind = "multipart/form-data; boundary=" + "x" * 71
    elif spoil == "long head":
        data = data.replace(b'filename="mask.dcm"', b'filename="' + b"m" * 4000 + b'"')
    answer = site.send("POST", "upload", data, Cookie=cookie, Origin=site.origin, Content_Type=kind)
    assert answer.status == {"token": 403, "no token": 403, "other's token": 403, "job": 404, "seen": 409}.get(spoil, 400), answer.body
    nothing_kept(site)


def test_off_unless_it_is_named(daemon, tmp_path, files):
    """page.may with "review" alone takes no file: no form, no address."""
    site = reviewing(daemon, tmp_path, files, 'may = [ "review" ];')
    body = file_bytes(cut(result(site.daemon))[0])
    cookie = site.log_in("rita")
    for path in ("job?id=1", "review?id=1"):
        assert 'action="upload"' not in site.send("GET", path, Cookie=cookie).body
    assert api(site, body).status == 405
    assert submit(site, cookie, {"form": "x", "job": "1"}, body).status == 405
    document = site.send("GET", "api/v1/openapi.json", Cookie=cookie).json
    assert "/api/v1/jobs/{job}/corrections" not in document["paths"]
    nothing_kept(site)
    # A viewer sees no form either.
    assert 'action="upload"' not in site.send("GET", "job?id=1", Cookie=site.log_in("vera")).body


def connect(site, length, person="rita", **more):
    """Begins an upload of that length. Returns its socket."""
    link = socket.create_connection((site.host, site.port), 60)
    head = {"Host": f"{site.host}:{site.port}", "Authorization": f"Bearer {TOKENS[person]}", "Origin": site.origin,
            "Content-Type": "application/dicom", "Content-Length": str(length), **more}
    link.sendall(b"POST /api/v1/jobs/1/corrections HTTP/1.1\r\n" +
                 "".join(f"{name}: {value}\r\n" for name, value in head.items()).encode() + b"\r\n")
    return link


def answer_of(link):
    response = http.client.HTTPResponse(link)
    response.begin()
    return Answer(response)


def test_too_large_before_it_is_read(undecided):
    site, _ = undecided
    for length in (256 * MIB + 1, 1 << 40, 10 ** 30):
        with connect(site, length) as link:
            answer = answer_of(link)
            assert answer.status == 413 and (length == 10 ** 30 or answer.json["code"] == "TOO_LARGE")
    with connect(site, 3 * MIB, person="vera") as link:  # not her role: nothing is kept
        link.sendall(bytes(2 * MIB))
        assert held(site) == 0
        link.sendall(bytes(MIB))
        assert answer_of(link).status == 403
    with connect(site, 256 * MIB, person="vera", Expect="100-continue") as link:  # nothing is read
        assert answer_of(link).status == 403
    with connect(site, "1e3") as link:
        assert answer_of(link).status in (400, 413)
    nothing_kept(site)


def held(site):
    """Bytes of files in memory that the web UI holds."""
    (pid,) = site.daemon.children("page")
    total = 0
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if "memfd:upload" in str(link.readlink()):
                total += link.stat().st_size
    return total


def padded(dataset, mib):
    """The file with so much padding behind its pixels."""
    dataset.DataSetTrailingPadding = bytes(mib * MIB)
    return file_bytes(dataset)


def test_two_at_once_and_slow_ones(site):
    """Two uploads that stand still: a third is told to wait, pages and decisions are answered, memory is bounded and returns."""
    d = site.daemon
    body = padded(cut(result(d))[0], 4)
    first, second = (connect(site, len(body)) for _ in range(2))
    first.sendall(body[:3 * MIB])
    second.sendall(body[:2 * MIB])
    wait_for(lambda: held(site) == 5 * MIB, 60, "both bodies in memory")
    answer = api(site, body)
    assert (answer.status, answer.json["code"], answer.headers["Retry-After"]) == (429, "TOO_MANY", "1")
    assert site.send("GET", "review", Authorization=f"Bearer {TOKENS['rita']}").status == 200
    assert site.post("rita", action="accept", subject="job 1").status == 200
    assert site.post("rita", action="undo", subject="job 1").status == 200
    # Newcomers replace connections without a request, not these.
    crowd = [socket.create_connection((site.host, site.port), 60) for _ in range(80)]
    first.sendall(body[3 * MIB:])
    assert answer_of(first).status == 200
    for link in crowd:
        link.close()
    # An aborted one leaves nothing.
    second.close()
    wait_for(lambda: held(site) == 0, 60, "the memory of the aborted upload")
    assert wait_job(d, 2)["corrects"] == 1
    first.close()
    assert [row["action"] for row in audit(d)] == ["accept", "undo", "correct"] and len(jobs(d)) == 2


def test_an_aborted_upload_leaves_its_place(undecided):
    site, body = undecided
    for _ in range(4):
        with connect(site, len(body) + 1) as link:
            link.sendall(body)
            wait_for(lambda: held(site) == len(body), 60, "the body in memory")
        wait_for(lambda: held(site) == 0, 60, "the end of the connection")
    nothing_kept(site)


def fill(folder):
    """Writes until the file system is full. Returns the file."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as out:
        while out.write(bytes(4096)):
            pass
    return ballast


def test_a_full_disk(daemon, tmp_path, files):
    """It is full before the copy, during it, or when the row is written: each is refused, and leaves nothing."""
    with small_file_system(tmp_path / "small", 32) as small:
        site = Deciding(daemon, tmp_path / "secrets", MAY, undo=600, quiet=600.0, dicom=PEERS)
        d = site.daemon
        expecting(d)
        text = d.config.read_text().replace(f'root = "{d.root}"', f'root = "{small}"').replace("min_free_mib = 1;", "min_free_mib = 0;")
        d.root, d.inbox = small, small / "inbox"
        d.config.write_text(text)
        crashed = tmp_path / "crashed"
        d.environment.update({"NOCTULE_CRASH_AT": "daemon_before_upload_copy", "NOCTULE_CRASH_ONCE": str(crashed), "NOCTULE_CRASH_STOPS": "1"})
        crashed.touch()
        site.start()
        drop(files, d.inbox)
        wait_review(d)
        body = padded(cut(result(d))[0], 8)
        (small / "ballast").write_bytes(bytes(shutil.disk_usage(small).free - 4 * MIB))
        answer = api(site, body)
        assert (answer.status, answer.json["code"]) == (507, "DISK_FULL"), answer.body
        nothing_kept(site)
        (small / "ballast").unlink()
        answers = []
        ask = lambda: answers.append(api(site, body))
        # During the copy.
        crashed.unlink()
        thread = threading.Thread(target=ask)
        thread.start()
        wait_for(lambda: crashed.exists() and pathlib.Path(f"/proc/{d.process.pid}/stat").read_text().split()[2] == "T", 60, "the stop")
        ballast = fill(small)
        os.kill(d.process.pid, signal.SIGCONT)
        thread.join(120)
        assert (answers[-1].status, answers[-1].json["code"]) == (507, "DISK_FULL"), answers[-1].body
        ballast.unlink()
        nothing_kept(site)
        # When the row is written.
        (receiver,) = d.children("intake")
        os.kill(receiver, signal.SIGSTOP)
        thread = threading.Thread(target=ask)
        thread.start()
        wait_for(lambda: any(file.stat().st_size == len(body) for file in (small / "released").iterdir()), 60, "the copy")
        ballast = fill(small)
        os.kill(receiver, signal.SIGCONT)
        thread.join(120)
        assert answers[-1].status == 503 and "cannot be written" in answers[-1].json["detail"], answers[-1].body
        ballast.unlink()
        nothing_kept(site)
        wait_for(lambda: api(site, body).status == 200, 60, "the upload, once there is space")
        assert wait_job(d, 2)["corrects"] == 1


KILLS = ["daemon_at_upload", "daemon_after_upload_copy", "daemon_at_examined", "daemon_after_upload_commit",
         "daemon_after_upload_publish", "intake_after_copy_before_rename",
         "intake_after_rename_before_arrived", "intake_after_arrived", "intake_after_stored_before_original"]


@pytest.mark.parametrize("point", KILLS)
def test_killed_between_the_steps(site, tmp_path, point):
    """An upload that was answered is measured once; one that was not leaves nothing, or is measured once as well."""
    d = site.daemon
    before = segment(d, 1)["voxels"]
    edited, removed = cut(result(d))
    body = file_bytes(edited)
    d.stop()
    d.environment.update({"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(tmp_path / "crashed")})
    d.start()
    accepted = []

    def received():
        if d.process.poll() is not None:
            d.start()
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = api(site, body)
            if answer.status == 200:
                accepted.append("rita")
            # 409 or CORRECTION_KNOWN: the first request was carried out, but its answer was lost.
            return answer.status in (200, 409) or (answer.status == 422 and "CORRECTION_KNOWN" in answer.json["detail"])

    wait_for(received, 120, "the upload")
    wait_for((tmp_path / "crashed").exists, 60, "the kill")
    wait_job(d, 2)
    assert segment(d, 2)["voxels"] == before - removed and len(jobs(d)) == 2 and states(d) == []
    wait_for(lambda: list((d.root / "released").iterdir()) == [], 60, "the end of the file")
    assert d.query("SELECT 1 FROM upload") == [] and len(d.query("SELECT 1 FROM object")) == 1
    # The row of the first request was stored, but its answer was lost. A request that follows before it is measured is accepted.
    lost = ["rita"] if point in ("daemon_after_upload_commit", "daemon_after_upload_publish") else []
    assert [row["actor"] for row in audit(d) if row["how"] == "token"] == lost + accepted


def test_files_without_a_row_are_removed_at_the_start(site):
    """An upload that was never acknowledged must not become a correction."""
    d = site.daemon
    body = file_bytes(cut(result(d))[0])
    d.stop()
    (d.root / "released" / ".u0123456789abcdef").write_bytes(body)
    (d.root / "released" / "u0123456789abcdee").write_bytes(body)
    d.start()
    nothing_kept(site)


def test_a_receiver_that_dies_while_it_examines(site, tmp_path):
    d = site.daemon
    body = file_bytes(cut(result(d))[0])
    (pid,) = d.children("intake")
    os.kill(pid, signal.SIGSTOP)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(api(site, body)))
    thread.start()
    wait_for(lambda: list((d.root / "released").iterdir()), 60, "the copy")
    os.kill(pid, signal.SIGKILL)
    thread.join(120)
    assert answers[0].status == 503 and "upload the file again" in answers[0].json["detail"], answers[0].body
    nothing_kept(site)
    wait_for(lambda: api(site, body).status == 200, 60, "the next receiver")
    wait_job(d, 2)


def test_the_web_ui_is_killed_while_it_waits(site):
    """Its browser gets no answer, and nothing is kept."""
    d = site.daemon
    body = file_bytes(cut(result(d))[0])
    (receiver,), (page,) = d.children("intake"), d.children("page")
    os.kill(receiver, signal.SIGSTOP)
    link = connect(site, len(body))
    link.sendall(body)
    wait_for(lambda: list((d.root / "released").iterdir()), 60, "the copy")
    os.kill(page, signal.SIGKILL)
    wait_for(lambda: d.children("page") not in ([], [page]), 60, "the next web UI")
    os.kill(receiver, signal.SIGCONT)
    link.close()
    wait_for(lambda: list((d.root / "released").iterdir()) == [], 60, "the end of the file")
    nothing_kept(site)


def test_more_uploads_than_the_rate(undecided):
    """Uploads count as decisions do: at most 60 in a minute."""
    site, _ = undecided
    seen = {api(site, b"junk", person="otto").status for _ in range(70)}
    assert seen == {422, 429}
    nothing_kept(site)


@released_only
@pytest.mark.skipif(not chromium.PROGRAM, reason="chromium is not here")
def test_in_chromium(site, tmp_path):
    """Without scripts: a reviewer chooses a file and sends it, is told of a wrong one, and sees what happens next."""
    d = site.daemon
    good, wrong, large = (tmp_path / name for name in ("good.dcm", "wrong.dcm", "large.dcm"))
    good.write_bytes(file_bytes(cut(result(d))[0]))
    wrong.write_bytes(file_bytes(segmentation(small(tmp_path / "other", 2), "Brain")))
    with open(large, "wb") as out:
        out.truncate(257 * MIB)
    pictures = os.environ.get("NOCTULE_PICTURES")

    def look(browser, name):
        for width in (1440, 390):
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=1600, deviceScaleFactor=1, mobile=False)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            if pictures:
                browser.picture(pathlib.Path(pictures) / f"upload-{name}-{width}.png")

    def choose(browser, path):
        root = browser.call("DOM.getDocument")["root"]["nodeId"]
        node = browser.call("DOM.querySelector", nodeId=root, selector="input[type=file]")["nodeId"]
        browser.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)
        look(browser, f"chosen-{path.stem}")
        browser.evaluate("document.querySelector('form.upload button').click()")

    with chromium.Browser(tmp_path / "profile") as browser:
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        log_in(browser, site, "rita")
        open_page(browser, site, "review?id=1", "Upload corrected mask")
        look(browser, "review")
        open_page(browser, site, "job?id=1", "Upload corrected mask")
        look(browser, "job")
        choose(browser, wrong)
        wait_text(browser, "CORRECTION_OTHER_JOB", "the refusal")
        look(browser, "refused")
        browser.evaluate("document.querySelector('.refusal a').click()")
        wait_text(browser, "Upload corrected mask", "the way back")
        choose(browser, large)
        wait_text(browser, "more than 256 MiB", "the refusal before it is read")
        look(browser, "large")
        nothing_kept(site)
        open_page(browser, site, "review?id=1", "Upload corrected mask")
        choose(browser, good)
        wait_text(browser, "comes under review", "the page of the job")
        look(browser, "received")
        wait_job(d, 2)
        open_page(browser, site, "job?id=1", "Corrected masks")
        look(browser, "after")
        open_page(browser, site, "review?id=2", "Corrected masks")
        look(browser, "review-after")
        assert browser.evaluate("location.pathname") == "/review"


def test_downloads_need_a_name(undecided):
    """With tokens of persons, files and pictures of results need one on loopback as well, as the pages do."""
    site, _ = undecided
    (row,) = site.daemon.query("SELECT sop_instance_uid FROM v_results WHERE kind = 'seg'")
    paths = ["job?id=1", f"api/v1/results/{row[0]}?format=dicom", f"api/v1/results/{row[0]}", "api/v1/jobs/1/results", "preview?id=1",
             "api/v1/jobs/1/planes", "api/v1/jobs/1/planes/ax/1.png", "api/v1/jobs/1/planes/ax/1"]
    for path in paths:
        assert site.send("GET", path).status == 401, path
        assert site.send("GET", path, Authorization="Bearer " + "0" * 32).status == 401, path
        assert site.send("GET", path, Cookie="noctule=rita:9999999999:" + "0" * 64).status == 401, path
    seen = {path: connection_bytes(site, path, "vera") for path in paths}
    assert all(status == 200 for status, _ in seen.values()), {path: status for path, (status, _) in seen.items()}
    assert seen[paths[1]][1][128:132] == b"DICM"
    (looked,) = site.daemon.query("SELECT actor, job FROM v_audit WHERE action = 'looked' AND actor = 'vera'")
    assert tuple(looked) == ("vera", 1)


def connection_bytes(site, path, person):
    connection = http.client.HTTPConnection(site.host, site.port, timeout=60)
    connection.request("GET", f"/{path}", headers={"Authorization": f"Bearer {TOKENS[person]}"})
    with contextlib.closing(connection):
        response = connection.getresponse()
        return response.status, response.read()
