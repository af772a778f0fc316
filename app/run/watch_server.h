// A web server on 127.0.0.1 that shows a run while it goes on. Other machines cannot reach it, pages
// of other sites that a browser here has open cannot read it, and neither can other users of this
// machine: its address has a token in it that only the run's own user is told.
//
//   WatchServer watch("run/first", 8080);   // port 0: any free one
//   fmt::print(stderr, "watch at {}\n", watch.url());
//   …                                       // the run, which tells watch.report() of its rounds
//   watch.finish();                         // until open pages have the last round
//
// One thread talks to browsers (watch_connections.h), another makes what they get: when somebody
// asks, at most once a second, at most a twentieth of the time, and at a low priority.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "app/run/live_report.h"

namespace fedep {

class WatchServer {
 public:
  // Throws InputError if the port is not free.
  WatchServer(const std::filesystem::path& run, int port);
  ~WatchServer();  // stops answering
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  LiveReport& report();
  std::string url() const;  // with the token
  // Returns when a page that asked in the last seconds has the run's end; after three seconds at
  // the latest.
  void finish();

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace fedep
