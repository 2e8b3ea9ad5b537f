#!/usr/bin/env python3
"""`tercet bench serve` against a running server: load_test.py TERCET [unittest arguments].

Needs the model smollm2-135m in the folder TERCET_MODELS; without it the tests are skipped.
"""

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import unittest

from tercet_server import DEADLINE, Server, ServerTest, eventually, self_signed

TERCET = sys.argv.pop(1)
TRACES = pathlib.Path(__file__).parents[1] / "data/traces"


class Load(ServerTest):
    tercet = TERCET
    flags = ("-c", "1024", "--kv-tokens", "8192", "-t", "2", "--api-key", "secret", "--max-queue", "2", "--parallel", "4",
             "--served-model-name", "small")

    def bench(self, *flags, url=None, status=0, **environment):
        done = subprocess.run([TERCET, "bench", "serve", "--url", url or self.server.url, *map(str, flags)], text=True,
                              capture_output=True, timeout=DEADLINE, env={**os.environ, "TERCET_API_KEY": "secret", **environment})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def load(self, *flags):
        return json.loads(self.bench(*flags, "--json").stdout)

    def test_a_closed_loop_answers_every_request_whole(self):
        out = self.load("--clients", 2, "--requests", 9, "--input", 20, "--output", 7, "--seed", 5)
        self.assertEqual((out["completed"], out["unfinished"], out["errors"], out["model"]), (9, 0, {}, "small"))
        self.assertEqual((out["prompt_tokens"], out["new_tokens"], out["cached_tokens"]), (9 * 20, 9 * 7, 0))
        for request in out["requests"]:
            self.assertLessEqual(request["start"], request["first_token"])
            self.assertLessEqual(request["first_token"], request["end"])
            self.assertLessEqual(request["end"], out["seconds"])
        self.assertAlmostEqual(out["tokens_per_second"], 9 * 27 / out["seconds"], 3)
        quantiles = out["first_token_seconds"]
        self.assertTrue(0 < quantiles["p50"] <= quantiles["p90"] <= quantiles["p95"] <= quantiles["p99"])

    def test_a_shared_prefix_is_found_from_the_second_request_on(self):
        out = self.load("--clients", 1, "--requests", 3, "--prefix", 64, "--input", 10, "--output", 2)
        self.assertEqual([r["prompt_tokens"] for r in out["requests"]], [74] * 3)
        self.assertEqual([r["cached_tokens"] for r in out["requests"]], [0, 64, 64])

    def test_an_open_loop_keeps_its_times(self):
        flags = ("--rate", 20, "--requests", 10, "--input", 5, "--output", 2, "--seed", 3)
        one, two = self.load(*flags), self.load(*flags)
        starts = [request["start"] for request in one["requests"]]
        self.assertEqual(starts, [request["start"] for request in two["requests"]])
        self.assertEqual(starts, sorted(starts))
        self.assertGreater(starts[-1], 0)

    def test_traces_are_replayed_scaled(self):
        with Server(TERCET, "-c", "4096", "--kv-tokens", "8192", "-t", "2") as server:  # room for all
            for name in ("mooncake.jsonl", "azure.csv"):
                flags = ("--trace", TRACES / name, "--limit", 12, "--speed", 50, "--shrink", 32, "--json")
                out = json.loads(self.bench(*flags, url=server.url).stdout)
                self.assertEqual((len(out["requests"]), out["completed"], out["errors"]), (12, 12, {}))
                if "mooncake" in name:
                    self.assertEqual(out["requests"][0]["prompt_tokens"], 6758 // 32)

    def test_errors_of_the_server_are_counted_by_kind(self):
        out = self.load("--rate", 10000, "--requests", 40, "--input", 100, "--output", 30)
        self.assertGreater(out["completed"], 0)
        self.assertEqual(len(out["errors"]), 1, out["errors"])
        (kind, count), = out["errors"].items()
        self.assertTrue(kind.startswith("429: the queue is full"), kind)
        self.assertEqual(out["completed"] + count, 40)

    def test_the_table_is_for_people(self):
        text = self.bench("--clients", 2, "--requests", 4, "--input", 8, "--output", 4, "--slo-ttft", 60000, "--slo-tbt",
                          60000).stdout
        for part in ("closed loop of 2 clients", "4 completed", "goodput", "4 of 4 kept", "first token", "between tokens", "p99"):
            self.assertIn(part, text)

    def test_a_terminal_sees_a_bar(self):
        master, slave = pty.openpty()
        done = subprocess.run([TERCET, "bench", "serve", "--url", self.server.url, "--api-key", "secret", "--clients", "1",
                               "--requests", "2", "--input", "50", "--output", "60"], text=True, stdout=subprocess.PIPE, stderr=slave,
                              timeout=DEADLINE)
        os.close(slave)
        shown = os.read(master, 65536).decode()
        os.close(master)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(shown, r"load: \[[# ]{20}\] [01] of 2 requests")

    def test_ctrl_c_prints_what_there_is(self):
        before = self.count_finished()
        process = subprocess.Popen([TERCET, "bench", "serve", "--url", self.server.url, "--api-key", "secret", "--clients", "1",
                                    "--requests", "100000", "--input", "8", "--output", "2"], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.assertTrue(eventually(lambda: self.count_finished() > before + 3))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(out, r"\d+ requests in .*: \d+ completed")
        self.assertNotIn(": 0 completed", out)

    def count_finished(self):
        _, _, text = self.server.ask("/metrics", headers={"Authorization": "Bearer secret"})
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("vllm:request_success_total"))

    def test_what_cannot_work_is_one_line(self):
        for url, expected in (("http://127.0.0.1:1/v1", "cannot connect: Connection refused"),
                              ("ftp://127.0.0.1", "is no address such as"), ("http://127.0.0.1:99999", "is no address such as")):
            self.assertIn(expected, self.bench(url=url, status=1).stderr)
        for flags, expected in ((("--api-key", "wrong"), "401: "),
                                (("--model", "unknown", "--requests", 2), "no request was completed: 404"),
                                (("--trace", TRACES / "README.md"), "README.md:1: is no request of a trace"),
                                (("--trace", "nowhere"), "nowhere")):
            done = self.bench(*flags, status=1)
            self.assertIn(expected, done.stderr)
            self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)

    def test_https(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = self_signed(folder)
            with Server(TERCET, "-c", "512", "--tls-cert", cert, "--tls-key", key) as server:
                flags = ("--clients", 2, "--requests", 3, "--input", 5, "--output", 3)
                out = self.bench(*flags, url=server.url, SSL_CERT_FILE=cert).stdout
                self.assertIn("3 completed", out)
                refused = self.bench(*flags, url=server.url, status=1).stderr
                self.assertIn("certificate verify failed", refused)

    def test_the_scheduler_alone_replays_a_trace(self):
        def schedule(*flags):
            return json.loads(subprocess.run([TERCET, "bench", "schedule", "--trace", str(TRACES / "mooncake.jsonl"), "--shrink",
                                              "16", "--json", *flags], text=True, capture_output=True, check=True).stdout)

        self.assertEqual(schedule(), schedule())
        self.assertGreater(schedule()["cached_tokens"], schedule("--kv-tokens", "4096")["cached_tokens"])
        self.assertEqual(schedule("--no-prefix-cache")["cached_tokens"], 0)


if __name__ == "__main__":
    unittest.main()
