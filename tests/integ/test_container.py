"""The container's files: what they promise to who runs them, and the image where an engine is there to build it."""

import re
import shutil
import subprocess

import pytest
from conftest import SOURCE

FILES = [SOURCE / "container" / name for name in ("Containerfile", "Containerfile.cuda")]


def instructions(path):
    """[(instruction, its text)], lines joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", path.read_text()))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


def engine():
    """One that answers, or None."""
    for name in ("podman", "docker"):
        if shutil.which(name) and subprocess.run([name, "ps"], capture_output=True).returncode == 0:
            return name
    return None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_rules(path):
    rows = instructions(path)
    last = rows[max(i for i, (word, _) in enumerate(rows) if word == "FROM"):]
    assert [text for word, text in last if word == "USER"] == ["11112:11112"]
    assert {"VOLUME", "HEALTHCHECK", "ENTRYPOINT"} <= {word for word, _ in last}
    for word, text in rows:
        assert word not in ("ADD", "ENV", "ARG"), "what is fetched, or told, at some other time"
        assert word != "FROM" or re.search(r":[0-9]", text), "a base without a version"
        assert "apt-get install" not in text or {"--no-install-recommends", "/var/lib/apt/lists/*"} <= set(text.split())
    for text in (text for word, text in rows if word == "COPY" and "--from" not in text):
        assert (SOURCE / text.split()[0]).exists(), text


def test_they_differ_in_their_bases_alone():
    cpu, cuda = ([row for row in instructions(path) if row[0] != "FROM"] for path in FILES)
    assert cpu == cuda


@pytest.mark.skipif(not engine(), reason="no podman or docker answers here")
def test_image(tmp_path):
    name = engine()
    subprocess.run([name, "build", "-q", "-f", FILES[0], "-t", "noctule-test", SOURCE], check=True)
    done = subprocess.run([name, "run", "--rm", "--read-only", "--cap-drop=all", "--entrypoint", "noctule", "noctule-test",
                           "check-config"], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
