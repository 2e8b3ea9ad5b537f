#include "http/client.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <optional>
#include <utility>
#include <variant>

namespace tercet::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket>;
using Message = bhttp::request<bhttp::string_body>;

// As in the server: no temporaries with destructors in co_await expressions.
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

Error failure(const char* what, const error_code& error) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, error.message()), ""};
}

Message to_message(Request request, const Origin& origin) {
  Message message(bhttp::string_to_verb(request.method), request.path, 11);
  const bool is_ipv6 = origin.host.find(':') != std::string::npos;
  const std::string host = is_ipv6 ? "[" + origin.host + "]" : origin.host;
  message.set(bhttp::field::host, fmt::format("{}:{}", host, origin.port));
  message.set(bhttp::field::user_agent, "tercet");
  for (const auto& [name, value] : request.headers) message.set(name, value);
  message.keep_alive(false);
  message.body() = std::move(request.body);
  message.prepare_payload();
  return message;
}

template <class Stream>
awaitable<Status> exchange(Stream& stream, const Message& message, const Reply& reply) {
  const auto [write_error, written] = co_await bhttp::async_write(stream, message, kAwait);
  if (write_error) co_return failure("cannot send", write_error);
  beast::flat_buffer buffer;
  bhttp::response_parser<bhttp::string_body> parser;
  parser.body_limit(boost::none);
  const auto [head_error, head_size] = co_await bhttp::async_read_header(stream, buffer, parser, kAwait);
  if (head_error) co_return failure("no answer", head_error);
  reply.on_head(static_cast<int>(parser.get().result_int()));
  while (!parser.is_done()) {
    const auto [error, size] = co_await bhttp::async_read_some(stream, buffer, parser, kAwait);
    const std::string data = std::exchange(parser.get().body(), {});
    if (!data.empty()) reply.on_data(data);
    if (error) co_return failure("the answer broke off", error);
  }
  co_return Status();
}

}  // namespace

struct Client::Impl {
  Impl(Origin to, std::chrono::milliseconds patience) : origin(std::move(to)), timeout(patience) {
    if (!origin.tls) return;
    tls.emplace(asio::ssl::context::tls_client);
    error_code ignored;  // without trusted certificates every handshake fails, and says so
    tls->set_default_verify_paths(ignored);
  }

  awaitable<Status> connect_and_ask(const Message& message, const Reply& reply);
  awaitable<void> ask(Request request, Reply reply);
  awaitable<void> call(Clock::time_point when, std::function<void()> task);

  Origin origin;
  std::chrono::milliseconds timeout;
  asio::io_context io{1};
  std::optional<asio::ssl::context> tls;
};

awaitable<Status> Client::Impl::connect_and_ask(const Message& message, const Reply& reply) {
  tcp::resolver resolver(io);
  const std::string port = std::to_string(origin.port);
  const auto [resolve_error, endpoints] = co_await resolver.async_resolve(origin.host, port, kAwait);
  if (resolve_error) co_return failure("cannot resolve the host", resolve_error);
  tcp::socket socket(io);
  const auto [error, endpoint] = co_await asio::async_connect(socket, endpoints, kAwait);
  if (error) co_return failure("cannot connect", error);
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  if (!tls) co_return co_await exchange(socket, message, reply);
  TlsStream stream(std::move(socket), *tls);
  stream.set_verify_mode(asio::ssl::verify_peer, ignored);
  stream.set_verify_callback(asio::ssl::host_name_verification(origin.host), ignored);
  SSL_set_tlsext_host_name(stream.native_handle(), origin.host.c_str());
  const auto [tls_error] = co_await stream.async_handshake(asio::ssl::stream_base::client, kAwait);
  if (tls_error) co_return failure("no TLS connection", tls_error);
  co_return co_await exchange(stream, message, reply);
}

awaitable<void> Client::Impl::ask(Request request, Reply reply) {
  using namespace asio::experimental::awaitable_operators;
  const Message message = to_message(std::move(request), origin);
  asio::steady_timer deadline(io, timeout);
  const auto outcome = co_await (connect_and_ask(message, reply) || deadline.async_wait(kAwait));
  const Status* status = std::get_if<0>(&outcome);
  const Error late{ErrorCode::kExhausted, fmt::format("no whole answer within {} s", timeout.count() / 1000),
                   ""};
  reply.on_end(status != nullptr ? *status : Status(late));
}

awaitable<void> Client::Impl::call(Clock::time_point when, std::function<void()> task) {
  asio::steady_timer timer(io, when);
  co_await timer.async_wait(kAwait);
  task();
}

Client::Client(Origin origin, std::chrono::milliseconds timeout)
    : impl_(std::make_unique<Impl>(std::move(origin), timeout)) {}
Client::~Client() = default;

void Client::send(Request request, Reply reply) {
  asio::co_spawn(impl_->io, impl_->ask(std::move(request), std::move(reply)), asio::detached);
}

void Client::call_at(Clock::time_point when, std::function<void()> task) {
  asio::co_spawn(impl_->io, impl_->call(when, std::move(task)), asio::detached);
}

void Client::run() {
  impl_->io.restart();
  impl_->io.run();
}

void Client::stop() { impl_->io.stop(); }

}  // namespace tercet::http
