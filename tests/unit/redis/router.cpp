// SPDX-License-Identifier: MIT
// Which server has whose state, and what must be learnt to know it.
#include <penstock/redis/router.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace {

using penstock::StoreError;
using penstock::redis::Call;
using penstock::redis::Meta;
using penstock::redis::meta_renewal;
using penstock::redis::parse_url;
using penstock::redis::RefreshFsm;
using penstock::redis::Router;
using penstock::redis::Script;
using penstock::redis::Settings;
using penstock::redis::slot_of;
using penstock::redis::SlotMap;

class Question : public Call {
public:
    explicit Question(std::string_view key) : key_(key) {}

    [[nodiscard]] std::string_view key() const noexcept override { return key_; }
    [[nodiscard]] std::uint16_t slot(const Meta& meta) const override {
        return slot_of(key_ + std::to_string(meta.secret));
    }
    [[nodiscard]] const Script& script() const noexcept override {
        static const Script script{std::string("return 1")};
        return script;
    }
    void write(std::string&, const Meta&) const override {}
    void finished() noexcept override {}

private:
    std::string key_;
};

Router router_of(const std::string& url, const std::string& meta_key = {}) {
    return Router(Settings{.target = parse_url(url), .meta_key = meta_key});
}

SlotMap all_to(std::uint16_t node) {
    SlotMap map;
    map.assign(0, 16383, node);
    return map;
}

TEST_CASE("one server has everything, and nothing is to be learnt") {
    const Router router = router_of("redis://h", "p:meta");
    CHECK(router.knows_the_way());
    CHECK(router.node_of(Question("a")) == 0);
    CHECK_FALSE(router.wants_slots(1'000'000));
    CHECK_FALSE(router.wants_meta(1'000'000));
    CHECK(router.meta_for(Meta{.buckets = 1, .secret = 5}).secret == 5);
}

TEST_CASE("in a ring every server has some, each client always the same") {
    const Router router = router_of("redis+ring://a,b,c");
    std::set<std::size_t> seen;
    for (int client = 0; client < 100; ++client) {
        const Question question("client " + std::to_string(client));
        seen.insert(router.node_of(question));
        CHECK(router.node_of(question) == router.node_of(question));
    }
    CHECK(seen == std::set<std::size_t>{0, 1, 2});
}

TEST_CASE("in a cluster the slots are learnt first, then the meta, from the node that has it") {
    Router router = router_of("redis+cluster://h", "p:meta");
    CHECK_FALSE(router.knows_the_way());
    CHECK(router.wants_slots(0));
    CHECK_FALSE(router.wants_meta(0));
    router.slots_asked(0);
    router.learn(all_to(3), true);
    CHECK_FALSE(router.knows_the_way());
    CHECK(router.wants_meta(0));
    CHECK(router.node_of_meta() == 3);
    router.meta_asked(0);
    CHECK_FALSE(router.wants_meta(1'000'000'000));
    router.meta() = Meta{.buckets = 4, .secret = 7};
    router.meta_answered(0);
    CHECK(router.knows_the_way());
    CHECK_FALSE(router.wants_meta(meta_renewal - 1));
    CHECK(router.wants_meta(meta_renewal));
    CHECK(router.node_of(Question("a")) == 3);
    CHECK(router.meta_for(Meta{}).secret == 7);
}

TEST_CASE("where the layout needs no meta the slots suffice") {
    Router router = router_of("redis+cluster://h");
    router.slots_asked(0);
    router.learn(all_to(1), true);
    CHECK(router.knows_the_way());
    CHECK(router.slots_due() > 1'000'000'000);
}

TEST_CASE("what is lost on the way is asked for again, but not without a pause") {
    Router router = router_of("redis+cluster://h", "p:meta");
    router.slots_asked(0);
    router.slots_lost();
    CHECK_FALSE(router.wants_slots(RefreshFsm::interval - 1));
    CHECK(router.wants_slots(RefreshFsm::interval));
    router.learn(all_to(1), true);
    router.meta_asked(0);
    router.meta_lost();
    CHECK_FALSE(router.wants_meta(RefreshFsm::interval - 1));
    CHECK(router.wants_meta(RefreshFsm::interval));
}

TEST_CASE("a map with fewer slots than are known is not believed, nor one with none") {
    Router router = router_of("redis+cluster://h");
    router.slots_asked(0);
    router.learn(SlotMap(), true);
    CHECK_FALSE(router.knows_the_way());
    router.slots_asked(0);
    router.learn(all_to(1), true);
    CHECK(router.knows_the_way());
    SlotMap half;
    half.assign(0, 8191, 2);
    router.slots_asked(0);
    router.learn(half, true);
    CHECK(router.node_of(Question("a")) == 1);
    CHECK(router.wants_slots(1'000'000'000));
}

TEST_CASE("a slot that moved is known at once, and makes the rest doubtful") {
    Router router = router_of("redis+cluster://h");
    router.slots_asked(0);
    router.learn(all_to(1), true);
    const Question question("a");
    router.move(question.slot(Meta{}), 2);
    CHECK(router.node_of(question) == 2);
    CHECK(router.wants_slots(RefreshFsm::interval));
}

TEST_CASE("only errors that speak of the cluster make it doubtful") {
    for (const StoreError error : {StoreError::cluster_down, StoreError::read_only, StoreError::master_down}) {
        Router router = router_of("redis+cluster://h");
        router.slots_asked(0);
        router.learn(all_to(1), true);
        router.doubt_after(StoreError::out_of_memory);
        CHECK_FALSE(router.wants_slots(1'000'000'000));
        router.doubt_after(error);
        CHECK(router.wants_slots(1'000'000'000));
    }
}

}  // namespace
