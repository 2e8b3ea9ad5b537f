#include "bench/tokenize_speed.h"

#include <chrono>

namespace tercet::bench {

std::vector<TokenizeSpeed> measure_tokenizer(const text::Tokenizer& tokenizer,
                                             const std::vector<text::SampleText>& texts, int repetitions) {
  const text::EncodeOptions options{.add_special = false, .parse_special = true};  // as for a raw prompt
  std::vector<TokenizeSpeed> speeds;
  for (const text::SampleText& sample : texts) {
    speeds.push_back({sample.name, sample.text.size(), tokenizer.encode(sample.text, options).size(), {}});
  }
  using Clock = std::chrono::steady_clock;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto start = Clock::now();
      const size_t tokens = tokenizer.encode(texts[i].text, options).size();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      TERCET_CHECK(tokens == speeds[i].tokens);
      speeds[i].bytes_per_second.push_back(static_cast<double>(texts[i].text.size()) / seconds);
    }
  }
  return speeds;
}

}  // namespace tercet::bench
