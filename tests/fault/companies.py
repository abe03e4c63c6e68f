"""Grouping of injected faults into lives (test_injected.py). A life costs the start of five processes, and faults in
different processes hardly affect each other. So each life has some faults in every process, either all once or all
permanent."""

import collections

# Maximum per role in one life for faults that occur once. A dead child restarts after a delay that doubles each time.
MOST, MOST_OF_DAEMON = 3, 16


def most(case, crowded):
    if case.always or not crowded:
        return 1
    return MOST_OF_DAEMON if case.role == "daemon" else MOST


def share_out(cases, crowded):
    """Returns companies of one operation, either all once or all permanent: at most one case per role or, if crowded,
    a few."""
    kinds = collections.defaultdict(lambda: collections.defaultdict(list))
    for case in cases:
        kinds[case.operation, case.always][case.role].append(case)
    for roles in kinds.values():
        count = max(-(-len(of_role) // most(of_role[0], crowded)) for of_role in roles.values())
        for i in range(count):
            yield tuple(case for of_role in roles.values() for case in of_role[i::count])


class Verdicts:
    """Results of cases. outcomes: "well", "restarted", "unreached" or "failed" of each finished case. again: cases
    that did not reach their fault in company. alone: cases of failed companies, which are repeated alone to find
    the faulty one."""

    def __init__(self):
        self.outcomes, self.again, self.alone, self.failed_companies = {}, [], [], []

    def take(self, company, came, restarted, wrong):
        """Records a life and the cases that reached their faults, possibly of other companies. Returns the cases
        finished by it."""
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
        """Returns the cases for another try."""
        again, self.again = [case for case in self.again if case not in self.outcomes], []
        return again

    def failed(self):
        """Returns the names of failures: cases, and companies without a case that fails alone."""
        cases = [str(case) for case, outcome in self.outcomes.items() if outcome == "failed"]
        return cases + ["+".join(map(str, company)) for company in self.failed_companies
                        if not any(self.outcomes.get(case) == "failed" for case in company)]
