"""The Debian package of this build: its content, installation, upgrade over a site's data and configuration, removal
and purge. The machine is this one below an overlay file system, so that no file of it changes."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import stat
import subprocess

import first_version
import pytest
import test_first_study
from conftest import BIN, SOURCE, phantom, wait_for

BUILD = BIN.parent
ROOT, CONF, SITE = "var/lib/noctule", "etc/noctule/noctule.conf", "etc/noctule/site.conf"

# Replaces systemctl and records its arguments. The service is active if the file contains that word.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/run/systemctl.log
case "$*" in *is-active*) [ -e /run/noctule.active ];; esac
"""


def output_of(*command, **options):
    return subprocess.run([*map(str, command)], check=True, text=True, capture_output=True, **options).stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    output_of("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", folder)
    (made,) = folder.glob("noctule_*.deb")
    return made


@pytest.fixture(scope="module")
def unpacked(package, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked") / "tree"
    output_of("dpkg-deb", "--raw-extract", package, folder)
    return folder


@pytest.fixture(scope="module")
def before(unpacked, tmp_path_factory):
    """The package of the previous release: the same programs, another version and another configuration."""
    tree = tmp_path_factory.mktemp("before") / "tree"
    shutil.copytree(unpacked, tree, symlinks=True)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: ([0-9.]+).*$", r"Version: \1~before-1", control.read_text()))
    conf = tree / CONF
    conf.write_text("# Of the release before.\n" + conf.read_text())
    output_of("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, tree.parent)
    (made,) = tree.parent.glob("*.deb")
    return made


class Machine:
    """This machine below an overlay, which is removed at the end."""

    def __init__(self, folder):
        self.root = folder / "machine"

    def path(self, name):
        return self.root / name

    def do(self, *command, check=True, user=()):
        done = subprocess.run(["chroot", *user, self.root, *map(str, command)], text=True, capture_output=True,
                              cwd="/", env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LD_PRELOAD": ""})
        assert done.returncode == 0 or not check, (command, done.stdout, done.stderr)
        return done

    def dpkg(self, *arguments):
        return self.do("dpkg", "--no-triggers", "--force-unsafe-io", "--force-confold", *arguments)

    def systemctl_calls(self):
        """Returns the systemctl calls since the last call."""
        log = self.path("run/systemctl.log")
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def install(self, package):
        shutil.copy(package, self.path("tmp"))
        return self.dpkg("--install", f"/tmp/{package.name}")

    @contextlib.contextmanager
    def service(self):
        """Runs noctuled as the unit starts it."""
        with open(self.path("tmp/log"), "ab") as log:
            process = subprocess.Popen(
                ["chroot", "--userspec=noctule:noctule", self.root, "/usr/bin/noctuled", "--config", f"/{CONF}"],
                cwd="/", stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for(lambda: self.answers(process), 90, "the service's answer")
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0

    def answers(self, process):
        assert process.poll() is None, self.path("tmp/log").read_text()
        return self.do("noctule", "ping", check=False).returncode == 0

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.path(ROOT)}/noctule.db?mode=ro", uri=True)) as db:
            return db.execute(sql).fetchall()


@pytest.fixture
def machine(tmp_path):
    layers, made = tmp_path / "layers", Machine(tmp_path)
    for folder in (layers, made.root):
        folder.mkdir()
    mounts = [("-t", "tmpfs", "noctule-test", layers)]
    options = f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work"
    mounts.append(("-t", "overlay", "-o", options, "noctule-test", made.root))
    mounts += [("-t", "proc", "proc", made.path("proc")), ("--bind", "/dev", made.path("dev"))]
    mounted = []
    try:
        for mount in mounts:
            if subprocess.run(["mount", *mount], capture_output=True).returncode != 0:
                pytest.skip("mounting an overlay is not allowed here")
            mounted.append(mount[-1])
            if mount[-1] == layers:
                (layers / "upper").mkdir()
                (layers / "work").mkdir()
        assert not made.path(CONF).exists(), "noctule is installed on this machine"
        shutil.rmtree(made.path(ROOT), ignore_errors=True)  # of a service that ran without a package; in the overlay only
        stub = made.path("usr/local/bin/systemctl")
        stub.write_text(SYSTEMCTL)
        stub.chmod(0o755)
        made.path("run/systemd/system").mkdir(parents=True, exist_ok=True)
        yield made
    finally:
        for target in reversed(mounted):
            subprocess.run(["umount", "-l", target], check=True)


def test_content_of_the_package(unpacked):
    fields = dict(re.findall(r"(?m)^([A-Z][A-Za-z-]+): (.*)$", (unpacked / "DEBIAN" / "control").read_text()))
    assert fields["Package"] == "noctule"
    assert all(library in fields["Depends"] for library in ("libdcmtk", "libuv1", "libre2-"))
    assert "${" not in fields["Depends"]
    files = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    pages = {f"usr/share/doc/noctule/{page.name}" for page in (SOURCE / "docs").glob("*.md")}
    assert pages | {"usr/bin/noctule", "usr/bin/noctuled", "usr/bin/noctule-phantom", "usr/share/doc/noctule/README.md", "usr/lib/systemd/system/noctule.service", CONF,
                    "usr/lib/sysusers.d/noctule.conf", "usr/lib/tmpfiles.d/noctule.conf",
                    "usr/share/noctule/presets/head-ct.conf", "usr/share/doc/noctule/copyright",
                    "usr/share/doc/noctule/changelog.gz", "usr/share/doc/noctule/changelog.Debian.gz",
                    "usr/share/man/man1/noctule.1.gz", "usr/share/man/man8/noctuled.8.gz"} <= files
    assert {f"/{name}" for name in files if name.startswith("etc/")} == set(
        (unpacked / "DEBIAN" / "conffiles").read_text().splitlines())
    assert not {name for name in files if not name.startswith(("usr/", "etc/", "DEBIAN/"))}
    unit = (unpacked / "usr/lib/systemd/system/noctule.service").read_text()
    assert "\nExecStart=/usr/bin/noctuled " in unit
    runs = re.findall(r"(?m)^Exec\w+=[-+!@:]*/(\S+)", unit)
    assert len(runs) == 2 and set(runs) <= files, "the unit runs nothing that another package brings"


def test_a_first_study_with_the_programs_of_the_package(unpacked, tmp_path):
    """Each command of first-study.md works with the programs of the package alone. No program of the build is in the
    path."""
    commands = set(re.findall(r"(?m)(?:^|[;|&(`]|do |until )\s*(noctule[a-z-]*)", test_first_study.PAGE.read_text()))
    assert commands == {path.name for path in (unpacked / "usr/bin").iterdir()} == {"noctule", "noctuled", "noctule-phantom"}
    inside = test_first_study.patients(tmp_path)
    test_first_study.study(tmp_path, unpacked / "usr/bin")
    assert len((tmp_path / "cohort.csv").read_text().splitlines()) == 1 + len(inside)


def test_a_program_of_the_site_with_the_programs_of_the_package(unpacked, tmp_path):
    test_first_study.study(tmp_path, unpacked / "usr/bin", SOURCE / "docs" / "own-model.md")
    assert [path for path in (tmp_path / "delivered").rglob("*") if path.is_file()]


def test_links_of_documents_lead_to_package_files(unpacked):
    """Links lead to installed documents. A document that names tests must state their place."""
    folder = unpacked / "usr/share/doc/noctule"
    for page in folder.glob("*.md"):
        text = page.read_text()
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert link.startswith("http") or (folder / link).exists(), (page.name, link)
        assert "tests/" not in text or "in the source" in text, page.name
    installed, here = (folder / "features.md").read_text(), (SOURCE / "docs" / "features.md").read_text()
    assert len(installed) > 0.99 * len(here)


def test_a_test_build_is_marked(package):
    for_tests = "NOCTULE_TESTS:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text()
    assert ("+test" in package.name) == for_tests


def test_debug_symbols_are_in_a_separate_package(package, unpacked):
    (symbols,) = package.parent.glob("noctule-dbgsym_*.ddeb")
    notes = output_of("readelf", "--notes", unpacked / "usr/bin/noctuled")
    build = re.search(r"Build ID: (\w+)", notes)[1]
    assert f"/.build-id/{build[:2]}/{build[2:]}.debug" in output_of("dpkg-deb", "--contents", symbols)


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not here")
def test_lintian_reports_no_error(package):
    assert output_of("lintian", "--allow-root", "--fail-on", "none", "-L", ">=warning", package) == ""


def test_another_prefix(tmp_path):
    output_of("cmake", "--install", BUILD, "--prefix", "/opt/noctule", env={**os.environ, "DESTDIR": str(tmp_path)})
    unit = (tmp_path / "opt/noctule/lib/systemd/system/noctule.service").read_text()
    (program,) = re.findall(r"(?m)^ExecStart=(\S+)", unit)
    assert os.access(tmp_path / program[1:], os.X_OK)


@pytest.mark.skipif(os.geteuid() != 0, reason="dpkg is root's")
def test_into_the_tree_of_another_machine(package, tmp_path):
    """dpkg --root, as image builders use it, must not change this machine."""
    tree = tmp_path / "tree"
    for folder in ("updates", "info"):
        (tree / "var/lib/dpkg" / folder).mkdir(parents=True)
    for file in ("status", "available"):
        (tree / "var/lib/dpkg" / file).touch()
    dpkg = ["dpkg", f"--root={tree}", "--force-script-chrootless", "--force-depends", "--force-unsafe-io"]
    output_of(*dpkg, "--install", package)
    assert "noctule:" in (tree / "etc/passwd").read_text()
    assert stat.S_IMODE((tree / ROOT / "inbox").stat().st_mode) == 0o2770
    output_of(*dpkg, "--purge", "noctule")
    assert not (tree / ROOT).exists() and not (tree / "etc/noctule").exists()


def test_installed(machine, package, tmp_path):
    machine.install(package)  # dpkg checks for the dependencies on this machine
    # the service must not start without a command
    assert machine.systemctl_calls() == ["daemon-reload", "--quiet is-active noctule.service"]
    assert machine.do("noctule", "--version").stdout.startswith("noctule ")
    machine.do("noctule", "check-config")
    assert "head-ct" in machine.do("noctule", "presets").stdout
    with machine.service():
        assert machine.do("noctule", "status").stdout
        owner = machine.do("stat", "-c", "%U:%G %a", f"/{ROOT}", f"/{ROOT}/inbox", f"/{ROOT}/noctule.db").stdout
        assert owner.split("\n")[:2] == ["noctule:noctule 750", "noctule:noctule 2770"]
        assert owner.split("\n")[2].startswith("noctule:noctule ")


def site(machine, files):
    """A site with the previous release: its configuration and its data."""
    conf = machine.path(CONF)
    conf.write_text(re.sub(r"(quiet|complete|patience)_seconds = [0-9.]+", r"\1_seconds = 0.3", conf.read_text())
                    .replace("rules = ( );", 'rules = ( { match = { modality = "CT"; }; pipeline = "head-ct"; } );'))
    machine.path(SITE).write_text("# the site's\n")
    first_version.write(machine.path(ROOT), files)
    machine.do("chown", "-R", "noctule:noctule", f"/{ROOT}")
    return conf.read_text()


def test_upgraded(machine, before, package, tmp_path):
    machine.install(before)
    files = phantom(tmp_path / "series", "--size", "64x64x8")
    configured = site(machine, files)
    machine.path("run/noctule.active").touch()
    machine.systemctl_calls()
    machine.install(package)
    assert machine.systemctl_calls() == ["daemon-reload", "--quiet is-active noctule.service", "restart noctule.service"]
    assert machine.path(CONF).read_text() == configured and machine.path(SITE).exists()
    with machine.service():
        wait_for(lambda: machine.query("SELECT 1 FROM v_jobs WHERE ended_at IS NOT NULL OR state = 'REVIEW'"), 90,
                 "the end of a job of the series that was there")
    ((version,),) = machine.query("PRAGMA user_version")
    assert version == len(list((SOURCE / "db" / "migrations").glob("*.sql")))
    assert len(list(machine.path(ROOT).glob("series/*/*.dcm"))) == len(files)


def test_a_refused_configuration_does_not_stop_the_service(machine, before, package):
    machine.install(before)
    machine.path(CONF).write_text('root = "/var/lib/noctule";\nno_such_option = 1;\n')
    machine.path("run/noctule.active").touch()
    machine.systemctl_calls()
    done = machine.install(package)
    assert machine.systemctl_calls() == ["daemon-reload", "--quiet is-active noctule.service"]
    assert "noctule check-config" in done.stderr and "no_such_option" in done.stderr


def test_removed_and_purged(machine, package, tmp_path):
    machine.install(package)
    site(machine, phantom(tmp_path / "series", "--size", "16x16x4"))
    data = sorted(path.relative_to(machine.root) for path in machine.path(ROOT).rglob("*"))
    machine.systemctl_calls()
    machine.dpkg("--remove", "noctule")
    assert machine.systemctl_calls() == ["--quiet disable --now noctule.service", "daemon-reload"]
    assert not machine.path("usr/bin/noctuled").exists() and machine.path(CONF).exists()
    done = machine.dpkg("--purge", "noctule")
    assert f"/{ROOT} and its files were not removed" in done.stderr
    assert not machine.path(CONF).exists() and machine.path(SITE).exists()
    left = sorted(path.relative_to(machine.root) for path in machine.path(ROOT).rglob("*"))
    assert left == [path for path in data if path != pathlib.Path(ROOT, "inbox")]
    assert machine.do("id", "noctule").stdout  # it owns the remaining files
