#include "app/run/interrupt.h"

#include <unistd.h>
#include <csignal>

namespace fedep {
namespace {

volatile std::sig_atomic_t requests = 0;

extern "C" void on_interrupt(int) {
  requests = requests + 1;
  if (requests > 1) _exit(130);
  constexpr char kText[] = "\nstopping at the end of this round; once more to stop at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

bool interrupt_requested() { return requests > 0; }

}  // namespace fedep
