#include "bench/kernel_speed.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <random>

#include "backend/cpu/cpu_device.h"
#include "bench/bandwidth.h"

namespace tercet::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A weight of random bytes: the values are wild, and take as long as any.
Result<std::unique_ptr<backend::Weight>> random_weight(backend::Device& device, DType type, int64_t outputs,
                                                       int64_t inputs, ThreadPool& threads) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> data(static_cast<size_t>(dtype_row_bytes(type, inputs) * outputs / 8 + 1));
  for (uint64_t& word : data) word = random();
  backend::WeightSource source;
  source.name = dtype_name(type);
  source.type = type;
  source.outputs = outputs;
  source.inputs = inputs;
  source.data = std::as_bytes(std::span(data));
  return device.pack(source, threads);
}

}  // namespace

double peak_operations(backend::Isa isa, int num_threads) {
  const backend::Kernels& kernels = backend::kernels(isa);
  ThreadPool threads(num_threads);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    std::atomic<int64_t> operations{0};
    const auto start = Clock::now();
    threads.parallel_for(num_threads, 1, [&](int64_t begin, int64_t end, int) {
      for (; begin < end; ++begin) operations += 2 * kernels.multiply_adds(4'000'000);
    });
    best = std::max(best, static_cast<double>(operations.load()) / seconds_since(start));
  }
  return best;
}

Status measure_kernels(const KernelOptions& options, const std::function<void(const KernelSpeed&)>& report) {
  backend::CpuDeviceOptions device_options;
  device_options.isa = options.isa;
  const std::unique_ptr<backend::Device> device = backend::make_cpu_device(device_options);
  ThreadPool threads(options.num_threads);
  const std::unique_ptr<backend::Stream> stream = device->stream(threads);
  const std::unique_ptr<backend::Buffer> x_buffer = device->buffer(), y_buffer = device->buffer();
  TERCET_ASSIGN(const BandwidthProbe probe, BandwidthProbe::create(options.num_threads));
  for (const DType type : options.types) {
    const int64_t all_outputs = options.weight_bytes / dtype_row_bytes(type, options.inputs) / 16 * 16;
    for (const int rows : options.rows) {
      // Many rows are bound by arithmetic, so that a few outputs do.
      const int64_t outputs = rows > 64 ? std::min<int64_t>(all_outputs, 8960) : all_outputs;
      TERCET_ASSIGN(const std::unique_ptr<backend::Weight> weight,
                    random_weight(*device, type, outputs, options.inputs, threads));
      const backend::Matrix x = x_buffer->view(rows, options.inputs), y = y_buffer->view(rows, outputs);
      std::mt19937 random(2);
      std::normal_distribution<float> normal;
      std::generate(x.data, x.data + rows * options.inputs, [&] { return normal(random); });
      KernelSpeed speed{type,
                        rows,
                        std::numeric_limits<double>::infinity(),
                        static_cast<double>(weight->bytes()),
                        2.0 * static_cast<double>(rows) * static_cast<double>(outputs * options.inputs),
                        0};
      for (int i = 0; i < options.repetitions; ++i) {
        speed.read_bandwidth = std::max(speed.read_bandwidth, probe.measure());
        const backend::LinearTerm term[] = {{.weight = weight.get(), .out = y}};
        const auto start = Clock::now();
        stream->linear(x, term);
        speed.seconds = std::min(speed.seconds, seconds_since(start));
      }
      report(speed);
    }
  }
  return {};
}

}  // namespace tercet::bench
