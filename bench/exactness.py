#!/usr/bin/env python3
"""Whether answers under load are those that `tercet run` gives alone, token for token.

    bench/exactness.py --data FOLDER [--model smollm2-135m] [--tercet PATH] [--requests 200] [--alone FILE]

FOLDER holds gsm8k-test.jsonl, humaneval.jsonl.gz and spec-bench.jsonl. So many of their prompts, greedy and seeded, are
first answered by `tercet run`, one process each, then by `tercet serve` at concurrency 1, 8 and 32, while other clients
leave in the middle of their answers and a small KV pool has requests preempted. --alone keeps the first answers for the
next time. Fails at the first difference, and if nothing was preempted.
"""
import argparse
import concurrent.futures
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/clients"))
from tercet_server import Server, eventually  # noqa: E402

CONTEXT = 1152
FLAGS = ("-c", str(CONTEXT), "--kv-tokens", str(CONTEXT), "--parallel", "32", "--prefill-chunk", "128", "-t", "2")
MAX_PROMPT = 2500  # characters, so that prompt and answer fit the context


def prompts(folder, count):
    def lines(text):
        return [json.loads(line) for line in text.splitlines()]

    kinds = [
        [entry["question"] for entry in lines((folder / "gsm8k-test.jsonl").read_text())],
        [entry["prompt"] for entry in lines(gzip.decompress((folder / "humaneval.jsonl.gz").read_bytes()).decode())],
        [entry["turns"][0] for entry in lines((folder / "spec-bench.jsonl").read_text())],
    ]
    rng = random.Random(1)
    chosen = [rng.choice([p for p in kinds[i % 3] if len(p) <= MAX_PROMPT]) for i in range(count)]
    return chosen


def request(i, prompt):
    """Every second one greedy, the others with a seed and much of the sampler."""
    fields = {"prompt": prompt, "max_tokens": 16 + i % 7 * 48, "temperature": 0, "seed": i}
    if i % 2 == 1:
        fields.update(temperature=0.9, top_p=0.95, top_k=[0, 40][i // 2 % 2], repetition_penalty=[1.0, 1.1][i // 4 % 2],
                      min_p=[0, 0.05][i // 8 % 2])
    return fields


def alone(args, fields):
    flags = {"-n": "max_tokens", "--temp": "temperature", "--seed": "seed", "--top-p": "top_p", "--top-k": "top_k",
             "--repeat-penalty": "repetition_penalty", "--min-p": "min_p"}
    words = [word for flag, name in flags.items() if name in fields for word in (flag, str(fields[name]))]
    with tempfile.NamedTemporaryFile("w") as prompt:  # which may begin with a dash
        prompt.write(fields["prompt"])
        prompt.flush()
        done = subprocess.run([args.tercet, "run", args.model, "-f", prompt.name, "--raw", "--json", "-t", "2",
                               "-c", str(CONTEXT), *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["token_ids"]


def answers_alone(args, requests):
    kept = json.loads(args.alone.read_text()) if args.alone and args.alone.exists() else {}
    for i, fields in enumerate(requests):
        key = json.dumps([args.model, fields])
        if key not in kept:
            kept[key] = alone(args, fields)
            if args.alone:
                args.alone.write_text(json.dumps(kept))
            print(f"\ralone: {i + 1} of {len(requests)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return [kept[json.dumps([args.model, fields])] for fields in requests]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--tercet", default="build/release/src/app/tercet")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--alone", type=pathlib.Path)
    args = parser.parse_args()
    requests = [request(i, prompt) for i, prompt in enumerate(prompts(args.data, args.requests))]
    expected = answers_alone(args, requests)
    with Server(args.tercet, *FLAGS, model=args.model) as server:
        for concurrency in (1, 8, 32):
            compare(server, requests, expected, concurrency)
        if server.metric("vllm:num_preemptions_total") == 0:
            sys.exit("nothing was preempted: this shows too little")


def compare(server, requests, expected, concurrency):
    stop = threading.Event()
    aborted = [0]

    def disturb():
        rng = random.Random(concurrency)
        while not stop.is_set():
            server.leave_early({"prompt": rng.choice(requests)["prompt"], "max_tokens": 200, "stream": True})
            aborted[0] += 1
            time.sleep(0.05)

    before = server.metric("vllm:num_preemptions_total")
    noise = threading.Thread(target=disturb)
    noise.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
            answers = list(pool.map(lambda fields: server.complete(return_token_ids=True, **fields)[0]["token_ids"], requests))
    finally:
        stop.set()
        noise.join()
    different = [i for i, (a, b) in enumerate(zip(expected, answers)) if a != b]
    print(f"concurrency {concurrency}: {len(requests)} requests, {sum(map(len, answers))} tokens, {len(different)} different; "
          f"{aborted[0]} others left early, {server.metric('vllm:num_preemptions_total') - before:.0f} preemptions", flush=True)
    for i in different[:3]:
        print(f"  request {i}: {requests[i]}\n  alone {expected[i]}\n  here  {answers[i]}")
    if different or not eventually(lambda: server.metric("vllm:kv_cache_usage_perc") == 0):
        sys.exit(1)


if __name__ == "__main__":
    main()
