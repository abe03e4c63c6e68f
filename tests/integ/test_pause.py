"""pause, resume and drain: no job starts, while series are received and results delivered."""

import json
import subprocess

from conftest import BIN, put, storescp, wait_for
from test_again import Stopped, small
from test_deliveries import destinations, states, to_archive, wait_states


def drain(d, *options):
    return subprocess.Popen([BIN / "noctule", "--config", d.config, "drain", *options], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kinds(d, *wanted):
    return [row["kind"] for row in d.query("SELECT kind FROM v_events ORDER BY event") if row["kind"] in wanted]


def check(d):
    result = d.ctl("status", "--check", check=False)
    return result.returncode, result.stdout


def test_a_pause_outlives_a_restart_and_deliveries_continue(daemon, tmp_path):
    with storescp(tmp_path / "archive") as archive:
        d = daemon(quiet=60.0, pipeline_extra='deliver = [ "PACS" ];',
                   extra=destinations(to_archive(archive.port))).start()
        d.ctl("hold", "--destination", "PACS")
        put(small(tmp_path / "1", 1), d.inbox / "1")
        wait_states(d, ("PACS", "PENDING"))
        d.ctl("release", "--destination", "PACS")
        wait_states(d, ("PACS", "SENT"))
        said = d.ctl("pause", "--reason", "a new driver").stdout
        assert said.startswith("no job starts until noctule resume; 0 running jobs will finish")
        assert d.ctl("pause", check=False).stderr == "noctule: jobs are paused already\n"
        d.ctl("resend", "1")
        wait_for(lambda: len(archive.files()) and kinds(d, "DELIVERY_RESENT"), 60, "the resend")
        wait_states(d, ("PACS", "SENT"))
        put(small(tmp_path / "2", 2), d.inbox / "2")
        wait_for(lambda: d.jobs("READY"), 60, "the second job")
        d.process.kill()
        d.process.wait()
        d.start()
        assert [row["held"] for row in d.jobs("READY")] == ["jobs"]
        status = d.ctl("status").stdout
        assert "no job starts, 0 run: paused by " in status and ": a new driver (since 20" in status and "paused: noctule resume;" in status
        assert "Held" not in status
        assert check(d)[0] == 1 and "no job starts" in check(d)[1]
        assert "paused by" in json.dumps(json.loads(d.ctl("status", "--json").stdout)["troubles"])
        assert d.ctl("resume").stdout == "jobs start again\n"
        assert d.ctl("resume", check=False).stderr == "noctule: jobs are not paused\n"
        wait_states(d, ("PACS", "SENT"), ("PACS", "SENT"))
        assert check(d)[0] == 0 and states(d)
        assert kinds(d, "PAUSED", "DRAINED", "RESUMED") == ["PAUSED", "DRAINED", "DRAINED", "RESUMED"]


def test_drain_reports_the_end_of_the_last_job(daemon, tmp_path):
    d = daemon(quiet=60.0).start()
    d.ctl("pause")
    for seed in (1, 2, 3, 4):
        put(small(tmp_path / str(seed), seed), d.inbox / str(seed))
    wait_for(lambda: len(d.jobs("READY")) == 4, 60, "the jobs")
    with Stopped(d):
        d.ctl("resume")
        running = len(wait_for(lambda: d.jobs("RUNNING"), 60, "a job that runs"))
        late = drain(d, "--wait", "1")
        out, error = late.communicate(timeout=60)
        assert late.returncode == 1 and "still run after 1 seconds; jobs stay paused" in error
        running = len(d.jobs("RUNNING"))
        waiting = drain(d)
        assert waiting.stdout.readline() == f"{running} job{' runs' if running == 1 else 's run'}\n"
        assert kinds(d, "DRAINED") == ["DRAINED"]  # of the first pause
    out, error = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, error
    assert out.endswith(f"no job runs; {4 - running} wait{'s' if running == 3 else ''} for noctule resume\n")
    assert len(d.jobs("DONE")) == running and len(d.jobs("READY")) == 4 - running
    assert kinds(d, "DRAINED") == ["DRAINED"] * 2
    d.ctl("resume")
    wait_for(lambda: len(d.jobs("DONE")) == 4, 60, "all of them")


def test_drain_ends_with_the_daemon(daemon, tmp_path):
    d = daemon(quiet=60.0).start()
    d.ctl("pause")
    put(small(tmp_path / "1"), d.inbox)
    wait_for(lambda: d.jobs("READY"), 60, "the job")
    with Stopped(d):
        d.ctl("resume")
        wait_for(lambda: d.jobs("RUNNING"), 60, "it runs")
        waiting = drain(d)
        waiting.stdout.readline()
        waiting.stdout.readline()
        d.process.kill()
        d.process.wait()
        out, error = waiting.communicate(timeout=60)
    assert waiting.returncode == 4 and "noctuled has ended" in error
    d.kill_all()
