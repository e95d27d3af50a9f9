// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/routines.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace stagecraft::cpu {

extern const Routines routines_baseline; // NOLINT(readability-identifier-naming): CMake makes the name
#ifdef STAGECRAFT_X86
extern const Routines routines_avx2, routines_avx512; // NOLINT(readability-identifier-naming)
#endif

std::vector<const Routines*> all_routines() {
  std::vector<const Routines*> all;
#ifdef STAGECRAFT_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    all.push_back(&routines_avx512);
  }
  if (avx2) {
    all.push_back(&routines_avx2);
  }
#endif
  all.push_back(&routines_baseline);
  return all;
}

const Routines& best_routines() { return *all_routines().front(); }

namespace {

// The declaration in cblas.h.
using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
Sgemm sgemm = nullptr;

void product_by_openblas(const Product& p) {
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  const auto whole = [](Index value) { return static_cast<int>(value); };
  sgemm(kRowMajor, p.transpose_a ? kTransposed : kPlain, p.transpose_b ? kTransposed : kPlain, whole(p.m), whole(p.n),
        whole(p.k), 1, p.a, whole(p.lda), p.b, whole(p.ldb), p.accumulate ? 1.0F : 0.0F, p.c, whole(p.ldc));
}

} // namespace

Routines with_openblas(const Routines& routines) {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error("OpenBLAS (libopenblas.so.0) is not installed");
  }
  sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
  if (sgemm == nullptr || set_threads == nullptr) {
    throw std::runtime_error("OpenBLAS (libopenblas.so.0) lacks cblas_sgemm");
  }
  set_threads(1); // the threads are our own
  Routines changed = routines;
  changed.product = product_by_openblas;
  return changed;
}

} // namespace stagecraft::cpu
