"""Attempts of a running service's children to use denied files and calls (tests/tools/intruder.c). Needs only pytest
and pydicom."""

import os
import re
import signal
import socket

import pydicom
from conftest import BIN, PEERS, drop, free_port, phantom, wait_for

SMALL = ("--size", "32x32x6")
DELIVERY = 'delivery = { retry_seconds = 0.2; retry_max_seconds = 0.5; };\n'

PROGRAM = 'programs = ( { name = "idle"; command = [ "/bin/true", "{in}", "{out}" ]; algorithm = { name = "idle"; version = "1"; }; } );\n'

# Name, call, path, and the roles that may do it: i(ntake), c(ourier), w(orker), g (GPU worker), p(age), r(uns programs)
DEEDS = """
database        read     {root}/noctule.db              p
database-write  write    {root}/noctule.db              -
root            make     {root}/intruder                -
shadow          read     /etc/shadow                    -
accounts        read     /etc/passwd                    -
secret          read     {outside}/secret               -
outside         make     {outside}/intruder             -
home            list     /root                          -
memory          read     /proc/{test}/mem               -
run             run      {outside}/program              -
fork            fork     -                              -
trace           trace    -                              -
signal          signal   -                              -
mount           mount    -                              -
chmod           chmod    -                              -
control         talk     {root}/run/control.sock        -
library         list     /usr/share                     icwgpr
null            write    /dev/null                      icwgpr
other-process   read     /proc/{test}/stat              g
inbox           read     {inbox}/kept.txt               i
inbox-write     write    {inbox}/kept.txt               -
inbox-make      make     {inbox}/.intruder              -
incoming        make     {root}/incoming/intruder.part  i
series          read     {series}                       iwg
series-write    write    {series}                       i
series-make     make     {root}/series/intruder         i
quarantine      make     {root}/quarantine/intruder     i
jobs            list     {root}/jobs                    iwg
jobs-make       make     {root}/jobs/intruder           -
result          read     {result}                       cwgp
result-write    write    {result}                       wg
result-make     make     {root}/outbox/intruder         wg
destination     make     {out}/intruder                 c
listen          listen   0                              i
connect         connect  {port}                         c
"""
ROLES = {"intake": "i", "courier": "c", "worker": "w", "page": "p", "program": "r"}


class Intruders:
    """A service that has processed and delivered one job. Its children try the deeds on command."""

    def __init__(self, daemon, folder, kernel=None, compute="", environment=None, programs=BIN):
        outside, out = folder / "outside", folder / "out"
        outside.mkdir()
        out.mkdir()
        (outside / "secret").write_text("of others")
        (outside / "program").write_bytes(bytes(64))
        (outside / "program").chmod(0o755)
        deeds = folder / "deeds"
        environment = {"LD_PRELOAD": str(BIN / "libnoctule_intruder.so"), "NOCTULE_DEEDS": str(deeds), **(environment or {})}
        if kernel:
            environment["NOCTULE_KERNEL"] = kernel
        self.daemon = d = daemon(quiet=600.0, dicom=PEERS, pipeline_extra='deliver = [ "OUT" ];', environment=environment,
                                 programs=programs, compute=compute, extra=DELIVERY + PROGRAM + f'destinations = ( {{ name = "OUT"; folder = "{out}"; }} );\n'
                                 f"page = {{ port = {free_port()}; }};\n")
        d.is_intruded = True
        (d.inbox / "kept.txt").write_text("no image")
        files = phantom(folder / "in", *SMALL)
        first = pydicom.dcmread(files[0], stop_before_pixels=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        text = DEEDS.strip().format(
            root=d.root, outside=outside, test=os.getpid(), inbox=d.inbox, out=out,
            series=d.root / "series" / first.SeriesInstanceUID / f"{first.SOPInstanceUID}.dcm",
            result=d.root / "outbox" / "1" / "seg.dcm", port=self.listener.getsockname()[1])
        self.may = {row.split()[0]: row.split()[3] for row in text.splitlines()}
        deeds.write_text("".join(" ".join(row.split()[:3]) + "\n" for row in text.splitlines()))
        d.start()
        drop(files, d.inbox)
        d.wait_jobs(states=("DONE",))
        wait_for(lambda: len(d.query("SELECT 1 FROM v_deliveries WHERE state = 'SENT'")) == 1, 60, "the delivery")

    def deeds(self, role):
        """Returns the result of each deed by a child of this role, by name: 0, or the errno."""
        (pid,) = self.daemon.children(role)
        os.kill(pid, signal.SIGUSR2)
        pattern = re.compile(rf"event=intruder.deed pid={pid} deed=(\S+) errno=(\d+)")
        found = wait_for(lambda: len(found := pattern.findall(self.daemon.log.read_text())) == len(self.may) and found,
                         20, f"the deeds of the {role}")
        return {name: int(error) for name, error in found}

    def done(self, role):
        return {name for name, error in self.deeds(role).items() if error == 0}

    def check_service(self, folder):
        """Checks that the service still receives, segments and delivers a further series."""
        d = self.daemon
        wanted = len(d.jobs()) + 1
        drop(phantom(folder / "more", *SMALL, "--seed", "2"), d.inbox)
        wait_for(lambda: len(d.query("SELECT 1 FROM v_deliveries WHERE state = 'SENT'")) == wanted, 60, "every delivery")
        assert "died" not in d.ctl("status", check=False).stdout
        self.listener.close()
        assert d.stop() == 0
