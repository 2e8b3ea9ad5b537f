#include "app/interrupt.h"

#include <atomic>
#include <csignal>

namespace tercet::app {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void set_flag_on(int signal) {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void catch_interrupts() { set_flag_on(SIGINT); }
void catch_termination() { set_flag_on(SIGTERM); }

bool take_interrupt() { return interrupted.exchange(false); }

}  // namespace tercet::app
