// `fedep predict RUN|CHECKPOINT --data FILE`: what a posterior says about new rows or images (predict_file.h), as
// a file (prediction_formats.h).
#pragma once

#include "app/command.h"

namespace fedep {

void add_predict_command(Command& app, int& exit_code);

}  // namespace fedep
