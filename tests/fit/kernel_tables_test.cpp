// Foreign tables: columns by name, one device of several, and errors with their place.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "sim/base/system/file.hpp"
#include "tests/catch.hpp"

#include "calibrate/fit/kernel_tables.hpp"

namespace stagecraft::fit {
namespace {

namespace fs = std::filesystem;

// A table in a temporary file.
class File {
public:
  explicit File(const std::string& text)
      : path_(fs::temp_directory_path() /
              ("stagecraft-table-" + std::to_string(getpid()) + "-" + std::to_string(++made_) + ".csv")) {
    write_file(path_, text);
  }
  ~File() { fs::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  KernelTable read(TableKind kind, const std::string& device = "x100-sxm", const std::string& select = "") const {
    return read_kernel_table(kind, path_, device, select);
  }

private:
  fs::path path_;
  static inline int made_ = 0;
};

TEST_CASE("each kind of table becomes kernels", "[fit][tables]") {
  const KernelTable gemm = File("m,n,k,latency_ms\n128,256,512,0.25\n").read(TableKind::gemm);
  REQUIRE(gemm.kernels.size() == 1);
  CHECK(to_text(gemm.kernels[0].kernel) == "gemm forward bf16 batch=1 m=128 n=256 k=512");
  CHECK(gemm.kernels[0].time.value == Catch::Detail::Approx(0.25e-3));
  const KernelTable linear = File("latency_ms,k,n,m,b\n1,4,3,2,5\n").read(TableKind::linear);
  CHECK(to_text(linear.kernels[0].kernel) == "gemm forward fp32 batch=5 m=2 n=3 k=4");
  const KernelTable attention =
      File("batch_size,isl,num_heads,num_key_value_heads,head_dim,attn_dtype,kv_cache_dtype,latency\n"
           "2,512,16,4,128,bfloat16,bfloat16,1\n2,512,16,4,128,bfloat16,fp8,1\n")
          .read(TableKind::attention);
  CHECK(to_text(attention.kernels[0].kernel) ==
        "attention forward bf16 batch=2 sequence=512 heads=16 kv_heads=4 head_size=128 causal=1");
  CHECK(attention.kernels[0].variant.empty());
  CHECK(attention.kernels[1].variant == "fp8-cache");
  const KernelTable latent = File("num_heads,batch_size,isl,mla_dtype,kv_cache_dtype,latency_ms\n"
                                  "128,2,512,bfloat16,bfloat16,1\n128,2,512,bfloat16,fp8,1\n")
                                 .read(TableKind::attention);
  CHECK(to_text(latent.kernels[0].kernel) == // keys of 192 features and values of 128
        "attention forward bf16 batch=2 sequence=512 heads=128 kv_heads=128 head_size=160 causal=1");
  CHECK(latent.kernels[0].variant == "latent");
  CHECK(latent.kernels[1].variant == "latent-fp8-cache");
  const KernelTable windows = File("batch_size,isl,num_heads,head_dim,window_size,latency_ms\n"
                                   "1,512,8,64,128,1\n1,512,8,64,0,2\n")
                                  .read(TableKind::attention);
  REQUIRE(windows.kernels.size() == 1); // the other row's queries see 128 keys each
  CHECK(windows.kernels[0].time.value == Catch::Detail::Approx(2e-3));
  const KernelTable formats = File("m,n,k,dtype,latency_ms\n1,2,3,fp8_block,1\n1,2,3,nvfp4,1\n").read(TableKind::gemm);
  CHECK(to_text(formats.kernels[0].kernel) == "gemm forward fp8-block batch=1 m=1 n=2 k=3");
  CHECK(to_text(formats.kernels[1].kernel) == "gemm forward nvfp4 batch=1 m=1 n=2 k=3");
  const KernelTable image = File("batch,in_channels,out_channels,kernel,input_size,stride,padding,latency_ms\n"
                                 "8,3,64,7,224,2,3,1\n")
                                .read(TableKind::convolution);
  CHECK(to_text(image.kernels[0].kernel) ==
        "convolution forward fp32 n=8 c=3 h=224 w=224 k=64 r=7 s=7 stride=2 padding=3 groups=1");
  const KernelTable memory =
      File("op,rows,columns,latency_ms\nln,10,20,1\ntanh,10,20,1\n").read(TableKind::memory_bound);
  CHECK(to_text(memory.kernels[0].kernel) == "layer-norm forward fp32 rows=10 columns=20");
  CHECK(memory.kernels[1].variant == "tanh");
  const KernelTable nccl =
      File("collective,dtype,num_gpus,message_elements,latency_ms\nall_reduce,half,8,512,0.01\n").read(TableKind::nccl);
  REQUIRE(nccl.collectives.size() == 1);
  CHECK(nccl.collectives[0].op == "all-reduce");
  CHECK(nccl.collectives[0].size.value == 1024);
  const KernelTable bytes = File("collective,dtype,num_gpus,message_elements,latency_ms\nall_reduce,int8,8,512,0.01\n"
                                 "reduce_scatter,int8,8,512,0.01\nall_gather,int8,8,512,0.01\n")
                                .read(TableKind::nccl);
  REQUIRE(bytes.collectives.size() == 1); // sums of single bytes are left out
  CHECK(bytes.collectives[0].op == "all-gather");
}

TEST_CASE("the device of a table is the one named, or the most similar", "[fit][tables]") {
  const File file(
      "device,m,n,k,latency_ms\nTesla X100-PCIE-32GB,1,1,1,1\nNVIDIA X200,1,1,1,2\nNVIDIA X100 SXM,1,1,1,3\n");
  CHECK(file.read(TableKind::gemm, "x100-pcie-16gb").device == "Tesla X100-PCIE-32GB");
  CHECK(file.read(TableKind::gemm, "x100-sxm-80gb").kernels[0].time.value == Catch::Detail::Approx(3e-3));
  CHECK(file.read(TableKind::gemm, "x300", "NVIDIA X200").device == "NVIDIA X200");
  CHECK_THROWS_WITH(file.read(TableKind::gemm, "x100"),
                    Catch::Contains(":1:1: the table has several devices, and 'x100'"));
  CHECK_THROWS_WITH(file.read(TableKind::gemm, "x300"), Catch::Contains("allowed with --select: Tesla X100"));
  CHECK_THROWS_WITH(file.read(TableKind::gemm, "x100", "NVIDIA X20"), Catch::Contains("did you mean 'NVIDIA X200'"));
  CHECK(File("device,m,n,k,latency_ms\nother,1,1,1,1\n").read(TableKind::gemm).device == "other"); // the only one
  CHECK_THROWS_WITH(File("m,n,k,latency_ms\n1,1,1,1\n").read(TableKind::gemm, "x", "y"),
                    Catch::Contains("no column 'device'"));
}

TEST_CASE("a table with impossible values is refused with its place", "[fit][tables]") {
  const auto gemm = [](const std::string& row) { return File("m,n,k,latency_ms\n" + row).read(TableKind::gemm); };
  CHECK_THROWS_WITH(gemm("0,1,1,1\n"), Catch::Contains(".csv:2:1: "));
  CHECK_THROWS_WITH(gemm("1,-1,1,1\n"), Catch::Contains(".csv:2:3: "));
  CHECK_THROWS_WITH(gemm("1,1,1,-1\n"), Catch::Contains(".csv:2:7: "));
  CHECK_THROWS_WITH(gemm("1,1,1,0\n"), Catch::Contains(".csv:2:7: a time of 0"));
  CHECK_THROWS_WITH(gemm("1,1,1,nan\n"), Catch::Contains(".csv:2:7: "));
  CHECK_THROWS_WITH(gemm("65536,65536,65536,0.001\n"), Catch::Contains("allowed: at most 1e17 FLOP/s"));
  CHECK_THROWS_WITH(gemm(""), Catch::Contains("no rows"));
  CHECK_THROWS_WITH(File("m,n,latency_ms\n1,1,1\n").read(TableKind::gemm), Catch::Contains("no column 'k'"));
  CHECK_THROWS_WITH(File("m,n,k\n1,1,1\n").read(TableKind::gemm), Catch::Contains("no column 'latency_ms'"));
  CHECK_THROWS_WITH(File("op,rows,columns,latency_ms\nsing,1,1,1\n").read(TableKind::memory_bound),
                    Catch::Contains("unknown operator 'sing'"));
  CHECK_THROWS_WITH(
      File("batch,in_channels,out_channels,kernel,input_size,stride,padding,latency_ms\n1,1,1,7,5,1,0,1\n")
          .read(TableKind::convolution),
      Catch::Contains("the window is larger than the padded image"));
}

} // namespace
} // namespace stagecraft::fit
