#!/usr/bin/env python3
"""llama.cpp as the wheel xllamacpp has it, for --peer of vs_llama_cpp.py: takes the flags that llama-batched-bench is given
there and prints what is read of its answer. The wheel has a server only, so the times are those that the server itself takes
of each sequence; the longest counts. Needs `pip install xllamacpp`.
"""
import argparse
import concurrent.futures
import json
import random

import xllamacpp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", dest="model", required=True)
    for flag, name in (("-t", "threads"), ("-npp", "prompt"), ("-ntg", "new"), ("-npl", "sequences"), ("-c", "context")):
        parser.add_argument(flag, dest=name, type=int, required=True)
    parser.add_argument("-fa", dest="flash_attention", choices=["on"])
    parser.add_argument("--output-format", choices=["jsonl"])
    args = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.n_ctx, params.n_parallel = args.context, args.sequences
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = args.threads
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    server = xllamacpp.Server(params)

    def complete(seed):
        ids = random.Random(seed).choices(range(100, 10_000), k=args.prompt)
        answer = server.handle_completions({"prompt": ids, "n_predict": args.new, "ignore_eos": True, "cache_prompt": False})
        assert "timings" in answer, answer
        timings = answer["timings"]
        assert timings["prompt_n"] == args.prompt and timings["predicted_n"] == args.new, timings
        return timings

    with concurrent.futures.ThreadPoolExecutor(args.sequences) as pool:
        timings = list(pool.map(complete, range(args.sequences)))

    def speed(tokens, time):
        return 1000 * tokens * args.sequences / max(t[time] for t in timings)

    print(json.dumps({"speed_pp": speed(args.prompt, "prompt_ms"), "speed_tg": speed(args.new, "predicted_ms")}))


if __name__ == "__main__":
    main()
