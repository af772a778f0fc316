// The connections of `--watch`: one thread that never waits for any one of them. Whatever others do
// (say nothing, read nothing, come in hundreds), each costs little, for a bounded time:
//
//   at most 1,024 connections, or a quarter of the files that the process may open where that is
//   less: the next one takes the place of the one that has been silent longest
//   a request of at most 8 KiB, within 5 s; its answer taken within 20 s
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "app/run/http_request.h"
#include "fedep/store/durable_file.h"

namespace fedep {

struct WatchAnswer {
  int status = 200;
  std::string_view type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // shared: one for everybody who asks
  bool is_last = false;                     // of what there will ever be to say
};

struct WatchHandler {
  // Nothing: later. Then it is asked again after wake(), and after a quarter of a second with
  // `at_once`, when it has to answer.
  std::function<std::optional<WatchAnswer>(const HttpRequest&, bool at_once)> answer;
  std::function<void(const WatchAnswer&)> sent;  // all of it
};

class WatchConnections {
 public:
  WatchConnections(FileDescriptor listener, WatchHandler handler);

  void run();   // until stop()
  void wake();  // from any thread
  void stop();  // from any thread

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    FileDescriptor socket;
    Clock::time_point deadline;
    std::string said = {};                    // by the other side
    std::optional<HttpRequest> waiting = {};  // for its answer
    std::optional<WatchAnswer> answer = {};   // being sent,
    std::string head = {};                    // after this
    std::size_t sent = 0;                     // of both
  };

  void accept_all();
  bool drop_one();
  void set_listening(bool on);
  void listen_to(const Connection& connection, unsigned events) const;
  // These give whether the connection goes on.
  bool read(Connection& connection);
  bool understand(Connection& connection);
  bool try_to_answer(Connection& connection, bool at_once);
  bool begin_answer(Connection& connection, WatchAnswer answer);
  bool send(Connection& connection);
  void answer_waiting(bool woken);
  void drop_late();

  FileDescriptor listener_, epoll_, event_;
  WatchHandler handler_;
  std::size_t most_;  // connections
  std::unordered_map<int, Connection> connections_;
  bool is_listening_ = true;
  std::atomic<bool> stopped_ = false;
};

}  // namespace fedep
