// SPDX-License-Identifier: Apache-2.0
#include "sim/base/file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace stagecraft {

std::string read_file(const std::filesystem::path& path) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{256} * 1024 * 1024;
  const Where where{path.string(), 0, 0};
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(path, failure);
  if (failure || !std::filesystem::exists(status)) {
    throw InputError(where, "no such file");
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw InputError(where, "not a regular file");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, failure);
  if (failure || size > kLargest) {
    throw InputError(where, "too large; allowed: at most 256 MiB");
  }
  std::string text(size, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) {
    throw InputError(where, "cannot be read");
  }
  return text;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path partial = path.string() + ".part" + std::to_string(getpid());
  std::error_code ignored;
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) {
      const std::string reason = std::strerror(errno);
      std::filesystem::remove(partial, ignored);
      throw InputError({path.string(), 0, 0}, "cannot be written: " + reason);
    }
  }
  std::error_code failure;
  std::filesystem::rename(partial, path, failure);
  if (failure) {
    std::filesystem::remove(partial, ignored);
    throw InputError({path.string(), 0, 0}, "cannot be written: " + failure.message());
  }
}

} // namespace stagecraft
