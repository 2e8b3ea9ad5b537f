#!/usr/bin/env python3
"""langchain-openai and litellm against a running server: frameworks_test.py TERCET [unittest arguments]."""

import os
import sys
import unittest

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would ask a host outside

import litellm
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from tercet_server import ServerTest

TERCET = sys.argv.pop(1)
QUESTION = "What is the capital of France?"


class Frameworks(ServerTest):
    tercet = TERCET
    flags = ("-c", "1024", "--kv-tokens", "4096", "--parallel", "8")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        status, _, body = cls.server.ask("/v1/chat/completions", {
            "messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 24})
        cls.expected = body["choices"][0]["message"]["content"]

    def test_langchain_chat(self):
        chat = ChatOpenAI(base_url=self.server.url, api_key="none", model="smollm2-135m", temperature=0, max_tokens=24)
        answer = chat.invoke([HumanMessage(QUESTION)])
        self.assertEqual(answer.content, self.expected)
        self.assertGreater(answer.usage_metadata["input_tokens"], 0)
        self.assertEqual("".join(part.content for part in chat.stream([HumanMessage(QUESTION)])), self.expected)
        self.assertEqual([each.content for each in chat.batch([[HumanMessage(QUESTION)]] * 8)], [self.expected] * 8)
        self.assertTrue(chat.invoke([SystemMessage("Be brief."), HumanMessage(QUESTION)]).content)

    def test_langchain_completion(self):
        model = OpenAI(base_url=self.server.url, api_key="none", model="smollm2-135m", temperature=0, max_tokens=8)
        self.assertEqual(model.invoke("Once upon a time"),
                         self.server.complete(prompt="Once upon a time", temperature=0, max_tokens=8)[0]["text"])

    def test_embeddings(self):
        texts = ["Once upon a time", "The capital of France is Paris."]
        _, _, body = self.server.ask("/v1/embeddings", {"input": texts})
        expected = [each["embedding"] for each in body["data"]]
        ask = dict(base_url=self.server.url, api_key="none", model="smollm2-135m")
        self.assertEqual(OpenAIEmbeddings(check_embedding_ctx_length=False, **ask).embed_documents(texts), expected)
        answer = litellm.embedding(model="openai/smollm2-135m", api_base=self.server.url, api_key="none", input=texts)
        self.assertEqual([each["embedding"] for each in answer.data], expected)

    def test_litellm(self):
        ask = dict(model="openai/smollm2-135m", api_base=self.server.url, api_key="none", temperature=0, max_tokens=24,
                   messages=[{"role": "user", "content": QUESTION}])
        self.assertEqual(litellm.completion(**ask).choices[0].message.content, self.expected)
        parts = [chunk.choices[0].delta.content or "" for chunk in litellm.completion(stream=True, **ask)]
        self.assertEqual("".join(parts), self.expected)
        with self.assertRaises(litellm.ContextWindowExceededError):
            litellm.completion(**{**ask, "messages": [{"role": "user", "content": "word " * 2000}]})


if __name__ == "__main__":
    unittest.main()
