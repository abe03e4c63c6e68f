"""Acceptance of the shipped presets on phantoms, patients and their variants: no result is wrong and DONE. Prints the share
that is right and DONE."""

import sys

import pytest
from conftest import SHARED, SOURCE, needs_shared

sys.path.insert(0, str(SOURCE / "tests" / "tools"))
import accept_presets  # noqa: E402


def assert_accepted(table, capsys):
    with capsys.disabled():
        print(f"\n{table.summary()}")
    assert table.rows and not table.wrong()


@pytest.mark.parametrize("kind", accept_presets.PHANTOMS)
def test_no_phantom_is_wrong_and_done(kind, capsys):
    assert_accepted(accept_presets.accept(None, f"phantom {kind} "), capsys)


@needs_shared
@pytest.mark.parametrize("name", accept_presets.SERIES)
def test_no_patient_is_wrong_and_done(name, capsys):
    assert_accepted(accept_presets.accept(SHARED, name), capsys)
