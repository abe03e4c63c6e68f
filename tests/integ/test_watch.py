"""--watch: lists and the status drawn in place on a terminal, until q or Ctrl-C."""

import contextlib
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time

import pytest
from conftest import BIN, drop, phantom, wait_for

USAGE = 2


class Terminal:
    """A command on a terminal with that many lines and columns. `said` is its output so far."""

    def __init__(self, d, *arguments, lines=24, columns=80):
        self.main, self.side = os.openpty()
        self.resize(lines, columns)
        self.before = termios.tcgetattr(self.side)
        self.said = ""
        self.process = subprocess.Popen(
            [BIN / "noctule", "--config", d.config, *arguments], stdin=self.side, stdout=self.side, stderr=self.side,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, lines, columns):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self):
        while select.select([self.main], [], [], 0.05)[0]:
            with contextlib.suppress(OSError):
                self.said += os.read(self.main, 65536).decode()
        return self.said

    def wait_for(self, words, count=1):
        return wait_for(lambda: len(re.findall(words, self.read())) >= count, 60, words)

    def screen(self):
        """Returns the lines of the latest drawing."""
        drawn = self.read().split("\033[H")[-1]
        return re.sub(r"\033\[[?0-9;]*[A-Za-z]", "", drawn).split("\r\n")

    def type(self, keys):
        os.write(self.main, keys)

    def end(self):
        deadline = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read()
        restored = termios.tcgetattr(self.side) == self.before
        os.close(self.side)
        os.close(self.main)
        return self.process.returncode, restored


def test_new_jobs_are_drawn(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    terminal = Terminal(d, "jobs", "--watch", "--interval", "1")
    terminal.wait_for("noctule jobs .*every 1 s; press q to quit", 2)
    assert "head-ct" not in terminal.said
    drop(phantom(tmp_path / "a", "--size", "32x32x6"), d.inbox)
    terminal.wait_for("DONE")
    assert any("head-ct" in line for line in terminal.screen())
    assert [line for line in terminal.screen() if len(line) > 80] == []
    terminal.type(b"q")
    status, restored = terminal.end()
    assert (status, restored) == (0, True)
    assert terminal.said.startswith("\033[?1049h") and terminal.said.endswith("\033[?1049l")


@pytest.mark.parametrize("command", ["jobs", "series", "deliveries", "status"])
def test_each_ends_by_an_interrupt(daemon, command):
    d = daemon().start()
    terminal = Terminal(d, command, "--watch", lines=10, columns=60)
    terminal.wait_for(f"noctule {command} ")
    terminal.type(b"\x03")
    assert terminal.end() == (0, True)


def test_rows_without_room_are_counted_and_shown_on_a_larger_terminal(daemon):
    d = daemon().start()
    terminal = Terminal(d, "status", "-w", "--interval", "600", lines=6, columns=40)
    terminal.wait_for(r"\.\.\. and \d+ more lines")
    assert len(terminal.screen()) == 6
    terminal.resize(60, 100)
    terminal.wait_for("Daemon +running")
    assert "more line" not in terminal.screen()[-1]
    terminal.type(b"q")
    assert terminal.end() == (0, True)


@pytest.mark.parametrize("columns", [40, 61])
def test_long_lines_are_wrapped(daemon, columns):
    """Each word of the status is on the screen, in order, and no line is longer than the terminal."""
    d = daemon().start()
    terminal = Terminal(d, "status", "-w", "--interval", "600", lines=60, columns=columns)
    terminal.wait_for("Daemon +running")
    lines = terminal.screen()
    assert [line for line in lines[1:] if len(line) > columns] == []  # below the head
    whole = [line for line in d.ctl("status").stdout.splitlines() if len(line) > columns and line.startswith(("Jobs", "Series", "Deliveries"))]
    shown = " ".join(" ".join(lines).split())
    assert whole and all(" ".join(line.split()) in shown for line in whole)
    terminal.type(b"q")
    assert terminal.end() == (0, True)


def test_a_stopped_service_is_reported_on_the_screen(daemon):
    d = daemon().start()
    terminal = Terminal(d, "status", "--watch", "--interval", "1", lines=50)
    terminal.wait_for("Daemon +running")
    d.stop()
    terminal.wait_for("Daemon +not running")
    terminal.type(b"q")
    assert terminal.end() == (0, True)


@pytest.mark.parametrize("arguments, words", [
    (["jobs", "--watch"], "needs a terminal"),
    (["status", "--watch", "--check"], "cannot be combined with another output format"),
    (["series", "--watch", "--json"], "cannot be combined with another output format"),
    (["series", "--interval", "5"], "--interval needs --watch"),
])
def test_watch_requires_a_terminal(daemon, arguments, words):
    result = daemon().ctl(*arguments, check=False)
    assert result.returncode == USAGE and words in result.stderr and result.stdout == ""
