// --policy: the order in which waiting requests run, of the commands that have a scheduler.
#pragma once

#include "sched/scheduler.h"

namespace CLI {
class App;
}

namespace tercet::app {

// `policy` outlives the command and has the default.
void add_policy_flag(CLI::App& command, sched::Policy& policy);

}  // namespace tercet::app
