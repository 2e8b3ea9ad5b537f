#include "model/families/family.h"

#include <fmt/format.h>

namespace tercet::model {
namespace {

constexpr Family kFamilies[] = {
    {"chatglm", chatglm_spec},   {"deepseek2", deepseek2_spec}, {"gemma2", gemma2_spec},
    {"gemma3", gemma3_spec},     {"glm4", glm4_spec},           {"gpt-oss", gpt_oss_spec},
    {"granite", granite_spec},   {"llama", llama_spec},         {"olmo2", olmo2_spec},
    {"phi3", phi3_spec},         {"qwen2", qwen2_spec},         {"qwen3", qwen3_spec},
    {"qwen3moe", qwen3moe_spec}, {"smollm3", smollm3_spec},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

Result<DecoderSpec> model_spec(const ModelSource& source) {
  TERCET_ASSIGN(const std::string_view architecture, source.metadata.get_string("general.architecture"));
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.architecture == architecture) {
      TERCET_ASSIGN(DecoderSpec spec, family.spec(source));
      spec.architecture = architecture;
      assign_kv_groups(spec);
      TERCET_TRY(check_spec(spec, source.path()));
      return spec;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.architecture);
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("general.architecture is {}, which is not supported; known are {}",
                           format::quote(architecture), known),
               source.path()};
}

}  // namespace tercet::model
