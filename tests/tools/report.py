#!/usr/bin/env python3
"""
Reads the JUnit files of CTest for tests/run.sh.

    report.py failures FILE          prints the output of each failed test
    report.py again FILE             prints the failed tests if all may run again; otherwise fails
    report.py unsteady FILE          prints a line for tests/unsteady.txt per failed test
    report.py summary STATUS FOLDER  prints skipped tests, the slowest tests and the counts of all files of the folder
    report.py seconds FILE...        writes the seconds of each test into the table of tests/README.md
"""

import datetime
import pathlib
import re
import sys
import xml.etree.ElementTree

SECOND_TRIES = 3
TABLE = pathlib.Path(__file__).resolve().parents[1] / "README.md"


class Test:
    """Test of a JUnit file: name, seconds, state (passed, failed or skipped) and output."""

    def __init__(self, case):
        self.name = case.get("name")
        self.seconds = float(case.get("time") or 0)
        self.output = case.findtext("system-out") or ""
        self.state = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")

    def cause(self):
        """Returns the first assertion or error of the output."""
        found = re.search(r"^(?:E  +|.*\b(?:[Ee]rror|FAILED|Failure)\b).*$", self.output, re.M)
        return re.sub(r"^E\s+", "", found[0])[:160] if found else "no message"

    def skips(self):
        """Yields the reasons of skipped cases, and of a test that is skipped as a whole."""
        if self.state == "skipped":
            yield self.output.strip().splitlines()[-1] if self.output.strip() else "no reason"
        yield from re.findall(r"^SKIPPED (.*)$", self.output, re.M)


def tests_of(path):
    text = re.sub(r"[^\t\n\r\x20-\uFFFF]", "?", pathlib.Path(path).read_text(errors="replace"))
    return [Test(case) for case in xml.etree.ElementTree.fromstring(text).iter("testcase")]


def failed(path):
    return [test for test in tests_of(path) if test.state == "failed"]


def failures(path):
    for test in failed(path):
        print(f"---- {test.name} failed after {test.seconds:.1f} s\n{test.output[-12000:]}")


def again(path):
    """Programs and peers may be late on a busy machine, so their tests may run again. Others must pass at once."""
    names = failed(path)
    for test in names:
        if not test.name.startswith(("integ.", "fault.")) or re.search(r"ERROR: \w+Sanitizer|runtime error:", test.output):
            sys.exit(1)
    if not names or len(names) > SECOND_TRIES:
        sys.exit(1)
    print(" ".join(test.name for test in names))


def unsteady(path):
    for test in failed(path):
        print(f"{datetime.date.today()} {test.name}: {test.cause()}")


def summary(status, folder):
    """Counts each test once, by its last try."""
    tests = {}
    for path in sorted(pathlib.Path(folder).glob("*.xml*")):
        if path.suffix != ".log":
            tests.update(((path.name.partition(".")[0], test.name), test) for test in tests_of(path))
    skipped = sorted({f"{test.name}: {reason}" for test in tests.values() for reason in test.skips()})
    print("".join(f"skipped: {line}\n" for line in skipped), end="")
    print("slowest tests:")
    for test in sorted(tests.values(), key=lambda test: -test.seconds)[:10]:
        print(f"  {test.seconds:7.1f} s  {test.name}")
    count = {state: sum(test.state == state for test in tests.values()) for state in ("passed", "failed", "skipped")}
    if int(status) and not count["failed"]:
        print("tests/run.sh failed outside the tests: see above")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")


def seconds(*paths):
    times = {test.name: test.seconds for path in paths for test in tests_of(path) if test.state == "passed"}

    def row(found):
        return f"{found[1]}| {times[found[2]]:.1f} |" if found[2] in times else found[0]

    TABLE.write_text(re.sub(r"(?m)^(\| `([a-z0-9_.]+)` \| [^|]* )\| [^|]*\|", row, TABLE.read_text()))


if __name__ == "__main__":
    {"failures": failures, "again": again, "unsteady": unsteady, "summary": summary, "seconds": seconds}[sys.argv[1]](
        *sys.argv[2:])
