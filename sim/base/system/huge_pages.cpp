// Large arrays on huge pages, where the system allows it: tasks that follow each other in time lie far apart in them,
// so that each step of a large replay would look up another page. Part of every program, not of a library:
// docs/decisions/0011-an-allocator.md.
// SPDX-License-Identifier: Apache-2.0
#include <gperftools/malloc_extension.h>
#include <sys/mman.h>

#include <cstddef>

namespace stagecraft {
namespace {

// Gets memory as the allocator would without it, and asks for huge pages where there is much of it.
class HugePages final : public SysAllocator {
public:
  HugePages() : from_(MallocExtension::instance()->GetSystemAllocator()) {
    MallocExtension::instance()->SetSystemAllocator(this);
  }

  void* Alloc(std::size_t size, std::size_t* actual_size, std::size_t alignment) override {
    constexpr std::size_t kMuch = 8 << 20; // more than a short run ever asks for at once
    void* const memory = from_->Alloc(size, actual_size, alignment);
    if (memory != nullptr && size >= kMuch) {
      madvise(memory, size, MADV_HUGEPAGE); // only faster: where it fails, nothing is lost
    }
    return memory;
  }

private:
  SysAllocator* from_;
};

// Before main(), and never destroyed: memory is asked for until the very end.
[[maybe_unused]] HugePages& huge_pages = *new HugePages();

} // namespace
} // namespace stagecraft
