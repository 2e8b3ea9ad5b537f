#include "app/environment.h"

#include <cstdlib>

namespace tercet::app {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// XDG Base Directory Specification: a relative path in a variable is ignored.
std::string xdg_folder(const char* name, const char* below_home) {
  if (const std::string folder = variable(name); folder.starts_with('/')) return folder;
  const std::string home = variable("HOME");
  return (home.empty() ? "." : home) + below_home;
}

}  // namespace

std::string models_folder() {
  if (const std::string folder = variable("TERCET_MODELS"); !folder.empty()) return folder;
  return xdg_folder("XDG_CACHE_HOME", "/.cache") + "/tercet/models";
}

std::string state_folder() { return xdg_folder("XDG_STATE_HOME", "/.local/state") + "/tercet"; }

std::string hub_endpoint() {
  const std::string endpoint = variable("HF_ENDPOINT");
  return endpoint.empty() ? "https://huggingface.co" : endpoint;
}

std::string api_key() { return variable("TERCET_API_KEY"); }

std::string hub_token() { return variable("HF_TOKEN"); }

}  // namespace tercet::app
