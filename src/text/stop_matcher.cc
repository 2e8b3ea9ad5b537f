#include "text/stop_matcher.h"

#include <map>
#include <utility>

namespace tercet::text {

// Node 0 is the root; `depth` is the length of the prefix that a node stands for, so what must be held back
// there.
struct StopMatcher::Automaton {
  struct Node {
    std::map<char, size_t> children;
    size_t depth = 0;
    size_t fallback = 0;  // the longest proper suffix that is a prefix of some stop string
    int stop = -1;        // the stop string that ends here: the longest of them
    size_t stop_length = 0;
  };
  std::vector<Node> nodes = std::vector<Node>(1);

  explicit Automaton(const std::vector<std::string>& stop_strings) {
    for (size_t i = 0; i < stop_strings.size(); ++i) {
      if (!stop_strings[i].empty()) add(stop_strings[i], static_cast<int>(i));
    }
    link();
  }

  void add(const std::string& stop, int index) {
    size_t node = 0;
    for (const char c : stop) {
      const auto [at, is_new] = nodes[node].children.try_emplace(c, nodes.size());
      const size_t child = at->second;
      if (is_new) {
        const size_t depth = nodes[node].depth + 1;
        nodes.emplace_back().depth = depth;
      }
      node = child;
    }
    if (nodes[node].stop < 0) nodes[node].stop = index, nodes[node].stop_length = stop.size();
  }

  void link() {
    std::vector<size_t> queue = {0};
    for (size_t next = 0; next < queue.size(); ++next) {
      const size_t node = queue[next];
      for (const auto& [c, child] : nodes[node].children) {
        nodes[child].fallback = node == 0 ? 0 : step(nodes[node].fallback, c);
        const Node& fallback = nodes[nodes[child].fallback];
        if (nodes[child].stop < 0)
          nodes[child].stop = fallback.stop, nodes[child].stop_length = fallback.stop_length;
        queue.push_back(child);
      }
    }
  }

  size_t step(size_t node, char c) const {
    while (true) {
      const auto at = nodes[node].children.find(c);
      if (at != nodes[node].children.end()) return at->second;
      if (node == 0) return 0;
      node = nodes[node].fallback;
    }
  }
};

StopMatcher::StopMatcher(const std::vector<std::string>& stop_strings) {
  auto automaton = std::make_shared<Automaton>(stop_strings);
  if (automaton->nodes.size() > 1) automaton_ = std::move(automaton);
}

StopMatcher::Result StopMatcher::push(std::string_view text) {
  if (matched_) return {{}, matched_};
  if (automaton_ == nullptr) return {std::string(text), {}};
  for (size_t i = 0; i < text.size(); ++i) {
    pending_ += text[i];
    node_ = automaton_->step(node_, text[i]);
    const Automaton::Node& node = automaton_->nodes[node_];
    if (node.stop < 0) continue;
    matched_ = node.stop;
    std::string safe = pending_.substr(0, pending_.size() - node.stop_length);
    pending_.clear();
    return {std::move(safe), matched_};
  }
  const size_t safe = pending_.size() - automaton_->nodes[node_].depth;
  Result result{pending_.substr(0, safe), {}};
  pending_.erase(0, safe);
  return result;
}

std::string StopMatcher::flush() {
  node_ = 0;
  return std::exchange(pending_, {});
}

}  // namespace tercet::text
