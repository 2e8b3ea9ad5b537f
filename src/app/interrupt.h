// Ctrl-C as a flag that long work polls, in place of the end of the program.
#pragma once

namespace tercet::app {

// From now on SIGINT sets the flag. System calls that wait are interrupted by it (EINTR).
void catch_interrupts();
// SIGTERM too: for a program that other programs end.
void catch_termination();

// Whether one of these signals came since the last call.
bool take_interrupt();

}  // namespace tercet::app
