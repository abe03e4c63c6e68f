"""Output of `noctule check-config` for ports, peers, destinations and certificates."""

import re
import shutil
import socket

import pytest
from conftest import SOURCE, run_program

CONFIG = 5


def check(path, text):
    path.write_text(text)
    return run_program("noctule", "check-config", path, check=False)


def tls(certificates, **other):
    files = {"certificate": certificates.server, "key": certificates.server_key, "ca": certificates.ca, **other}
    return " ".join(f'{name} = "{file}";' for name, file in files.items())


def test_summary(tmp_path, certificates):
    result = check(tmp_path / "noctule.conf", f"""
        dicom = {{ port = 11112; tls_port = 2762; bind = "127.0.0.1"; tls = {{ {tls(certificates)} }};
                  peers = ( {{ ae_title = "CT1"; host = "10.0.0.5"; }},
                            {{ ae_title = "PACS"; certificate = "{certificates.fingerprint("client")}"; }} ); }};
        destinations = ( {{ name = "PACS"; ae_title = "ARCHIVE"; host = "pacs"; port = 104; tls = true; }},
                         {{ name = "shelf"; folder = "/srv/results"; }} );""")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    for line in ("listens: 127.0.0.1, port 11112", "listens: 127.0.0.1, port 2762, TLS", "title: NOCTULE -> rules",
                 "peer: CT1, 10.0.0.5", "peer: PACS, any address, identified by certificate",
                 "destination: PACS, ARCHIVE at pacs, port 104, TLS", "destination: shelf, folder /srv/results",
                 "rule: none; only AE titles with a pipeline create jobs"):
        assert line in lines, (line, lines)


def test_files_of_conf_d_that_are_not_read(tmp_path):
    """A configuration of 0.1.0 has no @overlay line."""
    site = tmp_path / "conf.d" / "site.conf"
    site.parent.mkdir()
    site.write_text('log_level = "debug";\n')
    result = check(tmp_path / "noctule.conf", 'log_level = "info";\n')
    assert result.returncode == 0 and f"warning: {site} is not read" in result.stderr
    for line in ('@overlay "conf.d/*.conf"\n', '@include "conf.d/site.conf"\n'):
        assert check(tmp_path / "noctule.conf", line).stderr == ""


def test_a_rule_matches_only_its_own_values(tmp_path):
    result = check(tmp_path / "noctule.conf", """
        pipelines = ( { name = "p"; segments = ( { label = "A"; range = [ 0.0, 1.0 ];
          shapes = ( { center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 1.0; } );
          type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } ); } );
        rules = ( { match = { modality = "CT"; orientation = "axial"; min_slices = 5;
                    attributes = ( { tag = "Manufacturer"; present = true; } ); }; pipeline = "p"; },
                  { match = { modality = "MR"; max_slices = 9; }; pipeline = "p"; } );""")
    assert result.returncode == 0, result.stderr
    assert "rule: CT, any body part, any description, 3 more conditions -> p" in result.stdout
    assert "rule: MR, any body part, any description, 1 more condition -> p" in result.stdout


@pytest.mark.parametrize("option, source", [
    ("certificate", None), ("certificate", "server_key"), ("key", None), ("key", "client_key"), ("key", "ca"),
    ("ca", None), ("ca", "server_key"),
])
def test_unusable_files_are_reported(tmp_path, certificates, option, source):
    """A missing file, a file of another kind, and a key that does not belong to the certificate are reported."""
    wrong = tmp_path / "wrong.pem"
    if source:
        shutil.copy(getattr(certificates, source), wrong)
    text = f"dicom = {{ tls_port = 2762; tls = {{ {tls(certificates, **{option: wrong})} }}; }};"
    for print_text in ((), ("--print",)):
        (tmp_path / "noctule.conf").write_text(text)
        result = run_program("noctule", "check-config", *print_text, tmp_path / "noctule.conf", check=False)
        assert result.returncode == CONFIG
        assert str(wrong) in result.stderr and not result.stdout


def test_authorities_for_outgoing_connections(tmp_path, certificates):
    text = ('dicom = {{ tls = {{ ca = "{}"; }}; }}; '
            'destinations = ( {{ name = "a"; ae_title = "A"; host = "h"; port = 104; tls = true; }} );')
    path = tmp_path / "noctule.conf"
    assert check(path, text.format(certificates.ca)).returncode == 0
    assert check(path, text.format(tmp_path / "nowhere.pem")).returncode == CONFIG


TEXTURE = """pipelines = ( {{ name = "a";
  segments = ( {{ label = "A"; range = [ 0.0, 80.0 ];
    shapes = ( {{ center = {{ voxel = [ 1, 2, 3 ]; }}; radius_mm = 4.0; }} );
    type = {{ code = "T"; scheme = "99X"; meaning = "t"; }}; }} );
  texture = {{ {levels}
    glcm = {{ {glcm} }}; }};
  results = [ {results} ]; }} );
"""


def test_texture_is_printed_with_its_defaults(tmp_path):
    path = tmp_path / "noctule.conf"
    path.write_text(TEXTURE.format(levels='discretisation = "fixed-bin-number";',
                                   glcm='aggregation = "2.5d-merged";', results='"seg", "sr"'))
    printed = run_program("noctule", "check-config", "--print", path).stdout
    for setting in ('regions = [ "segments" ];', "first_order = true;", 'discretisation = "fixed-bin-number";',
                    "levels = 32;", 'aggregation = "2.5d-merged";', "symmetric = true;", "distances = [ 1 ];",
                    "angles = [ 0, 45, 90, 135 ];", 'results = [ "seg", "sr" ];'):
        assert setting in printed, printed
    (tmp_path / "again.conf").write_text(printed)
    assert run_program("noctule", "check-config", "--print", tmp_path / "again.conf").stdout == printed


@pytest.mark.parametrize("glcm, results, line, words", [
    ("levels = 32; bin_width = 25.0;", '"seg", "sr"', 6, "bin_width: is only allowed with discretisation = "),
    ("angles = [ 0 ];", '"seg", "sr"', 6, "angles: is only allowed with aggregation = "),
    ("", '"sr"', 7, '"sr" refers to the segments in "seg": add "seg"'),
    ("", '"seg", "pmap"', 7, '"pmap" requires patterns: name them in texture.patterns'),
])
def test_contradictory_texture_is_refused(tmp_path, glcm, results, line, words):
    path = tmp_path / "noctule.conf"
    result = check(path, TEXTURE.format(levels="", glcm=glcm, results=results))
    assert result.returncode == CONFIG
    assert f"{path}:{line}: pipelines[0]." in result.stderr and words in result.stderr


def test_the_commented_texture_of_the_shipped_file_is_valid(tmp_path):
    """The commented texture options of the shipped file are complete and consistent without their "# "."""
    lines = (SOURCE / "config" / "noctule.conf").read_text().splitlines()
    first = lines.index("    # texture = {")
    last = lines.index("    # };", first)
    for i in range(first, last + 1):
        assert lines[i].startswith("    # ")
        lines[i] = lines[i][6:]
    path = tmp_path / "noctule.conf"
    path.write_text("\n".join(lines).replace('results = [ "seg" ]', 'results = [ "seg", "sr", "pmap" ]', 1))
    printed = run_program("noctule", "check-config", "--print", path).stdout
    for setting in ("texture = ", "first_order = true;", "levels = 32;", "range = [ -1000.0, 400.0 ];",
                    'aggregation = "3d-merged";', "symmetric = true;", "distances = [ 1 ];",
                    'patterns = [ "lbp", "tlbap", "lanadp" ];', "tlbap_threshold = 0.9;", "tlbap_strict = false;",
                    'lanadp_average = "exact";', 'results = [ "seg", "sr", "pmap" ];'):
        assert setting in printed, setting


MANY = """
series = { quite_seconds = 1; };
pipelines = ( { name = "bone"; segments = ( { label = "A"; range = [ 2, 1 ]; from = "B"; hidden = true; } ); } );
rules = ( { pipeline = "bone"; }, { pipeline = "lung"; } );
"""
TOLD = ["2: series.quite_seconds: unknown option; did you mean quiet_seconds?",
        "3: pipelines[0].segments: all of them are hidden",
        "3: pipelines[0].segments[0].range: the lower end 2 is above the upper end 1",
        "3: pipelines[0].segments[0].from: there is no segment \"B\"",
        '4: rules[1].pipeline: there is no pipeline named "lung"']


def test_all_errors_are_reported_at_once(tmp_path):
    path = tmp_path / "noctule.conf"
    result = check(path, MANY)
    assert result.returncode == CONFIG and not result.stdout
    lines = result.stderr.splitlines()
    assert len(lines) == len(TOLD), lines
    for words in TOLD:
        assert sum(line.startswith(f"noctule: {path}:{words}") for line in lines) == 1, (words, lines)
    assert [line.split(":")[2] for line in lines] == ["2", "3", "3", "3", "4"]
    daemon = run_program("noctuled", "--config", path, check=False)
    assert daemon.returncode == CONFIG
    assert daemon.stderr.count("event=config.refused") == len(TOLD), daemon.stderr


def test_of_many_errors_the_others_are_counted(tmp_path):
    path = tmp_path / "noctule.conf"
    result = check(path, "".join(f"nothing{i} = 1;\n" for i in range(120)))
    assert result.returncode == CONFIG
    lines = result.stderr.splitlines()
    assert len(lines) == 101 and lines[-1] == "noctule: and 20 more"
    daemon = run_program("noctuled", "--config", path, check=False)
    assert daemon.stderr.count("event=config.refused") == 101 and "more=20" in daemon.stderr


def test_doubtful_settings_are_warnings(tmp_path):
    segment = 'segments = ( { label = "A"; method = "range"; range = [ 0, 1 ]; type = { code = "1"; scheme = "99X"; meaning = "x"; }; } );'
    result = check(tmp_path / "noctule.conf", f"""pipelines = ( {{ name = "used"; {segment} }},
        {{ name = "unused"; {segment} }}, {{ name = "handy"; {segment} by_hand = true; }} );
        rules = ( {{ pipeline = "used"; }},
                  {{ pipeline = "used"; match = {{ modality = "CT"; }}; }} );""")
    assert result.returncode == 0 and ": OK\n" in result.stdout
    first, second = result.stderr.splitlines()
    assert first.startswith(f'noctule: warning: {tmp_path}/noctule.conf:2: pipelines[1]: "unused" is used by no rule and no title')
    assert second.startswith(f"noctule: warning: {tmp_path}/noctule.conf:4: rules[1]: has no effect: ")
    assert f"the rule at {tmp_path}/noctule.conf:3" in second


@pytest.mark.parametrize("text, told", [
    ("dicom = { port = 11112; };", "1: dicom.port: is open, but dicom.peers is empty: no AE may connect"),
    ("dicom = {\ntls_port = 2762; tls = { TLS }; };", "2: dicom.tls_port: is open, but dicom.peers is empty"),
    ('PIPELINE\nrules = ( { match = { modality = "CAT"; }; pipeline = "p"; } );', "2: rules[0]: matches no series with Modality"),
    ('PIPELINE\nrules = ( { match = { study = ( { modality = "USG"; } ); }; pipeline = "p"; } );', '2: rules[0]: matches no series with Modality "USG"'),
    ('destinations = ( { name = "P"; ae_title = "P"; host = "pacs..local"; port = 104; } );',
     '1: destinations[0]: "pacs..local" is not a valid host name'),
    ('destinations = ( { name = "P"; ae_title = "P"; host = "-pacs.local"; port = 104; } );',
     '1: destinations[0]: "-pacs.local" is not a valid host name'),
    ('dicom = { port = 11112; peers = ( { ae_title = "A"; } ); }; pull = { sources = ( { name = "P"; ae_title = "P"; host = "a b"; port = 104; } ); };',
     '1: pull.sources[0]: "a b" is not a valid host name'),
    ('dicom = { port = 11112; peers = ( { ae_title = "A"; } ); };\ndestinations = ( { name = "P"; ae_title = "NOCTULE"; '
     'host = "localhost"; port = 11112; } );', '2: destinations[0]: "P" is this service'),
    ('dicom = { port = 11112; peers = ( { ae_title = "A"; } ); };\ndestinations = ( { name = "P"; ae_title = "NOCTULE"; '
     'host = "HOSTNAME"; port = 11112; } );', '2: destinations[0]: "P" is this service'),
], ids=str)
def test_settings_without_effect_are_reported(tmp_path, certificates, text, told):
    pipeline = ('pipelines = ( { name = "p"; segments = ( { label = "A"; method = "range"; range = [ 0, 1 ]; '
                'type = { code = "1"; scheme = "99X"; meaning = "x"; }; } ); } );')
    path = tmp_path / "noctule.conf"
    result = check(path, text.replace("PIPELINE", pipeline).replace("TLS }", tls(certificates) + " }")
                   .replace("HOSTNAME", socket.gethostname()))
    assert result.returncode == 0, result
    assert [line.startswith(f"noctule: warning: {path}:{told}") for line in result.stderr.splitlines()] == [True], result.stderr


@pytest.mark.parametrize("host", ["pacs", "pacs.example.org", "pacs.example.org.", "pacs_1", "10.0.0.9", "fe80::1", "1and1.de"])
def test_valid_host_names_are_accepted(tmp_path, host):
    result = check(tmp_path / "noctule.conf", f'destinations = ( {{ name = "P"; ae_title = "P"; host = "{host}"; port = 104; }} );')
    assert (result.returncode, result.stderr) == (0, "")


def test_the_commented_rules_of_the_shipped_file_are_valid(tmp_path):
    """The commented rules of the shipped file are complete and consistent without their marks."""
    text = (SOURCE / "config" / "noctule.conf").read_text()
    begin = text.index("# rules = (\n")
    end = text.index("\n\n", begin)
    lines = [line[2:] for line in text[begin:end].splitlines()]
    text = text[:begin].replace("rules = ( );", "").replace('# name = "ct";', 'name = "ct";') + "\n".join(lines)
    path = tmp_path / "noctule.conf"
    path.write_text(text)
    (tmp_path / "presets").symlink_to(SOURCE / "config" / "presets")
    told = run_program("noctule", "check-config", path).stdout
    assert "rule: head: CT, HEAD, brain, " in told and "rule: rest: CT, any body part, any description, if no other rule matches" in told


@pytest.mark.parametrize("settings, told", [
    ("", "files are kept forever in addition to the stored copy"),
    ('inbox = ( { path = "inbox"; after = "delete"; } );', "files are deleted once they are stored"),
    ('inbox = ( { path = "inbox"; after = "move"; move_to = "/srv/done"; } );', "files are moved to /srv/done"),
    ('retention = { inbox = "delete"; };', "files are kept until their series is removed"),
])
def test_the_fate_of_inbox_files_is_reported(tmp_path, settings, told):
    result = check(tmp_path / "noctule.conf", settings)
    assert result.returncode == 0 and f"/inbox, {told}" in result.stdout


def test_the_shipped_file_has_no_warnings():
    result = run_program("noctule", "check-config", SOURCE / "config" / "noctule.conf")
    assert result.stderr == "" and ": OK\n" in result.stdout
    assert "inbox: /var/lib/noctule/inbox, files are deleted once they are stored\n" in result.stdout


def test_web_ui_address_and_hidden_segments_are_reported(tmp_path):
    """The report has the URL of the web UI, and marks segments that are not written to SEG."""
    path = tmp_path / "noctule.conf"
    text = ('page = { port = 8043; }; rules = ( { pipeline = "lungs"; } );\n'
            f'pipelines = ( {{ name = "lungs";\n@include "{SOURCE}/config/presets/lung.conf"\n}} );\n')
    done = check(path, text)
    assert done.returncode == 0, done.stderr
    assert "web UI: 127.0.0.1, port 8043\n" in done.stdout
    assert re.search(r"(?m)^pipeline: lungs \(3 segments, \d+ hidden\)", done.stdout), done.stdout
    (tmp_path / "token").write_text("0123456789abcdef\n")
    done = check(path, text.replace("8043;", f'8043; bind = "::"; token_file = "{tmp_path}/token";'))
    assert "web UI: ::, port 8043, with a token\n" in done.stdout, done.stderr
    assert "page:" not in check(path, text.replace("port = 8043;", "")).stdout


PROGRAM = """programs = ( {{ name = "net"; command = [ "/opt/net", "{{in}}", "{{out}}" ]; {more}
                algorithm = {{ name = "Net"; version = "1.0.2"; }}; }} );"""


@pytest.mark.parametrize("more, line", [
    ("", "program: net, Net 1.0.2, sandbox (bubblewrap|own|weak), no network, CPU, at most 3600 s"),
    ('network = "host"; gpu = "whole"; deadline_seconds = 60;',
     "program: net, Net 1.0.2, sandbox (bubblewrap|own|weak), network of the host, GPU, at most 60 s"),
])
def test_a_program(tmp_path, more, line):
    result = check(tmp_path / "noctule.conf", PROGRAM.format(more=more))
    assert result.returncode == 0 and not result.stderr, result.stderr
    assert re.search(f"(?m)^{line}$", result.stdout), result.stdout


@pytest.mark.parametrize("more, impossible", [("", True), ('network = "host";', True), ('sandbox = "container";', False)])
def test_a_program_without_a_sandbox(tmp_path, monkeypatch, more, impossible):
    monkeypatch.setenv("NOCTULE_SANDBOX", "none")
    text = PROGRAM.format(more=more)
    if not impossible:
        text = text.replace('"/opt/net"', f'"/usr/bin/podman", "--network=none", "net@sha256:{64 * "0"}"')
    result = check(tmp_path / "noctule.conf", text)
    assert result.returncode == (CONFIG if impossible else 0), result.stderr
    assert ("program net: a sandbox is impossible here: install bubblewrap" in result.stderr) == impossible


def test_doubtful_programs(tmp_path):
    text = PROGRAM.format(more='input = "dicom";') + """
        pipelines = ( { name = "p"; by_hand = true; segments = ( { label = "A"; method = "program"; program = "net"; value = 1;
          type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } ); } );"""
    result = check(tmp_path / "noctule.conf", text)
    assert result.returncode == 0, result.stderr
    assert "programs[0].input: the program gets the patient's name and identifiers" in result.stderr
    assert "pipelines[0].segments: 1 segment of a program without expect: results are held for REVIEW" in result.stderr
