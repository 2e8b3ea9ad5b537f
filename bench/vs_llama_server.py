#!/usr/bin/env python3
"""Serving speed of tercet against llama.cpp's server, in turn (A B A B), on the same file with the same threads.

    bench/vs_llama_server.py MODEL.gguf --llama-server PATH/TO/llama-server [--pairs 3] [--threads 2]
                             [--clients 8] [--requests 64] [--input 256] [--output 128]

A closed loop: so many clients, each sending its next request when the last was answered. Every request has a prompt of
its own, of random tokens, so that no prefix is shared, and streams its greedy answer without regard to end tokens. Prints
for each server tokens per second (prompts and answers together), the time to the first token and the time between tokens
(95 of 100 are below), then the time to the first token of a second request that shares 1,500 tokens with the first.
"""
import argparse
import http.client
import json
import random
import statistics
import subprocess
import threading
import time

DEADLINE = 900  # seconds


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, command, port):
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + DEADLINE
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("no server: " + " ".join(command))
            time.sleep(0.2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def start_tercet(args, clients):
    port = free_port()
    return Server([args.tercet, "serve", args.model, "--port", str(port), "-t", str(args.threads), "-c", str(args.context),
                   "--parallel", str(clients)], port)


def start_llama(args, clients):
    # Its context is divided among its slots.
    port = free_port()
    return Server([args.llama_server, "-m", args.model, "--port", str(port), "-t", str(args.threads), "-tb", str(args.threads),
                   "-c", str(args.context * clients), "-np", str(clients), "-fa", "on", "--no-webui"], port)


def stream(port, prompt, output):
    """Times of the first and of each further part of an answer, in seconds since the request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    begin = time.monotonic()
    connection.request("POST", "/v1/completions", json.dumps(
        {"prompt": prompt, "max_tokens": output, "temperature": 0, "stream": True, "ignore_eos": True,
         "stream_options": {"include_usage": True}}), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(response.read().decode())
    times, usage = [], None
    while line := response.readline():
        if line.startswith(b"data: [DONE]"):
            break
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or usage
        if event["choices"]:
            times.append(time.monotonic() - begin)
    connection.close()
    return times, usage


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def closed_loop(server, args, seed):
    rng = random.Random(seed)
    prompts = [[rng.randrange(100, 40_000) for _ in range(args.input)] for _ in range(args.requests)]
    first, between, total = [], [], [0]
    lock = threading.Lock()

    def client():
        while True:
            with lock:
                if not prompts:
                    return
                prompt = prompts.pop()
            times, usage = stream(server.port, prompt, args.output)
            with lock:
                first.append(times[0])
                between.extend(b - a for a, b in zip(times, times[1:]))
                total[0] += usage["prompt_tokens"] + usage["completion_tokens"]

    begin = time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(args.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    return {"tokens/s": total[0] / seconds, "first token p50 s": statistics.median(first),
            "first token p95 s": percentile(first, 0.95), "between tokens p50 s": statistics.median(between),
            "between tokens p95 s": percentile(between, 0.95)}


def shared_prefix(server, seed):
    rng = random.Random(seed)
    prefix = [rng.randrange(100, 40_000) for _ in range(1500)]
    times = [stream(server.port, prefix + [rng.randrange(100, 40_000) for _ in range(32)], 4)[0][0] for _ in range(2)]
    return {"second/first of a shared prefix": times[1] / times[0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--tercet", default="build/release/src/app/tercet")
    for name, value in (("pairs", 3), ("threads", 2), ("clients", 8), ("requests", 64), ("input", 256), ("output", 128),
                        ("context", 2048)):
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    results = {"tercet": [], "llama.cpp": []}
    for pair in range(args.pairs):
        for name, start in (("tercet", start_tercet), ("llama.cpp", start_llama)):
            with start(args, args.clients) as server:
                stream(server.port, [100] * 8, 4)  # warm
                result = {**shared_prefix(server, pair), **closed_loop(server, args, pair)}
            results[name].append(result)
            print(f"{name:<10}", ", ".join(f"{key} {value:.3f}" for key, value in result.items()), flush=True)
    for key in results["tercet"][0]:
        ratios = [ours[key] / theirs[key] for ours, theirs in zip(*results.values())]
        print(f"{key}: median ratio {statistics.median(ratios):.2f} (tercet / llama.cpp; from {min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
