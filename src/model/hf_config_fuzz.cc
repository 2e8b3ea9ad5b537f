// libFuzzer target: any config.json is refused, or becomes metadata whose spec is refused or can be built.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "model/families/hf.h"

namespace tercet::model {
namespace {

// An embedding and nothing else: what a spec needs of the tensors.
TensorSource embedding_only() {
  return TensorSource("fuzz", {{"token_embd.weight", DType::kF32, {64, 512}}}, nullptr);
}

void run(std::string_view json) {
  const auto config = HfConfig::parse(json, "fuzz");
  if (!config.ok()) return;
  const auto family = hf_family(*config);
  if (!family.ok()) return;
  const auto translation = translate_config(**family, *config);
  if (!translation.ok()) return;
  const TensorSource tensors = embedding_only();
  const auto spec = model_spec({translation->metadata, tensors});
  format::Metadata back("fuzz");
  const Status written = (*family)->to_config(translation->metadata, back);
  if (written.ok()) TERCET_CHECK(back.has("hidden_size"));
  (void)spec;
}

}  // namespace
}  // namespace tercet::model

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tercet::model::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
