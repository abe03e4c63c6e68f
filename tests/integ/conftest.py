"""What the integration tests share: where the programs are, a daemon in a temporary root, DICOM peers, waiting."""

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
import pydicom
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED = SOURCE.parent / "shared" / "data"
BIN = pathlib.Path(os.environ.get("NOCTULE_BIN", SOURCE / "build" / "ci" / "bin"))

SANITIZED = "ASAN_OPTIONS" in os.environ  # programs under AddressSanitizer (tests/CMakeLists.txt)
EMULATED = BIN / "emulated"  # the programs whose CUDA is tests/emulator/

needs_emulator = pytest.mark.skipif("NOCTULE_NO_EMULATOR" in os.environ,  # as the build says, not what it left behind
                                    reason="built without the CUDA backend")
limits_memory = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer needs more memory than this test allows")
released_only = pytest.mark.skipif(SANITIZED, reason="runs with release code, in integ.released")
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the real series are not here")


def wait_for(condition, seconds=60, what="the condition"):
    """
    Calls condition() until it returns something true, and returns that; fails at the deadline. What takes long is
    asked for less often: a question may cost as much as what is waited for.
    """
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
    """A time of the database as people read it, in the time zone of this process."""
    return datetime.datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")


def run_program(name, *arguments, check=True, **options):
    """Runs one of the project's programs to its end and returns the CompletedProcess."""
    done = subprocess.run([BIN / name, *map(str, arguments)], text=True, capture_output=True, **options)
    assert_no_sanitizer_report(done.stderr)
    if check:
        done.check_returncode()
    return done


def assert_no_sanitizer_report(text):
    """A sanitizer build stops a process at its first error. Another process may hide that, its report does not."""
    report = re.search(r"(ERROR: \w+Sanitizer|: runtime error:)[\s\S]*", text)
    assert not report, report[0][:8000]


def open_files(pid):
    """What a process has open, as the kernel names it; less what it opens or closes meanwhile."""
    found = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(entry))
    return found


held_ports = []  # sockets that hold the ports of this run


def free_port():
    """
    Takes a free TCP port from the kernel and holds it until this run ends. A bound socket that does not listen lets
    another socket with SO_REUSEADDR listen on its port; the kernel gives the port to no other caller.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))
    held_ports.append(holder)
    return holder.getsockname()[1]


def is_listening(port, process="self"):
    """
    Does somebody listen on the port, in the network of that process? Asks the kernel, so that a listener sees no connection of ours.
    """
    for table in ("tcp", "tcp6"):
        lines = pathlib.Path(f"/proc/{process}/net", table).read_text().splitlines()[1:]
        for local, state in ((line.split()[1], line.split()[3]) for line in lines):
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                return True
    return False


class Certificates:
    """
    PEM files of a small hospital: ca; server and client with their keys, vouched for by ca; stranger,
    which an authority vouches for that nobody believes in (stranger_ca); elsewhere, which ca vouches for on another
    host; branch with its chain, which another authority vouches for (branch_ca), and ca for that.
    """

    kinds = {"elsewhere": ("rsa:2048",)}  # the others have the kind that is generated faster

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
        """A revocation list of the authority with these certificates: its path."""
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
        """The lists of ca, with these certificates, and of branch_ca in one file: its path."""
        path = self.revocations(*names)
        path.write_bytes(path.read_bytes() + self.revocations(authority="branch_ca").read_bytes())
        return path

    def fingerprint(self, name):
        """SHA-256 of the certificate, as openssl prints it: "8C:1F:..."."""
        done = subprocess.run(["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", getattr(self, name)],
                              check=True, text=True, capture_output=True)
        return done.stdout.strip().rpartition("=")[2]

    def dcmtk(self, name):
        """Options with which a tool of DCMTK shows this certificate and believes in ca."""
        return ["+tls", str(getattr(self, f"{name}_key")), str(getattr(self, name)), "+cf", str(self.ca)]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


class Clock:
    """The clocks of the processes that have this `environment`; a test moves them (tests/tools/faults.c)."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder, "clock")
        if not self.path.exists():
            self.path.write_bytes(bytes(16))
        self.environment = {"LD_PRELOAD": str(BIN / "libnoctule_faults.so"), "NOCTULE_CLOCK": str(self.path)}

    def jump(self, seconds):
        """Sets the wall clock forward, or back; the monotonic clocks do not move."""
        self.move(0, seconds)

    def pass_time(self, seconds):
        """Moves all clocks forward: timers of so many seconds expire at once."""
        self.move(8, seconds)

    def move(self, place, seconds):
        with open(self.path, "r+b") as file:  # in place: it is mapped
            file.seek(place)
            (now,) = struct.unpack("=q", file.read(8))
            file.seek(place)
            file.write(struct.pack("=q", now + int(seconds * 1e9)))


# Divides the 10 s that a command waits for the daemon (tests/tools/faults.c).
HURRY = {"LD_PRELOAD": str(BIN / "libnoctule_faults.so"), "NOCTULE_HURRY": "10"}


class Peer:
    """A program that listens on a port of its own; stop() and start() make an archive that is down for a while."""

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
        """Ends it at once, with what it has forked."""
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)
            self.process = None


class StoreScp(Peer):
    """DCMTK's storescp, which keeps what it gets in `folder`, one file an instance."""

    def __init__(self, folder, options=()):
        super().__init__(folder)
        self.options = list(map(str, options))

    def command(self):
        return ["storescp", "--fork", "--bit-preserving", "--output-directory", str(self.folder), *self.options,
                str(self.port)]

    def files(self):
        return sorted(path for path in self.folder.iterdir() if path.is_file())


def debian_orthanc():
    """Orthanc's configuration as the package installs it: JSON with comments."""
    text = pathlib.Path("/etc/orthanc/orthanc.json").read_text()
    without = re.sub(r'("(?:\\.|[^"\\])*")|/\*.*?\*/|//[^\n]*', lambda found: found[1] or "", text, flags=re.DOTALL)
    return json.loads(without)


class Orthanc(Peer):
    """
    Orthanc with a database of its own, AE title ORTHANC; `options` go over its configuration, which goes over
    `base`: nothing, or the distribution's.
    """

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
        """Calls the REST interface; the answer as JSON, or as bytes where it is none."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_port}{path}", data=data, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as response:
            content = response.read()
        with contextlib.suppress(ValueError):
            return json.loads(content)
        return content

    def instances(self):
        """Identifiers of what it holds."""
        return self.rest("/instances")

    def file(self, instance):
        """The object as Orthanc holds it, Part 10."""
        return self.rest(f"/instances/{instance}/file")


@contextlib.contextmanager
def storescp(folder, options=()):
    """A storescp that listens, and ends with the block."""
    peer = StoreScp(folder, options)
    try:
        yield peer.start()
    finally:
        peer.stop()


@contextlib.contextmanager
def small_file_system(folder, mebibytes):
    """A file system of so many MiB on a new folder, which is gone with the block."""
    folder.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "noctule-test", folder],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Stalling:
    """A file system that may stall as one over a network does: who writes waits, and cannot be killed, until it goes on."""

    def __init__(self, folder):
        self.folder = folder

    def stall(self):
        subprocess.run(["fsfreeze", "--freeze", self.folder], check=True)

    def go_on(self):
        subprocess.run(["fsfreeze", "--unfreeze", self.folder], check=False, capture_output=True)

    @staticmethod
    def holds(process):
        """Does one of its threads wait for a device or a file system?"""
        with contextlib.suppress(OSError):
            for stat in pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat"):
                if stat.read_text().rpartition(")")[2].split()[0] == "D":
                    return True
        return False


@contextlib.contextmanager
def stalling_file_system(folder, mebibytes):
    """A Stalling of so many MiB on a new folder, which is gone with the block."""
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
        share.go_on()
        subprocess.run(["umount", "-l", folder], check=True)


@contextlib.contextmanager
def orthanc(folder, options=None):
    """An Orthanc that answers, and ends with the block."""
    peer = Orthanc(folder, options)
    try:
        yield peer.start()
    finally:
        peer.stop()


def storescu(port, *files, called="NOCTULE", calling="STORESCU", options=(), check=True):
    """Sends files, or what is in folders, with DCMTK's storescu; the CompletedProcess."""
    return subprocess.run(
        ["storescu", "-v", "+sd", "+r", "-aet", calling, "-aec", called, *map(str, options), "127.0.0.1", str(port),
         *map(str, files)],
        check=check, text=True, capture_output=True, env={**os.environ, "TCP_NODELAY": "1"})


def echoscu(port, called="NOCTULE", calling="ECHOSCU", options=(), check=True):
    """Asks with DCMTK's echoscu; the CompletedProcess."""
    return subprocess.run(
        ["echoscu", "-v", "-aet", calling, "-aec", called, *map(str, options), "127.0.0.1", str(port)],
        check=check, text=True, capture_output=True)


# Timers short enough for a test; everything else as shipped.
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


# Who calls in tests that are not about who may call.
PEERS = """peers = ( { ae_title = "STORESCU"; }, { ae_title = "ECHOSCU"; }, { ae_title = "DCMSEND"; },
                     { ae_title = "ORTHANC"; }, { ae_title = "PYNETDICOM"; } );"""


class Daemon:
    """
    A noctuled of its own in a temporary root; its log is kept in root/../log.

    dicom: what stands in the configuration's dicom group beside bind and port; with it the daemon
    listens on a free port of 127.0.0.1, and with `certificates` also on another by TLS.
    extra: further top-level settings (destinations, delivery).
    """

    def __init__(self, folder, after="keep", quiet=1.0, attempts=3, pipeline_extra="", settings=None,
                 environment=None, dicom=None, certificates=None, crl=None, extra="",
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
        self.config.write_text(settings + self.dicom_settings(dicom, certificates, crl) + extra)
        self.log = self.folder / "log"
        self.environment = {**os.environ, "NOCTULE_TICK_MS": "200", **(environment or {})}
        self.process = None
        self.database = None  # a connection, while reading()
        self.is_intruded = False  # its children are made to do what they never do

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
        return self.ctl("ping", check=False).returncode == 0 and all(map(is_listening, ports))

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
        """Process IDs of the daemon's children, those of one role if given."""
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
        """The queries of a block by one connection, which need not read the schema each; of one thread."""
        with self.connection() as self.database:
            try:
                yield
            finally:
                self.database = None

    def query(self, sql, *values):
        """Rows of a read-only query, as an administrator would ask; [] while there is no database."""
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
        """Waits until the series of these files has them all, then declares it complete: no timer is waited for."""
        uid = pydicom.dcmread(files[0], stop_before_pixels=True).SeriesInstanceUID
        wait_for(lambda: self.query("SELECT 1 FROM v_series WHERE series_uid = ? AND instances >= ?", uid, len(files)), 60,
                 f"{len(files)} instances")
        self.ctl("complete", uid)

    def wait_log(self, text, count=1, seconds=60):
        """What a process does it tells afterwards: who has seen it done waits for its line."""
        wait_for(lambda: self.log.read_text().count(text) >= count, seconds, f"{text!r} in the log")

    def ctl(self, *arguments, check=True):
        return run_program("noctule", "--config", self.config, *arguments, check=check)


@contextlib.contextmanager
def daemons(folder):
    """Makes daemons; those still running are killed at the end, and leave no process behind."""
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
        if each.log.exists() and not each.is_intruded:  # a call that the child's filter has no row for (call_filter.c)
            assert "event=role.call_unknown" not in each.log.read_text(errors="replace")


@pytest.fixture
def daemon(tmp_path):
    """Makes daemons for one test."""
    with daemons(tmp_path) as make:
        yield make


def phantom(folder, *arguments):
    """Writes a synthetic series and returns its files, sorted."""
    run_program("noctule-phantom", "--output", folder, *arguments)
    return sorted(path for path in pathlib.Path(folder).rglob("*.dcm"))


def read_truth(path):
    """What noctule-phantom --truth wrote: {name of the tissue: mask}, slices first."""
    header, _, data = pathlib.Path(path).read_bytes().partition(b"\n\n")
    keys = dict(re.findall(r"^(.+?):=(.*)$", header.decode(), re.M))
    sizes = [int(n) for n in re.search(r"^sizes: (.*)$", header.decode(), re.M)[1].split()]
    tissues = numpy.frombuffer(data, numpy.uint8).reshape(sizes[::-1])
    count = sum(key.endswith("_Name") for key in keys)
    return {keys[f"Segment{n}_Name"]: tissues == int(keys[f"Segment{n}_LabelValue"]) for n in range(count)}


def uncounted(files):
    """Takes Images in Acquisition from files, so that nothing says how many the series has."""
    for path in files:
        dataset = pydicom.dcmread(path)
        del dataset.ImagesInAcquisition
        dataset.save_as(path)
    return files


def drop(files, folder):
    """Copies files into a folder the way people do: each in place, growing."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, folder / path.name)


def put(files, folder):
    """Moves copies of files into a folder by rename(), so that the receiver need not wait until they have settled."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        shutil.copy(path, folder / f"{path.name}.part").rename(folder / path.name)


def assert_valid(path):
    """dciodvfy finds nothing to say, but for how the source spells its patient, which is copied as it is."""
    result = subprocess.run(["dciodvfy", path], text=True, capture_output=True)
    words = [line for line in (result.stdout + result.stderr).splitlines()
             if line.startswith(("Error", "Warning"))
             and not ("Patient's Name" in line and "Retired Person Name form" in line)]
    assert words == [], words
