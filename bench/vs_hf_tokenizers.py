#!/usr/bin/env python3
"""Speed of encoding against Hugging Face's `tokenizers`, in turn (A B A B), on one thread, on the same text.

    pip install tokenizers
    bench/vs_hf_tokenizers.py tokenizer.json [--model MODEL] [--pairs 7] [--prose FILE] [--code FILE]

MODEL is what tercet reads, the same tokenizer.json if it is left out: a GGUF file with the same vocabulary may be given.
Without FILE the prose is Python's language reference with the licences of the system, the code this repository's own.
Prints every pair and the median of the pairs' ratios (tercet / tokenizers). Both encode each text once before they are
measured; `tokenizers` uses encode_batch_fast, which computes no offsets. Ends with status 1 where the tokens differ.
"""
import argparse
import json
import os
import pathlib
import pydoc_data.topics
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_CHARS = 1 << 20


def prose():
    licences = sorted(pathlib.Path("/usr/share/common-licenses").glob("*"))
    texts = list(pydoc_data.topics.topics.values())
    return "".join(texts + [path.read_text(errors="replace") for path in licences if not path.is_symlink()])


def code():
    return "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*")) if path.suffix in (".cc", ".h"))


def tercet(args, path):
    command = [args.tercet, "bench", "tokenize", args.model or args.tokenizer, "-f", path, "-r", "1", "--json"]
    out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]
    return out["bytes_per_second"][0] / 1e6, out["tokens"]


def hugging_face(tokenizer, text):
    start = time.perf_counter()
    encoded = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0]
    return len(text.encode()) / (time.perf_counter() - start) / 1e6, len(encoded.ids)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokenizer", help="a tokenizer.json")
    parser.add_argument("--model", help="what tercet reads instead")
    parser.add_argument("--tercet", default=ROOT / "build/release/src/app/tercet")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--prose")
    parser.add_argument("--code")
    args = parser.parse_args()
    tokenizer = tokenizers.Tokenizer.from_file(args.tokenizer)
    differ = False
    for name, file, made in (("prose", args.prose, prose), ("code", args.code, code)):
        text = (pathlib.Path(file).read_text() if file else made())[:MAX_CHARS]
        with tempfile.NamedTemporaryFile("w") as saved:
            saved.write(text)
            saved.flush()
            hugging_face(tokenizer, text)
            ratios = []
            for pair in range(args.pairs):
                (ours, our_tokens), (theirs, their_tokens) = tercet(args, saved.name), hugging_face(tokenizer, text)
                ratios.append(ours / theirs)
                print(f"{name}, pair {pair + 1}: {ours:.2f} and {theirs:.2f} MB/s (tercet and tokenizers)", flush=True)
        differ |= our_tokens != their_tokens
        print(f"{name}: {len(text.encode())} bytes, {our_tokens} and {their_tokens} tokens, median ratio "
              f"{statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f})")
    sys.exit(differ)


if __name__ == "__main__":
    main()
