// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "sim/base/system/file_writer.hpp"

namespace stagecraft {

std::string read_file(const std::filesystem::path& path, int most) {
  constexpr std::uintmax_t kMebibyte = std::uintmax_t{1} << 20U;
  const Where where{path.string(), 0, 0};
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(path, failure);
  if (failure || !std::filesystem::exists(status)) {
    const bool none =
        !failure || failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory;
    throw InputError(where, none ? "no such file" : "cannot be read: " + failure.message());
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw InputError(where, "not a regular file");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, failure);
  if (failure || size > most * kMebibyte) {
    throw InputError(where, "too large; allowed: at most " + std::to_string(most) + " MiB");
  }
  std::string text(size, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) {
    throw InputError(where, "cannot be read");
  }
  return text;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  FileWriter file(path);
  file.add(text);
  file.finish();
}

void make_folder(const std::filesystem::path& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (!failure && std::filesystem::is_directory(path, failure)) {
    return;
  }
  const std::string why = failure ? failure.message() : "there is something else of that name";
  throw InputError({path.string(), 0, 0},
                   "no folder can be made here: " + why + "; allowed: a folder in a directory of yours");
}

std::vector<std::filesystem::path> files_at(const std::filesystem::path& path,
                                            bool (*accepts)(const std::filesystem::path& file)) {
  std::vector<std::filesystem::path> files;
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, failure)) {
      files.push_back(entry.path());
    }
  } else {
    files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  std::erase_if(files, [&](const std::filesystem::path& file) { return !accepts(file); });
  return files;
}

} // namespace stagecraft
