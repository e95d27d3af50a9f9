// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/kernels/convolution_graph.hpp"

#include "calibrate/gpu/kernels/attention_graph.hpp"

namespace stagecraft::gpu {
namespace {

/// The attribute names of one operation.
struct Names {
  dnn::Kind operation;
  dnn::Attribute alpha, beta, convolution, image, filter, result;
};

Names names_of(Pass pass) {
  switch (pass) {
  case Pass::backward_input:
    return {dnn::kConvolutionBackwardData,
            dnn::kDataAlpha,
            dnn::kDataBeta,
            dnn::kDataConvolution,
            dnn::kDataDx,
            dnn::kDataW,
            dnn::kDataDy};
  case Pass::backward_weight:
    return {dnn::kConvolutionBackwardFilter,
            dnn::kFilterAlpha,
            dnn::kFilterBeta,
            dnn::kFilterConvolution,
            dnn::kFilterX,
            dnn::kFilterDw,
            dnn::kFilterDy};
  default:
    return {dnn::kConvolutionForward, dnn::kForwardAlpha, dnn::kForwardBeta, dnn::kForwardConvolution,
            dnn::kForwardX,           dnn::kForwardW,     dnn::kForwardY};
  }
}

// Strides of a tensor n, c, h, w with channels innermost.
Extents channels_innermost(const Extents& extents) {
  return {extents[1] * extents[2] * extents[3], 1, extents[1] * extents[3], extents[1]};
}

} // namespace

Convolution add_convolution(DnnGraph& graph, const Kernel& kernel) {
  const Shape& s = kernel.shape; // n c h w k r s stride padding groups
  const dnn::DataType type = data_type(kernel.precision);
  const auto tensor = [&](const Extents& extents) { return graph.tensor(extents, channels_innermost(extents), type); };
  Convolution at;
  at.image = tensor({s[0], s[1], s[2], s[3]});
  at.filter = tensor({s[4], s[1] / s[9], s[5], s[6]});
  at.result = tensor({s[0], s[4], output_extent(s[2], s[5], s[7], s[8]), output_extent(s[3], s[6], s[7], s[8])});

  const Cudnn& dnn = graph.descriptor(at.image).api();
  DnnDescriptor convolution(dnn, dnn::kConvolution);
  convolution.set(dnn::kConvolutionType, dnn::kFloat)
      .set_enum(dnn::kConvolutionMode, dnn::kTypeConvolutionMode, dnn::kCrossCorrelation)
      .set(dnn::kConvolutionSpatial, Extents{2})
      .set(dnn::kConvolutionDilations, Extents{1, 1})
      .set(dnn::kConvolutionStrides, Extents{s[7], s[7]})
      .set(dnn::kConvolutionPrePadding, Extents{s[8], s[8]})
      .set(dnn::kConvolutionPostPadding, Extents{s[8], s[8]})
      .finalize();
  const Names names = names_of(kernel.pass);
  graph.operation(DnnDescriptor(dnn, names.operation)
                      .set(names.alpha, 1.0F)
                      .set(names.beta, 0.0F)
                      .set(names.convolution, convolution)
                      .set(names.image, graph.descriptor(at.image))
                      .set(names.filter, graph.descriptor(at.filter))
                      .set(names.result, graph.descriptor(at.result))
                      .finalize());
  return at;
}

} // namespace stagecraft::gpu
