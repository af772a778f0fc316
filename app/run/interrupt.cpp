#include "app/run/interrupt.h"

#include <unistd.h>
#include <csignal>
#include <initializer_list>

namespace fedep {
namespace {

volatile std::sig_atomic_t requests = 0;
volatile std::sig_atomic_t is_rank = 0;

extern "C" void on_interrupt(int) {
  requests = requests + 1;
  if (is_rank != 0) return;
  if (requests > 1) _exit(130);
  constexpr char kText[] = "\nstopping at the end of this round; once more to stop at once\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText, sizeof kText - 1);
}

}  // namespace

void catch_interrupts(bool one_of_several) {
  if (one_of_several) is_rank = 1;
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    std::signal(signal, on_interrupt);
    sigaddset(&ours, signal);
  }
  // Whoever started us may have blocked them, which is inherited: they would never be heard.
  pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
}

bool interrupt_requested() { return requests > 0; }

}  // namespace fedep
