// SPDX-License-Identifier: Apache-2.0
#include "sim/base/file_writer.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace stagecraft {

namespace fs = std::filesystem;

FileWriter::FileWriter(const fs::path& path) : where_{path.string(), 0, 0}, target_(path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure); // status() follows links
  const bool exists = fs::exists(status);
  if (exists && fs::is_regular_file(status)) {
    if (access(path.c_str(), W_OK) != 0) {
      throw InputError(where_, "cannot be written: it is read-only");
    }
    target_ = fs::canonical(path, failure);
    permissions_ = status.permissions();
  }
  if (!exists || fs::is_regular_file(status)) {
    partial_ = target_.string() + ".part" + std::to_string(getpid());
  }
  out_.open(partial_.empty() ? target_ : partial_, std::ios::binary | std::ios::trunc);
  check_written();
}

FileWriter::~FileWriter() {
  std::error_code failure;
  out_.close();
  if (!partial_.empty()) {
    fs::remove(partial_, failure);
  }
}

void FileWriter::add(std::string_view text) {
  out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  check_written();
}

void FileWriter::finish() {
  out_.close();
  check_written();
  if (partial_.empty()) {
    return;
  }
  std::error_code failure;
  if (permissions_ != fs::perms::unknown) {
    fs::permissions(partial_, permissions_, failure);
  }
  fs::rename(partial_, target_, failure);
  if (failure) {
    throw InputError(where_, "cannot be written: " + failure.message());
  }
  partial_.clear();
}

void FileWriter::check_written() {
  if (!out_) {
    const std::string reason = std::strerror(errno);
    std::error_code failure;
    if (!partial_.empty()) { // a constructor that throws has no destructor
      fs::remove(partial_, failure);
    }
    throw InputError(where_, "cannot be written: " + reason);
  }
}

} // namespace stagecraft
