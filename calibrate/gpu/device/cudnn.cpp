// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/cudnn.hpp"

namespace stagecraft::gpu {

Cudnn open_cudnn(const std::vector<std::string>& folders) {
  // cuDNN opens these by their bare names; it finds them if they are open already.
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

} // namespace stagecraft::gpu
