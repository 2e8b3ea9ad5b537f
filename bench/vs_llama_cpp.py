#!/usr/bin/env python3
"""Prompt and generation speed of tercet against llama.cpp, in turn (A B A B), on the same file with the same threads.

    bench/vs_llama_cpp.py MODEL.gguf --llama-bench PATH/TO/llama-bench [--pairs 7] [--threads 2] [-p 512] [-n 64]

Prints every pair and the median of the pairs' ratios (tercet / llama.cpp). Other work on the machine disturbs both alike
only if it lasts: look at the spread before trusting a median.
"""
import argparse
import json
import statistics
import subprocess


def tercet(args):
    command = [args.tercet, "bench", args.model, "-t", str(args.threads), "-p", str(args.prompt), "-n", str(args.new),
               "-r", "1", "--json"]
    out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return out["prompt_tokens_per_second"][0], out["generation_tokens_per_second"][0]


def llama_cpp(args):
    # Generation is measured behind a prompt of the same length, as tercet does.
    command = [args.llama_bench, "-m", args.model, "-t", str(args.threads), "-p", str(args.prompt), "-n", str(args.new),
               "-d", f"0,{args.prompt}", "-fa", "1", "-r", "1", "-o", "json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    prompt = next(row for row in rows if row["n_prompt"] > 0 and row["n_depth"] == 0)
    new = next(row for row in rows if row["n_gen"] > 0 and row["n_depth"] == args.prompt)
    return prompt["avg_ts"], new["avg_ts"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--tercet", default="build/release/src/app/tercet")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--new", type=int, default=64)
    args = parser.parse_args()
    ratios = ([], [])
    for pair in range(args.pairs):
        ours, theirs = tercet(args), llama_cpp(args)
        for kind in (0, 1):
            ratios[kind].append(ours[kind] / theirs[kind])
        print(f"pair {pair + 1}: prompt {ours[0]:.1f} and {theirs[0]:.1f}, generation {ours[1]:.2f} and {theirs[1]:.2f} tokens/s"
              f" (tercet and llama.cpp)", flush=True)
    for kind, name in enumerate(("prompt", "generation")):
        print(f"{name}: median ratio {statistics.median(ratios[kind]):.2f}"
              f" (from {min(ratios[kind]):.2f} to {max(ratios[kind]):.2f})")


if __name__ == "__main__":
    main()
