"""The systemd unit: its exposure by systemd-analyze (0: closed, 10: open)."""

import re
import shutil
import subprocess

import pytest
from conftest import SOURCE

UNIT = (SOURCE / "systemd" / "noctule.service").read_text().replace("@bindir@", "/usr/bin")
GPU, PROGRAMS = (SOURCE / "systemd" / f"{name}.conf" for name in ("gpu", "programs"))


def exposure(folder, text, drop_in=None):
    folder.mkdir()
    (folder / "noctule.service").write_text(text)
    if drop_in:
        (folder / "noctule.service.d").mkdir()
        shutil.copy(drop_in, folder / "noctule.service.d")
    told = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", folder / "noctule.service"],
                          text=True, capture_output=True)
    (level,) = re.findall(r"Overall exposure level for noctule.service: ([0-9.]+)", told.stdout)
    return float(level), told.stdout


@pytest.mark.parametrize("drop_in, most", [(None, 1.0), (GPU, 1.3), (PROGRAMS, 2.9)],
                         ids=["unit", "with GPUs", "with programs"])
def test_exposure(tmp_path, drop_in, most):
    level, told = exposure(tmp_path / "unit", UNIT, drop_in)
    assert level <= most, told


@pytest.mark.parametrize("option", ["NoNewPrivileges", "ProtectSystem", "SystemCallFilter", "CapabilityBoundingSet",
                                    "PrivateUsers", "RestrictNamespaces", "IPAddressDeny"])
def test_removed_rights_are_reported(tmp_path, option):
    level, _ = exposure(tmp_path / "unit", re.sub(rf"(?m)^{option}=.*$", "", UNIT))
    assert level > 1.0


def test_the_children_may_confine_themselves():
    """Calls outside the groups of systemd's filter that the service makes itself."""
    allowed = " ".join(re.findall(r"(?m)^SystemCallFilter=([^~].*)$", UNIT)).split()
    assert {"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "prlimit64"} <= set(allowed)


def test_a_reload_runs_the_waiting_command():
    """Errors that a restart cannot repair stop the restarts: 2 arguments, 5 configuration, 9 lost database
    (noctuled(8))."""
    assert re.findall(r"(?m)^Exec(\w+)=(.*)$", UNIT) == [
        ("Start", "/usr/bin/noctuled --config /etc/noctule/noctule.conf"),
        ("Reload", "/usr/bin/noctule --config /etc/noctule/noctule.conf reload")]
    assert "\nRestartPreventExitStatus=2 5 9\n" in UNIT


@pytest.mark.parametrize("drop_in", [GPU, PROGRAMS], ids=lambda path: path.name)
def test_the_manual_has_the_drop_in(drop_in):
    manual = (SOURCE / "docs" / "noctuled.8").read_text()
    for line in drop_in.read_text().splitlines():
        assert line.startswith("#") or f"\n{line}\n" in manual, line
    assert f"systemd/{drop_in.name}" in manual
