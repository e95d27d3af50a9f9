// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/progress.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace stagecraft::gpu {
namespace {

constexpr double kBetween = 0.1; // seconds between two updates
constexpr std::size_t kBar = 24;

} // namespace

std::string clock_text(double seconds) {
  const long whole = std::lround(std::max(seconds, 0.0));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%ld:%02ld", whole / 60, whole % 60);
  return text.data();
}

Progress::Progress(std::FILE* out, bool terminal, double total) : out_(out), terminal_(terminal), total_(total) {}

void Progress::show(const std::string& group, std::size_t done, std::size_t of, double now) {
  if (!terminal_ || (shown_ >= 0 && now - shown_ < kBetween)) {
    return;
  }
  shown_ = now;
  drawn_ = true;
  const auto filled = static_cast<std::size_t>(std::clamp(now / total_, 0.0, 1.0) * static_cast<double>(kBar));
  const std::string bar = std::string(filled, '#') + std::string(kBar - filled, '.');
  std::fprintf(out_, "\r\033[K[%s] %s %zu of %zu, at most %s left", bar.c_str(), group.c_str(), done, of,
               clock_text(total_ - now).c_str());
  std::fflush(out_);
}

void Progress::say(const std::string& text) {
  std::fprintf(out_, "%s%s\n", drawn_ ? "\r\033[K" : "", text.c_str());
  std::fflush(out_);
  drawn_ = false;
}

} // namespace stagecraft::gpu
