// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/file_writer.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPiece = 1 << 16; // bytes given to the system at a time

// Hidden and short: it fits beside every name that the file system allows.
std::string unforeseeable_name() {
  std::array<unsigned char, 12> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("the system has no random numbers");
  }
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuv"; // 32 of them: 5 bits of each byte
  std::string name = ".stagecraft-part-";
  for (const unsigned char byte : bytes) {
    name += kLetters[byte % kLetters.size()];
  }
  return name;
}

} // namespace

FileWriter::FileWriter(const fs::path& path) : where_{path.string(), 0, 0}, target_(path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure); // status() follows links
  const bool exists = fs::exists(status);
  if (exists && !fs::is_regular_file(status)) {
    file_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) {
      fail(errno);
    }
    return;
  }
  if (exists) {
    if (access(path.c_str(), W_OK) != 0) {
      throw InputError(where_, "cannot be written: it is read-only");
    }
    target_ = fs::canonical(path, failure);
  }
  open_beside(exists);
  if (exists && fchmod(file_, static_cast<mode_t>(status.permissions() & fs::perms::all)) != 0) {
    fail(errno);
  }
}

FileWriter::~FileWriter() {
  close_file();
  remove_partial();
}

void FileWriter::add(std::string_view text) {
  waiting_ += text;
  if (waiting_.size() >= kPiece) {
    write_out();
  }
}

void FileWriter::finish() {
  write_out();
  if (close(std::exchange(file_, -1)) != 0) {
    fail(errno);
  }
  if (!partial_.empty() && std::rename(partial_.c_str(), target_.c_str()) != 0) {
    fail(errno);
  }
  partial_.clear();
  unfinished_.reset();
}

// A file that replaces another is open to nobody else until it has the other's permissions.
void FileWriter::open_beside(bool replaces) {
  constexpr int kTries = 100;
  constexpr mode_t kOwner = 0600;
  constexpr mode_t kUsual = 0666; // less what the umask forbids
  for (int i = 0; i < kTries; ++i) {
    partial_ = target_.parent_path() / unforeseeable_name();
    if (partial_.native().size() > UnfinishedFile::kLongestName) {
      partial_.clear();
      fail(ENAMETOOLONG);
    }
    unfinished_.emplace(partial_.c_str());
    file_ = open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, replaces ? kOwner : kUsual);
    if (file_ >= 0) {
      return;
    }
    const int error = errno;
    unfinished_.reset();
    partial_.clear(); // it is not ours
    if (error != EEXIST) {
      fail(error);
    }
  }
  fail(EEXIST);
}

void FileWriter::write_out() {
  std::string_view rest = waiting_;
  while (!rest.empty()) {
    const ssize_t count = write(file_, rest.data(), rest.size());
    if (count < 0 && errno != EINTR) {
      fail(errno);
    }
    rest.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
  }
  waiting_.clear();
}

void FileWriter::close_file() {
  if (file_ >= 0) {
    close(std::exchange(file_, -1));
  }
}

void FileWriter::remove_partial() {
  if (!partial_.empty()) {
    unlink(partial_.c_str());
    partial_.clear();
  }
  unfinished_.reset();
}

// Cleans up itself: a constructor that throws has no destructor.
void FileWriter::fail(int error) {
  close_file();
  remove_partial();
  throw InputError(where_, "cannot be written: " + std::string(std::strerror(error)));
}

} // namespace stagecraft
