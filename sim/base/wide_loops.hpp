// Loops over arrays of numbers that take several at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Before a function whose loop takes twice as many doubles at a time on processors that can (AVX2), with the same
/// results: one that fuses no multiplication with an addition.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) // Clang clones no function that it may not inline
#define STAGECRAFT_WIDE_LOOP __attribute__((noinline, target_clones("avx2", "default")))
#else
#define STAGECRAFT_WIDE_LOOP
#endif
