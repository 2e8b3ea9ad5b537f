#include "backend/cpu/kernels_test.h"
#include "backend/cpu/isa/tables.h"

namespace tercet::backend {
namespace {

std::vector<NamedKernels> available_tables() {
  std::vector<NamedKernels> tables;
  for (Isa isa : kAllIsas)
    if (isa_available(isa)) tables.push_back({std::string(isa_name(isa)), &kernels(isa)});
  if (isa_available(Isa::kAvx512Vnni)) {  // kernels() is one of these
    tables.push_back({"avx512vnni_plain", &avx512vnni_kernels()});
    tables.push_back({"avx512vnni_fast_mul", &avx512vnni_fast_mul_kernels()});
  }
  return tables;
}

INSTANTIATE_TEST_SUITE_P(Isa, KernelsTest, testing::ValuesIn(available_tables()),
                         [](const auto& info) { return info.param.name; });

TEST(Isa, SaysWhatThisMachineCannotTest) {
  std::string missing;
  for (Isa isa : kAllIsas)
    if (!isa_available(isa)) missing += " " + std::string(isa_name(isa));
  std::printf("instruction sets not tested natively here:%s\n", missing.empty() ? " none" : missing.c_str());
}

}  // namespace
}  // namespace tercet::backend
