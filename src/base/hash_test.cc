#include "base/hash.h"

#include <gtest/gtest.h>

namespace tercet {
namespace {

// FIPS 180-4 examples, as published by NIST (Cryptographic Standards and Guidelines: SHA256.pdf; SHAVS byte
// vectors).
TEST(Sha256, MatchesTheVectorsOfNist) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheDataIsCut) {
  const std::string data(1000, 'x');
  for (const size_t cut : {0, 1, 63, 64, 65, 999, 1000}) {
    Sha256 hasher;
    EXPECT_EQ(hasher.update(data.substr(0, cut)).update(data.substr(cut)).finish(), sha256(data)) << cut;
  }
}

TEST(Sha256, StartsOverAfterFinish) {
  Sha256 hasher;
  hasher.update("first").finish();
  EXPECT_EQ(hasher.update("abc").finish(), sha256("abc"));
}

TEST(Sha256, MovedContextGoesOn) {
  Sha256 hasher;
  hasher.update("a");
  Sha256 other = std::move(hasher);
  EXPECT_EQ(other.update("bc").finish(), sha256("abc"));
}

}  // namespace
}  // namespace tercet
