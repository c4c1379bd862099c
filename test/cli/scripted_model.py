#!/usr/bin/env python3
"""test/cli/scripted_model.py: writes a model that answers every prompt with given tokens.

    scripted_model.py OUT.gguf TEMPLATE REPLY [CONTROL]

In REPLY, \\n is a line end, "‹TEXT›" a control token, "«TEXT»" a user-defined one, and the text
between them, divided by "¦", an ordinary one each (a letter: its own). CONTROL has the tokens with which the prompt
ends, if the reply has them too.
Each token determines the next one, because its embedding is a state of its own and nothing else
acts; so a token that occurs again is another token with the same text. All other tokens lead to the
first one of the reply.
"""
import array
import re
import struct
import sys

U32, I32, F32, BOOL, STR, ARR = 4, 5, 6, 7, 8, 9
END = "<|endoftext|>"


def letters():
    """The characters of GPT-2's vocabulary for the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = (chr(256 + n) for n in range(256))
    return [chr(b) if b in plain else next(other) for b in range(256)]


def text(t):
    data = t.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, v):
    if kind == STR:
        return text(v)
    if kind == ARR:
        item, items = v
        return struct.pack("<IQ", item, len(items)) + b"".join(value(item, i) for i in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], v)


def floats(n_columns, n_rows, ones=()):
    data = array.array("f", bytes(4 * n_columns * n_rows))
    for row, column, x in ones:
        data[row * n_columns + column] = x
    return data


def pieces(reply):
    """Pairs of a text and the kind of its token."""
    kinds = {"‹": 3, "«": 4}
    for part in re.findall("‹[^›]*›|«[^»]*»|[^‹«¦]+", reply.replace("\\n", "\n")):
        kind = kinds.get(part[0], 1)
        yield (part if kind == 1 else part[1:-1]), kind


def vocabulary(reply, control):
    byte = letters()
    tokens, kinds, script = list(byte), [1] * 256, []
    for t, kind in [(END, 3), *pieces(control)]:
        tokens.append(t)
        kinds.append(kind)
    for t, kind in pieces(reply):
        if t in byte and byte.index(t) not in script:
            script.append(byte.index(t))
            continue
        script.append(len(tokens))
        tokens.append(t if kind != 1 else "".join(byte[b] for b in t.encode()))
        kinds.append(kind)
    return tokens, kinds, script + [tokens.index(END)]


def main(out, template, reply, control=""):
    tokens, kinds, script = vocabulary(reply, control)
    size = (len(script) + 40) // 32 * 32
    n = len(tokens)
    state = {token: 1 + at for at, token in enumerate(script[:-1])}
    embedding = floats(size, n, [(t, state.get(t, 0), 1.0) for t in range(n)])
    output = floats(size, n, [(t, at, 20.0) for at, t in enumerate(script)])
    one = array.array("f", [1.0] * size)
    keys = [("general.architecture", STR, "llama"), ("general.name", STR, "scripted")]
    keys += [("llama." + key, U32, number) for key, number in (
        ("block_count", 1), ("embedding_length", size), ("context_length", 16384),
        ("feed_forward_length", 32), ("attention.head_count", 1), ("attention.head_count_kv", 1),
        ("rope.dimension_count", size))]
    keys += [("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
             ("tokenizer.ggml.model", STR, "gpt2"), ("tokenizer.ggml.pre", STR, "gpt-2"),
             ("tokenizer.ggml.tokens", ARR, (STR, tokens)),
             ("tokenizer.ggml.token_type", ARR, (I32, kinds)),
             ("tokenizer.ggml.merges", ARR, (STR, ["a b"])),
             ("tokenizer.ggml.eos_token_id", U32, tokens.index(END)),
             ("tokenizer.ggml.bos_token_id", U32, tokens.index(END)),
             ("tokenizer.ggml.add_bos_token", BOOL, False),
             ("tokenizer.chat_template", STR, template)]
    tensors = [("token_embd.weight", [size, n], embedding), ("output_norm.weight", [size], one),
               ("output.weight", [size, n], output)]
    for name, shape in (("attn_norm", None), ("attn_q", [size, size]), ("attn_k", [size, size]),
                        ("attn_v", [size, size]), ("attn_output", [size, size]),
                        ("ffn_norm", None), ("ffn_gate", [size, 32]), ("ffn_up", [size, 32]),
                        ("ffn_down", [32, size])):
        data = one if shape is None else floats(*shape)
        tensors.append((f"blk.0.{name}.weight", shape or [size], data))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(text(k) + struct.pack("<I", kind) + value(kind, v) for k, kind, v in keys)
    at = 0
    for name, shape, data in tensors:
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", 0, at)
        at += -(-4 * len(data) // 32) * 32
    with open(out, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        for _, _, data in tensors:
            file.write(data.tobytes() + bytes(-4 * len(data) % 32))


main(*sys.argv[1:])
