#include "app/run/watch_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <netinet/in.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "app/run/watch_connections.h"
#include "fedep/message/error.h"
#include "fedep/page/report/report.h"

namespace fedep {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kHost = "127.0.0.1";
constexpr Clock::duration kOldest = 1s;        // what is made is good for so long,
constexpr int kRest = 20;                      // or for so many times as long as it took,
constexpr Clock::duration kLongestRest = 10s;  // but not for longer than this
constexpr std::string_view kNoToken =
    "The address of a run's page ends in a token. The run says it when it starts.\n";

// 128 bits that nobody guesses.
std::string make_token() {
  std::array<unsigned char, 16> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes)) {
    throw RunError(fmt::format("--watch: cannot draw a token: {}", std::strerror(errno)));
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

FileDescriptor bound_socket(int port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(std::uint16_t(port));
  // That somebody else listens there shows in listen() where that one allows others to bind.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 1) != 0) {
    throw InputError(fmt::format(
        "--watch: port {} of {} must be free, but is not; 0 takes one that is", port, kHost));
  }
  return socket;
}

int port_of(const FileDescriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// A thread beside the run: signals are the run's, and so is the processor.
template <class Work>
std::thread beside_the_run(Work work) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([work] {
    ::setpriority(PRIO_PROCESS, 0, 10);  // of this thread, on Linux
    work();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// The page's data as they were when somebody began to make them.
struct Document {
  Clock::time_point begun;
  std::shared_ptr<const std::string> data;
  std::shared_ptr<const std::string> page = nullptr;  // made when somebody asks for it
};

}  // namespace

struct WatchServer::Server {
  Server(const std::filesystem::path& run, FileDescriptor socket)
      : report(run),
        token(make_token()),
        port(port_of(socket)),
        connections(std::move(socket),
                    {.answer = [this](const HttpRequest& request,
                                      bool at_once) { return answer(request, at_once); },
                     .sent = [this](const WatchAnswer& sent) { note_sent(sent); }}) {
    document = {Clock::now() - kOldest, std::make_shared<const std::string>(report.data())};
    maker = beside_the_run([this] { make_documents(); });
    talker = beside_the_run([this] { connections.run(); });
  }

  ~Server() {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    asked.notify_all();
    connections.stop();
    maker.join();
    talker.join();
  }

  // A browser that was lured to a name of somebody else's which leads here says that name.
  bool is_for_us(const HttpRequest& request) const {
    return request.host == fmt::format("{}:{}", kHost, port) ||
           request.host == fmt::format("localhost:{}", port);
  }

  // What is asked for behind the token; nothing without it.
  std::optional<std::string> behind_token(std::string_view path) const {
    const std::size_t end = path.find('/', 1);
    if (!path.starts_with('/') || end == path.npos) return std::nullopt;
    if (!same_secret(path.substr(1, end - 1), token)) return std::nullopt;
    return std::string(path.substr(end + 1));
  }

  std::optional<WatchAnswer> answer(const HttpRequest& request, bool at_once) {
    const auto refuse = [](int status, std::string_view text) {
      return WatchAnswer{.status = status, .body = std::make_shared<const std::string>(text)};
    };
    if (!is_for_us(request)) return refuse(403, "This server has another name.\n");
    const std::optional<std::string> file = behind_token(request.path);
    if (!file) return refuse(403, kNoToken);
    if (!file->empty() && *file != "data.json") return refuse(404, "There is no such file.\n");
    if (request.method != "GET") return refuse(405, "This server is read.\n");

    const std::lock_guard lock(mutex);
    last_asked = Clock::now();
    if (!is_fresh()) {
      wanted = true;
      asked.notify_all();
      if (!at_once) return std::nullopt;
    }
    WatchAnswer out;
    out.is_last = last_since && document.begun >= *last_since;
    if (*file == "data.json") {
      out.type = "application/json";
      out.body = document.data;
    } else {
      if (!document.page) {
        document.page = std::make_shared<const std::string>(report_page(*document.data, true));
      }
      out.type = "text/html; charset=utf-8";
      out.body = document.page;
    }
    return out;
  }

  void note_sent(const WatchAnswer& sent) {
    if (!sent.is_last) return;
    const std::lock_guard lock(mutex);
    last_is_sent = true;
    delivered.notify_all();
  }

  bool is_fresh() const {
    if (last_since && document.begun < *last_since) return false;
    return Clock::now() - document.begun < good_for;
  }

  void make_documents() {
    std::unique_lock lock(mutex);
    while (true) {
      asked.wait(lock, [this] { return wanted || stopped; });
      if (stopped) return;
      lock.unlock();
      const Clock::time_point begun = Clock::now();
      std::shared_ptr<const std::string> data;
      try {
        data = std::make_shared<const std::string>(report.data());
      } catch (const std::exception&) {
        // No memory, for instance: the page stays as it was.
      }
      lock.lock();
      if (!data) data = document.data;
      document = {begun, std::move(data)};
      good_for = std::clamp<Clock::duration>(kRest * (Clock::now() - begun), kOldest, kLongestRest);
      wanted = false;
      connections.wake();
    }
  }

  LiveReport report;
  const std::string token;
  const int port;
  WatchConnections connections;
  std::mutex mutex;  // of what follows, but for the threads
  std::condition_variable asked, delivered;
  Document document;
  Clock::duration good_for = kOldest;
  bool wanted = false, stopped = false, last_is_sent = false;
  std::optional<Clock::time_point> last_asked;
  std::optional<Clock::time_point> last_since;  // the run is over, and says nothing new
  std::thread maker, talker;
};

WatchServer::WatchServer(const std::filesystem::path& run, int port)
    : server_(std::make_unique<Server>(run, bound_socket(port))) {}

WatchServer::~WatchServer() = default;

LiveReport& WatchServer::report() { return server_->report; }

std::string WatchServer::url() const {
  return fmt::format("http://{}:{}/{}/", kHost, server_->port, server_->token);
}

void WatchServer::finish() {
  constexpr auto kRecently = 5s, kAtMost = 3s;
  std::unique_lock lock(server_->mutex);
  server_->last_since = Clock::now();
  if (!server_->last_asked || Clock::now() - *server_->last_asked > kRecently) return;
  server_->delivered.wait_for(lock, kAtMost, [this] { return server_->last_is_sent; });
}

}  // namespace fedep
