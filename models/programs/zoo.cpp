// `tapestry zoo`: the models of the zoo, and training those that need no
// configuration. Not here: the Transformer's training (train.cpp). Next:
// zoo_lenet.cpp, zoo_lstm_lm.cpp.
#include "../zoo.h"

#include <fmt/core.h>

#include <cstdio>

#include "../../nn/visitor.h"
#include "program.h"
#include "zoo_train.h"

namespace tapestry::programs {
namespace {

void list() {
  fmt::print("{:<14} parameters in the tiny one that the tests train\n", "model");
  for (const ZooRow& row : zoo())
    fmt::print("{:<14} {}\n", row.name, count_parameters(*row.make(DType::f32, 1).module));
}

}  // namespace

void add_zoo(CLI::App& app) {
  CLI::App* zoo = app.add_subcommand("zoo", "the models of the zoo: list them, train one");
  zoo->require_subcommand(1);
  zoo->add_subcommand("list", "every row of the model table")->callback(list);
  CLI::App* train = zoo->add_subcommand("train", "train a model on its data");
  train->require_subcommand(1);
  add_train_lenet(*train);
  add_train_lstm_lm(*train);
}

}  // namespace tapestry::programs
