// Builds nodes from the events of yaml-cpp's parser, or from a recording of them. Its own tree is not used: it takes
// cyclic aliases, needs quadratic time for keys and anchors, and LoadAll() never ends where a document is followed by a
// stray comma.
// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "sim/base/format/yaml.hpp"
#include "sim/base/format/yaml_cache.hpp"
#include "sim/base/limits.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::yaml {
namespace {

// yaml-cpp counts lines and columns from 0.
Where where_of(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? Where{file, 1, 1} : Where{file, mark.line + 1, mark.column + 1};
}

// How much a value holds.
struct Extent {
  std::size_t values = 0; // itself among them
  int depth = 0;          // of lists and mappings within each other; a scalar has none
};

struct Anchored {
  Node node;
  Extent extent;
};

// A value that is not complete yet.
struct Open {
  Node node;
  YAML::anchor_t anchor = YAML::NullAnchor;
  Extent extent{1, 1};
  bool awaits_value = false; // of a mapping: its last entry has a key alone
};

class Builder : public YAML::EventHandler {
public:
  explicit Builder(const std::string& file) : file_(file) {}

  // The document. Throws where a key was no text: only now, as what looks like one is often an open bracket, which the
  // parser blames better.
  Node take() {
    if (bad_key_) {
      throw InputError(*bad_key_, "a key must be plain text");
    }
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    count(mark);
    add({.where = where_of(file_, mark)}, anchor, {1, 0});
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& text) override {
    count(mark);
    add({.kind = Node::Kind::scalar, .text = text, .where = where_of(file_, mark)}, anchor, {1, 0});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      throw InputError(where_of(file_, mark), "an alias within the value that it names; allowed: an earlier value");
    }
    count(mark, found->second.extent.values);
    check_depth(mark, found->second.extent.depth);
    add(Node(found->second.node), YAML::NullAnchor, found->second.extent);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(Node::Kind::sequence, mark, anchor);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(Node::Kind::map, mark, anchor);
  }
  void OnMapEnd() override {
    if (!bad_key_) {
      check_keys(open_.back().node);
    }
    end();
  }

private:
  void count(const YAML::Mark& mark, std::size_t values = 1) { count(where_of(file_, mark), values); }

  void count(const Where& where, std::size_t values) {
    values_ += values;
    if (values_ > limits::kYamlValues) {
      throw InputError(where, "more than " + std::to_string(limits::kYamlValues) + " values; is an alias repeated?");
    }
  }

  void check_depth(const YAML::Mark& mark, int depth) const {
    if (static_cast<int>(open_.size()) + depth > limits::kDepth) {
      throw InputError(where_of(file_, mark), "values lie more than " + std::to_string(limits::kDepth) + " deep");
    }
  }

  void begin(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    count(mark);
    check_depth(mark, 1);
    open_.push_back({.node = {.kind = kind, .where = where_of(file_, mark)}, .anchor = anchor});
  }

  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor, done.extent);
  }

  // A complete value goes where it belongs, and is kept where it has an anchor.
  void add(Node node, YAML::anchor_t anchor, Extent extent) {
    if (anchor != YAML::NullAnchor) {
      count(node.where, extent.values); // the copy takes memory as well
      anchored_[anchor] = {node, extent};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& into = open_.back();
    into.extent = {into.extent.values + extent.values, std::max(into.extent.depth, extent.depth + 1)};
    if (into.node.kind == Node::Kind::sequence) {
      into.node.items.push_back(std::move(node));
    } else if (into.awaits_value) {
      Node::Entry& entry = into.node.entries.back();
      entry.value = std::move(node);
      if (entry.value.kind == Node::Kind::null) {
        entry.value.where = entry.where;
      }
      into.awaits_value = false;
    } else {
      if (node.kind != Node::Kind::scalar && !bad_key_) {
        bad_key_ = node.where;
      }
      Node::Entry& entry = into.node.entries.emplace_back();
      entry.key = std::move(node.text);
      entry.where = std::move(node.where);
      into.awaits_value = true;
    }
  }

  // Sorted, as a mapping of many keys would else take quadratic time.
  static void check_keys(const Node& map) {
    std::vector<std::size_t> order(map.entries.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return map.entries[a].key < map.entries[b].key; });
    std::size_t second = map.entries.size();
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (map.entries[order[i]].key == map.entries[order[i - 1]].key) {
        second = std::min(second, order[i]);
      }
    }
    if (second < map.entries.size()) {
      const Node::Entry& entry = map.entries[second];
      throw InputError(entry.where, "duplicate key '" + entry.key + "'; allowed: each key once");
    }
  }

  const std::string& file_;
  std::optional<Where> bad_key_;
  Node root_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchored_;
  std::size_t values_ = 0;
};

// Whether only blanks and comments are left is yaml-cpp's to say: a second document counts, whatever it is.
class Refuser : public YAML::EventHandler {
public:
  explicit Refuser(const std::string& file) : file_(file) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw InputError(where_of(file_, mark), "several YAML documents; allowed: one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

private:
  const std::string& file_;
};

// yaml-cpp also takes UTF-16, and ends at a NUL as if the file did.
void check_letters(std::string_view text, const std::string& file) {
  check_utf8(text, file);
  int line = 1, column = 1;
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) < ' ' && letter != '\n' && letter != '\r' && letter != '\t') {
      throw InputError({file, line, column}, "a control character; allowed: text, in quotes as \"\\x1b\"");
    }
    line += letter == '\n' ? 1 : 0;
    column = letter == '\n' ? 1 : column + 1;
  }
}

// The parser quotes a single byte of what it does not understand, which may be half a letter.
std::string without_half_letter(const std::string& message) {
  const std::optional<std::size_t> half = first_bad_byte(message);
  return half ? message.substr(0, message.find_last_not_of(": ", *half - 1) + 1) : message;
}

} // namespace

void read_events(std::string_view text, const std::string& file, YAML::EventHandler& to) {
  check_letters(text, file);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(to)) {
      throw InputError({file, 1, 1}, "the file is empty; allowed: one YAML document");
    }
    Refuser refuser(file);
    parser.HandleNextDocument(refuser);
  } catch (const YAML::Exception& failure) {
    const char* form = file.ends_with(".json") ? "not valid JSON: " : "not valid YAML: ";
    throw InputError(where_of(file, failure.mark), form + without_half_letter(failure.msg));
  }
}

Node parse(std::string_view text, const std::string& file) {
  Builder builder(file);
  if (const std::optional<std::string> recording = find_recording(text)) {
    replay_events(*recording, builder);
  } else {
    read_events(text, file, builder);
  }
  return builder.take();
}

} // namespace stagecraft::yaml
