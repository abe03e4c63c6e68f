"""
Which cases of injected faults share a life (test_injected.py). A life costs what five processes cost that start, and a fault
in one of them is of little account to the others: so each life has some in every process, all once or all for good.
"""

import collections

# Of a role in one life, where they come once: a child that dies is started again after a while that doubles each time.
MOST, MOST_OF_DAEMON = 3, 16


def most(case, crowded):
    if case.always or not crowded:
        return 1
    return MOST_OF_DAEMON if case.role == "daemon" else MOST


def share_out(cases, crowded):
    """Companies of one operation, all once or all for good: of each role one at most or, crowded, a few."""
    kinds = collections.defaultdict(lambda: collections.defaultdict(list))
    for case in cases:
        kinds[case.operation, case.always][case.role].append(case)
    for roles in kinds.values():
        count = max(-(-len(of_role) // most(of_role[0], crowded)) for of_role in roles.values())
        for i in range(count):
            yield tuple(case for of_role in roles.values() for case in of_role[i::count])


class Verdicts:
    """
    What became of cases. outcomes: "well", "restarted", "unreached" or "failed" of each that is settled; again: those that did
    not come to their fault in company; alone: those of companies that failed, of which nobody knows whose fault it was.
    """

    def __init__(self):
        self.outcomes, self.again, self.alone, self.failed_companies = {}, [], [], []

    def take(self, company, came, restarted, wrong):
        """Of a life: which cases came to their faults, others than the company's perhaps. Returns those that are settled now."""
        if len(company) > 1 and wrong:
            self.failed_companies.append(company)
            self.alone += company
            return []
        missed = [case for case in company if case not in came]
        settled = {case for case in came if case not in self.outcomes}
        if len(company) > 1:
            self.again += missed
        else:
            settled |= {*company}
        outcome = "failed" if wrong else "restarted" if restarted else "well"
        self.outcomes.update({case: outcome if wrong or case in came else "unreached" for case in settled})
        return settled

    def left(self):
        """Those to be tried again, once more."""
        again, self.again = [case for case in self.again if case not in self.outcomes], []
        return again

    def failed(self):
        """The names of what failed: cases, and companies none of which fails alone."""
        cases = [str(case) for case, outcome in self.outcomes.items() if outcome == "failed"]
        return cases + ["+".join(map(str, company)) for company in self.failed_companies
                        if not any(self.outcomes.get(case) == "failed" for case in company)]
