#include "engine/llm.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/memory_info.h"

namespace tercet::engine {
namespace {

constexpr int kMinContext = 512;
// Of a prompt whose log-probabilities are wanted, in one step: logits of 128 rows are 78 MB where the
// vocabulary has 152,000 tokens.
constexpr int kScoredRows = 128;

// Bytes of KV that one more token of context takes, windows aside.
int64_t kv_bytes_per_token(const model::DecoderSpec& spec, backend::KvType type) {
  int64_t bytes = 0;
  for (int layer = 0; layer < spec.num_layers(); ++layer)
    if (spec.layers[static_cast<size_t>(layer)].window == 0)
      bytes += backend::kv_block_bytes(spec.kv_layer(layer), type) / kv::kBlockTokens;
  return bytes;
}

Result<int64_t> packed_weight_bytes(const model::Package& package, const backend::Device& device) {
  int64_t bytes = 0;
  for (const model::TensorInfo& tensor : package.tensors.tensors()) {
    const auto packed =
        device.packed_bytes(tensor.type, tensor.outputs() * tensor.experts(), tensor.inputs());
    if (!packed.ok())
      return Error{packed.error().code, packed.error().message, package.path + ": " + tensor.name};
    bytes += *packed;
  }
  return bytes;
}

struct Context {
  int length = 0;
  int num_kv_tokens = 0;
  std::string note;
};

// Tokens of KV that half of the memory that is free beside the weights holds.
int64_t affordable_tokens(const model::Package& package, backend::KvType type, int64_t weight_bytes) {
  const int64_t per_token = std::max<int64_t>(1, kv_bytes_per_token(package.spec, type));
  return std::max<int64_t>(0, available_memory() - weight_bytes) / 2 / per_token;
}

Result<Context> choose_length(const model::Package& package, const LlmOptions& options, int64_t fits) {
  const int trained = package.spec.context_length;
  if (options.context_length > 0) {
    Context context{options.context_length, 0, ""};
    if (context.length > trained)
      context.note =
          fmt::format("{} is more than the {} that the model was trained for", context.length, trained);
    return context;
  }
  if (fits >= trained) return Context{trained, 0, ""};
  if (fits < kMinContext)
    return Error{ErrorCode::kExhausted,
                 fmt::format("half of the memory that is free beside the weights holds a context of {} "
                             "tokens, too few for {}; "
                             "-c sets a smaller one",
                             fits, kMinContext),
                 package.path};
  const int length = static_cast<int>(fits / kv::kBlockTokens * kv::kBlockTokens);
  return Context{length, 0, fmt::format("of the model's {}; half of the free memory holds no more", trained)};
}

Result<Context> choose_context(const model::Package& package, const LlmOptions& options,
                               int64_t weight_bytes) {
  const int64_t fits = affordable_tokens(package, options.kv_type, weight_bytes);
  TERCET_ASSIGN(Context context, choose_length(package, options, fits));
  const int64_t wanted = options.num_kv_tokens > 0
                             ? options.num_kv_tokens
                             : std::min(int64_t{context.length} * options.num_sequences, fits);
  context.num_kv_tokens = static_cast<int>(std::clamp<int64_t>(wanted, context.length, 1 << 30));
  return context;
}

}  // namespace

Result<std::unique_ptr<Llm>> Llm::load(const std::string& path, const LlmOptions& options,
                                       const model::LoadProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  auto llm = std::unique_ptr<Llm>(new Llm());
  TERCET_ASSIGN(model::Package package, model::open_package(path, options.package));
  llm->package_ = std::make_unique<model::Package>(std::move(package));
  llm->device_ = backend::make_cpu_device(options.device);
  llm->threads_ = std::make_unique<ThreadPool>(options.num_threads > 0 ? options.num_threads : usable_cpus(),
                                               options.pin_threads);
  TERCET_ASSIGN(const int64_t weight_bytes, packed_weight_bytes(*llm->package_, *llm->device_));
  TERCET_ASSIGN(const Context context, choose_context(*llm->package_, options, weight_bytes));
  TERCET_ASSIGN(model::DecoderWeights weights,
                model::load_weights(llm->package_->spec, llm->package_->tensors, *llm->device_,
                                    *llm->threads_, progress));
  llm->stats_.weight_bytes = weights.bytes;
  llm->decoder_ = std::make_unique<model::Decoder>(llm->package_->spec, std::move(weights));
  // The metadata has been read too.
  llm->package_->tensors.release_all();

  EngineOptions engine;
  engine.context_length = context.length;
  engine.num_kv_tokens = context.num_kv_tokens;
  engine.kv_type = options.kv_type;
  engine.scheduler.max_sequences = std::max(options.num_sequences, 1);
  engine.scheduler.policy = options.policy;
  engine.scheduler.max_queue = options.max_queue;
  engine.scheduler.prefill_budget = options.prefill_chunk;
  engine.scheduler.decode_budget = engine.scheduler.max_sequences;
  engine.scheduler.token_budget = options.prefill_chunk + engine.scheduler.decode_budget;
  engine.scheduler.max_wanted_rows = engine.scheduler.decode_budget + kScoredRows;
  TERCET_ASSIGN(llm->engine_, Engine::create(*llm->decoder_, llm->package_->tokenizer, *llm->device_,
                                             *llm->threads_, engine));
  llm->kv_type_ = options.kv_type;
  llm->stats_.kv_bytes = llm->engine_->kv_bytes();
  llm->stats_.context_note = context.note;
  llm->stats_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return llm;
}

}  // namespace tercet::engine
