// The names under which each library and each of its functions is found.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/cublaslt.hpp"
#include "calibrate/gpu/cudnn.hpp"
#include "calibrate/gpu/nccl.hpp"

namespace stagecraft::gpu {

CublasLt open_cublaslt(const std::vector<std::string>& folders) {
  CublasLt lt;
  lt.library = SharedLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, folders);
  lt.library.load(lt.version, "cublasLtGetVersion");
  lt.library.load(lt.create, "cublasLtCreate");
  lt.library.load(lt.description_create, "cublasLtMatmulDescCreate");
  lt.library.load(lt.description_destroy, "cublasLtMatmulDescDestroy");
  lt.library.load(lt.description_set, "cublasLtMatmulDescSetAttribute");
  lt.library.load(lt.layout_create, "cublasLtMatrixLayoutCreate");
  lt.library.load(lt.layout_destroy, "cublasLtMatrixLayoutDestroy");
  lt.library.load(lt.layout_set, "cublasLtMatrixLayoutSetAttribute");
  lt.library.load(lt.preference_create, "cublasLtMatmulPreferenceCreate");
  lt.library.load(lt.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  lt.library.load(lt.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  lt.library.load(lt.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  lt.library.load(lt.config, "cublasLtMatmulAlgoConfigGetAttribute");
  lt.library.load(lt.matmul, "cublasLtMatmul");
  return lt;
}

Cudnn open_cudnn(const std::vector<std::string>& folders) {
  // cuDNN looks for these by their bare names; one that is open already is found.
  SharedLibrary::open({"libnvrtc.so.13", "libnvrtc.so.12"}, folders);
  SharedLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12"}, folders);
  Cudnn dnn;
  dnn.library = SharedLibrary::open({"libcudnn.so.9", "libcudnn.so"}, folders);
  dnn.library.load(dnn.version, "cudnnGetVersion");
  dnn.library.load(dnn.error_string, "cudnnGetErrorString");
  dnn.library.load(dnn.last_error, "cudnnGetLastErrorString");
  dnn.library.load(dnn.create, "cudnnCreate");
  dnn.library.load(dnn.set_stream, "cudnnSetStream");
  dnn.library.load(dnn.descriptor_create, "cudnnBackendCreateDescriptor");
  dnn.library.load(dnn.descriptor_destroy, "cudnnBackendDestroyDescriptor");
  dnn.library.load(dnn.finalize, "cudnnBackendFinalize");
  dnn.library.load(dnn.set, "cudnnBackendSetAttribute");
  dnn.library.load(dnn.get, "cudnnBackendGetAttribute");
  dnn.library.load(dnn.execute, "cudnnBackendExecute");
  return dnn;
}

Nccl open_nccl(const std::vector<std::string>& folders) {
  Nccl nccl;
  nccl.library = SharedLibrary::open({"libnccl.so.2", "libnccl.so"}, folders);
  nccl.library.load(nccl.version, "ncclGetVersion");
  nccl.library.load(nccl.error_string, "ncclGetErrorString");
  nccl.library.load(nccl.create_all, "ncclCommInitAll");
  nccl.library.load(nccl.destroy, "ncclCommDestroy");
  nccl.library.load(nccl.group_start, "ncclGroupStart");
  nccl.library.load(nccl.group_end, "ncclGroupEnd");
  nccl.library.load(nccl.all_reduce, "ncclAllReduce");
  nccl.library.load(nccl.all_gather, "ncclAllGather");
  nccl.library.load(nccl.reduce_scatter, "ncclReduceScatter");
  nccl.library.load(nccl.broadcast, "ncclBroadcast");
  nccl.library.load(nccl.send, "ncclSend");
  nccl.library.load(nccl.receive, "ncclRecv");
  return nccl;
}

} // namespace stagecraft::gpu
