// Whether the calling thread records the ops it runs.
// Next: node.h.
#pragma once

namespace tapestry {

namespace detail {
inline thread_local bool grad_mode = true;
}

/// True where ops on tensors that require a gradient are recorded (the default).
inline bool grad_enabled() { return detail::grad_mode; }

/// Sets recording for its lifetime.
class GradMode {
 public:
  explicit GradMode(bool enabled) : outer_(detail::grad_mode) { detail::grad_mode = enabled; }
  ~GradMode() { detail::grad_mode = outer_; }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool outer_;
};

struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};
struct EnableGrad : GradMode {
  EnableGrad() : GradMode(true) {}
};

}  // namespace tapestry
