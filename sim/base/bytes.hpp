// Values as bytes and back, for messages between processes of one program on one machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/base/error.hpp"

namespace stagecraft {

/// Appends a value as it lies in memory.
template <class Value> void put(std::string& bytes, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Appends a text's length and the text.
inline void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

/// Appends how many values there are, then each.
template <class Value> void put_list(std::string& bytes, const std::vector<Value>& values) {
  static_assert(std::is_trivially_copyable_v<Value> && !std::is_same_v<Value, bool>);
  put(bytes, static_cast<std::uint64_t>(values.size()));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

/// Reads what put(), put_text() and put_list() wrote, in the same order. Throws std::logic_error where bytes are
/// missing.
class ByteReader {
public:
  /// The reader keeps no copy: `bytes` must outlive it.
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool done() const { return bytes_.empty(); }
  template <class Value> Value take() {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take_text() { return take(take<std::uint32_t>()); }
  template <class Value> std::vector<Value> take_list() {
    static_assert(std::is_trivially_copyable_v<Value> && !std::is_same_v<Value, bool>);
    const auto count = static_cast<std::size_t>(take<std::uint64_t>());
    check(count <= bytes_.size() / sizeof(Value), "a message between processes is cut short");
    std::vector<Value> values(count);
    const std::string_view taken = take(count * sizeof(Value));
    if (count > 0) { // an empty vector has no address to copy to
      std::memcpy(values.data(), taken.data(), taken.size());
    }
    return values;
  }

private:
  std::string_view take(std::size_t size) {
    check(size <= bytes_.size(), "a message between processes is cut short");
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
};

} // namespace stagecraft
