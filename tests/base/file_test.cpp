// Files: read whole, written whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>

#include "sim/base/file.hpp"
#include "sim/base/file_writer.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// A temporary folder, deleted when the test ends.
class Folder {
public:
  Folder() : path_(fs::temp_directory_path() / ("stagecraft-test-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path operator/(std::string_view name) const { return path_ / name; }
  std::ptrdiff_t entries() const { return std::distance(fs::directory_iterator(path_), fs::directory_iterator()); }

private:
  fs::path path_;
};

TEST_CASE("what was written is read back byte for byte", "[base][file]") {
  const Folder folder;
  const std::string bytes("a\0b\r\n\xff end", 11);
  for (const std::string& text : {bytes, std::string(), std::string(100'000, 'x')}) {
    write_file(folder / "file", text);
    CHECK(read_file(folder / "file") == text);
    CHECK(folder.entries() == 1); // no partial file is left
  }
}

TEST_CASE("writing replaces the whole file", "[base][file]") {
  const Folder folder;
  write_file(folder / "file", "a long text");
  write_file(folder / "file", "short");
  CHECK(read_file(folder / "file") == "short");
}

TEST_CASE("a write follows links, keeps permissions, and puts no file in place of a device", "[base][file]") {
  const Folder folder;
  write_file(folder / "target", "old");
  fs::permissions(folder / "target", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(folder / "target", folder / "link");
  write_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "target") == "new");
  CHECK(fs::status(folder / "target").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  write_file("/dev/null", "text");
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("a write that fails leaves what was there and no partial file", "[base][file]") {
  const Folder folder;
  fs::create_directories(folder / "taken" / "inside");
  CHECK_THROWS_WITH(write_file(folder / "taken", "text"), Catch::Contains("taken: cannot be written"));
  CHECK(fs::is_directory(folder / "taken"));
  CHECK(folder.entries() == 1);
  CHECK_THROWS_WITH(write_file(folder / "none" / "file", "text"), Catch::Contains("cannot be written"));
}

TEST_CASE("what is written in pieces is there when it is whole, and not at all otherwise", "[base][file]") {
  const Folder folder;
  write_file(folder / "file", "old");
  {
    FileWriter abandoned(folder / "file");
    abandoned.add("new");
  }
  CHECK(read_file(folder / "file") == "old");
  FileWriter whole(folder / "file");
  whole.add("one ");
  CHECK(read_file(folder / "file") == "old");
  whole.add("two");
  whole.finish();
  CHECK(read_file(folder / "file") == "one two");
  FileWriter device("/dev/full");
  CHECK_THROWS_WITH(([&] {
                      device.add(std::string(100'000, 'x'));
                      device.finish();
                    }()),
                    Catch::Contains("/dev/full: cannot be written"));
}

TEST_CASE("what is no readable file is an error that names it", "[base][file]") {
  const Folder folder;
  CHECK_THROWS_WITH(read_file(folder / "none"), (folder / "none").string() + ": no such file");
  CHECK_THROWS_WITH(read_file(folder / "."), Catch::Contains("not a regular file"));
  CHECK_THROWS_WITH(read_file("/dev/null"), "/dev/null: not a regular file");
}

} // namespace
} // namespace stagecraft
