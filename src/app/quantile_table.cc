#include "app/quantile_table.h"

#include <fmt/format.h>

namespace tercet::app {

void print_quantile_head() {
  fmt::print("{:<16}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "", "mean", "p50", "p90", "p95", "p99");
}

void print_quantiles(const char* name, const bench::Quantiles& q, double unit, const char* unit_name) {
  fmt::print("{:<16}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}  {}\n", name, q.mean / unit, q.p50 / unit,
             q.p90 / unit, q.p95 / unit, q.p99 / unit, unit_name);
}

nlohmann::json to_json(const bench::Quantiles& q) {
  return {{"mean", q.mean}, {"p50", q.p50}, {"p90", q.p90}, {"p95", q.p95}, {"p99", q.p99}};
}

}  // namespace tercet::app
