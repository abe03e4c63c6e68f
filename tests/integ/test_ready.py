"""/readyz: ready, or the reasons why not, as the daemon sends them to the web UI, without file or patient names.
/healthz does not depend on them."""

import os
import re
import signal

from conftest import PEERS, Clock, free_port, wait_for
from test_daemon import change, reload
from test_page import Site
from test_reload import taken


def served(daemon, tmp_path, **options):
    """Returns the web UI of a daemon, and the clock of its processes."""
    clock = Clock(tmp_path)
    site = Site(daemon, quiet=60.0, environment=clock.environment, **options).start()
    site.clock = clock
    return site


def passing(site, condition, what):
    """Waits for the condition, while time passes on the clock of the service."""
    return wait_for(lambda: condition() or site.clock.pass_time(0.2), 60, what)


def asked(site, path="readyz"):
    """Returns its status and text. Tries again after a reload, because the web UI process is replaced."""
    try:
        status, _, said = site.ask(path)
    except OSError:
        return None, ""
    return status, said.decode()


def wait_reason(site, line):
    """Waits until /readyz reports this line as a reason."""

    def said():
        status, text = asked(site)
        return status == 503 and re.search(rf"^{re.escape(line)} \(broken(, since 20\S+Z)?\)$", text, re.M) and text

    text = passing(site, said, f"{line!r} of /readyz")
    wait_for(lambda: asked(site, "healthz") == (200, "ok\n"), 60, "/healthz")
    assert str(site.daemon.root) not in text
    assert "Broken" in site.daemon.ctl("status", check=False).stdout
    return text


def wait_ready(site):
    passing(site, lambda: asked(site)[0] == 200, "that it is ready")
    assert "Broken" not in site.daemon.ctl("status", check=False).stdout


def test_ports_and_the_disk(daemon, tmp_path):
    site = served(daemon, tmp_path, dicom=PEERS)
    d = site.daemon
    wait_ready(site)
    other = free_port()
    with taken(other):
        change(d, f"port = {d.port};", f"port = {other};")
        reload(d)
        assert str(other) not in wait_reason(site, "reception: a port is not open, or an inbox is not watched")
    reload(d)
    wait_ready(site)
    change(d, "min_free_mib = 1;", "min_free_mib = 1e8;")
    reload(d)
    wait_reason(site, "disk: less than min_free_mib is free, reception is stopped")
    change(d, "min_free_mib = 1e8;", "min_free_mib = 1;")
    reload(d)
    wait_ready(site)
    assert d.stop() == 0


def test_a_repeatedly_dying_child_is_a_reason(daemon, tmp_path):
    site = served(daemon, tmp_path)
    d = site.daemon
    for role, said in (("worker", "worker:0: a process that computes keeps ending or does not respond (broken"),
                       ("intake", "intake: the process that receives keeps ending or does not respond (broken")):
        wait_ready(site)

        def dies():
            for pid in d.children(role):
                os.kill(pid, signal.SIGKILL)
            status, text = asked(site)
            return status == 503 and said in text

        wait_for(dies, 60, f"that /readyz knows of the {role}")
    wait_ready(site)
    assert d.stop() == 0


def test_a_hanging_daemon_is_a_reason(daemon, tmp_path):
    site = served(daemon, tmp_path)
    wait_ready(site)
    os.kill(site.daemon.process.pid, signal.SIGSTOP)
    try:
        passing(site, lambda: asked(site) == (503, "daemon: noctuled does not respond (broken)\n"),
                "that it is missed")
        assert site.text("healthz") == "ok\n"
    finally:
        os.kill(site.daemon.process.pid, signal.SIGCONT)
    wait_ready(site)
    assert site.daemon.stop() == 0
