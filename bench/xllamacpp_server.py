#!/usr/bin/env python3
"""llama.cpp's server as the wheel xllamacpp has it, for --llama-server of vs_llama_server.py: takes the flags that llama-server
is given there. Runs until SIGTERM. Needs `pip install xllamacpp`.
"""
import argparse
import signal

import xllamacpp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", dest="model", required=True)
    for flag, name in (("-c", "context"), ("-t", "threads"), ("-tb", "batch_threads"), ("--port", "port"),
                       ("--parallel", "parallel")):
        parser.add_argument(flag, dest=name, type=int, required=True)
    parser.add_argument("-fa", dest="flash_attention", choices=["on"])
    parser.add_argument("--no-webui", action="store_true")
    args = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.n_ctx, params.n_parallel, params.port = args.context, args.parallel, args.port
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = args.threads, args.batch_threads
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    server = xllamacpp.Server(params)
    print(server.listening_address, xllamacpp.get_system_info(), flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
