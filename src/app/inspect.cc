#include "app/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "app/escaped.h"
#include "app/inspected_file.h"
#include "app/progress.h"
#include "app/weight_check.h"

namespace tercet::app {
namespace {

using format::GgufEntry;
using format::GgufType;
using nlohmann::json;

constexpr size_t kShownItems = 6;         // of an array
constexpr size_t kShownStringBytes = 96;  // of a string
constexpr uint64_t kKvTokens = 1024;

struct TypeTotal {
  int64_t tensors = 0;
  int64_t elements = 0;
  uint64_t bytes = 0;

  double bits_per_weight() const {
    return elements > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(elements) : 0;
  }
};

struct Totals {
  std::map<std::string_view, TypeTotal> types;
  TypeTotal all;
};

struct Report {
  const InspectedFile& file;
  Totals totals;
  std::optional<uint64_t> kv_bytes;  // for kKvTokens tokens, in F16; every layer attends to all of them
  std::optional<WeightCheck> check;
};

Totals count_types(const InspectedFile& file) {
  Totals totals;
  for (const InspectedTensor& tensor : file.tensors) {
    for (TypeTotal* total : {&totals.types[tensor.type_name], &totals.all}) {
      ++total->tensors;
      total->elements += tensor.elements();
      total->bytes += tensor.data.size();
    }
  }
  return totals;
}

std::string shown_string(std::string_view text) {
  if (text.size() <= kShownStringBytes) return '"' + escaped(text) + '"';
  size_t end = kShownStringBytes;  // not within a character
  while (end > kShownStringBytes - 4 && (text[end] & 0xc0) == 0x80) --end;
  return fmt::format("\"{}\"... ({} bytes)", escaped(text.substr(0, end)), text.size());
}

std::vector<std::string> shown_items(const GgufEntry& entry, uint64_t limit) {
  std::vector<std::string> items;
  switch (entry.item_type) {
    case GgufType::kString:
      for (const auto item : format::decode_strings(entry, limit)) items.push_back(shown_string(item));
      return items;
    case GgufType::kFloat32:
      for (const double item : format::decode_floats(entry, limit))
        items.push_back(fmt::format("{}", static_cast<float>(item)));
      return items;
    case GgufType::kFloat64:
      for (const double item : format::decode_floats(entry, limit)) items.push_back(fmt::format("{}", item));
      return items;
    case GgufType::kBool:
      for (const int64_t item : format::decode_ints(entry, limit))
        items.emplace_back(item != 0 ? "true" : "false");
      return items;
    case GgufType::kUint64:
      for (const int64_t item : format::decode_ints(entry, limit))
        items.push_back(std::to_string(static_cast<uint64_t>(item)));
      return items;
    default:
      for (const int64_t item : format::decode_ints(entry, limit)) items.push_back(std::to_string(item));
      return items;
  }
}

std::string shown_value(const GgufEntry& entry) {
  if (!entry.is_array) return shown_items(entry, 1).front();
  const auto items = shown_items(entry, kShownItems);
  return fmt::format("[{}{}]", fmt::join(items, ", "), entry.count > kShownItems ? ", ..." : "");
}

std::string shown_type(const GgufEntry& entry) {
  const auto name = format::gguf_type_name(entry.item_type);
  return entry.is_array ? fmt::format("{}[{}]", name, entry.count) : std::string(name);
}

void print_type_total(std::ostream& out, std::string_view name, const TypeTotal& total) {
  out << fmt::format("  {:<8} {:>5} tensors  {:>14} weights  {:>9}  {:.2f} bits per weight\n", name,
                     total.tensors, total.elements, format_bytes(total.bytes), total.bits_per_weight());
}

void print_check(std::ostream& out, const WeightCheck& check) {
  out << "\nCheck\n";
  for (const NonFiniteTensor& tensor : check.bad) out << "  " << escaped(describe(tensor)) << "\n";
  out << fmt::format("  {} tensors read, {} with NaN or Inf\n", check.checked_tensors, check.bad.size());
  if (!check.skipped_types.empty())
    out << fmt::format("  not checked, these types hold no weights that can be read: {}\n",
                       fmt::join(check.skipped_types, ", "));
}

void print_text(std::ostream& out, const Report& report) {
  const InspectedFile& file = report.file;
  out << fmt::format("{}: {}{}, {} file{}, {}\n", escaped(file.path), file.format,
                     file.version == 0 ? "" : fmt::format(" version {}", file.version), file.num_shards,
                     file.num_shards == 1 ? "" : "s", format_bytes(file.file_bytes));
  out << fmt::format("\nMetadata ({})\n", file.metadata->entries().size());
  for (const GgufEntry& entry : file.metadata->entries())
    out << fmt::format("  {:<42} {:<14} {}\n", escaped(entry.key), shown_type(entry), shown_value(entry));
  out << fmt::format("\nTensors ({})\n", file.tensors.size());
  for (const InspectedTensor& tensor : file.tensors)
    out << fmt::format("  {:<32} {:<8} {:<20} {:>9}\n", escaped(tensor.name), tensor.type_name,
                       fmt::format("[{}]", fmt::join(tensor.shape, ", ")), format_bytes(tensor.data.size()));
  out << "\nTypes\n";
  for (const auto& [name, total] : report.totals.types) print_type_total(out, name, total);
  print_type_total(out, "all", report.totals.all);
  out << fmt::format("\nMemory to run it\n  weights   {:>9}\n", format_bytes(report.totals.all.bytes));
  out << fmt::format("  KV cache  {:>9} per {} tokens of context in F16\n",
                     report.kv_bytes ? format_bytes(*report.kv_bytes) : "unknown", kKvTokens);
  if (!file.notes.empty()) out << "\nNotes\n";
  for (const std::string& note : file.notes) out << "  " << note << "\n";
  if (report.check) print_check(out, *report.check);
}

template <class Items>
json json_items(const GgufEntry& entry, const Items& items) {
  if (!entry.is_array) return items.front();
  json array = json::array();
  for (const auto item : items) array.push_back(item);
  return array;
}

json json_value(const GgufEntry& entry) {
  switch (entry.item_type) {
    case GgufType::kString: return json_items(entry, format::decode_strings(entry));
    case GgufType::kFloat32:
    case GgufType::kFloat64: return json_items(entry, format::decode_floats(entry));
    case GgufType::kBool: {
      const auto ints = format::decode_ints(entry);
      return json_items(entry, std::vector<bool>(ints.begin(), ints.end()));
    }
    case GgufType::kUint64: {
      const auto ints = format::decode_ints(entry);
      return json_items(entry, std::vector<uint64_t>(ints.begin(), ints.end()));
    }
    default: return json_items(entry, format::decode_ints(entry));
  }
}

json json_total(const TypeTotal& total) {
  return {{"tensors", total.tensors},
          {"weights", total.elements},
          {"bytes", total.bytes},
          {"bits_per_weight", total.bits_per_weight()}};
}

json json_check(const WeightCheck& check) {
  json result = {{"checked_tensors", check.checked_tensors},
                 {"skipped_types", check.skipped_types},
                 {"non_finite", json::array()}};
  for (const NonFiniteTensor& tensor : check.bad)
    result["non_finite"].push_back({{"tensor", tensor.name},
                                    {"nan", tensor.nans},
                                    {"inf", tensor.infs},
                                    {"rows", tensor.rows},
                                    {"first_rows", tensor.first_rows}});
  return result;
}

void print_json(std::ostream& out, const Report& report) {
  const InspectedFile& file = report.file;
  json root = {{"path", file.path},
               {"format", file.format},
               {"version", file.version},
               {"shards", file.num_shards},
               {"file_bytes", file.file_bytes},
               {"metadata", json::object()},
               {"tensors", json::array()},
               {"types", json::object()},
               {"total", json_total(report.totals.all)},
               {"weight_bytes", report.totals.all.bytes},
               {"kv_bytes_per_1024_tokens_f16", nullptr},
               {"notes", file.notes}};
  for (const GgufEntry& entry : file.metadata->entries())
    root["metadata"][std::string(entry.key)] = json_value(entry);
  for (const InspectedTensor& tensor : file.tensors)
    root["tensors"].push_back({{"name", tensor.name},
                               {"type", tensor.type_name},
                               {"shape", tensor.shape},
                               {"bytes", tensor.data.size()},
                               {"shard", tensor.shard}});
  for (const auto& [name, total] : report.totals.types) root["types"][std::string(name)] = json_total(total);
  if (report.kv_bytes) root["kv_bytes_per_1024_tokens_f16"] = *report.kv_bytes;
  if (report.check) root["check"] = json_check(*report.check);
  out << root.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
}

}  // namespace

Status inspect(const InspectOptions& options, std::ostream& out) {
  TERCET_ASSIGN(const InspectedFile file, open_inspected(options.path));
  Report report{file, count_types(file), std::nullopt, std::nullopt};
  if (file.kv_bytes_per_token) report.kv_bytes = *file.kv_bytes_per_token * kKvTokens;
  if (options.check) {
    Progress progress("check", report.totals.all.bytes);
    report.check = check_weights(file, [&](uint64_t done) { progress.update(done); });
    progress.finish();
  }
  if (options.json) {
    print_json(out, report);
  } else {
    print_text(out, report);
  }
  if (!report.check || report.check->bad.empty()) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("{} tensor{} NaN or Inf, first {}", report.check->bad.size(),
                  report.check->bad.size() == 1 ? " has" : "s have", escaped(describe(report.check->bad[0]))),
      options.path};
}

}  // namespace tercet::app
