"""Shared parts of the integration tests: paths of programs, a daemon in a temporary root, DICOM peers, waits with
deadlines."""

import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import numpy
import proto
import pydicom
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED = SOURCE.parent / "shared" / "data"
BIN = pathlib.Path(os.environ.get("NOCTULE_BIN", SOURCE / "build" / "ci" / "bin"))

SANITIZED = "ASAN_OPTIONS" in os.environ  # programs under AddressSanitizer (tests/CMakeLists.txt)
EMULATED = BIN / "emulated"  # programs linked with the CUDA emulator of tests/emulator/

# from the build's settings, so that old programs in the folder have no effect
needs_emulator = pytest.mark.skipif("NOCTULE_NO_EMULATOR" in os.environ,
                                    reason="built without the CUDA backend")
limits_memory = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer needs more memory than this test allows")
released_only = pytest.mark.skipif(SANITIZED, reason="runs with release code, in integ.released")
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real series are not here")


def wait_for(condition, seconds=60, what="the condition"):
    """Calls condition() until it returns a true value, and returns that value. Fails at the deadline. Slow conditions
    are called less often, so that polling does not delay the observed process."""
    begun = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begun
        if waited > seconds:
            pytest.fail(f"{what} did not come within {seconds} s")
        time.sleep(min(0.1, 0.02 + waited / 20))


def local_time(at):
    """Returns a timestamp of the database as local time of this process, as the programs print it."""
    return datetime.datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")


def run_program(name, *arguments, check=True, **options):
    """Runs a program of the project to its end and returns the CompletedProcess."""
    done = subprocess.run([BIN / name, *map(str, arguments)], text=True, capture_output=True, **options)
    assert_no_sanitizer_report(done.stderr)
    if check:
        done.check_returncode()
    return done


def assert_no_sanitizer_report(text):
    """Checks for sanitizer reports. A sanitizer build stops a process at its first error. The daemon may restart that
    process, but the report remains."""
    report = re.search(r"(ERROR: \w+Sanitizer|: runtime error:)[\s\S]*", text)
    assert not report, report[0][:8000]


def open_files(pid):
    """Returns the kernel's names of the files that a process has open. Files that are opened or closed during the
    call are left out."""
    found = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(entry))
    return found


held_ports = []  # sockets that hold the ports of this run


def free_port():
    """Reserves a free TCP port until this run ends. Another socket with SO_REUSEADDR may listen on the port, because
    the reserving socket does not listen. The kernel gives the port to no other caller."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    held_ports.append(holder)
    return holder.getsockname()[1]


def is_listening(port, process="self"):
    """Returns whether a socket listens on the port in the network namespace of the process. Reads /proc, so that the
    listener receives no connection."""
    for table in ("tcp", "tcp6"):
        lines = pathlib.Path(f"/proc/{process}/net", table).read_text().splitlines()[1:]
        for local, state in ((line.split()[1], line.split()[3]) for line in lines):
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                return True
    return False


class Certificates:
    """PEM files of a small hospital. `ca` signs server, client and elsewhere (a certificate for another host). An
    untrusted authority (stranger_ca) signs stranger. branch has a chain: branch_ca signs it, and ca signs
    branch_ca."""

    kinds = {"elsewhere": ("rsa:2048",)}  # the other kinds use keys that are faster to generate

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for authority, names in (("ca", ("server", "client", "elsewhere")), ("stranger_ca", ("stranger",)),
                                 ("branch_ca", ("branch",))):
            above = ("-CA", self.ca, "-CAkey", self.ca_key) if authority == "branch_ca" else ()
            self.make(authority, *above, "-addext", "basicConstraints=critical,CA:TRUE")
            for name in names:
                self.make(name, "-CA", self.folder / f"{authority}.pem", "-CAkey", self.folder / f"{authority}.key",
                          "-addext", "basicConstraints=critical,CA:FALSE",
                          "-addext", "subjectAltName=" + ("DNS:elsewhere.example" if name == "elsewhere"
                                                          else "IP:127.0.0.1,DNS:localhost"))
        self.branch.write_bytes(self.branch.read_bytes() + self.branch_ca.read_bytes())

    def make(self, name, *options):
        kind = self.kinds.get(name, ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", "90", "-subj", f"/CN={name}",
             "-keyout", self.folder / f"{name}.key", "-out", self.folder / f"{name}.pem", *map(str, options)],
            check=True, capture_output=True)
        setattr(self, name, self.folder / f"{name}.pem")
        setattr(self, f"{name}_key", self.folder / f"{name}.key")

    def revocations(self, *names, authority="ca"):
        """Writes a revocation list of the authority with these certificates. Returns its path."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="revoked-", dir=self.folder))
        (folder / "index").write_text("")
        (folder / "conf").write_text(f"[ca]\ndefault_ca=it\n[it]\ndatabase={folder}/index\ndefault_md=sha256\n"
                                     "default_crl_days=30\n")
        command = ["openssl", "ca", "-config", folder / "conf", "-cert", getattr(self, authority),
                   "-keyfile", getattr(self, f"{authority}_key")]
        for name in names:
            subprocess.run([*command, "-revoke", getattr(self, name)], check=True, capture_output=True)
        subprocess.run([*command, "-gencrl", "-out", folder / "crl.pem"], check=True, capture_output=True)
        return folder / "crl.pem"

    def chain_revocations(self, *names):
        """Writes one file with the lists of ca (with these certificates) and of branch_ca. Returns its path."""
        path = self.revocations(*names)
        path.write_bytes(path.read_bytes() + self.revocations(authority="branch_ca").read_bytes())
        return path

    def fingerprint(self, name):
        """Returns the SHA-256 of the certificate in openssl's format: "8C:1F:..."."""
        done = subprocess.run(["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", getattr(self, name)],
                              check=True, text=True, capture_output=True)
        return done.stdout.strip().rpartition("=")[2]

    def dcmtk(self, name):
        """Returns the options of a DCMTK tool that presents this certificate and trusts ca."""
        return ["+tls", str(getattr(self, f"{name}_key")), str(getattr(self, name)), "+cf", str(self.ca)]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


class Clock:
    """Clocks of the processes with this `environment`. Tests move them through tests/tools/faults.c."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder, "clock")
        if not self.path.exists():
            self.path.write_bytes(bytes(16))
        self.environment = {"LD_PRELOAD": str(BIN / "libnoctule_faults.so"), "NOCTULE_CLOCK": str(self.path)}

    def jump(self, seconds):
        """Sets the wall clock forward or back. The monotonic clocks do not change."""
        self.move(0, seconds)

    def pass_time(self, seconds):
        """Moves all clocks forward, so that timers of at most that many seconds expire at once."""
        self.move(8, seconds)

    def move(self, place, seconds):
        with open(self.path, "r+b") as file:  # in place, because the processes have the file mapped
            file.seek(place)
            (now,) = struct.unpack("=q", file.read(8))
            file.seek(place)
            file.write(struct.pack("=q", now + int(seconds * 1e9)))


# Divides the 10 s for which a command waits for the daemon's reply (tests/tools/faults.c).
HURRY = {"LD_PRELOAD": str(BIN / "libnoctule_faults.so"), "NOCTULE_HURRY": "10"}


class Peer:
    """A program that listens on its own port. stop() and start() simulate an archive that is down for a while."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.log = self.folder.parent / f"{self.folder.name}.log"
        self.process = None

    def command(self):
        raise NotImplementedError

    def is_ready(self):
        return is_listening(self.port)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, "TCP_NODELAY": "1"})

        def ready():
            assert self.process.poll() is None, f"{self.command()[0]} ended:\n{self.log.read_text()}"
            return self.is_ready()

        wait_for(ready, 60, f"{self.command()[0]}'s port")
        return self

    def stop(self):
        """Kills it and its child processes at once."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)
            self.process = None


class StoreScp(Peer):
    """DCMTK's storescp. It stores each received instance as one file in `folder`."""

    def __init__(self, folder, options=()):
        super().__init__(folder)
        self.options = list(map(str, options))

    def command(self):
        return ["storescp", "--fork", "--bit-preserving", "--output-directory", str(self.folder), *self.options,
                str(self.port)]

    def files(self):
        return sorted(path for path in self.folder.iterdir() if path.is_file())


def debian_orthanc():
    """Returns the configuration of Debian's Orthanc package, which is JSON with comments."""
    text = pathlib.Path("/etc/orthanc/orthanc.json").read_text()
    without = re.sub(r'("(?:\\.|[^"\\])*")|/\*.*?\*/|//[^\n]*', lambda found: found[1] or "", text, flags=re.DOTALL)
    return json.loads(without)


class Orthanc(Peer):
    """Orthanc with its own database and AE title ORTHANC. `options` override its configuration, which overrides
    `base` (empty, or that of the distribution)."""

    def __init__(self, folder, options=None, base=None):
        super().__init__(folder)
        self.http_port = free_port()
        self.config = self.folder / "orthanc.json"
        own = {"DicomAlwaysAllowStore": True, "OverwriteInstances": True, "Plugins": []} if base is None else base
        self.config.write_text(json.dumps({
            **own, "Name": "test", "DicomAet": "ORTHANC", "DicomPort": self.port, "HttpPort": self.http_port,
            "StorageDirectory": str(self.folder / "storage"), "IndexDirectory": str(self.folder / "index"),
            "RemoteAccessAllowed": False, "AuthenticationEnabled": False, **(options or {})}))

    def command(self):
        return ["Orthanc", str(self.config)]

    def is_ready(self):
        try:
            return super().is_ready() and self.rest("/system")
        except urllib.error.URLError:
            return False

    def rest(self, path, body=None, method=None):
        """Calls the REST interface. Returns parsed JSON, or bytes if the response is not JSON."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as response:
            content = response.read()
        with contextlib.suppress(ValueError):
            return json.loads(content)
        return content

    def instances(self):
        """Returns the identifiers of the stored instances."""
        return self.rest("/instances")

    def file(self, instance):
        """Returns the instance as Orthanc stores it, as Part 10 bytes."""
        return self.rest(f"/instances/{instance}/file")


@contextlib.contextmanager
def storescp(folder, options=()):
    """Runs a storescp that accepts associations until the block ends."""
    peer = StoreScp(folder, options)
    try:
        yield peer.start()
    finally:
        peer.stop()


@contextlib.contextmanager
def small_file_system(folder, mebibytes):
    """Mounts a file system of the given size in MiB on a new folder until the block ends."""
    folder.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "noctule-test", folder],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Stalling:
    """A file system that can stall like a network file system: writers block and cannot be killed until it resumes."""

    def __init__(self, folder):
        self.folder = folder

    def stall(self):
        subprocess.run(["fsfreeze", "--freeze", self.folder], check=True)

    def resume(self):
        subprocess.run(["fsfreeze", "--unfreeze", self.folder], check=False, capture_output=True)

    @staticmethod
    def holds(process):
        """Returns whether a thread of the process waits for a device or a file system."""
        with contextlib.suppress(OSError):
            for stat in pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat"):
                if stat.read_text().rpartition(")")[2].split()[0] == "D":
                    return True
        return False


@contextlib.contextmanager
def stalling_file_system(folder, mebibytes):
    """Mounts a Stalling of the given size in MiB on a new folder until the block ends."""
    folder.mkdir(parents=True)
    image = folder.with_suffix(".image")
    with open(image, "wb") as file:
        file.truncate(mebibytes << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True).returncode != 0:
        pytest.skip("mounting a file is not allowed here")
    share = Stalling(folder)
    try:
        yield share
    finally:
        share.resume()
        subprocess.run(["umount", "-l", folder], check=True)


@contextlib.contextmanager
def orthanc(folder, options=None):
    """Runs an Orthanc that answers requests until the block ends."""
    peer = Orthanc(folder, options)
    try:
        yield peer.start()
    finally:
        peer.stop()


def storescu(port, *files, called="NOCTULE", calling="STORESCU", options=(), check=True):
    """Sends files, or the files of folders, with DCMTK's storescu. Returns the CompletedProcess."""
    return subprocess.run(
        ["storescu", "-v", "+sd", "+r", "-aet", calling, "-aec", called, *map(str, options), "127.0.0.1", str(port),
         *map(str, files)],
        check=check, text=True, capture_output=True, env={**os.environ, "TCP_NODELAY": "1"})


def echoscu(port, called="NOCTULE", calling="ECHOSCU", options=(), check=True):
    """Sends a C-ECHO with DCMTK's echoscu. Returns the CompletedProcess."""
    return subprocess.run(
        ["echoscu", "-v", "-aet", calling, "-aec", called, *map(str, options), "127.0.0.1", str(port)],
        check=check, text=True, capture_output=True)


# Timers short enough for a test. All other options have their shipped values.
SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; after = "{after}"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = {quiet}; complete_seconds = 0.3; patience_seconds = {quiet}; }};
jobs = {{ max_attempts = {attempts}; retry_seconds = 0.2; retry_max_seconds = 1.0; }};
compute = {{ lanes = 2; }};
min_free_mib = 1;
log_level = "debug";
pipelines = (
  {{ name = "head-ct";
    segments = (
      {{ label = "Brain"; method = "level-set"; range = [ 0.0, 80.0 ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} );
        category = {{ code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; }};
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} );
    {pipeline_extra}
  }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "head-ct"; priority = 5; }} );
"""


# Peers of all tests that are not about access control.
PEERS = """peers = ( { ae_title = "STORESCU"; }, { ae_title = "ECHOSCU"; }, { ae_title = "DCMSEND"; },
                     { ae_title = "ORTHANC"; }, { ae_title = "PYNETDICOM"; } );"""


class Daemon:
    """A noctuled in a temporary root. Its log is root/../log.

    dicom: further lines of the configuration's dicom group. If given, the daemon listens on a free port of
    127.0.0.1, and, with `certificates`, also on a TLS port. compute: further lines of that group. extra: further
    top-level settings (destinations, delivery)."""

    def __init__(self, folder, after="keep", quiet=1.0, attempts=3, pipeline_extra="", settings=None,
                 environment=None, dicom=None, certificates=None, crl=None, compute="", extra="",
                 programs=BIN):
        self.folder = pathlib.Path(folder)
        self.programs = programs
        self.root = self.folder / "root"
        self.root.mkdir(parents=True, exist_ok=True)
        self.inbox = self.root / "inbox"
        self.inbox.mkdir(exist_ok=True)
        self.config = self.folder / "noctule.conf"
        self.port = free_port() if dicom is not None else None
        self.tls_port = free_port() if certificates else None
        settings = settings or SETTINGS.format(root=self.root, after=after, quiet=quiet, attempts=attempts,
                                               pipeline_extra=pipeline_extra)
        if compute:
            settings = settings.replace("compute = { lanes = 2; }", f"compute = {{ lanes = 2; {compute} }}")
        self.config.write_text(settings + self.dicom_settings(dicom, certificates, crl) + extra)
        self.log = self.folder / "log"
        self.environment = {**os.environ, "NOCTULE_TICK_MS": "200", **(environment or {})}
        self.process = None
        self.database = None  # a connection, only within reading()
        self.is_intruded = False  # its children make system calls that they never make in service

    def dicom_settings(self, dicom, certificates, crl):
        if dicom is None:
            return ""
        tls = ""
        if certificates:
            tls = (f'tls_port = {self.tls_port}; tls = {{ certificate = "{certificates.server}"; '
                   f'key = "{certificates.server_key}"; ca = "{certificates.ca}"; '
                   + (f'crl = "{crl}"; ' if crl else "") + "};")
        return f'dicom = {{ bind = "127.0.0.1"; port = {self.port}; {tls} {dicom} }};\n'

    def start(self, wait=True, arguments=()):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "noctuled", "--config", self.config, *arguments], stderr=log, stdout=log,
                env=self.environment, start_new_session=True,
            )
        if wait:
            wait_for(self.answers, 60, "the daemon's answer")
        return self

    def answers(self):
        assert self.process.poll() is None, f"noctuled ended:\n{self.log.read_text()}"
        ports = [port for port in (self.port, self.tls_port) if port]
        answer = proto.ask(self.root / "run" / "control.sock", "PING")
        return answer is not None and answer["status"] == 0 and all(map(is_listening, ports))

    def stop(self, signal_number=signal.SIGTERM, seconds=60):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal_number)
            self.process.wait(seconds)
        status = self.process.returncode if self.process else None
        self.process = None
        return status

    def kill_all(self):
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)
            self.process = None

    def children(self, role=None):
        """Returns the process IDs of the daemon's children, of one role if given."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError, ValueError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[1]) != self.process.pid:
                    continue
                command = (entry / "cmdline").read_bytes().split(b"\0")
                if b"--role" in command:
                    name = command[command.index(b"--role") + 1].decode()
                    if role in (None, name) and stat[0] != "Z":
                        found.append(int(entry.name))
        return sorted(found)

    @contextlib.contextmanager
    def connection(self):
        path = self.root / "noctule.db"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as database:
            database.row_factory = sqlite3.Row
            yield database

    @contextlib.contextmanager
    def reading(self):
        """Runs the queries of a block on one connection, so that the schema is read once. For one thread only."""
        with self.connection() as self.database:
            try:
                yield
            finally:
                self.database = None

    def query(self, sql, *values):
        """Returns the rows of a read-only query, with an administrator's access. [] if the database does not exist
        yet."""
        try:
            with contextlib.nullcontext(self.database) if self.database else self.connection() as database:
                return database.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if "unable to open" in str(error) or "no such table" in str(error):
                return []
            raise

    def jobs(self, state=None):
        rows = self.query("SELECT * FROM v_jobs ORDER BY job")
        return [row for row in rows if state in (None, row["state"])]

    def wait_jobs(self, count=1, states=("DONE", "EMPTY", "FAILED", "CANCELLED"), seconds=90):
        def ended():
            rows = [row for row in self.jobs() if row["state"] in states]
            return rows if len(rows) >= count else None

        try:
            return wait_for(ended, seconds, f"{count} job(s) in {states}")
        except pytest.fail.Exception:
            print(self.log.read_text()[-8000:])
            raise

    def declare_complete(self, files):
        """Waits until the series of these files has all of them, then completes it with a command, so that the test
        waits for no timer."""
        uid = pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID
        wait_for(lambda: self.query("SELECT 1 FROM v_series WHERE series_uid = ? AND instances >= ?", uid, len(files)), 60,
                 f"{len(files)} instances")
        self.ctl("complete", uid)

    def wait_log(self, text, count=1, seconds=60):
        """Waits for a log line. A process logs an action after its visible effect, so a test must wait for the line."""
        wait_for(lambda: self.log.read_text().count(text) >= count, seconds, f"{text!r} in the log")

    def ctl(self, *arguments, check=True):
        return run_program("noctule", "--config", self.config, *arguments, check=check)


@contextlib.contextmanager
def daemons(folder):
    """Returns a factory of daemons. At the end it kills those still running, and checks that no process remains."""
    made = []

    def make(**options):
        made.append(Daemon(folder / f"daemon{len(made)}", **options))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            each.kill_all()
    for each in made:
        if each.log.exists():
            assert_no_sanitizer_report(each.log.read_text(errors="replace"))
        # a system call without a row in the child's filter (call_filter.c)
        if each.log.exists() and not each.is_intruded:
            assert "event=role.call_unknown" not in each.log.read_text(errors="replace")


@pytest.fixture
def daemon(tmp_path):
    """Returns a factory of daemons for one test."""
    with daemons(tmp_path) as make:
        yield make


def phantom(folder, *arguments):
    """Writes a synthetic series and returns its files, sorted."""
    run_program("noctule-phantom", "--output", folder, *arguments)
    return sorted(path for path in pathlib.Path(folder).rglob("*.dcm"))


def read_truth(path):
    """Returns the output of noctule-phantom --truth: {name of the tissue: mask}, slices first."""
    header, _, data = pathlib.Path(path).read_bytes().partition(b"\n\n")
    keys = dict(re.findall(r"^(.+?):=(.*)$", header.decode(), re.M))
    sizes = [int(n) for n in re.search(r"^sizes: (.*)$", header.decode(), re.M)[1].split()]
    tissues = numpy.frombuffer(data, numpy.uint8).reshape(sizes[::-1])
    count = sum(key.endswith("_Name") for key in keys)
    return {keys[f"Segment{n}_Name"]: tissues == int(keys[f"Segment{n}_LabelValue"]) for n in range(count)}


def uncounted(files):
    """Removes Images in Acquisition from files, so that no header states the number of images."""
    for path in files:
        dataset = pydicom.dcmread(path)
        del dataset.ImagesInAcquisition
        dataset.save_as(path)
    return files


def drop(files, folder):
    """Copies files into a folder in place, as a user's copy does, so that each file grows."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, folder / path.name)


def put(files, folder):
    """Moves copies of files into a folder by rename(), so that the receiver need not wait for stable sizes."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, folder / f"{path.name}.part").rename(folder / path.name)


def assert_valid(path):
    """Checks that dciodvfy reports no error. The spelling of the patient's name is exempt, because results copy it
    unchanged."""
    result = subprocess.run(["dciodvfy", path], text=True, capture_output=True)
    words = [line for line in (result.stdout + result.stderr).splitlines()
             if line.startswith(("Error", "Warning"))
             and not ("Patient's Name" in line and "Retired Person Name form" in line)]
    assert words == [], words
