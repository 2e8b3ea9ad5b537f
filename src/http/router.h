// Router: from method and path to a function. It checks API keys and answers what no route does: preflight
// requests of browsers, 404 and 405.
#pragma once

#include <string>
#include <vector>

#include "http/message.h"

namespace tercet::http {

struct Route {
  std::string method;  // a GET answers HEAD too
  std::string path;    // one that ends in "/*" takes every path below
  Handler handle;
  bool is_public = false;  // without an API key
};

// With `api_keys`, routes that are not public want one of them: "Authorization: Bearer KEY", "x-api-key: KEY"
// or "api-key: KEY". The time of the comparison does not depend on the keys' contents.
Handler route(std::vector<Route> routes, const std::vector<std::string>& api_keys);

}  // namespace tercet::http
