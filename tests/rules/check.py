#!/usr/bin/env python3
"""Checks the rules of the code (CONTRIBUTING.md) over the tree: check.py RULE [ROOT].

Each rule is a function that takes the root of the tree and returns its problems, one line each, as `file:line: what`.
check_test.py breaks every rule once.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

# A folder of src/ includes itself and folders of lower rank, less those that it must not know.
RANKS = {
    "base": 0,
    "tensor": 1, "core": 1,
    "format": 2, "quant": 2, "text": 2, "kv": 2,
    "backend": 3, "sched": 3, "transport": 3, "http": 3,
    "sample": 4, "model": 4,
    "spec": 5,
    "engine": 6,
    "server": 7, "router": 7, "quantize": 7, "bench": 7, "eval": 7,
    "app": 8,
}
MUST_NOT_KNOW = {
    "text": {"tensor"}, "kv": {"tensor", "core"}, "sched": {"tensor", "core"},
    "backend": {"core"}, "http": {"tensor"},
}

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 70
GENERATED = re.compile(r"_tables?\.(cc|h)$")
PLATFORM_IF = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*\b(__linux__|__unix__|_WIN32|_MSC_VER|__APPLE__|"
                         r"__x86_64__|__i386__|__aarch64__|__arm__|__AVX\w*|__SSE\w*|__FMA__|__F16C__|__AMX\w*|"
                         r"__ARM_\w+|__CUDA\w*)")
APP_ONLY = re.compile(r'\b(getenv|secure_getenv|setenv|isatty|tcsetattr|getopt\w*)\s*\(|#\s*include\s*<(CLI/|editline/|histedit)'
                      r"|\bextern char\s*\*\*\s*environ\b")
MARKER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.}])/(work|root|home)/\w")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def sources(root, suffixes=(".h", ".cc")):
    """C++ files of src/ and tests/, in order."""
    return sorted(p for top in ("src", "tests") for p in (root / top).rglob("*")
                  if p.suffix in suffixes and "data" not in p.relative_to(root).parts)


def texts(root):
    """Every text file that people write: sources, scripts, documents, build files."""
    tops = ["src", "tests", "scripts", "docs", "bench", "cmake", ".ci"]
    found = [p for top in tops for p in (root / top).rglob("*") if p.is_file()]
    found += [p for p in root.glob("*") if p.is_file()]
    skipped = {"data", "rules", "__pycache__"}
    for path in sorted(found):
        if not skipped & set(path.relative_to(root).parts) and path.name != "LICENSE":
            try:
                yield path, path.read_text()
            except UnicodeDecodeError:
                continue


def at(root, path, line, what):
    return f"{path.relative_to(root)}:{line}: {what}"


def include_ranks(root):
    problems = []
    graph = {}
    src = root / "src"
    for path in sources(root):
        if src not in path.parents:
            continue
        name = path.relative_to(src).as_posix()
        folder = name.split("/")[0]
        if folder not in RANKS:
            problems.append(at(root, path, 1, f"folder {folder} has no rank"))
            continue
        text = path.read_text()
        graph[name] = []
        for match in INCLUDE.finditer(text):
            target = match.group(1)
            line = text.count("\n", 0, match.start(1)) + 1
            other = target.split("/")[0]
            if not (src / target).is_file():
                problems.append(at(root, path, line, f'"{target}" is not a path from src/'))
            elif other != folder and RANKS.get(other, 99) >= RANKS[folder]:
                problems.append(at(root, path, line, f"{folder} (rank {RANKS[folder]}) includes {target} (rank {RANKS.get(other)})"))
            elif other in MUST_NOT_KNOW.get(folder, ()):
                problems.append(at(root, path, line, f"{folder} must not know {other}"))
            else:
                graph[name].append(target)
    return problems + [f"src/{a}:1: includes itself through {b}" for a, b in cycles(graph)]


def cycles(graph):
    """Edges that close a cycle of includes."""
    found, done, active = [], set(), set()

    def visit(node):
        if node in done:
            return
        active.add(node)
        for other in graph.get(node, ()):
            if other in active:
                found.append((other, node))
            else:
                visit(other)
        active.discard(node)
        done.add(node)

    for node in sorted(graph):
        visit(node)
    return found


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\s\\]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'
                   r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)


def code_only(text):
    """The text with comments, literals and preprocessor lines blanked; line numbers stay."""
    def blank(match):
        found = match.group(0)
        return ('""' if found[0] in "\"'R" else "") + "\n" * found.count("\n")
    text = TOKEN.sub(blank, text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.M)


SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b|\bextern\s*\"\"\s*$")


def functions(text):
    """(first line, last line, signature) of each function defined at namespace or class scope."""
    code = code_only(text)
    stack = []  # True for a scope whose contents are declarations, else the start of a function or None
    start, line, begin_line, closed = 0, 1, None, None
    for i, c in enumerate(code):
        if c == "\n":
            line += 1
        elif c not in " \t" and begin_line is None and c not in "{};":
            begin_line = line
        if c == "{":
            before = code[start:i].strip()
            if all(s is True for s in stack):
                plain = re.sub(r"template\s*<[^{}]*?>\s*(?=\w)", "", before)
                is_function = ")" in before and not re.search(r"[^=<>!]=\s*$", before)
                is_scope = SCOPE.search(plain.split("(")[0]) and not (is_function and "(" in plain)
                if not before or before.startswith(","):  # after a braced initializer of a constructor
                    stack.append(closed)
                elif is_scope:
                    stack.append(True)
                else:
                    stack.append((begin_line or line, " ".join(before.split())) if is_function else None)
            else:
                stack.append(None)
            start, begin_line = i + 1, None
        elif c == "}":
            closed = stack.pop() if stack else None
            if isinstance(closed, tuple):
                yield closed[0], line, closed[1]
            start, begin_line = i + 1, None
        elif c == ";":
            start, begin_line = i + 1, None


def sizes(root):
    problems = []
    for path, text in texts(root):
        if GENERATED.search(path.name) or path.suffix == ".md":
            continue
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            problems.append(at(root, path, lines, f"{lines} lines, at most {MAX_FILE_LINES}"))
        if path.suffix not in (".h", ".cc"):
            continue
        for first, last, signature in functions(text):
            if last - first + 1 > MAX_FUNCTION_LINES:
                problems.append(at(root, path, first,
                                   f"{last - first + 1} lines, at most {MAX_FUNCTION_LINES}: {signature[:60]}"))
    return problems


def lines_matching(root, pattern, what, allowed):
    return [at(root, path, number, f"{what}: {line.strip()[:80]}")
            for path in sources(root) if not allowed(path.relative_to(root))
            for number, line in enumerate(path.read_text().splitlines(), 1) if pattern.search(line)]


def platform_if(root):
    return lines_matching(root, PLATFORM_IF, "platform #if outside backend/ and base/",
                          lambda p: p.parts[1] in ("backend", "base"))


def app_only(root):
    # Tests may set the environment that they test, and find the real models through it.
    return lines_matching(root, APP_ONLY, "flags, environment and terminal belong in app/",
                          lambda p: p.parts[1] == "app" or re.search(r"_test\.cc$|_harness\.(h|cc)$|^test_", p.name))


def markers(root):
    return [at(root, path, number, "a reminder without an issue number, as in (#12)")
            for path, text in texts(root)
            for number, line in enumerate(text.splitlines(), 1) if MARKER.search(line)]


def machine_paths(root):
    return [at(root, path, number, f"a path of one machine: {line.strip()[:80]}")
            for path, text in texts(root)
            for number, line in enumerate(text.splitlines(), 1) if MACHINE_PATH.search(line)]


def run_all(commands):
    """Runs (label, command, input) in parallel; returns (label, output) of those that fail."""
    def run(job):
        label, command, given = job
        done = subprocess.run(command, input=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return (label, done.stdout.strip() or "failed") if done.returncode else None

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return [failure for failure in pool.map(run, commands) if failure]


def headers_alone(root):
    src = root / "src"
    jobs = []
    for path in sources(root, (".h",)):
        if src not in path.parents:
            continue
        command = [os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", str(src),
                   "-x", "c++", "-"]
        command[1:1] = ['-DTERCET_TEST_DATA=""']  # as every test has it
        if "isa" in path.parts:  # the intrinsics of every instruction set
            command[1:1] = ["-march=sapphirerapids"]
        if "emulated" in path.parts:  # AVX-512 in terms of what these have
            command[1:1] = ["-mavx2", "-mfma", "-mf16c"]
        jobs.append((path, command, f'#include "{path.relative_to(src).as_posix()}"\n'))
    return [at(root, path, 1, "does not compile alone:\n" + output) for path, output in run_all(jobs)]


def formatting(root):
    jobs = [(path, ["clang-format", "--dry-run", "-Werror", str(path)], "") for path in sources(root)]
    return [at(root, path, 1, "is not as clang-format -i leaves it: " + output.splitlines()[0])
            for path, output in run_all(jobs)]


RULES = {rule.__name__: rule for rule in
         (include_ranks, sizes, platform_if, app_only, markers, machine_paths, headers_alone, formatting)}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in RULES:
        sys.exit("usage: check.py " + "|".join(RULES) + " [ROOT]")
    root = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else pathlib.Path(__file__).parents[2]).resolve()
    problems = RULES[sys.argv[1]](root)
    print("\n".join(problems) or f"{sys.argv[1]}: kept")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
