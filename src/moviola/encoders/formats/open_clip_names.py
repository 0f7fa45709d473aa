"""Where an ``open_clip_model.safetensors`` keeps its tensors; see :mod:`moviola.encoders.names`."""

from __future__ import annotations

from moviola.encoders.names import Names, Part, filters, flat, piece, rows, turned

__all__ = ["TIMM", "TIMM_PROJECTIONS", "VARIED", "VISION", "hf_texts", "native_texts"]

Table = dict[str, Part]


def _blocks(tower: str, own: str) -> Table:
    """CLIP's own layers."""
    layer, at = f"{tower}.encoder.layers.{{n}}", f"{own}transformer.resblocks.{{n}}"
    qkv = {
        f"{layer}.self_attn.{part}_proj.{{kind}}": Part(f"{at}.attn.in_proj_{{kind}}", piece(number, 3))
        for number, part in enumerate("qkv")
    }
    plain = {
        "layer_norm1": "ln_1", "self_attn.out_proj": "attn.out_proj", "layer_norm2": "ln_2",
        "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj",
    }  # fmt: skip
    return qkv | {f"{layer}.{here}.{{kind}}": Part(f"{at}.{there}.{{kind}}") for here, there in plain.items()}


_EMBEDDINGS = "vision_model.embeddings"

VISION: Table = {
    f"{_EMBEDDINGS}.class_embedding": Part("visual.class_embedding"),
    f"{_EMBEDDINGS}.patch_embedding.{{kind}}": Part("visual.conv1.{kind}"),
    f"{_EMBEDDINGS}.position_embedding.weight": Part("visual.positional_embedding"),
    "vision_model.pre_layrnorm.{kind}": Part("visual.ln_pre.{kind}"),
    "vision_model.post_layernorm.{kind}": Part("visual.ln_post.{kind}"),
    "visual_projection.weight": Part("visual.proj", turned),
    **_blocks("vision_model", "visual."),
}
"""CLIP's tower of pictures."""

_TRUNK, _LAYER, _HEAD = "visual.trunk", "vision_model.encoder.layers.{n}", "vision_model.head"

TIMM: Table = {
    f"{_EMBEDDINGS}.class_embedding": Part(f"{_TRUNK}.cls_token", flat),
    f"{_EMBEDDINGS}.patch_embedding.{{kind}}": Part(f"{_TRUNK}.patch_embed.proj.{{kind}}"),
    f"{_EMBEDDINGS}.position_embedding.weight": Part(f"{_TRUNK}.pos_embed", rows),
    "vision_model.pre_layrnorm.{kind}": Part(f"{_TRUNK}.norm_pre.{{kind}}"),
    "vision_model.post_layernorm.{kind}": Part(f"{_TRUNK}.norm.{{kind}}"),
    **{
        f"{_LAYER}.self_attn.{part}_proj.{{kind}}": Part(
            f"{_TRUNK}.blocks.{{n}}.attn.qkv.{{kind}}", piece(number, 3)
        )
        for number, part in enumerate("qkv")
    },
    **{
        f"{_LAYER}.{here}.{{kind}}": Part(f"{_TRUNK}.blocks.{{n}}.{there}.{{kind}}")
        for here, there in {
            "layer_norm1": "norm1", "self_attn.out_proj": "attn.proj", "layer_norm2": "norm2",
            "mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2",
        }.items()
    },
    f"{_HEAD}.probe": Part(f"{_TRUNK}.attn_pool.latent"),
    f"{_HEAD}.attention.q_proj.{{kind}}": Part(f"{_TRUNK}.attn_pool.q.{{kind}}"),
    f"{_HEAD}.attention.k_proj.{{kind}}": Part(f"{_TRUNK}.attn_pool.kv.{{kind}}", piece(0, 2)),
    f"{_HEAD}.attention.v_proj.{{kind}}": Part(f"{_TRUNK}.attn_pool.kv.{{kind}}", piece(1, 2)),
    f"{_HEAD}.attention.out_proj.{{kind}}": Part(f"{_TRUNK}.attn_pool.proj.{{kind}}"),
    f"{_HEAD}.layernorm.{{kind}}": Part(f"{_TRUNK}.attn_pool.norm.{{kind}}"),
    f"{_HEAD}.mlp.fc1.{{kind}}": Part(f"{_TRUNK}.attn_pool.mlp.fc1.{{kind}}"),
    f"{_HEAD}.mlp.fc2.{{kind}}": Part(f"{_TRUNK}.attn_pool.mlp.fc2.{{kind}}"),
}  # fmt: skip
"""Towers of timm's."""

VARIED: Table = {
    **TIMM,
    f"{_EMBEDDINGS}.patch_embedding.weight": Part(f"{_TRUNK}.embeds.proj.weight", filters),
    f"{_EMBEDDINGS}.patch_embedding.bias": Part(f"{_TRUNK}.embeds.proj.bias"),
    f"{_EMBEDDINGS}.position_embedding.weight": Part(f"{_TRUNK}.embeds.pos_embed", rows),
}
"""Towers of timm's whose pictures vary in their number of patches: a table (1, s, s, d) of places."""

TIMM_PROJECTIONS: dict[str, Table] = {
    "none": {},
    "linear": {"visual_projection.{kind}": Part("visual.head.proj.{kind}")},
    "": {"visual_projection.{kind}": Part(f"{_TRUNK}.head.{{kind}}")},
}
"""The layer into the common space, by ``timm_proj``; where that names none it is the trunk's own."""


def native_texts(prefix: str, *, linear: bool) -> Names:
    """CLIP's tower of texts; its projection is ``linear``, or a matrix that rows are multiplied by."""
    projection = (
        {"text_projection.{kind}": Part(f"{prefix}text_projection.{{kind}}")}
        if linear
        else {"text_projection.weight": Part(f"{prefix}text_projection", turned)}
    )
    return Names({
        "text_model.embeddings.token_embedding.weight": Part(f"{prefix}token_embedding.weight"),
        "text_model.embeddings.position_embedding.weight": Part(f"{prefix}positional_embedding"),
        "text_model.final_layer_norm.{kind}": Part(f"{prefix}ln_final.{{kind}}"),
        **projection,
        **_blocks("text_model", prefix),
    })  # fmt: skip


def hf_texts() -> Names:
    """A tower of transformers'."""
    inside = ("embeddings.", "encoder.layer.")
    return Names({}, {
        **{beginning: f"text.transformer.{beginning}" for beginning in inside},
        "text_projection.": "text.proj.",
    })  # fmt: skip
