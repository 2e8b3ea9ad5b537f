// Engine: the step loop. It takes requests, and every step() is `schedule, run, commit`: the scheduler says
// which tokens of which sequences to run, the decoder runs them, each sequence's logits become a token, and
// the token is committed (stop strings, end tokens, length, in this order) before the next step.
//
// What a request gets depends on the request alone: not on what else is in the batch, on chunking, caching or
// preemption.
//
// One owner thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/generator.h"
#include "kv/kv_manager.h"
#include "model/decoder.h"
#include "sample/sampler.h"
#include "sched/scheduler.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace tercet::engine {

struct EngineOptions {
  int context_length = 0;  // tokens of the longest sequence, prompt and answer together
  int num_kv_tokens = 0;   // tokens that the pool of full attention holds; at least context_length
  backend::KvType kv_type = backend::KvType::kF16;
  bool prefix_caching = true;
  sched::SchedulerOptions scheduler;
};

// Everything besides the tokens that decides the contents of a KV block. `rope_variant`: of the sequence.
std::string kv_salt(const EngineOptions& options, int rope_variant);

class Engine final : public core::Generator {
 public:
  // `decoder`, `device` and `threads` outlive the engine.
  static Result<std::unique_ptr<Engine>> create(const model::Decoder& decoder,
                                                const text::Tokenizer& tokenizer, backend::Device& device,
                                                ThreadPool& threads, const EngineOptions& options);

  // Computes one block of tokens and forgets it, so that the first request does not wait for memory to be
  // mapped. Before any request only.
  Status warm_up();

  Status add(core::Request request) override;
  void abort(uint64_t request_id) override;
  bool busy() const override { return !sequences_.empty() || !pending_events_.empty(); }
  Result<std::vector<core::TokenEvent>> step() override;

  int context_length() const { return options_.context_length; }
  int64_t kv_bytes() const { return store_->bytes(); }
  core::GeneratorStats stats() const override;

 private:
  // A request that has not ended, with all that its next token depends on besides the model: values that can
  // be copied, rewound and handed off.
  struct Sequence {
    core::Request request;
    uint64_t seed = 0;
    sample::SamplerState sampler{};
    text::Detokenizer detokenizer;
    text::StopMatcher stop_matcher{};
    int num_output_tokens = 0;
    int64_t text_size = 0;  // bytes that the detokenizer gave
    int num_cached_tokens = 0;
    std::vector<float> hidden_sum{};  // [dim] of the rows that its embedding is made of, in their order
  };

  Engine(const model::Decoder& decoder, const text::Tokenizer& tokenizer, backend::Device& device,
         ThreadPool& threads, const EngineOptions& options);

  void divide_wanted_rows(sched::StepPlan& plan) const;
  Status run(const sched::StepPlan& plan);
  std::span<const float> logits_of(const sched::StepPlan& plan, int row) const;
  void pool(const sched::StepPlan& plan, const sched::PlannedSequence& planned, Sequence& sequence) const;
  Status score_prompt(const sched::StepPlan& plan, const sched::PlannedSequence& planned,
                      std::vector<core::TokenEvent>& events) const;
  sched::SequenceResult commit(const sched::StepPlan& plan, const sched::PlannedSequence& planned,
                               std::vector<core::TokenEvent>& events);
  void commit_token(Sequence& sequence, core::TokenId token, core::TokenEvent& event);
  std::vector<core::TokenId> banned_tokens(const Sequence& sequence) const;
  void finish(Sequence& sequence, core::FinishReason reason, core::TokenEvent& event);
  void finish_prompt(Sequence& sequence, core::TokenEvent& event);
  void fail(uint64_t request_id, const Error& error, std::vector<core::TokenEvent>& events);
  sched::Microseconds now() const;

  const model::Decoder& decoder_;
  text::Tokenizer tokenizer_;
  EngineOptions options_;
  kv::KvManager kv_;
  sched::Scheduler scheduler_;
  std::unique_ptr<backend::KvStore> store_;
  model::DecoderContext context_;
  std::map<uint64_t, Sequence> sequences_;
  std::vector<core::TokenEvent> pending_events_;  // of aborts, handed out by the next step
  std::vector<float> logits_;                     // of the step's wanted rows
  std::vector<float> hidden_;                     // and its hidden rows
  sample::Scratch scratch_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tercet::engine
