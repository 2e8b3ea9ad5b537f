// libFuzzer target: what hf_config_fuzz.h says of any input.
#include "model/hf_config_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tercet::model::run_hf_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
