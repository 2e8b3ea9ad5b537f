// The models that `pull` knows by name, and how a name, file or folder given to a command becomes a path.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tercet::app {

// A GGUF file that Python packages carry in parts. In `package` and `member`, {} stands for the number of the
// part: packages count from 1, members from `first_member`, in `member_digits` digits. A member lies in the
// folder named as its package with _ for -.
struct NamedModel {
  std::string_view name;
  std::string_view summary;
  std::string_view licence;
  std::string_view package;
  std::string_view version;
  std::string_view member;
  int num_parts = 1;
  int first_member = 1;
  int member_digits = 2;
  uint64_t bytes = 0;       // of the joined file
  std::string_view sha256;  // of the joined file, lower-case hex
  // A package with terms that have to be shown and accepted before the first download; "" for none.
  std::string_view terms_package = {};
  std::string_view terms_member = {};
};

inline constexpr std::string_view kDefaultModel = "smollm2-135m";

std::span<const NamedModel> named_models();
const NamedModel* find_named_model(std::string_view name);  // nullptr when unknown

// One line per model, with size and licence.
std::string list_named_models();

std::string package_of(const NamedModel& model, int part);  // part counts from 0
std::string member_of(const NamedModel& model, int part);   // path inside the package's wheel
std::string path_of(const NamedModel& model, const std::string& models_folder);

// The path behind what a command calls MODEL: a file or folder that exists, a name of the table, or
// hf:OWNER/REPO:FILE, the last two as pulled into `models_folder`. The error of a model that is not there yet
// says how to pull it.
Result<std::string> resolve_model(const std::string& model, const std::string& models_folder);

}  // namespace tercet::app
