// The interpreter: copies of numbers, versions counted by hand, gradients by the definitions.
// Next: inplace.cpp.
#include "inplace_reference.h"

#include <algorithm>
#include <numeric>

namespace tapestry::fuzz::slow {

Flat Array::values() const {
  Flat list;
  for (const size_t place : places) list.push_back(cells->values[place]);
  return list;
}

bool Array::overlaps_itself() const {
  auto sorted = places;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

Array Machine::fresh(Flat values, const Shape& shape) {
  Array y{std::make_shared<Cells>(), shape, std::vector<size_t>(values.size())};
  std::iota(y.places.begin(), y.places.end(), size_t{0});
  y.cells->values = std::move(values);
  return y;
}

Array Machine::leaf(Flat values, const Shape& shape, bool requires_grad) {
  Array x = fresh(std::move(values), shape);
  if (requires_grad)
    x.history = std::make_shared<History>(History{.number = next_++, .count = x.places.size(), .leaf = true});
  return x;
}

/// Gives y a history where recording is on and an input has one.
void Machine::record(Array& y, std::vector<History::Input> inputs, const std::vector<const Array*>& read) {
  const bool any = std::any_of(read.begin(), read.end(), [](const Array* x) { return x->history != nullptr; });
  if (!recording || !any) return;
  for (size_t i = 0; i < read.size(); ++i) {
    const Array& x = *read[i];
    if (x.history && !x.history->leaf && x.cells->version != x.recorded) throw StaleInput("a stale input");
  }
  std::erase_if(inputs, [](const History::Input& input) { return input.from == nullptr; });
  y.history = std::make_shared<History>(
      History{.number = next_++, .count = y.places.size(), .leaf = false, .inputs = std::move(inputs)});
  y.recorded = y.cells->version;
}

Array Machine::map(const Array& x, double (*f)(double), double (*df)(double, double), Saves saves) {
  const Flat xs = x.values();
  Flat ys;
  for (const double v : xs) ys.push_back(f(v));
  Array y = fresh(ys, x.shape);
  const auto vjp = [xs, ys, df](const Flat& g) {
    Flat d;
    for (size_t i = 0; i < g.size(); ++i) d.push_back(g[i] * df(xs[i], ys[i]));
    return d;
  };
  record(y, {{x.history, vjp}}, {&x});
  if (y.history && saves != Saves::nothing) {
    const Array& kept = saves == Saves::inputs ? x : y;
    y.history->saved.emplace_back(kept.cells, kept.cells->version);
  }
  return y;
}

Array Machine::zip(const Array& a, const Array& b, double (*f)(double, double), double (*da)(double, double),
                   double (*db)(double, double), Saves saves) {
  const Flat as = a.values(), bs = b.values();
  Flat ys;
  for (size_t i = 0; i < as.size(); ++i) ys.push_back(f(as[i], bs[i]));
  Array y = fresh(ys, a.shape);
  const auto vjp = [as, bs](double (*d)(double, double)) {
    return [as, bs, d](const Flat& g) {
      Flat result;
      for (size_t i = 0; i < g.size(); ++i) result.push_back(g[i] * d(as[i], bs[i]));
      return result;
    };
  };
  record(y, {{a.history, vjp(da)}, {b.history, vjp(db)}}, {&a, &b});
  if (y.history && saves == Saves::inputs)
    for (const Array* x : {&a, &b}) y.history->saved.emplace_back(x->cells, x->cells->version);
  return y;
}

Array Machine::total(const Array& x) {
  const Flat xs = x.values();
  Array y = fresh({std::accumulate(xs.begin(), xs.end(), 0.0)}, {});
  const size_t n = xs.size();
  record(y, {{x.history, [n](const Flat& g) { return Flat(n, g[0]); }}}, {&x});
  return y;
}

Array Machine::view(const Array& x, const Shape& shape, const std::vector<size_t>& source, bool copied) {
  Array y{x.cells, shape, {}};
  for (const size_t i : source) y.places.push_back(x.places[i]);
  if (copied) y = fresh(y.values(), shape);
  const size_t n = x.places.size();
  const auto vjp = [n, source](const Flat& g) {
    Flat d(n);
    for (size_t i = 0; i < g.size(); ++i) d[source[i]] += g[i];
    return d;
  };
  record(y, {{x.history, vjp}}, {&x});
  return y;
}

Array Machine::detached(const Array& x, bool requires_grad, Machine& machine) {
  Array y{x.cells, x.shape, x.places};
  if (requires_grad)
    y.history = std::make_shared<History>(History{.number = machine.next_++, .count = y.places.size(), .leaf = true});
  return y;
}

void Machine::write(const Array& to, const Flat& values) {
  if (recording && to.history) throw WriteRefused("a write to a recorded tensor");
  for (size_t i = 0; i < values.size(); ++i) to.cells->values[to.places[i]] = values[i];
  ++to.cells->version;
}

std::map<const History*, Flat> Machine::gradients(const Array& y) {
  std::map<uint64_t, std::pair<const History*, Flat>> waiting;
  std::map<const History*, Flat> leaves;
  waiting[y.history->number] = {y.history.get(), Flat(y.history->count, 1.0)};
  while (!waiting.empty()) {
    const auto last = std::prev(waiting.end());
    const auto [node, g] = last->second;
    waiting.erase(last);
    if (node->leaf) {
      leaves[node] = g;
      continue;
    }
    for (const auto& [cells, version] : node->saved)
      if (cells->version != version) throw Overwritten("a saved value was overwritten");
    for (const History::Input& input : node->inputs) {
      const Flat d = input.vjp(g);
      auto& [at, sum] = waiting[input.from->number];
      at = input.from.get();
      sum.resize(d.size());
      for (size_t i = 0; i < d.size(); ++i) sum[i] += d[i];
    }
  }
  return leaves;
}

}  // namespace tapestry::fuzz::slow
