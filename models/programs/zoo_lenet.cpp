// `tapestry zoo train lenet`: LeNet-5 on Fashion-MNIST, or on any set of 28×28
// grey images in MNIST's files. Next: ../training/classify.h.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "../../autograd/error.h"
#include "../../autograd/parallel.h"
#include "../../autograd/random.h"
#include "../../nn/safetensors.h"
#include "../../nn/state_dict.h"
#include "../../nn/visitor.h"
#include "../lenet.h"
#include "../training/classify.h"
#include "stop_signal.h"
#include "zoo_train.h"

namespace tapestry::programs {
namespace {

namespace fs = std::filesystem;

struct LeNetOptions : ClassifyOptions {
  std::string data = "/usr/share/datasets/fashion-mnist", out;
  int64_t signed_seed = 1;  // the command line takes -1 for an unsigned number, too
};

/// The file of this name in the folder, compressed or not.
std::string find(const fs::path& folder, const std::string& name) {
  for (const char* ending : {".gz", ""})
    if (fs::exists(folder / (name + ending))) return (folder / (name + ending)).string();
  fail<IoError>(
      "zoo: '{}' has no {} (.gz or plain); install Fashion-MNIST "
      "with: apt install dataset-fashion-mnist, or name the "
      "folder of the four files with --data",
      folder.string(), name);
}

LabelledImages load(const fs::path& folder, const std::string& part) {
  LabelledImages set =
      load_labelled_images(find(folder, part + "-images-idx3-ubyte"), find(folder, part + "-labels-idx1-ubyte"));
  if (set.images.size(2) != 28 || set.images.size(3) != 28)
    fail<FormatError>("zoo: the images of {} are {}; LeNet-5 takes (N, 1, 28, 28)", part, set.images.describe());
  return set;
}

void train(LeNetOptions o) {
  if (o.signed_seed < 0) fail<ValueError>("zoo: --seed is {}; it must not be negative", o.signed_seed);
  o.seed = static_cast<uint64_t>(o.signed_seed);
  if (!o.out.empty()) fs::create_directories(o.out);
  const LabelledImages images = load(o.data, "train"), test = load(o.data, "t10k");
  manual_seed(o.seed);
  LeNet model;
  const StopSignal stop;
  fmt::print(
      "LeNet-5: {} parameters; {} training and {} test images; {} "
      "epochs of batches of {}, {} thread{}\n",
      count_parameters(model), images.size(), test.size(), o.epochs, o.batch, num_threads(),
      num_threads() == 1 ? "" : "s");
  std::fflush(stdout);
  const std::string file = o.out.empty() ? "" : (fs::path(o.out) / "model.safetensors").string();
  const auto save = [&] {
    if (!file.empty()) write_safetensors(file, state_dict(model));
  };
  o.stop = StopSignal::asked;
  const auto classify = [&](const Tensor& x) { return model(x); };
  double seconds = 0;
  train_classifier(model, classify, images, test, o, [&](const EpochReport& r) {
    seconds += r.seconds;
    fmt::print("epoch {:>3}  loss {:.4f}  test accuracy {:.2f} %  {:.1f} s\n", r.epoch, r.loss, 100 * r.accuracy,
               r.seconds);
    std::fflush(stdout);
    save();  // what comes next may fail
  });
  save();
  fmt::print("test accuracy {:.2f} % after {:.0f} s\n", 100 * accuracy(model, classify, test), seconds);
  if (!file.empty()) fmt::print("{} is written\n", file);
}

}  // namespace

void add_train_lenet(CLI::App& train_command) {
  CLI::App* command = train_command.add_subcommand("lenet", "LeNet-5 on Fashion-MNIST (apt: dataset-fashion-mnist)");
  const auto o = std::make_shared<LeNetOptions>();
  command->add_option("--data", o->data, "folder with MNIST's four files, compressed or not")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--out", o->out, "folder for model.safetensors")->type_name("DIR");
  command->add_option("--epochs", o->epochs, "passes over the training images")->type_name("N")->capture_default_str();
  command->add_option("--batch", o->batch, "images a step")->type_name("N")->capture_default_str();
  command->add_option("--lr", o->lr, "largest learning rate")->type_name("X")->capture_default_str();
  command->add_option("--seed", o->signed_seed, "of weights and batches")->type_name("N")->capture_default_str();
  add_threads_option(*command);
  command->callback([o] { train(*o); });
}

}  // namespace tapestry::programs
