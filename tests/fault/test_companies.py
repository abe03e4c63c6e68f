"""Fault cases in companies: all are tried, and unreached cases or cases of a failed company do not count as passed."""

import collections

from companies import MOST, MOST_OF_DAEMON, Verdicts, share_out

Case = collections.namedtuple("Case", "operation role call n always")
ONE, TWO, OTHER = (Case("work", role, "open", n, False) for role, n in (("daemon", 1), ("intake", 2), ("intake", 3)))


def test_each_case_is_in_exactly_one_company():
    cases = [Case(operation, role, "malloc", n, always) for operation in ("work", "upkeep") for always in (False, True)
             for role, count in (("daemon", 70), ("intake", 9), ("page", 1)) for n in range(count)]
    for crowded in (True, False):
        companies = list(share_out(cases, crowded))
        assert sorted(case for company in companies for case in company) == sorted(cases)
        for company in companies:
            assert len({(case.operation, case.always) for case in company}) == 1
            for role, count in collections.Counter(case.role for case in company).items():
                most = (MOST_OF_DAEMON if role == "daemon" else MOST) if crowded and not company[0].always else 1
                assert count <= most


def test_unreached_cases_are_tried_again_and_finally_alone():
    verdicts = Verdicts()
    assert verdicts.take((ONE, TWO), {ONE}, False, "") == {ONE}
    assert verdicts.left() == [TWO] and verdicts.left() == []
    assert verdicts.take((TWO,), set(), False, "") == {TWO}
    assert verdicts.outcomes == {ONE: "well", TWO: "unreached"} and verdicts.failed() == []


def test_a_case_reached_by_another_is_finished():
    verdicts = Verdicts()
    verdicts.take((TWO, OTHER), {TWO}, False, "")
    assert verdicts.take((ONE,), {ONE, OTHER}, True, "") == {ONE, OTHER}
    assert verdicts.left() == [] and verdicts.outcomes[OTHER] == "restarted"
    assert verdicts.take((TWO,), {TWO}, True, "") == {TWO} and verdicts.outcomes[TWO] == "restarted"


def test_cases_of_a_failed_company_are_tried_alone():
    verdicts = Verdicts()
    assert verdicts.take((ONE, TWO), {ONE, TWO}, False, "wrong") == []
    assert verdicts.alone == [ONE, TWO] and verdicts.left() == []
    assert verdicts.failed() == [f"{ONE}+{TWO}"]  # until another case has failed
    verdicts.take((ONE,), {ONE}, False, "")
    verdicts.take((TWO,), {TWO}, False, "wrong")
    assert verdicts.outcomes == {ONE: "well", TWO: "failed"} and verdicts.failed() == [str(TWO)]
