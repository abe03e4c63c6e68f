"""All pages, and the API, with 100,000 series (NOCTULE_SERIES), one per 100 s (NOCTULE_STEP)."""

import html
import json
import os
import pathlib
import re
import urllib.parse

from conftest import daemons, wait_for
from test_lists import chips, fill_lists, plain_site
from test_page import PAGES

MANY = int(os.environ.get("NOCTULE_SERIES", "100000"))
STEP = float(os.environ.get("NOCTULE_STEP", "100"))
TIMES = os.environ.get("NOCTULE_TIMES")


def filters_of(site, list_name):
    """Every filter of a list with a value that finds many rows, one that finds few, and one that finds none; and every order."""
    operation = json.loads(site.text("api/v1/openapi.json"))["paths"][f"/api/v1/{list_name}"]["get"]
    for parameter in operation["parameters"]:
        schema = parameter["schema"]
        if parameter["name"] in ("after", "limit", "format"):
            continue
        values = schema.get("enum") or (["7d", "2026-01-01"] if "anyOf" in schema else ["60", "1"] if schema["type"] != "string" else
                                        ["CT", "PACS", "thorax", "nothing at all", "1.2.3.77", "4711"])
        yield from (f"{parameter['name']}={urllib.parse.quote(value)}" for value in values)


class Meter:
    """The CPU time of the process of the web UI: it does not depend on what else the machine does."""

    def __init__(self, daemon):
        children = [entry for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and self.is_page(entry, daemon)]
        (self.process,) = children

    @staticmethod
    def is_page(entry, daemon):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            return b"page" in words and (entry / "stat").read_text().split()[3] == str(daemon.process.pid)
        except OSError:
            return False

    def milliseconds(self):
        return sum(int((task / "schedstat").read_text().split()[0]) for task in (self.process / "task").iterdir()) / 1e6


def answer(site, address):
    """Waits for an answer, after "#" to a form with that text: a query that gets no CPU time ends after five seconds."""
    got, (path, _, text) = [], address.partition("#")
    body = {"method": "POST", "body": urllib.parse.urlencode({"text": text}), "Origin": f"http://127.0.0.1:{site.port}",
            "Content_Type": "application/x-www-form-urlencoded"} if text else {}
    wait_for(lambda: got.append(site.ask(path, **body)) or got[-1][0] != 503, 300, address)
    assert got[-1][0] == 200, (address, got[-1][2])
    return got[-1][2].decode()


def test_lists_of_100_000_series(tmp_path_factory):
    """Every filter, order and page answers. The file NOCTULE_TIMES receives the CPU milliseconds of each, the best of three."""
    folder = tmp_path_factory.mktemp("many")
    with daemons(folder) as daemon:
        site = plain_site(daemon, folder)
        fill_lists.fill(site.daemon.root / "noctule.db", MANY, step=STEP)
        fill_lists.fill_beside(site.daemon.root / "noctule.db")
        addresses = [*PAGES, "api/v1/status", "api/v1/groups", "api/v1/trends", "api/v1/destinations"]
        addresses += [f"{page}?{value}" for name in ("work", "deliveries") for page in (name, f"api/v1/{name}")
                      for value in filters_of(site, name)]
        addresses += [html.unescape(re.search(r'<a rel="next" href="([^"]*)">', answer(site, page))[1]) for page in ("work", "deliveries")]
        middle = json.loads(answer(site, "api/v1/work?before=30d&limit=1"))["next"]
        addresses += ["work?after=" + urllib.parse.quote(middle)] if middle else []
        addresses += [f"{page}#{text}" for page in ("work", "api/v1/found") for text in ("thorax", "1.2.3.77", "nothing at all")]
        times, meter = {}, Meter(site.daemon)
        for address in addresses:
            tries = []
            for _ in range(3 if TIMES else 1):
                start = meter.milliseconds()
                answer(site, address)
                tries.append(meter.milliseconds() - start)
            times[address] = min(tries)
        slowest = sorted(times.items(), key=lambda item: -item[1])
        if TIMES:
            pathlib.Path(TIMES).write_text("".join(f"{ms:7.1f} {address}\n" for address, ms in slowest))
        assert slowest[0][1] < 2000, slowest[:3]  # a query that reads every row for each row
        (works,) = site.daemon.query("SELECT count(*) AS n FROM v_work")
        assert chips(answer(site, "work"))["All"][0] == works["n"] == MANY
