"""`noctule check-config`: what it says of ports, peers, destinations and certificates."""

import shutil

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
                 "peer: CT1, 10.0.0.5", "peer: PACS, any address, with its certificate",
                 "destination: PACS, ARCHIVE at pacs, port 104, TLS", "destination: shelf, folder /srv/results",
                 "rule: none; series make jobs only through a title that names a pipeline"):
        assert line in lines, (line, lines)


@pytest.mark.parametrize("option, source", [
    ("certificate", None), ("certificate", "server_key"), ("key", None), ("key", "client_key"), ("key", "ca"),
    ("ca", None), ("ca", "server_key"),
])
def test_files_that_cannot_be_used(tmp_path, certificates, option, source):
    """A file that is missing, of another kind, or a key that does not belong to the certificate."""
    wrong = tmp_path / "wrong.pem"
    if source:
        shutil.copy(getattr(certificates, source), wrong)
    text = f"dicom = {{ tls_port = 2762; tls = {{ {tls(certificates, **{option: wrong})} }}; }};"
    for print_text in ((), ("--print",)):
        (tmp_path / "noctule.conf").write_text(text)
        result = run_program("noctule", "check-config", *print_text, tmp_path / "noctule.conf", check=False)
        assert result.returncode == CONFIG
        assert str(wrong) in result.stderr and not result.stdout


def test_authorities_for_calls_that_go_out(tmp_path, certificates):
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
    ("levels = 32; bin_width = 25.0;", '"seg", "sr"', 6, "bin_width: is used only with discretisation = "),
    ("angles = [ 0 ];", '"seg", "sr"', 6, "angles: is used only with aggregation = "),
    ("", '"sr"', 7, '"sr" refers to the segments in "seg": add "seg"'),
    ("", '"seg", "pmap"', 7, '"pmap" needs patterns: name them in texture.patterns'),
])
def test_texture_that_contradicts_itself(tmp_path, glcm, results, line, words):
    path = tmp_path / "noctule.conf"
    result = check(path, TEXTURE.format(levels="", glcm=glcm, results=results))
    assert result.returncode == CONFIG
    assert f"{path}:{line}: pipelines[0]." in result.stderr and words in result.stderr


def test_the_commented_texture_of_the_shipped_file_is_one(tmp_path):
    """What stands there behind "# " may be taken over as it is: every option, and no contradiction among them."""
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
