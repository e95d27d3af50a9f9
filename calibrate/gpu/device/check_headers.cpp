// Compares hand-written declarations with the libraries' own headers, if these are found when building.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/cublaslt.hpp"
#include "calibrate/gpu/device/cudnn.hpp"
#include "calibrate/gpu/device/nccl.hpp"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace stagecraft::gpu::lt {

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Heuristic, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(Heuristic, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
static_assert(int{kCompute32F} == CUBLAS_COMPUTE_32F && int{kCompute32FFastTf32} == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(int{kTransposeNo} == CUBLAS_OP_N && int{kTransposeYes} == CUBLAS_OP_T);
static_assert(int{kDescriptionTransposeA} == CUBLASLT_MATMUL_DESC_TRANSA &&
              int{kDescriptionTransposeB} == CUBLASLT_MATMUL_DESC_TRANSB &&
              int{kDescriptionSmCountTarget} == CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET &&
              int{kDescriptionFastAccumulation} == CUBLASLT_MATMUL_DESC_FAST_ACCUM);
static_assert(int{kLayoutBatchCount} == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              int{kLayoutBatchStride} == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(int{kPreferenceWorkspace} == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(int{kConfigTile} == CUBLASLT_ALGO_CONFIG_TILE_ID &&
              int{kConfigSplitK} == CUBLASLT_ALGO_CONFIG_SPLITK_NUM &&
              int{kConfigStages} == CUBLASLT_ALGO_CONFIG_STAGES_ID);

} // namespace stagecraft::gpu::lt
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace stagecraft::gpu {

static_assert(int{kNcclSum} == ncclSum && int{kNcclFloat32} == ncclFloat32);

} // namespace stagecraft::gpu
#endif

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

namespace stagecraft::gpu::dnn {

static_assert(int{kFloat} == CUDNN_DATA_FLOAT && int{kHalf} == CUDNN_DATA_HALF && int{kInt32} == CUDNN_DATA_INT32 &&
              int{kBfloat16} == CUDNN_DATA_BFLOAT16 && int{kBoolean} == CUDNN_DATA_BOOLEAN);

static_assert(int{kPointwise} == CUDNN_BACKEND_POINTWISE_DESCRIPTOR &&
              int{kConvolution} == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR &&
              int{kEngine} == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
              int{kEngineConfig} == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR &&
              int{kEngineHeuristic} == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
              int{kPlan} == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
              int{kConvolutionForward} == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
              int{kConvolutionBackwardFilter} == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR &&
              int{kConvolutionBackwardData} == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR &&
              int{kOperationPointwise} == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
              int{kOperationGraph} == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR &&
              int{kVariantPack} == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR &&
              int{kTensor} == CUDNN_BACKEND_TENSOR_DESCRIPTOR && int{kMatmul} == CUDNN_BACKEND_MATMUL_DESCRIPTOR &&
              int{kOperationMatmul} == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR &&
              int{kReduction} == CUDNN_BACKEND_REDUCTION_DESCRIPTOR &&
              int{kOperationReduction} == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
              int{kOperationReshape} == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

static_assert(int{kTypeHandle} == CUDNN_TYPE_HANDLE && int{kTypeDataType} == CUDNN_TYPE_DATA_TYPE &&
              int{kTypeBoolean} == CUDNN_TYPE_BOOLEAN && int{kTypeInt64} == CUDNN_TYPE_INT64 &&
              int{kTypeFloat} == CUDNN_TYPE_FLOAT && int{kTypeVoidPointer} == CUDNN_TYPE_VOID_PTR &&
              int{kTypeConvolutionMode} == CUDNN_TYPE_CONVOLUTION_MODE &&
              int{kTypeHeuristicMode} == CUDNN_TYPE_HEUR_MODE && int{kTypeNumericalNote} == CUDNN_TYPE_NUMERICAL_NOTE &&
              int{kTypePointwiseMode} == CUDNN_TYPE_POINTWISE_MODE &&
              int{kTypeDescriptor} == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
              int{kTypeReductionOperator} == CUDNN_TYPE_REDUCTION_OPERATOR_TYPE && int{kTypeChar} == CUDNN_TYPE_CHAR);

static_assert(int{kPointwiseMode} == CUDNN_ATTR_POINTWISE_MODE &&
              int{kPointwisePrecision} == CUDNN_ATTR_POINTWISE_MATH_PREC &&
              int{kPointwiseAxis} == CUDNN_ATTR_POINTWISE_AXIS &&
              int{kConvolutionType} == CUDNN_ATTR_CONVOLUTION_COMP_TYPE &&
              int{kConvolutionMode} == CUDNN_ATTR_CONVOLUTION_CONV_MODE &&
              int{kConvolutionDilations} == CUDNN_ATTR_CONVOLUTION_DILATIONS &&
              int{kConvolutionStrides} == CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES &&
              int{kConvolutionPostPadding} == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS &&
              int{kConvolutionPrePadding} == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS &&
              int{kConvolutionSpatial} == CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);

static_assert(int{kHeuristicMode} == CUDNN_ATTR_ENGINEHEUR_MODE &&
              int{kHeuristicGraph} == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH &&
              int{kHeuristicResults} == CUDNN_ATTR_ENGINEHEUR_RESULTS &&
              int{kConfigEngine} == CUDNN_ATTR_ENGINECFG_ENGINE &&
              int{kPlanHandle} == CUDNN_ATTR_EXECUTION_PLAN_HANDLE &&
              int{kPlanConfig} == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG &&
              int{kPlanWorkspace} == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
              int{kGraphHandle} == CUDNN_ATTR_OPERATIONGRAPH_HANDLE &&
              int{kGraphOperations} == CUDNN_ATTR_OPERATIONGRAPH_OPS &&
              int{kEngineIndex} == CUDNN_ATTR_ENGINE_GLOBAL_INDEX &&
              int{kEngineNotes} == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);

static_assert(int{kForwardAlpha} == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA &&
              int{kForwardBeta} == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA &&
              int{kForwardConvolution} == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC &&
              int{kForwardW} == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W &&
              int{kForwardX} == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X &&
              int{kForwardY} == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y &&
              int{kDataAlpha} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA &&
              int{kDataBeta} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA &&
              int{kDataConvolution} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC &&
              int{kDataW} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W &&
              int{kDataDx} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX &&
              int{kDataDy} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY &&
              int{kFilterAlpha} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA &&
              int{kFilterBeta} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA &&
              int{kFilterConvolution} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC &&
              int{kFilterDw} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW &&
              int{kFilterX} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X &&
              int{kFilterDy} == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);

static_assert(
    int{kPointwiseDescriptor} == CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR &&
    int{kPointwiseX} == CUDNN_ATTR_OPERATION_POINTWISE_XDESC &&
    int{kPointwiseB} == CUDNN_ATTR_OPERATION_POINTWISE_BDESC &&
    int{kPointwiseY} == CUDNN_ATTR_OPERATION_POINTWISE_YDESC &&
    int{kPointwiseT} == CUDNN_ATTR_OPERATION_POINTWISE_TDESC && int{kMatmulType} == CUDNN_ATTR_MATMUL_COMP_TYPE &&
    int{kMatmulA} == CUDNN_ATTR_OPERATION_MATMUL_ADESC && int{kMatmulB} == CUDNN_ATTR_OPERATION_MATMUL_BDESC &&
    int{kMatmulC} == CUDNN_ATTR_OPERATION_MATMUL_CDESC && int{kMatmulDescriptor} == CUDNN_ATTR_OPERATION_MATMUL_DESC &&
    int{kReductionOperator} == CUDNN_ATTR_REDUCTION_OPERATOR && int{kReductionType} == CUDNN_ATTR_REDUCTION_COMP_TYPE &&
    int{kReductionX} == CUDNN_ATTR_OPERATION_REDUCTION_XDESC &&
    int{kReductionY} == CUDNN_ATTR_OPERATION_REDUCTION_YDESC &&
    int{kReductionDescriptor} == CUDNN_ATTR_OPERATION_REDUCTION_DESC &&
    int{kReshapeX} == CUDNN_ATTR_OPERATION_RESHAPE_XDESC && int{kReshapeY} == CUDNN_ATTR_OPERATION_RESHAPE_YDESC);

static_assert(int{kTensorAlignment} == CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT &&
              int{kTensorType} == CUDNN_ATTR_TENSOR_DATA_TYPE &&
              int{kTensorDimensions} == CUDNN_ATTR_TENSOR_DIMENSIONS &&
              int{kTensorStrides} == CUDNN_ATTR_TENSOR_STRIDES && int{kTensorId} == CUDNN_ATTR_TENSOR_UNIQUE_ID &&
              int{kTensorVirtual} == CUDNN_ATTR_TENSOR_IS_VIRTUAL &&
              int{kTensorByValue} == CUDNN_ATTR_TENSOR_IS_BY_VALUE &&
              int{kPackIds} == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS &&
              int{kPackPointers} == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS &&
              int{kPackWorkspace} == CUDNN_ATTR_VARIANT_PACK_WORKSPACE);

static_assert(int{kAdd} == CUDNN_POINTWISE_ADD && int{kMul} == CUDNN_POINTWISE_MUL &&
              int{kDiv} == CUDNN_POINTWISE_DIV && int{kSub} == CUDNN_POINTWISE_SUB &&
              int{kExp} == CUDNN_POINTWISE_EXP && int{kLog} == CUDNN_POINTWISE_LOG &&
              int{kIdentity} == CUDNN_POINTWISE_IDENTITY && int{kGreaterOrEqual} == CUDNN_POINTWISE_CMP_GE &&
              int{kGenerateIndex} == CUDNN_POINTWISE_GEN_INDEX && int{kSelect} == CUDNN_POINTWISE_BINARY_SELECT);

static_assert(int{kCrossCorrelation} == CUDNN_CROSS_CORRELATION && int{kModeA} == CUDNN_HEUR_MODE_A &&
              int{kModeFallback} == CUDNN_HEUR_MODE_FALLBACK && int{kReduceAdd} == CUDNN_REDUCE_TENSOR_ADD &&
              int{kReduceMax} == CUDNN_REDUCE_TENSOR_MAX && int{kNoteTensorCore} == CUDNN_NUMERICAL_NOTE_TENSOR_CORE &&
              int{kNoteDownConvert} == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);

// NOLINTNEXTLINE(readability-redundant-preprocessor): not the file that is asked for above
#if __has_include(<cudnn_version.h>)
#include <cudnn_version.h>
#if CUDNN_VERSION >= 91400
static_assert(int{kDeviceProperties} == CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR &&
              int{kSdpaForward} == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR &&
              int{kHeuristicDevice} == CUDNN_ATTR_ENGINEHEUR_DEVICEPROP &&
              int{kPlanDevice} == CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP &&
              int{kDeviceJson} == CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION &&
              int{kSdpaForwardQ} == CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC &&
              int{kSdpaForwardK} == CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC &&
              int{kSdpaForwardV} == CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC &&
              int{kSdpaForwardO} == CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC &&
              int{kSdpaForwardStats} == CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC &&
              int{kSdpaForwardScale} == CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
#endif
#endif

} // namespace stagecraft::gpu::dnn
#endif
