// In place of watch_server.cpp where cpp-httplib is not installed.
#include "app/run/watch_server.h"

#include "fedep/message/error.h"

namespace fedep {

struct WatchServer::Server {};

WatchServer::WatchServer(const std::filesystem::path&, int) {
  throw InputError("--watch needs a build with cpp-httplib, but this one has none");
}
WatchServer::~WatchServer() = default;
std::string WatchServer::url() const { return ""; }
void WatchServer::finish() {}

}  // namespace fedep
