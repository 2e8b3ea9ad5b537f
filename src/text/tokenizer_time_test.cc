// The work of a tokenizer is linear in the text, counted in steps: symbols, look-ups, heap operations,
// pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <set>

#include "text/pre_tokenizers.h"
#include "text/sample_texts.h"
#include "text/test_data.h"
#include "text/unicode.h"

namespace tercet::text {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

// The sample texts, and runs of what splits, merges or normalizes in special ways.
const std::vector<SampleText>& large_texts() {
  static const std::vector<SampleText> texts = [] {
    std::vector<SampleText> all = sample_texts(kLarge);
    for (const char* unit :
         {"\n", "1", "\u4E2D", "'", "<", "a ", " \n", "<|im_start|>", "\u0301", "_", "ab", "\u1E69\u0323"}) {
      std::string text;
      while (text.size() < kLarge) text += unit;
      all.push_back({unit, std::move(text)});
    }
    return all;
  }();
  return texts;
}

// 16 times the text may take 16 times the steps, and a little for the log.
void expect_linear(const Tokenizer& tokenizer, const std::string& name) {
  for (const SampleText& sample : large_texts()) {
    const std::string_view text = sample.text;
    uint64_t small = 0, large = 0;
    tokenizer.encode(text.substr(0, kLarge / 16), {.parse_special = true}, &small);
    tokenizer.encode(text, {.parse_special = true}, &large);
    EXPECT_LE(large, 20 * small + 100) << name << ": " << sample.name;
    EXPECT_LT(large, 30 * text.size()) << name << ": " << sample.name;
  }
}

TEST(TokenizerTime, BpeAndSpm) {
  for (const char* name : {"q05", "smollm2-135m", "gemma3-270m", "llama-spm", "deepseek-coder"}) {
    expect_linear(test_tokenizer(name), name);
  }
}

TEST(TokenizerTime, TokenizerJson) {
  for (const char* name : {"qwen3", "gemma3"}) expect_linear(test_json_tokenizer(name), name);
}

// Parts of the words of the prose, as a vocabulary; `mark` goes before those that do not begin a word.
TokenizerSpec parts_of_prose(const std::string& mark) {
  const std::string prose = sample_texts(1 << 14)[0].text;
  std::set<std::string> parts;
  for (size_t i = 0; i + 8 < prose.size(); i += 3) {
    for (size_t length = 1; length <= 8; ++length) {
      parts.insert(prose.substr(i, length));
      parts.insert(mark + prose.substr(i, length));
    }
  }
  TokenizerSpec spec;
  spec.texts = {"<unk>"};
  spec.texts.insert(spec.texts.end(), parts.begin(), parts.end());
  spec.pieces = spec.texts;
  spec.is_control.assign(spec.texts.size(), 0);
  spec.bpe.unknown = 0;
  return spec;
}

TEST(TokenizerTime, Unigram) {
  TokenizerSpec spec = parts_of_prose(std::string(kMetaspace));
  spec.model = ModelKind::kUnigram;
  for (const std::string& text : spec.texts)
    spec.scores.push_back(-4.0 - 1.0 / static_cast<double>(text.size()));
  NormalizerStep spaces;
  spaces.kind = NormalizerKind::kReplace;
  spaces.pattern = " ";
  spaces.content = kMetaspace;
  spec.normalizer = {spaces};
  expect_linear(Tokenizer::create(std::move(spec)).value(), "unigram");
}

TEST(TokenizerTime, WordPiece) {
  for (const int longest : {100, INT32_MAX}) {
    TokenizerSpec spec = parts_of_prose("##");
    spec.model = ModelKind::kWordPiece;
    spec.max_word_chars = longest;
    NormalizerStep bert;
    bert.kind = NormalizerKind::kBert;
    NormalizerStep decompose;
    decompose.kind = NormalizerKind::kNfd;
    spec.normalizer = {decompose, bert};
    spec.splits = {{R"(\s+)", PatternKind::kRegex, SplitBehavior::kRemoved}, {R"([\p{P}$+<=>^`|~])"}};
    expect_linear(Tokenizer::create(std::move(spec)).value(), "word pieces");
  }
}

// How many items of the expression PCRE2 tries in `text`, without the optimizations that only some texts
// have.
uint64_t regex_steps(const std::string& pattern, std::string_view text) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_AUTO_CALLOUT, &error, &offset, nullptr);
  EXPECT_NE(code, nullptr) << pattern;
  pcre2_match_data* data = pcre2_match_data_create_from_pattern(code, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  uint64_t steps = 0;
  pcre2_set_callout(
      context, [](pcre2_callout_block*, void* count) { return ++*static_cast<uint64_t*>(count), 0; }, &steps);
  for (size_t from = 0; from < text.size();) {
    const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                  PCRE2_NO_UTF_CHECK, data, context);
    if (found < 0) break;
    from = std::max(pcre2_get_ovector_pointer(data)[1], from + 1);
  }
  pcre2_match_context_free(context);
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  return steps;
}

TEST(TokenizerTime, EverySplitExpression) {
  std::set<std::string> patterns;
  for (const std::string_view name : pre_tokenizer_names()) {
    PreTokenizer pre;
    ASSERT_TRUE(find_pre_tokenizer(name, pre));
    for (const SplitPattern& split : pre.splits) {
      if (split.kind == PatternKind::kRegex) patterns.insert(split.pattern);
    }
  }
  constexpr size_t kSmall = 1 << 12;
  for (const std::string& pattern : patterns) {
    for (const SampleText& sample : large_texts()) {
      const std::string text = replace_invalid_bytes(std::string_view(sample.text).substr(0, 8 * kSmall));
      const uint64_t small = regex_steps(pattern, replace_invalid_bytes(sample.text.substr(0, kSmall)));
      EXPECT_LE(regex_steps(pattern, text), 10 * small + 100) << pattern << " " << sample.name;
    }
  }
}

}  // namespace
}  // namespace tercet::text
