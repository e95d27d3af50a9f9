// What shapes, costs, kernels and signatures of layer kinds are put together of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sim/workload/layer/layers.hpp"

namespace stagecraft {

[[noreturn]] inline void refuse(const Layer& layer, const std::string& problem) {
  throw InputError(layer.where, problem);
}

inline Pass make_pass(double flops, double moved_elements, double moved_parameters = 0, int kernels = 1) {
  return {Flops{flops}, moved_elements, moved_parameters, kernels};
}

/// Positions of a product's sizes in KernelOpRow::dimensions.
enum Gemm { kBatch, kM, kN, kK };
/// `batch` products [m, k] [k, n]; the size at `grows` counts samples.
inline KernelCall make_gemm(double batch, double m, double n, double k, Gemm grows) {
  return {KernelOp::gemm, {batch, m, n, k}, grows};
}

/// Pairs of a query and a key that attention computes, of layer.sequence queries and layer.positions keys: the i-th of
/// the causal queries of a document sees i keys, or the last layer.window of them.
double attended_pairs(const Layer& layer);
AttentionMask mask_of(const Layer& layer);
/// Fills in layer.documents for `tokens`: one length stands for all documents, the last of which may be shorter. Throws
/// InputError where lengths do not add up to the tokens.
void complete_documents(Layer& layer, std::int64_t tokens);
/// The length that all documents of attention have, which are then as many sequences; nothing where they differ.
std::optional<double> length_of_documents(const Layer& layer);

/// Adds a letter and returns its index.
inline int add_letter(Signature& signature, std::string name, std::int64_t pieces, Along along,
                      bool any_order = false) {
  signature.letters.push_back({std::move(name), pieces, along, any_order});
  return static_cast<int>(signature.letters.size()) - 1;
}

/// Letters of samples and tokens, with which signatures of layers over sequences begin.
enum SequenceLetters { kSampleLetter, kTokenLetter };
inline Signature of_sequence(std::int64_t samples, std::int64_t tokens, Along along_tokens) {
  return {.letters = {{std::string(kSamples), samples, Along::each}, {std::string(kTokens), tokens, along_tokens}}};
}

/// Dimensions of a tensor [samples, rows, columns] whose shape for one sample is [rows, columns].
inline TensorDimensions tensor_of(std::int64_t samples, int rows_letter, const Shape& shape, int columns_letter) {
  return {{kSampleLetter, {samples}}, {rows_letter, {shape.front()}}, {columns_letter, {shape.back()}}};
}

} // namespace stagecraft
