"""The command line: arguments, exit codes, JSON, and its behaviour with a daemon that violates the protocol."""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import threading

import proto
import pytest
from conftest import BIN, HURRY, SOURCE, drop, phantom, run_program, wait_for

OK, PARTIAL, USAGE, NOT_FOUND, NO_DAEMON, CONFIG, DATABASE = range(7)
RETRY, CANCEL, COMPLETE, PING, ANSWER = range(64, 69)
SHIPPED = SOURCE / "config" / "noctule.conf"


def noctule(*arguments, config=SHIPPED, **options):
    options.setdefault("env", {**os.environ, "NOCTULE_CONFIG": str(config)})
    return run_program("noctule", *arguments, check=False, **options)


# ------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize("arguments", [
    (), ("nothing",), ("--no-such", "status"), ("--root", "", "status"), ("status", "more"), ("status", "--state", "X"),
    ("jobs", "--limit", "0"), ("jobs", "--limit", "many"), ("jobs", "--limit"), ("show",), ("show", "x"), ("show", "-1"),
    ("show", "1", "2"), ("show", "99999999999999999999"), ("series", "--pipeline", "x"), ("retry",), ("retry", "one"),
    ("retry", "--failed", "1"), ("retry", "--code", "CRASHED", "1"), ("retry", "--dry-run", "1"), ("retry", "--failed", "--since", "soon"),
    ("hold",), ("hold", "x"), ("hold", "1", "--queue"), ("hold", "--queue", "--pipeline", "p"), ("release",),
    ("pause", "1"), ("resume", "--reason", "x"), ("drain", "--wait", "0"), ("priority",), ("priority", "1"), ("priority", "1", "high"), ("priority", "x", "1"), ("priority", "1", "2", "3"),
    ("submit",), ("submit", "1.2"), ("submit", "--all"), ("submit", "--pipeline", "p"), ("submit", "--rules", "--pipeline", "p"),
    ("submit", "--rules", "--stacks", "b0"), ("submit", "--rules", "x"), ("submit", "--rules", "--since", "2026", "1.2"),
    ("submit", "--all", "--rules", "1.2"), ("jobs", "--since", "2026-13x"), ("jobs", "--since", "h"),
    ("review", "1"), ("accept",), ("accept", "x"), ("accept", "--code", "X", "1"), ("accept", "--pipeline", "p", "1"), ("accept", "--dry-run", "1"), ("reject",), ("reject", "1"), ("reject", "1", ""), ("reject", "x", "y"),
    ("reject", "1", "two", "words"), ("retry", "1", "0"), ("cancel",), ("cancel", "--all"), ("complete",), ("complete", "not-a-uid"),
    ("complete", "1." * 40), ("ping", "x"), ("version", "x"), ("help", "x"), ("check-config", "a", "b"),
    ("check-config", "--no-such"), ("run",), ("run", "--output", "x"), ("explain",), ("explain", "--json"),
], ids=" ".join)
def test_wrong_arguments(tmp_path, arguments):
    result = noctule(*arguments, cwd=tmp_path)
    assert result.returncode == USAGE, result.stderr
    assert result.stderr and not result.stdout


@pytest.mark.parametrize("arguments", [("help",), ("--help",)], ids=" ".join)
def test_help_names_every_command(arguments):
    result = noctule(*arguments)
    assert result.returncode == OK and not result.stderr
    for command in ("run", "explain", "status", "jobs", "show", "features", "series", "destinations", "deliveries", "retry", "submit", "hold", "release", "pause", "resume", "drain", "priority", "review", "accept", "reject",
                    "cancel", "complete", "resend", "ping", "check-config", "echo", "version"):
        assert f"\n  {command}" in result.stdout


COMMANDS = [line.split()[0] for line in noctule("help").stdout.splitlines() if re.match("  [a-z]", line)]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_its_help_without_a_configuration(tmp_path, command):
    said = [noctule(*arguments, config=tmp_path / "none.conf") for arguments in
            ((command, "--help"), (command, "-h"), ("--help", command), ("help", command))]
    for result in said:
        assert result.returncode == OK and not result.stderr
        assert result.stdout == said[0].stdout and result.stdout.startswith(f"usage: noctule {command}")
    assert "\033" not in said[0].stdout
    assert all(len(line) < 80 for line in said[0].stdout.splitlines())


def test_misspelt_words_get_a_suggestion(tmp_path):
    for arguments, words in ((("stauts",), 'did you mean "status"?'), (("jobs", "--lmit", "1"), "did you mean --limit?"),
                             (("help", "jbos"), 'did you mean "jobs"?')):
        result = noctule(*arguments, config=tmp_path / "none.conf")
        assert result.returncode == USAGE and words in result.stderr


def on_a_terminal(*arguments, **environment):
    """Returns the output of a command on a terminal."""
    main, side = os.openpty()
    with subprocess.Popen([BIN / "noctule", *arguments], stdout=side, stderr=side,
                          env={**os.environ, "TERM": "xterm", **environment}) as process:
        os.close(side)
        said = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while more := os.read(main, 4096):
                said += more
        process.wait(60)
    os.close(main)
    return said


def test_colours_are_only_for_terminals_that_accept_them():
    assert b"\033[1mControl (the daemon must run):\033[0m" in on_a_terminal("help", NO_COLOR="")
    assert b"\033[31mnoctule:\033[0m there is no command" in on_a_terminal("stauts", NO_COLOR="")
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert b"\033" not in on_a_terminal("help", **environment)


def test_a_missing_configuration_is_reported(tmp_path):
    result = noctule("jobs", config=tmp_path / "none.conf")
    assert result.returncode == CONFIG and "give its path with --config or NOCTULE_CONFIG" in result.stderr


COMPLETIONS = SOURCE / "docs" / "completions"


def complete(*words):
    """Returns bash's completions of the last word."""
    script = f'source {COMPLETIONS}/noctule.bash; complete -p noctule >/dev/null || exit 9; ' \
             'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _noctule; printf "%s\\n" "${COMPREPLY[@]}"'
    result = subprocess.run(["bash", "-c", script, "bash", "noctule", *words], capture_output=True, text=True, check=True,
                            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "NOCTULE_CONFIG": str(SHIPPED)})
    assert not result.stderr
    return result.stdout.split()


def test_bash_completes(tmp_path):
    assert complete("st") == ["status"] and set(complete("")) == set(COMMANDS)
    assert complete("--config", "x", "re") == ["report", "review", "retry", "reject", "release", "resume", "resend", "reload"]
    assert complete("jobs", "--st") == ["--state"] and complete("jobs", "--state", "RE") == ["READY", "REVIEW", "REJECTED"]
    assert complete("help", "pre") == ["presets"] and complete("jobs", "") == []
    assert complete("jobs", "--limit", "") == []
    assert complete("run", "--pipeline", "head") == ["head-ct"] and complete("run", "-p", "e") == ["example"]
    assert complete("presets", "lu") == ["lung"]
    other = tmp_path / "other.conf"
    other.write_text('destinations = ( { name = "PACS"; folder = "/x"; }, { name = "shelf"; folder = "/y"; } );')
    assert complete("--config", str(other), "echo", "P") == ["PACS"]
    assert complete("--config", str(other), "resend", "--destination", "") == ["PACS", "shelf"]
    (tmp_path / "folder").mkdir()
    assert complete("run", "--output", f"{tmp_path}/") == [f"{tmp_path}/folder"]
    assert complete("run", "/et") == []  # bash completes file names itself
    assert complete("jobs", "--he") == ["--help"]


def test_zsh_accepts_the_completions():
    result = subprocess.run(["zsh", "-f", "-n", COMPLETIONS / "_noctule"], capture_output=True, text=True)
    assert result.returncode == 0 and not result.stderr
    script = f"autoload -U compinit && compinit -D -u; fpath=({COMPLETIONS} $fpath); autoload -U +X _noctule && whence -w _noctule"
    result = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True)
    assert result.stdout == "_noctule: function\n" and not result.stderr, result.stderr


@pytest.mark.parametrize("arguments", [("version",), ("--version",)], ids=" ".join)
def test_version(arguments):
    result = noctule(*arguments)
    assert result.returncode == OK and result.stdout.startswith("noctule ")


def test_failed_output_is_an_error():
    with open("/dev/full", "w") as full:
        result = subprocess.run([BIN / "noctule", "help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == PARTIAL and "cannot write to standard output" in result.stderr


# --------------------------------------------------------------------------------- configuration


def test_check_config(tmp_path):
    result = noctule("check-config", SHIPPED)
    assert result.returncode == OK and result.stdout.startswith(f"{SHIPPED}: OK\n")
    assert "pipeline: head-ct" in result.stdout and "root: /var/lib/noctule" in result.stdout

    wrong = tmp_path / "wrong.conf"
    wrong.write_text("root = \"/srv\";\nseries = { quiet = 1; };\n")
    for arguments in (("check-config", wrong), ("--config", wrong, "check-config"), ("--config", wrong, "status")):
        result = noctule(*arguments)
        assert result.returncode == CONFIG and not result.stdout
        assert f"{wrong}:2: series.quiet: unknown option" in result.stderr
    assert noctule("check-config", config=wrong).returncode == CONFIG
    result = noctule("check-config", tmp_path / "nowhere.conf")
    assert result.returncode == CONFIG and "No such file" in result.stderr


def test_the_printed_configuration_is_a_configuration(tmp_path):
    printed = noctule("--root", tmp_path / "root", "check-config", "--print").stdout
    assert f'path = "{tmp_path}/root/inbox"' in printed
    again = tmp_path / "again.conf"
    again.write_text(printed)
    assert noctule("check-config", "--print", again).stdout == printed


def test_a_relative_root_is_taken_from_here(tmp_path):
    result = noctule("--root", "some/where", "check-config", cwd=tmp_path)
    assert f"root: {tmp_path.resolve()}/some/where\n" in result.stdout


# --------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("arguments", [("status",), ("jobs",), ("series", "--json"), ("show", "1"), ("features", "1"),
                                       ("features", "1", "--csv")], ids=" ".join)
def test_no_database(tmp_path, arguments):
    result = noctule("--root", tmp_path, *arguments)
    assert result.returncode == DATABASE and "noctule.db" in result.stderr
    assert result.stdout.startswith("Daemon      not running\n") if arguments == ("status",) else not result.stdout
    assert not list(tmp_path.iterdir())


def test_a_foreign_database_is_refused(tmp_path):
    (tmp_path / "noctule.db").write_bytes(b"not a database" * 1000)
    result = noctule("--root", tmp_path, "jobs")
    assert result.returncode == DATABASE and result.stderr and not result.stdout


def test_reading_and_steering(daemon, tmp_path):
    d = daemon().start()
    drop(phantom(tmp_path / "one", "--size", "32x32x6"), d.inbox / "one")
    (job,) = d.wait_jobs()
    drop(phantom(tmp_path / "two", "--size", "32x32x6", "--seed", "2"), d.inbox / "two")
    d.wait_jobs(2)

    status = json.loads(d.ctl("status", "--json").stdout)
    assert status["jobs_done"] == 2
    text = d.ctl("status").stdout
    assert "2 done" in text and "Daemon      running" in text

    jobs = json.loads(d.ctl("jobs", "--json").stdout)
    assert [row["job"] for row in jobs] == [2, 1]
    assert json.loads(d.ctl("jobs", "--json", "--limit", "1").stdout) == jobs[:1]
    assert json.loads(d.ctl("jobs", "--json", "--series", job["series_uid"]).stdout) == jobs[1:]
    assert json.loads(d.ctl("jobs", "--json", "--state", "FAILED").stdout) == []
    assert json.loads(d.ctl("jobs", "--json", "--pipeline", "head-ct", "--state", "DONE").stdout) == jobs
    assert job["series_uid"] in d.ctl("jobs").stdout
    assert d.ctl("jobs", "--state", "SLEEPING", check=False).returncode == USAGE

    shown = json.loads(d.ctl("show", "1", "--json").stdout)
    assert shown["job"] == 1 and shown["results"][0]["kind"] == "seg"
    assert [event["to_state"] for event in shown["events"]][-1] == "DONE"
    assert d.ctl("show", "7", check=False).returncode == NOT_FOUND

    series = json.loads(d.ctl("series", "--json").stdout)
    assert len(series) == 2 and {row["state"] for row in series} == {"SETTLED"}
    assert d.ctl("series", "--state", "REFUSED", "--json").stdout.strip() in ("[]", "[\n]")

    assert "root" in d.ctl("ping").stdout
    assert d.ctl("retry", "7", check=False).returncode == NOT_FOUND
    assert d.ctl("retry", "7", "8", check=False).returncode == NOT_FOUND
    assert d.ctl("cancel", "1", check=False).returncode == PARTIAL
    mixed = d.ctl("cancel", "1", "7", check=False)
    assert mixed.returncode == PARTIAL and len(mixed.stderr.splitlines()) == 2
    assert d.ctl("complete", "1.2.3", check=False).returncode == NOT_FOUND
    assert d.ctl("retry", "1", "2", check=False).stderr.count("--force") == 2
    assert d.ctl("retry", "--force", "1", "2").stdout.count("\n") == 2
    wait_for(lambda: len(d.jobs("DONE")) == 4, 60, "the retried jobs")

    d.stop()
    assert d.ctl("ping", check=False).returncode == NO_DAEMON
    assert d.ctl("retry", "1", check=False).returncode == NO_DAEMON
    after = d.ctl("status")
    assert "Daemon      not running" in after.stdout
    assert [row["job"] for row in json.loads(d.ctl("jobs", "--json").stdout)] == [4, 3, 2, 1]


# -------------------------------------------------------------------------------------- steering


def frame(kind, fields=b""):
    return struct.pack("<IH", 2 + len(fields), kind) + fields


def answer(status, message, body=""):
    return proto.encode("ANSWER", status, message, body)


class FakeDaemon:
    """Listens on noctuled's control socket. Passes each received frame to respond() and sends the result."""

    def __init__(self, root, respond):
        (root / "run").mkdir(parents=True)
        self.frames, self.respond = [], respond
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The same relative path as in noctuled, for roots with a path too long for a socket address.
        folder = os.open(root / "run", os.O_PATH)
        self.socket.bind(f"/proc/self/fd/{folder}/control.sock")
        os.close(folder)
        self.socket.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                with client, client.makefile("rb") as stream:
                    while head := stream.read(6):
                        length, kind = struct.unpack("<IH", head)
                        self.frames.append((kind, stream.read(length - 2)))
                        response = self.respond(*self.frames[-1])
                        if response is None:
                            break
                        client.sendall(response)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(60)


@pytest.fixture
def fake(tmp_path):
    made = []

    def make(respond, root=tmp_path / "root"):
        made.append(FakeDaemon(root, respond))
        return root, made[-1]

    yield make
    for each in made:
        each.close()


def test_requests_are_encoded_as_the_daemon_expects(fake):
    root, daemon = fake(lambda kind, fields: answer(0, "well"))
    assert noctule("--root", root, "retry", "3", "4").stdout == "well\nwell\n"
    assert noctule("--root", root, "retry", "--current", "--force", "5").returncode == OK
    assert noctule("--root", root, "cancel", "5").returncode == OK
    assert noctule("--root", root, "complete", "1.2.3").returncode == OK
    assert noctule("--root", root, "complete", "--accept-missing", "1.2.4").returncode == OK
    assert noctule("--root", root, "ping").returncode == OK
    frames = daemon.frames
    assert frames[:4] == [(RETRY, struct.pack("<qqqq", 3, 0, 0, 0)), (RETRY, struct.pack("<qqqq", 4, 0, 0, 0)),
                          (RETRY, struct.pack("<qqqq", 5, 1, 1, 0)), (CANCEL, struct.pack("<q", 5))]
    for frame, uid, accept in ((frames[4], b"1.2.3", 0), (frames[5], b"1.2.4", 1)):
        assert frame[0] == COMPLETE
        assert frame[1].startswith(struct.pack("<I", 5) + uid + struct.pack("<q", accept))  # and the login user
    assert frames[6:] == [(PING, b"")]


@pytest.mark.parametrize("statuses,expected", [
    ((0, 0), OK), ((-2, -2), NOT_FOUND), ((-11, -11), PARTIAL), ((-2, -11), PARTIAL), ((0, -2), NOT_FOUND),
    ((-11, 0), PARTIAL),
], ids=str)
def test_exit_codes_follow_the_answers(fake, statuses, expected):
    left = list(statuses)
    root, _ = fake(lambda kind, fields: answer(left.pop(0), ""))
    result = noctule("--root", root, "cancel", "1", "2")
    assert result.returncode == expected
    assert len((result.stdout + result.stderr).splitlines()) == 2


@pytest.mark.parametrize("response", [
    None, b"\xff" * 64, frame(PING), frame(ANSWER), frame(ANSWER, b"\0" * 9),
    frame(ANSWER, struct.pack("<qI", 0, 2) + b"x"), frame(ANSWER, struct.pack("<qI", 0, 1) + b"xy"),
], ids=["hang-up", "garbage", "other-type", "empty", "short", "cut", "long"])
def test_invalid_replies_are_errors(fake, response):
    root, _ = fake(lambda kind, fields: response)
    result = noctule("--root", root, "retry", "1", "2")
    assert result.returncode == NO_DAEMON and not result.stdout


def test_a_silent_daemon_is_an_error_after_a_timeout(fake):
    root, _ = fake(lambda kind, fields: b"")
    result = noctule("--root", root, "retry", "1", env={**os.environ, "NOCTULE_CONFIG": str(SHIPPED), **HURRY}, timeout=60)
    # It holds no lock: its socket tells its process.
    assert result.returncode == NO_DAEMON and f"noctuled (process {os.getpid()}) did not answer within 10 seconds" in result.stderr


def test_no_daemon(tmp_path):
    assert noctule("--root", tmp_path, "ping").returncode == NO_DAEMON
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as abandoned:
        abandoned.bind(str(tmp_path / "run" / "control.sock"))
    result = noctule("--root", tmp_path, "cancel", "1")
    assert result.returncode == NO_DAEMON and "does not run" in result.stderr


def test_a_root_with_a_long_path(fake, tmp_path):
    root = tmp_path / ("long-" * 12) / ("path-" * 12)
    fake(lambda kind, fields: answer(0, "here"), root)
    assert noctule("--root", root, "retry", "1").stdout == "here\n"


# --------------------------------------------------------------------------------------- manuals


@pytest.mark.parametrize("page", ["noctule.1", "noctuled.8", "noctule.conf.5"])
def test_man_pages_are_clean(page):
    result = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", SOURCE / "docs" / page],
                            capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert result.returncode == 0 and result.stdout and not result.stderr, result.stderr


def test_the_manual_has_every_exit_code():
    manual = (SOURCE / "docs" / "noctule.1").read_text().replace("\\-", "-")
    daemon = (SOURCE / "docs" / "noctuled.8").read_text()
    codes = [line for line in (SOURCE / "service" / "common" / "exit_codes.h").read_text().splitlines() if "EXIT_" in line and "=" in line]
    for line in codes:
        number = line.split("=")[1].split(",")[0].strip()
        assert f".TP\n.B {number}\n" in (daemon if "EXIT_LOST" in line else manual), line
