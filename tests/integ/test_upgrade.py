"""An upgrade of a site from version 0.1.0 to this build. The programs of 0.1.0 are built from the history of the
repository, and write the database that the upgrade must keep."""

import contextlib
import hashlib
import os
import re
import shutil
import sqlite3
import subprocess

import pydicom
import pytest
from conftest import BIN, SOURCE, StoreScp, free_port, phantom, put, wait_for
from test_package import CONF, ROOT, machine, output_of, package  # noqa: F401

FIRST_RELEASE = "8d1c46a7019f"
SHELF = "srv/shelf"
WAITING = "SELECT count(*) FROM v_deliveries WHERE destination = '{}' AND state <> 'SENT'"

# Changes of a site to the configuration of 0.1.0. Some options have other names or places in later versions. The
# archive does not answer before the upgrade. A series is complete when it has the number of images in its headers.
SERIES = "series = { quiet_seconds = 600.0; complete_seconds = 0.3; patience_seconds = 600.0; };"
DESTINATIONS = """destinations = (
  { name = "shelf"; folder = "/srv/shelf"; },
  { name = "archive"; ae_title = "ARCHIVE"; host = "127.0.0.1"; port = PORT; } );
delivery = { retry_seconds = 0.5; retry_max_seconds = 1.0; breaker_seconds = 1.0; };"""
CODE = 'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };'
PIPELINES = """
  { name = "site";
    segments = (
      { label = "Core"; method = "level-set"; range = [ 0.0, 80.0 ];
        shapes = ( { center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 40.0; } ); CODE },
      { label = "Connected"; method = "fuzzy-connectedness"; scene = true;
        seeds = ( { fraction = [ 0.5, 0.5, 0.5 ]; } ); CODE } );
    texture = { regions = [ "segments", "volume" ];
      glcm = { discretisation = "paper"; levels = 32; aggregation = "2d-averaged"; angles = [ 0, 90 ]; };
      patterns = [ "lbp" ]; };
    results = [ "seg", "sr", "pmap" ];
    deliver = [ "shelf", "archive" ]; },
  { name = "elsewhere";
    segments = ( { label = "Outside"; method = "fuzzy-connectedness"; seeds = ( { mm = [ 9e3, 9e3, 9e3 ]; } ); CODE } ); },
"""
RULES = """
  { match = { modality = "CT"; }; pipeline = "site"; priority = 5; },
  { match = { modality = "PT"; }; pipeline = "elsewhere"; },
"""


def settings(conf, port):
    """Returns the configuration of 0.1.0 with the changes of the site."""
    changes = ((r"(?m)^series = \{[^}]*\};", SERIES),
               (r"(?m)^delivery = \{[^}]*\};", ""),
               (r"(?m)^destinations = \( \);", DESTINATIONS.replace("PORT", str(port))),
               (r"(?m)^pipelines = \(", "pipelines = (" + PIPELINES.replace("CODE", CODE)),
               (r"(?m)^rules = \(", "rules = (" + RULES))
    for pattern, text in changes:
        conf, count = re.subn(pattern, lambda _, text=text: text, conf)
        assert count == 1, pattern
    return conf


@pytest.fixture(scope="module")
def first_programs():
    """The source of 0.1.0 with its build, which later runs use again."""
    git = ["git", "-C", SOURCE]
    if not shutil.which("git") or subprocess.run([*git, "cat-file", "-e", f"{FIRST_RELEASE}^{{commit}}"],
                                                 capture_output=True).returncode != 0:
        pytest.skip(f"the commit of version 0.1.0 ({FIRST_RELEASE}) is not in this clone")
    source = BIN.parent.parent / "0.1.0"
    if not (source / "CMakeLists.txt").exists():
        source.mkdir()
        archive = subprocess.run([*git, "archive", FIRST_RELEASE], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    build = source / "build" / "release"
    flags = [f"-DCMAKE_{language}_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" for language in ("C", "CXX")]
    output_of("cmake", "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", *flags,
              "-DNOCTULE_CUDA=OFF", "-DCMAKE_INSTALL_PREFIX=/usr")
    output_of("cmake", "--build", build, "--target", "noctuled", "noctule")
    return build


@pytest.fixture(scope="module")
def first_package(first_programs, tmp_path_factory):
    """A package of the files that `cmake --install` of 0.1.0 installed. That version had no package."""
    tree = tmp_path_factory.mktemp("first") / "tree"
    output_of("cmake", "--install", first_programs, "--prefix", "/usr", env={**os.environ, "DESTDIR": str(tree)})
    control = tree / "DEBIAN"
    control.mkdir()
    architecture = output_of("dpkg", "--print-architecture").strip()
    (control / "control").write_text(f"Package: noctule\nVersion: 0.1.0-0\nArchitecture: {architecture}\n"
                                     "Maintainer: Noctule <noctule@noctule.invalid>\nDescription: version 0.1.0\n")
    (control / "conffiles").write_text(f"/{CONF}\n")
    (control / "postinst").write_text("#!/bin/sh\nset -e\nsystemd-sysusers noctule.conf\n"
                                      "systemd-tmpfiles --create noctule.conf\n")
    (control / "postinst").chmod(0o755)
    output_of("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, tree.parent)
    (made,) = tree.parent.glob("*.deb")
    return made


KEPT = ("series", "instance", "stack", "settings", "job", "result", "quarantine", "event", "delivery",
        "pattern_histogram")
MEASURED = "SELECT job, segment, name, coalesce(value, reason), label, place FROM v_features ORDER BY 1, 2, 3, 4, 5, 6"
RETRIED = {"state", "attempts", "due_at", "since_at", "started_at", "code", "message"}  # of a waiting delivery


def rows(machine):
    """Returns {(table, ID): {column: value}}, with columns by their present names."""
    found = {}
    with contextlib.closing(sqlite3.connect(f"file:{machine.path(ROOT)}/noctule.db?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        for table in KEPT:
            for row in database.execute(f"SELECT * FROM {table}"):
                found[table, row["id"]] = {"message" if name == "sentence" else name: row[name] for name in row.keys()}
    return found


def assert_kept(before, after):
    """Checks that each row is still there with its values. Only deliveries to the archive may have been retried."""
    for key, row in before.items():
        assert key in after, key
        free = RETRIED if row.get("destination") == "archive" else set()
        kept = row.keys() - free
        assert {name: after[key].get(name) for name in kept} == {name: row[name] for name in kept}


def results(machine):
    """Returns {path: SHA-256} of the results in the root and of those that were delivered to the shelf."""
    return {str(path.relative_to(machine.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            for folder in (ROOT + "/outbox", SHELF) for path in machine.path(folder).rglob("*") if path.is_file()}


def receive(machine, files):
    put(files, machine.path(ROOT) / "inbox" / series_of(files))


@contextlib.contextmanager
def answering(folder, port):
    """The archive, from now on, on the port of the configuration."""
    archive = StoreScp(folder, ("--aetitle", "ARCHIVE"))
    archive.port = port
    try:
        yield archive.start()
    finally:
        archive.stop()


def series_of(files):
    return pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID


def instances(machine, files):
    return machine.query(f"SELECT instances FROM v_series WHERE series_uid = '{series_of(files)}'")


def wait_job(machine, files, state="DONE"):
    sql = (f"SELECT job FROM v_jobs WHERE series_uid = '{series_of(files)}' AND state = '{state}' "
           "AND pipeline IN ('site', 'elsewhere')")
    try:
        return wait_for(lambda: machine.query(sql), 120, f"a job in {state}")[0][0]
    except pytest.fail.Exception:
        print(machine.path("tmp/log").read_text()[-8000:])
        raise


def first_site(machine, port):
    """Prepares a site for the service of 0.1.0."""
    conf = machine.path(CONF)
    conf.write_text(settings(conf.read_text(), port))
    machine.path(SHELF).mkdir(parents=True)
    machine.do("chown", "noctule:noctule", f"/{SHELF}")
    machine.do("noctule", "check-config")
    return conf.read_text()


def test_from_the_first_release(machine, first_package, package, tmp_path):  # noqa: F811
    machine.install(first_package)
    port = free_port()
    configured = first_site(machine, port)
    done, half, failed, new = (
        phantom(tmp_path / name, "--size", "64x64x12", "--seed", str(seed), *kind) for seed, (name, kind) in
        enumerate({"done": (), "half": (), "failed": ("--kind", "pet"), "new": ()}.items(), 1))
    with machine.service():
        receive(machine, done)
        receive(machine, half[:6])
        receive(machine, failed)
        job = wait_job(machine, done)
        wait_job(machine, failed, "FAILED")
        wait_for(lambda: instances(machine, half) == [(6,)], 60, "half a series")
        wait_for(lambda: machine.query(WAITING.format("shelf")) == [(0,)], 60, "deliveries to the shelf")
        assert machine.query(WAITING.format("archive")) == [(4,)]  # seg, seg-fractional, sr, pmap
        machine.path("run/noctule.active").touch()
        machine.systemctl_calls()
        machine.install(package)  # while the old service runs
        assert machine.systemctl_calls() == ["daemon-reload", "--quiet is-active noctule.service",
                                             "restart noctule.service"]
    assert machine.path(CONF).read_text() == configured
    before, measured, files = rows(machine), machine.query(MEASURED), results(machine)
    assert {table for table, _ in before} == set(KEPT) - {"quarantine"} and len(measured) > 100 and len(files) > 8
    assert machine.query("PRAGMA user_version") == [(4,)]

    # The kept configuration works, although options have other names now. It reads no file of conf.d.
    unread = machine.path("etc/noctule/conf.d/site.conf")
    unread.parent.mkdir(exist_ok=True)
    unread.write_text('log_level = "debug";\n')
    checked = machine.do("noctule", "check-config")
    assert "files are kept forever" in checked.stdout
    assert "/etc/noctule/conf.d" in checked.stderr and "@overlay" in checked.stderr
    machine.path(CONF).write_text(configured + '@overlay "conf.d/*.conf"\n')
    checked = machine.do("noctule", "check-config")
    assert checked.stderr == "" and "site" in checked.stdout
    printed = machine.do("noctule", "check-config", "--print").stdout
    assert all(name in printed for name in ('log_level = "debug"', "connectedness_map = true", '"stored-256"'))

    with machine.service():
        assert machine.query("PRAGMA user_version") == [(len(list((SOURCE / "db" / "migrations").glob("*.sql"))),)]
        assert_kept(before, rows(machine))
        assert machine.query(MEASURED) == measured
        assert f"outbox/{job}/seg.dcm" in machine.do("noctule", "show", job).stdout
        receive(machine, half[6:])
        wait_job(machine, half)
        assert instances(machine, half) == [(len(half),)]
        receive(machine, new)
        wait_job(machine, new)
        with answering(tmp_path / "archive", port) as archive:
            wait_for(lambda: machine.query(WAITING.format("archive")) == [(0,)], 60, "deliveries to the archive")
            assert len(archive.files()) == 12
        assert machine.query("SELECT count(*) FROM v_jobs WHERE state = 'FAILED'") == [(1,)]
    assert_kept({key: row for key, row in before.items() if key[0] in ("job", "result", "event")}, rows(machine))
    now = results(machine)
    assert {path: now.get(path) for path in files} == files


def test_a_key_that_only_the_first_release_accepted(machine, first_package, package, tmp_path):  # noqa: F811
    """The old service keeps running and works on, until the administrator corrects the configuration."""
    machine.install(first_package)
    configured = first_site(machine, free_port())
    keys = machine.path("etc/noctule")
    output_of("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
              "90", "-subj", "/CN=site", "-keyout", keys / "ec.key", "-out", keys / "ec.pem")
    output_of("openssl", "genrsa", "-out", keys / "rsa.key", "2048")
    for name in ("ec.key", "ec.pem", "rsa.key"):
        (keys / name).chmod(0o644)
    wrong, right = (configured.replace("  tls = {", f"""  tls = {{ certificate = "/etc/noctule/ec.pem";
    key = "/etc/noctule/{name}"; ca = "/etc/noctule/ec.pem";""") for name in ("rsa.key", "ec.key"))
    machine.path(CONF).write_text(wrong)
    machine.do("noctule", "check-config")  # by 0.1.0
    series = phantom(tmp_path / "series", "--size", "64x64x12")
    with machine.service():
        machine.path("run/noctule.active").touch()
        machine.systemctl_calls()
        done = machine.install(package)
        assert machine.systemctl_calls() == ["daemon-reload", "--quiet is-active noctule.service"]
        assert "noctule check-config" in done.stderr and "/etc/noctule/rsa.key" in done.stderr
        receive(machine, series)
        wait_job(machine, series)
        assert machine.query("PRAGMA user_version") == [(4,)]
    machine.path(CONF).write_text(right)
    machine.do("noctule", "check-config")
    with machine.service():
        assert machine.query("SELECT count(*) FROM v_jobs WHERE state = 'DONE' AND pipeline = 'site'") == [(1,)]


def test_files_of_the_first_release_that_precede_the_package(machine, first_programs, package):  # noqa: F811
    """README.md of 0.1.0 installed into /usr/local, which precedes the programs and the unit of the package."""
    output_of("cmake", "--install", first_programs, "--prefix", "/usr/local",
              env={**os.environ, "DESTDIR": str(machine.root)})
    shipped = machine.path(CONF).read_text()
    machine.path("run/noctule.active").touch()
    done = machine.install(package)
    assert machine.systemctl_calls() == ["daemon-reload"]
    assert "/usr/local/bin/noctuled /usr/local/lib/systemd/system/noctule.service" in done.stderr
    assert machine.path(CONF).read_text() == shipped
    for name in ("bin/noctule", "bin/noctuled", "lib/systemd/system/noctule.service"):
        machine.path(f"usr/local/{name}").unlink()
    machine.dpkg("--install", f"/tmp/{package.name}")
    assert machine.systemctl_calls()[-1] == "restart noctule.service"
    with machine.service():
        assert machine.do("noctule", "status").stdout
