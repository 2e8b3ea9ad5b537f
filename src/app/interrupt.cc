#include "app/interrupt.h"

#include <atomic>
#include <csignal>

namespace tercet::app {
namespace {

// A signal handler can reach nothing but a global.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

bool take_interrupt() { return interrupted.exchange(false); }

}  // namespace tercet::app
