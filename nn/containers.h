// Modules made of modules: Sequential calls layers of any type one after the other, List holds many of one type.
// Not here: modules with members of their own names; write those as structs (linear.h).
// Next: feed_forward.h.
#pragma once

#include <initializer_list>
#include <vector>

#include "module.h"

namespace tapestry {

/// A module that maps one tensor to one.
template <class M>
concept UnaryModule = std::derived_from<M, Module> && requires(const M& m, const Tensor& x) {
  { m(x) } -> std::convertible_to<Tensor>;
};

/// x through layers 0, 1, 2 … in turn; they are its children under these names. Sequential(Linear(2, 8), Tanh(),
/// Linear(8, 1)).
class Sequential : public Layer<Sequential> {
 public:
  Sequential() = default;
  template <UnaryModule... M>
  requires(sizeof...(M) > 1 || (... && !std::same_as<M, Sequential>)) explicit Sequential(M... layers) {
    (push_back(std::move(layers)), ...);
  }
  Sequential(const Sequential& other) : Layer(other) {
    for (const auto& e : other.elements_) elements_.push_back(e->clone());
  }
  Sequential(Sequential&& other) noexcept : Layer(std::move(other)), elements_(std::move(other.elements_)) {}
  Sequential& operator=(Sequential other) noexcept {
    Layer::operator=(other);
    elements_ = std::move(other.elements_);
    return *this;
  }
  ~Sequential() override = default;

  template <UnaryModule M>
  void push_back(M layer) {
    elements_.push_back(std::make_unique<Typed<M>>(std::move(layer)));
  }
  [[nodiscard]] size_t size() const { return elements_.size(); }
  /// Layer i as an M. IndexError for another type or past the end.
  template <UnaryModule M>
  M& at(size_t i) {
    Module* m = i < elements_.size() ? &elements_[i]->module() : nullptr;
    if (auto* typed = dynamic_cast<M*>(m)) return *typed;
    fail<IndexError>("Sequential: layer {} of {} is not of this type", i, elements_.size());
  }

  [[nodiscard]] Tensor forward(Tensor x) const {
    for (const auto& e : elements_) x = e->call(x);
    return x;
  }
  void visit(Visitor& v) override {
    for (size_t i = 0; i < elements_.size(); ++i) v.child(std::to_string(i), elements_[i]->module());
  }

 private:
  struct Element {
    virtual ~Element() = default;
    [[nodiscard]] virtual Tensor call(const Tensor& x) const = 0;
    [[nodiscard]] virtual std::unique_ptr<Element> clone() const = 0;
    virtual Module& module() = 0;
  };
  template <class M>
  struct Typed final : Element {
    explicit Typed(M m) : layer(std::move(m)) {}
    [[nodiscard]] Tensor call(const Tensor& x) const override { return layer(x); }
    [[nodiscard]] std::unique_ptr<Element> clone() const override { return std::make_unique<Typed>(layer); }
    Module& module() override { return layer; }
    M layer;
  };
  std::vector<std::unique_ptr<Element>> elements_;
};

/// Modules of one type, its children 0, 1, 2 …; used by their owner: for (const auto& layer : layers) x = layer(x).
template <std::derived_from<Module> M>
class List : public Module {
 public:
  List() = default;
  /// `n` modules, each made by its own make(i).
  template <class Make>
  List(int64_t n, Make&& make) {
    items_.reserve(static_cast<size_t>(n > 0 ? n : 0));
    for (int64_t i = 0; i < n; ++i) items_.push_back(make(i));
  }

  void push_back(M m) { items_.push_back(std::move(m)); }
  [[nodiscard]] size_t size() const { return items_.size(); }
  M& operator[](size_t i) { return items_[i]; }
  const M& operator[](size_t i) const { return items_[i]; }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }

  void visit(Visitor& v) override {
    for (size_t i = 0; i < items_.size(); ++i) v.child(std::to_string(i), items_[i]);
  }

 private:
  std::vector<M> items_;
};

}  // namespace tapestry
