#!/usr/bin/env python3
"""OpenAI's own client against a running server: openai_test.py TERCET [unittest arguments]. Needs the package openai."""

import asyncio
import http.server
import json
import sys
import threading
import unittest

import openai

from tercet_server import ServerTest, eventually

TERCET = sys.argv.pop(1)
MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]


class OpenAiClient(ServerTest):
    tercet = TERCET
    flags = ("-c", "1024", "--kv-tokens", "4096", "--api-key", "secret", "--parallel", "8")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.server.url, api_key="secret", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        super().tearDownClass()

    def chat(self, **more):
        return self.client.chat.completions.create(
            **{"model": "smollm2-135m", "messages": MESSAGES, "temperature": 0, "max_tokens": 12, **more})

    def complete(self, **more):
        return self.client.completions.create(
            **{"model": "smollm2-135m", "prompt": "Once upon a time", "temperature": 0, "max_tokens": 12, **more})

    def test_models_are_listed(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["smollm2-135m"])
        self.assertEqual(self.client.models.retrieve("smollm2-135m").object, "model")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-4")

    def test_a_chat_is_the_same_whole_and_streamed(self):
        whole = self.chat()
        self.assertEqual(whole.choices[0].message.role, "assistant")
        self.assertIn(whole.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], whole.usage.completion_tokens))

    def test_a_completion_is_the_same_whole_and_streamed(self):
        whole = self.complete(n=2)
        self.assertEqual(len(whole.choices), 2)
        texts = ["", ""]
        for chunk in self.complete(n=2, stream=True):
            texts[chunk.choices[0].index] += chunk.choices[0].text
        self.assertEqual(texts, [choice.text for choice in whole.choices])

    def test_the_client_s_own_stream_helper_assembles_the_answer(self):
        with self.client.chat.completions.stream(model="smollm2-135m", messages=MESSAGES, temperature=0,
                                                 max_tokens=200, stop=[" "]) as stream:
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, self.chat(stop=[" "]).choices[0].message.content)

    def test_log_probabilities_parse(self):
        content = self.chat(logprobs=True, top_logprobs=3).choices[0].logprobs.content
        self.assertEqual(len(content), 12)
        for token in content:
            self.assertEqual(len(token.top_logprobs), 3)
            self.assertEqual(token.logprob, token.top_logprobs[0].logprob)  # greedy
            self.assertEqual(bytes(token.bytes).decode(errors="replace"), token.token)
        logprobs = self.complete(logprobs=2, echo=True, max_tokens=1).choices[0].logprobs
        self.assertEqual(len(logprobs.tokens), len(logprobs.token_logprobs))
        self.assertIsNone(logprobs.token_logprobs[0])

    def test_streamed_log_probabilities_are_those_of_the_whole(self):
        whole = self.complete(logprobs=1, stop=[" a"]).choices[0].logprobs
        tokens, offsets = [], []
        for chunk in self.complete(logprobs=1, stop=[" a"], stream=True):
            if chunk.choices[0].logprobs:
                tokens += chunk.choices[0].logprobs.tokens
                offsets += chunk.choices[0].logprobs.text_offset
        self.assertEqual((tokens, offsets), (whole.tokens, whole.text_offset))

    def test_extra_parameters_reach_the_server(self):
        extra = {"top_k": 1, "min_p": 0.1, "repetition_penalty": 1.0, "ignore_eos": True, "min_tokens": 5}
        answer = self.complete(temperature=1.5, extra_body=extra)
        self.assertEqual(answer.choices[0].text, self.complete().choices[0].text)
        self.assertEqual(answer.usage.completion_tokens, 12)

    def test_prompts_may_be_tokens_and_many(self):
        answer = self.complete(prompt=[[1, 2, 3], [4, 5]], max_tokens=3)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1])
        self.assertEqual(answer.usage.prompt_tokens, 5)

    def test_embeddings_are_the_same_as_floats_and_as_base64(self):
        texts = ["Once upon a time", "The capital of France is Paris.", "Once upon a time"]
        packed = self.client.embeddings.create(model="smollm2-135m", input=texts)  # the client asks for base64
        plain = self.client.embeddings.create(model="smollm2-135m", input=texts, encoding_format="float")
        self.assertEqual([each.index for each in plain.data], [0, 1, 2])
        for a, b in zip(packed.data, plain.data):
            self.assertEqual(a.embedding, b.embedding)
            self.assertAlmostEqual(sum(value * value for value in a.embedding), 1, places=5)
        self.assertEqual(plain.data[0].embedding, plain.data[2].embedding)
        self.assertNotEqual(plain.data[0].embedding, plain.data[1].embedding)
        self.assertEqual(plain.usage.total_tokens, plain.usage.prompt_tokens)

    def test_an_embedding_s_first_dimensions_are_normalized_again(self):
        whole = self.client.embeddings.create(model="smollm2-135m", input="Once upon a time").data[0].embedding
        cut = self.client.embeddings.create(model="smollm2-135m", input="Once upon a time", dimensions=16).data[0].embedding
        norm = sum(value * value for value in whole[:16]) ** 0.5
        self.assertEqual(len(cut), 16)
        for value, expected in zip(cut, whole):
            self.assertAlmostEqual(value, expected / norm, places=6)
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.embeddings.create(model="smollm2-135m", input="a", dimensions=len(whole) + 1)
        self.assertEqual(raised.exception.param, "dimensions")

    def test_embeddings_do_not_depend_on_what_runs_beside_them(self):
        inputs = [f"{i} little birds " + "and a cat " * (i * 7) for i in range(12)] + [[1, 2, 3], [7] * 300]
        alone = [self.client.embeddings.create(model="smollm2-135m", input=each).data[0].embedding for each in inputs]

        async def run():
            async with openai.AsyncOpenAI(base_url=self.server.url, api_key="secret", max_retries=0) as client:
                def embed(each):
                    return client.embeddings.create(model="smollm2-135m", input=each, extra_body={"cache_salt": str(each)})

                def chat(i):
                    return client.completions.create(model="smollm2-135m", prompt=f"Tell {i}", max_tokens=40)

                together = await asyncio.gather(*map(embed, inputs), *map(chat, range(6)))
                return [each.data[0].embedding for each in together[:len(inputs)]]

        self.assertEqual(asyncio.run(run()), alone)
        texts = self.client.embeddings.create(model="smollm2-135m", input=[each for each in inputs if isinstance(each, str)])
        self.assertEqual([each.embedding for each in texts.data], alone[:12])

    def test_errors_have_the_client_s_types(self):
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=self.server.url, api_key="wrong", max_retries=0).models.list()
        with self.assertRaises(openai.BadRequestError) as raised:
            self.complete(prompt=[7] * 2000)
        self.assertEqual(raised.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError) as raised:
            self.chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])
        self.assertEqual(raised.exception.param, "messages[0].content[0]")
        with self.assertRaises(openai.NotFoundError) as raised:
            self.chat(model="gpt-4")
        self.assertEqual(raised.exception.code, "model_not_found")

    def test_the_async_client_runs_many_at_once(self):
        async def run():
            async with openai.AsyncOpenAI(base_url=self.server.url, api_key="secret", max_retries=0) as client:
                async def one(index):
                    stream = await client.completions.create(model="smollm2-135m", prompt=f"{index} plus one is",
                                                             max_tokens=8, temperature=0, stream=True)
                    return "".join([chunk.choices[0].text async for chunk in stream])
                return await asyncio.gather(*map(one, range(16)))

        texts = asyncio.run(run())
        self.assertEqual(texts, [self.complete(prompt=f"{i} plus one is", max_tokens=8).choices[0].text for i in range(16)])

    def test_leaving_a_stream_frees_the_request(self):
        stream = self.complete(max_tokens=900, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        headers = {"Authorization": "Bearer secret"}
        idle = 'vllm:num_requests_running{model_name="smollm2-135m"} 0\n'
        self.assertTrue(eventually(lambda: idle in self.server.ask("/metrics", headers=headers)[2]))

    def test_the_client_retries_what_the_server_says_to_retry(self):
        # A door that refuses twice as the server does when its queue is full, then lets through.
        server, refusals = self.server, [2]

        class Door(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if refusals[0]:
                    refusals[0] -= 1
                    answer = json.dumps({"error": {"message": "full", "type": "rate_limit_error", "code": None}}).encode()
                    self.send_response(429)
                    self.send_header("Retry-After", "0")
                else:
                    _, _, parsed = server.ask(self.path, body, headers={"Authorization": self.headers["Authorization"]})
                    answer = json.dumps(parsed).encode()
                    self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Door) as door:
            thread = threading.Thread(target=door.serve_forever)
            thread.start()
            try:
                client = openai.OpenAI(base_url=f"http://127.0.0.1:{door.server_port}/v1", api_key="secret", max_retries=3)
                answer = client.completions.create(model="smollm2-135m", prompt="Once upon a time", max_tokens=12, temperature=0)
            finally:
                door.shutdown()
                thread.join()
        self.assertEqual((refusals[0], answer.choices[0].text), (0, self.complete().choices[0].text))


if __name__ == "__main__":
    unittest.main()
