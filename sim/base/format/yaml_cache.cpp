// A cache is a header, an entry for each text, and then each text with its events. A text is found by comparing it
// whole, so no other can be taken for it; where the sizes differ, as they nearly always do, nothing is compared. The
// file is opened anew for each text: that takes some microseconds, and so nothing need be kept.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/format/yaml_cache.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <functional>

#include "sim/base/bytes.hpp"
#include "sim/base/system/program_places.hpp"

namespace stagecraft::yaml {
namespace {

namespace fs = std::filesystem;

// To be changed with anything that is written.
constexpr std::array<char, 24> kVersion = {"stagecraft yaml cache 1"};
// No file that comes with the program is smaller, and to parse less takes hardly longer than to look for it.
constexpr std::size_t kSmallestText = 200;

struct Header {
  std::array<char, 24> version = kVersion;
  std::uint64_t texts = 0;
};

struct Entry {
  std::uint32_t text_size = 0;
  std::uint32_t events_size = 0;
  std::uint64_t events_hash = 0;
};

// Against damage only. The library that writes it also reads it.
std::uint64_t hash_of(std::string_view events) { return std::hash<std::string_view>{}(events); }

enum class Kind : std::uint32_t { null, scalar, alias, sequence, sequence_end, map, map_end };

// A scalar's text follows. Tags and styles are left out: a document means the same without them.
struct Event {
  Kind kind = Kind::null;
  std::uint32_t anchor = 0;
  YAML::Mark mark;
};

class Recorder : public YAML::EventHandler {
public:
  std::string take() { return std::move(bytes_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(Kind::null, mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(Kind::alias, mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& text) override {
    add(Kind::scalar, mark, anchor);
    put_text(bytes_, text);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    add(Kind::sequence, mark, anchor);
  }
  void OnSequenceEnd() override { add(Kind::sequence_end, {}, 0); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    add(Kind::map, mark, anchor);
  }
  void OnMapEnd() override { add(Kind::map_end, {}, 0); }

private:
  void add(Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    put(bytes_, Event{kind, static_cast<std::uint32_t>(anchor), mark});
  }

  std::string bytes_;
};

template <class Value> bool take(std::istream& from, Value* values, std::size_t count) {
  return static_cast<bool>(
      from.read(reinterpret_cast<char*>(values), static_cast<std::streamsize>(count * sizeof(Value))));
}

std::string take_text(std::istream& from, std::size_t size) {
  std::string text(size, '\0');
  take(from, text.data(), size);
  return text;
}

// Nothing where the file is not what make_cache() wrote, as far as sizes tell.
std::vector<Entry> take_entries(std::istream& from, std::uint64_t file_size) {
  Header header;
  if (!take(from, &header, 1) || header.version != kVersion || header.texts > file_size / sizeof(Entry)) {
    return {};
  }
  std::vector<Entry> entries(header.texts);
  std::uint64_t size = sizeof header + entries.size() * sizeof(Entry);
  take(from, entries.data(), entries.size());
  for (const Entry& entry : entries) {
    size += std::uint64_t{entry.text_size} + entry.events_size;
  }
  return size == file_size ? entries : std::vector<Entry>{};
}

} // namespace

std::string make_cache(const std::vector<std::string>& texts) {
  Header header;
  std::string entries, contents;
  for (const std::string& text : texts) {
    try {
      Recorder recorder;
      read_events(text, "", recorder);
      const std::string events = recorder.take();
      put(entries,
          Entry{static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(events.size()), hash_of(events)});
      contents += text;
      contents += events;
      ++header.texts;
    } catch (const InputError&) {
      continue; // whoever reads the file is told why
    }
  }
  std::string bytes;
  put(bytes, header);
  return bytes + entries + contents;
}

std::optional<std::string> find_recording(const fs::path& cache, std::string_view text) {
  std::ifstream file(cache, std::ios::binary);
  std::error_code failure;
  const std::uint64_t size = file ? fs::file_size(cache, failure) : 0;
  const std::vector<Entry> entries = failure ? std::vector<Entry>{} : take_entries(file, size);
  std::uint64_t offset = sizeof(Header) + entries.size() * sizeof(Entry);
  for (const Entry& entry : entries) {
    if (entry.text_size == text.size() && file.seekg(static_cast<std::streamoff>(offset)) &&
        take_text(file, entry.text_size) == text) {
      std::string events = take_text(file, entry.events_size);
      return hash_of(events) == entry.events_hash ? std::optional(std::move(events)) : std::nullopt;
    }
    offset += std::uint64_t{entry.text_size} + entry.events_size;
  }
  return std::nullopt;
}

std::optional<std::string> find_recording(std::string_view text) {
  if (text.size() >= kSmallestText) {
    for (const fs::path& place : program_places("shipped_yaml.cache")) {
      if (std::optional<std::string> found = find_recording(place, text)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

void replay_events(std::string_view recording, YAML::EventHandler& to) {
  const std::string no_tag;
  std::string text;
  for (ByteReader reader(recording); !reader.done();) {
    const auto event = reader.take<Event>();
    switch (event.kind) {
    case Kind::null:
      to.OnNull(event.mark, event.anchor);
      break;
    case Kind::scalar:
      text = reader.take_text();
      to.OnScalar(event.mark, no_tag, event.anchor, text);
      break;
    case Kind::alias:
      to.OnAlias(event.mark, event.anchor);
      break;
    case Kind::sequence:
      to.OnSequenceStart(event.mark, no_tag, event.anchor, YAML::EmitterStyle::Default);
      break;
    case Kind::sequence_end:
      to.OnSequenceEnd();
      break;
    case Kind::map:
      to.OnMapStart(event.mark, no_tag, event.anchor, YAML::EmitterStyle::Default);
      break;
    case Kind::map_end:
      to.OnMapEnd();
      break;
    }
  }
}

} // namespace stagecraft::yaml
