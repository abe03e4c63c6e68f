"""Container files and image, as docs/operations.md builds and runs them. If a container engine works here, the image
is built from the package of this build. The base image is Debian's, from its registry or, without a registry, from
Debian's mirror."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import BIN, SOURCE, assert_valid, free_port, phantom, wait_for

FILES = [SOURCE / "container" / name for name in ("Containerfile", "Containerfile.cuda")]
PAGE = SOURCE / "docs" / "operations.md"
NUMBER = 11112  # number of the account and of the port
CONF = """
dicom = { port = 11112; peers = ( { ae_title = "DCMSEND"; } ); };
series = { quiet_seconds = 1.0; complete_seconds = 0.3; patience_seconds = 1.0; };
destinations = ( { name = "OUT"; folder = "/out"; } );
pipelines = (
  { name = "head-ct"; min_slices = 5; review = "deliver"; unreviewed = true; deliver = [ "OUT" ];
@include "presets/head-ct.conf"
  } );
rules = ( { name = "head"; match = { modality = "CT"; }; pipeline = "head-ct"; } );
"""


def instructions(path):
    """Returns [(instruction, its text)] with continued lines joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", path.read_text()))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def last_stage(path):
    rows = instructions(path)
    return rows[max(i for i, (word, _) in enumerate(rows) if word == "FROM"):]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rules(path):
    last = last_stage(path)
    assert [text for word, text in last if word == "USER"] == [f"{NUMBER}:{NUMBER}"]
    assert {"VOLUME", "HEALTHCHECK", "ENTRYPOINT"} <= {word for word, _ in last}
    for word, text in instructions(path):
        assert word not in ("ADD", "ENV", "ARG"), "what is fetched, or told, at some other time"
        assert word != "FROM" or re.search(r":[0-9]", text), "a base without a version"
        assert "apt-get install" not in text or {"--no-install-recommends", "/var/lib/apt/lists/*"} <= set(text.split())
    for text in (text for word, text in instructions(path) if word == "COPY" and "--from" not in text):
        assert (SOURCE / text.split()[0]).exists(), text


def test_the_files_differ_only_in_their_base_images():
    cpu, cuda = ([row for row in instructions(path) if row[0] != "FROM"] for path in FILES)
    assert cpu == cuda


# ------------------------------------------------------------------------------- an engine ----


def do(*command, check=True, **options):
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, **options)
    assert done.returncode == 0 or not check, (command, done.stdout, done.stderr)
    return done


class Engine:
    """podman or docker. `options` are the options of `run` that this machine requires."""

    def __init__(self, program, options=()):
        self.program, self.options = program, list(options)

    def __call__(self, *arguments, **options):
        return do(*self.program, *arguments, **options)

    def runs(self, image, *arguments, **options):
        return self("run", "--rm", *self.options, image, *arguments, **options)


# crun does not support hybrid control groups. podman raises limits, which requires a privilege.
ENGINES = (Engine(["podman"]), Engine(["docker"]),
           Engine(["podman", "--runtime", "runc"], ["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]))


def base_image(folder):
    """Returns the base image of the file from its registry, or an equivalent from Debian's mirror under a permanent
    local name."""
    (name,) = {text.split()[0] for word, text in last_stage(FILES[0]) if word == "FROM"}
    engine = ENGINES[0] if shutil.which("podman") else ENGINES[1]
    own = "localhost/noctule-test-debian:12"
    for known in (name, own):
        if engine("image", "inspect", known, check=False).returncode == 0:
            return known
    with contextlib.suppress(subprocess.TimeoutExpired):
        if engine("pull", "-q", name, check=False, timeout=120).returncode == 0:
            return name
    if not shutil.which("mmdebstrap"):
        pytest.skip(f"{name} cannot be fetched, and mmdebstrap is not here")
    do("mmdebstrap", "--variant=minbase", "bookworm", folder / "base.tar")
    engine("import", folder / "base.tar", own)
    return own


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Builds the last stage from the package of this build. Returns (engine, name)."""
    engines = [each for each in ENGINES
               if shutil.which(each.program[0]) and each("ps", check=False).returncode == 0]
    if not engines or os.geteuid() != 0:
        pytest.skip("no podman or docker answers here, or not to root")
    folder = tmp_path_factory.mktemp("image")
    do("cpack", "--config", BIN.parent / "CPackConfig.cmake", "-B", folder)
    (package,) = folder.glob("noctule_*.deb")
    text = re.sub(r"(?s)\A.*\n(?=FROM )", "", FILES[0].read_text())
    text = re.sub(r"(?m)^FROM .*$", f"FROM {base_image(folder)}", text)
    text = re.sub(r"(?m)^COPY --from=build \S+", "COPY noctule.deb", text)
    (folder / "context").mkdir()
    package.rename(folder / "context" / "noctule.deb")
    (folder / "Containerfile").write_text(text)
    name = "localhost/noctule-test"
    isolation = ["--format", "docker", "--isolation", "chroot"] if engines[0].program[0] == "podman" else []
    engines[0]("build", "-q", *isolation, "-f", folder / "Containerfile", "-t", name, folder / "context")
    try:
        working = next((each for each in engines if each.runs(name, "--version", check=False).returncode == 0), None)
        if not working:
            pytest.skip("containers cannot be run here: " + engines[-1].runs(name, "--version", check=False).stderr.strip()[-200:])
        yield working, name
    finally:
        engines[0]("image", "rm", "-f", name)


class Container:
    """The container of docs/operations.md, with an additional folder for results."""

    def __init__(self, engine, image, folder):
        self.engine, self.port = engine, free_port()
        self.name, self.folder = f"noctule-test-{self.port}", folder
        for made in ("conf.d", "out", "data"):
            (folder / made).mkdir()
        for written in ("out", "data"):
            os.chown(folder / written, NUMBER, NUMBER)
        (folder / "conf.d" / "site.conf").write_text(CONF)
        text = re.search(r"(?ms)^podman (run -d .*?[^\\])\n", PAGE.read_text())[1]
        words = shlex.split(text.replace("\\\n", " "))
        words = [self.here(word) for word in words]
        self.line = [*words[:1], *engine.options, "-v", f"{folder}/out:/out", *words[1:-1], image]

    def here(self, word):
        """Replaces the name, the port and the folders of the document by those of this test."""
        return {"noctule": self.name, "11112:11112": f"127.0.0.1:{self.port}:11112",
                "noctule:/var/lib/noctule": f"{self.folder}/data:/var/lib/noctule",
                "./conf.d:/etc/noctule/conf.d:ro": f"{self.folder}/conf.d:/etc/noctule/conf.d:ro"}.get(word, word)

    def run(self):
        self.engine(*self.line)
        self.wait()

    def wait(self):
        wait_for(lambda: self.echo().returncode == 0, 90, "the port of the container")

    def echo(self):
        return do("echoscu", "-aet", "DCMSEND", "-aec", "NOCTULE", "127.0.0.1", self.port, check=False)

    def inside(self, *command, **options):
        return self.engine("exec", self.name, *command, **options)

    def state(self):
        return self.engine("inspect", self.name, "--format", "{{.State.Status}} {{.State.ExitCode}}").stdout.split()

    def remove(self):
        self.engine("rm", "-f", self.name, check=False)


@pytest.fixture
def container(image, tmp_path):
    made = Container(*image, tmp_path)
    try:
        yield made
    finally:
        made.remove()


def health(path):
    """Returns the command of the file's health check."""
    (text,) = (text for word, text in last_stage(path) if word == "HEALTHCHECK")
    return re.findall(r'"([^"]*)"', text)


def test_start_reload_stop_and_upgrade(container, tmp_path):
    container.run()
    assert container.inside(*health(FILES[0]), check=False).returncode == 0
    assert container.inside("id", "-u").stdout.split() == [str(NUMBER)]
    do("dcmsend", "-aet", "DCMSEND", "-aec", "NOCTULE", "127.0.0.1", container.port, "+sd",
       phantom(tmp_path / "ct", "--kind", "ct-head", "--size", "64x64x24")[0].parent)
    (seg,) = wait_for(lambda: list((tmp_path / "out").glob("*.dcm")), 90, "the result")
    assert_valid(seg)
    # Reload, stop as an engine does it, start. Then a second container uses the same data, as after an upgrade.
    (tmp_path / "conf.d" / "site.conf").write_text(CONF.replace("DCMSEND", "OTHER"))
    container.engine("kill", "--signal", "HUP", container.name)
    wait_for(lambda: container.echo().returncode != 0, 90, "the reload")
    (tmp_path / "conf.d" / "site.conf").write_text(CONF)
    container.engine("stop", container.name)
    assert container.state() == ["exited", "0"]
    container.engine("start", container.name)
    container.wait()
    container.remove()
    container.run()
    assert "DONE" in container.inside("noctule", "jobs").stdout
    assert container.inside(*health(FILES[0]), check=False).returncode == 0


def test_a_folder_of_another_user_is_refused_with_its_number(container, tmp_path):
    os.chown(tmp_path / "data", 0, 0)
    container.engine(*container.line)
    wait_for(lambda: container.state()[0] == "exited", 90, "its end")
    done = container.engine("logs", container.name)
    assert f"belong to user {NUMBER}" in done.stdout + done.stderr and container.state() == ["exited", "73"]


def test_authorities_and_time_zones_are_in_the_image(image):
    """The image has certificate authorities for STOW-RS and time zones for windows."""
    engine, name = image
    found = engine("run", "--rm", *engine.options, "--entrypoint", "ls", name, "/etc/ssl/certs/ca-certificates.crt",
                   "/usr/share/zoneinfo/Europe/Berlin", check=False)
    assert found.returncode == 0, found.stderr
