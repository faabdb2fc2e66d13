// SPDX-License-Identifier: MIT
// The table of slots: where keys stand, what makes room, several keys in one step.
#include <penstock/detail/slot_table.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using penstock::Micros;
using penstock::detail::hash_pair;
using penstock::detail::HashPair;
using penstock::detail::SlotTable;

/// A count, with the times that the table asks for as they were set.
struct Record {
    std::uint64_t count = 0;
    Micros fresh = 0;
    Micros paid_off = 0;

    [[nodiscard]] Micros fresh_at() const noexcept { return fresh; }
    [[nodiscard]] Micros paid_off_at() const noexcept { return paid_off; }
};

class Table {
public:
    using Slots = SlotTable<Record>;

    explicit Table(std::uint64_t sets)
        : slots_(std::make_unique<Slots::Slot[]>(8 * sets)), table_(slots_.get(), sets) {}

    [[nodiscard]] Slots& slots() { return table_; }
    [[nodiscard]] Slots::Slot* first_slot() const { return slots_.get(); }

    /// Counts a key, whose client is fresh again, or paid off, at a time, of a limit that takes 2^(payoff / 4) us.
    void count(const Slots::Place& place, Micros fresh, Micros paid_off, Micros now = 0, unsigned payoff = 0) {
        table_.update(place, now, payoff, [&](Record& record) {
            record = {record.count + 1, fresh, paid_off};
            return true;
        });
    }

    [[nodiscard]] std::uint64_t counted(const Slots::Place& place) {
        std::uint64_t count = 0;
        table_.update(place, 0, 0, [&](Record& record) {
            count = record.count;
            return false;
        });
        return count;
    }

    [[nodiscard]] Slots::Place place(std::uint64_t key) const {
        const std::string name = std::to_string(key);
        return table_.place(hash_pair(name, 1));
    }

private:
    std::unique_ptr<Slots::Slot[]> slots_;
    Slots table_;
};

constexpr Micros forever = ~Micros{0};

TEST_CASE("a key is found again, and no other") {
    Table table(100);
    table.count(table.place(1), forever, 1);
    table.count(table.place(1), forever, 1);
    CHECK(table.counted(table.place(1)) == 2);
    CHECK(table.counted(table.place(2)) == 0);
}

TEST_CASE("the two sets of a key differ, in the smallest table too") {
    Table table(2);
    for (std::uint64_t key = 0; key < 1000; ++key) {
        const auto place = table.place(key);
        CHECK(place.sets[0] != place.sets[1]);
    }
}

TEST_CASE("a hash whose fingerprint is zero is a key like any other") {
    Table table(2);
    const auto zero = table.slots().place(HashPair{0, 0});
    CHECK(zero.fingerprint != 0);
    table.count(zero, forever, 1);
    CHECK(table.counted(zero) == 1);
}

TEST_CASE("what a step does not want kept takes no slot") {
    Table table(2);
    for (std::uint64_t key = 0; key < 100; ++key) {
        CHECK(table.counted(table.place(key)) == 0);
    }
    for (std::uint64_t key = 0; key < 16; ++key) {
        table.count(table.place(key), forever, 1);
    }
    CHECK(table.slots().evictions() == 0);
}

TEST_CASE("an erased key is fresh, and its slot free") {
    Table table(2);
    for (std::uint64_t key = 0; key < 16; ++key) {
        table.count(table.place(key), forever, 1);
    }
    table.slots().erase(table.place(3));
    table.slots().erase(table.place(1000));
    CHECK(table.counted(table.place(3)) == 0);
    table.count(table.place(16), forever, 1);
    CHECK(table.slots().evictions() == 0);
    CHECK(table.counted(table.place(16)) == 1);
    CHECK(table.counted(table.place(4)) == 1);
}

TEST_CASE("in a full table what is as good as fresh makes room, uncounted") {
    Table table(2);
    for (std::uint64_t key = 0; key < 16; ++key) {
        table.count(table.place(key), key == 7 ? 100 : forever, 1000 - key);
    }
    table.count(table.place(16), forever, 1, 99);
    CHECK(table.slots().evictions() == 1);  // at 99 none was, so the one paid off first went
    CHECK(table.counted(table.place(15)) == 0);
    table.count(table.place(17), forever, 2000, 100);
    CHECK(table.slots().evictions() == 1);
    CHECK(table.counted(table.place(7)) == 0);
}

TEST_CASE("of live clients the one that is paid off first makes room") {
    Table table(2);
    for (std::uint64_t key = 0; key < 16; ++key) {
        table.count(table.place(key), forever, 1000 + key);
    }
    for (std::uint64_t key = 16; key < 20; ++key) {
        table.count(table.place(key), forever, 5000);
    }
    CHECK(table.slots().evictions() == 4);
    for (std::uint64_t key = 0; key < 20; ++key) {
        CHECK(table.counted(table.place(key)) == (key < 4 ? 0 : 1));
    }
}

TEST_CASE("of live clients the one with the smallest share of its limit to pay off makes room") {
    Table table(2);
    for (std::uint64_t key = 0; key < 16; ++key) {
        const bool slow = key < 4;  // a hundredth of a long limit against most of a short one
        table.count(table.place(key), forever, slow ? 10'000 : 900, 0, slow ? 80 : 40);
    }
    for (std::uint64_t key = 16; key < 20; ++key) {
        table.count(table.place(key), forever, 1000, 0, 40);
    }
    CHECK(table.slots().evictions() == 4);
    for (std::uint64_t key = 0; key < 20; ++key) {
        CHECK(table.counted(table.place(key)) == (key < 4 ? 0 : 1));
    }
}

TEST_CASE("a client's share is that of the longest limit it was under") {
    Table table(2);
    for (std::uint64_t key = 0; key < 16; ++key) {
        table.count(table.place(key), forever, 900, 0, 40);
    }
    table.count(table.place(3), forever, 10'000, 0, 80);
    table.count(table.place(3), forever, 10'000, 0, 40);
    table.count(table.place(16), forever, 1000, 0, 40);
    CHECK(table.counted(table.place(3)) == 0);
    CHECK(table.counted(table.place(16)) == 1);
}

TEST_CASE("two keys that a look-up would take for each other have one record in a step") {
    Table table(3);
    auto one = table.place(1);
    auto other = one;
    other.sets[1] = one.sets[0] == table.first_slot() ? table.first_slot() + 8 : table.first_slot();
    other.sets[1] = other.sets[1] == one.sets[1] ? table.first_slot() + 16 : other.sets[1];
    REQUIRE(other.sets[1] != one.sets[1]);
    std::vector<Table::Slots::Entry> entries(2);
    entries[0].place = one;
    entries[1].place = other;
    table.slots().update_all(entries, 0, [&] {
        CHECK(entries[1].same == &entries[0]);
        entries[0].record = {2, forever, 1};
        entries[0].changed = true;
        return true;
    });
    CHECK(table.counted(one) == 2);
    CHECK(table.counted(other) == 2);
}

TEST_CASE("clients that are never paid off make room all the same") {
    Table table(2);
    for (std::uint64_t key = 0; key < 17; ++key) {
        table.count(table.place(key), forever, forever);
    }
    CHECK(table.slots().evictions() == 1);
    CHECK(table.counted(table.place(16)) == 1);
}

TEST_CASE("an empty slot is taken before one whose client is merely fresh again") {
    Table table(2);
    for (std::uint64_t key = 0; key < 15; ++key) {
        table.count(table.place(key), 1, 1);
    }
    table.count(table.place(15), forever, 1, 1'000'000);
    std::uint64_t kept = 0;
    for (std::uint64_t key = 0; key < 16; ++key) {
        kept += table.counted(table.place(key));
    }
    CHECK(kept == 16);
}

TEST_CASE("a table of which 70% are in use forgets nobody of a million") {
    constexpr std::uint64_t keys = 1'000'000;
    Table table(keys * 10 / 7 / 8 + 1);
    for (std::uint64_t key = 0; key < keys; ++key) {
        table.count(table.place(key), forever, 1);
    }
    CHECK(table.slots().evictions() == 0);
}

TEST_CASE("several keys are kept together or not at all") {
    Table table(10);
    std::vector<Table::Slots::Entry> entries(3);
    entries[0].place = table.place(1);
    entries[1].place = table.place(2);
    entries[2].place = table.place(1);
    table.count(table.place(2), forever, 1);

    const auto count_all = [&](bool keep) {
        table.slots().update_all(entries, 0, [&] {
            for (auto& entry : entries) {
                auto& owner = entry.same != nullptr ? *entry.same : entry;
                owner.record = {owner.record.count + 1, forever, 1};
                owner.changed = true;
            }
            return keep;
        });
    };
    count_all(false);
    CHECK(table.counted(table.place(1)) == 0);
    CHECK(table.counted(table.place(2)) == 1);
    count_all(true);
    CHECK(table.counted(table.place(1)) == 2);
    CHECK(table.counted(table.place(2)) == 2);
    count_all(true);
    CHECK(table.counted(table.place(1)) == 4);
    CHECK(table.counted(table.place(2)) == 3);
}

}  // namespace
