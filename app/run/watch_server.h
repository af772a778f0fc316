// A web server on 127.0.0.1 that shows a run while it goes on. Other machines cannot reach it, and
// pages of other sites that a browser here has open cannot read it.
//
//   WatchServer watch("run/first", 8080);   // port 0: any free one
//   fmt::print(stderr, "watch at {}\n", watch.url());
//   …                                       // the run
//   watch.finish();                         // until open pages have the last round
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace fedep {

class WatchServer {
 public:
  // Throws InputError if the port is not free, or if this build has no web server.
  WatchServer(const std::filesystem::path& run, int port);
  ~WatchServer();  // stops answering
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  std::string url() const;
  // Returns when a page that asked in the last seconds has asked once more; after three seconds at
  // the latest.
  void finish();

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace fedep
