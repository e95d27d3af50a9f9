#!/usr/bin/env python3
"""Writes the profile of a PyTorch model that stagecraft reads (docs/formats/workload.md, "Measured times").

    python3 hook.py FILE.py:FUNCTION --micro-batches 1,2,4 --device cuda -o profile.yaml

FUNCTION(samples) returns the model and a tuple of its inputs for that many samples. One forward pass finds the leaf modules
in the order of their calls, and which of them feed which. Then each call runs alone, forward and backward, on the inputs that
it had. What the model computes between leaf modules (additions, concatenations, views) is not timed, nor is the loss.
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import importlib.util
import math
import re
import statistics
import sys
import time

import torch

KINDS = (  # the first pattern that is part of a module's class name decides
    ("conv", "convolution"), ("linear", "matmul"), ("attention", "attention"),
    ("lstm", "recurrent"), ("gru", "recurrent"), ("rnn", "recurrent"), ("norm", "normalization"),
    ("softmax", "softmax"), ("crossentropy", "softmax"), ("pool", "pooling"), ("embedding", "embedding"),
    ("flatten", "reshape"), ("identity", "reshape"),
    ("relu", "elementwise"), ("gelu", "elementwise"), ("silu", "elementwise"), ("sigmoid", "elementwise"),
    ("tanh", "elementwise"), ("dropout", "elementwise"),
)  # fmt: skip
WARM_UP, LEAST, MOST = 3, 7, 100
ENOUGH = 0.005  # relative standard error of the median
PATIENCE = 0.5  # seconds of sampling per time, at most


def tensors_in(value):
    """All tensors of a nested result."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def mapped(value, change):
    """The same nested value with a function applied to every tensor."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def elements(value):
    return sum(tensor.numel() for tensor in tensors_in(value))


class Call:
    """One call of a leaf module, with the inputs that it had."""

    def __init__(self, name, module, arguments, keywords):
        self.name, self.module = name, module
        self.arguments, self.keywords = arguments, keywords
        self.feeders = []  # calls whose outputs it reads; None is the model's input
        self.output = 0  # elements of its result


class Recorder:
    """Hooks every leaf module; after a forward pass `calls` holds what ran, in order."""

    def __init__(self, model):
        self.calls = []
        self.makers = {}  # call by its result: by the node of the autograd graph or, without one, the tensor's address
        self.kept = []  # results, kept alive so that no node or address is used again
        self.handles = []
        for name, module in model.named_modules():
            if not any(True for _ in module.children()):
                self.handles.append(module.register_forward_pre_hook(self.before(name), with_kwargs=True))
                self.handles.append(module.register_forward_hook(self.after, with_kwargs=True))

    def before(self, name):
        def hook(module, arguments, keywords):
            keep = lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad)
            call = Call(name or "model", module, mapped(arguments, keep), mapped(keywords, keep))
            for tensor in tensors_in((arguments, keywords)):
                for feeder in self.feeders_of(tensor):
                    if feeder not in call.feeders:
                        call.feeders.append(feeder)
            self.calls.append(call)

        return hook

    def after(self, module, arguments, keywords, result):
        call = next(call for call in reversed(self.calls) if call.module is module)
        call.output = elements(result)
        for tensor in tensors_in(result):
            self.kept.append(tensor)
            self.makers[tensor.grad_fn if tensor.grad_fn is not None else tensor.data_ptr()] = call

    def feeders_of(self, tensor):
        """The calls whose results `tensor` was computed from: the nearest on each path back through the autograd graph."""
        if tensor.grad_fn is None:
            return [self.makers.get(tensor.data_ptr())]
        found, seen, left = [], set(), [tensor.grad_fn]
        while left:
            node = left.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in self.makers:
                found.append(self.makers[node])
            else:
                left.extend(before for before, _ in node.next_functions if before is not None)
        return found or [None]

    def remove(self):
        for handle in self.handles:
            handle.remove()


def record(model, inputs):
    recorder = Recorder(model)
    try:
        model(*inputs)
    finally:
        recorder.remove()
    uses = {}
    for call in recorder.calls:  # a module that is called twice is two operators
        uses[call.name] = uses.get(call.name, 0) + 1
        call.name += "" if uses[call.name] == 1 else f"-{uses[call.name]}"
        call.name = re.sub(r"[^A-Za-z0-9_.-]", "_", call.name)
    return recorder.calls


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def sample(device, prepare, run):
    """Median seconds of run(prepare()), and their relative standard deviation."""
    times, begun = [], time.perf_counter()
    for turn in range(WARM_UP + MOST):
        state = prepare()
        synchronize(device)
        start = time.perf_counter()
        run(state)
        synchronize(device)
        if turn >= WARM_UP:
            times.append(time.perf_counter() - start)
        if len(times) >= LEAST:
            median, deviation = spread_of(times)
            error = 1.2533 * deviation / math.sqrt(len(times))
            if error < ENOUGH or time.perf_counter() - begun > PATIENCE:
                break
    return spread_of(times)


def spread_of(times):
    quartiles = statistics.quantiles(times, n=4, method="inclusive")
    median = statistics.median(times)
    return median, (quartiles[2] - quartiles[0]) / 1.349 / median if median > 0 else 0


def measure(call, device):
    """Times of forward and backward of one call: two pairs of median and relative deviation."""
    module = call.module
    if getattr(module, "inplace", False):  # it would overwrite the input of the next run
        module.inplace = False
    forward = lambda _=None: module(*call.arguments, **call.keywords)
    with torch.no_grad():
        forward_time = sample(device, lambda: None, forward)
    wanted = [tensor for tensor in tensors_in((call.arguments, call.keywords)) if tensor.requires_grad]
    wanted += [parameter for parameter in module.parameters() if parameter.requires_grad]

    def graph():
        results = [tensor for tensor in tensors_in(forward()) if tensor.requires_grad]
        return results, [torch.randn_like(tensor) for tensor in results]

    if not wanted or not graph()[0]:
        return forward_time, (0.0, 0.0)
    backward = lambda state: torch.autograd.grad(state[0], wanted, state[1], allow_unused=True)
    return forward_time, sample(device, graph, backward)


def kind_of(module):
    name = type(module).__name__.lower()
    return next((kind for pattern, kind in KINDS if pattern in name), "other")


def flops_of(call, samples):
    """FLOPs of a forward pass over one sample for modules whose weights show them; else 0."""
    module, weight = call.module, getattr(call.module, "weight", None)
    if isinstance(module, torch.nn.Linear):
        return 2 * call.output / samples * module.in_features
    if isinstance(module, (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)):
        return 2 * call.output / samples * weight.numel() / module.out_channels
    return 0


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def seconds(value):
    return f"{value * 1e6:.6g} us"


def layer_line(call, samples, times):
    """The line of a layer; `times` has the result of measure() for each size."""
    inputs = ["input" if feeder is None else quoted(feeder.name) for feeder in call.feeders] or ["input"]
    parameters = sum(parameter.numel() for parameter in call.module.parameters() if parameter.requires_grad)
    spreads = []
    for (forward, forward_spread), (backward, backward_spread) in times:
        both = forward + backward
        spreads.append(math.hypot(forward * forward_spread, backward * backward_spread) / both if both > 0 else 0)
    keys = {
        "name": quoted(call.name),
        "kind": kind_of(call.module),
        "inputs": "[" + ", ".join(inputs) + "]",
        "forward": f"{flops_of(call, samples):.12g} FLOP",
        "parameters": parameters,
        "output": f"{call.output / samples:.12g}",
        "forward_time": "[" + ", ".join(seconds(forward) for (forward, _), _ in times) + "]",
        "backward_time": "[" + ", ".join(seconds(backward) for _, (backward, _) in times) + "]",
        "spread": "[" + ", ".join(f"{spread:.3g}" for spread in spreads) + "]",
    }
    return "  - {" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"


def profile_text(name, device_name, sizes, calls, times, inputs, precision):
    first = calls[0]
    lines = [
        f"name: {quoted(name)}",
        f"sources: {quoted(f'each leaf module alone, torch {torch.__version__}, {device_name}')}",
        f"input: {{shape: [{max(1, round(elements(inputs[0]) / sizes[0]))}]}}",
        f"profile: {{device: {quoted(device_name)}, samples: [{', '.join(map(str, sizes))}], precision: {precision}}}",
        "layers:",
    ]
    assert len(first) == len(times)
    lines += [layer_line(call, sizes[0], measured) for call, measured in zip(first, times)]
    return "\n".join(lines) + "\n"


def load_function(text):
    path, _, function = text.rpartition(":")
    specification = importlib.util.spec_from_file_location("user_model", path)
    if not path or specification is None:
        sys.exit(f"'{text}' is not of the form FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return getattr(module, function)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="FILE.py:FUNCTION")
    parser.add_argument("--micro-batches", default="1", help="sizes, as 1,2,4")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "bf16"), help="of model and inputs")
    parser.add_argument("--name", help="of the model in the file")
    parser.add_argument("--device-name", help="as in platforms/devices, to scale from (default: the driver's name)")
    parser.add_argument("-o", "--output", required=True)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    device = torch.device(arguments.device)
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[arguments.precision]
    sizes = sorted({int(size) for size in arguments.micro_batches.split(",")})
    make = load_function(arguments.model)
    cast = lambda tensor: tensor.to(device, dtype if tensor.is_floating_point() else None)
    all_calls, all_inputs, times = [], [], None
    for size in sizes:
        model, inputs = make(size)
        model = model.to(device, dtype).train()
        inputs = mapped(tuple(inputs), cast)
        calls = record(model, inputs)
        if all_calls and [call.name for call in calls] != [call.name for call in all_calls[0]]:
            sys.exit("the model calls other modules for another size")
        times = times or [[] for _ in calls]
        for number, call in enumerate(calls):
            times[number].append(measure(call, device))
            call.arguments = call.keywords = None  # frees their memory
            if sys.stderr.isatty():
                print(f"\r\x1b[K{size} samples: {number + 1} of {len(calls)}", end="", file=sys.stderr)
        all_calls.append(calls)
        all_inputs.append(list(tensors_in(inputs)))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    driver_name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    device_name = arguments.device_name or re.sub(r"[^a-z0-9]+", "-", driver_name.lower()).strip("-")
    name = arguments.name or arguments.model.rpartition(":")[2]
    text = profile_text(name, device_name, sizes, all_calls, times, all_inputs, arguments.precision)
    with open(arguments.output, "w", encoding="utf-8") as out:
        out.write(text)


if __name__ == "__main__":
    main()
