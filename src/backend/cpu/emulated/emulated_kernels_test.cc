// Holds the code of the AVX-512, AMX and AVX-VNNI kernels to the scalar reference on machines that cannot run
// it natively. What the emulation cannot show is whether the compiler and the processor do what the
// intrinsics promise; where there is AVX-512, kernels_test.cc does.
#include "backend/cpu/emulated/emulated_tables.h"
#include "backend/cpu/kernels_test.h"

namespace tercet::backend {
namespace {

std::vector<NamedKernels> emulated_tables() {
  if (!isa_available(Isa::kAvx2)) {
    std::printf("AVX-512, AMX and AVX-VNNI are not emulated here: that takes AVX2, FMA and F16C\n");
    return {};
  }
  return {{"avxvnni", &emulated_avxvnni_kernels()},
          {"avx512", &emulated_avx512_kernels()},
          {"avx512vnni", &emulated_avx512vnni_kernels()},
          {"avx512vnni_fast_mul", &emulated_avx512vnni_fast_mul_kernels()},
          {"amx", &emulated_amx_kernels()}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KernelsTest);
INSTANTIATE_TEST_SUITE_P(Emulated, KernelsTest, testing::ValuesIn(emulated_tables()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tercet::backend
