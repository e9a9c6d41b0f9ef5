// Numbers of nodes, the count of live ones, and letting go of what they saved. Next: context.h.
#include "node.h"

#include <atomic>

#include "scope.h"

namespace tapestry {
namespace {

std::atomic<uint64_t> next_seq{1};
std::atomic<int64_t> live_count{0};

}  // namespace

Node::Node(bool leaf) : seq(next_seq.fetch_add(1, std::memory_order_relaxed)), path(current_scope()), leaf_(leaf) {
  live_count.fetch_add(1, std::memory_order_relaxed);
}

Node::~Node() { live_count.fetch_sub(1, std::memory_order_relaxed); }

int64_t Node::live() { return live_count.load(std::memory_order_relaxed); }

void Node::release() {
  saved.clear();
  released = true;
}

NodeExtras& Node::make_extras() {
  if (!extras) {
    extras = std::make_unique<NodeExtras>();
    extras->hooks.resize(outputs.size());
    extras->retained.resize(outputs.size());
    extras->retains.resize(outputs.size());
  }
  return *extras;
}

void Node::dispose(Node* node) {
  // A node freed while another is being freed waits in the list, so the depth of the stack does not grow with the graph.
  thread_local std::vector<Node*>* waiting = nullptr;
  if (waiting != nullptr) {
    waiting->push_back(node);
    return;
  }
  std::vector<Node*> list;
  waiting = &list;
  delete node;
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    delete next;
  }
  waiting = nullptr;
}

}  // namespace tapestry
