// SPDX-License-Identifier: Apache-2.0
#include "sim/base/file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace stagecraft {

std::string read_file(const std::filesystem::path& path, int most) {
  constexpr std::uintmax_t kMebibyte = 1024 * 1024;
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

namespace {

void write_whole(const std::filesystem::path& path, std::string_view text, const Where& where) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) {
    throw InputError(where, std::string("cannot be written: ") + std::strerror(errno));
  }
}

} // namespace

void write_file(const std::filesystem::path& path, std::string_view text) {
  const Where where{path.string(), 0, 0};
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(path, failure); // of what a link points to
  const bool exists = std::filesystem::exists(status);
  if (exists && !std::filesystem::is_regular_file(status)) { // a pipe or a device is no file to put another in place of
    write_whole(path, text, where);
    return;
  }
  if (exists && access(path.c_str(), W_OK) != 0) {
    throw InputError(where, "cannot be written: it is read-only");
  }
  const std::filesystem::path target = exists ? std::filesystem::canonical(path, failure) : path;
  const std::filesystem::path partial = target.string() + ".part" + std::to_string(getpid());
  try {
    write_whole(partial, text, where);
  } catch (const InputError&) {
    std::filesystem::remove(partial, failure);
    throw;
  }
  if (exists) {
    std::filesystem::permissions(partial, status.permissions(), failure);
  }
  std::filesystem::rename(partial, target, failure);
  if (failure) {
    const std::string reason = failure.message();
    std::filesystem::remove(partial, failure);
    throw InputError(where, "cannot be written: " + reason);
  }
}

} // namespace stagecraft
