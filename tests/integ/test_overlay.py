"""Configuration overlays (@overlay, conf.d): precedence of settings, and places of errors."""

import os
import signal

import pytest
from conftest import SETTINGS, SOURCE, drop, phantom, run_program

SEGMENT = 'segments = ( { label = "A"; method = "range"; range = [ 0, %s ]; type = { code = "1"; scheme = "99X"; meaning = "x"; }; } );'
MAIN = f"""root = "/tmp"; log_level = "warn"; series = {{ quiet_seconds = 7.0; complete_seconds = 3.0; }};
inbox = ( {{ path = "/in/a"; }}, {{ path = "/in/b"; }} );
pipelines = ( {{ name = "one"; {SEGMENT % 1} }},
              {{ name = "two"; {SEGMENT % 2} }} );
rules = ( {{ name = "ct"; match = {{ modality = "CT"; }}; pipeline = "one"; priority = 3; }},
          {{ match = {{ modality = "MR"; }}; pipeline = "two"; }} );
@overlay "conf.d/*.conf"   # and a comment
min_free_mib = 5.0;
"""


@pytest.fixture
def site(tmp_path):
    """Writes files. Returns the output of check-config, or the resulting configuration."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def check(*arguments, status=0):
        done = run_program("noctule", "check-config", *arguments, tmp_path / "noctule.conf", check=False)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    write("noctule.conf", MAIN)
    check.write, check.folder = write, tmp_path
    return check


def test_the_shipped_one_reads_conf_d(site):
    for name in ("noctule.conf", "presets"):
        (site.folder / name).unlink(missing_ok=True)
    site.write("noctule.conf", (SOURCE / "config" / "noctule.conf").read_text())
    site.write("conf.d/site.conf", 'dicom = { port = 11112; }; rules = ( { name = "head"; pipeline = "head-ct"; match = { modality = "CT"; }; } );')
    told = site().splitlines()
    assert "listens: every address, port 11112" in told
    assert f"rule: head: CT, any body part, any description -> head-ct, from {site.folder}/conf.d/site.conf:1" in told


def test_a_file_without_overlays_is_unchanged(site):
    plain = site()
    assert "log_level" not in plain and site("--print").count('name = "one"') == 1
    site.write("conf.d/README", "no configuration")
    site.write("conf.d/.hidden.conf", "neither = 1;")
    assert site() == plain


def test_precedence_of_overlays(site):
    site.write("conf.d/10-site.conf", f"""log_level = "debug"; series = {{ quiet_seconds = 9.0; }};
inbox = ( {{ path = "/in/c"; }} );
pipelines = (
  {{ name = "three"; {SEGMENT % 3} }},
  {{ name = "one"; min_slices = 5; {SEGMENT % 11} }} );
rules = ( {{ name = "ct"; match = {{ modality = "PT"; }}; pipeline = "three"; }}, {{ pipeline = "one"; match = {{ modality = "US"; }}; }} );
destinations = ( {{ name = "shelf"; folder = "/out"; }} );
""")
    site.write("conf.d/20-more.conf", """log_level = "info"; # later
destinations = ( { name = "shelf"; folder = "/elsewhere"; } );
""")
    folder = site.folder
    assert site().splitlines()[1:] == [
        "root: /tmp", "inbox: /in/c, files are kept forever in addition to the stored copy (see the options after and retention.inbox)", "title: NOCTULE -> rules",
        f"destination: shelf, folder /elsewhere, from {folder}/conf.d/20-more.conf:2",
        f"pipeline: one (1 segment), from {folder}/conf.d/10-site.conf:5", "pipeline: two (1 segment)",
        f"pipeline: three (1 segment), from {folder}/conf.d/10-site.conf:4",
        f"rule: ct: PT, any body part, any description -> three, from {folder}/conf.d/10-site.conf:6",
        "rule: MR, any body part, any description -> two",
        f"rule: US, any body part, any description -> one, from {folder}/conf.d/10-site.conf:6"]
    text = site("--print")
    assert 'log_level = "info"' in text and "quiet_seconds = 9" in text and "complete_seconds = 3" in text
    assert "priority = 3" not in text  # an element is replaced as a whole
    assert "11" in text and "min_slices = 5" in text and text.count('name = "one"') == 1


RULE = "rule: ct: "  # of MAIN


@pytest.mark.parametrize("text, left", [
    ('rules = ( { name = "ct"; off = true; } );', 1),
    ("rules = ( );", 0),
])
def test_a_rule_is_disabled_by_its_name(site, text, left):
    before = sum(line.startswith("rule: ") for line in site().splitlines())
    assert before == 2 and RULE in site()
    site.write("conf.d/a.conf", text)
    rules = [line for line in site().splitlines() if line.startswith("rule: ") and "none" not in line]
    assert len(rules) == left and not any(line.startswith(RULE) for line in rules)


def test_pipelines_and_destinations_are_emptied_likewise(site):
    site.write("conf.d/a.conf", "rules = ( ); pipelines = ( ); destinations = ( );")
    assert "pipeline: " not in site() and "destination: " not in site()


@pytest.mark.parametrize("text, told", [
    ('\nrules = ( { name = "cd"; off = true; } );', 'conf.d/a.conf:2: there is no earlier rule "cd" to switch off'),
    ('destinations = ( { name = "A"; ae_title = "A\n; host = "a"; port = 1; } );', "conf.d/a.conf:1: the string has no closing quote"),
    ('log_level = "info;\n# later\nidentifiers = "none";\n', "conf.d/a.conf:1: the string has no closing quote"),
    ("\n\nlog_levle = 1;", "conf.d/a.conf:3: log_levle: unknown option"),
    ("series = {\n  quiet_seconds = 1e9; };", "conf.d/a.conf:2: series.quiet_seconds: "),
    ("series = {\n  quiet_seconds = ; };", "conf.d/a.conf:2: syntax error"),
    ('pipelines = ( { name = "two"; },\n { name = "two"; } );', 'conf.d/a.conf:2: pipelines[2].name: "two" is the name of an earlier'),
    ('rules = ( { name = "x"; pipeline = "one"; },\n { name = "x"; pipeline = "one"; } );', 'conf.d/a.conf:2: rules[3].name: "x" is the name'),
    ('rules = ( { name = "ct"; pipeline = "four"; } );', 'conf.d/a.conf:1: rules[0].pipeline: there is no pipeline named "four"'),
    ('@overlay "b.conf"', "conf.d/a.conf:1: @overlay must not be in a file that @overlay reads"),
    ('@include "nowhere.conf"', "conf.d/a.conf:1: cannot include "),
    ('text = "open', "conf.d/a.conf:1: the string has no closing quote"),
])
def test_errors_are_reported_with_their_place(site, text, told):
    site.write("conf.d/a.conf", text)
    assert f"noctule: {site.folder}/{told}" in site(status=5)


def test_references_to_missing_items_are_errors(site):
    site.write("noctule.conf", '\n@overlay "site.conf"\n' + MAIN)
    assert f"noctule: {site.folder}/noctule.conf:2: cannot include {site.folder}/site.conf: No such file" in site(status=5)
    site.write("noctule.conf", 'series = {\n@overlay "site.conf"\n};\n')
    assert "noctule.conf:2: @overlay must not be in a group or a list" in site(status=5)


def test_the_daemon_reads_overlays_at_start_and_reload(daemon, tmp_path):
    d = daemon(quiet=0.5)
    d.config.write_text(SETTINGS.format(root=d.root, after="keep", quiet=0.5, attempts=3, pipeline_extra="")
                        + '@overlay "conf.d/*.conf"\n')
    (d.folder / "conf.d").mkdir()
    (d.folder / "conf.d" / "rules.conf").write_text('rules = ( { match = { modality = "MR"; }; pipeline = "head-ct"; } );\n')
    d.start()
    drop(phantom(tmp_path / "mr", "--kind", "mr-brain", "--size", "32x32x6"), d.inbox)
    (job,) = d.wait_jobs()
    assert job["modality"] == "MR" and job["priority"] == 0
    (d.folder / "conf.d" / "rules.conf").write_text('rules = ( { name = "x"; match = { modality = "NO"; }; pipeline = "lost"; } );\n')
    os.kill(d.process.pid, signal.SIGHUP)
    d.wait_log("event=config.refused")
    assert f"{d.folder}/conf.d/rules.conf:1: rules[1].pipeline" in d.log.read_text()
