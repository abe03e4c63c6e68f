"""docs/queries.md: every query gives the documented columns, after a report period with every kind of event."""

import csv
import io
import re
import subprocess

import test_report_night
from conftest import SOURCE, wait_for
from test_report_night import night  # noqa: F401 - a fixture

PAGE = SOURCE / "docs" / "queries.md"
TEXTURE = 'deliver = [ "OUT", "PACS" ]; texture = {{ families = [ "shape", "first-order" ]; }};'


def queries():
    """Returns [(question, SQL, names of the documented columns)]."""
    found = re.findall(r"^## ([^\n]+)\n.*?```sql\n(.*?)```\n\n```\n([^\n]+)\n", PAGE.read_text(), re.M | re.S)
    return [(question, sql, columns.split()) for question, sql, columns in found]


def test_every_question_is_answered(request, monkeypatch):
    monkeypatch.setattr(test_report_night, "SETTINGS",
                        test_report_night.SETTINGS.replace('deliver = [ "OUT", "PACS" ];', TEXTURE))
    d = request.getfixturevalue("night")
    wait_for(lambda: d.query("SELECT 1 FROM v_features"), 30, "the features")
    page = queries()
    assert len(page) == PAGE.read_text().count("```sql") >= 20
    for question, sql, columns in page:
        done = subprocess.run(["sqlite3", "-readonly", "-bail", "-header", "-csv", d.root / "noctule.db"], input=sql,
                              capture_output=True, text=True)
        assert done.returncode == 0, (question, done.stderr)
        rows = list(csv.reader(io.StringIO(done.stdout)))
        assert rows and rows[0] == columns, (question, rows[:1])
        assert len(rows) > 1, question
