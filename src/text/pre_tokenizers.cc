#include "text/pre_tokenizers.h"

#include <algorithm>

namespace tercet::text {
namespace {

// The expressions are those of llama.cpp, which are the models' own in another spelling. Rewritten here
// without a change of meaning, so that they match in linear time: ((?=[\p{L}])([^a-z])) as [^\P{L}a-z], and
// what runs over white space with a look-behind.
#define CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define GPT4(numbers) \
  CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" numbers R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES
#define UPPER_LOWER(upper, lower, contractions)                                                     \
  R"([^\r\n\p{L}\p{N}]?)" upper "*" lower "+" contractions R"(|[^\r\n\p{L}\p{N}]?)" upper "+" lower \
  "*" contractions

constexpr char kGpt2[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr char kGpt4Digit[] = GPT4(R"(\p{N})");
constexpr char kGpt4ThreeDigits[] = GPT4(R"(\p{N}{1,3})");
constexpr char kGpt4Digits[] = GPT4(R"(\p{N}+)");
constexpr char kQwen35[] =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES;
constexpr char kNoContractions[] = R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES;
// Behind a piece of a run of spaces no newline is left in the run.
constexpr char kJais2[] = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|(?<![^\S\r\n])\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|)"
    R"(\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr char kBailing[] =
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr char kSeedCoder[] =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" SPACES;
constexpr char kExaoneMoe[] = CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}(?:[\p{L}\p{M}]++| \p{L})*+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";

constexpr char kTekken[] =
    UPPER_LOWER(R"([^\P{L}a-z])", R"([^\P{L}A-Z])", "") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr char kGpt4o[] = UPPER_LOWER(R"([^\P{L}a-z])", R"([^\P{L}A-Z])",
                                      CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr char kGraniteEmbedding[] =
    UPPER_LOWER(R"((?![a-z])[\p{L}\p{M}])", R"((?![A-Z])[\p{L}\p{M}])",
                CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
#define CASED \
  UPPER_LOWER(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])", R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])", CONTRACTIONS "?")
constexpr char kTinyAya[] = CASED R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr char kYoutu[] = CASED R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr char kYoutuScripts[] =
    "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\\x{3040}-ゟ゠-"
    "ヿ]"
    "+";
constexpr char kKimi[] = R"(\p{Han}+|)" UPPER_LOWER(
    R"((?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]))", R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}]))",
    CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" SPACES;

constexpr char kCjkKana[] = "[一-龥\\x{3040}-ゟ゠-ヿ]+";
#define DEEPSEEK3_WORDS \
  R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
constexpr char kDeepseek3[] = DEEPSEEK3_WORDS R"( ?[\p{P}\p{S}]+[\r\n]*|)" SPACES;
constexpr char kSpark[] = DEEPSEEK3_WORDS R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr char kAfmoeScripts[] =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF})"
    R"(\x{E40}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF})"
    R"(\x{1100}-\x{11FF}]+)";
// Letters with a case, in the list that the model was made with.
constexpr char kDeepseekLetters[] =
    "\\s?[A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-"
    "\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-"
    "\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-"
    "\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-"
    "\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}"
    "\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-"
    "\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-"
    "\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}"
    "\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}"
    "\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}"
    "\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-"
    "\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-"
    "\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}"
    "\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}]+";
constexpr char kDeepseekPunctuation[] = "\\s?[!-/:-~！-／：-～‘-‟\\x{3000}-。]+";
constexpr char kDeepseekCjk[] = "[一-龥\\x{800}-一가-\\x{D7FF}]+";
constexpr char kTrailingSpaces[] = R"((?<!\s)\s++$)";
constexpr char kBloom[] = " ?[^(\\s|.,!?…。，、।۔،)]+";
constexpr char kFalconPunctuation[] = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr char kDefaultPunctuation[] = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr char kThreeDigits[] = "[0-9][0-9][0-9]";
constexpr char kLines[] = R"([^\n]+|[\n]+)";

enum : unsigned {
  kIgnoreMerges = 1,
  kAddsBos = 2,
  kKeepsSpaces = 4,
  kEscapesSpaces = 8,
  kCharacters = 16,
  kWholeNewlines = 32,
  kNoDefaultBos = 64,
};

struct Row {
  std::vector<std::string_view> names;
  std::vector<SplitPattern> splits;
  unsigned flags = 0;
};

SplitPattern digit_groups(PatternKind kind) { return {"", kind}; }

std::vector<SplitPattern> chameleon_splits() {
  return {{"<sentinel:[0-9]+>"},       {"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"},
          {R"(([\t\n]|    |  ))"},     {R"(\p{N})"},
          {R"([\p{P}!-/:-@\[-`{-~])"}, {kGpt2}};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {{"default"}, {{kDefaultPunctuation}, {kGpt2}, {R"(\p{N}+)"}, {kThreeDigits}}},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       {{kGpt4ThreeDigits}},
       kIgnoreMerges | kAddsBos},
      {{"dbrx", "smaug-bpe"}, {{kGpt4ThreeDigits}}},
      {{"glm4", "glm5"}, {{kGpt4ThreeDigits}}, kIgnoreMerges | kNoDefaultBos},
      {{"chatglm-bpe"}, {{kGpt4ThreeDigits}}, kNoDefaultBos},
      {{"minicpm5"}, {{R"(\p{N}{1,3})"}, {kGpt4Digits}}, kIgnoreMerges},
      {{"jais-2"}, {{kJais2}}},
      {{"deepseek-llm"},
       {{R"([\r\n])"},
        {kDeepseekLetters},
        {kDeepseekPunctuation},
        {kTrailingSpaces},
        {kDeepseekCjk},
        {R"(\p{N}+)"}},
       kKeepsSpaces},
      {{"deepseek-coder"},
       {{R"([\r\n])"}, {R"(\s?\p{L}+)"}, {R"(\s?\p{P}+)"}, {kDeepseekCjk}, {R"(\p{N})"}},
       kKeepsSpaces},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       {{R"(\p{N}{1,3})"}, {kCjkKana}, {kDeepseek3}},
       kKeepsSpaces},
      {{"spark2_5"}, {{R"(\p{N}{1,3})"}, {kCjkKana}, {kSpark}, {R"(\p{N})"}}, kKeepsSpaces},
      {{"youtu"}, {{kYoutuScripts}, {kYoutu}}, kIgnoreMerges | kKeepsSpaces},
      {{"falcon"}, {{kFalconPunctuation}, {kGpt2}, {kThreeDigits}}},
      {{"starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"}, {{R"(\p{N})"}, {kGpt2}}},
      {{"command-r", "smollm"}, {{R"(\p{N})"}, {kGpt2}}, kKeepsSpaces},
      {{"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum",
        "modern-bert", "jina-v1-en", "jina-v2-code", "roberta-bpe", "mpt", "olmo", "jais", "exaone4"},
       {{kGpt2}}},
      {{"trillion", "granite-docling"}, {{kGpt2}}, kKeepsSpaces},
      {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2"},
       {{kGpt4Digit}},
       kKeepsSpaces},
      {{"stablelm2", "megrez"}, {{kGpt4Digit}}},
      {{"qwen35"}, {{kQwen35}}, kKeepsSpaces},
      {{"ufakzeka"}, {{kNoContractions}}, kKeepsSpaces},
      {{"laguna"}, {{kLines}, {kGpt4Digit}}, kKeepsSpaces},
      {{"seed-coder"}, {{kSeedCoder}}, kKeepsSpaces},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {{kBailing}}, kKeepsSpaces},
      {{"exaone-moe"}, {{kExaoneMoe}}},
      {{"poro-chat"}, {{kBloom}}, kKeepsSpaces},
      {{"bloom", "gpt3-finnish"}, {{kBloom}}},
      {{"viking"}, {{kBloom}, {R"(\p{N})"}}, kKeepsSpaces},
      {{"tekken"}, {{kTekken}}, kIgnoreMerges | kAddsBos | kKeepsSpaces},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {{kGpt4o}}, kKeepsSpaces},
      {{"granite-embed-multi-97m"}, {{kGraniteEmbedding}}, kIgnoreMerges | kKeepsSpaces},
      {{"tiny_aya", "cohere2moe"},
       {digit_groups(PatternKind::kDigitGroupsAtWordEnd), {kTinyAya}},
       kKeepsSpaces},
      {{"kimi-k2"}, {{kKimi}}, kKeepsSpaces},
      {{"superbpe"}, {digit_groups(PatternKind::kDigitGroups)}, kKeepsSpaces},
      {{"afmoe"}, {digit_groups(PatternKind::kDigitGroups), {kAfmoeScripts}, {kDeepseek3}}, kKeepsSpaces},
      {{"chameleon"}, chameleon_splits(), kAddsBos | kKeepsSpaces},
      {{"gemma4", "granite-embed-multi-311m"}, {{kLines}}, kEscapesSpaces | kCharacters | kWholeNewlines},
      {{"sarvam-moe"}, {{kLines}}, kEscapesSpaces | kCharacters | kKeepsSpaces},
      {{"whitespace"}, {{R"(\s+)", PatternKind::kRegex, SplitBehavior::kRemoved}}, kCharacters},
  };
  return table;
}

}  // namespace

bool find_pre_tokenizer(std::string_view name, PreTokenizer& out) {
  for (const Row& row : rows()) {
    if (std::find(row.names.begin(), row.names.end(), name) == row.names.end()) continue;
    out.splits = row.splits;
    out.ignore_merges = row.flags & kIgnoreMerges;
    out.adds_bos = row.flags & kAddsBos;
    out.clean_up_spaces = !(row.flags & kKeepsSpaces);
    out.escapes_spaces = row.flags & kEscapesSpaces;
    out.characters = row.flags & kCharacters;
    out.whole_newlines = row.flags & kWholeNewlines;
    out.no_default_bos = row.flags & kNoDefaultBos;
    return true;
  }
  return false;
}

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const Row& row : rows()) names.insert(names.end(), row.names.begin(), row.names.end());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tercet::text
