#!/usr/bin/env python3
"""Measures training steps of known models in PyTorch, for `stagecraft validate` (docs/formats/witness.md).

    python3 witness.py --device-name h200-sxm --budget 300 -o witness
    python3 witness.py gpt2 resnet50 --batches 1,8 --ways eager,compiled -o witness

writes witness/MODEL-bBATCH-PRECISION.yaml for each model and batch: its step as PyTorch runs it (eager), as one CUDA graph (captured) and by
torch.compile (compiled), what memory that takes, which kernels run, and the times of each leaf module alone (layers).
Weights are random; nothing is downloaded. With --export DIR it also writes each model as ONNX without weights.

What is most worth knowing comes first, and each file is written anew after each part. The same command with the same folder
goes on with what is missing: witness.state there remembers. What failed is a comment in its file, and is left alone but for
--again. The work is done in a second process: if the device or PyTorch dies, the next one goes on behind the part that did it.

It needs torch, torchvision for the image models and transformers for the others; --dry-run needs none of them.
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import faulthandler
import json
import os
import re
import subprocess
import sys
import time

from witness_models import MODELS

# Parts of the work, in their order: about how many seconds one takes on an H200, and after how many it must hang.
WAYS = {"eager": (5, 90), "captured": (5, 90), "layers": (12, 120), "profile": (8, 90), "compiled": (70, 300)}
TO_BEGIN, TO_MAKE = 20, 4  # seconds until PyTorch is loaded, and until a model is there
LEFT_OUT_BY_DEATH = "the process ended in it"
STATE = "witness.state"
# What a way measures, in the order of the file, and how it is written.
FACTS = {
    "step_seconds": ".6g", "spread": ".2g", "loop_seconds": ".6g", "device_seconds": ".6g", "host_seconds": ".6g",
    "first_step_seconds": ".4g", "peak_bytes": "d", "reserved_bytes": "d", "outside_bytes": "d",
    "kernels": "d", "launches": "d", "kernel_seconds": ".6g",
}  # fmt: skip


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Case:
    """One model and batch: a file."""

    def __init__(self, name, batch, precision, detailed):
        self.name, self.batch, self.detailed = name, batch, detailed
        self.stem = f"{name}-b{batch}-{precision}"


def cases_of(arguments):
    cases = []
    for name in arguments.models or MODELS:
        batches = arguments.batches or MODELS[name].batches
        detailed = MODELS[name].detailed if MODELS[name].detailed in batches else batches[len(batches) // 2]
        cases += [Case(name, batch, arguments.precision, batch == detailed) for batch in batches]
    return cases


def plan_of(arguments):
    """Pairs of a way and a case, in the order of the work. Layers and kernels are looked at for one batch of a model."""
    cases = cases_of(arguments)
    plan = []
    for way in arguments.ways:
        chosen = [case for case in cases if case.detailed]
        if way in ("eager", "captured"):
            chosen = cases
        elif way == "compiled":  # compiling takes long: one batch of each model before any other
            chosen = chosen + [case for case in cases if not case.detailed]
        plan += [(way, case) for case in chosen]
    return plan


class State:
    """What has been measured and written, kept in a file of the folder: a mapping of stems to ways to results."""

    def __init__(self, arguments):
        self.folder, self.arguments = arguments.output, arguments
        self.path = os.path.join(self.folder, STATE)
        self.results, self.software = {}, ""
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                stored = json.load(file)
            self.results, self.software = stored["results"], stored["software"]

    def result(self, way, case):
        return self.results.get(case.stem, {}).get(way)

    def missing(self):
        again = self.arguments.again
        return [
            (way, case) for way, case in plan_of(self.arguments)
            if self.result(way, case) is None or (again and "failed" in self.result(way, case))
        ]  # fmt: skip

    def forget_failures(self):
        for ways in self.results.values():
            for way in [way for way, result in ways.items() if "failed" in result]:
                del ways[way]

    def keep(self, way, case, result):
        self.results.setdefault(case.stem, {})[way] = result
        write(self.path, json.dumps({"software": self.software, "results": self.results}))
        results = self.results[case.stem]
        write(os.path.join(self.folder, case.stem + ".yaml"), witness_text(case, results, self.software, self.arguments))
        for way_of_kernels, name in (("profile", "eager"), ("compiled", "compiled")):
            longest = results.get(way_of_kernels, {}).get("longest")
            if longest:
                write(os.path.join(self.folder, f"{case.stem}.{name}-kernels.tsv"), kernels_text(longest))


def write(path, text):
    """Replaces the file as a whole, so that whoever is killed leaves the old or the new one."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def kernels_text(longest):
    lines = ["seconds\tcount\tkernel"]
    lines += [f"{seconds:.6g}\t{count}\t{name}" for name, count, seconds in longest]
    return "\n".join(lines) + "\n"


def way_lines(way, result, framework):
    facts = [f"  {key}: {result[key]:{form}}" for key, form in FACTS.items() if key in result]
    return [f"{way}:", f"  framework: {framework}"] + facts if facts else []


def layer_line(name, kind, forward, backward):
    return f"  - {{name: {quoted(name)}, kind: {kind}, forward_seconds: {forward:.6g}, backward_seconds: {backward:.6g}}}"


def layer_lines(layers, operator_of):
    """A line for each module that is an operator, then a comment for each other one."""
    lines, left_out = [], []
    for name, kind, forward, backward in layers:
        operator = operator_of(name)
        line = layer_line(operator or name, kind, forward, backward)
        (lines if operator else left_out).append(line if operator else "#" + line[1:] + " is no operator")
    return (["layers:"] if lines else ["layers: []"]) + lines + left_out


def witness_text(case, results, software, arguments):
    slug = re.sub(r"[^a-z0-9]+", "-", software.rsplit(", ", 1)[-1].lower()).strip("-")
    lines = [
        f"witness: {quoted(software)}", f"model: {case.name}", f"device: {quoted(arguments.device_name or slug)}",
        f"batch: {case.batch}", f"precision: {arguments.precision}", f"optimizer: {arguments.optimizer}",
    ]  # fmt: skip
    eager = {**results.get("eager", {}), **results.get("profile", {})}  # the profile is of the eager step
    for way in ("eager", "captured", "compiled"):
        framework = MODELS[case.name].compiled if way == "compiled" else MODELS[case.name].framework
        lines += way_lines(way, eager if way == "eager" else results.get(way, {}), framework)
    if "layers" in results.get("layers", {}):
        lines += layer_lines(results["layers"]["layers"], MODELS[case.name].operator_of)
    for way, result in results.items():
        lines += [f"# {way}: left out: {result['failed']}"] if "failed" in result else []
        lines += [f"# {way}: {result['note']}"] if "note" in result else []
    return "\n".join(lines) + "\n"


class Budget:
    def __init__(self, seconds):
        self.ends = time.monotonic() + seconds

    def left(self):
        return self.ends - time.monotonic()


def say(text):
    print(text, file=sys.stderr, flush=True)


def dry_run(arguments):
    """Says what would be done, without PyTorch."""
    total, model = TO_BEGIN, None
    print(f"{TO_BEGIN:5} s in all  load PyTorch")
    for way, case in State(arguments).missing():
        total += WAYS[way][0] + (TO_MAKE if case.name != model else 0)
        model = case.name
        over = "" if total <= arguments.budget else ", over the budget"
        print(f"{total:5} s in all  {way} {case.stem}{over}")


def work(arguments):
    """Measures what is missing, in this process."""
    budget = Budget(arguments.budget)
    try:
        import witness_torch as torch_side  # takes some 15 s
    except ImportError as error:
        sys.exit(f"PyTorch cannot be loaded: {error}")
    torch_side.prepare(arguments.precision)
    device = torch_side.torch.device(arguments.device)
    state = State(arguments)
    if arguments.again:
        state.forget_failures()
    state.software = torch_side.software(device)
    worker = Worker(arguments, torch_side, device)
    missing, captured, spoiled = state.missing(), False, False
    for number, (way, case) in enumerate(missing):
        if budget.left() < WAYS[way][0]:
            say(f"no time left for {way} {case.stem}, nor for {len(missing) - number - 1} parts behind it")
            return
        if spoiled and way != "captured":
            sys.exit("a capture failed: what comes next begins with a fresh process")
        state.keep(way, case, {"failed": LEFT_OUT_BY_DEATH})
        faulthandler.dump_traceback_later(WAYS[way][1], exit=True)
        begun = time.monotonic()
        result = worker.result(way, case)
        faulthandler.cancel_dump_traceback_later()
        state.keep(way, case, result)
        told = result.get("failed") or (f"{result['step_seconds'] * 1e3:.2f} ms" if "step_seconds" in result else "done")
        say(f"{way} {case.stem}: {told} ({time.monotonic() - begun:.0f} s; {budget.left():.0f} s left)")
        if "failed" in result and not worker.still_works():
            sys.exit("the device is lost to this process")
        if way == "captured" and "failed" in result:  # PyTorch may still be in the middle of a capture
            if captured:
                sys.exit("a capture failed: the next one begins with a fresh process")
            spoiled = True
        captured = captured or (way == "captured" and "failed" not in result)


class Worker:
    """Measures one part after another; parts of the same model in a row share its network."""

    def __init__(self, arguments, torch_side, device):
        self.arguments, self.torch_side, self.device = arguments, torch_side, device
        self.step, self.model = None, None

    def result(self, way, case):
        try:
            if self.step is None or self.model != case.name:
                self.step = None
                self.torch_side.empty_cache(self.device)
                self.step, self.model = self.torch_side.Step(MODELS[case.name], self.arguments), case.name
            self.step.set_batch(case.batch)
            return self.torch_side.MEASURES[way](self.step)
        except Exception as error:  # a package is missing, memory ran out or a capture failed; other parts may still work
            self.step = None
            return {"failed": self.torch_side.one_line(error)}

    def still_works(self):
        return self.torch_side.still_works(self.device)


def supervise(arguments):
    """Runs work() in processes of their own, one after another while they get on. Returns an exit code."""
    budget, options = Budget(arguments.budget), [option for option in sys.argv[1:] if option != "--again"]
    again = ["--again"] if arguments.again else []
    while True:
        before = len(State(arguments).missing())
        command = [sys.executable, os.path.abspath(__file__), *options, *again, "--worker", "--budget", f"{budget.left():.0f}"]
        code = subprocess.run(command, check=False).returncode
        arguments.again, again = False, []
        missing = State(arguments).missing()
        if code == 0 or not missing or len(missing) == before or budget.left() < TO_BEGIN:
            break
        say(f"the process ended with {code}; {len(missing)} parts are still to do")
    failed = [(way, case) for way, case in plan_of(arguments) if "failed" in (State(arguments).result(way, case) or {})]
    say(f"{len(missing)} parts are missing, {len(failed)} failed; files are in {arguments.output}")
    return 1 if missing or failed else 0


def export(arguments):
    import witness_torch as torch_side

    os.makedirs(arguments.export, exist_ok=True)
    for name in arguments.models or MODELS:
        torch_side.export(name, MODELS[name], arguments.export)


def batches(text):
    sizes = tuple(sorted({int(size) for size in text.split(",")}))
    if sizes[0] < 1:
        raise argparse.ArgumentTypeError("a batch has at least 1 sample")
    return sizes


def ways(text):
    unknown = [way for way in text.split(",") if way not in WAYS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no way is called {unknown[0]}; allowed: {', '.join(WAYS)}")
    return text.split(",")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS) + " (all)")
    parser.add_argument("--batches", type=batches, metavar="N,…", help="samples of a step: images or sequences")
    parser.add_argument("--ways", type=ways, default=list(WAYS), metavar="WAY,…", help="in this order: " + ",".join(WAYS))
    parser.add_argument("--budget", type=float, default=600, metavar="SECONDS", help="for the whole call (600)")
    parser.add_argument("--again", action="store_true", help="try what failed before once more")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and about when")
    parser.add_argument("--precision", default="bf16", choices=("fp32", "bf16"), help="bf16 by autocast")
    parser.add_argument("--optimizer", default="adam", choices=("sgd", "momentum", "adam"), help="adam: AdamW, fused")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--device-name", help="as in platforms/devices (default: from the driver's name)")
    parser.add_argument("--export", metavar="DIR", help="write MODEL.onnx there, without weights, and measure nothing (needs onnx)")
    parser.add_argument("-o", "--output", default="witness", metavar="DIR")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name in arguments.models:
        if name not in MODELS:
            parser.error(f"no model is called {name}; allowed: {', '.join(MODELS)}")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.dry_run:
        return dry_run(arguments)
    if arguments.export:
        return export(arguments)
    os.makedirs(arguments.output, exist_ok=True)
    if arguments.worker:
        return work(arguments)
    return sys.exit(supervise(arguments))


if __name__ == "__main__":
    main()
