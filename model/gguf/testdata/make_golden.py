"""Goldens of package gguf, by the Python package gguf (0.17 or newer; numpy comes with it).

    python make_golden.py        # writes blocks.json, tiny.gguf and tiny.json beside itself

blocks.json: random blocks of every kind that is read, the SHA-256 of their numbers as little-endian
float32, and the bits of the first 256. Scales are finite. tiny.gguf: a Llama of two layers, written by
gguf's own writer with the same metadata as SmolLM2's; tiny.json: the Hugging Face folder of it, the tensors
as SHA-256 of their float32 and bfloat16 bytes. The same bytes every time."""
import base64, hashlib, json, os
import numpy as np
from gguf import GGUFReader, GGUFWriter, GGMLQuantizationType as Q, GGML_QUANT_SIZES, LlamaFileType
from gguf.quants import dequantize, quantize

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(44)
sha = lambda b: hashlib.sha256(b).hexdigest()

def halves(n):  # finite float16: exponents of all bits but one
    h = rng.integers(0, 1 << 16, n, dtype=np.uint16)
    return np.where((h >> 10) & 31 == 31, h & 0xbfff, h).astype("<u2")

SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q6_K": [208]}
blocks = {}
for name in ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K"]:
    kind = Q[name]
    block, size = GGML_QUANT_SIZES[kind]
    n = 32 if block > 1 else 1024
    raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
    if name == "F32":
        raw = rng.standard_normal((n, 1), dtype=np.float32).view(np.uint8)
    if name == "F16":
        raw = halves(n).reshape(n, 1).view(np.uint8)
    if name == "BF16":
        raw = (rng.standard_normal((n, 1), dtype=np.float32).view(np.uint32) >> 16).astype("<u2").view(np.uint8)
    for at in SCALES.get(name, []):
        raw[:, at:at + 2] = halves(n).reshape(n, 1).view(np.uint8)
    values = dequantize(np.ascontiguousarray(raw).reshape(1, -1), kind).astype("<f4").ravel()
    assert values.size == n * block and np.isfinite(values).all(), name
    blocks[name] = {"raw": base64.b64encode(raw.tobytes()).decode(), "sha256": sha(values.tobytes()),
                    "first": values[:256].view("<u4").tolist()}
every = np.arange(1 << 16, dtype="<u2")
every = every[~np.isnan(every.view(np.float16))]
blocks["every float16 but NaN"] = {"sha256": sha(dequantize(every.view(np.uint8).reshape(1, -1), Q.F16).astype("<f4").tobytes())}
with open(f"{here}/blocks.json", "w") as f:
    json.dump(blocks, f)

# A whole file. Byte tokens as GPT-2 has them, three control tokens before them, a few merges.
printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
chars = {b: chr(b) for b in printable}
chars.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)})
tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [chars[b] for b in range(256)]
merges = [("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("&", "<"), ('"', "\\")]
tokens += [a + b for a, b in merges]
kinds = [3] * 3 + [1] * (len(tokens) - 3)
template = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}\u2028é"
D, F, L, H, KV, V = 64, 96, 2, 4, 2, len(tokens)
w = GGUFWriter(f"{here}/tiny.gguf", "llama")
w.add_name("tiny"); w.add_context_length(512); w.add_embedding_length(D); w.add_block_count(L); w.add_feed_forward_length(F)
w.add_head_count(H); w.add_head_count_kv(KV); w.add_rope_freq_base(100000.0); w.add_layer_norm_rms_eps(1e-5); w.add_vocab_size(V)
w.add_rope_dimension_count(D // H); w.add_file_type(LlamaFileType.MOSTLY_Q4_1); w.add_quantization_version(2)
w.add_add_space_prefix(False); w.add_add_bos_token(False); w.add_tokenizer_model("gpt2"); w.add_tokenizer_pre("smollm")
w.add_token_list(tokens); w.add_token_types(kinds); w.add_token_merges([" ".join(m) for m in merges])
w.add_bos_token_id(1); w.add_eos_token_id(2); w.add_unk_token_id(0); w.add_pad_token_id(2); w.add_chat_template(template)
shapes = {"token_embd": ((V, D), Q.Q8_0), "output_norm": ((D,), Q.F32)}
for i in range(L):
    shapes |= {f"blk.{i}.{n}": s for n, s in {
        "attn_norm": ((D,), Q.F32), "ffn_down": ((D, F), Q.Q4_1), "ffn_gate": ((F, D), Q.Q4_0), "ffn_up": ((F, D), Q.F16), "ffn_norm": ((D,), Q.F32),
        "attn_k": ((KV * D // H, D), Q.Q4_1), "attn_output": ((D, D), Q.BF16), "attn_q": ((D, D), Q.Q4_1), "attn_v": ((KV * D // H, D), Q.Q4_1)}.items()}
for name, (shape, kind) in shapes.items():
    data = quantize(rng.standard_normal(shape, dtype=np.float32), kind)
    w.add_tensor(f"{name}.weight", data, raw_dtype=kind)
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()

r = GGUFReader(f"{here}/tiny.gguf")
unpermute = lambda w, n: w.reshape(n, w.shape[0] // n // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
tensors = {}
for t in r.tensors:
    v, p = dequantize(np.array(t.data), t.tensor_type), t.name.split(".")
    if p[0] == "blk":
        v = unpermute(v, H) if p[2] == "attn_q" else unpermute(v, KV) if p[2] == "attn_k" else v
    to = f"model.layers.{p[1]}.{parts[p[2]]}.weight" if p[0] == "blk" else {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[p[0]]
    v = np.ascontiguousarray(v, dtype="<f4"); u = v.view(np.uint32)
    half = ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype("<u2")  # to nearest, ties to even
    tensors[to] = {"shape": list(v.shape), "F32": sha(v.tobytes()), "BF16": sha(half.tobytes())}

dump = lambda v: json.dumps(v, ensure_ascii=False, indent=2)
added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i, t in enumerate(tokens) if kinds[i] == 3]
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
files = {
    "config.json": dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False, "hidden_act": "silu",
        "hidden_size": D, "intermediate_size": F, "num_hidden_layers": L, "num_attention_heads": H, "num_key_value_heads": KV, "max_position_embeddings": 512,
        "rms_norm_eps": 1e-05, "rope_theta": 100000.0, "rope_scaling": None, "vocab_size": V, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2,
        "initializer_range": 0.125, "pretraining_tp": 1, "torch_dtype": "float32", "use_cache": True}),
    "generation_config.json": dump({"_from_model_config": True, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}),
    "tokenizer.json": dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]}, "post_processor": None,
        "decoder": dict(level, add_prefix_space=True),
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": False, "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges]}}),
    "tokenizer_config.json": dump({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, "clean_up_tokenization_spaces": False,
        "add_prefix_space": False, "bos_token": tokens[1], "eos_token": tokens[2], "pad_token": tokens[2], "unk_token": tokens[0],
        "chat_template": template, "added_tokens_decoder": {str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in added}})}
# llama.cpp's factors of rotary positions for Llama 3.2 1B (convert_hf_to_gguf.py, in its order of operations).
freqs = (np.float32(1) / (np.float32(500000) ** (np.arange(0, 64, 2, dtype=np.float32) / np.float32(64)))).astype(np.float32)
factors = []
for freq in freqs:
    wavelen = 2 * np.pi / float(freq)
    smooth = (8192 / wavelen - 1) / (4 - 1)
    factors.append(1.0 if wavelen < 8192 / 4 else 32.0 if wavelen > 8192 / 1 else 1 / ((1 - smooth) / 32 + smooth))
factors = np.array(factors, dtype=np.float32).tolist()

with open(f"{here}/tiny.json", "w", encoding="utf-8") as f:
    json.dump({"files": files, "tensors": tensors, "rope_factors": factors}, f, ensure_ascii=False, indent=1)
