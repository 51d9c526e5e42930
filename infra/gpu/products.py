"""Whether a row of a product, of attention or of a reduction has the same bits however many rows there are.

    python3 infra/gpu/products.py

It needs JAX with a CUDA plugin, and takes two minutes. The flags of Reprise, and others beside them, are
each tried in a process of its own. Shapes are those of Qwen2.5-0.5B and SmolLM2-135M.
"""

import os
import subprocess
import sys
import time

ASKED = "--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true "
TODAY = ASKED + "--xla_gpu_enable_triton_gemm=false"
SETS = {
    "today": (TODAY, {}),
    "workspace": (TODAY, {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}),
    "no-cublaslt": (TODAY + " --xla_gpu_enable_cublaslt=false", {}),
    "cublaslt": (TODAY + " --xla_gpu_enable_cublaslt=true", {}),
    "triton": (ASKED + "--xla_gpu_enable_triton_gemm=true", {}),
}
ROWS = [1, 2, 8, 64, 128, 256, 512, 2048, 8192]
SHAPES = [(896, 896), (896, 128), (896, 4864), (4864, 896), (576, 576), (576, 192), (576, 1536), (1536, 576), (576, 49152)]


def main():
    for name, (flags, environment) in SETS.items():
        print("=====", name, flags, environment, flush=True)
        environment = dict(os.environ, XLA_FLAGS=flags, XLA_PYTHON_CLIENT_PREALLOCATE="false", **environment)
        subprocess.run([sys.executable, __file__, name], env=environment, timeout=240, check=True)


def measure(everything):
    import jax
    import jax.numpy as jnp
    import numpy as np

    random = np.random.default_rng(0)

    def normal(shape, dtype, scale=1.0):
        return jnp.asarray(random.standard_normal(shape) * scale, dtype)

    def bits(x):
        return np.asarray(x.astype(jnp.float32)).view(np.uint32)

    def product(x, w):
        return jax.lax.dot_general(x, w, (((1,), (1,)), ((), ())))

    whole = jax.jit(product)
    for dtype in (jnp.bfloat16, jnp.float32):
        for k, n in SHAPES:
            rows = [m for m in ROWS if m * n <= 2048 * 49152]
            x, w = normal((rows[-1], k), dtype), normal((n, k), dtype, 0.05)
            most = bits(whole(x, w))
            differ = [(m, int((bits(whole(x[:m], w)) != most[:m]).any(axis=1).sum())) for m in rows]
            print(f"product {dtype.__name__} {k} -> {n}: rows that differ from those of {rows[-1]}: {differ}", flush=True)
    if not everything:
        return
    for dtype in (jnp.bfloat16, jnp.float32):
        for k, n in ((896, 4864), (4864, 896)):
            x, w = normal((8192, k), dtype), normal((n, k), dtype, 0.05)
            for m in (64, 128, 256):
                blocks = jax.jit(lambda x, w: jax.lax.map(lambda b: product(b, w), x.reshape(-1, m, k)).reshape(-1, n))
                same = bool((bits(blocks(x, w))[:m] == bits(whole(x[:m], w))).all())
                ratio = seconds(blocks, x, w) / seconds(whole, x, w)
                print(f"blocks of {m} rows, {dtype.__name__} {k} -> {n}: those of {m} alone: {same}; time beside the whole: {ratio:.2f}", flush=True)
        attend(dtype, normal, bits, jax, jnp)
    x = normal((8192, 896), jnp.float32)
    for name, f in {
        "mean of squares": lambda x: jnp.mean(x * x, axis=-1),
        "softmax": lambda x: jax.nn.softmax(x, axis=-1),
        "exp": jnp.exp,
        "silu": jax.nn.silu,
        "log-sum-exp": lambda x: jax.nn.logsumexp(x, axis=-1),
    }.items():
        f = jax.jit(f)
        most = bits(f(x))
        print(name, [(m, bool((bits(f(x[:m])) == most[:m]).all())) for m in ROWS[:-2]], flush=True)


def attend(dtype, normal, bits, jax, jnp):
    """Both products of attention, of 14 heads over 512 keys, by the number of queries."""
    q, k = normal((8, 14, 512, 64), dtype), normal((8, 14, 512, 64), dtype)
    scores = jax.jit(lambda q, k: jnp.einsum("bhqd,bhkd->bhqk", q, k))
    values = jax.jit(lambda p, v: jnp.einsum("bhqk,bhkd->bhqd", p, v))
    p = jax.nn.softmax(scores(q, k).astype(jnp.float32)).astype(dtype)
    for name, f, x in (("queries by keys", scores, q), ("weights by values", values, p)):
        most = bits(f(x, k))
        print(name, dtype.__name__, [(m, bool((bits(f(x[:, :, :m], k)) == most[:, :, :m]).all())) for m in ROWS[:6]], flush=True)


def seconds(f, x, w):
    f(x, w).block_until_ready()
    began = time.time()
    for _ in range(20):
        y = f(x, w)
    y.block_until_ready()
    return time.time() - began


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1] in ("today", "workspace", "no-cublaslt"))
    else:
        main()
