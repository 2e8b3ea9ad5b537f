// Quantiles as rows of a table, and as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/load.h"

namespace tercet::app {

void print_quantile_head();
// Seconds in units of `unit` seconds.
void print_quantiles(const char* name, const bench::Quantiles& quantiles, double unit, const char* unit_name);

nlohmann::json to_json(const bench::Quantiles& quantiles);

}  // namespace tercet::app
