// Looking inside a model: the outputs of chosen modules during its calls, by path.
// Not a change of the model: hooks that replace values are Module::register_forward_hook's own (module.h).
// Next: capture.cpp.
#pragma once

#include <mutex>
#include <string_view>
#include <vector>

#include "module.h"

namespace tapestry {

struct CaptureOptions {
  bool attached =
      false;  ///< keep the edge, so that gradients and retain_grad() reach the activation (and the graph lives as long)
};

/// The output of one call of one module.
struct CapturedOutput {
  std::string path;
  Tensor value;  ///< shares the output's memory
};

/// Listens while it lives. Movable.
class Capture {
 public:
  /// In the order in which the calls ended, over all calls since the last clear().
  [[nodiscard]] std::vector<CapturedOutput> activations() const;
  /// The latest output of the module at `path`; ValueError if there is none.
  [[nodiscard]] Tensor operator[](std::string_view path) const;
  void clear();

 private:
  friend Capture capture(const Module& model, std::string_view pattern, CaptureOptions options);
  struct Heard {
    std::mutex mutex;  // calls may come from several threads
    std::vector<CapturedOutput> activations;
  };
  std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
  std::vector<HookHandle> hooks_;
};

/// Hears every module below `model` whose path fits `pattern` (../autograd/pattern.h; "" is the model itself).
///
///     const Capture heard = capture(model, "layers.*.attention");
///     model(tokens);
///     heard["layers.3.attention"]   // (B, T, D)
///
/// Only calls that return a single tensor are heard, after the module's earlier hooks; the hooks belong to these module objects: copies and moved modules
/// are without. ValueError, naming the nearest paths, if no module fits.
[[nodiscard]] Capture capture(const Module& model, std::string_view pattern, CaptureOptions options = {});

}  // namespace tapestry
