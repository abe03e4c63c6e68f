"""`noctule doctor`: each broken condition is reported with its remedy, and no other check fails."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import BIN, PEERS, Clock, StoreScp, drop, free_port, is_listening, small_file_system, wait_for
from test_deliveries import small, to_archive, to_folder
from test_pull import pulling, source
from test_query import a_dcmqrscp, an_orthanc
from test_status import NOBODY, open_folder  # noqa: F401

# depend on the machine, which this test does not repair
OF_THE_MACHINE = {"clock", "confinement", "limits", "watches", "unit"}
VERDICTS = ["ok", "attention", "broken"]


def doctor(d, **options):
    """Returns the checks by name as lists, without those of the machine. Checks that exit status and verdicts agree."""
    done = subprocess.run([BIN / "noctule", "--config", d.config, "doctor", "--json"], text=True, capture_output=True,
                          **options)
    assert not done.stderr, done
    told = json.loads(done.stdout)
    worst = max(VERDICTS.index(check["verdict"]) for check in told["checks"])
    assert (done.returncode, told["verdict"]) == (worst, VERDICTS[worst]), done
    checks = {}
    for check in told["checks"]:
        checks.setdefault(check["check"], []).append(check)
        worst_finding = max([VERDICTS.index(finding["verdict"]) for finding in check["findings"]], default=0)
        assert VERDICTS[worst_finding] == check["verdict"] and (check["findings"] or check["text"])
    return checks


def wrong(d, **options):
    """Returns the checks that are not ok: {(check, verdict): sentences}."""
    return {(name, finding["verdict"]): finding["text"]
            for name, checks in doctor(d, **options).items() if name not in OF_THE_MACHINE
            for check in checks for finding in check["findings"]}


def only(found, name, verdict, *words):
    """Checks that exactly this check fails."""
    assert list(found) == [(name, verdict)], found
    for word in words:
        assert word in found[name, verdict], found


NOT_RUNNING = ("daemon", "broken")


def without_daemon(d, **options):
    """Returns the further findings when the daemon is known not to run."""
    found = wrong(d, **options)
    assert "systemctl start noctule" in found.pop(NOT_RUNNING)
    return found


def test_a_healthy_service(daemon, tmp_path, certificates):
    archive = StoreScp(tmp_path / "archive")
    archive.start()
    (tmp_path / "out").mkdir()
    d = daemon(dicom=PEERS, certificates=certificates,
               extra=f'destinations = ( {to_archive(archive.port)}, {to_folder(tmp_path / "out")} );')
    d.root.chmod(0o750)
    try:
        assert not without_daemon(d)
        d.start()
        checks = doctor(d)
        assert not wrong(d)
        assert set(checks) == {"configuration", "root", "inbox", "watches", "database", "backup", "daemon", "alerts", "port", "tls", "destination",
                               "devices", "dictionary", "clock", "limits", "confinement", "unit"}
        assert [check["text"] for check in checks["port"]] == [f"{d.port} is open in noctuled", f"{d.tls_port} is open in noctuled"]
        assert len(checks["destination"]) == 2 and f"process {d.process.pid}" in checks["daemon"][0]["text"]
        text = subprocess.run([BIN / "noctule", "--config", d.config, "doctor"], text=True, capture_output=True)
        lines = text.stdout.splitlines()
        assert f"daemon         ok         noctuled runs (process {d.process.pid}) and answers" in lines
        assert "\033" not in text.stdout and lines[-1].startswith("0 broken, ")
        os.kill(d.process.pid, signal.SIGSTOP)
        found = wrong(d)
        os.kill(d.process.pid, signal.SIGCONT)
        assert "did not answer within 3 seconds" in found[NOT_RUNNING]
    finally:
        archive.stop()


def test_the_configuration(daemon):
    d = daemon()
    d.root.chmod(0o750)
    d.config.chmod(0o666)
    only(without_daemon(d), "configuration", "attention", "every user can write", "chmod 0640")
    d.config.write_text(d.config.read_text() + "min_free_mid = 1;\nport = true;\n")
    found = doctor(d)
    assert set(found) == {"configuration", "dictionary", "confinement"}
    told = [finding["text"] for finding in found["configuration"][0]["findings"] if finding["verdict"] == "broken"]
    assert len(told) == 2 and "noctule.conf:" in told[0] and "min_free_mib" in told[0]
    d.config.unlink()
    told = doctor(d)["configuration"][0]
    assert told["verdict"] == "broken" and "give its path with --config or NOCTULE_CONFIG" in told["findings"][0]["text"]


def test_the_root(daemon, tmp_path):
    d = daemon()
    d.root.chmod(0o755)
    only(without_daemon(d), "root", "attention", "every user of this machine can access", "chmod 0750")
    shutil.rmtree(d.root)
    found = without_daemon(d)
    found.pop(("root", "attention"), None)  # depends on the user
    assert "does not exist: install -d -o" in found["root", "broken"] and set(found) == {("root", "broken"), ("inbox", "broken")}


def test_how_long_the_space_lasts(daemon, tmp_path):
    d = daemon().start()
    d.root.chmod(0o750)
    assert "enough for" not in doctor(d)["root"][0]["text"]
    drop(small(tmp_path / "images"), d.inbox / "images")
    d.wait_jobs()
    bytes_in_a_week = sum(path.stat().st_size for path in (d.root / "series").rglob("*.dcm"))
    disk = os.statvfs(d.root)
    days = re.search(r"GiB free, enough for (\d+) days at the rate of the last week$", doctor(d)["root"][0]["text"])
    assert int(days[1]) == pytest.approx(7 * disk.f_bavail * disk.f_frsize / bytes_in_a_week, rel=0.05)


def test_a_full_disk(daemon, tmp_path):
    d = daemon()
    with small_file_system(tmp_path / "small", 8) as small:
        root = small / "root"
        (root / "inbox").mkdir(parents=True)
        root.chmod(0o750)
        text = d.config.read_text().replace(str(d.root), str(root))
        d.config.write_text(text.replace("min_free_mib = 1;", "min_free_mib = 20;"))
        only(without_daemon(d), "root", "broken", "less than min_free_mib (20)", "set retention")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another")
def test_the_rights_of_the_service(open_folder, daemon):  # noqa: F811
    """Root checks the rights of the owner of the root folder. For other users the check reports that it cannot be
    done."""
    d = daemon()
    root = open_folder / "root"
    shutil.copytree(d.root, root)
    text = d.config.read_text().replace(str(d.root), str(root)).replace('after = "keep"', 'after = "delete"')
    d.config = open_folder / "noctule.conf"
    d.config.write_text(text)
    for path in (root, root / "inbox"):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o750)
    assert not without_daemon(d)
    os.chown(root / "inbox", 0, 0)
    (root / "inbox").chmod(0o600)
    only(without_daemon(d), "inbox", "broken", str(root / "inbox"), "Permission denied", "allow the service's group")
    (root / "inbox").chmod(0o755)
    only(without_daemon(d), "inbox", "broken", "after = \"keep\"")
    os.chown(root / "inbox", NOBODY, NOBODY)
    d.config.chmod(0o600)
    only(without_daemon(d), "configuration", "broken", "Permission denied", "chmod 0640")
    d.config.chmod(0o644)
    assert not without_daemon(d, user=NOBODY)
    found = wrong(d, user=1)
    assert "run doctor as root or as nobody" in found["root", "attention"]
    assert "run this as" in found["daemon", "attention"]


def test_the_port_of_the_page(daemon):
    port = free_port()
    d = daemon(quiet=600.0, extra=f"page = {{ port = {port}; }};\n")
    d.root.chmod(0o750)
    with socket.create_server(("127.0.0.1", port)):
        only(without_daemon(d), "port", "broken", f"another program uses port {port} (ss -tlnp shows it)")
        d.start()
        wait_for(lambda: "the page" in d.ctl("status", check=False).stdout, 60, "the trouble")
        assert f"another program uses port {port}, and noctuled waits for it" in wrong(d)["port", "broken"]
    wait_for(lambda: is_listening(port), 60, "the page, now that it has its port")


def test_a_port_of_another_program(daemon, tmp_path):
    clock = Clock(tmp_path)
    d = daemon(dicom=PEERS, environment=clock.environment)
    d.root.chmod(0o750)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", d.port))
        other.listen()
        only(without_daemon(d), "port", "broken", f"another program uses port {d.port} (ss -tlnp shows it)")
        d.start(wait=False)
        wait_for(lambda: "is not open" in d.ctl("status", check=False).stdout, 60, "the trouble")
        found = wrong(d)
        assert f"another program uses port {d.port}, and noctuled waits for it" in found["port", "broken"]
        assert f"port {d.port} is not open" in found["alerts", "broken"] and len(found) == 2
    clock.pass_time(5)  # until the next try to open the port
    wait_for(lambda: not wrong(d), 60, "a healthy service")


def test_tls(daemon, tmp_path, certificates):
    d = daemon(dicom=PEERS, certificates=certificates)
    d.root.chmod(0o750)
    text = d.config.read_text()
    d.config.write_text(text.replace(str(certificates.server_key), str(certificates.client_key)))
    only(without_daemon(d), "tls", "broken", "client.key", "Use the key of the certificate")
    d.config.write_text(text.replace(str(certificates.server_key), str(tmp_path / "none.key")))
    only(without_daemon(d), "tls", "broken", "none.key", "No such file or directory")
    expired = tmp_path / "expired.pem"
    subprocess.run(["openssl", "x509", "-in", certificates.server, "-signkey", certificates.server_key, "-days", "-1",
                    "-out", expired], check=True, capture_output=True)
    d.config.write_text(text.replace(str(certificates.server), str(expired)))
    only(without_daemon(d), "tls", "broken", "expired.pem has expired", "renew it")
    subprocess.run(["openssl", "x509", "-in", certificates.server, "-signkey", certificates.server_key, "-days", "20",
                    "-out", expired], check=True, capture_output=True)
    only(without_daemon(d), "tls", "attention", "expired.pem expires in ", "renew it")


def test_hanging_checks_end_after_a_timeout(daemon, tmp_path, certificates):
    d = daemon(dicom=PEERS, certificates=certificates)
    d.root.chmod(0o750)
    os.mkfifo(tmp_path / "never")
    d.config.write_text(d.config.read_text().replace(str(certificates.ca), str(tmp_path / "never")))
    only(without_daemon(d), "tls", "broken", "no answer within 6 seconds")


def test_destinations(daemon, tmp_path):
    silent = socket.create_server(("127.0.0.1", 0))  # accepts connections, and never replies
    d = daemon(extra=f'destinations = ( {to_archive(free_port())}, '
                     f'{to_archive(silent.getsockname()[1]).replace("PACS", "MUTE")}, {to_folder(tmp_path / "none")} );')
    d.root.chmod(0o750)
    (tmp_path / "none").rmdir()
    destinations = doctor(d)["destination"]
    silent.close()
    told = [check["findings"][0]["text"] for check in destinations]
    assert [check["verdict"] for check in destinations] == ["broken"] * 3
    assert told[0].startswith("PACS: ") and "refused" in told[0].lower() and "Check that it is running" in told[0]
    assert told[1].startswith("MUTE: ") and "no answer within 6" not in told[1]
    assert "none" in told[2] and "No such file" in told[2] and "allow the service's user to write" in told[2]


def test_sources(daemon, tmp_path):
    """Archives for pulls: a correct one, one with another AE title, silent ones, and an unreachable one."""
    d = daemon(dicom=PEERS)
    d.root.chmod(0o750)
    with an_orthanc(tmp_path / "orthanc", d.port) as (well, title), a_dcmqrscp(tmp_path / "dcmqrscp", d.port) as (other, _), \
            socket.create_server(("127.0.0.1", 0)) as silent:
        d.config.write_text(d.config.read_text() + pulling(
            source(well.port, title, window='"Mon 00:00-00:01"'), source(other.port, "ELSEWHERE", "OTHER", calling_ae_title='"NIGHT"'),
            source(silent.getsockname()[1], "MUTE", "MUTE"), source(free_port(), "ARCHIVE", "DOWN")))
        sources = doctor(d)["source"]
    assert [check["verdict"] for check in sources] == ["ok"] + ["broken"] * 3
    assert sources[0]["text"].startswith("PACS: ") and "ORTHANC" in sources[0]["text"]
    told = [check["findings"][0]["text"] for check in sources[1:]]
    assert [text.partition(":")[0] for text in told] == ["OTHER", "MUTE", "DOWN"]
    assert "ELSEWHERE" in told[0] and "AE titles are correct, and that it accepts NIGHT." in told[0]
    assert "no answer within 6" not in told[1] and "refused" in told[2].lower() and "that it accepts NOCTULE." in told[2]


def test_a_damaged_database(daemon):
    d = daemon()
    d.root.chmod(0o750)
    d.start()
    assert d.stop() == 0
    path = d.root / "noctule.db"
    assert not without_daemon(d)
    whole = path.read_bytes()
    pages = bytearray(whole)
    pages[8 * 4096:12 * 4096] = b"\xa5" * 4 * 4096
    path.write_bytes(pages)
    only(without_daemon(d), "database", "broken", "is damaged", "restore a backup")
    path.write_bytes(b"damaged" + whole[7:])
    only(without_daemon(d), "database", "broken", "not a database", "restore a backup")


def backup(folder, hours, name="noctule.db"):
    """Makes a backup of the given age."""
    folder.mkdir(parents=True)
    (folder / name).write_bytes(b"SQLite format 3")
    then = time.time() - 3600 * hours
    os.utime(folder / name, (then, then))


def test_backups(daemon, tmp_path):
    d = daemon()
    d.root.chmod(0o750)
    assert doctor(d)["backup"][0]["text"].startswith("not checked: set backup.folder to the folder of the backups")
    lines = d.ctl("doctor", check=False).stdout.splitlines()
    assert any(re.match("backup +unknown +not checked: ", line) for line in lines)
    (counted,) = re.findall(r"\n\d+ broken, \d+ need attention, (\d+) ok\n", "\n".join(lines) + "\n")
    assert int(counted) == sum(re.match(r"\S+ +ok ", line) is not None for line in lines)
    copies = tmp_path / "copies"
    d.config.write_text(d.config.read_text() + f'backup = {{ folder = "{copies}"; }};\n')
    only(without_daemon(d), "backup", "broken", f"{copies}: No such file or directory: mount its file system")
    backup(copies / "2026-11-24T020000.part", 1)  # incomplete
    backup(copies / ".2026-11-23T020000", 1)
    backup(copies / "lost+found", 1, "other.db")
    (copies / "noctule.db").write_bytes(b"x")
    (copies / "empty").mkdir()
    (copies / "empty" / "noctule.db").touch()
    backup(tmp_path / "elsewhere", 1)
    (copies / "link").symlink_to(tmp_path / "elsewhere")
    only(without_daemon(d), "backup", "broken", f"{copies} has no backup (a folder with noctule.db")
    backup(copies / "2026-11-20T020000", 97)
    only(without_daemon(d), "backup", "attention", f"the newest backup in {copies}, 2026-11-20T020000, is 4 days old",
         "backup.max_age_hours (36)", "operations.md, Backup")
    backup(copies / "2026-11-22T020000", 37)
    only(without_daemon(d), "backup", "attention", "2026-11-22T020000, is 37 hours old")
    backup(copies / "2026-11-21T020000", 35)  # the time of the file counts, and not the name
    assert not without_daemon(d)
    assert doctor(d)["backup"][0]["text"] == f"the newest of 3 backups in {copies} is 35 hours old"
    d.config.write_text(d.config.read_text().replace(f'{copies}";', f'{copies}"; max_age_hours = 34.5;'))
    only(without_daemon(d), "backup", "attention", "2026-11-21T020000, is 35 hours old", "34.5")
    backup(copies / "2026-11-23T020000", -1)
    only(without_daemon(d), "backup", "attention", "2026-11-23T020000 has a time in the future")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another")
def test_unreadable_backups_are_reported(open_folder, daemon):  # noqa: F811
    d = daemon()
    root = open_folder / "root"
    shutil.copytree(d.root, root)
    d.config.write_text(d.config.read_text().replace(str(d.root), str(root)) + f'backup = {{ folder = "{open_folder}/copies"; }};')
    d.config = shutil.copy(d.config, open_folder)
    for path in (root, root / "inbox"):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o750)
    backup(open_folder / "copies" / "2026-11-24T020000", 2)
    for mode, folder in ((0o700, "copies/2026-11-24T020000"), (0o700, "copies")):
        (open_folder / folder).chmod(mode)
        checks = doctor(d)
        assert checks["backup"][0]["text"].endswith("is 2 hours old") and checks["root"][0]["verdict"] == "ok"
        only(without_daemon(d, user=NOBODY), "backup", "attention", "no permission to read", "run doctor as root")


def test_a_missing_dictionary_is_reported(daemon, tmp_path):
    d = daemon(extra=f'destinations = ( {to_folder(tmp_path / "out")} );')
    d.root.chmod(0o750)
    found = without_daemon(d, env={**os.environ, "DCMDICTPATH": str(tmp_path / "nowhere")})
    assert str(tmp_path / "nowhere") in found["dictionary", "broken"] and "reinstall DCMTK" in found["dictionary", "broken"]
    assert "DCMTK's dictionary is missing" in found["destination", "attention"] and len(found) == 2


def test_missing_gpus_are_reported(daemon):
    d = daemon()
    d.root.chmod(0o750)
    text = d.config.read_text()
    assert "lanes = 2;" in text
    d.config.write_text(text.replace("lanes = 2;", 'lanes = 2; backend = "cuda";'))
    only(without_daemon(d, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}), "devices", "broken", "compute.backend = \"cpu\"")


def test_an_old_gpu_driver_is_reported(daemon, tmp_path):
    """Builds with CUDA report both versions. unit.cli_doctor tests the other reports."""
    d = daemon()
    d.root.chmod(0o750)
    d.config.write_text(d.config.read_text().replace("lanes = 2;", 'lanes = 2; backend = "cuda";'))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", "-x", "c", "-"], check=True, text=True,
                   input="int cuDriverGetVersion(int *version) { *version = 10020; return 0; }")
    found = without_daemon(d, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert re.search(r"this build has no CUDA|is for CUDA up to 10\.2, and this program was made with \d+\.\d: it needs a driver for",
                     found["devices", "broken"])


def test_a_program_without_its_gpu_is_reported(daemon):
    d = daemon(extra="""programs = ( { name = "net"; command = [ "/bin/true", "{in}", "{out}" ]; gpu = "whole";
        algorithm = { name = "Net"; version = "1"; }; } );""")
    d.root.chmod(0o750)
    found = without_daemon(d, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"})
    assert "it needs a GPU, and no GPU of this machine can be used" in found["program", "broken"]


def test_the_clock_and_the_unit(daemon, tmp_path):
    d = daemon()
    d.root.chmod(0o750)
    d.start()
    assert d.stop() == 0
    subprocess.run(["sqlite3", d.root / "noctule.db", "INSERT INTO event (at, kind, detail) "
                    "VALUES ('2999-01-01T00:00:00.000Z', 'STOP', '')"], check=True)
    told = doctor(d)["clock"][0]["findings"][0]
    assert told["verdict"] == "broken" and "from 2999-01-01" in told["text"] and told["text"].endswith("set the clock")
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\nprintf 'LoadState=loaded\\nActiveState=failed\\nUnitFileState=disabled\\nUser=pacs\\n"
                         "ReadWritePaths=/var/lib/noctule\\n'\n")
    systemctl.chmod(0o755)
    found = doctor(d, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})["unit"][0]["findings"]
    assert [finding["verdict"] for finding in found] == ["broken", "broken", "attention", "broken"]
    assert f"ReadWritePaths={d.root}" in found[0]["text"] and "journalctl" in found[1]["text"]
    assert "systemctl enable" in found[2]["text"] and "runs as pacs" in found[3]["text"]


def test_programs_of_the_site(daemon, tmp_path):
    """The command must be executable, and weights and folders readable. The sandbox is that of the daemon, if it runs."""
    tool = tmp_path / "tool"
    (tool / "weights").mkdir(parents=True)
    (tool / "weights" / "net.pt").write_bytes(b"weights")
    command = tool / "run"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    d = daemon(extra=f"""programs = ( {{ name = "net"; command = [ "{command}", "{{in}}", "{{out}}" ];
        algorithm = {{ name = "Net"; version = "1.0.2"; }}; weights = [ "{tool}/weights" ]; }} );""")
    d.root.chmod(0o750)
    quiet = {name: verdict for name, verdict in without_daemon(d).items() if name != ("program", "attention")}
    assert not quiet  # attention: the sandbox is weak here
    (found,) = doctor(d)["program"]
    assert found["findings"] or found["text"].startswith("net: Net 1.0.2; sandbox \"")
    assert "PROGRAM_SANDBOX: Install bubblewrap" in without_daemon(d, env={**os.environ, "NOCTULE_SANDBOX": "none"})["program", "broken"]
    d.start()
    wait_for(lambda: d.query("SELECT 1 FROM v_programs WHERE state = 'READY'"), 60, "the check of the program")
    d.ctl("programs", "net")
    (found,) = doctor(d, env={**os.environ, "NOCTULE_SANDBOX": "none"})["program"]
    assert found["verdict"] != "broken", "the probe of the daemon counts, not that of the shell"
    d.stop()
    command.chmod(0o644)
    told = without_daemon(d)["program", "broken"]
    assert f"{command}: make it executable" in told
    systemctl = tmp_path / "systemctl"
    for drop_in, told in (("", True), ("/etc/systemd/system/noctule.service.d/programs.conf", False)):
        systemctl.write_text(f"#!/bin/sh\nprintf 'LoadState=loaded\\nReadWritePaths=/\\nDropInPaths={drop_in}\\n'\n")
        systemctl.chmod(0o755)
        found = doctor(d, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})["unit"][0]["findings"]
        assert any("the drop-in programs.conf" in finding["text"] for finding in found) == told
    command.unlink()
    assert "No such file or directory: correct command" in without_daemon(d)["program", "broken"]
    command.mkdir()
    assert f"{command} is no file" in without_daemon(d)["program", "broken"]
    command.rmdir()
    command.symlink_to("/bin/true")
    shutil.rmtree(tool / "weights")
    told = without_daemon(d)["program", "broken"]
    assert f"{tool}/weights" in told and "No such file or directory" in told
