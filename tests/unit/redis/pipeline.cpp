// SPDX-License-Identifier: MIT
// Answers go to those who asked, in the order of their questions.
#include <penstock/redis/pipeline.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

using penstock::redis::Call;
using penstock::redis::Pipeline;
using penstock::redis::Sent;

/// Stand for calls: a pipeline never looks at them.
std::array<char, 4> bytes;
Call* call(std::size_t number) {
    return reinterpret_cast<Call*>(&bytes[number]);
}

TEST_CASE("who asked first is answered first") {
    Pipeline pipeline;
    for (std::size_t i = 0; i < 3; ++i) {
        pipeline.push({.kind = Sent::Kind::call, .call = call(i)});
    }
    CHECK(pipeline.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(pipeline.pop().call == call(i));
    }
    CHECK(pipeline.empty());
}

TEST_CASE("the answer to one who has given up is taken, for nobody") {
    Pipeline pipeline;
    static_cast<void>(pipeline.push({.kind = Sent::Kind::call, .call = call(0)}));
    const std::uint64_t second = pipeline.push({.kind = Sent::Kind::call, .call = call(1)});
    CHECK(pipeline.pop().call == call(0));
    const std::uint64_t third = pipeline.push({.kind = Sent::Kind::call, .call = call(2)});
    pipeline.forget(second);
    CHECK(pipeline.pop().call == nullptr);
    pipeline.forget(third);
    CHECK(pipeline.pop().call == nullptr);
    CHECK(pipeline.empty());
}

}  // namespace
