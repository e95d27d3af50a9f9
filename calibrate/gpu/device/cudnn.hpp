// The part of cuDNN's backend that we use, declared by hand, since the header may be missing on the building machine.
// Values are those of cudnn_graph.h; check_headers.cpp compares them where that header is found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "calibrate/gpu/device/shared_library.hpp"

namespace stagecraft::gpu::dnn {

using Handle = struct HandleOpaque*;
using Descriptor = void*;

enum DataType : int { kFloat = 0, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };

// Kinds of descriptors.
enum Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristic = 4,
  kPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardFilter = 11,
  kConvolutionBackwardData = 12,
  kOperationPointwise = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kOperationMatmul = 19,
  kReduction = 21,
  kOperationReduction = 22,
  kOperationReshape = 31,
  kDeviceProperties = 38,
  kSdpaForward = 41,
};

// Types of attributes.
enum Type : int {
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeBoolean = 2,
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypeVoidPointer = 6,
  kTypeConvolutionMode = 7,
  kTypeHeuristicMode = 8,
  kTypeNumericalNote = 11,
  kTypePointwiseMode = 14,
  kTypeDescriptor = 15,
  kTypeReductionOperator = 18,
  kTypeChar = 24,
};

enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kConvolutionType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPadding = 104,
  kConvolutionPrePadding = 105,
  kConvolutionSpatial = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kHeuristicDevice = 204,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanDevice = 407,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kDataAlpha = 706,
  kDataBeta = 707,
  kDataConvolution = 708,
  kDataW = 709,
  kDataDx = 710,
  kDataDy = 711,
  kFilterAlpha = 712,
  kFilterBeta = 713,
  kFilterConvolution = 714,
  kFilterDw = 715,
  kFilterX = 716,
  kFilterDy = 717,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorVirtual = 907,
  kTensorByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineIndex = 1301,
  kEngineNotes = 1303,
  kMatmulType = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescriptor = 1523,
  kReductionOperator = 1600,
  kReductionType = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
  kReshapeX = 2200,
  kReshapeY = 2201,
  kDeviceJson = 2702,
  kSdpaForwardQ = 2800,
  kSdpaForwardK = 2801,
  kSdpaForwardV = 2802,
  kSdpaForwardO = 2803,
  kSdpaForwardStats = 2804,
  kSdpaForwardScale = 2805,
};

enum Pointwise : int {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kIdentity = 21,
  kGreaterOrEqual = 303,
  kGenerateIndex = 501,
  kSelect = 601,
};

enum : int {
  kCrossCorrelation = 1,
  kModeA = 3,
  kModeFallback = 2,
  kReduceAdd = 0,
  kReduceMax = 3,
  kNoteTensorCore = 0,
  kNoteDownConvert = 1,
};

} // namespace stagecraft::gpu::dnn

namespace stagecraft::gpu {

/// cuDNN's functions; status 0 is success.
struct Cudnn {
  SharedLibrary library;
  std::size_t (*version)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  void (*last_error)(char*, std::size_t) = nullptr;
  int (*create)(dnn::Handle*) = nullptr;
  int (*set_stream)(dnn::Handle, cudaStream_t) = nullptr;
  int (*descriptor_create)(int kind, dnn::Descriptor*) = nullptr;
  int (*descriptor_destroy)(dnn::Descriptor) = nullptr;
  int (*finalize)(dnn::Descriptor) = nullptr;
  int (*set)(dnn::Descriptor, int attribute, int type, std::int64_t count, const void*) = nullptr;
  int (*get)(dnn::Descriptor, int attribute, int type, std::int64_t most, std::int64_t* count, void*) = nullptr;
  int (*execute)(dnn::Handle, dnn::Descriptor plan, dnn::Descriptor pack) = nullptr;
};

Cudnn open_cudnn(const std::vector<std::string>& folders);

} // namespace stagecraft::gpu
