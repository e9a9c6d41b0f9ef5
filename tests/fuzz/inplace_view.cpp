// The table of views.
// Next: inplace_reference.cpp.
#include "inplace_view.h"

#include <algorithm>

#include "../../ops/ops.h"

namespace tapestry::fuzz {
namespace {

using Kind = InplaceStep::Kind;

/// Any two dims of elements of x, which may lie on one another.
std::optional<View> strided(const slow::Array& x, const std::string& name, uint32_t numbers) {
  const Shape to{1 + numbers % 3, 1 + numbers / 4 % 3};
  const int64_t rows = numbers / 16 % 4, columns = numbers / 64 % 3, offset = numbers / 256 % 3;
  if (x.overlaps_itself()) return {};
  const auto source = sources(to, [&](const Dims& i) {
    const size_t place = x.places[0] + static_cast<size_t>(offset + i[0] * rows + i[1] * columns);
    return std::find(x.places.begin(), x.places.end(), place) - x.places.begin();
  });
  if (std::find(source.begin(), source.end(), x.places.size()) != source.end()) return {};
  return View{fmt::format("as_strided({}, {}, {{{}, {}}}, {})", name, shape_text(to), rows, columns, offset), to,
              [=](const Tensor& t) {
                return as_strided(t, to, {rows, columns}, offset);
              },
              source};
}

}  // namespace

std::string shape_text(const Shape& shape) {
  std::string text = to_string(shape);
  text.front() = '{';
  text.back() = '}';
  return "Shape" + text;
}

std::optional<View> choose_view(const InplaceStep& step, const slow::Array& x, const std::string& name) {
  const Shape& from = x.shape;
  const int rank = from.rank();
  if (rank == 0 && step.kind != Kind::expand && step.kind != Kind::reshape) return {};
  const int d = rank == 0 ? 0 : static_cast<int>(step.c % static_cast<uint32_t>(rank));
  const uint32_t more = step.c / 8;
  Shape to = from;
  switch (step.kind) {
    case Kind::slice: {
      const int64_t n = from[d], jump = more % 4 == 3 ? -1 : 1 + more % 2, start = more / 4 % n;
      to[d] = jump > 0 ? (n - start + jump - 1) / jump : start + 1;
      return View{fmt::format("slice({}, {}, {}, {{}}, {})", name, d, start, jump), to,
                  [=](const Tensor& t) { return slice(t, d, start, {}, jump); }, sources(to, [&](Dims i) {
                    i[d] = start + i[d] * jump;
                    return row_major(from, i);
                  })};
    }
    case Kind::select: {
      const int64_t at = more % from[d];
      to.erase(d);
      return View{fmt::format("select({}, {}, {})", name, d, at), to, [=](const Tensor& t) { return select(t, d, at); },
                  sources(to, [&](Dims i) {
                    i.insert(d, at);
                    return row_major(from, i);
                  })};
    }
    case Kind::transpose: {
      std::swap(to[0], to[d]);
      return View{fmt::format("transpose({}, 0, {})", name, d), to, [=](const Tensor& t) { return transpose(t, 0, d); },
                  sources(to, [&](Dims i) {
                    std::swap(i[0], i[d]);
                    return row_major(from, i);
                  })};
    }
    case Kind::reshape: {
      const int64_t n = numel(from), rows = more % 3 == 0 ? n : n % 2 == 0 ? 2 : 1;
      to = more % 3 == 1 ? Shape{n} : Shape{rows, n / rows};
      return View{fmt::format("reshape({}, {})", name, shape_text(to)), to,
                  [=](const Tensor& t) { return reshape(t, to); }, row_major_places(to)};
    }
    case Kind::expand: {
      if (numel(from) > 40 || rank > 3) return {};
      to.insert(0, 2);
      if (rank > 0 && from[d] == 1) to[d + 1] = 3;
      return View{fmt::format("expand({}, {})", name, shape_text(to)), to,
                  [=](const Tensor& t) { return expand(t, to); }, sources(to, [&](Dims i) {
                    i.erase(0);
                    for (int k = 0; k < rank; ++k) i[k] = from[k] == 1 ? 0 : i[k];
                    return row_major(from, i);
                  })};
    }
    default:
      return strided(x, name, more);
  }
}

}  // namespace tapestry::fuzz
