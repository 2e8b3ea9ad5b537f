#!/usr/bin/env python3
"""Breaks every rule of check.py once, in a small tree of its own."""

import pathlib
import shutil
import tempfile
import unittest

import check

FORMAT = pathlib.Path(__file__).parents[2] / ".clang-format"


class Rules(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copy(FORMAT, self.root)
        self.write("src/base/a.h", "#pragma once\nint a();\n")
        self.write("src/core/b.h", '#pragma once\n#include "base/a.h"\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def broken(self, rule, name, text):
        self.assertEqual(check.RULES[rule](self.root), [])
        self.write(name, text)
        problems = check.RULES[rule](self.root)
        self.assertEqual(len(problems), 1, problems)
        self.assertTrue(problems[0].startswith(name), problems)
        return problems[0]

    def test_higher_rank(self):
        self.broken("include_ranks", "src/base/c.cc", '#include "core/b.h"\n')

    def test_equal_rank(self):
        self.broken("include_ranks", "src/tensor/c.cc", '#include "core/b.h"\n')

    def test_must_not_know(self):
        self.broken("include_ranks", "src/backend/c.cc", '#include "core/b.h"\n')

    def test_folder_without_rank(self):
        self.broken("include_ranks", "src/misc/c.cc", "int c;\n")

    def test_include_that_is_no_path_from_src(self):
        self.broken("include_ranks", "src/base/c.cc", '#include "a.h"\n')

    def test_cycle(self):
        self.write("src/core/c.h", '#pragma once\n#include "core/b.h"\n')
        self.broken("include_ranks", "src/core/b.h", '#pragma once\n#include "core/c.h"\n')

    def test_long_file(self):
        self.broken("sizes", "src/base/c.cc", "int x;\n" * 801)

    def test_long_generated_table(self):
        self.write("src/base/c_table.cc", "int x;\n" * 801)
        self.assertEqual(check.sizes(self.root), [])

    def function(self, head, lines):
        return f"{head} {{\n" + "  f();\n" * (lines - 2) + "}\n"

    def test_long_function(self):
        self.write("src/base/d.cc", self.function("int f()", 70))
        problem = self.broken("sizes", "src/base/c.cc", "int y;\n" + self.function("int f(int a)", 71))
        self.assertIn("c.cc:2: 71 lines", problem)

    def test_long_method_after_literals_that_hold_braces(self):
        text = ("namespace n {\nclass C : public D<int> {\n// }}}\nconst char* s = \"}}\"; char c = '}'; int i = 1'000;\n"
                "auto r = R\"(}}})\";\n" + self.function("C(int a) : D(a), e_{a}", 71) + "};\n}\n")
        self.assertIn(":6: 71", self.broken("sizes", "src/base/c.cc", text))

    def test_long_template_function_that_returns_a_struct(self):
        self.broken("sizes", "src/base/c.cc", self.function("template <class T>\nstruct S f(const T& t) const", 71))

    def test_long_table_is_no_function(self):
        self.write("src/base/c.cc", "const S kTable[] = {\n" + "  {f(1), 2},\n" * 90 + "};\n")
        self.write("src/base/d.cc", "struct S {\n" + "  int a(int) const;\n" * 90 + "};\n")
        self.assertEqual(check.sizes(self.root), [])

    def test_platform_if(self):
        self.write("src/backend/ok.cc", "#ifdef __AVX2__\n#endif\n")
        self.broken("platform_if", "src/core/c.cc", "#if defined(__linux__)\n#endif\n")

    def test_environment(self):
        self.write("src/app/ok.cc", 'auto x = getenv("X");\n')
        self.broken("app_only", "src/core/c.cc", 'auto x = std::getenv("X");\n')

    def test_flags(self):
        self.broken("app_only", "src/core/c.cc", "#include <CLI/CLI.hpp>\n")

    def test_marker(self):
        self.write("src/core/ok.cc", "// TO" "DO(#12): later\n")
        self.broken("markers", "src/core/c.cc", "// TO" "DO: later\n")

    def test_machine_path(self):
        self.write("docs/ok.md", "~/.cache/tercet and build/home/x\n")
        self.broken("machine_paths", "docs/c.md", "see /" "home/me/x\n")

    def test_header_that_needs_another(self):
        self.broken("headers_alone", "src/core/c.h", "#pragma once\nstd::string s();\n")

    def test_formatting(self):
        self.broken("formatting", "src/core/c.cc", "int   x ;\n")


if __name__ == "__main__":
    unittest.main()
