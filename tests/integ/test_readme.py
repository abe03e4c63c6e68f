"""SQL queries of README.md, operations.md and database.md run read-only while the daemon runs."""

import re
import subprocess

from conftest import SOURCE, drop, phantom


def test_every_query_answers(daemon, tmp_path):
    d = daemon().start()
    drop(phantom(tmp_path / "series", "--size", "32x32x6"), d.inbox)
    d.wait_jobs()
    queries = []
    for page in ("README.md", "docs/operations.md", "docs/database.md"):
        queries += re.findall(r"```sql\n(.*?)```", (SOURCE / page).read_text(), re.S)
    assert len(queries) >= 7
    for query in queries:
        result = subprocess.run(["sqlite3", "-readonly", "-bail", d.root / "noctule.db"], input=query,
                                capture_output=True, text=True)
        assert result.returncode == 0, (query, result.stderr)
    (night,) = d.query("SELECT * FROM v_night")
    assert night.keys()
