"""A reload reaches each serving process: with a full disk, repeatedly, and when a child cannot apply it."""

import contextlib
import html
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.request

import pytest
from conftest import BIN, PEERS, Clock, StoreScp, drop, echoscu, free_port, is_listening, phantom, storescu, wait_for
from test_daemon import change, events, reload
from test_status import NOBODY, open_folder  # noqa: F401

SMALL = ("--size", "32x32x6")


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "daemon0" / "root"
    folder.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "noctule-test", folder],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    """Fills the file system to the last byte."""
    with open(folder / "ballast", "wb", buffering=0) as ballast:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                pass


def move_port(d):
    old, d.port = d.port, free_port()
    change(d, f"port = {old};", f"port = {d.port};")
    return old


def ready_children(d):
    """Returns the process IDs of receiver and worker. The device probe ends by itself."""
    for role in ("intake", "worker"):
        d.wait_log(f"event=child.ready child={role}")
    wait_for(lambda: len(d.children()) == 2, 60, "the end of the probe")
    return d.children()


def test_a_full_disk_keeps_no_child_from_the_new_configuration(daemon, small_disk, tmp_path):
    archive = StoreScp(tmp_path / "archive")
    d = daemon(dicom=PEERS, quiet=60.0)
    d.start()
    children = ready_children(d)
    fill(small_disk)
    for _ in range(2):
        old = move_port(d)
        d.process.send_signal(signal.SIGHUP)
        wait_for(lambda: is_listening(d.port) and not is_listening(old), 60, "the port of the new configuration")
    assert d.children("intake") and set(d.children()) >= set(children), "nobody had to be replaced"
    other = tmp_path / "other"
    change(d, 'inbox = ( { path = "inbox"', f'inbox = ( {{ path = "{other}"')
    change(d, "segments = (", 'deliver = [ "ARCHIVE" ]; segments = (')
    with open(d.config, "a") as config:
        config.write(f'destinations = ( {{ name = "ARCHIVE"; ae_title = "ARCHIVE"; host = "127.0.0.1"; '
                     f'port = {archive.port}; }} );')
    d.process.send_signal(signal.SIGHUP)
    wait_for(other.is_dir, 60, "the new inbox")
    (small_disk / "ballast").unlink()
    try:
        archive.start()
        drop(phantom(tmp_path / "series", *SMALL), other)
        d.wait_jobs()
        wait_for(archive.files, 60, "the delivery")
    finally:
        archive.stop()
    assert "config.refused" not in d.log.read_text()


def test_repeated_reloads_while_files_arrive(daemon, tmp_path):
    d = daemon(dicom=PEERS, quiet=60.0, after="delete").start()
    children = ready_children(d)
    sent = [phantom(tmp_path / f"sent{seed}", *SMALL, "--seed", str(seed)) for seed in range(1, 9)]
    dropped = phantom(tmp_path / "dropped", *SMALL, "--seed", "20")
    failures = []

    def send():
        for files in sent:
            failures.extend([files[0]] if storescu(d.port, *files, check=False).returncode else [])

    sender = threading.Thread(target=send)
    sender.start()
    for number in range(12):
        change(d, f"sweep_seconds = {1 + number}.0", f"sweep_seconds = {2 + number}.0")
        reload(d)
        drop(dropped[number // 2:number // 2 + 1], d.inbox)
    sender.join(60)
    assert not failures and not sender.is_alive()
    assert {job["state"] for job in d.wait_jobs(9)} == {"DONE"}
    assert d.query("SELECT count(*) FROM instance")[0][0] == 9 * 6
    assert d.children() == children, "a reload cost a child"


def test_a_child_that_cannot_apply_a_reload_is_replaced(daemon, certificates, tmp_path):
    """Its keys are unreadable: the port without TLS has the new settings, and the TLS port is reported as closed."""
    d = daemon(dicom=PEERS, certificates=certificates, quiet=60.0, after="delete").start()
    (intake,) = d.children("intake")
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    change(d, str(certificates.server_key), str(broken))
    change(d, "ECHOSCU", "NEWCOMER")
    assert echoscu(d.port, calling="NEWCOMER", check=False).returncode != 0
    drop(phantom(tmp_path / "series", *SMALL), d.inbox)
    reload(d)
    wait_for(lambda: d.children("intake") not in ([], [intake]), 60, "another intake")
    wait_for(lambda: d.ctl("status", check=False).stdout.find(f"port {d.tls_port} is not open") >= 0, 60, "the trouble")
    echoscu(d.port, calling="NEWCOMER")
    assert d.wait_jobs()[0]["state"] == "DONE"
    assert not events(d, "INTAKE_DIED"), "one that was renewed did not die"
    assert not [line for line in d.log.read_text().splitlines() if "level=error" in line and ".renew " in line], "it is routine"
    change(d, str(broken), str(certificates.server_key))
    reload(d)
    wait_for(lambda: is_listening(d.tls_port), 60, "the port by TLS")
    wait_for(lambda: d.ctl("ping", check=False).returncode == 0, 60, "an answer that all is open")


@contextlib.contextmanager
def taken(port):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        yield


def test_ping_and_ready_wait_for_every_port(daemon, certificates, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(tmp_path / "notify"))
        notify.settimeout(0.1)
        clock = Clock(tmp_path)
        d = daemon(environment={"NOTIFY_SOCKET": str(tmp_path / "notify"), **clock.environment}, dicom=PEERS,
                   certificates=certificates)

        def receive_word(word):
            heard = []

            def has_word():
                try:
                    heard.append(notify.recv(4096).decode())
                except TimeoutError:
                    clock.pass_time(0.5)  # the receiver tries to open a port in use again after 5 s
                return any(word in each for each in heard)

            wait_for(has_word, 60, word)
            return "\n".join(heard)

        def ping():
            clock.pass_time(0.5)
            return d.ctl("ping", check=False)

        with taken(d.tls_port):
            d.start(wait=False)
            why = f"port {d.tls_port} is not open: Address already in use"
            wait_for(lambda: why in ping().stderr, 60, "what ping says of the port by TLS")
            assert is_listening(d.port)
            assert "READY=1" not in receive_word(f"STATUS={why}")
        receive_word("READY=1")
        assert is_listening(d.tls_port) and ping().returncode == 0

        # Without a pause between signal and request, so that the receiver may not have the signal yet.
        (intake,) = d.children("intake")
        os.kill(intake, signal.SIGSTOP)
        for name, number in (("port", d.port), ("tls_port", d.tls_port)):
            new = free_port()
            change(d, f" {name} = {number};", f" {name} = {new};")
            setattr(d, name, new)
        reload(d)
        told = ping()
        assert told.returncode == 4 and "loads its configuration" in told.stderr
        assert "READY=1" not in receive_word("RELOADING=1")
        os.kill(intake, signal.SIGCONT)
        receive_word("READY=1")
        assert ping().returncode == 0 and is_listening(d.port) and is_listening(d.tls_port)

        old, new = d.tls_port, free_port()
        change(d, f"tls_port = {old};", f"tls_port = {new};")
        with taken(new):
            reload(d)
            assert "READY=1" in receive_word("READY=1"), "what is wrong is known: the reload is over"
            wait_for(lambda: f"port {new} is not open" in ping().stderr, 60, "what ping says")
        wait_for(lambda: ping().returncode == 0, 60, "the port to be opened after all")
        assert is_listening(new) and not is_listening(old)


# --------------------------------------------------------------------- the outcome of a reload ----


def page_of(port):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{port}/") as answer:
        return html.unescape(re.sub(r"<[^>]*>", "", answer.read().decode()))


def shown(d, page, *words):
    """Returns whether `status`, its --check and the web UI all contain the words."""
    texts = (d.ctl("status", check=False).stdout, d.ctl("status", "--check", check=False).stdout, page_of(page))
    return all(word in text for text in texts for word in words)


def with_conf_d(d, page):
    """Adds a web UI and a conf.d folder to the daemon's configuration."""
    folder = d.config.parent / "conf.d"
    folder.mkdir()
    folder.chmod(0o755)
    with open(d.config, "a") as config:
        config.write(f'page = {{ port = {page}; }};\n@overlay "conf.d/*.conf"\n')
    return folder


def test_a_typo_is_refused_and_reported_until_corrected(daemon):
    page = free_port()
    d = daemon(dicom=PEERS)
    folder = with_conf_d(d, page)
    d.start()
    wait_for(lambda: is_listening(page), 60, "the page")
    assert f"Config      {d.config}, since 20" in d.ctl("status").stdout and "(start)" in d.ctl("status").stdout
    told = d.ctl("reload")
    assert (told.returncode, told.stdout, told.stderr) == (0, "the configuration is loaded\n", "")
    assert "(reload by " in d.ctl("status").stdout and "requested by " in events(d, "RELOAD")[0]["detail"]
    assert d.ctl("status", "--check").returncode == 0

    typo = folder / "site.conf"
    typo.write_text('log_level = "info";\nmin_free_mib = ;\n')  # the error is in line 2
    place = f"{typo}:2: "
    told = d.ctl("status", "--check", check=False)
    assert told.returncode == 1 and place in told.stdout and "would not start with this file" in told.stdout
    told = d.ctl("reload", check=False)
    assert told.returncode == 5 and told.stderr.startswith(f"noctule: CONFIG_REFUSED: {place}"), told
    assert told.stderr.count("\n") == 1
    assert shown(d, page, "the configuration was refused", place)
    assert "correct the file that the alert names, then noctule reload" in d.ctl("status", check=False).stdout
    assert d.ctl("status", check=False).stdout.count(place) == 1
    assert [event["detail"].startswith(place) for event in events(d, "RELOAD_FAILED")] == [True]
    for command in (["jobs"], ["series"], ["ping"], ["hold", "--queue"], ["release", "--queue"]):
        told = d.ctl(*command)
        assert told.stderr.startswith(f"noctule: warning: {place}") and told.stderr.count("\n") == 1, (command, told)
    told = d.ctl("explain", d.inbox, check=False)
    assert told.returncode == 5 and place in told.stderr, "explain is of the file as it is"
    (first,) = d.query("SELECT since_at, at FROM v_configuration WHERE state = 'REFUSED'")
    assert d.ctl("reload", check=False).returncode == 5
    (again,) = d.query("SELECT since_at, at FROM v_configuration WHERE state = 'REFUSED'")
    assert again["since_at"] == first["since_at"] < again["at"]

    typo.write_text('log_level = "debug";\n')
    d.ctl("reload")
    assert not d.query("SELECT 1 FROM v_configuration WHERE state = 'REFUSED'")
    assert d.query("SELECT files FROM v_configuration")[0][0] == f"{d.config}\n{typo}"
    assert "was refused" not in d.ctl("status").stdout and d.ctl("status", "--check").returncode == 0


def test_a_port_that_cannot_be_opened_fails_the_reload(daemon):
    d = daemon(dicom=PEERS).start()
    with taken(other := free_port()):
        change(d, f"port = {d.port};", f"port = {other};")
        told = d.ctl("reload", check=False)
        assert told.returncode == 1 and f"port {other} is not open" in told.stderr, told


def test_commands_without_a_daemon_refuse_a_typo(daemon):
    d = daemon().start()
    with open(d.config, "a") as config:
        config.write("oops\n")
    assert d.ctl("jobs").returncode == 0
    d.stop()
    told = d.ctl("jobs", check=False)
    assert told.returncode == 5 and "noctule.conf:" in told.stderr and "warning" not in told.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another")
def test_an_unreadable_file_fails_the_reload(open_folder, daemon):  # noqa: F811
    page = free_port()
    d = daemon()
    text = d.config.read_text().replace(str(d.root), str(open_folder / "root"))
    d.config, d.root = open_folder / "noctule.conf", open_folder / "root"
    d.config.write_text(text)
    folder = with_conf_d(d, page)
    (d.root / "inbox").mkdir(parents=True)
    for path in (d.root, d.root / "inbox"):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o750)
    with open(d.log, "ab") as log:
        d.process = subprocess.Popen([BIN / "noctuled", "--config", d.config], stderr=log, stdout=log, env=d.environment,
                                     start_new_session=True, user=NOBODY, group=NOBODY, extra_groups=[])
    wait_for(lambda: d.answers() and is_listening(page), 60, "the daemon and its page")
    secret = folder / "site.conf"
    secret.write_text('log_level = "debug";\n')
    secret.chmod(0o600)
    for command in ("doctor", "check-config"):
        told = d.ctl(command, check=False)
        assert told.returncode, command
        text = told.stdout + told.stderr
        assert f"cannot include {secret}: Permission denied" in text and "user nobody" in text, (command, text)
    told = d.ctl("reload", check=False)
    assert told.returncode == 5 and f"cannot include {secret}: Permission denied" in told.stderr
    assert shown(d, page, "the configuration was refused", f"cannot include {secret}: Permission denied")
    secret.chmod(0o644)
    assert d.ctl("reload").returncode == 0 and d.ctl("check-config").returncode == 0
    folder.chmod(0o700)  # its files must not be ignored silently
    told = d.ctl("reload", check=False)
    assert told.returncode == 5 and f"cannot search {folder}/*.conf: Permission denied" in told.stderr, told
