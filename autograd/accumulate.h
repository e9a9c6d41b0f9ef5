// Adding gradients: the one op the core owns, because the chain rule needs no other.
// Next: hooks.h.
#pragma once

#include "node.h"

namespace tapestry {

/// a + b of one shape and dtype, recorded where recording is on.
Tensor add_grads(const Tensor& a, const Tensor& b);
/// sum += g; in place where `sum` has one owner and nothing records, so that no copy is made.
void accumulate(Tensor& sum, Tensor g);
/// leaf.grad += g under the leaf's lock. A first g is taken over if nobody else holds it and it is contiguous, else copied.
void accumulate_leaf(Leaf& leaf, Tensor g);

}  // namespace tapestry
