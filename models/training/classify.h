// Training a classifier of images: epochs of shuffled batches, and the share of right answers.
// Not here: language models (trainer.h).
// Next: ../programs/zoo.cpp.
#pragma once

#include <functional>

#include "../../nn/module.h"
#include "../vision/labelled_images.h"

namespace tapestry {

/// Images (B, 1, H, W) to logits (B, classes).
using ClassifierFn = std::function<Tensor(const Tensor& images)>;

struct ClassifyOptions {
  int64_t epochs = 12;
  int64_t batch = 64;
  double lr = 2e-3;  ///< AdamW's largest; half a cosine down to 0
  double weight_decay = 0.01;
  uint64_t seed = 1;
  std::function<bool()> stop = {};  ///< asked before every batch: true ends the training there, without a report
};

struct EpochReport {
  int64_t epoch = 0;    ///< from 1
  double loss = 0;      ///< mean over the epoch's images, in nats
  double accuracy = 0;  ///< on the test images, after the epoch
  double seconds = 0;   ///< of the whole epoch
};

/// Trains the model, which `classify` calls; reports each epoch. Every epoch depends on (seed, epoch) alone. ValueError for options outside their domain.
void train_classifier(Module& model, const ClassifierFn& classify, const LabelledImages& train,
                      const LabelledImages& test, const ClassifyOptions& options,
                      const std::function<void(const EpochReport&)>& report);

/// The share of images whose largest logit is their label's.
double accuracy(Module& model, const ClassifierFn& classify, const LabelledImages& set);

}  // namespace tapestry
