#include "bench/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

namespace tercet::bench {
namespace {

using Json = nlohmann::json;
using Clock = http::Client::Clock;

constexpr std::chrono::milliseconds kTick{100};
constexpr size_t kMaxErrorText = 200;  // of a server's message

http::Request post(const LoadTarget& target, const char* method, const char* route, std::string body) {
  http::Request request{method, target.path + route, {{"Content-Type", "application/json"}}, std::move(body)};
  if (!target.api_key.empty()) request.headers.emplace_back("Authorization", "Bearer " + target.api_key);
  return request;
}

// The text of {"error": {"message": ...}} or {"error": ...}, as servers write it.
std::string error_text(const Json& object) {
  const Json error = object.value("error", Json());
  const Json message = error.is_object() ? error.value("message", Json()) : error;
  return (message.is_string() ? message.get<std::string>() : object.dump()).substr(0, kMaxErrorText);
}

// Whether a choice of a stream's event brings text.
bool has_text(const Json& choice) {
  const auto text = choice.find("text");
  return text != choice.end() && text->is_string() && !text->get_ref<const std::string&>().empty();
}

int count_of(const Json& usage, const char* key) {
  const auto found = usage.find(key);
  return found != usage.end() && found->is_number_unsigned() ? found->get<int>() : 0;
}

class Load {
 public:
  Load(const LoadTarget& target, const LoadPlan& plan, const std::function<bool(const LoadProgress&)>& go_on)
      : target_(target), plan_(plan), go_on_(go_on), answers_(plan.requests.size()) {}

  LoadResult run();

 private:
  struct Answer {
    LoadRecord record;
    int status = 0;
    bool done = false;     // [DONE] came
    std::string received;  // of a stream the line that has begun, else everything
    double last_text = 0;
  };

  double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  void send(size_t index);
  void send_next();
  void send_due();
  void receive(Answer& answer, std::string_view data) const;
  void event(Answer& answer, std::string_view data) const;
  void end(Answer& answer, const Status& status);
  void tick();

  const LoadTarget& target_;
  const LoadPlan& plan_;
  const std::function<bool(const LoadProgress&)>& go_on_;
  std::vector<Answer> answers_;  // [requests]
  http::Client client_{target_.origin, target_.timeout};
  Clock::time_point begin_ = Clock::now();
  size_t num_sent_ = 0;
  LoadProgress progress_;
};

void Load::send(size_t index) {
  ++num_sent_;
  ++progress_.num_running;
  Answer& answer = answers_[index];
  answer.record.start = plan_.clients > 0 ? now() : plan_.requests[index].start;
  const Json body = {{"model", target_.model},
                     {"prompt", plan_.prompt(index)},
                     {"max_tokens", plan_.requests[index].new_tokens},
                     {"temperature", 0},
                     {"ignore_eos", true},
                     {"stream", true},
                     {"stream_options", {{"include_usage", true}}}};
  client_.send(post(target_, "POST", "/completions", body.dump()),
               {[&answer](int status) { answer.status = status; },
                [this, &answer](std::string_view data) { receive(answer, data); },
                [this, &answer](const Status& status) { end(answer, status); }});
}

// A client of the closed loop.
void Load::send_next() {
  if (num_sent_ < plan_.requests.size()) send(num_sent_);
}

// What the open loop has to send by now.
void Load::send_due() {
  while (num_sent_ < plan_.requests.size() && plan_.requests[num_sent_].start <= now()) send(num_sent_);
  if (num_sent_ == plan_.requests.size()) return;
  const std::chrono::duration<double> start(plan_.requests[num_sent_].start);
  client_.call_at(begin_ + std::chrono::duration_cast<Clock::duration>(start) + std::chrono::microseconds(1),
                  [this] { send_due(); });
}

void Load::receive(Answer& answer, std::string_view data) const {
  answer.received += data;
  if (answer.status != 200) return;
  size_t begin = 0;
  for (size_t end; (end = answer.received.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line(answer.received.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
    event(answer, line);
  }
  answer.received.erase(0, begin);
}

void Load::event(Answer& answer, std::string_view data) const {
  LoadRecord& record = answer.record;
  if (data == "[DONE]") answer.done = true;
  if (answer.done) return;
  const Json object = Json::parse(data, nullptr, false);
  if (!object.is_object()) {
    record.error = "an event that is no JSON object";
  } else if (object.contains("error")) {
    record.error = "in a stream: " + error_text(object);
  } else {
    if (const auto usage = object.find("usage"); usage != object.end() && usage->is_object()) {
      record.prompt_tokens = count_of(*usage, "prompt_tokens");
      record.new_tokens = count_of(*usage, "completion_tokens");
      const auto details = usage->find("prompt_tokens_details");
      if (details != usage->end()) record.cached_tokens = count_of(*details, "cached_tokens");
    }
    const auto choices = object.find("choices");
    if (choices == object.end() || !choices->is_array() || !std::ranges::any_of(*choices, has_text)) return;
    const double time = now();
    record.first_token == 0 ? void(record.first_token = time)
                            : record.gaps.push_back(time - answer.last_text);
    answer.last_text = time;
  }
}

void Load::end(Answer& answer, const Status& status) {
  LoadRecord& record = answer.record;
  record.ended = true;
  record.end = now();
  if (!status.ok()) {
    record.error = status.error().message;
  } else if (answer.status != 200) {
    const Json body = Json::parse(answer.received, nullptr, false);
    record.error =
        fmt::format("{}: {}", answer.status, body.is_object() ? error_text(body) : "no JSON in the answer");
  } else if (record.error.empty() && !answer.done) {
    record.error = "a stream without [DONE]";
  }
  if (record.first_token == 0) record.first_token = record.end;  // an answer without text
  answer.received = {};
  --progress_.num_running;
  ++progress_.num_ended;
  if (plan_.clients > 0) send_next();
}

void Load::tick() {
  const bool ended = progress_.num_ended == static_cast<int>(plan_.requests.size());
  if (!go_on_(progress_) || ended) return client_.stop();
  client_.call_at(Clock::now() + kTick, [this] { tick(); });
}

LoadResult Load::run() {
  begin_ = Clock::now();
  for (int i = 0; i < plan_.clients; ++i) send_next();
  if (plan_.clients == 0) send_due();
  tick();
  client_.run();
  LoadResult result{target_.model, {}, 0};
  const bool stopped = progress_.num_ended < static_cast<int>(plan_.requests.size());
  for (size_t i = 0; i < num_sent_; ++i) {
    const LoadRecord& record = answers_[i].record;
    result.seconds = std::max(result.seconds, stopped ? now() : record.end);
    result.records.push_back(record);
  }
  return result;
}

Result<std::string> first_model(const LoadTarget& target) {
  http::Client client(target.origin, target.timeout);
  int status = 0;
  std::string body;
  Status ended;
  client.send(post(target, "GET", "/models", ""),
              {[&](int value) { status = value; }, [&](std::string_view data) { body += data; },
               [&](const Status& value) { ended = value; }});
  client.run();
  const std::string where =
      fmt::format("{}:{}{}/models", target.origin.host, target.origin.port, target.path);
  if (!ended.ok()) return Error{ErrorCode::kIo, ended.error().message, where};
  const Json object = Json::parse(body, nullptr, false);
  if (status != 200) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: {}", status, object.is_object() ? error_text(object) : "no JSON"), where};
  }
  try {
    return object.at("data").at(0).at("id").get<std::string>();
  } catch (const Json::exception&) {
    return Error{ErrorCode::kCorrupt, "lists no model: is it an OpenAI-compatible server?", where};
  }
}

}  // namespace

std::vector<LoadRequest> poisson_requests(int count, double rate, int new_tokens, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<LoadRequest> requests;
  double time = 0;
  for (int i = 0; i < count; ++i) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;  // below 1
    if (i > 0) time -= std::log(1 - uniform) / rate;
    requests.push_back({time, new_tokens});
  }
  return requests;
}

Result<LoadResult> run_load(LoadTarget target, const LoadPlan& plan,
                            const std::function<bool(const LoadProgress&)>& go_on) {
  if (target.model.empty()) {
    TERCET_ASSIGN(target.model, first_model(target));
  }
  return Load(target, plan, go_on).run();
}

Quantiles quantiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const auto size = static_cast<double>(values.size());
  const auto at = [&](double part) { return values[static_cast<size_t>(std::ceil(part * size)) - 1]; };
  double sum = 0;
  for (const double value : values) sum += value;
  return {sum / size, at(0.5), at(0.9), at(0.95), at(0.99)};
}

LoadSummary summarize(const LoadResult& result, const LoadObjectives& objectives) {
  LoadSummary summary;
  std::vector<double> first_token, between_tokens, per_token, whole;
  const auto meets = [](double value, double objective) { return objective == 0 || value <= objective; };
  for (const LoadRecord& record : result.records) {
    summary.num_unfinished += !record.ended;
    if (!record.error.empty()) ++summary.errors[record.error];
    if (!record.completed()) continue;
    ++summary.num_completed;
    summary.prompt_tokens += record.prompt_tokens;
    summary.cached_tokens += record.cached_tokens;
    summary.new_tokens += record.new_tokens;
    first_token.push_back(record.first_token - record.start);
    whole.push_back(record.end - record.start);
    between_tokens.insert(between_tokens.end(), record.gaps.begin(), record.gaps.end());
    if (record.new_tokens > 1) per_token.push_back(record.per_token());
    summary.num_good +=
        meets(first_token.back(), objectives.first_token) && meets(record.per_token(), objectives.per_token);
  }
  summary.first_token = quantiles(std::move(first_token));
  summary.between_tokens = quantiles(std::move(between_tokens));
  summary.per_token = quantiles(std::move(per_token));
  summary.whole = quantiles(std::move(whole));
  return summary;
}

}  // namespace tercet::bench
