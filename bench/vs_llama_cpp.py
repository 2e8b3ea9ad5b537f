#!/usr/bin/env python3
"""Speed of tercet against llama.cpp, in turn (A B A B), on the same file with the same threads.

    bench/vs_llama_cpp.py MODEL.gguf --peer PATH/TO/llama-batched-bench [--pairs 7] [--threads 2]
                          [--cells 1:64:1,512:64:1,4096:32:1,64:64:8]

A peer is llama-batched-bench of a build, or bench/xllamacpp_batched.py for the wheel.

A cell is prompt tokens, new tokens and sequences that run together. Prints every pair, and a table in Markdown of the
medians and the ratios (tercet / llama.cpp; median, least and most). Other work on the machine disturbs both alike only
if it lasts: look at the spread before trusting a median. Several peers (--peer again) run in each turn; the ratio is to
the fastest of them.
"""
import argparse
import json
import statistics
import subprocess


def run(command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def tercet(args, prompt, new, sequences):
    out = json.loads(run([args.tercet, "bench", args.model, "-t", args.threads, "-p", prompt, "-n", new, "-b", sequences,
                          "-r", 1, "--isa", args.isa, "--json"]))
    cell = out["cells"][0]
    return cell["prompt_tokens_per_second"][0], cell["generation_tokens_per_second"][0]


def llama_cpp(args, peer, prompt, new, sequences):
    out = run([peer, "-m", args.model, "-t", args.threads, "-npp", prompt, "-ntg", new, "-npl", sequences,
               "-c", sequences * (prompt + new + 64), "-fa", "on", "--output-format", "jsonl"])
    cell = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    return cell["speed_pp"], cell["speed_tg"]


def fastest(speeds):
    return tuple(max(values) for values in zip(*speeds))


def measure(args, cell):
    ours, theirs = [], []
    for pair in range(args.pairs):
        ours.append(tercet(args, *cell))
        peers = [llama_cpp(args, peer, *cell) for peer in args.peer]
        theirs.append(fastest(peers))
        prompts, news = (", ".join(f"{speed[kind]:.1f}" for speed in [ours[-1], *peers]) for kind in (0, 1))
        print(f"{cell}, pair {pair + 1}: prompt {prompts}; generation {news} tokens/s (tercet, peers)", flush=True)
    return ours, theirs


def columns(ours, theirs, kind):
    ratios = [a[kind] / b[kind] for a, b in zip(ours, theirs)]
    a, b = (statistics.median(speed[kind] for speed in speeds) for speeds in (ours, theirs))
    return f"{a:.1f} | {b:.1f} | {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--peer", action="append", required=True)
    parser.add_argument("--tercet", default="build/release/src/app/tercet")
    parser.add_argument("--isa", default="auto")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cells", default="1:64:1,512:64:1,4096:32:1,64:64:8")
    args = parser.parse_args()
    rows = []
    for text in args.cells.split(","):
        cell = tuple(map(int, text.split(":")))
        ours, theirs = measure(args, cell)
        for kind, name in enumerate(("prompt", "generation")):
            if kind == 1 or cell[0] > 1:
                rows.append(f"| {name} | {' | '.join(map(str, cell))} | {columns(ours, theirs, kind)} |")
    print(f"\n{args.pairs} pairs, {args.threads} threads\n")
    print("| | prompt | new | sequences | tercet tokens/s | llama.cpp tokens/s | ratio |\n|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
