#include "app/run/watch_server.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <sys/socket.h>

#include <fmt/format.h>
#include <httplib.h>

#include "app/run/live_report.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kHost = "127.0.0.1";

}  // namespace

struct WatchServer::Server {
  explicit Server(const std::filesystem::path& run) : report(run) {}

  LiveReport report;
  httplib::Server http;
  int port = 0;
  std::thread thread;
  std::atomic<bool> stopped = false;  // the thread has nothing left to do
  std::mutex mutex;                   // of what follows
  std::condition_variable asked;
  std::optional<Clock::time_point> last_asked;
  std::size_t times_asked = 0;

  void note_question() {
    const std::lock_guard lock(mutex);
    last_asked = Clock::now();
    ++times_asked;
    asked.notify_all();
  }

  // A browser that was lured to a name of somebody else's which leads here says that name.
  bool is_for_us(const httplib::Request& request) const {
    const std::string host = request.get_header_value("Host");
    return host == fmt::format("{}:{}", kHost, port) || host == fmt::format("localhost:{}", port);
  }
};

WatchServer::WatchServer(const std::filesystem::path& run, int port)
    : server_(std::make_unique<Server>(run)) {
  Server& server = *server_;
  httplib::Server& http = server.http;
  // By default two programs could share the port, and each browser would get one by chance.
  http.set_socket_options([](auto socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  http.new_task_queue = [] { return new httplib::ThreadPool(2); };  // owned by the server
  http.set_keep_alive_max_count(1);  // nobody waits for an idle browser at the end
  http.set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
  http.set_pre_routing_handler(
      [&server](const httplib::Request& request, httplib::Response& answer) {
        if (server.is_for_us(request)) return httplib::Server::HandlerResponse::Unhandled;
        answer.status = 403;
        return httplib::Server::HandlerResponse::Handled;
      });
  http.Get("/", [&server](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(server.report.page(), "text/html; charset=utf-8");
    server.note_question();
  });
  http.Get("/data.json", [&server](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(server.report.data(), "application/json");
    server.note_question();
  });
  if (port == 0) {
    server.port = http.bind_to_any_port(kHost);
  } else if (http.bind_to_port(kHost, port)) {
    server.port = port;
  } else {
    server.port = -1;
  }
  if (server.port < 0) {
    throw InputError(fmt::format(
        "--watch: port {} of {} must be free, but is not; 0 takes one that is", port, kHost));
  }
  server.thread = std::thread([&server] {
    server.http.listen_after_bind();
    server.stopped = true;
  });
}

WatchServer::~WatchServer() {
  // stop() before the thread listens would be forgotten.
  while (!server_->http.is_running() && !server_->stopped) std::this_thread::yield();
  server_->http.stop();
  server_->thread.join();
}

std::string WatchServer::url() const { return fmt::format("http://{}:{}/", kHost, server_->port); }

void WatchServer::finish() {
  constexpr auto kRecently = std::chrono::seconds(5);
  constexpr auto kAtMost = std::chrono::seconds(3);
  std::unique_lock lock(server_->mutex);
  if (!server_->last_asked || Clock::now() - *server_->last_asked > kRecently) return;
  const std::size_t before = server_->times_asked;
  server_->asked.wait_for(lock, kAtMost, [&] { return server_->times_asked > before; });
}

}  // namespace fedep
