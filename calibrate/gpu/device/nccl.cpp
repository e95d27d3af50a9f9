// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/nccl.hpp"

namespace stagecraft::gpu {

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
