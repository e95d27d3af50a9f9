// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/device/cublaslt.hpp"

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

} // namespace stagecraft::gpu
