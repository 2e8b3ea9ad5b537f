// For tests: a client that says to a server on 127.0.0.1 exactly the bytes it is told to.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tercet::http {

class TestClient {
 public:
  // `receive_buffer` bytes in the kernel, so that a reader can be slow; 0: as usual.
  explicit TestClient(uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool send(std::string_view data) {
    while (!data.empty()) {
      const ssize_t sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      data.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Reads until `received` holds `text`; false when the connection ends before, or nothing comes for long.
  bool read_until(std::string_view text) {
    while (received.find(text) == received.npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  // Reads until the server closes; false when it does not.
  bool read_to_end() {
    while (read_some()) {
    }
    return ended_;
  }
  // One whole response with a Content-Length; what follows stays in `received`.
  std::string read_response() {
    if (!read_until("\r\n\r\n")) return "";
    const size_t head = received.find("\r\n\r\n") + 4;
    const size_t field = received.find("Content-Length: ");
    const size_t length = field < head ? std::stoul(received.substr(field + 16)) : 0;
    while (received.size() < head + length) {
      if (!read_some()) return "";
    }
    std::string response = received.substr(0, head + length);
    received.erase(0, head + length);
    return response;
  }

  std::string received;

 private:
  bool read_some() {
    constexpr int kPatience = 20'000;  // milliseconds until a test that waits in vain has failed
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, kPatience) <= 0) return false;
    char data[16 << 10];
    const ssize_t size = ::recv(fd_, data, sizeof data, 0);
    if (size <= 0) {
      ended_ = true;
      return false;
    }
    received.append(data, static_cast<size_t>(size));
    return true;
  }

  int fd_;
  bool connected_ = false;
  bool ended_ = false;
};

}  // namespace tercet::http
