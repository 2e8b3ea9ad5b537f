// What code models call their tokens for filling in the middle, the most usual names first.
#pragma once

#include <string_view>

namespace tercet::text {

inline constexpr std::string_view kFimPrefixTexts[] = {"<|fim_prefix|>",  "<fim-prefix>", "<fim_prefix>",
                                                       "<｜fim▁begin｜>", "<PRE>",        "▁<PRE>",
                                                       "<|code_prefix|>", "<|prefix|>"};
inline constexpr std::string_view kFimSuffixTexts[] = {"<|fim_suffix|>",  "<fim-suffix>", "<fim_suffix>",
                                                       "<｜fim▁hole｜>",  "<SUF>",        "▁<SUF>",
                                                       "<|code_suffix|>", "<|suffix|>"};
inline constexpr std::string_view kFimMiddleTexts[] = {"<|fim_middle|>",  "<fim-middle>", "<fim_middle>",
                                                       "<｜fim▁end｜>",   "<MID>",        "▁<MID>",
                                                       "<|code_middle|>", "<|middle|>"};

}  // namespace tercet::text
