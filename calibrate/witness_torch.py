"""Networks, their training steps and how long these take, in PyTorch: what witness.py measures with."""
# SPDX-License-Identifier: Apache-2.0

import collections
import contextlib
import gc
import importlib
import json
import os
import statistics
import sys
import tempfile
import time

import torch

import hook

WARM_UP, LEAST, MOST = 3, 7, 200
PATIENCE, LAYER_PATIENCE = 0.6, 0.04  # seconds of sampling for one median
IN_A_ROW = 10  # runs of a layer in one graph, since starting a graph takes some microseconds
ATTENTION = "sdpa_without_mask"
KERNELS_LISTED, KERNEL_NAME = 25, 200  # rows of a table of kernels, letters of a name


class Trained(torch.nn.Module):
    """A network with its loss, so that hooks see the loss and a compiler takes both.

    The loss is ours, the mean cross-entropy over all positions in fp32: that of transformers waits for the device, and
    so cannot be captured.
    """

    def __init__(self, network, family):
        super().__init__()
        self.network = network
        self.family = family
        if family == "bert":
            self.masked_language_loss = torch.nn.CrossEntropyLoss()
            self.next_sentence_loss = torch.nn.CrossEntropyLoss()
        else:
            self.loss = torch.nn.CrossEntropyLoss()

    def forward(self, samples, targets, more_targets=None):
        scores = self.network(samples)
        if self.family == "image":
            return self.loss(scores, targets)
        if self.family == "bert":
            words = self.masked_language_loss(scores.prediction_logits.flatten(0, 1), targets.flatten())
            return words + self.next_sentence_loss(scores.seq_relationship_logits, more_targets)
        return self.loss(scores.logits.flatten(0, 1), targets.flatten())


class Attention(torch.nn.Module):
    """The attention of one layer, recorded by attend(), to be timed like a module."""

    def __init__(self, layer, keywords):
        super().__init__()
        self.recorded = (layer, keywords)  # in a tuple, so that the layer's parameters are not ours

    def forward(self, query, key, value):
        layer, keywords = self.recorded
        return attend(layer, query, key, value, None, **keywords)[0]

    def extra_repr(self):
        return f"dropout {self.recorded[1].get('dropout')}, causal {getattr(self.recorded[0], 'is_causal', None)}"


RECORDED = None  # while layers are recorded, a list of calls of attend()
SDPA = None  # PyTorch's scaled_dot_product_attention, as transformers calls it


def attend(layer, query, key, value, mask, **keywords):
    """Attention of transformers, which may be recorded."""
    if RECORDED is not None:
        keep = lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad)
        number = getattr(layer, "layer_idx", None)
        name = f"attention.{len(RECORDED) if number is None else number}"
        RECORDED.append(hook.Call(name, Attention(layer, keywords), tuple(map(keep, (query, key, value))), {}))
    return SDPA(layer, query, key, value, mask, **keywords)


def use_attention(config):
    """Makes a model of this configuration attend by attend().

    For an attention that it does not know, transformers makes no mask. For its own it looks whether it needs one, which
    waits for the device; while a graph is captured or compiled it cannot look, and then the mask rules out flash kernels.
    """
    global SDPA
    try:
        from transformers import AttentionInterface
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        SDPA = sdpa_attention_forward
        AttentionInterface.register(ATTENTION, attend)
        config._attn_implementation = ATTENTION
    except (AttributeError, ImportError) as error:
        print(f"attention is timed in steps only, and may have a mask: {one_line(error)}", file=sys.stderr)
        config._attn_implementation = "sdpa"


def make_network(model):
    if model.family == "image":
        import torchvision

        network = getattr(torchvision.models, model.sizes["name"])(weights=None)
        return network.to(memory_format=torch.channels_last)
    import transformers

    configuration, network = {
        "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
        "bert": (transformers.BertConfig, transformers.BertForPreTraining),
    }[model.family]
    keywords = {} if model.family == "bert" else {"use_cache": False}
    config = configuration(**model.sizes, **keywords)
    use_attention(config)
    return network(config)


def make_network_on(device, model):
    """Random weights are made on the device, which is much faster; where that fails, on the host."""
    try:
        with device:
            return make_network(model).to(device)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
        gc.collect()
        return make_network(model).to(device)


def make_batch(model, network, batch, device):
    """Samples and targets."""
    if model.family == "image":
        pictures = torch.randn(batch, 3, 224, 224, device=device).contiguous(memory_format=torch.channels_last)
        return pictures, torch.randint(1000, (batch,), device=device)
    config = network.config
    shape = (batch, config.max_position_embeddings)
    tokens, words = (torch.randint(config.vocab_size, shape, device=device) for _ in range(2))
    return (tokens, words, torch.randint(2, (batch,), device=device)) if model.family == "bert" else (tokens, words)


class Step:
    """Training steps of a model."""

    def __init__(self, model, arguments):
        self.model = model
        self.device = torch.device(arguments.device)
        self.dtype = {"fp32": None, "bf16": torch.bfloat16}[arguments.precision]
        self.trained = Trained(make_network_on(self.device, model), model.family).train()
        self.optimizer = self.make_optimizer(arguments.optimizer)
        self.batch = ()

    def make_optimizer(self, name):
        on_gpu = self.device.type == "cuda"
        if name == "adam":
            fused = {"fused": True, "capturable": True} if on_gpu else {}
            return torch.optim.AdamW(self.trained.parameters(), lr=1e-5, **fused)
        momentum = 0.9 if name == "momentum" else 0.0
        return torch.optim.SGD(self.trained.parameters(), lr=1e-5, momentum=momentum, foreach=on_gpu)

    def set_batch(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        self.batch = ()
        empty_cache(self.device)
        self.batch = make_batch(self.model, self.trained.network, batch, self.device)

    def casting(self, keeps_casts=True):
        """For bf16, weights stay fp32 and are cast once per step; without `keeps_casts`, for layers and graphs, at every use."""
        return torch.autocast(
            self.device.type, dtype=self.dtype, enabled=self.dtype is not None, cache_enabled=keeps_casts
        )

    def run(self, keeps_casts=True, trained=None):
        self.optimizer.zero_grad(set_to_none=True)
        with self.casting(keeps_casts):
            loss = (self.trained if trained is None else trained)(*self.batch)
        loss.backward()
        self.optimizer.step()


def empty_cache(device):
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def still_works(device):
    """Whether the device computes; after some errors it never does again in this process."""
    try:
        empty_cache(device)
        return torch.ones(2, device=device).sum().item() == 2
    except RuntimeError:
        return False


class Memory:
    """The peaks of the allocator from now on."""

    def __init__(self, device):
        self.device = device
        empty_cache(device)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def peaks(self):
        """Bytes: the most in tensors, the most that the allocator took, and what others than the allocator hold now."""
        if self.device.type != "cuda":
            return {}
        free, total = torch.cuda.mem_get_info(self.device)
        return {
            "peak_bytes": torch.cuda.max_memory_allocated(self.device),
            "reserved_bytes": torch.cuda.max_memory_reserved(self.device),
            "outside_bytes": total - free - torch.cuda.memory_reserved(self.device),
        }


class Clock:
    """Times one run by the device's clock; without a GPU by the host's."""

    def __init__(self, device):
        self.device = device
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if device.type == "cuda" else []

    def time(self, run):
        """Seconds until the host has issued the run, until all is done, and as the device saw it."""
        hook.synchronize(self.device)
        begun = time.perf_counter()
        if self.events:
            self.events[0].record()
        run()
        issued = time.perf_counter()
        if self.events:
            self.events[1].record()
        hook.synchronize(self.device)
        done = time.perf_counter()
        seen = self.events[0].elapsed_time(self.events[1]) / 1e3 if self.events else done - begun
        return issued - begun, done - begun, seen


def step_times(run, device):
    """What a step takes: with a wait for the device after each, and in a loop that does not wait."""
    for _ in range(WARM_UP):
        run()
    clock, times, begun = Clock(device), [], time.perf_counter()
    while len(times) < LEAST or (len(times) < MOST and time.perf_counter() - begun < PATIENCE):
        times.append(clock.time(run))
    issued, done, seen = zip(*times)
    median, deviation = hook.spread_of(done)
    steps = max(3, min(MOST, int(PATIENCE / median)))
    hook.synchronize(device)
    begun = time.perf_counter()
    for _ in range(steps):
        run()
    hook.synchronize(device)
    looped = (time.perf_counter() - begun) / steps
    return {
        "step_seconds": median,
        "spread": deviation,
        "loop_seconds": looped,
        "device_seconds": statistics.median(seen),
        "host_seconds": statistics.median(issued),
    }


def median_seconds(run, device, patience):
    for _ in range(WARM_UP):
        run()
    clock, times, begun = Clock(device), [], time.perf_counter()
    while len(times) < LEAST or (len(times) < MOST and time.perf_counter() - begun < patience):
        times.append(clock.time(run)[2])
    return statistics.median(times)


def graph_of(run, repeats=1):
    """A CUDA graph that runs run() `repeats` times."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            run()
    return graph


def measure_eager(step):
    memory = Memory(step.device)
    return {**step_times(step.run, step.device), **memory.peaks()}


def measure_captured(step):
    if step.device.type != "cuda":
        raise RuntimeError("only a GPU has graphs")
    memory = Memory(step.device)
    graph = graph_of(lambda: step.run(keeps_casts=False))
    try:
        return {**step_times(graph.replay, step.device), **memory.peaks()}
    finally:
        step.optimizer.zero_grad(set_to_none=True)  # the graph owns the gradients
        graph.reset()


def measure_compiled(step):
    torch._dynamo.reset()
    compiled = torch.compile(step.trained, dynamic=False)
    run = lambda: step.run(trained=compiled)
    memory = Memory(step.device)
    begun = time.perf_counter()
    run()
    hook.synchronize(step.device)
    first = time.perf_counter() - begun
    result = {**step_times(run, step.device), **memory.peaks(), "first_step_seconds": first}
    try:
        result.update(profiled(run, step.device))
    except Exception as error:  # the times stand without it
        result["note"] = f"no profile: {one_line(error)}"
    return result


def measure_profile(step):
    """Kernels of one eager step."""
    for _ in range(WARM_UP):
        step.run()
    return profiled(step.run, step.device)


def profiled(run, device):
    """The kernels of one run: how many, their seconds, those that take the most, and how many launches the host made."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    hook.synchronize(device)
    with torch.profiler.profile(activities=activities) as profiler:
        run()
        hook.synchronize(device)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8") as trace:
            events = json.load(trace)
    return kernel_sums(events["traceEvents"] if isinstance(events, dict) else events)


def kernel_sums(events):
    """Sums over the events of a trace in Chrome's form."""
    counts, times, launches = collections.Counter(), collections.Counter(), 0
    for event in events:
        category, name = event.get("cat", ""), event.get("name", "")
        if category in ("kernel", "gpu_memcpy", "gpu_memset"):
            counts[name] += 1
            times[name] += event.get("dur", 0) / 1e6
        elif category in ("cuda_runtime", "cuda_driver") and "Launch" in name:
            launches += 1
    if not counts:
        raise RuntimeError("the profiler saw no kernel")
    longest = [(name[:KERNEL_NAME], counts[name], times[name]) for name, _ in times.most_common(KERNELS_LISTED)]
    return {
        "kernels": sum(counts.values()),
        "launches": launches,
        "kernel_seconds": sum(times.values()),
        "longest": longest,
    }


def device_seconds(run, device):
    """Seconds of run() as a graph, without launches by the host; if it cannot be captured, as it is."""
    try:
        return median_seconds(graph_of(run, IN_A_ROW).replay, device, LAYER_PATIENCE) / IN_A_ROW
    except RuntimeError:
        return median_seconds(run, device, LAYER_PATIENCE)


def layer_seconds(call, casting, device):
    """Seconds of forward and backward of one call."""
    if device.type != "cuda":
        with casting():
            return tuple(seconds for seconds, _ in hook.measure(call, device))

    def forward():
        with casting():
            return call.module(*call.arguments, **call.keywords)

    wanted = [tensor for tensor in hook.tensors_in((call.arguments, call.keywords)) if tensor.requires_grad]
    wanted += [parameter for parameter in call.module.parameters() if parameter.requires_grad]
    results = [tensor for tensor in hook.tensors_in(forward()) if tensor.requires_grad]
    gradients = [torch.randn_like(tensor) for tensor in results]
    del results

    def both():
        made = [tensor for tensor in hook.tensors_in(forward()) if tensor.requires_grad]
        torch.autograd.grad(made, wanted, gradients, allow_unused=True)

    forward_seconds = device_seconds(forward, device)
    if not wanted or not gradients:
        return forward_seconds, 0.0
    return forward_seconds, max(0.0, device_seconds(both, device) - forward_seconds)


def kind_of(module):
    """The kind of kernel, or for a loss the type that workloads call it."""
    kinds = {"Conv1D": "matmul", "CrossEntropyLoss": "cross_entropy"}  # Conv1D: a matrix product, in the package transformers
    return kinds.get(type(module).__name__) or hook.kind_of(module)


def likeness(call):
    """Calls with the same likeness take the same time."""
    tensors = hook.tensors_in((call.arguments, call.keywords))
    parameters = call.module.parameters()
    return (
        type(call.module).__name__, call.module.extra_repr(),
        tuple((tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad) for tensor in tensors),
        tuple((tuple(parameter.shape), parameter.requires_grad) for parameter in parameters),
    )  # fmt: skip


def recorded_calls(step):
    """The calls of all leaf modules in a forward pass, then those of attention."""
    global RECORDED
    RECORDED = []
    try:
        with step.casting():
            calls = hook.record(step.trained, step.batch)
        calls += RECORDED
    finally:
        RECORDED = None
    for call in calls:
        call.name = call.name.removeprefix("network.")
    return calls


@contextlib.contextmanager
def not_in_place(module):
    """A module that works in place would overwrite the input of its next run."""
    in_place = getattr(module, "inplace", None)
    if in_place:
        module.inplace = False
    yield
    if in_place:
        module.inplace = True


def measure_layers(step):
    """Times of each leaf module's forward and backward alone; equal ones are measured once."""
    calls = recorded_calls(step)
    keys = [likeness(call) for call in calls]
    first = {}
    for call, key in zip(calls, keys):
        if key in first:
            call.arguments = call.keywords = None  # frees their memory
        else:
            first[key] = call
    times, failed = {}, []
    for key, call in first.items():
        try:
            with not_in_place(call.module):
                times[key] = layer_seconds(call, lambda: step.casting(keeps_casts=False), step.device)
        except Exception as error:  # the other layers may still be measured
            failed.append(f"{call.name}: {one_line(error)}")
            if not still_works(step.device):
                raise
        call.arguments = call.keywords = None
    layers = [
        (call.name, kind_of(call.module), *times[key]) for call, key in zip(calls, keys) if key in times
    ]  # fmt: skip
    return {"layers": layers, "measured": len(times), **({"note": "; ".join(failed)} if failed else {})}


MEASURES = {
    "eager": measure_eager,
    "captured": measure_captured,
    "profile": measure_profile,
    "layers": measure_layers,
    "compiled": measure_compiled,
}


def one_line(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def software(device):
    """Versions and the device, in words."""
    parts = [f"torch {torch.__version__}"]
    for name in ("transformers", "torchvision"):
        try:
            parts.append(f"{name} {importlib.import_module(name).__version__}")
        except ImportError:
            pass
    if device.type == "cuda":
        parts += [f"CUDA {torch.version.cuda}", f"cuDNN {torch.backends.cudnn.version()}", torch.cuda.get_device_name(device)]
    else:
        parts.append("cpu")
    return ", ".join(parts)


def prepare(precision):
    if precision == "fp32":  # without rounding to tf32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False  # take the heuristic's choice, as calibrate_gpu does


def export(name, model, folder):
    """Writes the model's structure for one sample as ONNX, without weights."""
    import inspect

    import onnx

    network = make_network(model)
    samples = make_batch(model, network, 1, torch.device("cpu"))[0]
    path = os.path.join(folder, name + ".onnx")
    legacy = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(network.eval(), (samples,), path, opset_version=17, **legacy)
    document = onnx.load(path)
    for tensor in document.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims:  # shapes, which are integers, stay
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    onnx.save(document, path)
