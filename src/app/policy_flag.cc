#include "app/policy_flag.h"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace tercet::app {
namespace {

const std::map<std::string, sched::Policy> kPolicies = {{"fcfs", sched::Policy::kFcfs},
                                                        {"priority", sched::Policy::kPriority},
                                                        {"shortest", sched::Policy::kShortestRemaining}};

}  // namespace

void add_policy_flag(CLI::App& command, sched::Policy& policy) {
  std::string fallback;
  for (const auto& [name, value] : kPolicies)
    if (value == policy) fallback = name;
  command
      .add_option_function<std::string>(
          "--policy,--scheduling-policy", [&policy](const std::string& name) { policy = kPolicies.at(name); },
          "who runs next: fcfs, priority (then fcfs), or shortest (fewest tokens left first)")
      ->check(CLI::IsMember(kPolicies).description(""))
      ->type_name("NAME")
      ->default_str(fallback);
}

}  // namespace tercet::app
