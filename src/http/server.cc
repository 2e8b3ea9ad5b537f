#include "http/server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <ctime>
#include <optional>
#include <thread>
#include <tuple>
#include <unordered_set>
#include <variant>

#include "base/log.h"
#include "http/api_error.h"

namespace tercet::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket>;

// In the coroutines below temporaries with destructors stay out of co_await expressions: GCC 12 may destroy
// them twice.
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
// A client may send its next requests early; beyond this they stay in the kernel.
constexpr size_t kMaxPipelined = 64 << 10;
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr size_t kMaxLingerBytes = 4 << 20;

// Closes the socket when the time given last has passed, which ends what waits for it.
class Watchdog {
 public:
  explicit Watchdog(tcp::socket::lowest_layer_type& socket)
      : socket_(socket), timer_(socket.get_executor()) {}

  void arm(std::chrono::milliseconds timeout) {
    armed_ = std::make_shared<int>();
    timer_.expires_after(timeout);
    // The timer may have gone off and its handler be on its way when it is disarmed or destroyed.
    timer_.async_wait([this, armed = std::weak_ptr<int>(armed_)](error_code error) {
      if (!error && !armed.expired()) close();
    });
  }
  void disarm() {
    armed_.reset();
    timer_.cancel();
  }
  void close() {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  tcp::socket::lowest_layer_type& socket_;
  asio::steady_timer timer_;
  std::shared_ptr<int> armed_;
};

// The state is the I/O thread's; the methods of Exchange post to it.
class HttpExchange final : public Exchange, public std::enable_shared_from_this<HttpExchange> {
 public:
  HttpExchange(asio::any_io_executor io, Request request, size_t max_pending)
      : io_(std::move(io)), request_(std::move(request)), max_pending_(max_pending), changed_(io_) {
    changed_.expires_at(asio::steady_timer::time_point::max());
  }

  const Request& request() const override { return request_; }
  void post(std::function<void()> task) override {
    asio::post(io_, [self = shared_from_this(), task = std::move(task)] { task(); });
  }
  void respond(Response response) override {
    post([this, response = std::move(response)]() mutable {
      if (head) return;
      head = std::move(response);
      ended = true;
      changed_.cancel();
    });
  }
  void start(Response response) override {
    post([this, response = std::move(response)]() mutable {
      if (head) return;
      head = std::move(response);
      streams = true;
      changed_.cancel();
    });
  }
  void send(std::string data) override {
    post([this, data = std::move(data)] {
      if (!streams || ended || closed_ || data.empty()) return;
      pending += data;
      if (pending.size() + in_flight > max_pending_ && drop) return drop();
      changed_.cancel();
    });
  }
  void finish() override {
    post([this] {
      if (!streams) return;
      ended = true;
      changed_.cancel();
    });
  }
  void on_disconnect(std::function<void()> task) override {
    post([this, task = std::move(task)]() mutable {
      if (closed_ && !answered_) task();
      if (!closed_) on_disconnect_.push_back(std::move(task));
    });
  }

  // Until there is a head, and for a stream data or its end. False: the wait was cancelled.
  awaitable<bool> wait() {
    while (!(head && (ended || !pending.empty()))) {
      if (head && streams && !head_written) break;
      co_await changed_.async_wait(kAwait);
      const auto state = co_await asio::this_coro::cancellation_state;
      if (state.cancelled() != asio::cancellation_type::none) co_return false;
    }
    co_return true;
  }

  // The connection is done with this exchange.
  void close(bool answered) {
    if (std::exchange(closed_, true)) return;
    answered_ = answered;
    drop = {};
    pending.clear();
    for (const std::function<void()>& task : std::exchange(on_disconnect_, {})) {
      if (!answered) task();
    }
  }

  std::optional<Response> head;
  bool streams = false;
  bool head_written = false;
  bool ended = false;
  std::string pending;
  size_t in_flight = 0;
  std::function<void()> drop;  // ends the connection

 private:
  asio::any_io_executor io_;
  Request request_;
  size_t max_pending_;
  asio::steady_timer changed_;
  bool closed_ = false;
  bool answered_ = false;
  std::vector<std::function<void()>> on_disconnect_;
};

Request to_request(bhttp::request<bhttp::string_body>&& message) {
  Request request;
  request.method = std::string(message.method_string());
  request.path = normalized_path(std::string_view(message.target()));
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    request.headers.emplace_back(std::move(name), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

// Of a request that is no HTTP, or too large. Status 0: the client just went away.
ApiError parse_failure(const error_code& error, const ServerOptions& options) {
  ApiError failure;
  failure.status = 0;
  if (error == bhttp::error::end_of_stream || error == bhttp::error::partial_message) return failure;
  if (error == bhttp::error::header_limit || error == bhttp::error::buffer_overflow) {
    failure.status = 431;
    failure.message = fmt::format("the header is larger than {} bytes", options.max_header_bytes);
  } else if (error == bhttp::error::body_limit) {
    failure.status = 413;
    failure.message = fmt::format("the body is larger than {} bytes", options.max_body_bytes);
  } else if (error.category() == bhttp::make_error_code(bhttp::error::end_of_stream).category()) {
    failure.status = 400;
    failure.message = "the request is no valid HTTP: " + error.message();
  }
  return failure;
}

std::string http_date() {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr)));
}

// What every response of a connection shares.
struct ResponseFrame {
  const ServerOptions& options;
  std::string origin;  // of the page that asks, if a browser does
  unsigned version = 11;
  bool keep_alive = true;
  bool head_only = false;  // HEAD

  template <class Message>
  void fill(Message& message, const Response& response) const {
    message.version(version);
    message.result(static_cast<unsigned>(response.status));
    message.keep_alive(keep_alive);
    message.set(bhttp::field::server, "tercet");
    message.set(bhttp::field::date, http_date());
    if (!response.content_type.empty()) message.set(bhttp::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    const auto& allowed = options.cors_origins;
    const bool everybody = std::ranges::find(allowed, "*") != allowed.end();
    if (origin.empty() || (!everybody && std::ranges::find(allowed, origin) == allowed.end())) return;
    message.set(bhttp::field::access_control_allow_origin, everybody ? "*" : origin);
    message.set(bhttp::field::vary, "Origin");
    message.set(bhttp::field::access_control_expose_headers, "X-Request-Id, Retry-After");
  }
};

template <class Stream>
awaitable<bool> write_whole(Stream& stream, const Response& response, const ResponseFrame& frame) {
  bhttp::response<bhttp::string_body> message;
  frame.fill(message, response);
  message.body() = response.body;
  if (response.status != 204) message.prepare_payload();
  if (frame.head_only) message.body().clear();  // its length has been said
  const auto [error, size] = co_await bhttp::async_write(stream, message, kAwait);
  co_return !error;
}

template <class Stream>
awaitable<bool> write_all(Stream& stream, std::string data) {
  const auto [error, size] = co_await asio::async_write(stream, asio::buffer(data), kAwait);
  co_return !error;
}

// A stream's parts are HTTP/1.1 chunks; for HTTP/1.0 the end of the connection is the end of the stream.
template <class Stream>
awaitable<bool> write_stream(Stream& stream, HttpExchange& exchange, const ResponseFrame& frame,
                             Watchdog& watchdog) {
  const bool chunked = frame.version >= 11;
  bhttp::response<bhttp::empty_body> message;
  frame.fill(message, *exchange.head);
  message.chunked(chunked);
  if (!chunked) message.keep_alive(false);
  bhttp::response_serializer<bhttp::empty_body> serializer(message);
  watchdog.arm(frame.options.write_timeout);
  const auto [error, size] = co_await bhttp::async_write_header(stream, serializer, kAwait);
  watchdog.disarm();
  exchange.head_written = true;
  if (error) co_return false;
  if (frame.head_only) co_return true;
  while (co_await exchange.wait()) {
    const bool last = exchange.ended;
    std::string data = std::exchange(exchange.pending, {});
    exchange.in_flight = data.size();
    if (chunked && !data.empty()) data = fmt::format("{:x}\r\n{}\r\n", data.size(), data);
    if (chunked && last) data += "0\r\n\r\n";
    watchdog.arm(frame.options.write_timeout);
    if (!co_await write_all(stream, std::move(data))) co_return false;
    watchdog.disarm();
    exchange.in_flight = 0;
    if (last) co_return true;
  }
  co_return false;
}

template <class Stream>
awaitable<bool> write_answer(Stream& stream, HttpExchange& exchange, const ResponseFrame& frame,
                             Watchdog& watchdog) {
  if (!co_await exchange.wait()) co_return false;
  if (exchange.streams) co_return co_await write_stream(stream, exchange, frame, watchdog);
  watchdog.arm(frame.options.write_timeout);
  const bool written = co_await write_whole(stream, *exchange.head, frame);
  watchdog.disarm();
  co_return written;
}

// Returns when the client closes. What it sends meanwhile is kept for the next request.
template <class Stream>
awaitable<void> watch_for_close(Stream& stream, beast::flat_buffer& buffer) {
  for (;;) {
    if (buffer.size() >= kMaxPipelined) {
      asio::steady_timer never(stream.get_executor(), asio::steady_timer::time_point::max());
      co_await never.async_wait(kAwait);
      co_return;
    }
    const auto [error, size] = co_await stream.async_read_some(buffer.prepare(4096), kAwait);
    buffer.commit(size);
    if (error) co_return;
  }
}

// Reads on for a while, so that a client that is still sending gets to see the answer.
awaitable<void> linger(tcp::socket& socket, Watchdog& watchdog) {
  watchdog.arm(kLinger);
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  std::string sink(16 << 10, '\0');
  for (size_t total = 0; total < kMaxLingerBytes;) {
    const auto [error, size] = co_await socket.async_read_some(asio::buffer(sink), kAwait);
    if (error) co_return;
    total += size;
  }
}

tcp::socket& socket_of(tcp::socket& stream) { return stream; }
tcp::socket& socket_of(TlsStream& stream) { return stream.next_layer(); }

}  // namespace

struct Server::Impl {
  class Registration;
  Impl(ServerOptions server_options, Handler server_handler)
      : options(std::move(server_options)),
        handler(std::move(server_handler)),
        workers(static_cast<size_t>(options.num_handler_threads)) {}

  // Of an error after which the connection ends.
  ResponseFrame last_frame() const { return {options, "", 11, false, false}; }
  void handle(const std::shared_ptr<Exchange>& exchange) const;
  void run();
  Status load_tls();
  Status listen();
  awaitable<void> accept_connections();
  awaitable<void> open_connection(tcp::socket socket);
  template <class Stream>
  awaitable<void> serve(Stream& stream, Watchdog& watchdog);
  template <class Stream>
  awaitable<bool> serve_one(Stream& stream, Watchdog& watchdog, beast::flat_buffer& buffer);
  template <class Stream>
  awaitable<bool> read_request(Stream& stream, Watchdog& watchdog, beast::flat_buffer& buffer,
                               bhttp::request_parser<bhttp::string_body>& parser);

  ServerOptions options;
  Handler handler;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  std::optional<asio::ssl::context> tls;
  std::unordered_set<Watchdog*> connections;
  std::atomic<int> num_connections = 0;
  asio::thread_pool workers;
  std::thread thread;
};

// A connection is known, so that it can be closed, while this lives.
class Server::Impl::Registration {
 public:
  Registration(Impl& server, Watchdog& watchdog) : server_(server), watchdog_(&watchdog) {
    server_.connections.insert(watchdog_);
    ++server_.num_connections;
  }
  ~Registration() {
    server_.connections.erase(watchdog_);
    --server_.num_connections;
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  Impl& server_;
  Watchdog* watchdog_;
};

void Server::Impl::handle(const std::shared_ptr<Exchange>& exchange) const {
  try {
    handler(exchange);
  } catch (const std::exception& failure) {  // as when memory is out
    ApiError error;
    error.status = 500;
    error.type = "server_error";
    error.message = failure.what();
    exchange->respond(error_response(error));
  }
}

void Server::Impl::run() {
  for (;;) {
    try {
      io.run();
      return;
    } catch (const std::exception& failure) {
      log_error("the server's thread went on after: {}", failure.what());
    }
  }
}

Status Server::Impl::load_tls() {
  if (options.tls_cert.empty() && options.tls_key.empty()) return {};
  tls.emplace(asio::ssl::context::tls_server);
  tls->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                   asio::ssl::context::no_tlsv1_1);
  error_code error;
  tls->use_certificate_chain_file(options.tls_cert, error);
  if (error) {
    return Error{ErrorCode::kInvalidArgument, "holds no certificate in PEM form: " + error.message(),
                 "TLS certificate " + options.tls_cert};
  }
  tls->use_private_key_file(options.tls_key, asio::ssl::context::pem, error);
  if (error) {
    return Error{ErrorCode::kInvalidArgument,
                 "holds no private key of the certificate in PEM form: " + error.message(),
                 "TLS key " + options.tls_key};
  }
  return {};
}

Status Server::Impl::listen() {
  error_code error;
  const std::string where = fmt::format("{}:{}", options.host, options.port);
  const auto address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error) {
    return Error{ErrorCode::kInvalidArgument, "the host must be a numeric address, as 127.0.0.1 or 0.0.0.0",
                 where};
  }
  const tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Error{ErrorCode::kIo, "cannot listen: " + error.message(), where};
  return {};
}

awaitable<void> Server::Impl::accept_connections() {
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kAwait);
    if (error == asio::error::operation_aborted || !acceptor.is_open()) co_return;
    if (error) {  // as when there are no more descriptors
      log_warning("cannot accept a connection: {}", error.message());
      asio::steady_timer pause(io, std::chrono::milliseconds(100));
      co_await pause.async_wait(kAwait);
      continue;
    }
    asio::co_spawn(io, open_connection(std::move(socket)), [](const std::exception_ptr& thrown) {
      try {
        if (thrown) std::rethrow_exception(thrown);
      } catch (const std::exception& failure) {
        log_warning("a connection ended with {}", failure.what());
      }
    });
  }
}

awaitable<void> Server::Impl::open_connection(tcp::socket socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  if (num_connections >= options.max_connections) {
    ApiError error;
    error.status = 503;
    error.type = "server_error";
    error.message = fmt::format("the server has its {} connections already", options.max_connections);
    error.retry_after = 1;
    Watchdog watchdog(socket.lowest_layer());
    const Response response = error_response(error);
    const ResponseFrame frame = last_frame();
    watchdog.arm(options.write_timeout);
    if (!tls && co_await write_whole(socket, response, frame)) co_await linger(socket, watchdog);
    co_return;
  }
  if (!tls) {
    Watchdog watchdog(socket.lowest_layer());
    const Registration registration(*this, watchdog);
    co_await serve(socket, watchdog);
    co_return;
  }
  TlsStream stream(std::move(socket), *tls);
  Watchdog watchdog(stream.lowest_layer());
  const Registration registration(*this, watchdog);
  watchdog.arm(options.header_timeout);
  const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kAwait);
  if (error) co_return;
  co_await serve(stream, watchdog);
  watchdog.arm(kLinger);
  co_await stream.async_shutdown(kAwait);
}

template <class Stream>
awaitable<void> Server::Impl::serve(Stream& stream, Watchdog& watchdog) {
  beast::flat_buffer buffer;
  while (co_await serve_one(stream, watchdog, buffer)) {
  }
  watchdog.disarm();
}

// False when there is no request to answer: the client is gone, or has been told what is wrong.
template <class Stream>
awaitable<bool> Server::Impl::read_request(Stream& stream, Watchdog& watchdog, beast::flat_buffer& buffer,
                                           bhttp::request_parser<bhttp::string_body>& parser) {
  parser.header_limit(options.max_header_bytes);
  parser.body_limit(options.max_body_bytes);
  watchdog.arm(options.header_timeout);
  auto [error, size] = co_await bhttp::async_read_header(stream, buffer, parser, kAwait);
  if (!error && beast::iequals(parser.get()[bhttp::field::expect], "100-continue")) {
    std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    co_await write_all(stream, std::move(go_on));
  }
  if (!error) {
    watchdog.arm(options.body_timeout);
    std::tie(error, size) = co_await bhttp::async_read(stream, buffer, parser, kAwait);
  }
  if (error) {
    const ApiError failure = parse_failure(error, options);
    if (failure.status == 0) co_return false;
    watchdog.arm(options.write_timeout);
    const Response response = error_response(failure);
    const ResponseFrame frame = last_frame();
    if (co_await write_whole(stream, response, frame)) {
      co_await linger(socket_of(stream), watchdog);
    }
    co_return false;
  }
  watchdog.disarm();
  co_return true;
}

// One request and its answer; true when the connection is good for another.
template <class Stream>
awaitable<bool> Server::Impl::serve_one(Stream& stream, Watchdog& watchdog, beast::flat_buffer& buffer) {
  using namespace asio::experimental::awaitable_operators;
  bhttp::request_parser<bhttp::string_body> parser;
  if (!co_await read_request(stream, watchdog, buffer, parser)) co_return false;
  ResponseFrame frame{options, std::string(parser.get()[bhttp::field::origin]), parser.get().version(),
                      parser.keep_alive(), parser.get().method() == bhttp::verb::head};
  const auto exchange = std::make_shared<HttpExchange>(io.get_executor(), to_request(parser.release()),
                                                       options.max_pending_bytes);
  exchange->drop = [&watchdog] { watchdog.close(); };
  const std::shared_ptr<void> closed(nullptr, [&exchange](void*) { exchange->close(false); });
  asio::post(workers, [this, exchange] { handle(exchange); });
  const auto outcome =
      co_await (write_answer(stream, *exchange, frame, watchdog) || watch_for_close(stream, buffer));
  const bool* answered = std::get_if<0>(&outcome);
  const bool good = answered != nullptr && *answered;
  exchange->close(good);
  co_return good&& frame.keep_alive && (frame.version >= 11 || !exchange->streams);
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  TERCET_TRY(impl->load_tls());
  TERCET_TRY(impl->listen());
  asio::co_spawn(impl->io, impl->accept_connections(), asio::detached);
  impl->thread = std::thread([server = impl.get()] { server->run(); });
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() {
  asio::post(impl_->io, [impl = impl_.get()] {
    error_code ignored;
    impl->acceptor.close(ignored);
    for (Watchdog* connection : impl->connections) connection->close();
  });
  impl_->thread.join();
  impl_->workers.join();
}

uint16_t Server::port() const {
  error_code ignored;
  return impl_->acceptor.local_endpoint(ignored).port();
}

int Server::num_connections() const { return impl_->num_connections; }

}  // namespace tercet::http
