// The models that `tapestry zoo train` knows, one file each.
// Next: zoo_lenet.cpp.
#pragma once

#include "program.h"

namespace tapestry::programs {

void add_train_lenet(CLI::App& train);
void add_train_lstm_lm(CLI::App& train);

}  // namespace tapestry::programs
