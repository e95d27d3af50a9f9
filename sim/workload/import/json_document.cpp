// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/import/json_document.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

#include "sim/base/named_table.hpp"

namespace stagecraft::json {
namespace {

constexpr int kDeepest = 100;

// Line and column of a byte; nlohmann counts bytes from 1.
Where place_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const std::size_t line_start = before.rfind('\n') + 1; // npos + 1 is 0
  return {file, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(before.size() - line_start) + 1};
}

// The reason in nlohmann's message, without its prefix: "[json.exception.parse_error.101] parse error at line 1, column
// 2: syntax error while …" gives "syntax error while …".
std::string reason_of(const nlohmann::json::exception& failure) {
  const std::string text = failure.what();
  for (const std::string_view front : {": ", "] "}) {
    if (const std::size_t at = text.find(front); at != std::string::npos) {
      return text.substr(at + front.size());
    }
  }
  return text;
}

// Refuses what the parser would accept: duplicate keys and values nested too deep.
class Strict {
public:
  explicit Strict(const std::string& file) : file_(file) {}

  bool operator()(int depth, Value::parse_event_t event, Value& value) {
    if (depth > kDeepest) {
      throw InputError({file_, 0, 0}, "values are nested more than " + std::to_string(kDeepest) + " deep");
    }
    if (event == Value::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == Value::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == Value::parse_event_t::key && !keys_.back().insert(value.get<std::string>()).second) {
      throw InputError({file_, 0, 0},
                       "duplicate key '" + value.get<std::string>().substr(0, 60) + "' in one object; allowed: once");
    }
    return true;
  }

private:
  const std::string& file_;
  std::vector<std::set<std::string>> keys_; ///< keys of each object that is still open
};

} // namespace

Value parse(std::string_view text, const std::string& file) {
  try {
    Strict strict(file);
    return Value::parse(
        text, [&](int depth, Value::parse_event_t event, Value& value) { return strict(depth, event, value); });
  } catch (const nlohmann::json::parse_error& failure) {
    throw InputError(place_of(text, failure.byte, file), reason_of(failure) + "; allowed: JSON");
  } catch (const nlohmann::json::exception& failure) {
    throw InputError({file, 0, 0}, reason_of(failure));
  }
}

Object::Object(const Value& value, const std::string& file, std::string path)
    : value_(value), file_(file), path_(std::move(path)) {
  if (!value.is_object()) {
    throw error("", std::string("is no object but ") + value.type_name());
  }
}

InputError Object::error(const std::string& key, const std::string& what) const {
  const std::string at = key.empty() ? path_ : path(key);
  return {{file_, 0, 0}, (at.empty() ? "the document:" : at + ":") + " " + what};
}

std::string Object::path(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

bool Object::has(const std::string& key) {
  known_.insert(key);
  return value_.contains(key);
}

const Value* Object::find(const std::string& key) { return has(key) ? &value_.at(key) : nullptr; }

const Value& Object::value(const std::string& key) {
  const Value* found = find(key);
  if (found == nullptr) {
    throw error("", "missing key '" + key + "'");
  }
  return *found;
}

double Object::amount(const std::string& key) {
  const Value& found = value(key);
  if (!found.is_number() || !(found.get<double>() >= 0)) {
    throw error(key, "must be a number of 0 or more, got " + found.dump().substr(0, 60));
  }
  return found.get<double>();
}

double Object::amount(const std::string& key, double otherwise) { return has(key) ? amount(key) : otherwise; }

int Object::integer(const std::string& key, int low, int high) {
  const Value& found = value(key);
  // compared as doubles, which represent every int exactly
  if (!found.is_number_integer() || found.get<double>() < low || found.get<double>() > high) {
    throw error(key, "must be an integer from " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
                         found.dump().substr(0, 60));
  }
  return found.get<int>();
}

bool Object::flag(const std::string& key) {
  const Value& found = value(key);
  if (found.is_boolean()) {
    return found.get<bool>();
  }
  return integer(key, 0, 1) == 1;
}

std::string Object::text(const std::string& key, const std::string& otherwise) {
  const Value* found = find(key);
  if (found != nullptr && !found->is_string()) {
    throw error(key, "must be text, got " + found->dump().substr(0, 60));
  }
  return found != nullptr ? found->get<std::string>() : otherwise;
}

const Value& Object::list(const std::string& key) {
  const Value& found = value(key);
  if (!found.is_array()) {
    throw error(key, std::string("must be an array, got ") + found.type_name());
  }
  return found;
}

void Object::finish() const {
  for (const auto& [key, value] : value_.items()) {
    if (!known_.contains(key)) {
      throw error("", unknown_name("key", key, {known_.begin(), known_.end()}));
    }
  }
}

} // namespace stagecraft::json
