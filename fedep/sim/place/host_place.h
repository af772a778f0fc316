// Places on this computer's cores: messages are in main memory, clients run one after another
// (sim/place/serial.h) or on threads (sim/place/threads.h), to the same bits. Rows of sim/place/places.h.
#pragma once

#include <memory>
#include <string>

#include "fedep/sim/place/places.h"

namespace fedep {

std::string host_problem();
std::string host_text(const PlaceOptions& options);
std::string host_remark(const Recipe& recipe);
void check_host_place(const Recipe& recipe, const Task& task);
std::unique_ptr<Place> make_serial_place(const Recipe& recipe, Task& task, SiteStore& home,
                                         const PlaceOptions& options);
std::unique_ptr<Place> make_threads_place(const Recipe& recipe, Task& task, SiteStore& home,
                                          const PlaceOptions& options);

}  // namespace fedep
