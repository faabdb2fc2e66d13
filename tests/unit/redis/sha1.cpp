// SPDX-License-Identifier: MIT
#include <penstock/redis/sha1.hpp>

#include <doctest/doctest.h>

#include <string>

using penstock::redis::sha1;

TEST_CASE("the digests are those of RFC 3174") {
    CHECK(sha1("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d");
    CHECK(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    CHECK(sha1(std::string(1'000'000, 'a')) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    std::string digits;
    for (int i = 0; i < 80; ++i) {
        digits += "01234567";
    }
    CHECK(sha1(digits) == "dea356a2cddd90c7a7ecedc5ebb563934f460452");
}

TEST_CASE("a text may end anywhere in a block") {
    CHECK(sha1("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    CHECK(sha1(std::string(55, 'x')) == "cef734ba81a024479e09eb5a75b6ddae62e6abf1");
    CHECK(sha1(std::string(56, 'x')) == "901305367c259952f4e7af8323f480d59f81335b");
    CHECK(sha1(std::string(63, 'x')) == "0ddc4e0cccd9a12850deb5abb0853a4425559fec");
    CHECK(sha1(std::string(64, 'x')) == "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163");
    CHECK(sha1(std::string(65, 'x')) == "78c741ddc482e4cdf8c474a0876347a0905b6233");
}
