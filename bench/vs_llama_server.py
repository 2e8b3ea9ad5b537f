#!/usr/bin/env python3
"""Serving speed of tercet against llama.cpp's server, in turn (A B A B), on the same file with the same threads.

    bench/vs_llama_server.py MODEL.gguf --llama-server PATH [--pairs 3] [--threads 2] [--clients 8] [--requests 64]
                             [--input 256] [--output 128] [--results FILE]

PATH is llama.cpp's llama-server, or bench/xllamacpp_server.py for that of the wheel.

`tercet bench serve` drives both alike: first two requests, one after the other, that share 1,500 tokens and have 32 of their
own, then a closed loop with random prompts and greedy answers that run on over end tokens. Prints every cell and the median
of the pairs' ratios (tercet / llama.cpp). With --results the cells are kept in FILE, and those that it has already are not
run again: a long comparison can be cut and continued.
"""
import argparse
import http.client
import json
import pathlib
import socket
import statistics
import subprocess
import threading
import time

DEADLINE = 600  # seconds until a server has loaded
PREFIX, OWN = 1500, 32


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, command, port):
        self.url = f"http://127.0.0.1:{port}/v1"
        self.log = []
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reader.start()
        end = time.monotonic() + DEADLINE
        while not self.ready(port):
            if self.process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise RuntimeError(" ".join(command) + ": " + "".join(self.log[-5:]))
            time.sleep(0.2)

    @staticmethod
    def ready(port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.reader.join()


def start(engine, args):
    port = free_port()
    context = max(args.input + args.output, PREFIX + OWN + args.output) + 64
    common = [str(args.threads), "--port", str(port), "--parallel", str(args.clients)]
    if engine == "tercet":
        return Server([args.tercet, "serve", args.model, "-c", str(context), "-t", *common], port)
    # Its context is divided among its slots.
    return Server([args.llama_server, "-m", args.model, "-c", str(context * args.clients), "-fa", "on", "--no-webui",
                   "-tb", str(args.threads), "-t", *common], port)


def load(args, server, *flags):
    command = [args.tercet, "bench", "serve", "--url", server.url, "--json", *map(str, flags)]
    out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    if out["errors"] or out["unfinished"]:
        raise RuntimeError(f"{server.url}: {out['errors']}")
    return out


def cell(engine, args, seed):
    with start(engine, args) as server:
        load(args, server, "--clients", 1, "--requests", 1, "--input", 16, "--output", 4, "--seed", 1 << 20)  # warm
        prefix = load(args, server, "--clients", 1, "--requests", 2, "--prefix", PREFIX, "--input", OWN, "--output", 32,
                      "--seed", (1 << 21) + seed)
        first, second = [r["first_token"] - r["start"] for r in prefix["requests"]]
        out = load(args, server, "--clients", args.clients, "--requests", args.requests, "--input", args.input,
                   "--output", args.output, "--seed", seed)
    assert out["new_tokens"] == args.requests * args.output, "an answer ended early"
    return {"tokens/s": out["tokens_per_second"], "new tokens/s": out["new_tokens_per_second"],
            "first token p50 s": out["first_token_seconds"]["p50"], "first token p95 s": out["first_token_seconds"]["p95"],
            "between tokens p50 s": out["between_tokens_seconds"]["p50"],
            "between tokens p95 s": out["between_tokens_seconds"]["p95"],
            f"first token of a prompt of {PREFIX + OWN} s": first, "second with its prefix / first": second / first}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--tercet", default="build/release/src/app/tercet")
    parser.add_argument("--results", type=pathlib.Path)
    for name, value in (("pairs", 3), ("threads", 2), ("clients", 8), ("requests", 64), ("input", 256), ("output", 128)):
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    settings = [pathlib.Path(args.model).name, args.threads, args.clients, args.requests, args.input, args.output]
    kept = {}
    if args.results and args.results.exists():
        for line in args.results.read_text().splitlines():
            entry = json.loads(line)
            if entry["settings"] == settings:
                kept[entry["engine"], entry["pair"]] = entry["result"]
    results = {"tercet": [], "llama.cpp": []}
    for pair in range(args.pairs):
        for engine in results:
            result = kept.get((engine, pair)) or cell(engine, args, pair)
            if args.results and (engine, pair) not in kept:
                with args.results.open("a") as out:
                    out.write(json.dumps({"settings": settings, "engine": engine, "pair": pair, "result": result}) + "\n")
            results[engine].append(result)
            print(f"{engine:<10}", ", ".join(f"{key} {value:.3f}" for key, value in result.items()), flush=True)
    for key in results["tercet"][0]:
        ratios = [ours[key] / theirs[key] for ours, theirs in zip(*results.values())]
        print(f"{key}: median ratio {statistics.median(ratios):.2f} (from {min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
