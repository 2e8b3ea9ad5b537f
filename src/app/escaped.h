// Text from files, made fit for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tercet::app {

// Control, format, unassigned and invalid characters become \n, \u{...} and \x.., quotes and backslashes get
// a backslash: nothing in it can disturb a terminal, and it can be read back.
std::string escaped(std::string_view text);

}  // namespace tercet::app
