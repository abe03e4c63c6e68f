"""The queries of the README answer, read-only, beside a running daemon."""

import re
import subprocess

from conftest import SOURCE, drop, phantom


def test_every_query_answers(daemon, tmp_path):
    d = daemon().start()
    drop(phantom(tmp_path / "series", "--size", "32x32x6"), d.inbox)
    d.wait_jobs()
    queries = []
    for page in ("README.md", "docs/database.md"):
        queries += re.findall(r"```sql\n(.*?)```", (SOURCE / page).read_text(), re.S)
    assert len(queries) >= 5
    for query in queries:
        result = subprocess.run(["sqlite3", "-readonly", "-bail", d.root / "noctule.db"], input=query,
                                capture_output=True, text=True)
        assert result.returncode == 0, (query, result.stderr)
    (night,) = d.query("SELECT * FROM v_night")
    assert night.keys()
