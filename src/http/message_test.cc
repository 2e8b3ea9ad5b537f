#include "http/message.h"

#include <gtest/gtest.h>

namespace tercet::http {
namespace {

TEST(Message, DoubledSlashesAndASlashAtTheEndAreTolerated) {
  EXPECT_EQ(normalized_path("//v1/models"), "/v1/models");
  EXPECT_EQ(normalized_path("/v1//models/"), "/v1/models");
  EXPECT_EQ(normalized_path("/v1/models?limit=3"), "/v1/models");
  EXPECT_EQ(normalized_path("http://127.0.0.1:80/v1/models"), "/v1/models");
  EXPECT_EQ(normalized_path("http://127.0.0.1"), "/");
  EXPECT_EQ(normalized_path("/"), "/");
  EXPECT_EQ(normalized_path("*"), "*");
}

TEST(Message, APathIsPercentDecoded) {
  EXPECT_EQ(normalized_path("/v1/models/org%2Fname"), "/v1/models/org/name");
  EXPECT_EQ(normalized_path("/a%2"), "/a%2");
  EXPECT_EQ(normalized_path("/a%zz"), "/a%zz");
}

TEST(Message, AHeaderThatIsNotThereIsEmpty) {
  const Request request{"GET", "/", {{"host", "here"}}, ""};
  EXPECT_EQ(request.header("host"), "here");
  EXPECT_EQ(request.header("origin"), "");
}

}  // namespace
}  // namespace tercet::http
