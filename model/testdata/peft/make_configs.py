"""Writes configs.json beside it: every adapter_config.json that PEFT writes, one a value of each field of LoraConfig.

Needs `pip install --no-deps peft==0.21.2 packaging` alone: PEFT's file with the configuration is run as it is, and
what it imports of torch, transformers and huggingface_hub is replaced by empty classes. The fields, their types and their defaults are LoraConfig's by
reflection. A type's values are tried in turn: both truth values, each word of a Literal, each configuration of its own. Fields
of texts, lists and tables need values that mean something, in VALUES; one without a value stops the script. A value that PEFT
refuses alone is written with what it asks for, in BESIDE.

The file has the defaults once, and of each case the fields that differ from them. Other kinds of adapters are in "kinds".
"""

import dataclasses
import importlib.machinery
import json
import pathlib
import sys
import tempfile
import types
import typing
import warnings

warnings.simplefilter("ignore")
HERE = pathlib.Path(__file__).parent


def module(name, **has):
    made = types.ModuleType(name)
    made.__dict__.update(has)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None)
    sys.modules[name] = made
    return made


def package(name, folder, **has):
    module(name, **has).__path__ = [str(folder)]


root = next(pathlib.Path(p) / "peft" for p in sys.path if (pathlib.Path(p) / "peft" / "config.py").exists())
nn = module("torch.nn", Module=type("Module", (), {}))
module("torch", nn=nn)
module("transformers")
module("transformers.utils", PushToHubMixin=type("PushToHubMixin", (), {}), http_user_agent=lambda: "")
module("huggingface_hub", hf_hub_download=None)
module("scipy")
import importlib.metadata  # noqa: E402

package("peft", root, __version__=importlib.metadata.version("peft"))
package("peft.utils", root / "utils")
package("peft.tuners", root / "tuners")
package("peft.tuners.lora", root / "tuners" / "lora")
from peft.utils.peft_types import PeftType, TaskType  # noqa: E402

sys.modules["peft.utils"].__dict__.update(PeftType=PeftType, TaskType=TaskType, CONFIG_NAME="adapter_config.json")
from peft.tuners.lora import config  # noqa: E402

LAYERS = {"layers_to_transform": [0]}
VALUES = {
    "task_type": [None, *TaskType],
    "peft_type": [],  # LoraConfig sets it
    "auto_mapping": [{"base_model_class": "Qwen2ForCausalLM", "parent_library": "transformers"}],
    "peft_version": [],  # PEFT sets it
    "base_model_name_or_path": [None, "Qwen/Qwen2.5-0.5B"],
    "revision": ["main"],
    "r": [1, 16, 64],
    "target_modules": [
        "all-linear",
        ["q_proj"],
        ["self_attn.q_proj", "mlp.up_proj"],
        ["model.layers.0.self_attn.q_proj"],
        ["q_proj", "lm_head"],
        ["embed_tokens"],
        r".*\.q_proj",
        [],
        None,
    ],
    "exclude_modules": [[], ["q_proj"], r".*\.0\..*"],
    "lora_alpha": [1, 16, 32.5],
    "lora_dropout": [0.05],
    "modules_to_save": [[], ["lm_head"]],
    "init_lora_weights": ["pissa_niter_16", "lora_ga"],
    "layers_to_transform": [0, 1, [], [0], [0, 1]],
    "layers_pattern": ["layers", ["layers"]],
    "rank_pattern": [{"q_proj": 8}],
    "alpha_pattern": [{"q_proj": 8}],
    "megatron_config": [{}, {"hidden_size": 8}],
    "megatron_core": [None, "megatron.core.mine"],
    "trainable_token_indices": [[], [1, 2], {"embed_tokens": [1]}],
    "loftq_config": [config.LoftQConfig(), {"loftq_bits": 8}],
    "alora_invocation_tokens": [[], [1, 2]],
    "qalora_group_size": [32],
    "layer_replication": [[], [(0, 2), (1, 2)]],
    "target_parameters": [[], ["mlp.experts.down_proj"]],
    "runtime_config": [config.LoraRuntimeConfig(ephemeral_gpu_offload=True)],
}
# What PEFT asks for beside a value, or what gives it its effect.
BESIDE = {
    "layers_pattern": [LAYERS],
    "qalora_group_size": [{"use_qalora": True}],
    "loftq_config": [{"init_lora_weights": "loftq"}],
    "eva_config": [{"init_lora_weights": "eva"}, {"init_lora_weights": "eva", "rank_pattern": {"q_proj": 2}}],
    "corda_config": [{"init_lora_weights": "corda"}],
    "lora_ga_config": [{"init_lora_weights": "lora_ga"}],
    "ensure_weight_tying": [
        {"modules_to_save": ["lm_head"]},
        {"trainable_token_indices": [1]},
        {"target_modules": ["q_proj", "embed_tokens"]},
    ],
    "use_rslora": [{"rank_pattern": {"q_proj": 2}}, {"use_dora": True}],
    "alora_invocation_tokens": [{"task_type": TaskType.CAUSAL_LM, "use_rslora": True}],
}
EVERYWHERE = {
    "task_type": TaskType.CAUSAL_LM,
    "target_modules": ["q_proj", "v_proj"],
    "base_model_name_or_path": "qwen2-tiny",
    "inference_mode": True,
}


def of_type(kind):
    """The values of a type that need no thought."""
    if kind is bool:
        return [False, True]
    if dataclasses.is_dataclass(kind) and kind is not config.LoraRuntimeConfig and kind is not config.LoftQConfig:
        made = [kind(nblocks=2) if kind is config.BdLoraConfig else kind()]
        for f in dataclasses.fields(kind):
            hint = typing.get_type_hints(kind)[f.name]
            made += [
                dataclasses.replace(made[0], **{f.name: v}) for v in typing.get_args(hint) if typing.get_origin(hint) is typing.Literal
            ]
        return made
    if typing.get_origin(kind) is typing.Literal:
        return [v for v in typing.get_args(kind) if "[" not in str(v)]
    return [v for part in typing.get_args(kind) if not isinstance(part, (str, int)) for v in of_type(part)]


def written(**values):
    with tempfile.TemporaryDirectory() as folder:
        config.LoraConfig(**{**EVERYWHERE, **values}).save_pretrained(folder)
        saved = json.loads((pathlib.Path(folder) / "adapter_config.json").read_text())
    for key in ("target_modules", "exclude_modules"):  # sets, in any order
        saved[key] = sorted(saved[key]) if isinstance(saved[key], list) else saved[key]
    return saved


defaults = written()
hints = typing.get_type_hints(config.LoraConfig)
cases, refused = [], []
for f in dataclasses.fields(config.LoraConfig):
    values = of_type(hints[f.name]) + VALUES.get(f.name, [])
    if not values and f.name not in VALUES:
        sys.exit(f"{f.name} is new: give it values")
    for value in values:
        for beside in [{}] + BESIDE.get(f.name, []):
            try:
                saved = written(**{f.name: value, **beside})
            except (ValueError, TypeError) as e:
                refused.append(f"{f.name}: {e}")
                continue
            case = {"field": f.name, "set": {k: v for k, v in saved.items() if k not in defaults or v != defaults[k]}}
            if case not in cases:
                cases.append(case)
kinds = sorted(k.value for k in PeftType if k != PeftType.LORA)
lines = ",\n".join("  " + json.dumps(c, sort_keys=True) for c in cases)
(HERE / "configs.json").write_text(
    f'{{\n "version": "{defaults["peft_version"]}",\n "defaults": {json.dumps(defaults, sort_keys=True)},\n "kinds": {json.dumps(kinds)},\n "cases": [\n{lines}\n ]\n}}\n'
)
print(len(cases), "cases of", len(dataclasses.fields(config.LoraConfig)), "fields; PEFT refuses", *refused, sep="\n  ")
