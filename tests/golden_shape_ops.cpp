// Golden ops that reduce, multiply, index or rearrange.
// Next: golden_layer_ops.cpp.
#include <array>
#include <limits>

#include "golden_ops.h"

namespace tapestry::golden {
namespace {

constexpr auto end = std::nullopt;

template <Tensor (*f)(const Tensor&, const Dims&, bool)>
Tensor reduce(const Args& a) {
  return f(a["x"], a.dims("dim"), a.flag("keepdim"));
}

Outputs max_with_index(const Args& a) {
  const auto [values, indices] = max(a["x"], a.integer("dim", 0), a.flag("keepdim"));
  return {{"values", values}, {"indices", indices}};
}

Tensor vector_norm(const Args& a) {
  const std::string p = a.text("p", "2");
  return tapestry::vector_norm(a["x"], std::stod(p), a.dims("dim"));
}

Outputs cummax_with_index(const Args& a) {
  const auto [values, indices] = cummax(a["x"], a.integer("dim", 0));
  return {{"values", values}, {"indices", indices}};
}

constexpr Op rows[] = {
    {"sum", reduce<sum>},
    {"mean", reduce<mean>},
    {"amax", reduce<amax>},
    {"amin", reduce<amin>},
    {"logsumexp", reduce<logsumexp>},
    {"var", [](const Args& a) { return var(a["x"], a.dims("dim"), a.flag("keepdim")); }},
    {"prod", reduce<prod>},
    {"max_dim", max_with_index},
    {"max_all", [](const Args& a) { return max(a["x"]); }},
    {"min_all", [](const Args& a) { return min(a["x"]); }},
    {"vector_norm", vector_norm},
    {"sum_squares", [](const Args& a) { return sum(square(a["x"])); }},
    {"ops/double_backward:amax", [](const Args& a) { return square(amax(a["x"], {-1})); }},
    {"ops/double_backward:var", [](const Args& a) { return var(a["x"], {-1}); }},
    {"ops/double_backward:prod", [](const Args& a) { return prod(a["x"], {-1}); }},
    {"sum_mean",  // the last two of x, infinities, are left out
     [](const Args& a) {
       const Tensor x = slice(a["x"], 0, 0, 3);
       return Outputs{{"sum", sum(x)}, {"mean", mean(x)}};
     }},
    {"mean_max",
     [](const Args& a) {
       const Tensor& x = a["x"];
       return Outputs{
           {"mean0", mean(x, {0})}, {"mean1", mean(x, {1})}, {"amax0", amax(x, {0})}, {"amax1", amax(x, {1})}};
     }},
    {"all_any",
     [](const Args& a) {
       return Outputs{{"all", all(a["m"], a.dims("dim"))}, {"any", any(a["m"], a.dims("dim"))}};
     }},
    {"argmax",
     [](const Args& a) {
       return Outputs{{"argmax", argmax(a["x"], a.integer("dim", 0))}, {"argmin", argmin(a["x"], a.integer("dim", 0))}};
     }},
    {"logaddexp", [](const Args& a) { return logaddexp(a["a"], a["b"]); }},
    {"count_nonzero", [](const Args& a) { return count_nonzero(a["x"], {0}); }},
    {"cumsum", [](const Args& a) { return cumsum(a["x"], a.integer("dim", 0)); }},
    {"cumprod", [](const Args& a) { return cumprod(a["x"], a.integer("dim", 0)); }},
    {"cummax", cummax_with_index},
    {"cumsum_sq", [](const Args& a) { return square(cumsum(a["x"], -1)); }},
    {"flip",
     [](const Args& a) {
       return flip(a["x"], {0, -1});
     }},
    {"roll", [](const Args& a) { return roll(a["x"], {a.integer("shift", 0)}, {a.integer("dim", 0)}); }},
    {"diff", [](const Args& a) { return diff(a["x"]); }},

    {"matmul", [](const Args& a) { return matmul(a["a"], a["b"]); }},
    {"bmm", [](const Args& a) { return matmul(a["a"], a["b"]); }},
    {"bmm_broadcast", [](const Args& a) { return matmul(a["a"], a["b"]); }},
    {"outer", [](const Args& a) { return outer(a["a"], a["b"]); }},
    {"addmm",
     [](const Args& a) { return a.number("beta", 1) * a["c"] + a.number("alpha", 1) * matmul(a["a"], a["b"]); }},
    {"matmul_view: a^T b", [](const Args& a) { return matmul(mT(a["a"]), a["b"]); }},
    {"matmul_view: a b^T", [](const Args& a) { return matmul(a["a"], mT(a["b"])); }},
    {"matmul_view: a^T b^T", [](const Args& a) { return matmul(mT(a["a"]), mT(a["b"])); }},
    {"matmul_view: a[:, ::2] @ b[1:, 1:]",
     [](const Args& a) { return matmul(slice(a["a"], 1, end, end, 2), slice(slice(a["b"], 0, 1, end), 1, 1, end)); }},
    {"matmul_view: a.flip(0) @ b.flip(1)",
     [](const Args& a) { return matmul(slice(a["a"], 0, end, end, -1), slice(a["b"], 1, end, end, -1)); }},
    {"matmul_view: a.expand(3,4) @ b",
     [](const Args& a) {
       return matmul(expand(a["a"], {3, 4}), a["b"]);
     }},
    {"matmul_view: a @ b.expand(4,3)",
     [](const Args& a) {
       return matmul(a["a"], expand(a["b"], {4, 3}));
     }},
    {"matmul_view: a.permute(1,2,0) @ b.permute(2,0,1)",
     [](const Args& a) {
       return matmul(permute(a["a"], {1, 2, 0}), permute(a["b"], {2, 0, 1}));
     }},
    {"matmul_self: a a^T", [](const Args& a) { return matmul(a["a"], mT(a["a"])); }},

    {"gather", [](const Args& a) { return gather(a["x"], a.integer("dim", 0), a["i"]); }},
    {"take_along", [](const Args& a) { return take_along_dim(a["x"], a["i"], a.integer("dim", 0)); }},
    {"scatter", [](const Args& a) { return scatter(a["x"], a.integer("dim", 0), a["i"], a["s"]); }},
    {"embedding_padding", [](const Args& a) { return embedding(a["w"], a["i"], a.integer("padding_idx", 0)); }},
    {"scatter_add", [](const Args& a) { return scatter_add(a["x"], a.integer("dim", 0), a["i"], a["s"]); }},
    {"index_select", [](const Args& a) { return index_select(a["x"], a.integer("dim", 0), a["i"]); }},
    {"index_add", [](const Args& a) { return index_add(a["x"], a.integer("dim", 0), a["i"], a["s"]); }},
    {"one_hot", [](const Args& a) { return one_hot(a["i"], a.integer("classes", 0)); }},
    {"embedding", [](const Args& a) { return embedding(a["weight"], a["ids"]); }},
    {"gather_scatter",
     [](const Args& a) {
       const int64_t dim = a.integer("dim", 0);
       return sum(gather(a["x"], dim, a["i"]), {dim}) +
              sum(scatter_add(zeros_like(a["x"]), dim, a["i"], a["u"]), {dim});
     }},
    {"index: x[i]", [](const Args& a) { return index(a["x"], {a["i"]}); }},
    {"index: x[:, i]  (i is 2-D)",
     [](const Args& a) {
       return index(a["x"], {all_of_dim(), a["i"]});
     }},
    {"index: x[i, j]",
     [](const Args& a) {
       return index(a["x"], {a["i"], a["j"]});
     }},
    {"index: x[i[:,None], j]  (broadcast)",
     [](const Args& a) {
       return index(a["x"], {unsqueeze(a["i"], 1), a["j"]});
     }},
    {"index: x[i, :, j]  (the index axis comes first)",
     [](const Args& a) {
       return index(a["x"], {a["i"], all_of_dim(), a["j"]});
     }},
    {"index: x[mask]", [](const Args& a) { return index(a["x"], {a["m"]}); }},
    {"index: x[-1]", [](const Args& a) { return index(a["x"], {-1}); }},
    {"index: x[i], negative indices count from the end", [](const Args& a) { return index(a["x"], {a["i"]}); }},
    {"slice: x[1:, ::2]", [](const Args& a) { return slice(slice(a["x"], 0, 1, end), 1, end, end, 2); }},
    {"slice: x[..., None, 1:3]", [](const Args& a) { return slice(unsqueeze(a["x"], -2), -1, 1, 3); }},

    {"view: x.t()", [](const Args& a) { return transpose(a["x"], 0, 1); }},
    {"view: x.permute(2,0,1)",
     [](const Args& a) {
       return permute(a["x"], {2, 0, 1});
     }},
    {"view: x.reshape(-1)", [](const Args& a) { return reshape(a["x"], {-1}); }},
    {"view: x.expand(3,2,4)",
     [](const Args& a) {
       return expand(a["x"], {3, 2, 4});
     }},
    {"view: x.squeeze()", [](const Args& a) { return squeeze(a["x"]); }},
    {"view: x.flatten(1)", [](const Args& a) { return flatten(a["x"], 1); }},
    {"view: x.diag()", [](const Args& a) { return diag_embed(a["x"]); }},
    {"view: x.repeat_interleave(2,0)", [](const Args& a) { return repeat_interleave(a["x"], 2, 0); }},
    {"view: x[::2].t().contiguous().view(-1)",
     [](const Args& a) { return view(contiguous(mT(slice(a["x"], 0, end, end, 2))), {-1}); }},
    {"view: x.split([1,3],0)[1]",
     [](const Args& a) {
       return split(a["x"], {1, 3}, 0)[1];
     }},
    {"view: x.sum().expand(2,2)",
     [](const Args& a) {
       return expand(sum(a["x"]), {2, 2});
     }},
    {"view: x.narrow(1,1,2)", [](const Args& a) { return slice(a["x"], 1, 1, 3); }},
    {"view: x.view(2,2,3).transpose(1,2).reshape(2,6)",
     [](const Args& a) {
       return reshape(transpose(view(a["x"], {2, 2, 3}), 1, 2), {2, 6});
     }},
    {"view: x.broadcast_to(2,3,2)",
     [](const Args& a) {
       return expand(a["x"], {2, 3, 2});
     }},
    {"cat",
     [](const Args& a) {
       const int64_t dim = a.integer("dim", 0);
       return a.has("c") ? cat({a["a"], a["b"], a["c"]}, dim) : cat({a["a"], 2.0 * a["a"], a["a"]}, dim);
     }},
    {"stack",
     [](const Args& a) {
       return stack({a["a"], a["b"]}, a.integer("dim", 0));
     }},
    {"transpose_contiguous",
     [](const Args& a) {
       return contiguous(permute(a["x"], {2, 0, 1}));
     }},
    {"tril",
     [](const Args& a) {
       const Tensor& x = a["x"];
       return Outputs{{"tril", tril(x)}, {"tril1", tril(x, 1)}, {"triu", triu(x)}, {"triu-1", triu(x, -1)}};
     }},
};

}  // namespace

std::span<const Op> shape_ops() { return rows; }

}  // namespace tapestry::golden
