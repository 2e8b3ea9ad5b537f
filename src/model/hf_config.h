// Fields of the JSON files of a Hugging Face folder (config.json, generation_config.json, ...). A field that
// is null counts as absent. Errors name the file and the field.
//
// A value; copies share the parsed file. Safe to read from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tercet::model {

class HfConfig {
 public:
  static Result<HfConfig> open(const std::string& path);
  // `path` stands for the file in errors. kCorrupt unless `json` is an object.
  static Result<HfConfig> parse(std::string_view json, const std::string& path);

  const std::string& path() const { return path_; }
  bool has(std::string_view key) const;

  // kNotFound where the field is absent, kInvalidArgument where it is of another kind.
  Result<int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;  // any number
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  Result<std::vector<int64_t>> get_ints(std::string_view key) const;  // of a number: that one
  Result<std::vector<double>> get_floats(std::string_view key) const;
  Result<std::vector<std::string>> get_strings(std::string_view key) const;
  Result<HfConfig> get_object(std::string_view key) const;

  // The same with a value for an absent field; another kind is still an error.
  Result<int64_t> get_int_or(std::string_view key, int64_t fallback) const;
  Result<double> get_float_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string> get_string_or(std::string_view key, std::string_view fallback) const;

  // An error about a field: "config.json: rope_scaling.factor: MESSAGE".
  Error error(ErrorCode code, std::string_view key, std::string message) const;

 private:
  struct Node;
  HfConfig(std::shared_ptr<const Node> node, std::string path, std::string prefix)
      : node_(std::move(node)), path_(std::move(path)), prefix_(std::move(prefix)) {}

  std::shared_ptr<const Node> node_;
  std::string path_;
  std::string prefix_;  // "rope_scaling." within that object
};

}  // namespace tercet::model
