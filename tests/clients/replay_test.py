#!/usr/bin/env python3
"""Requests that real clients sent, against a running server: replay_test.py TERCET [unittest arguments].

tests/data/clients holds them (`tests/clients/all --record` made them); each answer must have what its client reads.
"""

import base64
import json
import lzma
import math
import pathlib
import struct
import sys
import unittest

from tercet_server import ServerTest

TERCET = sys.argv.pop(1)
FOLDER = pathlib.Path(__file__).parents[1] / "data/clients"


class RecordedRequests(ServerTest):
    tercet = TERCET
    flags = ("-c", "2048", "--kv-tokens", "8192", "--served-model-name", "smollm2-135m")

    def replay(self, client, paths):
        lines = lzma.decompress((FOLDER / f"{client}.jsonl.xz").read_bytes()).decode().splitlines()
        requests = [json.loads(line) for line in lines]
        for request in requests:
            with self.subTest(client=client, path=request["path"], body=request["body"][:200]):
                status, _, answer = self.server.ask(request["path"], request["body"] or None, request["method"], request["headers"])
                self.assertEqual(status, 200, answer)
                asked = json.loads(request["body"] or "{}")
                read = {"/v1/completions": self.read_completion, "/v1/chat/completions": self.read_chat,
                        "/v1/embeddings": self.read_embeddings, "/tokenize": self.read_tokens,
                        "/detokenize": lambda asked, answer: self.assertIsInstance(answer["prompt"], str),
                        "/tokenizer_info": self.read_tokenizer_info, "/v1/models": self.read_models,
                        "/metrics": lambda asked, text: self.assertIn("vllm:", text)}
                if request["path"] != "/health" and request["method"] != "HEAD":
                    read[request["path"]](asked, answer)
        # What this client is known to use is among them.
        self.assertLessEqual(set(paths), {request["path"] for request in requests})

    def read_usage(self, usage, prompts=1):
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertGreaterEqual(usage["prompt_tokens"], prompts)
        self.assertGreaterEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)

    def read_stream(self, asked, answer, kind):
        """The chunks but the last, which has the usage."""
        *events, done, rest = answer.split("\n\n")
        self.assertEqual((done, rest), ("data: [DONE]", ""))
        chunks = [json.loads(event.removeprefix("data: ")) for event in events]
        self.assertEqual({chunk["object"] for chunk in chunks}, {kind})
        self.assertEqual(len({chunk["id"] for chunk in chunks}), 1)
        if asked.get("stream_options", {}).get("include_usage"):
            last = chunks.pop()
            self.assertEqual(last["choices"], [])
            self.read_usage(last["usage"])
            if asked.get("ignore_eos"):
                most = asked.get("max_completion_tokens") or asked["max_tokens"]
                self.assertEqual(last["usage"]["completion_tokens"], most)
        self.assertIn(chunks[-1]["choices"][0]["finish_reason"], ("stop", "length"))
        return chunks

    def read_completion(self, asked, answer):
        if asked.get("stream"):
            chunks = self.read_stream(asked, answer, "text_completion")
            return self.assertTrue("".join(chunk["choices"][0]["text"] for chunk in chunks))
        batched = isinstance(asked["prompt"], list) and not isinstance(asked["prompt"][0], int)
        prompts = asked["prompt"] if batched else [asked["prompt"]]
        self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(len(prompts))))
        self.read_usage(answer["usage"], len(prompts))
        for choice, prompt in zip(answer["choices"], prompts):
            self.assertIsInstance(choice["text"], str)
            self.assertIn(choice["finish_reason"], ("stop", "length"))
            if asked.get("echo"):
                self.read_logprobs(asked, choice["logprobs"], prompt)

    def read_logprobs(self, asked, logprobs, prompt):
        """As many as the prompt has tokens, and one; all numbers but the first; the chosen one among the best."""
        if isinstance(prompt, list):
            self.assertEqual(len(logprobs["tokens"]), len(prompt) + asked["max_tokens"])
        values, tops = logprobs["token_logprobs"], logprobs["top_logprobs"]
        self.assertEqual((len(values), len(tops)), (len(logprobs["tokens"]),) * 2)
        self.assertIsNone(values[0])
        for value, top in zip(values[1:], tops[1:]):
            self.assertTrue(math.isfinite(value) and value <= 0)
            self.assertLessEqual(value, max(top.values()))

    def read_chat(self, asked, answer):
        if asked.get("stream"):
            chunks = self.read_stream(asked, answer, "chat.completion.chunk")
            self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
            return self.assertTrue("".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks))
        self.assertEqual(answer["object"], "chat.completion")
        self.assertTrue(answer["choices"][0]["message"]["content"])
        return self.read_usage(answer["usage"])

    def read_embeddings(self, asked, answer):
        several = isinstance(asked["input"], list) and not isinstance(asked["input"][0], int)
        self.assertEqual([each["index"] for each in answer["data"]], list(range(len(asked["input"]) if several else 1)))
        self.assertEqual(answer["usage"]["total_tokens"], answer["usage"]["prompt_tokens"])
        for each in answer["data"]:
            self.assertEqual(each["object"], "embedding")
            vector = each["embedding"]
            if asked.get("encoding_format") == "base64":
                packed = base64.b64decode(vector)
                vector = struct.unpack(f"<{len(packed) // 4}f", packed)
            self.assertAlmostEqual(sum(value * value for value in vector), 1, places=5)

    def read_tokens(self, asked, answer):
        self.assertTrue(all(isinstance(token, int) for token in answer["tokens"]))
        self.assertEqual(answer["count"], len(answer["tokens"]))

    def read_tokenizer_info(self, asked, answer):
        self.assertIsInstance(answer["eos_token"], str)
        self.assertIn("messages", answer["chat_template"])

    def read_models(self, asked, answer):
        self.assertEqual(answer["data"][0]["id"], "smollm2-135m")
        self.assertEqual(answer["data"][0]["max_model_len"], 2048)

    def test_lm_eval(self):
        self.replay("lm-eval", ["/v1/completions", "/v1/chat/completions", "/tokenizer_info", "/tokenize"])

    def test_guidellm(self):
        self.replay("guidellm", ["/v1/completions", "/v1/chat/completions", "/v1/embeddings"])

    def test_aiperf(self):
        self.replay("aiperf", ["/v1/completions", "/v1/chat/completions", "/v1/embeddings"])

    def test_vllm(self):
        self.replay("vllm", ["/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/tokenize", "/metrics"])


if __name__ == "__main__":
    unittest.main()
