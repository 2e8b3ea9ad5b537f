// Templates come with model files from anywhere: each of these must end in an error, soon and without much
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/jinja/template.h"

namespace tercet::text::jinja {
namespace {

using testing::HasSubstr;

Error error_of(std::string_view source, const Limits& limits = {}) {
  const auto parsed = Template::parse(source, limits);
  if (!parsed.ok()) return parsed.error();
  const auto rendered = parsed->render({{"x", Value::user_string("x")}}, std::tm{});
  return rendered.ok()
             ? Error{ErrorCode::kInternal, "rendered " + std::to_string(rendered->size()) + " bytes", ""}
             : rendered.error();
}

void expect_exhausted(std::string_view source, const char* message, const Limits& limits = {}) {
  const Error error = error_of(source, limits);
  EXPECT_EQ(error.code, ErrorCode::kExhausted) << source.substr(0, 200) << "\n" << error.to_string();
  EXPECT_THAT(error.message, HasSubstr(message)) << source.substr(0, 200);
}

// The default allows a second or more, which adds up.
constexpr Limits kFewSteps{.max_steps = 200'000};

std::string repeated(std::string_view piece, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += piece;
  return text;
}

TEST(TemplateLimits, EndlessLoopsRunOutOfSteps) {
  const std::string loop = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  expect_exhausted(loop, "does not come to an end within 20000000 steps");
  expect_exhausted(loop, "does not come to an end within 200000 steps", kFewSteps);
  expect_exhausted(
      "{% set ns = namespace(l=[1]) %}{% for i in range(100000) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      "steps", kFewSteps);
}

TEST(TemplateLimits, EndlessRecursionRunsOutOfDepth) {
  expect_exhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "levels deep");
  expect_exhausted("{% macro a() %}{% call a() %}x{% endcall %}{% endmacro %}{{ a() }}", "levels deep");
  expect_exhausted("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", "levels deep");
  expect_exhausted("{{ x | map(" + repeated("'map', ", 5000) + "'upper') | list }}", "levels deep");
}

TEST(TemplateLimits, DeepSyntaxIsRefused) {
  for (const char* piece : {"(", "[", "{1:", "-", "not ", "x is not in ", "f(", "x[", "x if ", "[x for"}) {
    EXPECT_FALSE(Template::parse("{{ " + repeated(piece, 100000)).ok()) << piece;
  }
  expect_exhausted("{{ " + repeated("(", 10000) + "1" + repeated(")", 10000) + " }}", "levels deep");
  expect_exhausted("{{ 1" + repeated(" + 1", 10000) + " }}", "levels deep");
  expect_exhausted("{{ x" + repeated(".a", 10000) + " }}", "levels deep");
  expect_exhausted("{{ x" + repeated("|trim", 10000) + " }}", "levels deep");
  expect_exhausted(repeated("{% if x %}", 10000), "levels deep");
  expect_exhausted(repeated("{% macro m() %}", 10000), "levels deep");
  expect_exhausted("{% set " + repeated("(", 10000) + "a" + repeated(")", 10000) + " = 1 %}", "levels deep");
  // Wide is not deep.
  EXPECT_EQ(error_of("{{ x" + repeated(" ~ x", 10000) + " }}").message, "rendered 10001 bytes");
}

TEST(TemplateLimits, HugeStringsAreNotMade) {
  expect_exhausted("{{ 'a' * 1000000000000 }}", "text longer than");
  expect_exhausted("{{ 'ab' * 9223372036854775807 }}", "text longer than");
  expect_exhausted("{{ 'a'.ljust(1000000000000) }}", "text longer than");
  expect_exhausted("{{ 'a' | center(1000000000000) }}", "text longer than");
  expect_exhausted("{{ '%1000000000000d' % 1 }}", "text longer than");
  expect_exhausted("{{ '{:1000000000000}'.format(1) }}", "text longer than");
  expect_exhausted("{{ [1] | tojson(indent=1000000000000) }}", "text longer than");
  expect_exhausted("{{ 'a\nb' | indent(1000000000000) }}", "text longer than");
  expect_exhausted(
      "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "text longer than");
  const Limits small{.max_string_bytes = 100};
  expect_exhausted("{% for i in range(200) %}x{% endfor %}", "text longer than", small);
  expect_exhausted("{{ ('a' * 20).replace('', 'b' * 20) }}", "text longer than", small);
}

TEST(TemplateLimits, HugeListsAreNotMade) {
  expect_exhausted("{{ range(1000000000000) }}", "more than 100000 elements");
  expect_exhausted("{{ range(-9223372036854775807, 9223372036854775807) }}", "more than 100000 elements");
  expect_exhausted("{{ [1] * 1000000000000 }}", "steps", kFewSteps);
  expect_exhausted("{{ [1] | batch(1000000000000, 0) }}", "steps", kFewSteps);
}

// Each value is used twice by the next, so that printing the last would take 2^100 steps.
TEST(TemplateLimits, SharedValuesThatGrowWhenPrintedAreStopped) {
  const std::string make =
      "{% set ns = namespace(l=[1, 2]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}";
  expect_exhausted(make + "{{ ns.l }}", "steps", kFewSteps);
  expect_exhausted(make + "{{ ns.l | tojson }}", "steps", kFewSteps);
  expect_exhausted(
      make +
          "{% set old = ns.l %}{% set ns.l = [1, 2] %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] "
          "%}{% endfor %}{{ ns.l == old }}",
      "steps", kFewSteps);
}

TEST(TemplateLimits, DeepValuesAreNotMade) {
  const std::string loop = "{% for i in range(100000) %}";
  expect_exhausted("{% set ns = namespace(l=[]) %}" + loop + "{% set ns.l = [ns.l] %}{% endfor %}",
                   "nest too deep");
  expect_exhausted("{% set ns = namespace(l={}) %}" + loop + "{% set ns.l = {'a': ns.l} %}{% endfor %}",
                   "nest too deep");
}

// What holds itself must neither hang nor leak; AddressSanitizer's leak check judges the latter.
TEST(TemplateLimits, CyclesAreReleased) {
  const auto renders = [](const char* source) { return error_of(source).message; };
  EXPECT_EQ(renders("{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}{{ ns == ns }}"),
            "rendered 15 bytes");
  EXPECT_EQ(renders("{% set ns = namespace() %}{% set ns.l = [ns, {'a': ns}] %}a"), "rendered 1 bytes");
  EXPECT_EQ(renders("{% macro m() %}{% endmacro %}{% set n = m %}a"), "rendered 1 bytes");
  EXPECT_EQ(renders("{% for i in [1, 2] %}{{ loop.changed(loop, loop.cycle) }}{% endfor %}"),
            "rendered 8 bytes");
  EXPECT_EQ(renders("{% set c = cycler(namespace(), 1) %}{% set c.me = c %}a"), "rendered 1 bytes");
  EXPECT_EQ(
      renders("{% set ns = namespace() %}{% for i in range(50000) %}{% macro m() %}{{ p }}{% endmacro %}"
              "{% set p = ns.m %}{% set ns.m = m %}{% endfor %}a"),
      "rendered 1 bytes");
  EXPECT_EQ(renders("{% set ns = namespace() %}{% for i in range(50000) %}{% set n = namespace(p=ns.n) %}"
                    "{% set ns.n = n %}{% endfor %}a"),
            "rendered 1 bytes");
}

TEST(TemplateLimits, BytesThatAreNotTextAreCopiedOrRefused) {
  EXPECT_EQ(error_of(std::string("\xff\xfe\0\x80", 4)).message, "rendered 4 bytes");
  EXPECT_EQ(error_of("{{ '\xff\xc3' | upper | trim | length }}").message, "rendered 1 bytes");
  EXPECT_EQ(error_of(std::string("{{ \0 }}", 7)).code, ErrorCode::kInvalidArgument);
}

TEST(TemplateLimits, LongTemplatesAreRefused) {
  expect_exhausted(std::string((1 << 20) + 1, 'a'), "more than the limit");
  EXPECT_EQ(error_of(repeated("{{ x }}", 100000)).message, "rendered 100000 bytes");
}

}  // namespace
}  // namespace tercet::text::jinja
