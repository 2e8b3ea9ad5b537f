#!/usr/bin/env python3
"""A running server, seen from outside, without client libraries: serving_test.py TERCET [unittest arguments].

Needs the model smollm2-135m in the folder TERCET_MODELS; without it the tests are skipped.
"""

import concurrent.futures
import http.client
import json
import math
import pathlib
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

from tercet_server import DEADLINE, MODEL, Server, ServerTest, eventually, post, self_signed

TERCET = sys.argv.pop(1)
PROMPTS = [json.loads(line)["prompt"] for line in
           (pathlib.Path(__file__).parents[1] / "data/prompts/prompts.jsonl").read_text().splitlines()]


class Serving(ServerTest):
    tercet = TERCET
    flags = ("-c", "2048", "-t", "2", "--kv-tokens", "8192")

    def refused(self, status, param, fields, path="/v1/completions"):
        got, _, body = self.server.ask(path, fields)
        self.assertEqual(got, status, body)
        self.assertEqual(body["error"]["param"], param)
        return body["error"]["message"]


class Answers(Serving):
    def test_run_and_serve_give_the_same_tokens(self):
        for prompt, sampling in ((PROMPTS[0], {"temperature": 0}), (PROMPTS[20], {"temperature": 0.8, "seed": 7})):
            flags = ["--temp", str(sampling["temperature"]), "--seed", str(sampling.get("seed", 0))]
            run = subprocess.run([TERCET, "run", str(MODEL), "-p", prompt, "--raw", "-n", "24", "--json", *flags],
                                 text=True, capture_output=True, timeout=DEADLINE, check=True)
            choice, _ = self.server.complete(prompt=prompt, max_tokens=24, return_token_ids=True, **sampling)
            self.assertEqual(json.loads(run.stdout)["token_ids"], choice["token_ids"])

    def test_max_tokens_1_returns_one_token(self):  # row A4
        choice, usage = self.server.complete(prompt="Once upon a", max_tokens=1, return_token_ids=True)
        self.assertEqual((len(choice["token_ids"]), usage["completion_tokens"], choice["finish_reason"]), (1, 1, "length"))

    def test_a_stop_string_on_the_last_allowed_token_ends_with_stop(self):  # row A1
        plain, _ = self.server.complete(prompt="One, two, three,", max_tokens=5, temperature=0, logprobs=0)
        last = plain["logprobs"]["tokens"][-1]
        self.assertNotIn(last, "".join(plain["logprobs"]["tokens"][:-1]), "the test needs another prompt")
        choice, usage = self.server.complete(prompt="One, two, three,", max_tokens=5, temperature=0, stop=last, logprobs=0)
        self.assertEqual((choice["finish_reason"], choice["stop_reason"]), ("stop", last))
        self.assertEqual(choice["text"], plain["text"].removesuffix(last))
        self.assertEqual(len(choice["logprobs"]["tokens"]), 4)
        self.assertEqual(usage["completion_tokens"], 5)

    def test_a_stop_string_over_several_tokens_never_shows_in_a_stream(self):  # row A2
        ask = dict(prompt="One, two, three,", max_tokens=24, temperature=0, ignore_eos=True, logprobs=0)
        plain, _ = self.server.complete(**ask)
        tokens = plain["logprobs"]["tokens"]
        for first in range(4, 10):
            begin = sum(map(len, tokens[:first])) + len(tokens[first]) // 2
            stop = plain["text"][begin:sum(map(len, tokens[:first + 3]))]
            chunks = self.server.stream(**ask, stop=[stop, "never"])
            text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
            shown = [token for chunk in chunks for token in (chunk["choices"][0]["logprobs"] or {"tokens": []})["tokens"]]
            self.assertEqual(text, plain["text"][:plain["text"].index(stop)])
            self.assertTrue("".join(shown).startswith(text) and len("".join(shown)) < len(text) + len(tokens[first]), shown)
            self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], "stop")

    def test_usage_counts_the_tokens_that_were_sent(self):  # row A5
        ask = dict(prompt=PROMPTS[2], max_tokens=30, temperature=0.8, seed=5, n=2, return_token_ids=True)
        *chunks, usage = self.server.stream(**ask, stream_options={"include_usage": True})
        sent = [len(token_ids) for token_ids in (chunk["choices"][0]["token_ids"] for chunk in chunks)]
        self.assertEqual((usage["choices"], usage["usage"]["completion_tokens"]), ([], sum(sent)))
        _, _, tokens = self.server.ask("/tokenize", {"prompt": PROMPTS[2]})
        self.assertEqual(usage["usage"]["prompt_tokens"], tokens["count"])

    def test_an_incomplete_character_at_the_end_is_one_replacement(self):  # row A7
        _, _, tokens = self.server.ask("/tokenize", {"prompt": "\U0001F9FF", "add_special_tokens": False})
        self.assertGreater(len(tokens["tokens"]), 1, "the test needs a character of several tokens")
        ask = dict(prompt="Hello", max_tokens=1, temperature=0, logit_bias={str(tokens["tokens"][0]): 1000})
        self.assertEqual(self.server.complete(**ask)[0]["text"], "\uFFFD")
        self.assertEqual("".join(chunk["choices"][0]["text"] for chunk in self.server.stream(**ask)), "\uFFFD")

    def test_seeded_requests_are_not_disturbed_by_unseeded_ones(self):  # row A13
        seeded = dict(prompt="My favourite animal is", max_tokens=20, temperature=1.0, seed=11)
        alone = self.server.complete(**seeded)[0]["text"]
        asks = [seeded if i % 2 == 0 else {**seeded, "seed": None} for i in range(12)]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            texts = [choice["text"] for choice, _ in pool.map(lambda ask: self.server.complete(**ask), asks)]
        self.assertEqual(texts[::2], [alone] * 6)
        self.assertGreater(len(set(texts[1::2])), 3)

    def test_an_answer_that_begins_with_an_end_token_is_empty(self):  # row A3
        _, _, tokens = self.server.ask("/tokenize", {"prompt": "<|im_end|>"})
        end = tokens["tokens"][-1]
        choice, usage = self.server.complete(prompt="Hello", max_tokens=5, logit_bias={str(end): 1000}, temperature=0)
        self.assertEqual((choice["text"], choice["finish_reason"], usage["completion_tokens"]), ("", "stop", 1))
        choice, usage = self.server.complete(prompt="Hello", max_tokens=5, ignore_eos=True, temperature=0)
        self.assertEqual(usage["completion_tokens"], 5)

    def test_log_probabilities_of_a_prompt_are_those_of_the_same_text_generated(self):  # row A11
        answer, _ = self.server.complete(prompt=PROMPTS[3], max_tokens=40, temperature=0, logprobs=2, return_token_ids=True,
                                         ignore_eos=True)
        prompt_ids = answer["prompt_token_ids"]
        for whole in (prompt_ids + answer["token_ids"], prompt_ids * 4 + answer["token_ids"]):
            choice, usage = self.server.complete(prompt=whole, max_tokens=1, temperature=0, echo=True, logprobs=2)
            logprobs = choice["logprobs"]
            self.assertEqual(len(logprobs["tokens"]), len(whole) + 1)
            self.assertIsNone(logprobs["token_logprobs"][0])
            self.assertTrue(all(math.isfinite(p) and p < 0 for p in logprobs["token_logprobs"][1:]))
            self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertGreater(len(whole), 128, "the second one takes more than one step")
        choice, _ = self.server.complete(prompt=prompt_ids + answer["token_ids"], max_tokens=1, temperature=0, echo=True,
                                         logprobs=2)
        first = len(prompt_ids)
        self.assertEqual(choice["logprobs"]["token_logprobs"][first:-1], answer["logprobs"]["token_logprobs"])
        self.assertEqual(choice["logprobs"]["top_logprobs"][first:-1], answer["logprobs"]["top_logprobs"])

    def test_a_second_request_finds_the_prefix_of_the_first(self):  # row A5
        prompt = PROMPTS[5] + "\nThink step by step."
        first, before = self.server.complete(prompt=prompt, max_tokens=8, temperature=0)
        second, after = self.server.complete(prompt=prompt, max_tokens=8, temperature=0)
        self.assertEqual(first["text"], second["text"])
        self.assertEqual(before["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(after["prompt_tokens_details"]["cached_tokens"], before["prompt_tokens"] // 16 * 16)
        _, salted = self.server.complete(prompt=prompt, max_tokens=8, temperature=0, cache_salt="other")  # row D13
        self.assertEqual(salted["prompt_tokens_details"]["cached_tokens"], 0)

    def test_seeds_choose_the_answer_and_their_absence_does_not(self):  # row A12
        ask = dict(prompt="My favourite animal is", max_tokens=12, temperature=1.0)
        self.assertEqual(self.server.complete(seed=3, **ask)[0]["text"], self.server.complete(seed=3, **ask)[0]["text"])
        self.assertNotEqual(self.server.complete(**ask)[0]["text"], self.server.complete(**ask)[0]["text"])
        _, _, two = self.server.ask("/v1/completions", {**ask, "n": 2, "seed": 3})
        self.assertNotEqual(two["choices"][0]["text"], two["choices"][1]["text"])
        self.assertEqual(two["choices"][0]["text"], self.server.complete(seed=3, **ask)[0]["text"])

    def test_choices_share_the_kv_of_their_prompt(self):
        prompt = "Many choices. " + PROMPTS[7] * 2
        _, usage = self.server.complete(prompt=prompt, max_tokens=1)
        hits = self.server.metric("vllm:prefix_cache_hits_total")
        _, _, answer = self.server.ask("/v1/completions", {"prompt": prompt, "max_tokens": 4, "n": 4, "cache_salt": "n"})
        self.assertEqual(len(answer["choices"]), 4)
        shared = (usage["prompt_tokens"] - 1) // 16 * 16
        self.assertGreaterEqual(shared, 64)
        self.assertTrue(eventually(lambda: self.server.metric("vllm:prefix_cache_hits_total") - hits == 3 * shared))

    def test_bias_reaches_the_sampler(self):
        _, _, tokens = self.server.ask("/tokenize", {"prompt": " seven", "add_special_tokens": False})
        choice, _ = self.server.complete(prompt="Count:", max_tokens=3, temperature=0,
                                         logit_bias={str(tokens["tokens"][0]): 1000})
        self.assertEqual(choice["text"], " seven seven seven")

    def test_a_message_continues_where_it_stops(self):
        messages = [{"role": "user", "content": "Count to five."}, {"role": "assistant", "content": "One, two,"}]
        _, _, plain = self.server.ask("/tokenize", {"messages": messages, "continue_final_message": True})
        _, _, text = self.server.ask("/detokenize", {"tokens": plain["tokens"]})
        self.assertTrue(text["prompt"].endswith("One, two,"), text)

    def test_a_prompt_too_long_names_both_numbers(self):  # row A9
        self.assertIn("2048", self.refused(400, "prompt", {"prompt": [5] * 2048}))

    def test_slashes_are_tolerated(self):  # row A17
        for path in ("//v1/models", "/v1/models/", "/v1//models?x=1"):
            self.assertEqual(self.server.ask(path)[0], 200, path)
        self.assertEqual(self.server.ask("/v1/nothing")[0], 404)
        self.assertEqual(self.server.ask("/v1/completions")[0], 405)


CODER = MODEL.parent / "qwen2.5-coder-0.5b.gguf"


@unittest.skipUnless(CODER.is_file(), "tercet pull qwen2.5-coder-0.5b, and set TERCET_MODELS to its folder")
class FillInTheMiddle(unittest.TestCase):
    def test_a_suffix_is_what_comes_behind_the_answer(self):
        with Server(TERCET, "-c", "512", "-t", "2", model=CODER) as server:
            ask = dict(prompt="def add(first, second):\n    return ", max_tokens=8, temperature=0)
            choice, _ = server.complete(**ask, suffix="\n\nassert add(1, 2) == 3\n", return_token_ids=True)
            self.assertEqual(choice["text"].splitlines()[0].strip(), "first + second")
            _, _, marks = server.ask("/tokenize", {"prompt": "<|fim_prefix|><|fim_suffix|><|fim_middle|>"})
            ids = [token for token in choice["prompt_token_ids"] if token in marks["tokens"]]
            self.assertEqual(ids, marks["tokens"])


class Exactness(Serving):
    """A request gets the same tokens whatever else runs. The pool is small: requests wait and are preempted."""

    flags = ("-c", "1024", "-t", "2", "--kv-tokens", "1024", "--parallel", "32", "--prefill-chunk", "128")

    @staticmethod
    def requests():
        for i, prompt in enumerate(PROMPTS):
            request = {"prompt": prompt, "max_tokens": 40 + i % 4 * 40, "return_token_ids": True, "ignore_eos": True}
            if i % 2 == 0:
                request["temperature"] = 0
            else:
                request.update(temperature=0.9, seed=i, top_p=0.95, repetition_penalty=1.1 if i % 3 == 0 else 1.0)
            yield request

    def test_tokens_do_not_depend_on_load_or_aborts(self):
        def ask(request):
            return self.server.complete(**request)[0]["token_ids"]

        requests = list(self.requests())
        alone = [ask(request) for request in requests]
        for concurrency in (8, 32):
            stop = threading.Event()

            def disturb():  # requests that are dropped half-way
                while not stop.is_set():
                    self.server.leave_early({"prompt": random.choice(PROMPTS), "max_tokens": 200, "stream": True})

            noise = threading.Thread(target=disturb)
            noise.start()
            try:
                with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
                    together = list(pool.map(ask, requests))
            finally:
                stop.set()
                noise.join()
            for i, (expected, got) in enumerate(zip(alone, together)):
                self.assertEqual(expected, got, f"request {i} at concurrency {concurrency}")
        self.assertTrue(eventually(lambda: self.server.metric("vllm:kv_cache_usage_perc") == 0))

    def test_tokens_do_not_depend_on_preemption(self):
        # They arrive in one request, so they run together; any three of them outgrow the pool before they end.
        prompts, sampling = PROMPTS[:6], {"max_tokens": 400, "temperature": 0, "return_token_ids": True, "ignore_eos": True}
        alone = [self.server.complete(prompt=prompt, **sampling)[0]["token_ids"] for prompt in prompts]
        preempted = self.server.metric("vllm:num_preemptions_total")
        status, _, together = self.server.ask("/v1/completions", {"prompt": prompts, **sampling})
        self.assertEqual(status, 200, together)
        self.assertEqual([choice["token_ids"] for choice in together["choices"]], alone)
        self.assertGreater(self.server.metric("vllm:num_preemptions_total"), preempted)


class Robustness(Serving):
    flags = ("-c", "2048", "-t", "2", "--parallel", "4", "--max-queue", "8", "--max-body", "1")

    def test_closing_the_connection_frees_the_request_in_every_state(self):  # row A8
        request = json.dumps({"prompt": "a " * 1500, "max_tokens": 500, "ignore_eos": True}).encode()
        connections = [socket.create_connection(("127.0.0.1", self.server.port), DEADLINE) for _ in range(8)]
        for connection in connections:
            connection.sendall(post(request))
        self.assertTrue(eventually(lambda: self.server.metric("vllm:num_requests_running") == 4))
        for connection in connections:
            connection.close()
        self.assertTrue(self.server.idle())
        self.assertEqual(self.server.metric("vllm:kv_cache_usage_perc"), 0)

    def test_a_full_queue_is_429_and_says_when_to_come_again(self):
        request = {"prompt": "a", "max_tokens": 400, "ignore_eos": True, "n": 13}
        status, headers, body = self.server.ask("/v1/completions", request)
        self.assertEqual((status, headers["Retry-After"], body["error"]["code"]), (429, "1", "rate_limit_exceeded"))
        self.assertTrue(self.server.idle())

    def test_a_client_that_does_not_read_holds_up_nobody(self):
        body = json.dumps({"prompt": "a", "max_tokens": 1500, "ignore_eos": True, "stream": True,
                           "logprobs": 20}).encode()
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", self.server.port))
            slow.sendall(post(body))
            for _ in range(3):
                _, usage = self.server.complete(prompt="Hello", max_tokens=8, ignore_eos=True)
                self.assertEqual(usage["completion_tokens"], 8)
        self.assertTrue(self.server.idle())


class Operation(Serving):
    flags = ("-c", "2048", "-t", "2", "--served-model-name", "small", "--served-model-name", "other", "--api-key", "secret",
             "--log-json")

    def test_the_policy_says_who_runs_next(self):
        prompts = ["one two three four five six seven eight", "one two three four", "one"]
        for flags, expected in (((), [0, 1, 2]), (("--policy", "shortest"), [2, 1, 0])):
            with self.subTest(flags), Server(TERCET, "-c", "512", "-t", "2", "--parallel", "1", *flags) as server:
                chunks = server.stream(prompt=prompts, max_tokens=4, ignore_eos=True)
                order = dict.fromkeys(choice["index"] for chunk in chunks for choice in chunk["choices"])
                self.assertEqual(list(order), expected)

    def test_only_who_knows_the_key_is_let_in(self):
        self.assertEqual(self.server.ask("/v1/models")[0], 401)
        self.assertEqual(self.server.ask("/health")[0], 200)
        status, _, models = self.server.ask("/v1/models", headers={"Authorization": "Bearer secret"})
        self.assertEqual((status, [model["id"] for model in models["data"]]), (200, ["small", "other"]))

    def test_log_lines_are_json_and_say_what_is_served(self):
        lines = [json.loads(line) for line in self.server.log.splitlines()]
        self.assertTrue(any("context 2048" in line["message"] and "http://127.0.0.1" in line["message"] for line in lines))

    def test_the_key_may_come_from_the_environment(self):
        with Server(TERCET, "-c", "512", TERCET_API_KEY="from outside") as server:
            self.assertEqual(server.ask("/v1/models", headers={"Authorization": "Bearer from outside"})[0], 200)
            self.assertEqual(server.ask("/v1/models")[0], 401)

    def test_sigterm_lets_running_requests_end_and_refuses_new_ones(self):
        with Server(TERCET, "-c", "1024") as server:
            stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
            stream.request("POST", "/v1/completions", json.dumps(
                {"prompt": "Once", "max_tokens": 200, "ignore_eos": True, "stream": True}))
            response = stream.getresponse()
            response.read(10)
            self.addCleanup(stream.close)
            server.process.send_signal(signal.SIGTERM)
            self.assertTrue(eventually(lambda: server.ask("/health")[0] == 503))
            self.assertEqual(server.ask("/v1/completions", {"prompt": "a"})[0], 503)
            rest = response.read()
            self.assertTrue(rest.endswith(b"data: [DONE]\n\n"), rest[-200:])
            self.assertEqual(server.stop(), 0, server.log)

    def test_a_second_signal_ends_at_once(self):
        with Server(TERCET, "-c", "2048") as server:
            stream = http.client.HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE)
            stream.request("POST", "/v1/completions", json.dumps(
                {"prompt": "Once", "max_tokens": 1900, "ignore_eos": True, "stream": True}))
            response = stream.getresponse()
            response.read(10)
            self.addCleanup(stream.close)
            server.process.send_signal(signal.SIGTERM)
            self.assertTrue(eventually(lambda: "draining" in server.log))
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(DEADLINE), 0)
            rest = response.read()
            self.assertIn(b"service_unavailable", rest)  # rows A10 and A18
            self.assertNotIn(b"[DONE]", rest)

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = self_signed(folder)
            with Server(TERCET, "-c", "512", "--tls-cert", cert, "--tls-key", key) as server:
                context = ssl.create_default_context(cafile=cert)
                connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=DEADLINE)
                for _ in range(2):
                    connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 3, "stream": True}))
                    self.assertIn(b"[DONE]", connection.getresponse().read())
                connection.close()

    def test_an_address_in_use_is_an_error(self):
        done = subprocess.run([TERCET, "serve", str(MODEL), "-c", "512", "--port", str(self.server.port)],
                              text=True, capture_output=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot listen", done.stderr)


if __name__ == "__main__":
    unittest.main()
