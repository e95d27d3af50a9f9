// Large arrays on huge pages, where the system allows it: tasks that follow each other in time lie far apart in them,
// so that each step of a large replay would look up another page. Part of every program, not of a library:
// docs/decisions/0011-an-allocator.md.
// SPDX-License-Identifier: Apache-2.0
#include <gperftools/malloc_extension.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>

namespace stagecraft {
namespace {

// Gets memory as the allocator would without it, and asks for huge pages where there is much of it: at once, or
// altogether. What a large process asks for in small pieces it gets in large ones, so that huge pages fit in.
class HugePages final : public SysAllocator {
public:
  HugePages() : from_(MallocExtension::instance()->GetSystemAllocator()) {
    MallocExtension::instance()->SetSystemAllocator(this);
  }

  void* Alloc(std::size_t size, std::size_t* actual_size, std::size_t alignment) override {
    given_ += size;
    if (size < kMuch && given_ < kLarge) {
      return from_->Alloc(size, actual_size, alignment);
    }
    const std::size_t asked = actual_size == nullptr ? size : (size + kPiece - 1) / kPiece * kPiece;
    void* const memory = from_->Alloc(asked, actual_size, std::max(alignment, kHugePage));
    if (memory != nullptr) {
      madvise(memory, asked, MADV_HUGEPAGE); // only faster: where it fails, nothing is lost
    }
    return memory;
  }

private:
  static constexpr std::size_t kHugePage = 2 << 20;
  static constexpr std::size_t kPiece = 4 * kHugePage;
  static constexpr std::size_t kMuch = 8 << 20;   // at once: more than a short run ever asks for
  static constexpr std::size_t kLarge = 64 << 20; // altogether: likewise

  SysAllocator* from_;
  std::size_t given_ = 0;
};

// Before main(), and never destroyed: memory is asked for until the very end.
[[maybe_unused]] HugePages& huge_pages = *new HugePages();

} // namespace
} // namespace stagecraft
