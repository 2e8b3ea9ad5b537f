#!/usr/bin/env python3
"""Writes the tokenizer metadata of GGUF files as NAME.json.xz beside this script.

usage: make.py NAME=FILE.gguf...

Keeps the keys tokenizer.ggml.* and general.name; chat templates are left out.
"""
import json
import lzma
import os
import struct
import sys

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


def read_metadata(file):
    def scalar(code):
        return struct.unpack("<" + code, file.read(struct.calcsize(code)))[0]

    def string():
        return file.read(scalar("Q")).decode("utf-8")

    def value(kind):
        if kind == STRING:
            return string()
        if kind == ARRAY:
            item, count = scalar("I"), scalar("Q")
            return [value(item) for _ in range(count)]
        return scalar(SCALARS[kind])

    if file.read(4) != b"GGUF":
        raise SystemExit(f"{file.name} is no GGUF file")
    scalar("I"), scalar("Q")
    count = scalar("Q")
    metadata = {}
    for _ in range(count):
        key = string()
        metadata[key] = value(scalar("I"))
    return metadata


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for argument in sys.argv[1:]:
        name, path = argument.split("=", 1)
        with open(path, "rb") as file:
            metadata = read_metadata(file)
        kept = {k: v for k, v in metadata.items() if k.startswith("tokenizer.ggml.") or k == "general.name"}
        kept = {k: [int(x) if x == int(x) else x for x in v] if k.endswith("scores") else v for k, v in kept.items()}
        text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        target = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".json.xz")
        with open(target, "wb") as file:
            file.write(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


main()
