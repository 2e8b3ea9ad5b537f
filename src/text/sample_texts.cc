#include "text/sample_texts.h"

#include <cmath>
#include <iterator>
#include <random>
#include <string_view>

#include "text/unicode.h"

namespace tercet::text {
namespace {

constexpr std::string_view kWords[] = {
    "the",     "of",      "and",      "to",     "in",      "a",      "is",      "that",  "it",      "was",
    "for",     "with",    "as",       "on",     "be",      "at",     "by",      "this",  "had",     "not",
    "are",     "but",     "from",     "or",     "have",    "an",     "they",    "which", "one",     "you",
    "were",    "all",     "her",      "she",    "there",   "would",  "their",   "we",    "him",     "been",
    "has",     "when",    "who",      "will",   "no",      "more",   "if",      "out",   "so",      "up",
    "said",    "what",    "its",      "about",  "than",    "into",   "them",    "can",   "only",    "other",
    "time",    "new",     "some",     "could",  "these",   "two",    "may",     "first", "then",    "do",
    "any",     "like",    "my",       "now",    "over",    "such",   "our",     "man",   "me",      "even",
    "most",    "made",    "after",    "also",   "well",    "many",   "before",  "must",  "years",   "through",
    "where",   "much",    "your",     "way",    "down",    "should", "because", "long",  "each",    "just",
    "state",   "people",  "those",    "how",    "mister",  "little", "good",    "world", "make",    "very",
    "year",    "still",   "see",      "own",    "work",    "men",    "day",     "get",   "here",    "old",
    "life",    "both",    "between",  "being",  "under",   "three",  "never",   "know",  "same",    "last",
    "another", "while",   "us",       "off",    "might",   "great",  "go",      "come",  "since",   "against",
    "right",   "came",    "take",     "used",   "himself", "few",    "house",   "use",   "during",  "without",
    "again",   "place",   "American", "around", "however", "home",   "small",   "found", "thought", "went",
    "say",     "general", "language"};
constexpr std::string_view kSyllables[] = {"con",   "ter",  "ma",  "tion", "er",  "pre", "vel", "lo",
                                           "graph", "is",   "men", "tal",  "ob",  "ser", "va",  "ble",
                                           "in",    "quir", "y",   "ness", "sub", "mit", "al",  "ly"};

class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  // A rank of Zipf's law: rank r about in proportion to 1 / r.
  std::string word() {
    if (below(10) == 0) return rare_word();
    const double u = static_cast<double>(below(1 << 20)) / (1 << 20);
    const auto rank = static_cast<size_t>(std::pow(std::size(kWords), u));
    return std::string(kWords[rank - 1]);
  }

  std::string sentence() {
    std::string out;
    const uint32_t words = 4 + below(18);
    for (uint32_t i = 0; i < words; ++i) {
      std::string next = below(40) == 0 ? std::to_string(below(3000)) : word();
      if (i == 0) next[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(next[0])));
      if (i > 0) out += below(12) == 0 ? ", " : " ";
      out += below(50) == 0 ? "\"" + next + "\"" : next;
      if (below(60) == 0) out += "'s";
    }
    return out + (below(12) == 0 ? "?" : ".") + (below(6) == 0 ? "\n\n" : " ");
  }

  std::string statement(uint32_t depth) {
    std::string out(size_t{4} * depth, ' ');
    switch (below(6)) {
      case 0: return out + "if (" + name() + " < " + number() + ") {\n";
      case 1: return out + "// " + sentence().substr(0, 60) + "\n";
      case 2: return out + "return " + name() + "(" + name() + ", " + number() + ");\n";
      case 3: return out + "const auto " + name() + " = " + name() + "." + name() + "[" + name() + "];\n";
      case 4: return out + name() + "->" + name() + " += \"" + word() + " " + word() + "\";\n";
      default:
        return out + "for (int i = 0; i < " + name() + "; ++i) " + name() + "[i] *= " + number() + ";\n";
    }
  }

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }

 private:
  std::string rare_word() {
    std::string out;
    for (uint32_t i = 2 + below(3); i > 0; --i) out += kSyllables[below(std::size(kSyllables))];
    return out;
  }
  std::string name() {
    std::string out = word();
    if (below(2) == 0) out += "_" + word();
    return out;
  }
  std::string number() {
    return below(4) == 0 ? "0x" + std::to_string(below(100)) : std::to_string(below(512));
  }

  std::mt19937 random_;
};

std::string random_unicode(size_t bytes) {
  Writer random(5);
  std::string out;
  while (out.size() < bytes) {
    const uint32_t kind = random.below(8);
    const char32_t c = random.below(kind < 3 ? 0x80 : kind < 6 ? 0x3000 : 0x110000);
    if (c < 0xD800 || c >= 0xE000) append_utf8(c, out);
  }
  return out;
}

}  // namespace

std::vector<SampleText> sample_texts(size_t bytes) {
  std::string prose, code, noise;
  Writer writer(1);
  while (prose.size() < bytes) prose += writer.sentence();
  for (uint32_t depth = 1; code.size() < bytes;) {
    code += writer.statement(depth);
    if (code.ends_with("{\n")) ++depth;
    const bool closes = depth > 1 && writer.below(4) == 0;
    if (closes) code += std::string(size_t{4} * --depth, ' ') + "}\n";
  }
  while (noise.size() < bytes) noise += static_cast<char>(writer.below(256));
  std::vector<SampleText> texts = {{"prose", std::move(prose)},
                                   {"code", std::move(code)},
                                   {"one character", std::string(bytes, 'a')},
                                   {"spaces", std::string(bytes, ' ')},
                                   {"random bytes", std::move(noise)},
                                   {"random Unicode", random_unicode(bytes)}};
  for (SampleText& sample : texts) sample.text.resize(bytes);
  return texts;
}

}  // namespace tercet::text
