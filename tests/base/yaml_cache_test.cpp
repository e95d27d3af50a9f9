// The cache of YAML that comes with the program: what it gives is what yaml-cpp says, and it is used.
// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include "sim/base/format/yaml.hpp"
#include "sim/base/format/yaml_cache.hpp"
#include "sim/base/system/file.hpp"
#include "tests/base/folder.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = test::source_dir();

bool same(const yaml::Node& a, const yaml::Node& b) {
  return a.kind == b.kind && a.text == b.text && a.where == b.where &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same) &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const yaml::Node::Entry& x, const yaml::Node::Entry& y) {
                      return x.key == y.key && x.where == y.where && same(x.value, y.value);
                    });
}

std::vector<std::string> shipped_files() {
  std::vector<std::string> files;
  for (const char* folder : {"platforms", "workloads"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.path().extension() == ".yaml") {
        files.push_back(entry.path().string());
      }
    }
  }
  return files;
}

TEST_CASE("every file that comes with the program is in its cache, and means there what yaml-cpp reads",
          "[base][yaml]") {
  const std::vector<std::string> files = shipped_files();
  CHECK(files.size() > 50);
  for (const std::string& file : files) {
    INFO(file);
    const std::string text = read_file(file), longer = text + "# which the cache does not know\n";
    CHECK(yaml::find_recording(text));
    CHECK_FALSE(yaml::find_recording(longer));
    CHECK(same(yaml::parse(text, file), yaml::parse(longer, file)));
  }
}

TEST_CASE("a file of which one byte was changed is not in the cache", "[base][yaml]") {
  std::string text = read_file(kRoot / "platforms/mixed-v100-p100.yaml");
  const std::size_t digit = text.find_last_of("123456789");
  text[digit] = text[digit] == '9' ? '8' : '9';
  CHECK_FALSE(yaml::find_recording(text));
}

// Everything that YAML can say, as the events name it.
const std::string kAll = "a: &x {b: [1, \"two\", ~], c: 'it''s'}\nd: *x\n? [e]\n: f\ng: >-\n  folded\n  text\nh:\n";

struct Teller : YAML::EventHandler {
  std::string told;

  void tell(const char* what, const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& text = "") {
    told += what + std::to_string(mark.line) + ":" + std::to_string(mark.column) + ":" + std::to_string(mark.pos) +
            " &" + std::to_string(anchor) + " " + text + "\n";
  }
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { tell("null ", mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { tell("alias ", mark, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& text) override {
    tell("scalar ", mark, anchor, text);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    tell("sequence ", mark, anchor);
  }
  void OnSequenceEnd() override { told += "end of sequence\n"; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    tell("map ", mark, anchor);
  }
  void OnMapEnd() override { told += "end of map\n"; }
};

TEST_CASE("a recording says what yaml-cpp said, event by event", "[base][yaml]") {
  const test::Folder folder;
  write_file(folder / "cache", yaml::make_cache({"other: text\n", kAll}));
  const auto recording = yaml::find_recording(folder / "cache", kAll);
  REQUIRE(recording);
  Teller read, replayed;
  yaml::read_events(kAll, "a.yaml", read);
  yaml::replay_events(*recording, replayed);
  CHECK(replayed.told == read.told);
  for (const char* event : {"null 0:21:", "alias 1:3:", "scalar 0:25:", "sequence 2:2:", "map 0:3:3 &1", "folded text",
                            "end of sequence", "end of map"}) {
    CHECK_THAT(read.told, Catch::Contains(event));
  }
}

TEST_CASE("a cache that is missing, cut, damaged or of another version is not used", "[base][yaml]") {
  const test::Folder folder;
  const fs::path cache = folder / "cache";
  const std::string whole = yaml::make_cache({kAll, "other: text\n"});
  const auto found_in = [&](const std::string& bytes) {
    write_file(cache, bytes);
    return yaml::find_recording(cache, kAll);
  };
  CHECK_FALSE(yaml::find_recording(folder / "none", kAll));
  const auto recording = found_in(whole);
  REQUIRE(recording);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(found_in(whole.substr(0, size)));
  }
  CHECK_FALSE(found_in(whole + "x"));
  std::size_t used = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    const auto found = found_in(damaged);
    used += found ? 1 : 0;
    CHECK((!found || *found == *recording));
    CHECK((!found || at > whole.find("cache 1") + 7)); // the version
  }
  // Only damage to what belongs to the other text may pass: its hash (8 bytes), and its text and four events.
  CHECK(used <= 8 + 12 + 4 * 20 + 2 * 4 + 9);
}

TEST_CASE("a text that yaml-cpp refuses is left out of a cache", "[base][yaml]") {
  CHECK(yaml::make_cache({"", "a: [", "a: 1\n---\nb: 2\n", "a: \x01\n"}) == yaml::make_cache({}));
}

} // namespace
} // namespace stagecraft
