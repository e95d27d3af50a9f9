// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/json.hpp"

#include <nlohmann/json.hpp>

#include <iterator>
#include <vector>

#include "sim/base/limits.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::json {
namespace {

// What has been read of a text, and where the value or key that was read last begins.
struct Progress {
  int line = 1, column = 1;
  int token_line = 1, token_column = 1;
  bool in_string = false, escaped = false, between = true;

  void take(char letter) {
    if (in_string) {
      in_string = escaped || letter != '"';
      escaped = !escaped && letter == '\\';
    } else if (letter == '"' || letter == '{' || letter == '[') {
      begin_token();
      in_string = letter == '"';
      between = true;
    } else if (std::string_view(" \t\r\n,:]}").find(letter) != std::string_view::npos) {
      between = true;
    } else if (between) {
      begin_token();
      between = false;
    }
    line += letter == '\n' ? 1 : 0;
    column = letter == '\n' ? 1 : column + 1;
  }

  void begin_token() {
    token_line = line;
    token_column = column;
  }
};

// The letters of a text, which tell how far they have been read.
class Letters {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Letters(const char* at, Progress& progress) : at_(at), progress_(&progress) {}
  reference operator*() const { return *at_; }
  Letters& operator++() {
    progress_->take(*at_++);
    return *this;
  }
  bool operator==(const Letters& other) const { return at_ == other.at_; }
  bool operator!=(const Letters& other) const { return at_ != other.at_; }

private:
  const char* at_;
  Progress* progress_;
};

// The reason in nlohmann's message, without its prefix: "[json.exception.parse_error.101] parse error at line 1, column
// 2: syntax error while …" gives "syntax error while …". It repeats what was read, a number of a million digits, too.
std::string reason_of(const nlohmann::json::exception& failure) {
  constexpr std::size_t kMostOfReason = 240;
  std::string text = failure.what();
  for (const std::string_view front : {": ", "] "}) {
    if (const std::size_t at = text.find(front); at != std::string::npos) {
      return excerpt(std::string_view(text).substr(at + front.size()), kMostOfReason);
    }
  }
  return text;
}

// Refuses what the parser would accept: duplicate keys, and documents that go beyond the limits.
class Strict {
public:
  Strict(const Source& source, const Progress& progress) : source_(source), progress_(progress) {}

  Where place() const { return {source_.file(), progress_.token_line, progress_.token_column}; }

  bool operator()(int depth, Value::parse_event_t event, Value& value) {
    using Event = Value::parse_event_t;
    const bool begins = event == Event::object_start || event == Event::array_start;
    if (depth + (begins ? 1 : 0) > limits::kDepth) {
      throw InputError(place(), "values lie more than " + std::to_string(limits::kDepth) + " deep");
    }
    if (begins || event == Event::value) {
      count();
    }
    if (event == Event::object_start) {
      keys_.emplace_back();
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key && !keys_.back().insert(value.get<std::string>()).second) {
      throw InputError(place(),
                       "duplicate key '" + excerpt(value.get<std::string>()) + "' in one object; allowed: once");
    }
    return true;
  }

private:
  void count() {
    if (++values_ > limits::kValues) {
      throw InputError(place(), "more than " + std::to_string(limits::kValues) + " values");
    }
  }

  const Source& source_;
  const Progress& progress_;
  std::vector<std::set<std::string>> keys_; ///< keys of each object that is still open
  std::size_t values_ = 0;
};

} // namespace

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

Value parse(const Source& source) {
  Progress progress;
  Strict strict(source, progress);
  const std::string_view text = source.text();
  if (is_blank(text)) {
    throw InputError({source.file(), 1, 1}, "the file is empty; allowed: one JSON document");
  }
  try {
    return Value::parse(
        Letters(text.data(), progress), Letters(text.data() + text.size(), progress),
        [&](int depth, Value::parse_event_t event, Value& value) { return strict(depth, event, value); });
  } catch (const nlohmann::json::parse_error& failure) {
    throw InputError(source.place_of_byte(failure.byte), reason_of(failure) + "; allowed: JSON");
  } catch (const nlohmann::json::exception& failure) {
    throw InputError(strict.place(), reason_of(failure));
  }
}

namespace {

// Looks for the value with a path, or the longest beginning of it.
class Finder {
public:
  using number_integer_t = Value::number_integer_t;
  using number_unsigned_t = Value::number_unsigned_t;
  using number_float_t = Value::number_float_t;
  using string_t = Value::string_t;
  using binary_t = Value::binary_t;

  Finder(const std::string& path, const Progress& progress) : wanted_(path), progress_(progress) {}

  int line = 1, column = 1; // of the best found so far

  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(number_integer_t) { return value(); }
  bool number_unsigned(number_unsigned_t) { return value(); }
  bool number_float(number_float_t, const string_t&) { return value(); }
  bool string(string_t&) { return value(); }
  bool binary(binary_t&) { return value(); }
  bool start_object(std::size_t) { return open(false); }
  bool start_array(std::size_t) { return open(true); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    path_.resize(open_.back().length);
    path_ += (path_.empty() ? "" : ".") + name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

private:
  struct Open {
    std::size_t length; // of the path of the list or object
    bool is_list;
    std::size_t next = 0; // item
  };

  bool value() {
    if (!open_.empty() && open_.back().is_list) {
      path_.resize(open_.back().length);
      path_ += "[" + std::to_string(open_.back().next++) + "]";
    }
    const bool begins = wanted_.starts_with(path_) && (path_.empty() || path_.size() == wanted_.size() ||
                                                       wanted_[path_.size()] == '.' || wanted_[path_.size()] == '[');
    if (begins && path_.size() >= best_) {
      best_ = path_.size();
      line = progress_.token_line;
      column = progress_.token_column;
    }
    return path_ != wanted_; // found: no further
  }

  bool open(bool is_list) {
    const bool more = value();
    open_.push_back({path_.size(), is_list});
    return more;
  }

  bool close() {
    path_.resize(open_.back().length);
    open_.pop_back();
    return true;
  }

  const std::string& wanted_;
  const Progress& progress_;
  std::string path_;
  std::vector<Open> open_;
  std::size_t best_ = 0;
};

} // namespace

Where Source::place(const std::string& path) const {
  Progress progress;
  Finder finder(path, progress);
  Value::sax_parse(Letters(text_.data(), progress), Letters(text_.data() + text_.size(), progress), &finder);
  return {*file_, finder.line, finder.column};
}

Where Source::place_of_byte(std::size_t byte) const {
  Progress progress;
  for (const char letter : text_.substr(0, byte > 0 ? byte - 1 : 0)) {
    progress.take(letter);
  }
  return {*file_, progress.line, progress.column};
}

InputError Source::error(const std::string& path, const std::string& what) const {
  return {place(path), (path.empty() ? "the document: " : path + ": ") + what};
}

Object::Object(const Value& value, const Source& source, std::string path)
    : value_(value), source_(source), path_(std::move(path)) {
  if (!value.is_object()) {
    throw error("", std::string("is no object but ") + value.type_name());
  }
}

InputError Object::error(const std::string& key, const std::string& what) const {
  return source_.error(key.empty() ? path_ : path(key), what);
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
    throw error(key, "must be a number of 0 or more, got " + excerpt(found.dump()));
  }
  return found.get<double>();
}

double Object::amount(const std::string& key, double otherwise) { return has(key) ? amount(key) : otherwise; }

int Object::integer(const std::string& key, int low, int high) {
  const Value& found = value(key);
  // compared as doubles, which represent every int exactly
  if (!found.is_number_integer() || found.get<double>() < low || found.get<double>() > high) {
    throw error(key, "must be an integer from " + std::to_string(low) + " to " + std::to_string(high) + ", got " +
                         excerpt(found.dump()));
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
    throw error(key, "must be text, got " + excerpt(found->dump()));
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
