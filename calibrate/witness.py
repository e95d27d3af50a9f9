#!/usr/bin/env python3
"""Measures training steps of known models in PyTorch, for `stagecraft validate` (docs/formats/witness.md).

    python3 witness.py vgg16 resnet50 gpt2 --batch 32 --precision bf16 --device-name h200-sxm -o witness

writes witness/MODEL-bBATCH-PRECISION.yaml for each model: the time of a step, its time as one CUDA graph, the peak of the allocator,
and the times of each leaf module's forward and backward alone. Weights are random; nothing is downloaded. With --export DIR it also
writes each model as ONNX without weights. Needs hook.py in the same folder.
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import inspect
import os
import re
import statistics
import sys
import time

import torch

import hook

WARM_UP, LEAST, MOST = 5, 9, 200
PATIENCE, LAYER_PATIENCE = 3.0, 0.05  # seconds of sampling for one median
IN_A_ROW = 10  # runs of a layer in one graph, since starting a graph takes some microseconds

# Patterns of modules, and the operator of workloads/MODEL.yaml that each stands for. A module that matches none is no operator there.
# Readers of the file add up the modules of one operator, such as query, key and value.
TRANSFORMER_GPT2 = (
    (r"transformer\.(wte|wpe)", "embedding"), (r"transformer\.drop", "drop"),
    (r"transformer\.h\.(\d+)\.ln_1", r"layer.\1.norm1"), (r"transformer\.h\.(\d+)\.attn\.c_attn", r"layer.\1.qkv"),
    (r"transformer\.h\.(\d+)\.attn\.c_proj", r"layer.\1.projection"),
    (r"transformer\.h\.(\d+)\.attn\.resid_dropout", r"layer.\1.drop1"),
    (r"transformer\.h\.(\d+)\.ln_2", r"layer.\1.norm2"), (r"transformer\.h\.(\d+)\.mlp\.c_fc", r"layer.\1.expand"),
    (r"transformer\.h\.(\d+)\.mlp\.act", r"layer.\1.gelu"),
    (r"transformer\.h\.(\d+)\.mlp\.c_proj", r"layer.\1.contract"),
    (r"transformer\.h\.(\d+)\.mlp\.dropout", r"layer.\1.drop2"),
    (r"transformer\.ln_f", "norm"), (r"lm_head", "head"),
)  # fmt: skip
BERT_LAYER = r"bert\.encoder\.layer\.(\d+)\."
TRANSFORMER_BERT = (
    (r"bert\.embeddings\.(word|position|token_type)_embeddings", "embedding"),
    (r"bert\.embeddings\.LayerNorm", "norm0"), (r"bert\.embeddings\.dropout", "drop0"),
    (BERT_LAYER + r"attention\.self\.(?:query|key|value)", r"layer.\1.qkv"),
    (BERT_LAYER + r"attention\.output\.dense", r"layer.\1.projection"),
    (BERT_LAYER + r"attention\.output\.dropout", r"layer.\1.drop1"),
    (BERT_LAYER + r"attention\.output\.LayerNorm", r"layer.\1.norm1"),
    (BERT_LAYER + r"intermediate\.dense", r"layer.\1.expand"),
    (BERT_LAYER + r"intermediate\.intermediate_act_fn", r"layer.\1.gelu"),
    (BERT_LAYER + r"output\.dense", r"layer.\1.contract"), (BERT_LAYER + r"output\.dropout", r"layer.\1.drop2"),
    (BERT_LAYER + r"output\.LayerNorm", r"layer.\1.norm2"),
    (r"bert\.pooler\.dense", "pooler"), (r"bert\.pooler\.activation", "pooler_tanh"),
    (r"cls\.seq_relationship", "next_sentence"), (r"cls\.predictions\.transform\.dense", "transform"),
    (r"cls\.predictions\.transform\.transform_act_fn", "transform_gelu"),
    (r"cls\.predictions\.transform\.LayerNorm", "transform_norm"), (r"cls\.predictions\.decoder", "masked_language"),
)  # fmt: skip
RESNET_PARTS = {
    "conv1": "conv1", "bn1": "norm1", "relu": "relu1", "conv2": "conv2", "bn2": "norm2", "relu-2": "relu2",
    "conv3": "conv3", "bn3": "norm3", "relu-3": "relu3", "downsample.0": "shortcut", "downsample.1": "shortcut_norm",
}  # fmt: skip
RESNET_ENDS = {
    "conv1": "conv1", "bn1": "norm1", "relu": "relu1", "maxpool": "pool1", "avgpool": "pool5", "fc": "fc",
}  # fmt: skip
VGG16_CONVOLUTIONS = (2, 2, 3, 3, 3)
VGG16_CLASSIFIER = ("fc6", "relu6", "drop6", "fc7", "relu7", "drop7", "fc8")


def by_patterns(patterns):
    def operator_of(module):
        for pattern, name in patterns:
            match = re.fullmatch(pattern, module)
            if match:
                return match.expand(name)
        return None

    return operator_of


def resnet50_operator(module):
    match = re.fullmatch(r"layer(\d)\.(\d+)\.(.+)", module)
    if not match:
        return RESNET_ENDS.get(module)
    stage, block, part = match[1], int(match[2]), RESNET_PARTS.get(match[3])
    return part and f"stage{stage}.{'first' if block == 0 else f'rest.{block - 1}'}.{part}"


def vgg16_operators():
    names = []
    for stage, count in enumerate(VGG16_CONVOLUTIONS, 1):
        for number in range(count):
            names += [f"conv{stage}.{number}.conv", f"conv{stage}.{number}.relu"]
        names.append(f"pool{stage}")
    operators = {f"features.{index}": name for index, name in enumerate(names)}
    operators.update({f"classifier.{index}": name for index, name in enumerate(VGG16_CLASSIFIER)})
    return operators


def images(name):
    def make(batch):
        import torchvision

        model = getattr(torchvision.models, name)(weights=None).to(memory_format=torch.channels_last)
        pictures = torch.randn(batch, 3, 224, 224).contiguous(memory_format=torch.channels_last)
        return model, pictures, {"labels": torch.randint(1000, (batch,))}

    return make


def image_loss(model, pictures, targets):
    return torch.nn.functional.cross_entropy(model(pictures), targets["labels"])


def gpt2(layers, width, heads):
    def make(batch):
        import transformers

        config = transformers.GPT2Config(n_layer=layers, n_embd=width, n_head=heads, use_cache=False)
        tokens = torch.randint(config.vocab_size, (batch, config.n_positions))
        return transformers.GPT2LMHeadModel(config), tokens, {"labels": tokens}

    return make


def bert_large(batch):
    import transformers

    config = transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    )
    tokens = torch.randint(config.vocab_size, (batch, 512))
    targets = {"labels": tokens, "next_sentence_label": torch.randint(2, (batch,))}
    return transformers.BertForPreTraining(config), tokens, targets


def text_loss(model, tokens, targets):
    return model(tokens, **targets).loss


MODELS = {  # name: function that makes the model and a batch, its loss, function from modules to operators
    "vgg16": (images("vgg16"), image_loss, vgg16_operators().get),
    "resnet50": (images("resnet50"), image_loss, resnet50_operator),
    "gpt2": (gpt2(12, 768, 12), text_loss, by_patterns(TRANSFORMER_GPT2)),
    "gpt2-medium": (gpt2(24, 1024, 16), text_loss, by_patterns(TRANSFORMER_GPT2)),
    "bert-large": (bert_large, text_loss, by_patterns(TRANSFORMER_BERT)),
}


class Step:
    """One training step of a model."""

    def __init__(self, name, arguments):
        make, self.loss, self.operator_of = MODELS[name]
        self.device = torch.device(arguments.device)
        self.dtype = {"fp32": None, "bf16": torch.bfloat16}[arguments.precision]
        model, samples, targets = make(arguments.batch)
        self.model = model.to(self.device).train()
        self.samples = samples.to(self.device)
        self.targets = {key: value.to(self.device) for key, value in targets.items()}
        self.optimizer = self.make_optimizer(arguments.optimizer)

    def make_optimizer(self, name):
        on_gpu = self.device.type == "cuda"
        if name == "adam":
            return torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=on_gpu, capturable=on_gpu)
        momentum = 0.9 if name == "momentum" else 0.0
        return torch.optim.SGD(self.model.parameters(), lr=1e-5, momentum=momentum, foreach=on_gpu)

    def casting(self, keeps_casts=True):
        """For bf16, weights stay fp32 and are cast once per step; without `keeps_casts`, for layers and graphs, at every use."""
        return torch.autocast(
            self.device.type, dtype=self.dtype, enabled=self.dtype is not None, cache_enabled=keeps_casts
        )

    def run(self, keeps_casts=True):
        self.optimizer.zero_grad(set_to_none=True)
        with self.casting(keeps_casts):
            loss = self.loss(self.model, self.samples, self.targets)
        loss.backward()
        self.optimizer.step()


def timed(run, device):
    """Seconds of run()."""
    if device.type != "cuda":
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def median_seconds(run, device, patience=PATIENCE):
    for _ in range(WARM_UP):
        run()
    times, begun = [], time.perf_counter()
    while len(times) < LEAST or (len(times) < MOST and time.perf_counter() - begun < patience):
        times.append(timed(run, device))
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

    def both():
        made = [tensor for tensor in hook.tensors_in(forward()) if tensor.requires_grad]
        torch.autograd.grad(made, wanted, gradients, allow_unused=True)

    forward_seconds = device_seconds(forward, device)
    if not wanted or not results:
        return forward_seconds, 0.0
    return forward_seconds, max(0.0, device_seconds(both, device) - forward_seconds)


def kind_of(module):
    return "matmul" if type(module).__name__ == "Conv1D" else hook.kind_of(module)  # a matrix product, in the package transformers


def layer_line(name, kind, forward, backward):
    return f"  - {{name: {name}, kind: {kind}, forward_seconds: {forward:.6g}, backward_seconds: {backward:.6g}}}"


def layer_lines(step):
    """A line for each module that is an operator, then a comment for each other one."""
    with step.casting():
        calls = hook.record(step.model, (step.samples,))
    lines, left_out = [], []
    for call in calls:
        in_place = getattr(call.module, "inplace", None)
        if in_place:  # it would overwrite the input of the next run
            call.module.inplace = False
        forward, backward = layer_seconds(call, lambda: step.casting(keeps_casts=False), step.device)
        if in_place:
            call.module.inplace = True
        name = step.operator_of(call.name)
        line = layer_line(hook.quoted(name or call.name), kind_of(call.module), forward, backward)
        (lines if name else left_out).append(line if name else "#" + line[1:] + " is no operator")
        call.arguments = call.keywords = None  # frees their memory
    return lines + left_out


def graph_or_none(step):
    """Seconds of a step as one CUDA graph, or None. Must run last: a failed capture may leave the device unusable."""
    try:
        return median_seconds(graph_of(lambda: step.run(keeps_casts=False)).replay, step.device)
    except RuntimeError as error:
        print(f"no graph of the step: {str(error).splitlines()[0]}", file=sys.stderr)
        return None


def peak_bytes(step):
    torch.cuda.reset_peak_memory_stats(step.device)
    for _ in range(3):
        step.run()
    torch.cuda.synchronize(step.device)
    return torch.cuda.max_memory_allocated(step.device)


def witness_text(head, layers):
    """The text of the file; of `head`, keys and values, those with a value None are left out."""
    lines = [f"{key}: {value}" for key, value in head.items() if value is not None]
    return "\n".join(lines + ["layers:" if layers else "layers: []"] + layers) + "\n"


def measure(name, arguments):
    step = Step(name, arguments)
    on_gpu = step.device.type == "cuda"
    software = f"torch {torch.__version__}" + (f", CUDA {torch.version.cuda}" if on_gpu else "")
    driver_name = torch.cuda.get_device_name(step.device) if on_gpu else "cpu"
    slug = re.sub(r"[^a-z0-9]+", "-", driver_name.lower()).strip("-")
    head = {
        "witness": hook.quoted(f"{software}, {driver_name}"),
        "model": name,
        "device": hook.quoted(arguments.device_name or slug),
        "batch": arguments.batch,
        "precision": arguments.precision,
        "optimizer": arguments.optimizer,
        "step_seconds": f"{median_seconds(step.run, step.device):.6g}",
        "graph_seconds": None,
        "peak_bytes": peak_bytes(step) if on_gpu else None,
    }
    layers = layer_lines(step)
    whole = graph_or_none(step) if on_gpu else None
    head["graph_seconds"] = f"{whole:.6g}" if whole else None
    return witness_text(head, layers)


def export(name, folder):
    """Writes the model's structure for one sample as ONNX, without weights."""
    import onnx

    model, samples, _ = MODELS[name][0](1)
    path = os.path.join(folder, name + ".onnx")
    legacy = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(model.eval(), (samples,), path, opset_version=17, **legacy)
    document = onnx.load(path)
    for tensor in document.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims:  # shapes, which are integers, stay
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")
    onnx.save(document, path)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", choices=sorted(MODELS), metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--batch", type=int, default=8, help="samples of a step: images or sequences (8)")
    parser.add_argument("--precision", default="bf16", choices=("fp32", "bf16"), help="bf16 by autocast")
    parser.add_argument("--optimizer", default="adam", choices=("sgd", "momentum", "adam"), help="adam: AdamW, fused")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--device-name", help="as in platforms/devices (default: from the driver's name)")
    parser.add_argument("--export", metavar="DIR", help="write MODEL.onnx there too, without weights (needs onnx)")
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.batch < 1:
        sys.exit("--batch is at least 1")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # fp32 without rounding to tf32
    torch.backends.cudnn.benchmark = False  # take the heuristic's choice, as calibrate_gpu does
    for folder in filter(None, (arguments.output, arguments.export)):
        os.makedirs(folder, exist_ok=True)
    failed = False
    for name in arguments.models:
        try:
            text = measure(name, arguments)
            path = os.path.join(arguments.output, f"{name}-b{arguments.batch}-{arguments.precision}.yaml")
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            print(path)
            if arguments.export:
                export(name, arguments.export)
        except (ImportError, RuntimeError) as error:  # a package is missing or memory ran out; other models may still work
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
        if arguments.device.startswith("cuda"):
            torch.cuda.empty_cache()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
