// Jinja 3.1's documented behaviour, as transformers configures it. Expected texts are what Jinja2 3.1.6
// renders.
#include "text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/jinja/json.h"

namespace tercet::text::jinja {
namespace {

using testing::HasSubstr;

std::vector<std::pair<std::string, Value>> variables() {
  const Value all = value_from_json(R"({
    "x": {"a": 1, "b": {"c": [1, 2, 3]}, "items": 5, "n": null},
    "l": [3, 1, 2],
    "s": "  Hello World  ",
    "u": "Ünïcode ß 你好",
    "e": [],
    "t": true,
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo", "k": 2},
                 {"role": "user"}],
    "big": 123456789012345678901234567890
  })")
                        .value();
  std::vector<std::pair<std::string, Value>> result;
  for (const auto& [name, value] : all.dict()->entries()) result.emplace_back(name.string()->bytes(), value);
  return result;
}

std::tm noon() {
  std::tm now{};  // Sunday, 29 November 2026, 12:00
  now.tm_year = 126;
  now.tm_mon = 10;
  now.tm_mday = 29;
  now.tm_hour = 12;
  now.tm_yday = 332;
  return now;
}

// The output, or "error: ..." with its place.
std::string render(std::string_view source) {
  const auto parsed = Template::parse(source);
  if (!parsed.ok()) return "error: " + parsed.error().to_string();
  const auto rendered = parsed->render(variables(), noon());
  return rendered.ok() ? rendered->bytes() : "error: " + rendered.error().to_string();
}

struct Case {
  const char* source;
  const char* expected;
};

void expect_all(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(render(c.source), c.expected) << c.source;
}

void expect_errors(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    EXPECT_THAT(render(c.source),
                testing::AllOf(testing::StartsWith("error: template line "), HasSubstr(c.expected)))
        << c.source;
  }
}

// --- white space ---

TEST(WhiteSpace, TrimBlocksRemovesTheLineBreakAfterATag) {
  expect_all({{"{% if t %}\nx\n{% endif %}\ny", "x\ny"},
              {"{# note #}\nx", "x"},
              {"{{ 1 }}\n{{ 2 }}", "1\n2"},
              {"{% if t +%}\nx{% endif %}", "\nx"}});
}

TEST(WhiteSpace, LstripBlocksRemovesIndentationBeforeATag) {
  expect_all({{"a\n  {% if t %}\n  b\n  {% endif %}\nc", "a\n  b\nc"},
              {"  {# note #}\nx", "x"},
              {"  {{ 1 }}", "  1"},
              {"a  {% if t %}b{% endif %}", "a  b"},
              {"a\n  {%+ if t %}b{% endif %}", "a\n  b"}});
}

TEST(WhiteSpace, MinusStripsItsSide) {
  expect_all({{"a \n {{- 1 -}} \n b", "a1b"},
              {"a {%- if t -%} b {%- endif -%} c", "abc"},
              {"a {#- note -#} b", "ab"},
              {"{%- raw -%}  {{ x }}  {%- endraw -%}  !", "{{ x }}!"}});
}

TEST(WhiteSpace, LineEndsAreNormalizedAndOneFinalOneDropped) {
  expect_all({{"a\r\nb\rc\n", "a\nb\nc"}, {"a\n\n", "a\n"}});
}

TEST(Syntax, RawBlocksAndCommentsAreNotEvaluated) {
  expect_all({{"{% raw %}{{ x }} {% if %}{% endraw %}!", "{{ x }} {% if %}!"}, {"a{# {{ x }} #}b", "ab"}});
}

TEST(Syntax, BracesInsideBracketsAndStringsDoNotEndATag) {
  expect_all({{"{{ {'a': {'b': 1}}['a']['b'] }}", "1"}, {"{{ '}}' }}{{ \"%}\" }}", "}}%}"}});
}

TEST(Syntax, ErrorsNameLineAndColumn) {
  expect_errors({{"a\n  {% if x %}", "line 2, column 13: expected {% endif %}"},
                 {"é {{ 'abc }}", "line 1, column 6: this string has no end"},
                 {"{{ a b }}", "line 1, column 6: expected '}}', found 'b'"},
                 {"{% foo %}", "unknown tag 'foo'"},
                 {"{% include 'x' %}", "{% include %} is not supported"},
                 {"{% endfor %}", "unknown tag 'endfor'"},
                 {"{{ [1, 2 }}", "unexpected '}', expected ']'"},
                 {"{{ 1", "expected }}"},
                 {"{# x", "comment has no end"},
                 {"{% raw %}", "raw block has no end"},
                 {"{{ f(a=1, 2) }}", "positional argument follows"},
                 {"{% set true = 2 %}", "cannot assign to 'true'"},
                 {"{% break %}", "outside of a loop"},
                 {"{{ x ! }}", "unexpected character '!'"}});
}

// --- expressions ---

TEST(Expressions, Literals) {
  expect_all(
      {{"{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 1.5e3 }} {{ 1e16 }} {{ 1e-5 }}",
        "1000 31 5 1500.0 1e+16 1e-05"},
       {"{{ 'a' 'b' }} {{ 'a\\x41\\u00e9\\q\\101\\n' }}", "ab aAé\\qA\n"},
       {"{{ True }} {{ false }} {{ None }}", "True False None"},
       {"{{ [1, 'a', (1,), {'k': none}] }}", "[1, 'a', (1,), {'k': None}]"},
       {"{{ 1, 2 }} {{ () }}", "(1, 2) ()"},
       {"{{ {1: 2, 'a': 3, 1.0: 4} }}", "{1: 4, 'a': 3}"},
       {"{{ big }} {{ 100000000000000000000 }}", "123456789012345678901234567890 100000000000000000000"}});
}

TEST(Expressions, ArithmeticIsPythons) {
  expect_all(
      {{"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 4 / 2 }}", "3 -4 2 -2 3.5 2.0"},
       {"{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }}", "64 4 0.5"},
       {"{{ 1 + 2 * 3 }} {{ true + 1 }} {{ 'ab' * 2 }} {{ [1] + [2] }}", "7 2 abab [1, 2]"},
       {"{{ 1 ~ 2 ~ none ~ 1.0 }} {{ 1 * 2 ~ 3 }}", "12None1.0 23"}});
  expect_errors({{"{{ 1 + 'a' }}", "unsupported operand type(s) for +: 'int' and 'str'"},
                 {"{{ 'a' + 1 }}", "can only concatenate str (not \"int\") to str"},
                 {"{{ 'a' + none }}", "can only concatenate str (not \"NoneType\") to str"},
                 {"{{ 1 // 0 }}", "division by zero"},
                 {"{{ 9223372036854775807 + 1 }}", "does not fit into 64 bits"},
                 {"{{ big + 1 }}", "does not fit into 64 bits"}});
}

TEST(Expressions, ComparisonsChainAndTestMembership) {
  expect_all({{"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }}", "True False True"},
              {"{{ 1 in [1] }} {{ 'b' in 'abc' }} {{ 'a' in x }} {{ 'z' not in x }}", "True True True True"},
              {"{{ not 1 in [1] }} {{ [1, 2] < [1, 3] }} {{ (1,) == [1] }}", "False True False"},
              {"{{ none == false }} {{ {'a': 1} == {'a': 1.0} }}", "False True"}});
  expect_errors({{"{{ 'a' < 1 }}", "'<' not supported between instances of 'str' and 'int'"},
                 {"{{ 'a' in none }}", "argument of type 'NoneType' is not iterable"},
                 {"{{ 1 in 'abc' }}", "requires string as left operand"}});
}

TEST(Expressions, LogicReturnsOperandsAndShortCircuits) {
  expect_all({{"{{ 0 or 'a' }} {{ 0 and nope.x }} {{ 1 or nope.x }} {{ not not 1 }}", "a 0 1 True"},
              {"{{ 1 if t else 2 }} {{ 1 if not t else 2 }} [{{ 'x' if false }}]", "1 2 []"}});
}

TEST(Expressions, AttributesComeBeforeItemsAndItemsBeforeAttributes) {
  expect_all({{"{{ x.a }} {{ x['a'] }} {{ x['items'] }} {{ x.items() | length }}", "1 1 5 4"},
              {"{{ x.b.c.1 }} {{ x.b.c[-1] }} [{{ x.zzz }}] [{{ none.y }}] [{{ l[9] }}]", "2 3 [] [] []"},
              {"[{{ 'a'.__class__ }}]", "[]"}});
}

TEST(Expressions, SlicesArePythons) {
  expect_all(
      {{"{{ [1, 2, 3][::-1] }} {{ [1, 2, 3][1:] }} {{ [1, 2, 3][-100:100:2] }}", "[3, 2, 1] [2, 3] [1, 3]"},
       {"{{ u[1:4] }} {{ u[::-2] }} {{ u[-1] }} {{ u[100:] }}", "nïc 好  dcn 好 "},
       {"{{ l[:-1] }} {{ (1, 2, 3)[1:] }} ", "[3, 1] (2, 3) "}});
  expect_errors({{"{{ l[::0] }}", "slice step cannot be zero"},
                 {"{{ none[1:] }}", "a value of type NoneType cannot be sliced"},
                 {"{{ l['a':] }}", "slice indices must be integers"}});
}

TEST(Expressions, UndefinedPrintsNothingAndFailsInComputations) {
  expect_all(
      {{"[{{ nope }}] {{ nope is defined }} {{ nope == nope2 }} {{ nope is none }}", "[] False True False"},
       {"{{ nope ~ 'a' }} {{ nope | default('d') }} {{ nope | length }} {{ 1 in nope }}", "a d 0 False"},
       {"{% for i in nope %}x{% else %}none{% endfor %}", "none"}});
  expect_errors({{"{{ nope.x }}", "'nope' is undefined"},
                 {"{{ x.y.z }}", "'dict object' has no attribute 'y'"},
                 {"{{ none.x.y }}", "'None' has no attribute 'x'"},
                 {"{{ 'a' + nope }}", "'nope' is undefined"},
                 {"{{ nope() }}", "'nope' is undefined"},
                 {"\n{{ x.get('q') +\n nope }}", "line 2, column 15"}});
}

// --- statements ---

TEST(For, LoopVariables) {
  expect_all(
      {{"{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}"
        "{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %}",
        "103TrueFalse31a;212FalseFalse332b;321FalseTrue31a;"},
       {"{% for i in [1, 1, 2] %}{{ loop.changed(i) }} {% endfor %}", "True False True "}});
}

TEST(For, FilterElseUnpackingAndControls) {
  expect_all({{"{% for i in l if i > 1 %}{{ i }}/{{ loop.length }} {% endfor %}", "3/2 2/2 "},
              {"{% for i in l if i > 5 %}{{ i }}{% else %}none{% endfor %}", "none"},
              {"{% for k, v in x.b.items() %}{{ k }}={{ v }}{% endfor %}", "c=[1, 2, 3]"},
              {"{% for (a, b), c in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"},
              {"{% for c in 'hé' %}{{ c }}-{% endfor %}", "h-é-"},
              {"{% for i in range(9) %}{% if i == 3 %}{% continue %}{% elif i == 6 %}{% break %}{% endif "
               "%}{{ i }}{% endfor %}",
               "01245"}});
  expect_errors({{"{% for a, b in [[1, 2, 3]] %}{% endfor %}", "cannot unpack 3 value(s) into 2 name(s)"},
                 {"{% for a in 5 %}{% endfor %}", "'int' object is not iterable"}});
}

TEST(For, RecursiveLoops) {
  expect_all(
      {{"{% for i in [{'n': 1, 'c': [{'n': 2, 'c': []}]}] recursive %}{{ i.n }}@{{ loop.depth }}"
        "{% if i.c %}({{ loop(i.c) }}){% endif %}{% endfor %}",
        "1@1(2@2)"}});
  expect_errors({{"{% for i in l %}{{ loop(l) }}{% endfor %}", "not recursive"}});
}

TEST(Scope, LoopsMacrosAndBlocksHaveTheirOwnVariablesAndIfHasNot) {
  expect_all({{"{% set y = 1 %}{% for i in l %}{% set y = y + 1 %}{{ y }}{% endfor %}{{ y }}", "2221"},
              {"{% for i in [1, 2] %}{% if i == 1 %}{% set z = 5 %}{% endif %}{{ z }},{% endfor %}", "5,,"},
              {"{% if t %}{% set w = 3 %}{% endif %}{{ w }}", "3"},
              {"{% with a = 1 %}{{ a }}{% endwith %}[{{ a }}]", "1[]"},
              {"{% macro m() %}{% set w = 9 %}{{ w }}{% endmacro %}{{ m() }}[{{ w }}]", "9[]"},
              {"{% set v = 1 %}{% macro m() %}{{ v }}{% endmacro %}{% set v = 2 %}{{ m() }}", "2"},
              {"{% macro m() %}[{{ v }}]{% endmacro %}{% for v in [1] %}{{ m() }}{% endfor %}", "[]"}});
}

TEST(Scope, NamespacesCarryValuesOutOfLoops) {
  expect_all(
      {{"{% set ns = namespace(n=0) %}{% for i in l %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "6"},
       {"{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}[{{ ns.c }}]", "12[]"}});
  expect_errors({{"{% set q = {} %}{% set q.x = 1 %}", "not a namespace"}});
}

TEST(Set, BlocksUnpackingAndFilters) {
  expect_all({{"{% set a, b = 1, 2 %}{{ a }}{{ b }}", "12"},
              {"{% set q %}hi {{ x.a }}{% endset %}{{ q }}", "hi 1"},
              {"{% set q | upper | replace('H', 'J') %}hi{% endset %}{{ q }}", "JI"},
              {"{% filter trim | upper %} abc {% endfilter %}", "ABC"},
              {"{% generation %}{{ x.a }}{% endgeneration %}", "1"}});
}

TEST(Macro, ArgumentsDefaultsVarargsAndCallers) {
  expect_all({{"{% macro m(a, b=a) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} "
               "{{ m() }}",
               "1-1 1-3 4-5 -"},
              {"{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, c=3) }}", "(1, 2){'c': 3}"},
              {"{% macro m() %}[{{ caller(1) }}{{ caller(2) }}]{% endmacro %}{% call(v) m() %}<{{ v }}>{% "
               "endcall %}",
               "[<1><2>]"},
              {"{% macro f(n) %}{{ n if n <= 1 else n * (f(n - 1) | int) }}{% endmacro %}{{ f(5) }}", "120"},
              {"{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], **{'b': 2}) }}", "12"}});
  expect_errors(
      {{"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "macro 'm' takes not more than 1 argument(s)"},
       {"{% macro m(a) %}{% endmacro %}{{ m(c=2) }}", "takes no keyword argument 'c'"}});
}

// --- filters ---

TEST(Filters, Strings) {
  expect_all(
      {{"[{{ s | trim }}] [{{ 'xxaxx' | trim('x') }}] {{ u | upper }}", "[Hello World] [a] ÜNÏCODE SS 你好"},
       {"{{ 'hello wORLD-foo (bar' | title }} {{ 'hELLO' | capitalize }}", "Hello World-Foo (Bar Hello"},
       {"{{ 'aaa' | replace('a', 'b', 2) }} {{ '<a>&' | e }} {{ '<b>' | safe }}", "bba &lt;a&gt;&amp; <b>"},
       {"{{ 'a\nb\n\nc' | indent(2) }}", "a\n  b\n\n  c"},
       {"{{ 'a\nb' | indent('> ', first=true) }}", "> a\n> b"},
       {"{{ '%s-%05.1f' | format('a', 2.25) }} {{ '%(k)s' | format(k=1) }}", "a-002.2 1"},
       {"{{ 'hello world this' | truncate(10) }} {{ 1 | string ~ 2 }} {{ 'ab' | center(6) }}|",
        "hello... 12   ab  |"}});
}

TEST(Filters, Sequences) {
  expect_all(
      {{"{{ l | sort }} {{ l | sort(reverse=true) }} {{ ['b', 'A', 'a'] | sort }}",
        "[1, 2, 3] [3, 2, 1] ['A', 'a', 'b']"},
       {"{{ l | first }} {{ l | last }} {{ l | sum }} {{ l | min }} {{ l | max }} {{ l | length }}",
        "3 2 6 1 3 3"},
       {"{{ l | join(', ') }} {{ messages | map(attribute='role') | join('|') }}",
        "3, 1, 2 user|assistant|user"},
       {"{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "2"},
       {"{{ messages | rejectattr('k', 'defined') | map(attribute='content', default='-') | list }}",
        "['hi', '-']"},
       {"{{ [1, 2, 3, 4] | select('odd') | list }} {{ [1, 2] | reject('in', [1]) | list }}", "[1, 3] [2]"},
       {"{{ ['b', 'A', 'a'] | unique | list }} {{ l | reverse | list }} {{ 'abc' | reverse }}",
        "['b', 'A'] [2, 1, 3] cba"},
       {"{{ {'b': 1, 'A': 2} | dictsort }} {{ x.b | items | list }}",
        "[('A', 2), ('b', 1)] [('c', [1, 2, 3])]"},
       {"{{ l | batch(2, 'x') | list }} {{ l | slice(2) | list }}", "[[3, 1], [2, 'x']] [[3, 1], [2]]"},
       {"{% for role, group in messages | groupby('role') %}{{ role }}:{{ group | length }} {% endfor %}",
        "assistant:1 user:2 "}});
}

TEST(Filters, Numbers) {
  expect_all({{"{{ '3.7' | int }} {{ 'x' | int(7) }} {{ 'ff' | int(0, 16) }} {{ none | int }}", "3 7 255 0"},
              {"{{ '1.5' | float }} {{ 'x' | float }} {{ -3 | abs }}", "1.5 0.0 3"},
              {"{{ 42.55 | round }} {{ 2.5 | round }} {{ 42.55 | round(1, 'floor') }} {{ 42 | round }}",
               "43.0 2.0 42.5 42"},
              {"{{ none | default('d') }} {{ none | default('d', true) }}", "None d"}});
}

TEST(Filters, TojsonIsPythonsJsonDumps) {
  expect_all({{"{{ x.b | tojson }} {{ (1, 2) | tojson }}", "{\"c\": [1, 2, 3]} [1, 2]"},
              {"{{ [1.0, 1e-7, 1e20, 123456789.125, true, none] | tojson }}",
               "[1.0, 1e-07, 1e+20, 123456789.125, true, null]"},
              {"{{ '<é\\u2028\\x01\"\\\\\\n😀' | tojson }}", "\"<é\u2028\\u0001\\\"\\\\\\n😀\""},
              {"{{ 'é😀' | tojson(ensure_ascii=true) }}", "\"\\u00e9\\ud83d\\ude00\""},
              {"{{ {'b': [1, {}], 'a': []} | tojson(indent=2, sort_keys=true) }}",
               "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {}\n  ]\n}"},
              {"{{ {'a': [1, 2]} | tojson(separators=(',', ':')) }}", "{\"a\":[1,2]}"},
              {"{{ big | tojson }} {{ {1: 2, none: 3} | tojson }}",
               "123456789012345678901234567890 {\"1\": 2, \"null\": 3}"}});
  expect_errors({{"{{ nope | tojson }}", "not JSON serializable"}});
}

TEST(Filters, UnknownOnesFailOnlyWhenReached) {
  expect_all({{"{% if false %}{{ 1 | foo }}{{ 1 is foo }}{% endif %}ok", "ok"}});
  expect_errors({{"{{ 1 | foo }}", "No filter named 'foo'."}, {"{{ 1 is foo }}", "No test named 'foo'."}});
}

// --- tests ---

TEST(Tests, TypesAndValues) {
  expect_all(
      {{"{{ x is mapping }} {{ l is iterable }} {{ 's' is sequence }} {{ 5 is iterable }}",
        "True True True False"},
       {"{{ 1 is integer }} {{ true is integer }} {{ true is number }} {{ 1.0 is float }}",
        "True False True True"},
       {"{{ 's' is string }} {{ none is none }} {{ t is true }} {{ 1 is true }} {{ t is boolean }}",
        "True True True False True"},
       {"{{ 3 is odd }} {{ 3 is not even }} {{ 9 is divisibleby 3 }} {{ 1 is in [1] }}",
        "True True True True"},
       {"{{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 1 is lt 2 }} {{ 'a' is lower }}", "True False True True"},
       {"{{ range is callable }} {{ 'upper' is filter }} {{ x.a is defined and x.z is not defined }}",
        "True True True"}});
}

// --- methods and globals ---

TEST(Methods, OfStrings) {
  expect_all(
      {{"{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(None, 1) }}",
        "['a', 'b', '', 'c'] ['a', 'b'] ['a', 'b c']"},
       {"{{ 'a,b,c'.rsplit(',', 1) }} {{ 'a-b-c'.partition('-') }}", "['a,b', 'c'] ('a', '-', 'b-c')"},
       {"[{{ s.strip() }}] [{{ s.lstrip() }}] [{{ s.rstrip() }}]",
        "[Hello World] [Hello World  ] [  Hello World]"},
       {"{{ s.startswith('  H') }} {{ 'abc'.endswith(('x', 'c')) }} {{ u.find('你') }} {{ 'aXbX'.count('X') "
        "}}",
        "True True 10 2"},
       {"{{ 'abc'.replace('', '-') }} {{ ', '.join(['a', 'b']) }} {{ 'it is'.title() }}",
        "-a-b-c- a, b It Is"},
       {"{{ 'abc'.removeprefix('ab') }} {{ '7'.zfill(3) }} {{ '12'.isdigit() }} {{ 'a\nb'.splitlines() }}",
        "c 007 True ['a', 'b']"},
       {"{{ '{} {1[a]} {k:>4} {f:.2f}'.format(1, x, k='a', f=2.5) }}", "1 1    a 2.50"},
       {"{{ '%s %d %5.2f %-4d| %x %%' % ('a', 3, 3.14159, 7, 255) }}", "a 3  3.14 7   | ff %"}});
}

TEST(Methods, OfDictsAndLists) {
  expect_all({{"{{ x.get('a') }} {{ x.get('q') }} {{ x.get('q', 7) }} {{ x.b.keys() | list }} {{ "
               "x.b.values() | list }}",
               "1 None 7 ['c'] [[1, 2, 3]]"},
              {"{{ l.index(1) }} {{ l.count(3) }}", "1 1"}});
}

TEST(Methods, ThatChangeTheirObjectAreRefused) {
  expect_errors({{"{{ l.append(4) }}", "templates may change namespaces only"},
                 {"{{ x.update({}) }}", "templates may change namespaces only"},
                 {"{{ x.pop('a') }}", "templates may change namespaces only"}});
}

TEST(Globals, RangeDictCyclerJoiner) {
  expect_all(
      {{"{{ range(5, 1, -2) | list }} {{ dict({'x': 1}, y=2) }} {{ dict([('a', 1)]) }}",
        "[5, 3] {'x': 1, 'y': 2} {'a': 1}"},
       {"{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}", "abba"},
       {"{% set j = joiner('|') %}{% for i in l %}{{ j() }}{{ i }}{% endfor %}", "3|1|2"}});
}

TEST(Globals, StrftimeNowReadsTheGivenClockInEnglish) {
  expect_all({{"{{ strftime_now('%Y-%m-%d %H:%M:%S') }}", "2026-11-29 12:00:00"},
              {"{{ strftime_now('%a %A %-d %b %B %y %j %I %p %e %%') }}",
               "Sun Sunday 29 Nov November 26 333 12 PM 29 %"}});
}

TEST(Globals, RaiseExceptionStopsWithItsMessage) {
  EXPECT_EQ(render("\n {{ raise_exception('No ' ~ 'way') }}"), "error: template line 2, column 20: No way");
}

TEST(Json, KeepsOrderBigIntegersAndLastOfRepeatedKeys) {
  const Value value =
      value_from_json(R"({"b": 1, "a": 18446744073709551616, "b": -9223372036854775808})").value();
  const auto& entries = value.dict()->entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].second.integer(), INT64_MIN);
  EXPECT_EQ(*entries[1].second.get_if<BigInt>()->digits, "18446744073709551616");
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_FALSE(value_from_json("{").ok());
  EXPECT_FALSE(value_from_json("").ok());
  EXPECT_FALSE(value_from_json("\"\xff\"").ok());
  EXPECT_TRUE(value_from_json(std::string(100, '[') + std::string(100, ']')).ok());
  EXPECT_FALSE(value_from_json(std::string(101, '[') + std::string(101, ']')).ok());
  EXPECT_FALSE(value_from_json(std::string(1000000, '[')).ok());
}

}  // namespace
}  // namespace tercet::text::jinja
