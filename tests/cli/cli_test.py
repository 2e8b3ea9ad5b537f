#!/usr/bin/env python3
"""Runs the tercet command as a person or a script would: cli_test.py TERCET [unittest arguments].

Tests of answers need the model smollm2-135m in the folder TERCET_MODELS and are skipped without it.
"""

import json
import lzma
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TERCET = sys.argv.pop(1)
DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
MODEL = pathlib.Path(os.environ.get("TERCET_MODELS", "/nonexistent")) / "smollm2-135m.gguf"
DEADLINE = 300  # seconds until something that hangs has failed


def tercet(*arguments, stdin="", **environment):
    return subprocess.run([TERCET, *arguments], input=stdin, text=True, capture_output=True, timeout=DEADLINE,
                          env={**os.environ, **environment})


class CommandLine(unittest.TestCase):
    def refused(self, done, status, *parts):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Atercet: [^\n]*\n\Z")
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_version(self):
        done = tercet("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Atercet \d+\.\d+\.\d+\n\Z")

    def test_help_lists_the_commands_that_exist(self):
        done = tercet("--help")
        self.assertEqual(done.returncode, 0)
        for command in ("run", "serve", "pull", "inspect", "convert", "tokenize", "bench"):
            self.assertIn(f"\n  {command} ", done.stdout)
            self.assertEqual(tercet(command, "--help").returncode, 0)

    def test_a_command_line_without_sense_is_status_2(self):
        self.refused(tercet(), 2, "A command is required")
        self.refused(tercet("sing"), 2, "sing")
        self.refused(tercet("run", "--sing"), 2, "--sing", "tercet run --help")
        self.refused(tercet("run", "--temp", "hot"), 2, "--temp", "hot")
        self.refused(tercet("run", "--kv-type", "f7"), 2, "f7")
        self.refused(tercet("run", "-p", "a", "-f", "b"), 2, "excludes")
        self.refused(tercet("pull"), 2, "NAME")

    def test_an_error_is_status_1_and_says_what_to_do(self):
        self.refused(tercet("run", "nothing.gguf"), 1, "nothing.gguf", "known names: smollm2-135m")
        with tempfile.TemporaryDirectory() as folder:
            self.refused(tercet("run", "smollm2-135m", "-p", "x", TERCET_MODELS=folder), 1, "tercet pull smollm2-135m")
            self.refused(tercet("inspect", folder), 1, folder)
        self.refused(tercet("pull", "smolm"), 1, "smolm", "tercet pull --list")

    def test_a_folder_becomes_a_file_that_answers_the_same_and_a_folder_again(self):
        tiny = DATA / "tiny" / "target"
        with tempfile.TemporaryDirectory() as scratch:
            file, folder = f"{scratch}/tiny.gguf", f"{scratch}/tiny"
            done = tercet("convert", tiny, file)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
            self.assertIn("74 tensors, most of them BF16", done.stderr)
            self.assertEqual(tercet("convert", file, folder).returncode, 0)
            ask = ("--raw", "-p", "def add(a, b):", "--temp", "0", "-n", "20")
            answers = [tercet("run", model, *ask).stdout for model in (tiny, file, folder)]
            self.assertGreater(len(answers[0]), 20)
            self.assertEqual(answers, [answers[0]] * 3)
            self.refused(tercet("convert", file, folder), 1, "exists already")
            self.refused(tercet("convert", file, f"{scratch}/x.gguf", "--type", "q9_9"), 1, "q9_9")

    def test_pull_lists_its_names(self):
        done = tercet("pull", "--list")
        self.assertEqual(done.returncode, 0)
        self.assertIn("qwen2.5-coder-1.5b", done.stdout)


class Tokenize(unittest.TestCase):
    """Qwen3's tokenizer.json and template in a folder, as Hugging Face has them."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        (folder / "tokenizer.json").write_bytes(lzma.decompress((DATA / "tokenizers/qwen3/tokenizer.json.xz").read_bytes()))
        (folder / "chat_template.jinja").write_bytes((DATA / "chat/qwen3.jinja").read_bytes())

    def tokenize(self, *arguments, stdin=""):
        done = tercet("tokenize", self.folder.name, *arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_text_comes_from_a_flag_a_file_or_stdin(self):
        shown = self.tokenize("-p", "Hello world")
        self.assertEqual(shown, '     0    9707  "Hello"\n     1    1879  " world"\n2 tokens\n')
        self.assertEqual(self.tokenize(stdin="Hello world"), shown)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("Hello world")
            file.flush()
            self.assertEqual(self.tokenize("-f", file.name), shown)
        self.assertEqual(tercet("tokenize", self.folder.name + "/tokenizer.json", "-p", "Hello world").stdout, shown)

    def test_special_tokens_are_text_unless_asked_otherwise(self):
        self.assertEqual(self.tokenize("-p", "<|im_end|>", "--ids", "--parse-special"), "151645\n")
        self.assertGreater(len(self.tokenize("-p", "<|im_end|>", "--ids").split()), 3)

    def test_ids_become_text(self):
        self.assertEqual(self.tokenize("--decode", "9707 1879 151645"), "Hello world<|im_end|>\n")
        self.assertEqual(self.tokenize("--decode", stdin="[9707, 1879]"), "Hello world\n")
        ids = self.tokenize("-p", "日本語 and\ttabs", "--ids")
        self.assertEqual(self.tokenize("--decode", stdin=ids), "日本語 and\ttabs\n")

    def test_a_chat_shows_the_prompt_and_its_tokens(self):
        request = {"messages": [{"role": "user", "content": "hi <|im_end|>"}], "chat_template_kwargs": {"enable_thinking": False}}
        shown = self.tokenize("--chat", "-", stdin=json.dumps(request))
        self.assertTrue(shown.startswith("Prompt\n  <|im_start|>user\\n\n  hi <|im_end|><|im_end|>\\n\n"), shown)
        tokens = json.loads(self.tokenize("--chat", "-", "--json", stdin=json.dumps(request)))["tokens"]
        self.assertEqual([token["text"] for token in tokens if token["special"]], ["<|im_start|>", "<|im_end|>", "<|im_start|>"])
        with tempfile.NamedTemporaryFile("w") as template:
            template.write("{{ messages[0].content }}!")
            template.flush()
            shown = self.tokenize("--chat", "-", "--template", template.name, "--ids", stdin='[{"role": "user", "content": "Hello"}]')
        self.assertEqual(shown, "9707 0\n")

    def test_mistakes_are_named(self):
        for arguments, status, part in ((["--decode", "1 x"], 1, '"x" is no token id'), (["--chat", "-"], 1, "JSON"),
                                        (["-p", "a", "--decode", "1"], 2, "excludes"), (["--template", "a"], 2, "--chat")):
            done = tercet("tokenize", self.folder.name, *arguments)
            self.assertEqual(done.returncode, status, arguments)
            self.assertIn(part, done.stderr)

    def test_bench_measures_a_text(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("Hello world " * 100)
            file.flush()
            done = tercet("bench", "tokenize", self.folder.name, "-f", file.name, "-r", "2", "--json")
        row, = json.loads(done.stdout)
        self.assertEqual((row["bytes"], len(row["bytes_per_second"])), (1200, 2))


@unittest.skipUnless(MODEL.exists(), f"{MODEL} is not there")
class Answers(unittest.TestCase):
    def test_a_prompt_is_answered_on_stdout_and_measured_on_stderr(self):
        done = tercet("run", str(MODEL), "-p", "Name the capital of France.", "--temp", "0", "-n", "16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Paris", done.stdout)
        for part in ("tokens/s", "first token after", "memory: ", "context "):
            self.assertIn(part, done.stderr)

    def test_a_prompt_comes_from_stdin_or_a_file_too(self):
        prompt = "Name the capital of France."
        given = tercet("run", str(MODEL), "-p", prompt, "--seed", "1", "-n", "8").stdout
        self.assertEqual(tercet("run", str(MODEL), "--seed", "1", "-n", "8", stdin=prompt).stdout, given)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(prompt)
            file.flush()
            self.assertEqual(tercet("run", str(MODEL), "-f", file.name, "--seed", "1", "-n", "8").stdout, given)

    def test_json_is_one_object(self):
        done = tercet("run", str(MODEL), "-p", "Count to ten.", "--json", "--temp", "0", "-n", "5")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["finish_reason"], "length")
        self.assertEqual(len(answer["token_ids"]), 5)
        self.assertEqual(answer["usage"]["completion_tokens"], 5)

    def test_raw_completes_the_prompt_as_it_is(self):
        done = tercet("run", str(MODEL), "-p", "1, 2, 3, 4,", "--raw", "--temp", "0", "-n", "4", "--json")
        answer = json.loads(done.stdout)
        self.assertTrue(answer["text"].lstrip().startswith("5"), answer)
        self.assertLess(answer["usage"]["prompt_tokens"], 16)

    def test_special_tokens_in_a_message_are_plain_text(self):
        def prompt_tokens(text):
            return json.loads(tercet("run", str(MODEL), "-p", text, "--json", "-n", "1").stdout)["usage"]["prompt_tokens"]
        self.assertGreater(prompt_tokens("<|im_end|>"), prompt_tokens("x") + 2)

    def test_a_bias_bans_a_token(self):
        arguments = ["run", str(MODEL), "-p", "Name the capital of France.", "--temp", "0", "-n", "1", "--json"]
        first = json.loads(tercet(*arguments).stdout)["token_ids"][0]
        banned = json.loads(tercet(*arguments, "--logit-bias", f"{first}-1000").stdout)["token_ids"][0]
        self.assertNotEqual(banned, first)

    def test_a_stop_string_ends_the_answer(self):
        done = tercet("run", str(MODEL), "-p", "1 2 3", "--raw", "--temp", "0", "-n", "30", "--stop", "7", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertNotIn("7", answer["text"])


@unittest.skipUnless(MODEL.exists(), f"{MODEL} is not there")
class Chat(unittest.TestCase):
    """A conversation through a pseudo terminal."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.shown = ""
        self.child, self.keyboard = pty.fork()
        if self.child == 0:
            os.environ["XDG_STATE_HOME"] = self.folder.name
            os.execv(TERCET, [TERCET, "run", str(MODEL), "--temp", "0", "-c", "512"])
        self.addCleanup(os.close, self.keyboard)
        self.expect("/help lists the commands")
        self.expect(r"> ")

    # Tests end at a prompt: before one the terminal takes a Ctrl-D for the end of a line's input and may drop it.
    def tearDown(self):
        self.type("\x04")
        end = time.monotonic() + DEADLINE
        while (status := os.waitpid(self.child, os.WNOHANG))[0] == 0:
            if time.monotonic() > end:
                os.kill(self.child, signal.SIGKILL)
                self.fail("does not end at Ctrl-D")
            if select.select([self.keyboard], [], [], 0.05)[0]:
                try:
                    os.read(self.keyboard, 4096)
                except OSError:  # the terminal is gone
                    pass
        self.assertEqual(os.waitstatus_to_exitcode(status[1]), 0)

    def type(self, keys):
        os.write(self.keyboard, keys.encode())

    def expect(self, pattern):
        """Waits until `pattern` shows, and forgets what was shown up to its end."""
        end = time.monotonic() + DEADLINE
        while not (match := re.search(pattern, self.shown)):
            if not select.select([self.keyboard], [], [], max(0, end - time.monotonic()))[0]:
                self.fail(f"{pattern!r} does not show; there is {self.shown!r}")
            self.shown += os.read(self.keyboard, 4096).decode(errors="replace")
        self.shown = self.shown[match.end():]

    def test_answers_and_reuses_the_cache_in_the_next_turn(self):
        self.type("Name the capital of France.\r")
        self.expect("Paris")
        self.expect("\n> ")
        self.type("And of Italy?\r")
        self.expect("Rome")
        self.expect("\n> ")
        self.type("/stats\r")
        self.expect(r"prompt: \d+ tokens \([1-9]\d* cached\)")
        self.expect("\n> ")

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        self.type("Count from 1 to 1000.\r")
        self.expect(r"1000\.\r*\n")  # the echo
        self.expect(r"\w")  # the answer begins
        self.type("\x03")
        self.expect("stopped")
        self.type("/help\r")
        self.expect("/regen")
        self.expect("\n> ")


if __name__ == "__main__":
    unittest.main()
