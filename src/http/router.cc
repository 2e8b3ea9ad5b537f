#include "http/router.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "http/api_error.h"

namespace tercet::http {
namespace {

constexpr std::string_view kBearer = "bearer ";

std::string_view key_of(const Request& request) {
  const std::string_view authorization = request.header("authorization");
  const bool is_bearer =
      authorization.size() >= kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), authorization.begin(),
                 [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  if (is_bearer) return authorization.substr(kBearer.size());
  const std::string_view key = request.header("x-api-key");
  return key.empty() ? request.header("api-key") : key;
}

// Digests are of one length and tell nothing of the key; every key is compared to the end.
bool knows(const std::vector<Sha256Digest>& keys, std::string_view given) {
  const Sha256Digest digest = sha256(given);
  unsigned found = 0;
  for (const Sha256Digest& key : keys) {
    unsigned difference = 0;
    for (size_t i = 0; i < key.size(); ++i) difference |= static_cast<unsigned>(key[i] ^ digest[i]);
    found |= static_cast<unsigned>(difference == 0);
  }
  return found != 0;
}

bool matches(const Route& route, std::string_view path) {
  if (!route.path.ends_with("/*")) return route.path == path;
  const std::string_view prefix = std::string_view(route.path).substr(0, route.path.size() - 1);
  return path.starts_with(prefix) && path.size() > prefix.size();
}

Response preflight() {
  return {204,
          "",
          {{"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
           {"Access-Control-Allow-Headers", "*, Authorization, Content-Type, X-Api-Key"},
           {"Access-Control-Max-Age", "600"}},
          ""};
}

struct Router {
  std::vector<Route> routes;
  std::vector<Sha256Digest> keys;

  void operator()(const std::shared_ptr<Exchange>& exchange) const {
    const Request& request = exchange->request();
    if (request.method == "OPTIONS") return exchange->respond(preflight());
    const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
    std::string allowed;
    for (const Route& candidate : routes) {
      if (!matches(candidate, request.path)) continue;
      if (candidate.method != method) {
        allowed += (allowed.empty() ? "" : ", ") + candidate.method;
        continue;
      }
      if (!keys.empty() && !candidate.is_public && !knows(keys, key_of(request)))
        return refuse_key(*exchange);
      return candidate.handle(exchange);
    }
    ApiError error;
    error.status = allowed.empty() ? 404 : 405;
    error.message = allowed.empty()
                        ? fmt::format("there is no {} {}", request.method, request.path)
                        : fmt::format("{} takes {}, not {}", request.path, allowed, request.method);
    Response response = error_response(error);
    if (!allowed.empty()) response.headers.emplace_back("Allow", allowed);
    exchange->respond(std::move(response));
  }

  static void refuse_key(Exchange& exchange) {
    ApiError error;
    error.status = 401;
    error.message = "the API key is missing or wrong: give it as Authorization: Bearer KEY";
    error.code = "invalid_api_key";
    Response response = error_response(error);
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    exchange.respond(std::move(response));
  }
};

}  // namespace

Handler route(std::vector<Route> routes, const std::vector<std::string>& api_keys) {
  Router router{std::move(routes), {}};
  for (const std::string& key : api_keys) router.keys.push_back(sha256(key));
  return router;
}

}  // namespace tercet::http
