"""Lists of programs of the site and their runs: noctule programs, status, explain, and the web UI."""

import json
import re
import urllib.request

import pytest
from conftest import free_port, phantom, put, wait_for
from test_page import rows_below

NOT_FOUND = 3


@pytest.fixture
def site(daemon):
    """A daemon with the program "slow", which runs until it is stopped, "other", which is never run, and a web UI."""
    d = daemon(settings="root = 1;")
    d.page = free_port()
    d.config.write_text(f"""
        root = "{d.root}";
        inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
        series = {{ quiet_seconds = 60.0; complete_seconds = 0.3; }};
        min_free_mib = 1;
        page = {{ port = {d.page}; }};
        programs = (
          {{ name = "slow"; command = [ "/bin/sh", "-c", "sleep 600", "{{in}}", "{{out}}" ];
             algorithm = {{ name = "Slow"; version = "1"; }}; }},
          {{ name = "other"; command = [ "/nowhere/other", "{{in}}", "{{out}}" ];
             algorithm = {{ name = "Other"; version = "1"; }}; }} );
        pipelines = ( {{ name = "one"; unreviewed = true; segments = ( {{ label = "A"; method = "program"; program = "slow";
          value = 1; type = {{ code = "10200004"; scheme = "SCT"; meaning = "Liver"; }}; }} ); }} );
        rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "one"; }} );""")
    return d.start()


def page(d, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{d.page}/{path}", timeout=60) as answer:
        return answer.read().decode()


def test_a_run_in_each_list(site, tmp_path):
    d = site
    assert d.ctl("programs", "--runs").stdout.split() == d.ctl("programs", "--runs", "slow").stdout.split()
    wait_for(lambda: len(d.query("SELECT 1 FROM v_programs WHERE state <> 'WAITING'")) == 2, 60, "the check of both programs")
    files = phantom(tmp_path / "series", "--size", "40x32x12")
    put(files, d.inbox / "series")
    wait_for(lambda: d.query("SELECT 1 FROM v_program_runs WHERE state = 'RUNNING'"), 60, "the run")

    lines = d.ctl("programs").stdout.splitlines()
    assert lines[0].split()[:4] == ["PROGRAM", "STATE", "SANDBOX", "RUNNING"]
    assert [line.split()[:2] for line in lines[1:]] == [["other", "BROKEN"], ["slow", "READY"]]
    assert "PROGRAM_UNAVAILABLE" in lines[1] and re.match(r"slow +READY +(bubblewrap|own|weak) +1 +0 +0 +0", lines[2])
    (only,) = json.loads(d.ctl("programs", "--json", "slow").stdout)
    assert (only["program"], only["running"], only["runs"]) == ("slow", 1, 0)
    (run,) = json.loads(d.ctl("programs", "--runs", "--json").stdout)
    assert (run["run"], run["program"], run["state"], run["jobs_waiting"]) == (1, "slow", "RUNNING", 1)
    assert d.ctl("show", "1").stdout.count("slow") and "PROGRAM_WAITING" in d.ctl("show", "1").stdout
    assert re.search(r"(?m)^ *1 +slow +RUNNING", d.ctl("programs", "--runs", "slow").stdout)
    assert not json.loads(d.ctl("programs", "--runs", "--json", "other").stdout)
    missing = d.ctl("programs", "fast", check=False)
    assert missing.returncode == NOT_FOUND and 'there is no program "fast"' in missing.stderr

    assert "Programs    1 running, 0 waiting: noctule programs --runs\n" in d.ctl("status").stdout
    (row,) = rows_below(page(d, ""), "Runs of programs")
    assert (row["RUN"], row["PROGRAM"], row["STATE"], row["JOBS WAITING"]) == ("1", "slow", "Running", "1")
    assert ">other<" in page(d, "settings") and ">slow<" in page(d, "settings")
    assert "one on the only stack, priority 0, after the programs: slow" in " ".join(d.ctl("explain", files[0].parent).stdout.split())

    d.ctl("cancel", "1")
    wait_for(lambda: d.query("SELECT 1 FROM v_program_runs WHERE state = 'CANCELLED'"), 60, "the end of the run")
    assert "Programs    " not in d.ctl("status").stdout
    assert d.stop() == 0
