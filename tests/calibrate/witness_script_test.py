# witness.py without PyTorch: witness_script_test.py PROGRAM. Its order of work, what it keeps of parts that failed, its
# budget, and that `stagecraft validate` finds an operator for each module that it names. A stand-in takes the place of
# witness_torch.py, the side that measures.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest

PROGRAM = sys.argv.pop(1)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../calibrate"))
sys.dont_write_bytecode = True
import witness
from witness_models import MODELS

MODULES = {  # of a layer and of the ends, by family: what a forward pass of the network calls
    "gpt2": ("transformer.h.{}.", {
        "ln_1": "normalization", "attn.c_attn": "matmul", "attn.c_proj": "matmul", "attn.resid_dropout": "elementwise",
        "ln_2": "normalization", "mlp.c_fc": "matmul", "mlp.act": "elementwise", "mlp.c_proj": "matmul",
        "mlp.dropout": "elementwise",
    }, {"transformer.wte": "embedding", "transformer.wpe": "embedding", "transformer.drop": "elementwise",
        "transformer.ln_f": "normalization", "lm_head": "matmul", "loss": "cross_entropy"}),
    "llama": ("model.layers.{}.", {
        "input_layernorm": "normalization", "self_attn.q_proj": "matmul", "self_attn.k_proj": "matmul",
        "self_attn.v_proj": "matmul", "self_attn.o_proj": "matmul", "post_attention_layernorm": "normalization",
        "mlp.gate_proj": "matmul", "mlp.up_proj": "matmul", "mlp.act_fn": "elementwise", "mlp.down_proj": "matmul",
    }, {"model.embed_tokens": "embedding", "model.rotary_emb": "embedding", "model.norm": "normalization",
        "lm_head": "matmul", "loss": "cross_entropy"}),
    "bert": ("bert.encoder.layer.{}.", {
        "attention.self.query": "matmul", "attention.self.key": "matmul", "attention.self.value": "matmul",
        "attention.output.dense": "matmul", "attention.output.dropout": "elementwise",
        "attention.output.LayerNorm": "normalization", "intermediate.dense": "matmul",
        "intermediate.intermediate_act_fn": "elementwise", "output.dense": "matmul", "output.dropout": "elementwise",
        "output.LayerNorm": "normalization",
    }, {"bert.embeddings.word_embeddings": "embedding", "bert.embeddings.position_embeddings": "embedding",
        "bert.embeddings.token_type_embeddings": "embedding", "bert.embeddings.LayerNorm": "normalization",
        "bert.embeddings.dropout": "elementwise", "bert.pooler.dense": "matmul", "bert.pooler.activation": "elementwise",
        "cls.predictions.transform.dense": "matmul", "cls.predictions.transform.transform_act_fn": "elementwise",
        "cls.predictions.transform.LayerNorm": "normalization", "cls.predictions.decoder": "matmul",
        "cls.seq_relationship": "matmul", "masked_language_loss": "cross_entropy",
        "next_sentence_loss": "cross_entropy"}),
}  # fmt: skip


def layers_of(model):
    pattern, of_layer, ends = MODULES[model.family]
    count = model.sizes.get("n_layer") or model.sizes["num_hidden_layers"]
    layers = [(name, kind, 1e-5, 2e-5) for name, kind in ends.items()]
    for number in range(count):
        layers += [(pattern.format(number) + name, kind, 1e-5, 2e-5) for name, kind in of_layer.items()]
        layers.append((f"attention.{number}", "attention", 1e-5, 2e-5))
    return layers


FACTS = {"step_seconds": 0.01, "spread": 0.01, "loop_seconds": 0.01, "host_seconds": 0.01, "peak_bytes": 10**9,
         "reserved_bytes": 2 * 10**9, "outside_bytes": 10**8}  # fmt: skip
KERNELS = {"kernels": 1000, "launches": 990, "kernel_seconds": 0.009, "longest": [("gemm", 10, 0.005)]}


class Step:
    def __init__(self, model, arguments):
        self.model, self.batch = model, 0

    def set_batch(self, batch):
        self.batch = batch


def eager(step):
    if step.batch > 4:
        raise RuntimeError("out of memory\nand more")
    return FACTS


def stand_in():
    module = types.ModuleType("witness_torch")
    module.torch = types.SimpleNamespace(device=lambda name: name)
    module.Step, module.prepare, module.empty_cache = Step, lambda precision: None, lambda device: None
    module.software, module.still_works = lambda device: "torch, NVIDIA H200", lambda device: True
    module.one_line = lambda error: str(error).splitlines()[0]
    module.MEASURES = {"eager": eager, "captured": lambda step: FACTS, "profile": lambda step: KERNELS,
                       "layers": lambda step: {"layers": layers_of(step.model)},
                       "compiled": lambda step: {**FACTS, **KERNELS, "first_step_seconds": 30.0}}  # fmt: skip
    return module


def arguments(*words):
    sys.argv = ["witness.py", "--device-name", "h200-sxm", *words]
    return witness.parse_arguments()


class Script(unittest.TestCase):
    def setUp(self):
        sys.modules["witness_torch"] = stand_in()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        witness.say = lambda text: None

    def work(self, *words):
        witness.work(arguments(*words, "-o", self.folder.name))

    def text(self, name):
        with open(os.path.join(self.folder.name, name), encoding="utf-8") as file:
            return file.read()

    def test_order(self):
        plan = [(way, case.stem) for way, case in witness.plan_of(arguments("gpt2", "vgg16", "--batches", "1,2,4"))]
        ways = [way for way, _ in plan]
        self.assertEqual(ways, sorted(ways, key=list(witness.WAYS).index))
        self.assertEqual(ways.count("eager"), 6)
        self.assertEqual([stem for way, stem in plan if way == "layers"], ["gpt2-b2-bf16", "vgg16-b2-bf16"])
        compiled = [stem for way, stem in plan if way == "compiled"]
        self.assertEqual(compiled[:3], ["gpt2-b2-bf16", "vgg16-b2-bf16", "gpt2-b1-bf16"])

    def test_failures_are_kept_and_left_alone(self):
        self.work("gpt2", "--batches", "1,8", "--ways", "eager,captured")
        self.assertIn("# eager: left out: out of memory\n", self.text("gpt2-b8-bf16.yaml"))
        self.assertIn("captured:\n  framework: transformers\n  step_seconds: 0.01\n", self.text("gpt2-b8-bf16.yaml"))
        plain, again = (
            witness.State(arguments("gpt2", "--batches", "1,8", "--ways", "eager", "-o", self.folder.name, *words))
            for words in ((), ("--again",))
        )
        self.assertEqual(plain.missing(), [])
        self.assertEqual([case.stem for _, case in again.missing()], ["gpt2-b8-bf16"])

    def test_a_part_that_kills_the_process_is_known_as_failed(self):
        def die(step):
            self.assertIn(witness.LEFT_OUT_BY_DEATH, self.text("gpt2-b1-bf16.yaml"))
            raise KeyboardInterrupt  # as far as the state is concerned

        sys.modules["witness_torch"].MEASURES["eager"] = die
        with self.assertRaises(KeyboardInterrupt):
            self.work("gpt2", "--batches", "1", "--ways", "eager")
        self.assertIn("failed", witness.State(arguments("-o", self.folder.name)).results["gpt2-b1-bf16"]["eager"])

    def test_budget(self):
        self.work("gpt2", "--ways", "eager,compiled", "--budget", "30")  # compiling takes longer
        state = json.loads(self.text(witness.STATE))["results"]
        self.assertEqual({way for ways in state.values() for way in ways}, {"eager"})

    def test_modules_are_operators(self):
        names = [name for name, model in MODELS.items() if model.family != "image"]
        self.work(*names)
        self.assertIn("gemm", self.text("gpt2-b16-bf16.eager-kernels.tsv"))
        command = [PROGRAM, "validate", self.folder.name, "--format", "json"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        metrics = {row["metric"] for row in found["rows"]}
        self.assertLessEqual({"eager_host_seconds", "captured_step_seconds", "compiled_kernels"}, metrics)
        for name in names:
            detailed = f"{name}-b{MODELS[name].detailed}-bf16/"
            rows = {row["case"].removeprefix(detailed) for row in found["rows"] if row["case"].startswith(detailed)}
            operators = {MODELS[name].operator_of(module) for module, *_ in layers_of(MODELS[name])} - {None}
            self.assertEqual(rows, operators)


unittest.main()
