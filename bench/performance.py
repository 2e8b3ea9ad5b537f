#!/usr/bin/env python3
"""The tables of docs/performance.md: speeds of one model, and of the linear kernels.

    bench/performance.py MODEL.gguf [--tercet PATH] [--threads N] [--isa NAME] [--repetitions N]
                         [--table model|kernels] [--types q4_K,f16]

Prints Markdown. Run it on a quiet machine; the least and the most of the repetitions say how quiet it was.
"""
import argparse
import json
import statistics
import subprocess

def run(args, *words):
    command = [args.tercet, "bench", *words, "-t", str(args.threads), "--isa", args.isa, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def model_table(args):
    print("| prompt | new | sequences | prompt tokens/s | of the multiply-adds | new tokens/s | of the read bandwidth |")
    print("|---|---|---|---|---|---|---|")
    for prompts, batches in (("1,512,4096", "1"), ("64", "2,4,8,16")):
        out = run(args, args.model, "-p", prompts, "-n", "32", "-b", batches, "-r", str(args.repetitions))
        for cell in out["cells"]:
            prompt_speed, new_speed = cell["prompt_tokens_per_second"], cell["generation_tokens_per_second"]
            multiplied = (statistics.median(prompt_speed) * cell["operations_per_prompt_token"]
                          / out["peak_operations_per_second"])
            read = statistics.median(speed * cell["bytes_per_token"] / bandwidth
                                     for speed, bandwidth in zip(new_speed, cell["read_bytes_per_second"]))
            prompt = f"{spread(prompt_speed)} | {100 * multiplied:.0f} %" if cell["prompt_tokens"] > 1 else "|"
            print(f"| {cell['prompt_tokens']} | {cell['new_tokens']} | {cell['sequences']} | {prompt} | "
                  f"{spread(new_speed)} | {100 * read:.0f} % |", flush=True)


def kernel_table(args):
    rows = [1, 2, 4, 5, 8, 16, 512]
    types = ["--types", args.types] if args.types else []
    out = run(args, "kernels", "--rows", ",".join(map(str, rows)), *types)
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
    parser.add_argument("--types", help="of the kernels' table, as q4_K,f16; without: all")
    parser.add_argument("--table", choices=["model", "kernels"], help="without: both")
    args = parser.parse_args()
    if args.table != "kernels":
        model_table(args)
        print()
    if args.table != "model":
        kernel_table(args)


if __name__ == "__main__":
    main()
