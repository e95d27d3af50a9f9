#!/usr/bin/env python3
"""What the runs of a folder say beside their errors: orders of contests, and why tasks take longer than predicted.

usage: stagecraft validate RUNS --format csv | analysis.py RUNS [DATA], which gets the points of figures/tasks-over-time.gp
"""
# SPDX-License-Identifier: Apache-2.0
import collections
import csv
import itertools
import json
import math
import pathlib
import sys

SHORTEST = 2e-4  # seconds; shorter tasks are left out of the tables of tasks
Task = collections.namedtuple("Task", "run device work step start took alone beside company copies")


def mean(tasks, value):
    """Of a value of tasks, weighted by their time alone."""
    return sum(task.alone * value(task) for task in tasks) / sum(task.alone for task in tasks)


def excess(tasks):
    """How much longer tasks took than alone and beside what others did meanwhile."""
    return sum(task.took for task in tasks) / sum(task.beside for task in tasks) - 1


def tasks_of(name, record):
    """The computations of a run; `step`: of the optimiser. `beside` is the time that the factors of pairs give for what
    ran beside each; `company` is how many other devices computed, `copies` how many copies went on, on average."""
    graph, alone = record["graph"], record["parts"]["work_seconds"]
    factor = {(work, other): times for work, other, times in record["parts"]["contention"]}
    device = {task: at for at, program in enumerate(graph["programs"]) for task in program}
    spans, copies = [], []
    for entry, (start, took) in enumerate(zip(record["start_nanoseconds"], record["duration_nanoseconds"])):
        task = entry % len(graph["work"])
        work = graph["work"][task]
        if task in device:
            spans.append((start * 1e-9, (start + took) * 1e-9, device[task], work))
        elif graph["works"][work][0] == "T":
            copies.append((start * 1e-9, (start + took) * 1e-9))
    for start, end, own, work in spans:
        if alone[work] < SHORTEST:
            continue
        others = [(max(start, a), min(end, b), other) for a, b, at, other in spans if at != own and a < end and b > start]
        done = company = 0
        for a, b in itertools.pairwise(sorted({start, end, *(x for other in others for x in other[:2])})):
            now = [other for begin, finish, other in others if begin <= (a + b) / 2 < finish]
            done += (b - a) / math.prod(factor.get((work, other), 1) for other in now)
            company += (b - a) * len(now)
        copied = sum(max(0, min(end, b) - max(start, a)) for a, b in copies)
        took = end - start
        step = graph["works"][work][0] == "O"
        yield Task(name, own, work, step, start, took, alone[work], alone[work] * took / done, company / took, copied / took)


def within(tasks, keys):
    """The tasks' logarithmic excess, copies and company, without the means of the groups that `keys` name."""
    columns = [[math.log(task.took / task.beside) for task in tasks], [task.copies for task in tasks],
               [max(0, task.company - 1) for task in tasks]]
    for column in columns:
        for _ in range(30):  # until both means are 0
            for key in keys:
                groups = collections.defaultdict(lambda: [0, 0])
                for task, value in zip(tasks, column):
                    groups[key(task)][0] += task.alone * value
                    groups[key(task)][1] += task.alone
                for at, task in enumerate(tasks):
                    total, weight = groups[key(task)]
                    column[at] -= total / weight
    return columns


def shares(tasks):
    """What copies and a second or third device beside add to the excess: least squares among tasks of one work, and of
    one fiftieth of a second, so that neither works nor clocks count."""
    late, copies, third = within(tasks, [lambda task: (task.run, task.work), lambda task: (task.run, int(task.start / 0.02))])

    def dot(one, other):
        return sum(task.alone * a * b for task, a, b in zip(tasks, one, other))

    cc, tt, ct, lc, lt = dot(copies, copies), dot(third, third), dot(copies, third), dot(late, copies), dot(late, third)
    if tt < 1e-12:
        return lc / cc * mean(tasks, lambda task: task.copies), 0
    by_copy, by_third = (lc * tt - lt * ct) / (cc * tt - ct * ct), (lt * cc - lc * ct) / (cc * tt - ct * ct)
    return by_copy * mean(tasks, lambda task: task.copies), by_third * mean(tasks, lambda task: max(0, task.company - 1))


def together(tasks):
    """Correlation of how late a task is, for its work, with how late tasks of other devices are in the same 10 ms."""
    usual = {key: mean(list(group), lambda task: math.log(task.took / task.beside))
             for key, group in groups_of(tasks, lambda task: (task.run, task.work))}
    pairs = []
    for _, group in groups_of(tasks, lambda task: (task.run, int((task.start + task.took / 2) / 0.01))):
        group = list(group)
        late = {task: math.log(task.took / task.beside) - usual[task.run, task.work] for task in group}
        for task in group:
            others = [other for other in group if other.device != task.device]
            if others:
                pairs.append((task.alone, late[task], mean(others, late.get)))
    xx, yy, xy = (sum(w * f(x, y) for w, x, y in pairs) for f in (lambda x, y: x * x, lambda x, y: y * y, lambda x, y: x * y))
    return xy / math.sqrt(xx * yy)


def groups_of(tasks, key):
    return itertools.groupby(sorted(tasks, key=key), key=key)


def all_at_once(record):
    """Per device, its slowdown while all compute, and what the factors of pairs say about it."""
    graph, parts = record["graph"], record["parts"]
    factor = {(work, other): times for work, other, times in parts["contention"]}
    works = [[graph["work"][task] for task in program] for program in graph["programs"]]
    time = parts["work_seconds"]
    for device, own in enumerate(works):
        total = 0
        for work in own:
            beside = [sum(time[v] * factor.get((work, v), 1) for v in other) / sum(time[v] for v in other)
                      for at, other in enumerate(works) if at != device]
            total += time[work] * math.prod(beside)
        yield parts["slowdowns"][device], total / sum(time[work] for work in own)


def orders(records, rows):
    """Per contest, schedules from the fastest to the slowest as measured and as predicted. Two runs are a tie if they
    differ by no more than the larger spread of the two, from the first to the third quartile of five runs."""
    contests = collections.defaultdict(list)
    for row in rows:
        record = records[row["case"]]
        spread = float(record["conditions"]["spread_of_runs"].split()[0]) / 100
        key = record["inputs"]["model"] + " on " + record["inputs"]["platform"]
        contests[key].append((float(row["measured"]), float(row["predicted"]), spread, row["case"]))
    print("| contest | measured, the fastest first | predicted | pairs in order | ties | regret |\n|---|---|---|---|---|---|")
    for name, runs in contests.items():
        right = wrong = ties = 0
        for one, other in itertools.combinations(runs, 2):
            if abs(one[0] - other[0]) <= max(one[2], other[2]) * min(one[0], other[0]):
                ties += 1
            elif (one[0] < other[0]) == (one[1] < other[1]):
                right += 1
            else:
                wrong += 1
        order = [", ".join(run[3] for run in sorted(runs, key=lambda run: run[column])) for column in (0, 1)]
        regret = min(runs, key=lambda run: run[1])[0] / min(runs)[0] - 1
        print(f"| {name} | {order[0]} | {order[1]} | {right} of {right + wrong} | {ties} | {100 * regret:.2f} % |")


GROUPS = ["mlp-halves", "mlp-three", "mlp-four", "mlp-four-even", "transformer-halves", "transformer-three",
          "transformer-recompute", "transformer-four"]


def group_of(run):
    return next((name for name in sorted(GROUPS, key=len, reverse=True) if run.startswith(name)), None)


def why(records):
    """Per group of runs: the excess of tasks, and what goes with it."""
    every = [task for name, record in records.items() if group_of(name) for task in tasks_of(name, record)]
    tasks = [task for task in every if not task.step]
    print("\n| runs | alone to run | factors of pairs | excess | first 20 ms | later | nobody beside, no copy: first 20 ms | later"
          " | of copies | of third devices | optimiser steps | devices are late together |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in [*GROUPS, "all"]:
        own = [task for task in tasks if name in (group_of(task.run), "all")]
        lonely = [task for task in own if task.company < 0.02 and task.copies < 0.02]
        took = sum(task.took for task in own) / sum(task.alone for task in own) - 1
        cells = [took, sum(task.beside for task in own) / sum(task.alone for task in own) - 1, excess(own)]
        for some in (own, lonely):
            for late in (False, True):
                part = [task for task in some if (task.start >= 0.02) == late]
                cells.append(excess(part) if len(part) > 3 else None)
        cells += [*shares(own), excess([task for task in every if task.step and name in (group_of(task.run), "all")])]
        text = " | ".join("" if cell is None else f"{100 * cell:.1f} %" for cell in cells)
        print(f"| {name} | {text} | {together(own):.2f} |")
    print("\n| run | slowdown of each device while all compute | by the factors of pairs |\n|---|---|---|")
    for name, record in records.items():
        if group_of(name):
            both = list(all_at_once(record))
            print(f"| {name} | {', '.join(f'{x:.3f}' for x, _ in both)} | {', '.join(f'{x:.3f}' for _, x in both)} |")
    return tasks


def points(tasks, file):
    """The excess of each group's tasks by the 10 ms in which they begin."""
    for name in ("mlp-halves", "transformer-three", "transformer-recompute", "transformer-halves"):
        print(f'"{name}"', file=file)
        for bin_, group in groups_of([task for task in tasks if group_of(task.run) == name], lambda task: int(task.start / 0.01)):
            group = list(group)
            if len(group) > 7:
                print(f"{10 * bin_ + 5} {100 * excess(group):.2f}", file=file)
        print("\n", file=file)


def main():
    folder = pathlib.Path(sys.argv[1])
    records = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    orders(records, csv.DictReader(sys.stdin))
    tasks = why(records)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as file:
            points(tasks, file)


main()
