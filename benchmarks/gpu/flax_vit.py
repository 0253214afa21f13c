"""A plain ViT in Flax, from its own layers, to compare with."""

import flax.linen as nn
import jax.numpy as jnp


class Block(nn.Module):
    num_heads: int
    mlp_dim: int
    param_dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        own = dict(dtype=jnp.bfloat16, param_dtype=self.param_dtype)
        y = nn.LayerNorm(1e-6, **own)(x)
        x = x + nn.MultiHeadDotProductAttention(self.num_heads, **own)(y, y)
        y = nn.Dense(self.mlp_dim, **own)(nn.LayerNorm(1e-6, **own)(x))
        return x + nn.Dense(x.shape[-1], **own)(nn.gelu(y, approximate=False))


class ViT(nn.Module):
    """Maps images of 0 to 255 to logits, by a class token."""

    width: int
    depth: int
    num_heads: int
    mlp_dim: int
    num_classes: int
    param_dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, images):
        own = dict(dtype=jnp.bfloat16, param_dtype=self.param_dtype)
        x = nn.Conv(self.width, (16, 16), (16, 16), "VALID", **own)(images / 127.5 - 1)
        x = x.reshape(len(x), -1, self.width)
        token = self.param("token", nn.initializers.zeros, (1, 1, self.width), self.param_dtype)
        x = jnp.concatenate([jnp.broadcast_to(token, (len(x), 1, self.width)).astype(x.dtype), x], 1)
        x = x + self.param("positions", nn.initializers.normal(0.02), (1, *x.shape[1:]), self.param_dtype).astype(
            x.dtype
        )
        for _ in range(self.depth):
            x = Block(self.num_heads, self.mlp_dim, self.param_dtype)(x)
        return nn.Dense(self.num_classes, param_dtype=self.param_dtype)(nn.LayerNorm(1e-6, **own)(x)[:, 0])
