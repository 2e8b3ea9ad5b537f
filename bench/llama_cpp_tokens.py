#!/usr/bin/env python3
"""Does llama.cpp read a GGUF file of `tercet convert` as tercet does? Greedy tokens of both, compared.

    llama_cpp_tokens.py GOLDEN_FOLDER TERCET [FAMILY...]

Converts the golden models (tests/data/arch) to F32 GGUF with the program TERCET and has llama.cpp continue ids_a; the ids
must be those that Transformers gave. Prints one line a family; exit status 1 where one differs. Without FAMILY: all that
llama.cpp computes as Transformers does; docs/convert.md says why the others differ. llama.cpp's C functions are those
inside the extension module of PyPI's xllamacpp (any version: structs whose fields may move are passed as bytes).
"""

import ctypes
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import xllamacpp

DEFAULT = ["llama", "llama_plain", "qwen2", "qwen3", "gemma3", "phi3", "glm", "glm4", "olmo2", "granite", "smollm3", "mixtral",
           "deepseek_v3"]
LOG_ERROR = 4  # GGML_LOG_LEVEL_ERROR
errors = []


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def keep_errors(level, text, _):
    if level == LOG_ERROR:
        errors.append(text.decode(errors="replace").strip())


def tensors(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            kind = {"I64": np.int64, "F32": np.float32}[entry["dtype"]]
            yield name, np.frombuffer(data[begin:end], kind).reshape(entry["shape"])


class Bytes(ctypes.Structure):
    """A struct of llama.cpp by value, larger than any of them, so that its fields need not be known."""
    _fields_ = [("bytes", ctypes.c_uint64 * 64)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.c_void_p), ("embd", ctypes.c_void_p), ("pos", ctypes.c_void_p),
                ("n_seq_id", ctypes.c_void_p), ("seq_id", ctypes.c_void_p), ("logits", ctypes.c_void_p)]


def library():
    path = next(pathlib.Path(xllamacpp.__file__).parent.glob("*.so"))
    lib = ctypes.CDLL(str(path))
    pointer = ctypes.c_void_p
    for name, result, arguments in [
            ("llama_model_default_params", Bytes, []), ("llama_context_default_params", Bytes, []),
            ("llama_model_load_from_file", pointer, [ctypes.c_char_p, Bytes]),
            ("llama_init_from_model", pointer, [pointer, Bytes]), ("llama_model_get_vocab", pointer, [pointer]),
            ("llama_vocab_n_tokens", ctypes.c_int32, [pointer]), ("llama_batch_get_one", Batch, [pointer, ctypes.c_int32]),
            ("llama_decode", ctypes.c_int32, [pointer, Batch]),
            ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [pointer, ctypes.c_int32]),
            ("llama_free", None, [pointer]), ("llama_model_free", None, [pointer])]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    lib.llama_log_set(keep_errors, None)
    lib.llama_backend_init()
    return lib


def greedy(lib, path, ids, count):
    """Token ids that llama.cpp gives after `ids`, the largest logit each time."""
    errors.clear()
    model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
    if not model:
        return f"does not load: {errors[0] if errors else 'no reason given'}"
    context = lib.llama_init_from_model(model, lib.llama_context_default_params())
    size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    found, step = [], list(ids)
    while len(found) < count:
        array = (ctypes.c_int32 * len(step))(*step)
        if lib.llama_decode(context, lib.llama_batch_get_one(ctypes.addressof(array), len(step))) != 0:
            return "does not decode"
        logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(context, -1), shape=(size,))
        found.append(int(logits.argmax()))
        step = [found[-1]]
    lib.llama_free(context)
    lib.llama_model_free(model)
    return found


def main():
    folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    different = 0
    lib = library()
    with tempfile.TemporaryDirectory() as scratch:
        for family in sys.argv[3:] or DEFAULT:
            path = pathlib.Path(scratch) / f"{family}.gguf"
            subprocess.run([program, "convert", folder / family, path, "--type", "f32"], check=True,
                           stderr=subprocess.DEVNULL)
            golden = dict(tensors(folder / family / "golden.safetensors"))
            wanted = golden["greedy_a"].tolist()
            found = greedy(lib, path, golden["ids_a"].tolist(), len(wanted))
            same = found == wanted
            different += not same
            print(f"{family:14} {'same' if same else found}")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
