// Files: read whole, written whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "sim/base/system/file.hpp"
#include "sim/base/system/file_writer.hpp"
#include "tests/base/folder.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// A temporary folder, deleted when the test ends.
using test::Folder;

TEST_CASE("a file is read back byte for byte as it was written", "[base][file]") {
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

// Another user of the folder could put a link there, through which the write would go elsewhere.
TEST_CASE("nobody can foresee the name of a file that is being written", "[base][file]") {
  const Folder folder;
  const std::string once_used = "file.part" + std::to_string(getpid());
  fs::create_symlink(folder / "victim", folder / once_used);
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder / "")) {
      all.insert(entry.path().filename().string());
    }
    return all;
  };
  {
    const FileWriter one(folder / "file");
    const FileWriter other(folder / "file");
    CHECK(names().size() == 3); // the link, and a name for each
  }
  write_file(folder / "file", "text");
  CHECK(!fs::exists(folder / "victim"));
  CHECK(names() == std::set<std::string>{"file", once_used});
}

TEST_CASE("a new file is open to others as their umask lets it, and one that replaces a private file never",
          "[base][file]") {
  const Folder folder;
  const auto permissions = [&](const fs::path& file) { return fs::status(file).permissions() & fs::perms::all; };
  const mode_t before = umask(022);
  write_file(folder / "new", "text");
  CHECK(permissions(folder / "new") == static_cast<fs::perms>(0644));
  fs::permissions(folder / "new", static_cast<fs::perms>(0600));
  {
    FileWriter writer(folder / "new");
    for (const auto& entry : fs::directory_iterator(folder / "")) {
      CHECK(permissions(entry.path()) == static_cast<fs::perms>(0600));
    }
  }
  umask(before);
}

TEST_CASE("the longest names that the system allows can be written", "[base][file]") {
  const Folder folder;
  const std::string longest(255, 'x');
  write_file(folder / longest, "text");
  CHECK(read_file(folder / longest) == "text");
  CHECK_THROWS_WITH(write_file(folder / (longest + "x"), "text"),
                    Catch::Contains("cannot be written: File name too long"));
}

TEST_CASE("a write that fails keeps the old file and leaves no partial one", "[base][file]") {
  const Folder folder;
  fs::create_directories(folder / "taken" / "inside");
  CHECK_THROWS_WITH(write_file(folder / "taken", "text"), Catch::Contains("taken: cannot be written"));
  CHECK(fs::is_directory(folder / "taken"));
  CHECK(folder.entries() == 1);
  CHECK_THROWS_WITH(write_file(folder / "none" / "file", "text"), Catch::Contains("cannot be written"));
}

TEST_CASE("a file written in pieces appears only once it is whole", "[base][file]") {
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

TEST_CASE("an unreadable file is an error that names it", "[base][file]") {
  const Folder folder;
  CHECK_THROWS_WITH(read_file(folder / "none"), (folder / "none").string() + ": no such file");
  CHECK_THROWS_WITH(read_file(folder / "."), Catch::Contains("not a regular file"));
  CHECK_THROWS_WITH(read_file("/dev/null"), "/dev/null: not a regular file");
}

} // namespace
} // namespace stagecraft
