// SPDX-License-Identifier: Apache-2.0
#include "sim/app/common/result_page.hpp"

#include <algorithm>
#include <array>

#include "sim/app/common/program.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::string percent_encoded(const std::string& path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    encoded += kPlain.find(c) != std::string_view::npos ? std::string(1, c)
                                                        : std::string{'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return encoded;
}

// Whether a page may hold a copy of this file: a text as studies name them, below a folder that the one who makes the
// page works with. A result of a stranger may name any file.
bool may_be_copied(const fs::path& file) {
  constexpr std::array<std::string_view, 5> kTexts = {".yaml", ".yml", ".csv", ".toml", ".txt"};
  std::error_code failure;
  const fs::path real = fs::canonical(file, failure);
  if (failure || std::find(kTexts.begin(), kTexts.end(), real.extension().string()) == kTexts.end()) {
    return false;
  }
  return !path_below(fs::canonical(shipped_folder(), failure), real).empty() ||
         !path_below(fs::canonical(fs::current_path(), failure), real).empty();
}

// Puts a copy of the file into the link, or says why there is none. `room`: bytes that the page still takes.
void add_copy(const fs::path& file, std::uintmax_t& room, PageLink& link) {
  constexpr std::uintmax_t kMost = 64UL * 1024; // of one file
  if (!may_be_copied(file)) {
    return;
  }
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(file, failure);
  if (failure || size > kMost || size > room) {
    link.left_out = "no copy: " + to_text(Bytes{static_cast<double>(failure ? 0 : size)});
    return;
  }
  room -= size;
  link.copy = read_file(file);
}

// A link from the page to a file, where there is such a file, with a copy of it.
PageLink link_to(const std::string& file, const fs::path& page, std::uintmax_t& room) {
  for (const fs::path& candidate : {fs::path(file), shipped_folder() / file}) {
    std::error_code failure;
    if (page == kPageToStdout && fs::is_regular_file(candidate, failure)) {
      PageLink link{file, ""};
      add_copy(candidate, room, link);
      return link;
    }
    if (!page.empty() && page != kPageToStdout && fs::is_regular_file(candidate, failure)) {
      const fs::path folder = fs::absolute(page).parent_path();
      const fs::path relative =
          fs::absolute(candidate).lexically_normal().lexically_relative(folder.lexically_normal());
      PageLink link{file, relative.empty() ? "" : "./" + percent_encoded(relative.string())};
      add_copy(candidate, room, link);
      return link;
    }
  }
  return {.text = file, .file = ""};
}

// A file's path for readers: relative to the shipped folder or to the current folder, where it lies in one of them.
std::string known_as(const std::string& file) {
  for (const fs::path& folder : {shipped_folder(), fs::current_path()}) {
    if (std::string below = path_below(folder, file); !below.empty()) {
      return below;
    }
  }
  return file;
}

} // namespace

void add_to_page(Page& page, DocumentPage document, bool alone, const fs::path& output) {
  if (alone) {
    page.title = document.title;
  }
  if (!document.answer.sentence.empty()) {
    document.answer.title = alone ? "" : document.title;
    page.answers.push_back(std::move(document.answer));
  }
  for (PageSection& section : document.sections) {
    section.title = alone ? section.title : document.title + ": " + section.title;
    page.sections.push_back(std::move(section));
  }
  constexpr std::uintmax_t kRoom = 512UL * 1024; // bytes of copies on one page
  std::uintmax_t room = kRoom;
  for (const PageLink& one : page.inputs) {
    room -= std::min<std::uintmax_t>(room, one.copy ? one.copy->size() : 0);
  }
  for (const std::string& given : document.inputs) {
    const std::string input = known_as(given);
    if (std::none_of(page.inputs.begin(), page.inputs.end(), [&](const PageLink& one) { return one.text == input; })) {
      page.inputs.push_back(link_to(input, output, room));
    }
  }
}

std::string page_of(const std::string& json, const fs::path& output) {
  Page page{.title = "", .sections = {}};
  add_to_page(page, read_document("result", json), true, output);
  return to_html(page);
}

} // namespace stagecraft
