"""The models that witness.py measures: batches, and which operator of workloads/MODEL.yaml each module is. Needs no torch."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re
from typing import Callable

# Patterns of modules, and the operator that each stands for. A module that matches none is no operator there.
# Readers of the file add up the modules of one operator, such as query, key and value.
GPT2_LAYER = r"transformer\.h\.(\d+)\."
GPT2 = (
    (r"transformer\.(wte|wpe)", "embedding"), (r"transformer\.drop", "drop"),
    (GPT2_LAYER + r"ln_1", r"layer.\1.norm1"), (GPT2_LAYER + r"attn\.c_attn", r"layer.\1.qkv"),
    (GPT2_LAYER + r"attn\.c_proj", r"layer.\1.projection"), (GPT2_LAYER + r"attn\.resid_dropout", r"layer.\1.drop1"),
    (GPT2_LAYER + r"ln_2", r"layer.\1.norm2"), (GPT2_LAYER + r"mlp\.c_fc", r"layer.\1.expand"),
    (GPT2_LAYER + r"mlp\.act", r"layer.\1.gelu"), (GPT2_LAYER + r"mlp\.c_proj", r"layer.\1.contract"),
    (GPT2_LAYER + r"mlp\.dropout", r"layer.\1.drop2"), (r"transformer\.ln_f", "norm"), (r"lm_head", "head"),
)  # fmt: skip
BERT_LAYER = r"bert\.encoder\.layer\.(\d+)\."
BERT = (
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
# The rotary module only makes sines, and the activation only half of a gated operator: neither is an operator there.
LLAMA_LAYER = r"model\.layers\.(\d+)\."
LLAMA = (
    (r"model\.embed_tokens", "embedding"), (LLAMA_LAYER + r"input_layernorm", r"layer.\1.norm1"),
    (LLAMA_LAYER + r"self_attn\.[qkv]_proj", r"layer.\1.qkv"),
    (LLAMA_LAYER + r"self_attn\.o_proj", r"layer.\1.projection"),
    (LLAMA_LAYER + r"post_attention_layernorm", r"layer.\1.norm2"),
    (LLAMA_LAYER + r"mlp\.(?:gate|up)_proj", r"layer.\1.expand"), (LLAMA_LAYER + r"mlp\.down_proj", r"layer.\1.contract"),
    (r"model\.norm", "norm"), (r"lm_head", "head"),
)  # fmt: skip
OF_EVERY_MODEL = ((r"attention\.(\d+)", r"layer.\1.attention"), (r"(\w+_)?loss", r"\1loss"))  # names by witness_torch.py
RESNET_PARTS = {
    "conv1": "conv1", "bn1": "norm1", "relu": "relu1", "conv2": "conv2", "bn2": "norm2", "relu-2": "relu2",
    "conv3": "conv3", "bn3": "norm3", "relu-3": "relu3", "downsample.0": "shortcut", "downsample.1": "shortcut_norm",
}  # fmt: skip
RESNET_ENDS = {
    "conv1": "conv1", "bn1": "norm1", "relu": "relu1", "maxpool": "pool1", "avgpool": "pool5", "fc": "fc",
    "loss": "loss",
}  # fmt: skip
VGG16_CONVOLUTIONS = (2, 2, 3, 3, 3)
VGG16_CLASSIFIER = ("fc6", "relu6", "drop6", "fc7", "relu7", "drop7", "fc8")


def by_patterns(patterns):
    def operator_of(module):
        for pattern, name in patterns + OF_EVERY_MODEL:
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
    operators["loss"] = "loss"
    return operators


@dataclasses.dataclass(frozen=True)
class Model:
    family: str  # which network of witness_torch.py
    sizes: dict  # of its configuration
    batches: tuple  # as many samples as fit 141 GB, or fewer where one more tells nothing new
    detailed: int  # the batch whose layers and kernels are measured
    operator_of: Callable  # from a module's name to an operator's, or None
    compiled = "pytorch-compiled"  # the recipe of workloads/frameworks that predicts its compiled step

    @property
    def framework(self):
        """The recipe that predicts its eager step."""
        return "pytorch-autocast" if self.family == "image" else "transformers"


MODELS = {
    "gpt2": Model(
        "gpt2", {"n_layer": 12, "n_embd": 768, "n_head": 12}, (1, 4, 16, 32), 16, by_patterns(GPT2)
    ),
    "tinyllama-1.1b": Model(
        "llama",
        {
            "hidden_size": 2048, "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4,
            "intermediate_size": 5632, "vocab_size": 32000, "max_position_embeddings": 2048,
        },
        (1, 4, 8), 4, by_patterns(LLAMA),
    ),
    "bert-large": Model(
        "bert",
        {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
        (1, 4, 16, 64), 16, by_patterns(BERT),
    ),
    "resnet50": Model("image", {"name": "resnet50"}, (1, 16, 64, 256), 64, resnet50_operator),
    "gpt2-medium": Model(
        "gpt2", {"n_layer": 24, "n_embd": 1024, "n_head": 16}, (1, 4, 16), 4, by_patterns(GPT2)
    ),
    "vgg16": Model("image", {"name": "vgg16"}, (1, 16, 64, 256), 64, vgg16_operators().get),
}  # fmt: skip
