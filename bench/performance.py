#!/usr/bin/env python3
"""The tables of docs/performance.md: speeds of one model, and of the linear kernels.

    bench/performance.py MODEL.gguf [--tercet PATH] [--threads N] [--isa NAME] [--repetitions N]

Prints Markdown. Run it on a quiet machine; the least and the most of the repetitions say how quiet it was.
"""
import argparse
import json
import statistics
import subprocess

# prompt tokens, new tokens, sequences
CELLS = [(512, 64, 1), (4096, 32, 1), (64, 64, 2), (64, 64, 4), (64, 64, 8), (64, 64, 16), (64, 64, 32)]


def run(args, *words):
    command = [args.tercet, "bench", *words, "-t", str(args.threads), "--isa", args.isa, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def model_table(args):
    print("| prompt | new | sequences | prompt tokens/s | of the multiply-adds | new tokens/s | of the read bandwidth |")
    print("|---|---|---|---|---|---|---|")
    for prompt, new, sequences in CELLS:
        out = run(args, args.model, "-p", str(prompt), "-n", str(new), "-b", str(sequences), "-r", str(args.repetitions))
        prompt_speed, new_speed = out["prompt_tokens_per_second"], out["generation_tokens_per_second"]
        multiplied = statistics.median(prompt_speed) * out["operations_per_prompt_token"] / out["peak_operations_per_second"]
        read = statistics.median(speed * out["bytes_per_token"] / bandwidth
                                 for speed, bandwidth in zip(new_speed, out["read_bytes_per_second"]))
        print(f"| {prompt} | {new} | {sequences} | {spread(prompt_speed)} | {100 * multiplied:.0f} % | {spread(new_speed)} | "
              f"{100 * read:.0f} % |", flush=True)


def kernel_table(args):
    rows = [1, 2, 4, 5, 8, 16, 512]
    out = run(args, "kernels", "--rows", ",".join(map(str, rows)))
    print("| type | GB/s, 1 row | of the read bandwidth | " +
          " | ".join(f"{n} rows against 1" for n in rows[1:-1]) + " | GOPS, 512 rows | of the multiply-adds |")
    print("|---" * (len(rows) + 3) + "|")
    for name in dict.fromkeys(entry["type"] for entry in out):
        cells = {entry["rows"]: entry for entry in out if entry["type"] == name}
        one, many = cells[1], cells[rows[-1]]
        ratios = " | ".join(f"{cells[n]['seconds'] / one['seconds']:.2f}" for n in rows[1:-1])
        read = one["weight_bytes_per_second"]
        print(f"| {name} | {read / 1e9:.1f} | {100 * read / one['read_bytes_per_second']:.0f} % | {ratios} | "
              f"{many['operations_per_second'] / 1e9:.0f} | "
              f"{100 * many['operations_per_second'] / many['peak_operations_per_second']:.0f} % |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tercet", default="build/release/src/app/tercet")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--isa", default="auto")
    parser.add_argument("--repetitions", type=int, default=3)
    args = parser.parse_args()
    model_table(args)
    print()
    kernel_table(args)


if __name__ == "__main__":
    main()
