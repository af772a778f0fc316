#include "app/run/watch_connections.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostConnections = 1024;
constexpr int kBacklog = 1024;
constexpr auto kToAsk = 5s;
constexpr auto kToWait = 250ms;
constexpr auto kToTakeAnswer = 20s;
constexpr auto kBetweenSweeps = 100ms;

FileDescriptor opened(int descriptor) {
  if (descriptor < 0) throw RunError(fmt::format("--watch: {}", std::strerror(errno)));
  return FileDescriptor(descriptor);
}

// Connections must not take the files that the run has to open: there is room for them beside those,
// or they are few.
std::size_t room_for_connections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kMostConnections / 16;
  if (files.rlim_max - files.rlim_cur >= kMostConnections && files.rlim_max > files.rlim_cur) {
    files.rlim_cur += kMostConnections;
    if (::setrlimit(RLIMIT_NOFILE, &files) == 0) return kMostConnections;
  }
  return std::min<std::size_t>(kMostConnections, files.rlim_cur / 4);
}

WatchAnswer refusal(int status, std::string_view text) {
  return {.status = status, .body = std::make_shared<const std::string>(text)};
}

}  // namespace

WatchConnections::WatchConnections(FileDescriptor listener, WatchHandler handler)
    : listener_(std::move(listener)),
      epoll_(opened(::epoll_create1(EPOLL_CLOEXEC))),
      event_(opened(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))),
      handler_(std::move(handler)),
      most_(room_for_connections()) {
  if (::listen(listener_.get(), kBacklog) != 0) opened(-1);
  for (const int descriptor : {listener_.get(), event_.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) opened(-1);
  }
}

void WatchConnections::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

void WatchConnections::stop() {
  stopped_ = true;
  wake();
}

void WatchConnections::run() {
  // All that have said something are heard before others come, who might take their place.
  std::array<epoll_event, kMostConnections + 2> events;
  Clock::time_point swept = Clock::now();
  while (!stopped_) {
    const bool idle = connections_.empty() && is_listening_;
    const int timeout = idle ? -1 : int(std::chrono::milliseconds(kBetweenSweeps).count());
    const int count = ::epoll_wait(epoll_.get(), events.data(), int(events.size()), timeout);
    bool has_new = false, woken = false;
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[std::size_t(i)].data.fd;
      has_new |= descriptor == listener_.get();
      woken |= descriptor == event_.get();
      const auto found = connections_.find(descriptor);
      if (found == connections_.end()) continue;
      Connection& connection = found->second;
      const bool is_over = (events[std::size_t(i)].events & (EPOLLHUP | EPOLLERR)) != 0;
      if (is_over || !(connection.answer ? send(connection) : read(connection))) {
        connections_.erase(found);
      }
    }
    if (woken) answer_waiting(true);
    // After the others: only now may a new connection have the number of one that is closed.
    if (has_new) accept_all();
    if (Clock::now() - swept >= kBetweenSweeps) {
      answer_waiting(false);
      drop_late();
      if (!is_listening_) set_listening(true);
      swept = Clock::now();
    }
  }
}

void WatchConnections::accept_all() {
  for (int i = 0; i < 64; ++i) {
    const int accepted = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) {
      const bool none_left =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (none_left && !drop_one()) set_listening(false);  // until the next sweep
      return;
    }
    FileDescriptor socket(accepted);
    if (connections_.size() >= most_) drop_one();
    epoll_event event{.events = EPOLLIN, .data = {.fd = accepted}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, accepted, &event) != 0) continue;
    const auto added = connections_.emplace(
        accepted, Connection{.socket = std::move(socket), .deadline = Clock::now() + kToAsk});
    if (!read(added.first->second)) connections_.erase(added.first);  // it has often asked already
  }
}

// The one that has said nothing for longest; if all have asked, the one that takes longest.
bool WatchConnections::drop_one() {
  const auto rank = [](const auto& entry) {
    const Connection& connection = entry.second;
    return std::pair(connection.answer || connection.waiting, connection.deadline);
  };
  const auto found = std::ranges::min_element(connections_, {}, rank);
  if (found == connections_.end()) return false;
  connections_.erase(found);
  return true;
}

void WatchConnections::set_listening(bool on) {
  epoll_event event{.events = on ? std::uint32_t(EPOLLIN) : 0u, .data = {.fd = listener_.get()}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
  is_listening_ = on;
}

void WatchConnections::listen_to(const Connection& connection, unsigned events) const {
  const int descriptor = connection.socket.get();
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

bool WatchConnections::read(Connection& connection) {
  std::array<char, 4096> bytes;
  const auto count = ::recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  connection.said.append(bytes.data(), std::size_t(count));
  return understand(connection);
}

bool WatchConnections::understand(Connection& connection) {
  const std::size_t end = connection.said.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (connection.said.size() <= kLongestHead) return true;
    return begin_answer(connection, refusal(431, "a shorter request, please\n"));
  }
  connection.waiting = parse_request(std::string_view(connection.said).substr(0, end));
  if (!connection.waiting) return begin_answer(connection, refusal(400, "no request of HTTP/1\n"));
  connection.deadline = Clock::now() + kToWait;
  listen_to(connection, 0);
  return try_to_answer(connection, false);
}

bool WatchConnections::try_to_answer(Connection& connection, bool at_once) {
  std::optional<WatchAnswer> answer = handler_.answer(*connection.waiting, at_once);
  return !answer || begin_answer(connection, std::move(*answer));
}

bool WatchConnections::begin_answer(Connection& connection, WatchAnswer answer) {
  connection.head = answer_head(answer.status, answer.type, answer.body->size());
  connection.answer = std::move(answer);
  connection.waiting.reset();
  connection.deadline = Clock::now() + kToTakeAnswer;
  listen_to(connection, EPOLLOUT);
  return send(connection);
}

bool WatchConnections::send(Connection& connection) {
  const std::string &head = connection.head, &body = *connection.answer->body;
  while (connection.sent < head.size() + body.size()) {
    const std::size_t of_head = std::min(connection.sent, head.size());
    const std::size_t of_body = connection.sent - of_head;
    // sendmsg() takes what it reads from as if it wrote to it.
    std::array<iovec, 2> parts{{{const_cast<char*>(head.data()) + of_head, head.size() - of_head},
                                {const_cast<char*>(body.data()) + of_body, body.size() - of_body}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const auto count = ::sendmsg(connection.socket.get(), &message, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.sent += std::size_t(count);
  }
  handler_.sent(*connection.answer);
  return false;
}

void WatchConnections::answer_waiting(bool woken) {
  if (woken) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto bytes = ::read(event_.get(), &count, sizeof count);
  }
  const Clock::time_point now = Clock::now();
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection& connection = at->second;
    const bool at_once = now >= connection.deadline;
    const bool is_due = connection.waiting && (woken || at_once);
    const bool goes_on = !is_due || try_to_answer(connection, at_once);
    at = goes_on ? std::next(at) : connections_.erase(at);
  }
}

void WatchConnections::drop_late() {
  const Clock::time_point now = Clock::now();
  // One that waits is not late: it gets its answer in the next sweep.
  std::erase_if(connections_, [&](const auto& entry) {
    return !entry.second.waiting && now >= entry.second.deadline;
  });
}

}  // namespace fedep
