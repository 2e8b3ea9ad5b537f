#!/usr/bin/env python3
"""Random tokenizers and texts: does tercet give what Hugging Face's `tokenizers` gives? Run by hand.

    pip install tokenizers
    tests/clients/compare_tokenizers.py [--tercet PATH] [--rounds 200] [--seed 1] [--keep FOLDER]

Every round trains a small tokenizer with random parts (normalizers, pre-tokenizers, model, added tokens, post-processor,
decoder), encodes random texts with special tokens parsed and not, and decodes what came out and random ids. A tokenizer
that tercet refuses as unsupported is counted, not compared. Differences are printed, their tokenizer.json kept in FOLDER.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
POOLS = [
    "abcdefgh", "ABCDE", "0123456789", " ", " ", "  \t", "\n\r", ".,;:!?'\"-_()[]{}<>|/\\$+=^~`@#%&*", "éüñçÅøß",
    "ΑαΣσςЖж", "中文字漢", "ㄱ가힣", "ひカ", "\u0301\u0323\u0300", "e\u0301", "ﬁ①Ⅳ½", "🙂👍🏽", "\u200d\ufe0f\u00ad", "\u00a0\u3000\u2028\u0085",
    "▁", "ĠĊ", "\u0000\u0001\u007f", "\ufffd\ufeff", "İıſK", "१२٣", "ªº²", "àa\u0300",
]
WORDS = ["the", " the", "hello", " World", "don't", "I'LL", "2024", "foo_bar", "x=1", "naïve", "Straße", "中文", "...", "\n\n", "   ",
         "<s>", "</s>", "<pad>", "[MASK]", "tool", "<tool>", "ab", " ab ", "Ｆｕｌｌ", "##ab", "<0x41>", "a.b", "''s"]


def text(rng):
    out = ""
    for _ in range(rng.randrange(1, 14)):
        if rng.random() < 0.4:
            out += rng.choice(WORDS)
        else:
            pool = rng.choice(POOLS)
            out += "".join(rng.choice(pool) for _ in range(rng.randrange(1, 5)))
    return out


def pattern(rng):
    return rng.choice([{"String": " "}, {"String": "ab"}, {"String": "-"}, {"Regex": r"\s+"}, {"Regex": "[0-9]"}, {"Regex": QWEN},
                       {"Regex": r"\p{N}{1,3}"}, {"Regex": r"[a-z]+|[A-Z]"}, {"Regex": "a|b"}, {"Regex": r"(?=[A-Z])"},
                       {"Regex": r"\w+"}, {"Regex": r"[^\s]+"}, {"Regex": r"^a|b$"}])


def normalizer(rng, deep=True):
    kind = rng.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Replace", "Prepend", "Strip", "BertNormalizer"]
                      + (["Sequence"] * 4 if deep else []))
    step = {"type": kind}
    if kind == "Sequence":
        step["normalizers"] = [normalizer(rng, False) for _ in range(rng.randrange(1, 4))]
    elif kind == "Replace":
        step.update(pattern=pattern(rng), content=rng.choice(["", "▁", "x", " "]))
    elif kind == "Prepend":
        step["prepend"] = rng.choice(["▁", " ", "x"])
    elif kind == "Strip":
        step.update(strip_left=rng.random() < 0.5, strip_right=rng.random() < 0.5)
    elif kind == "BertNormalizer":
        step.update(clean_text=rng.random() < 0.7, handle_chinese_chars=rng.random() < 0.7,
                    strip_accents=rng.choice([None, True, False]), lowercase=rng.random() < 0.5)
    return step


def pre_tokenizer(rng, deep=True):
    kind = rng.choice(["Split", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "BertPreTokenizer",
                       "CharDelimiterSplit", "Metaspace"] + (["Sequence"] * 4 if deep else []))
    step = {"type": kind}
    behaviors = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    if kind == "Sequence":
        step["pretokenizers"] = [pre_tokenizer(rng, False) for _ in range(rng.randrange(1, 4))]
    elif kind == "Split":
        step.update(pattern=pattern(rng), behavior=rng.choice(behaviors), invert=rng.random() < 0.3)
    elif kind == "Digits":
        step["individual_digits"] = rng.random() < 0.5
    elif kind == "Punctuation":
        step["behavior"] = rng.choice(behaviors)
    elif kind == "CharDelimiterSplit":
        step["delimiter"] = rng.choice("-_ ,")
    elif kind == "Metaspace":
        step.update(replacement="▁", prepend_scheme=rng.choice(["always", "never", "first"]), split=rng.random() < 0.7)
    return step


def byte_level(rng):
    return {"type": "ByteLevel", "add_prefix_space": rng.random() < 0.3, "trim_offsets": True, "use_regex": rng.random() < 0.6}


def added_tokens(rng, next_id, vocabulary):
    tokens = []
    for content in rng.sample(["<s>", "</s>", "<pad>", "[MASK]", "<tool>", "tool", " ab", "ab", "é", "A.b", "中", "\n", "▁x"],
                              rng.randrange(1, 7)):
        known = vocabulary.get(content)
        tokens.append({"id": known if known is not None else next_id, "content": content, "single_word": rng.random() < 0.2,
                       "lstrip": rng.random() < 0.2, "rstrip": rng.random() < 0.2, "normalized": rng.random() < 0.4,
                       "special": rng.random() < 0.5})
        next_id += known is None
    return sorted(tokens, key=lambda token: token["id"])


def post_processor(rng, tokens):
    special = [token for token in tokens if token["special"]]
    if not special or rng.random() < 0.4:
        return rng.choice([None, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}])
    first, last = rng.choice(special), rng.choice(special)
    if rng.random() < 0.3:
        return {"type": rng.choice(["BertProcessing", "RobertaProcessing"]), "sep": [last["content"], last["id"]],
                "cls": [first["content"], first["id"]], "trim_offsets": True, "add_prefix_space": False}
    single = [{"Sequence": {"id": "A", "type_id": 0}}]
    if rng.random() < 0.8:
        single.insert(0, {"SpecialToken": {"id": first["content"], "type_id": 0}})
    if rng.random() < 0.5:
        single.append({"SpecialToken": {"id": last["content"], "type_id": 0}})
    return {"type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t["content"]: {"id": t["content"], "ids": [t["id"]], "tokens": [t["content"]]} for t in (first, last)}}


def decoder(rng, is_byte_level, has_bytes, kind):
    if is_byte_level:
        return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    if kind == "WordPiece":
        return {"type": "WordPiece", "prefix": "##", "cleanup": rng.random() < 0.5}
    replace = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    choices = [None, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": rng.choice(["always", "never", "first"]), "split": True},
               {"type": "Sequence", "decoders": [replace, {"type": "ByteFallback"}, {"type": "Fuse"}, strip]},
               {"type": "Sequence", "decoders": [replace, {"type": "ByteFallback"}, {"type": "Fuse"}]}]
    return rng.choice(choices[2:] if has_bytes else choices)


def make(rng):
    kind = rng.choice(["BPE", "BPE", "BPE", "Unigram", "WordPiece"])
    is_byte_level = kind == "BPE" and rng.random() < 0.5
    corpus = [text(rng) for _ in range(150)]
    size = rng.randrange(300, 500)
    if kind == "BPE":
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if is_byte_level else [])
    elif kind == "Unigram":
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"])
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trainer = trainers.WordPieceTrainer(vocab_size=size, show_progress=False, special_tokens=["[UNK]"])
    if is_byte_level:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    elif rng.random() < 0.5 or kind != "BPE":
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(corpus, trainer)
    file = json.loads(tokenizer.to_str())
    model = file["model"]
    has_bytes = not is_byte_level and kind != "WordPiece" and rng.random() < 0.4
    if has_bytes:
        names = [f"<0x{byte:02X}>" for byte in range(256) if rng.random() < 0.95]
        if kind == "BPE":
            for name in names:
                model["vocab"].setdefault(name, len(model["vocab"]))
        else:
            known = {token for token, _ in model["vocab"]}
            model["vocab"] += [[name, -20.0] for name in names if name not in known]
        model["byte_fallback"] = True
    if kind == "BPE":
        model["ignore_merges"] = rng.random() < 0.3
        if rng.random() < 0.5 and not is_byte_level:
            model["vocab"]["<unk>"] = len(model["vocab"])
            model["unk_token"] = "<unk>"
            model["fuse_unk"] = rng.random() < 0.5
    if kind == "WordPiece" and rng.random() < 0.3:
        model["max_input_chars_per_word"] = rng.randrange(1, 8)
    vocabulary = model["vocab"] if isinstance(model["vocab"], dict) else {token: i for i, (token, _) in enumerate(model["vocab"])}
    file["added_tokens"] = added_tokens(rng, len(model["vocab"]), vocabulary)
    file["normalizer"] = normalizer(rng) if rng.random() < 0.5 else None
    if file["normalizer"]:
        # Versions of the library differ in what a token decodes to whose content the normalizer changes.
        changes = Tokenizer.from_str(json.dumps({**file, "added_tokens": [], "pre_tokenizer": None, "decoder": None,
                                                 "post_processor": None})).normalizer
        for token in file["added_tokens"]:
            token["normalized"] &= changes.normalize_str(token["content"]) == token["content"]
    steps = [pre_tokenizer(rng)] if rng.random() < 0.6 else []
    steps += [byte_level(rng)] if is_byte_level else []
    file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0] if steps else None
    file["post_processor"] = post_processor(rng, file["added_tokens"])
    file["decoder"] = decoder(rng, is_byte_level, has_bytes, kind)
    if rng.random() < 0.1:
        file["truncation"] = {"direction": "Right", "max_length": 2048, "strategy": "LongestFirst", "stride": 0}
    return file


def ours(args, path, lines, *flags):
    done = subprocess.run([args.tercet, "tokenize", str(path), "--jsonl", *flags],
                          input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]], ""


def compare(args, rng, file, path, report):
    """Whether tercet takes the tokenizer at all, and the differences."""
    theirs = Tokenizer.from_str(json.dumps(file))
    texts = [text(rng) for _ in range(40)]
    for parse_special in (True, False):
        theirs.encode_special_tokens = not parse_special
        expected = [theirs.encode(t).ids for t in texts]
        found, error = ours(args, path, texts, *(["--parse-special"] if parse_special else []))
        if found is None:
            return error
        for t, a, b in zip(texts, expected, found):
            if a != b:
                tokens = [[theirs.id_to_token(i) for i in ids] for ids in (a, b)]
                report(f"encode, parse_special {parse_special}: {t!r}\n  theirs {tokens[0]}\n  ours   {tokens[1]}")
                break
    ids = [theirs.encode(t).ids for t in texts] + [[rng.randrange(theirs.get_vocab_size()) for _ in range(8)] for _ in range(20)]
    known = set(theirs.get_vocab().values())
    ids = [[i for i in row if i in known] for row in ids]
    expected = [theirs.decode(row, skip_special_tokens=False) for row in ids]
    found, error = ours(args, path, ids)
    if found is None:
        return error
    for row, a, b in zip(ids, expected, found):
        if a != b:
            report(f"decode {[theirs.id_to_token(i) for i in row]}\n  theirs {a!r}\n  ours   {b!r}")
            break
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tercet", default=ROOT / "build/release/src/app/tercet")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("differing-tokenizers"))
    args = parser.parse_args()
    args.keep.mkdir(exist_ok=True, parents=True)
    refused, differing, same = collections.Counter(), 0, 0
    for seed in range(args.seed, args.seed + args.rounds):
        rng = random.Random(seed)
        try:
            file = make(rng)
            Tokenizer.from_str(json.dumps(file))
        except BaseException as error:  # the library panics on some of its own combinations
            refused[f"tokenizers: {str(error)[:60]}"] += 1
            continue
        path = args.keep / f"{seed}.json"
        path.write_text(json.dumps(file, ensure_ascii=False))
        problems = []
        try:
            error = compare(args, rng, file, path, problems.append)
        except BaseException as failure:
            refused[f"tokenizers: {str(failure)[:60]}"] += 1
            continue
        for problem in problems:
            print(f"{path}: {problem}", flush=True)
        if error:
            refused[error.split(": ", 2)[-1]] += 1
        differing += bool(problems)
        same += not problems and not error
        if not problems:
            path.unlink()
    print(f"{same} the same, {differing} differing, {sum(refused.values())} not compared")
    for reason, count in refused.most_common():
        print(f"{count:5} {reason}")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
