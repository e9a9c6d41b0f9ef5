// The loop over epochs and batches.
// Next: ../programs/zoo.cpp.
#include "classify.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../autograd/random.h"
#include "../../nn/visitor.h"
#include "../../ops/ops.h"
#include "../../optim/adamw.h"
#include "../../optim/optimizer.h"
#include "../../optim/schedule.h"
#include "stopwatch.h"

namespace tapestry {
namespace {

void check(const ClassifyOptions& o, const LabelledImages& train) {
  if (o.epochs < 0 || o.batch < 1)
    fail<ValueError>("train_classifier: {} epochs of batches of {}; epochs must be 0 or more, a batch 1 or more",
                     o.epochs, o.batch);
  if (train.size() == 0) fail<ValueError>("train_classifier: there are no images to train on");
}

}  // namespace

double accuracy(Module& model, const ClassifierFn& classify, const LabelledImages& set) {
  const NoGrad no_grad;
  const bool training = model.is_training();
  model.eval();
  constexpr int64_t rows = 500;
  double right = 0;
  for (int64_t first = 0; first < set.size(); first += rows) {
    const Tensor logits = classify(slice(set.images, 0, first, first + rows));
    right += sum(to(argmax(logits, -1) == slice(set.labels, 0, first, first + rows), DType::f64)).item();
  }
  model.train(training);
  return set.size() == 0 ? 0 : right / static_cast<double>(set.size());
}

void train_classifier(Module& model, const ClassifierFn& classify, const LabelledImages& train,
                      const LabelledImages& test, const ClassifyOptions& options,
                      const std::function<void(const EpochReport&)>& report) {
  check(options, train);
  Optimizer<AdamW> optimizer(named_parameters(model),
                             decay_matrices_only<AdamW>({.lr = options.lr, .weight_decay = options.weight_decay}));
  const int64_t batches = (train.size() + options.batch - 1) / options.batch;
  const Schedule schedule = CosineWithWarmup{.lr_max = options.lr, .total_steps = batches * options.epochs};
  manual_seed(options.seed);
  model.train();
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    EpochReport done{.epoch = epoch + 1};
    Stopwatch time(done.seconds);
    const std::vector<int64_t> order = shuffled(train.size(), options.seed, static_cast<uint64_t>(epoch));
    for (int64_t b = 0; b < batches; ++b) {
      if (options.stop && options.stop()) return;
      set_random_step(static_cast<uint64_t>(epoch * batches + b) + 1);
      const auto first = order.begin() + b * options.batch;
      const auto last = b + 1 == batches ? order.end() : first + options.batch;
      const LabelledImages batch = pick(train, {first, last});
      const Tensor loss = cross_entropy(classify(batch.images), batch.labels);
      if (!std::isfinite(loss.item()))
        fail<ValueError>("train_classifier: the loss of batch {} of epoch {} is {}; lower lr ({})", b, epoch + 1,
                         loss.item(), options.lr);
      loss.backward();
      optimizer.set_lr(schedule(epoch * batches + b));
      optimizer.step();
      optimizer.zero_grad();
      done.loss += loss.item() * static_cast<double>(batch.size()) / static_cast<double>(train.size());
    }
    done.accuracy = accuracy(model, classify, test);
    time.stop();
    report(done);
  }
}

}  // namespace tapestry
