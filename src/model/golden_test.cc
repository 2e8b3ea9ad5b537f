// Every family against the logits that Transformers gave for a tiny model of it (tests/data/arch), in
// float32.
#include "model/golden_check.h"

namespace tercet::model {
namespace {

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, ConfigInItsNewerForm) {
  const GoldenFolder folder(GetParam(), "config.json");
  expect_golden(folder.path(), GetParam());
}

TEST_P(Golden, ConfigInItsOlderForm) {
  const GoldenFolder folder(GetParam(), "config.legacy.json");
  expect_golden(folder.path(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(kGoldenFamilies),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tercet::model
