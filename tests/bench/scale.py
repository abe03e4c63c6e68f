#!/usr/bin/env python3
"""
Simulates noctuled and a Slurm by events, to predict more nodes and series than are available. Needs only Python and its
standard library. The same inputs, settings and seed print the same result.

  scale.py [--inputs FILE] [--job NAME] [--set NAME=VALUE]...    one run, as JSON
  scale.py [--inputs FILE] --table | --variants | --chart        the tables and the chart of docs/scale.md

Settings are those of SETTINGS below, and the measurements in FILE (scale_measure.py). Every run begins with all series READY.

    READY -> daemon picks, commits -> a thread of the child makes folders, sbatch -> Slurm's queue -> a slot of a node:
    read, digest, compute, write -> manifest -> found at a poll -> a thread of the child collects it -> daemon commits: DONE

Shared resources: the daemon, one thread with a commit per turn; the child's threads, which serve requests in order;
the share, with its bandwidth divided among its current readers and writers; Slurm, which lists live tasks and those that
ended less than MinJobAge ago. A lost node also loses its running tasks until Slurm notices.
"""

import argparse
import collections
import heapq
import itertools
import json
import math
import pathlib
import random
import types

INPUTS = pathlib.Path(__file__).with_name("scale.json")
PICKS_MOST, GROUP_MOST = 256, 256  # EXECUTOR_MAX_PICKS; GROUP_MOST of service/daemon/slurm/slurm_executor.c
TICK_SECONDS = 1.0

SETTINGS = {
    "series": 1000, "nodes": 1, "slots": 1, "seed": 1,
    # noctule.conf, compute.slurm and jobs; slurm.conf
    "batch_seconds": 60.0, "max_submitted": 2000, "poll_seconds": 5.0, "retry_seconds": 60.0, "max_attempts": 3,
    "min_job_age_seconds": 600.0,
    # the service: threads of the child; max concurrent requests to it, 0: no limit
    "child_threads": 16, "submits_at_a_time": 12, "collects_a_poll": 0,
    # the share: total bandwidth, and max per file
    "share_bytes_per_second": 1.25e9, "flow_bytes_per_second": 1.25e9,
    # images: have the digest from their receipt; are on the share, so that they are not copied
    "is_digested": True, "is_seen": False,
    # nodes
    "losses_per_node_hour": 0.0, "noticed_seconds": 300.0, "down_seconds": 3600.0, "spread": 0.1,
    "node_threads": 2, "sleep_seconds": 0.0, "is_mean_known": True,  # from earlier jobs
    # too small to measure here: a row of squeue, and the query for READY jobs
    "row_seconds": 5e-6, "ready_seconds": 1e-4, "scan_seconds_per_attempt": 0.0,
}


def read_inputs(path):
    """Returns {setting: value}, including the job of `job`; the jobs; and the description of the measurement."""
    told = json.loads(pathlib.Path(path).read_text())
    return types.SimpleNamespace(values={**told["slurm"], **told["share"], **told["daemon"]}, jobs=told["jobs"],
                                 measured=told["measured"])


# ---------------------------------------------------------------------------------- shared resources --


class Events:
    """Runs calls in the order of their times, and in the order of creation if these are equal."""

    def __init__(self):
        self.now, self.heap, self.numbers = 0.0, [], itertools.count()

    def after(self, seconds, call, *arguments):
        heapq.heappush(self.heap, (self.now + seconds, next(self.numbers), call, arguments))

    def run(self, ended):
        while self.heap and not ended():
            self.now, _, call, arguments = heapq.heappop(self.heap)
            call(*arguments)


class Threads:
    """A number of threads with a queue. `call` gets a thread, which it keeps until leave()."""

    def __init__(self, events, count):
        self.events, self.free, self.count, self.waiting = events, count, count, collections.deque()
        self.busy, self.since = 0.0, 0.0

    def settle(self):
        self.busy += (self.count - self.free) * (self.events.now - self.since)
        self.since = self.events.now
        return self.busy

    def enter(self, call, *arguments):
        if self.free == 0:
            self.waiting.append((call, arguments))
            return
        self.settle()
        self.free -= 1
        call(*arguments)

    def leave(self):
        self.settle()
        self.free += 1
        if self.waiting:
            call, arguments = self.waiting.popleft()
            self.enter(call, *arguments)


class Share:
    """
    Bandwidth, divided equally. Since each of n flows began, it has moved as many bytes as any other in that time. So the
    bytes per flow since the beginning (`moved`) determine the end of each.
    """

    def __init__(self, events, total, most):
        self.events, self.total, self.most = events, total, most
        self.flows, self.moved, self.since, self.round, self.bytes = [], 0.0, 0.0, 0, 0.0

    def rate(self):
        return min(self.most, self.total / len(self.flows)) if self.flows else 0.0

    def settle(self):
        step = self.rate() * (self.events.now - self.since)
        self.moved += step
        self.bytes += step * len(self.flows)
        self.since = self.events.now
        return self.bytes / self.total  # seconds at full use

    def move(self, size, call, *arguments):
        if size <= 0:
            self.events.after(0.0, call, *arguments)
            return
        self.settle()
        heapq.heappush(self.flows, (self.moved + size, next(self.events.numbers), call, arguments))
        self.wait()

    def wait(self):
        self.round += 1
        if self.flows:
            left = max(0.0, self.flows[0][0] - self.moved)
            self.events.after(left / self.rate(), self.end, self.round, self.flows[0][0])

    def end(self, number, moved):
        if number != self.round:
            return  # another flow began or ended meanwhile
        self.settle()
        self.moved = max(self.moved, moved)
        ended = []
        while self.flows and self.flows[0][0] <= self.moved:
            ended.append(heapq.heappop(self.flows))
        self.wait()
        for _, _, call, arguments in ended:
            call(*arguments)


class Turns:
    """The daemon's thread: all messages that arrive while it is busy form its next turn, with one commit at its end."""

    def __init__(self, events, commit_seconds):
        self.events, self.commit, self.inbox, self.is_busy, self.busy = events, commit_seconds, [], False, 0.0

    def settle(self):
        return self.busy  # without commits: the fuller its turns, the fewer commits

    def tell(self, seconds, call, *arguments):
        self.inbox.append((seconds, call, arguments))
        if not self.is_busy:
            self.begin()

    def begin(self):
        turn, self.inbox, self.is_busy = self.inbox, [], True
        seconds = sum(each[0] for each in turn)
        self.busy += seconds
        self.events.after(seconds + self.commit, self.end, turn)

    def end(self, turn):
        for _, call, arguments in turn:
            call(*arguments)
        self.is_busy = False
        if self.inbox:
            self.begin()


# ----------------------------------------------------------------------------------------- the model --


class Task:
    """A Slurm job: the running series, the queued ones in order, and those without a collected manifest."""

    __slots__ = ("waiting", "manifests", "left", "state", "node", "is_asked", "begun")

    def __init__(self, jobs):
        self.waiting, self.manifests, self.left = collections.deque(jobs), [], len(jobs)
        self.state, self.node, self.is_asked, self.begun = "PICKED", None, False, 0.0


class Model:
    def __init__(self, settings):
        self.s = s = types.SimpleNamespace(**settings)
        self.random = random.Random(s.seed)
        self.events = Events()
        self.daemon = Turns(self.events, s.commit_seconds)
        self.child = Threads(self.events, s.child_threads)
        self.share = Share(self.events, s.share_bytes_per_second, s.flow_bytes_per_second)
        self.work_seconds = s.read_seconds + s.compute_seconds + s.write_seconds + s.verify_seconds
        self.ready, self.attempts, self.alone = collections.deque(range(s.series)), bytearray(s.series), set()
        self.ended_at = {}  # the manifest's time, by job
        self.tasks, self.picked, self.sent = {}, collections.deque(), 0  # tasks: a set in the order of creation
        self.pending, self.ended, self.running = collections.deque(), collections.deque(), 0
        self.slots = collections.deque(node for _ in range(s.slots) for node in range(s.nodes))
        self.running_on = [set() for _ in range(s.nodes)]
        self.is_down = [False] * s.nodes
        self.is_picking = self.is_polling = False
        self.is_mean_known, self.poll_due, self.collecting = s.is_mean_known, 0.0, 0
        self.done = self.failed = self.polls = self.task_count = self.lost = 0
        self.lost_seconds = self.wait_seconds = self.longest_wait = self.squeue_seconds = self.slot_busy = 0.0
        self.longest_poll = 0.0
        self.most_in_flight = self.in_flight = self.folders = self.most_folders = 0
        self.marks = []

    # ---- the daemon: picking and handing over ----

    def pick(self):
        if self.is_picking or not self.ready or len(self.tasks) >= self.s.max_submitted:
            return
        self.is_picking = True
        self.daemon.tell(self.s.ready_seconds, self.picking)

    def group(self):
        """Returns the next task, of jobs that travel together."""
        jobs = [self.ready.popleft()]
        if not self.is_mean_known or jobs[0] in self.alone:
            return jobs
        most = min(GROUP_MOST, max(1, int(self.s.batch_seconds / self.work_seconds + 1e-9)))
        while self.ready and len(jobs) < most and self.ready[0] not in self.alone:
            jobs.append(self.ready.popleft())
        return jobs

    def picking(self):
        count, made = 0, []
        while self.ready and count < PICKS_MOST and len(self.tasks) < self.s.max_submitted:
            jobs = self.group()
            for job in jobs[PICKS_MOST - count:]:
                self.ready.appendleft(jobs.pop())
            task = Task(jobs)
            self.tasks[task] = None
            made.append(task)
            count += len(jobs)
        self.in_flight += count
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.daemon.tell(count * self.change_seconds(), self.picked_committed, made)

    def change_seconds(self):
        """Returns the time of one of the two large changes of a job, its beginning and its end."""
        return self.s.job_seconds / 2 + self.s.scan_seconds_per_attempt * self.in_flight

    def picked_committed(self, made):
        self.picked.extend(made)
        self.is_picking = False
        self.pick()

    def hand_over(self):
        while self.picked and (not self.s.submits_at_a_time or self.sent < self.s.submits_at_a_time):
            task = self.picked.popleft()
            task.state = "SENT"
            self.sent += 1
            self.child.enter(self.make_folders, task)

    def tick(self):
        self.pick()
        self.hand_over()
        self.poll()
        self.events.after(TICK_SECONDS, self.tick)

    # ---- the child: folders, sbatch ----

    def make_folders(self, task):
        """Moves all images between this machine and the share once, to write them or to read them for their digests; or skips it."""
        s, size = self.s, task.left * self.s.input_bytes
        seconds = task.left * s.folder_seconds + s.sbatch_seconds
        seconds += 0.0 if s.is_digested else size / s.digest_bytes_per_second
        seconds += 0.0 if s.is_seen else size / s.copy_bytes_per_second
        self.share.move(0.0 if s.is_digested and s.is_seen else size, self.events.after, seconds, self.submitted, task)

    def submitted(self, task):
        self.child.leave()
        self.folders += task.left
        self.most_folders = max(self.most_folders, self.folders)
        task.state = "PENDING"
        self.pending.append(task)
        self.task_count += 1
        self.start_tasks()
        self.daemon.tell(0.0, self.hear_submitted)

    def hear_submitted(self):
        self.sent -= 1
        self.hand_over()

    # ---- Slurm and its nodes ----

    def start_tasks(self):
        while self.pending and self.slots:
            task, task.node = self.pending.popleft(), self.slots.popleft()
            task.state = "RUNNING"
            self.running += 1
            self.running_on[task.node].add(task)
            self.events.after(self.s.turn_seconds, self.run_next, task)

    def run_next(self, task):
        if task.state != "RUNNING":
            return
        if not task.waiting:
            self.end_task(task, "COMPLETED")
            return
        s = self.s
        task.begun = self.events.now
        spread = 1.0 + s.spread * (2.0 * self.random.random() - 1.0)
        seconds = s.step_seconds + s.sleep_seconds + spread * self.work_seconds + \
            s.input_bytes / (s.digest_bytes_per_second * s.node_threads)
        self.share.move(s.input_bytes + s.result_bytes, self.events.after, seconds, self.end_job, task)

    def end_job(self, task):
        if task.state != "RUNNING":
            return
        job = task.waiting.popleft()
        self.slot_busy += self.events.now - task.begun
        task.manifests.append(job)
        self.ended_at[job] = self.events.now
        self.run_next(task)

    def end_task(self, task, state):
        task.state = state
        self.running -= 1
        self.ended.append(self.events.now)
        self.running_on[task.node].discard(task)
        if not self.is_down[task.node]:
            self.slots.append(task.node)
            self.start_tasks()

    # ---- lost nodes ----

    def arm_loss(self, node):
        if self.s.losses_per_node_hour > 0:
            self.events.after(self.random.expovariate(self.s.losses_per_node_hour / 3600.0), self.lose, node)

    def lose(self, node):
        self.is_down[node] = True
        self.slots = collections.deque(each for each in self.slots if each != node)
        for task in sorted(self.running_on[node], key=lambda task: task.begun):
            task.state = "LOST"
            self.lost_seconds += self.events.now - task.begun
        self.events.after(self.s.noticed_seconds, self.notice, list(self.running_on[node]))
        self.events.after(max(self.s.down_seconds, self.s.noticed_seconds), self.come_back, node)

    def notice(self, tasks):
        for task in sorted(tasks, key=lambda task: task.begun):
            self.end_task(task, "NODE_FAIL")

    def come_back(self, node):
        self.is_down[node] = False
        self.slots.extend([node] * self.s.slots)
        self.start_tasks()
        self.arm_loss(node)

    # ---- polls and collection ----

    def poll(self):
        if self.is_polling or self.events.now < self.poll_due or not (self.pending or self.running or self.has_ended()):
            return
        self.is_polling = True
        self.child.enter(self.squeue, self.events.now)

    def has_ended(self):
        return any(task.state in ("COMPLETED", "NODE_FAIL") for task in self.tasks)

    def squeue(self, asked):
        while self.ended and self.ended[0] < self.events.now - self.s.min_job_age_seconds:
            self.ended.popleft()
        listed = len(self.pending) + self.running + len(self.ended)
        seconds = self.s.squeue_seconds + listed * self.s.squeue_seconds_per_job
        self.squeue_seconds += seconds
        self.events.after(seconds, self.polled, listed, asked)

    def polled(self, listed, asked):
        self.child.leave()
        self.polls += 1
        self.longest_poll = max(self.longest_poll, self.events.now - asked)
        self.daemon.tell(listed * self.s.row_seconds, self.look)

    def look(self):
        self.is_polling = False
        self.poll_due = self.events.now + self.s.poll_seconds
        most = self.s.collects_a_poll or math.inf
        asked = 0
        for task in reversed(self.tasks) if self.s.collects_a_poll else list(self.tasks):  # in the order of their list
            if task.state in ("PICKED", "SENT", "PENDING"):
                continue
            while task.manifests and asked < most and self.collecting < most:
                asked += 1
                self.collecting += 1
                self.child.enter(self.collect, task, task.manifests.pop())
            missing = len(task.waiting)
            if missing and asked < most and not task.is_asked:
                asked += missing
                task.is_asked = True
                self.child.enter(self.events.after, missing * self.s.probe_seconds, self.probed, task)

    def probed(self, task):
        self.child.leave()
        task.is_asked = False
        if task.state == "NODE_FAIL":
            while task.waiting:
                self.lose_job(task, task.waiting.popleft())

    def lose_job(self, task, job):
        self.attempts[job] += 1
        self.alone.add(job)
        self.lost += 1
        self.drop(task)
        if self.attempts[job] >= self.s.max_attempts:
            self.failed += 1
        else:
            self.events.after(self.s.retry_seconds, self.ready.append, job)

    def collect(self, task, job):
        self.share.move(self.s.result_bytes, self.events.after, self.s.collect_seconds, self.collected, task, job)

    def collected(self, task, job):
        self.child.leave()
        self.collecting -= 1
        self.daemon.tell(self.change_seconds(), self.finish, task, job)

    def finish(self, task, job):
        wait = self.events.now - self.ended_at.pop(job)
        self.wait_seconds += wait
        self.longest_wait = max(self.longest_wait, wait)
        self.done += 1
        self.is_mean_known = True
        self.drop(task)
        self.child.enter(self.events.after, self.s.dismiss_seconds, self.child.leave)
        if self.done * 4 in (self.s.series, 3 * self.s.series):
            self.marks.append(self.used())

    def drop(self, task):
        self.in_flight -= 1
        self.folders -= 1
        task.left -= 1
        if task.left == 0:
            del self.tasks[task]

    # ---- a run ----

    def used(self):
        """Returns the busy seconds of each so far, by CPU or in total."""
        return {"at": self.events.now, "done": self.done, "daemon": self.daemon.settle(),
                "child": self.child.settle() / self.s.child_threads, "share": self.share.settle(),
                "nodes": self.slot_busy / (self.s.nodes * self.s.slots)}

    def run(self):
        for node in range(self.s.nodes):
            self.arm_loss(node)
        self.tick()
        self.events.run(lambda: self.done + self.failed == self.s.series)
        return self.report()

    def report(self):
        first, last = self.marks if len(self.marks) == 2 else (dict.fromkeys(self.used(), 0.0), self.used())
        seconds = last["at"] - first["at"]
        busy = {name: round((last[name] - first[name]) / seconds, 3) for name in ("daemon", "child", "share", "nodes")}
        return {"seconds": round(self.events.now, 3), "series_per_second": round((last["done"] - first["done"]) / seconds, 3),
                "done": self.done, "failed": self.failed, "tasks": self.task_count, "busy": busy, "limit": self.limit(busy),
                "polls": self.polls, "squeue_seconds": round(self.squeue_seconds, 3), "longest_poll": round(self.longest_poll, 3),
                "result_waits": round(self.wait_seconds / max(1, self.done), 3), "longest_wait": round(self.longest_wait, 3),
                "most_in_flight": self.most_in_flight, "share_bytes": 0 if self.s.is_seen else round(self.most_folders * self.s.input_bytes),
                "lost": self.lost, "lost_seconds": round(self.lost_seconds, 3),
                "database_bytes": round(self.done * self.s.database_bytes_per_job)}

    @staticmethod
    def limit(busy):
        """Hand-overs wait while the share is full. They may use three quarters of the child's threads, results the rest."""
        full = [name for name in ("share", "nodes", "daemon", "child") if busy[name] > (0.8 if name == "child" else 0.9)]
        return full[0] if full else "none"


def settings_of(inputs, job, **changed):
    known = {**SETTINGS, **inputs.values, **inputs.jobs[job]}
    unknown = set(changed) - set(known)
    if unknown:
        raise SystemExit(f"scale.py: no such setting: {', '.join(sorted(unknown))}")
    return {**known, **changed}


def simulate(inputs, job, **changed):
    return Model(settings_of(inputs, job, **changed)).run()


# ------------------------------------------------------------------------------------- docs/scale.md --

GIGABIT = 1e9 / 8
FAST = {"share_bytes_per_second": 1000 * GIGABIT, "flow_bytes_per_second": 25 * GIGABIT}  # a parallel file system
WIDE = {"share_bytes_per_second": 100 * GIGABIT, "flow_bytes_per_second": 25 * GIGABIT}
SEEN = {"is_seen": True}
# The service before this simulation.
BEFORE = {"is_digested": False, "child_threads": 4, "submits_at_a_time": 0, "collects_a_poll": 256}
MANY = {"nodes": 64, "series": 1000000}

TABLE = (
    ("CPU nodes, share 10 Gbit/s", "cpu", {}),
    ("CPU nodes, 100 Gbit/s", "cpu", WIDE),
    ("CPU nodes, 1000 Gbit/s", "cpu", FAST),
    ("GPU nodes, 100 Gbit/s", "gpu", WIDE),
    ("GPU nodes, 1000 Gbit/s", "gpu", FAST),
    ("CPU nodes see the root, 10 Gbit/s", "cpu", SEEN),
    ("CPU nodes see the root, 100 Gbit/s", "cpu", {**WIDE, **SEEN}),
    ("CPU nodes see the root, 1000 Gbit/s", "cpu", {**FAST, **SEEN}),
    ("GPU nodes see the root, 1000 Gbit/s", "gpu", {**FAST, **SEEN}),
    ("small jobs, 10 Gbit/s", "small", {}),
)
VARIANTS = (
    ("as shipped", {}),
    ("`batch_seconds` 10", {"batch_seconds": 10.0}),
    ("`batch_seconds` 600", {"batch_seconds": 600.0}),
    ("`poll_seconds` 30", {"poll_seconds": 30.0}),
    ("`max_submitted` 128", {"max_submitted": 128}),
    ("nodes see the root", SEEN),
    ("digests taken when handed over", {"is_digested": False}),
    ("both of these", {"is_digested": False, **SEEN}),
    ("child of 32 threads, 24 hand over", {"child_threads": 32, "submits_at_a_time": 24}),
    ("each node lost every 1000 h", {"losses_per_node_hour": 0.001}),
    ("each node lost every 10 h", {"losses_per_node_hour": 0.1}),
    ("before: 4 threads, all at once", BEFORE),
)


def hours(seconds):
    return f"{seconds / 3600:.1f} h"


def row(name, told, series):
    busy = " | ".join(f"{100 * told['busy'][each]:.0f} %" for each in ("share", "nodes", "child", "daemon"))
    return (f"| {name} | {told['series_per_second']:.1f} | {hours(series / told['series_per_second'])} | {busy} | {told['limit']} | "
            f"{told['tasks']} | {told['share_bytes'] / 1e12:.2f} TB | {told['result_waits']:.1f} s | {told['longest_poll']:.2f} s |")


HEAD = ("| | series/s | 1e6 take | share | nodes | child | daemon | full is | Slurm jobs | copied ahead | a result waits | "
        "longest poll |\n|---|---|---|---|---|---|---|---|---|---|---|---|")


def print_table(inputs):
    print(HEAD)
    for name, job, changed in TABLE:
        print(row(name, simulate(inputs, job, **MANY, **changed), MANY["series"]), flush=True)


def print_variants(inputs):
    """Prints variants of CPU nodes and 1000 Gbit/s, with enough series for a steady middle half."""
    print(HEAD.replace("longest poll |\n", "longest poll | attempts lost | work lost |\n") + "---|---|")
    for name, changed in VARIANTS:
        told = simulate(inputs, "cpu", **{"nodes": 64, "series": 100000, **FAST, **changed})
        print(row(name, told, 1000000), f"{told['lost']} | {told['lost_seconds']:.0f} s |", flush=True)


def print_chart(inputs):
    """Prints series per second by nodes, from the beginning to the end. A column is a tenth of a decade."""
    shares = {"a": {}, "b": WIDE, "c": FAST}
    alone = {"share_bytes_per_second": 1e15, "flow_bytes_per_second": 1e12, "child_threads": 1000, "submits_at_a_time": 900}
    work = 2000 / simulate(inputs, "cpu", series=2000, **alone)["seconds"]
    columns = 32
    print("nodes  " + "".join(f"{text:<10}" for text in ("1", "10", "100", "1000")))
    for nodes in (1, 2, 4, 8, 16, 32, 64):
        line = [" "] * columns
        for letter, rate in [("*", nodes * work)] + [
                (letter, 2000 * nodes / simulate(inputs, "cpu", nodes=nodes, series=2000 * nodes, **changed)["seconds"])
                for letter, changed in reversed(shares.items())]:
            at = min(columns - 1, max(0, round(10 * math.log10(rate))))
            line[at] = letter
        print(f"{nodes:5d} |" + "".join(line).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", default=INPUTS)
    parser.add_argument("--job", default="cpu", help="small, cpu, gpu: which of the measured ones")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    for name in ("table", "variants", "chart"):
        parser.add_argument(f"--{name}", action="store_true")
    arguments = parser.parse_args()
    inputs = read_inputs(arguments.inputs)
    for name, call in (("table", print_table), ("variants", print_variants), ("chart", print_chart)):
        if getattr(arguments, name):
            call(inputs)
            return
    changed = {name: json.loads(value) for name, _, value in (each.partition("=") for each in arguments.set)}
    print(json.dumps(simulate(inputs, arguments.job, **changed)))


if __name__ == "__main__":
    main()
