// SPDX-License-Identifier: MIT
// SlotTable's own code under every interleaving of a few threads, in tables so small that they meet everywhere.
//
// That the memory orders suffice for what is sequentially consistent here is argued in the header, and exercised with
// real threads under ThreadSanitizer.
#include "explorer.hpp"

#include <penstock/detail/slot_table.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using model::Call;
using model::Explorer;
using model::Report;
using penstock::Micros;
using penstock::detail::SlotTable;
using penstock::detail::SlotWord;

// The explorer finds what there is to find.

std::string any_end(const std::vector<Call>&) {
    return {};
}

TEST_CASE("the explorer counts the interleavings of independent threads") {
    Explorer explorer;
    model::Atomic<std::uint64_t> shared{0};
    const auto loads = [&]() -> std::uint64_t {
        for (int i = 0; i < 4; ++i) {
            static_cast<void>(shared.load());
        }
        return 0;
    };
    for (int i = 0; i < 3; ++i) {
        explorer.thread({loads});
    }
    CHECK(explorer.explore(any_end).executions == 34650);  // 12! / (4!)^3
    CHECK(explorer.walk(any_end).executions == 34650);
}

using Answers = std::set<std::vector<std::uint64_t>>;

/// What threads may answer that make a call each.
Answers answers_of(const Explorer::Calls& threads, Explorer& explorer) {
    Answers answers;
    for (const auto& call : threads) {
        explorer.thread({call});
    }
    const Report report = explorer.explore([&](const std::vector<Call>& calls) {
        std::vector<std::uint64_t> answer;
        for (const Call& call : calls) {
            answer.push_back(call.answer);
        }
        answers.insert(answer);
        return std::string();
    });
    CHECK(report.failure == "");
    return answers;
}

TEST_CASE("the explorer finds exactly the outcomes of sequential consistency") {
    Explorer explorer;
    model::Atomic<std::uint64_t> x{0};
    model::Atomic<std::uint64_t> y{0};
    const auto first = [&] { return x.store(1), y.load(); };
    const auto second = [&] { return y.store(1), x.load(); };
    CHECK(answers_of({first, second}, explorer) == Answers{{0, 1}, {1, 0}, {1, 1}});
}

TEST_CASE("the explorer finds the update that an unlocked counter loses") {
    Explorer explorer;
    model::Atomic<std::uint64_t> counter{0};
    SUBCASE("read, then written") {
        const auto add = [&] {
            const std::uint64_t seen = counter.load();
            counter.store(seen + 1);
            return seen;
        };
        CHECK(answers_of({add, add}, explorer) == Answers{{0, 0}, {0, 1}, {1, 0}});
    }
    SUBCASE("in one") {
        const auto add = [&] { return counter.fetch_add(1); };
        CHECK(answers_of({add, add}, explorer) == Answers{{0, 1}, {1, 0}});
    }
}

TEST_CASE("the explorer reports threads that wait for each other") {
    Explorer explorer;
    model::Atomic<std::uint32_t> left{0};
    model::Atomic<std::uint32_t> right{0};
    const auto take = [](auto& first, auto& second) -> std::uint64_t {
        while (first.exchange(1) != 0) {
            model::pause();
        }
        while (second.exchange(1) != 0) {
            model::pause();
        }
        second.store(0);
        first.store(0);
        return 0;
    };
    SUBCASE("who take two locks in one order end") {
        explorer.thread({[&] { return take(left, right); }});
        explorer.thread({[&] { return take(left, right); }});
        CHECK(explorer.explore(any_end).failure == "");
    }
    SUBCASE("who take two locks in both orders may block") {
        explorer.thread({[&] { return take(left, right); }});
        explorer.thread({[&] { return take(right, left); }});
        const Report report = explorer.explore(any_end);
        CHECK(report.failure.find("blocked") != std::string::npos);
    }
}

TEST_CASE("the explorer reports threads that can do something for ever, but nothing that ends") {
    Explorer explorer;
    model::Atomic<std::uint64_t> flag{0};
    model::Atomic<std::uint64_t> turns{0};
    const auto wait = [&]() -> std::uint64_t {
        while (flag.load() == 0) {
            turns.store(1 - turns.load());
            model::pause();
        }
        return 0;
    };
    explorer.thread({wait});
    SUBCASE("if nobody ends it") {
        explorer.thread({[&] { return turns.load(); }});
        const Report report = explorer.explore(any_end);
        CHECK(report.failure.find("no end is in reach") != std::string::npos);
    }
    SUBCASE("unless somebody may end it") {
        explorer.thread({[&]() -> std::uint64_t { return flag.store(1), 0; }});
        const Report report = explorer.explore(any_end);
        CHECK(report.failure == "");
        CHECK(report.executions == std::numeric_limits<double>::infinity());
    }
}

TEST_CASE("the explorer refuses a call that remembers across a pause") {
    Explorer explorer;
    model::Atomic<std::uint64_t> flag{0};
    const auto remember = [&] {
        const std::uint64_t before = flag.load();
        while (flag.load() == 0) {
            model::pause();
        }
        return before;
    };
    explorer.thread({remember});
    explorer.thread({[&]() -> std::uint64_t { return flag.store(1), 0; }});
    CHECK_THROWS_AS(explorer.explore(any_end), std::logic_error);
}

TEST_CASE("the explorer knows which call came before which") {
    // A register in two copies, written in the order in which it is read: one reader may see the new value, and another
    // the old one though it came later. Only the order of the calls tells that from a register.
    Explorer explorer;
    model::Atomic<std::uint64_t> front{0};
    model::Atomic<std::uint64_t> back{0};
    explorer.thread({[&]() -> std::uint64_t { return front.store(1), back.store(1), 0; }});
    explorer.thread({[&] { return front.load(); }, [&] { return back.load(); }});
    bool inverted = false;
    explorer.explore([&](const std::vector<Call>& calls) {
        CHECK((calls[2].before & 2U) != 0);
        inverted |= calls[1].answer == 1 && calls[2].answer == 0 && (calls[2].before & 1U) == 0;
        return std::string();
    });
    CHECK(inverted);
}

// What threads do to a table.

/// A record that tells whether it is whole: two words, the second a function of the first.
struct Tally {
    std::uint64_t word = 0;  // when it is as good as fresh, 16 bits of count
    std::uint64_t check = 0;

    Tally() = default;
    Tally(std::uint64_t count, Micros fresh_at) : word(fresh_at << 16 | count), check(word * factor) {}

    [[nodiscard]] std::uint64_t count() const noexcept { return word & 0xffffU; }
    [[nodiscard]] Micros fresh_at() const noexcept { return word >> 16; }
    [[nodiscard]] Micros paid_off_at() const noexcept { return fresh_at(); }
    [[nodiscard]] bool whole() const noexcept { return check == word * factor; }

private:
    static constexpr std::uint64_t factor = 0x9e3779b97f4a7c15U;
};

struct Operation {
    enum Kind { add, add_both, erase };

    Kind kind = add;
    char key = 'a';
    std::uint64_t amount = 0;  // 0: only looks
    Micros fresh_in = 64;
    Micros now = 1;
    char other = 'a';  // of add_both: all or nothing
    std::uint64_t other_amount = 0;
};

/// As many as fit: beyond, an addition is refused.
constexpr std::uint64_t limit = 5;

// An answer: the count, or those of two keys, which are what they were if something is refused.
constexpr unsigned count_bits = 4;
constexpr std::uint64_t refused = 0x100;
constexpr std::uint64_t torn = 0x200;

Operation add(char key, std::uint64_t amount = 1, Micros fresh_in = 64, Micros now = 1) {
    return {Operation::add, key, amount, fresh_in, now};
}
Operation look(char key) {
    return add(key, 0);
}
Operation add_both(char key, char other, std::uint64_t amount = 1) {
    return {Operation::add_both, key, amount, 64, 1, other, amount};
}
Operation look_at_both(char key, char other) {
    return add_both(key, other, 0);
}
Operation look_and_add(char key, char other) {
    return {Operation::add_both, key, 0, 64, 1, other, 1};
}
Operation erase(char key) {
    return {Operation::erase, key};
}

/// What a table is meant to be, one operation after the other. Which slot a client stands in does not show.
struct Clients {
    struct Client {
        std::uint64_t count;
        Micros fresh_at;

        friend bool operator==(const Client&, const Client&) = default;
    };

    std::map<char, Client> clients;
    std::uint64_t evictions = 0;

    friend bool operator==(const Clients&, const Clients&) = default;

    using Outcome = std::pair<std::uint64_t, Clients>;

    /// An answer and what may be the case then: an insertion may drop any record if it must drop one.
    [[nodiscard]] std::vector<Outcome> apply(const Operation& operation, std::size_t room, bool erasing) const {
        if (operation.kind == Operation::add_both) {
            return apply_both(operation, room, erasing);
        }
        Clients next = *this;
        const auto found = next.clients.find(operation.key);
        const bool present = found != next.clients.end();
        if (operation.kind == Operation::erase) {
            if (present) {
                next.clients.erase(found);
            }
            return {{0, next}};
        }
        const std::uint64_t count = present ? found->second.count : 0;
        if (operation.amount == 0) {
            return {{count, next}};
        }
        const std::uint64_t answer = count + operation.amount;
        if (answer > limit) {
            return {{refused | count, next}};
        }
        const Micros fresh_at = operation.now + operation.fresh_in;
        if (present) {
            found->second = {answer, std::max(fresh_at, found->second.fresh_at)};
            return {{answer, next}};
        }
        std::vector<Outcome> outcomes;
        const Client client{operation.amount, fresh_at};
        for (const auto& [key, other] : clients) {
            const bool expired = other.fresh_at <= operation.now;
            if (clients.size() == room || expired || erasing) {
                Clients without = next;
                without.clients.erase(key);
                without.clients[operation.key] = client;
                without.evictions += expired ? 0 : 1;
                outcomes.emplace_back(answer, without);
            }
        }
        if (clients.size() < room) {
            next.clients[operation.key] = client;
            outcomes.emplace_back(answer, next);
        }
        return outcomes;
    }

    [[nodiscard]] std::vector<Outcome> apply_both(const Operation& operation, std::size_t room, bool erasing) const {
        const Operation first = add(operation.key, operation.amount);
        const Operation second = add(operation.other, operation.other_amount);
        std::vector<Outcome> outcomes;
        for (const auto& [one, between] : apply(first, room, erasing)) {
            for (const auto& [two, after] : between.apply(second, room, erasing)) {
                if (((one | two) & refused) == 0) {
                    outcomes.emplace_back(one | two << count_bits, after);
                } else {
                    outcomes.emplace_back(refused | count(first.key) | count(second.key) << count_bits, *this);
                }
            }
        }
        return outcomes;
    }

    [[nodiscard]] std::uint64_t count(char key) const {
        const auto found = clients.find(key);
        return found == clients.end() ? 0 : found->second.count;
    }
};

/// Operations that threads carried out, and in what order as far as others could tell.
struct Calls {
    const std::vector<Operation>& operations;
    const std::vector<Call>& calls;
    std::size_t room;

    /// Whether some order of them gives their answers, and leads from one content of the table to the other.
    [[nodiscard]] bool lead(const Clients& from, const Clients& to, unsigned done = 0) const {
        if (done + 1 == 1U << calls.size()) {
            return from == to;
        }
        for (std::size_t i = 0; i < calls.size(); ++i) {
            if ((done >> i & 1U) != 0 || (calls[i].before & ~done) != 0) {
                continue;
            }
            for (const auto& [answer, next] : from.apply(operations[i], room, meets_erasure(i))) {
                if (answer == calls[i].answer && lead(next, to, done | 1U << i)) {
                    return true;
                }
            }
            if (operations[i].kind == Operation::add_both && (from.clients.size() == room || meets_erasure(i))) {
                // It takes the slots for new keys one by one, so others may miss who stood there before they see it.
                for (const auto& [key, client] : from.clients) {
                    Clients without = from;
                    without.clients.erase(key);
                    ++without.evictions;
                    if (lead(without, to, done)) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

private:
    [[nodiscard]] bool meets_erasure(std::size_t call) const {
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const bool apart = (calls[call].before >> i & 1U) != 0 || (calls[i].before >> call & 1U) != 0;
            if (i != call && !apart && operations[i].kind == Operation::erase) {
                return true;
            }
        }
        return false;
    }
};

/// Tables of two sets. A key in lower case tries the first set first, one in upper case the second.
template <unsigned Ways = 1,
          template <class> class Variable = model::Atomic,
          unsigned SequenceBits = 2,
          unsigned SetLocks = 2>
struct Tiny {
    template <class T>
    using Atomic = Variable<T>;

    static constexpr unsigned ways = Ways;
    static constexpr unsigned sequence_bits = SequenceBits;
    static constexpr unsigned set_locks = SetLocks;

    static void pause(unsigned) noexcept { model::pause(); }
};

/// So wide that a slot fills a cache line, and a key is looked for in the second set before all of the first.
template <class T>
struct Wide : model::Atomic<T> {
    using model::Atomic<T>::Atomic;

    std::array<std::byte, 24> padding{};
};

struct Scenario {
    std::vector<Operation> before;
    std::vector<std::vector<Operation>> threads;
};

struct Result {
    Report report;
    std::string evictions;  // how many there may have been: "0 or 1"
};

template <class Sync>
class Bench {
    using Table = SlotTable<Tally, Sync>;

public:
    explicit Bench(const Scenario& scenario) {
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            const std::string slot = "slot " + std::to_string(i);
            explorer_.name(&slots_[i].word, slot + " word");
            for (std::size_t word = 0; word < slots_[i].record.size(); ++word) {
                explorer_.name(&slots_[i].record[word], slot + " record " + std::to_string(word));
            }
        }
        for (const Operation& operation : scenario.before) {
            run(operation);
        }
        before_ = left();
        for (const std::vector<Operation>& thread : scenario.threads) {
            Explorer::Calls calls;
            for (const Operation& operation : thread) {
                operations_.push_back(operation);
                calls.emplace_back([this, operation] { return run(operation); });
            }
            explorer_.thread(std::move(calls));
        }
    }

    Result explore(unsigned patience = Explorer::unlimited) {
        explorer_.patience = patience;
        evictions_.clear();
        Result result;
        result.report = explorer_.explore([this](const std::vector<Call>& calls) { return judge(calls); });
        for (const std::uint64_t count : evictions_) {
            result.evictions += (result.evictions.empty() ? "" : " or ") + std::to_string(count);
        }
        return result;
    }

    Report walk() {
        return explorer_.walk([this](const std::vector<Call>& calls) { return judge(calls); });
    }

private:
    [[nodiscard]] typename Table::Place place(char key) const {
        const std::uint64_t first_set = key >= 'a' ? 0 : std::uint64_t{1} << 63;
        return table_.place({first_set | static_cast<unsigned char>(key), ~first_set});
    }

    [[nodiscard]] char key_of(std::uint64_t fingerprint) const {
        char key = 'A';
        while (place(key).fingerprint != fingerprint) {
            ++key;
        }
        return key;
    }

    std::uint64_t run(const Operation& operation) {
        if (operation.kind == Operation::erase) {
            table_.erase(place(operation.key));
            return 0;
        }
        if (operation.kind == Operation::add_both) {
            return run_both(operation);
        }
        std::uint64_t answer = 0;
        table_.update(place(operation.key), operation.now, 0, [&](Tally& tally) noexcept {
            answer = step(tally, operation.amount, operation);
            return operation.amount > 0 && (answer & refused) == 0;
        });
        return answer;
    }

    std::uint64_t run_both(const Operation& operation) {
        std::array<typename Table::Entry, 2> entries{};
        entries[0].place = place(operation.key);
        entries[1].place = place(operation.other);
        std::uint64_t answer = 0;
        table_.update_all(entries, operation.now, [&]() noexcept {
            auto& first = entries[0];
            auto& second = entries[1].same != nullptr ? *entries[1].same : entries[1];
            const std::uint64_t before = first.record.count() | second.record.count() << count_bits;
            const std::uint64_t one = step(first.record, operation.amount, operation);
            const std::uint64_t two = step(second.record, operation.other_amount, operation);
            first.changed = operation.amount > 0;
            second.changed |= operation.other_amount > 0;
            const bool fits = ((one | two) & refused) == 0;
            answer = ((one | two) & torn) | (fits ? (one & ~torn) | (two & ~torn) << count_bits : refused | before);
            return fits && (first.changed || second.changed);
        });
        return answer;
    }

    static std::uint64_t step(Tally& tally, std::uint64_t amount, const Operation& operation) noexcept {
        const std::uint64_t whole = tally.whole() ? 0 : torn;
        const std::uint64_t count = tally.count() + amount;
        if (amount == 0) {
            return whole | count;
        }
        if (count > limit) {
            return whole | refused | tally.count();
        }
        tally = Tally(count, std::max(tally.fresh_at(), operation.now + operation.fresh_in));
        return whole | count;
    }

    std::string judge(const std::vector<Call>& calls) {
        wrong_.clear();
        const Clients clients = left();
        evictions_.insert(clients.evictions);
        for (const Call& call : calls) {
            if ((call.answer & torn) != 0) wrong_ = "an answer from a torn record";
        }
        if (wrong_.empty() && !Calls{operations_, calls, slots_.size()}.lead(before_, clients)) {
            wrong_ = "no order of the operations gives these answers and leaves " + text(clients);
        }
        return wrong_;
    }

    /// What stands in the slots now.
    Clients left() {
        Clients clients;
        clients.evictions = table_.evictions();
        for (typename Table::Slot& slot : slots_) {
            const auto word = slot.load();
            if (word.locked()) wrong_ = "a slot stays locked";
            if (word.empty()) continue;
            Tally tally;
            tally.word = slot.record[0].load();
            tally.check = slot.record[1].load();
            if (!tally.whole()) wrong_ = "a record stays torn";
            if (tally.count() == 0) continue;  // a slot taken for a key that then was not added to
            const auto key = key_of(word.fingerprint());
            if (!clients.clients.emplace(key, Clients::Client{tally.count(), tally.fresh_at()}).second) {
                wrong_ = "a key stands in two slots";
            }
        }
        return clients;
    }

    static std::string text(const Clients& clients) {
        std::ostringstream out;
        for (const auto& [key, client] : clients.clients) {
            out << key << " with " << client.count << " until " << client.fresh_at << ", ";
        }
        out << clients.evictions << " evictions";
        return out.str();
    }

    Explorer explorer_;
    std::array<typename Table::Slot, std::size_t{2} * Sync::ways> slots_{};
    Table table_{slots_.data(), 2};
    std::vector<Operation> operations_;
    Clients before_;
    std::string wrong_;
    std::set<std::uint64_t> evictions_;
};

template <class Sync = Tiny<>>
Result explore(const Scenario& scenario, unsigned patience = Explorer::unlimited) {
    const Result result = Bench<Sync>(scenario).explore(patience);
    MESSAGE(result.report);
    return result;
}

/// Explores in tables of every kind with room for all keys.
void explore_with_room(const Scenario& scenario) {
    for (const Result& result : {explore<Tiny<1>>(scenario),
                                 explore<Tiny<2>>(scenario),
                                 explore<Tiny<2, Wide>>(scenario),
                                 explore<Tiny<2, model::Atomic, 2, 1>>(scenario)}) {
        CHECK(result.report.failure == "");
        CHECK(result.evictions == "0");
    }
}

TEST_CASE("two threads that insert one key share one slot and both count") {
    explore_with_room({.before = {}, .threads = {{add('a', 1)}, {add('a', 2)}}});
}

TEST_CASE("three threads that insert one key share one slot and all count") {
    const Result result = explore<Tiny<2>>({{}, {{add('a', 1)}, {add('a', 2)}, {add('a', 2)}}});
    CHECK(result.report.failure == "");
    CHECK(result.evictions == "0");
}

TEST_CASE("two keys whose first sets are each other's second find a slot each") {
    explore_with_room({.before = {}, .threads = {{add('a')}, {add('A')}}});
}

TEST_CASE("every update of one key counts, up to the limit and no further") {
    explore_with_room({.before = {add('a')}, .threads = {{add('a', 1)}, {add('a', 2), add('a', 2)}}});
    explore_with_room({.before = {add('a')}, .threads = {{add('a', 2)}, {add('a', 2)}, {add('a', 1)}}});
}

TEST_CASE("an answer that changes nothing comes from a record that was whole") {
    explore_with_room({.before = {add('a')}, .threads = {{look('a'), add('a', 5)}, {add('a'), add('a')}}});
    explore_with_room({.before = {}, .threads = {{look('a'), look('a')}, {add('a'), erase('a')}}});
    explore_with_room({.before = {add('a')}, .threads = {{look('a'), look('a')}, {add('a', 2)}, {erase('a')}}});
}

TEST_CASE("an erasure comes before or after an insertion, an update, another erasure") {
    explore_with_room({.before = {}, .threads = {{add('a')}, {erase('a')}}});
    explore_with_room({.before = {}, .threads = {{add('a')}, {add('a')}, {erase('a')}}});
    explore_with_room({.before = {add('a')}, .threads = {{add('a'), look('a')}, {erase('a')}}});
    explore_with_room({.before = {add('a')}, .threads = {{add('a')}, {erase('a'), add('a')}}});
    explore_with_room({.before = {add('a')}, .threads = {{erase('a'), add('a')}, {erase('a')}}});
}

// With one slot in a set, two clients fill the table; 'C' is in nobody's way.
const std::vector<Operation> full{add('a', 1, 8), add('C', 1, 1024)};

TEST_CASE("a client that is looked at while evicted, and comes back, is answered for as one or the other") {
    for (const Operation& operation : {look('a'), add('a', 1, 8)}) {
        // Into the same slot: its word differs from what it was by two writes only.
        CHECK(explore({full, {{operation}, {add('b', 1, 16), add('a', 1, 8)}}}).report.failure == "");
        CHECK(explore({full, {{operation}, {add('b', 1, 8)}, {add('a', 1, 8)}}}).report.failure == "");
        // Into another.
        CHECK(explore({full, {{operation}, {add('b', 1, 16), erase('C'), add('a', 1, 8)}}}).report.failure == "");
    }
}

TEST_CASE("a reader is not deceived by fewer writes than the sequence counts") {
    const std::vector<Operation> one{add('a')};
    CHECK(explore({one, {{look('a')}, {add('a'), add('a'), add('a')}}}).report.failure == "");
    for (const Operation& operation : {look('a'), add('a', 1, 8)}) {
        CHECK(explore({one, {{operation}, {erase('a'), add('a'), add('a')}}}).report.failure == "");
        CHECK(explore({full, {{operation}, {add('b', 1, 8), add('a', 1, 8), add('a', 1, 8)}}}).report.failure == "");
    }
    // By as many he is.
    for (const Operation& operation : {look('a'), add('a')}) {
        const Result result = explore({one, {{operation}, {add('a'), add('a'), add('a'), add('a')}}});
        CHECK(result.report.failure.find("an answer from a torn record") != std::string::npos);
    }
}

TEST_CASE("into full sets two threads insert one key, and a third another") {
    const Result one = explore({full, {{add('b', 1, 16)}, {add('b', 2, 16)}, {add('a', 1, 16)}}});
    CHECK(one.report.failure == "");
    CHECK(one.evictions == "1 or 2 or 3");
    const Result two =
        explore<Tiny<2>>({{add('c'), add('d'), add('C'), add('D')}, {{add('a', 1)}, {add('a', 2)}, {add('b')}}});
    CHECK(two.report.failure == "");
    CHECK(two.evictions == "2 or 3");
}

TEST_CASE("of two keys that insert into the last free slot one evicts") {
    for (const Result& result : {explore({{add('c')}, {{add('a')}, {add('B')}}}),
                                 explore({{add('c')}, {{add('a')}, {add('b')}}}),
                                 explore<Tiny<2>>({{add('c'), add('d'), add('D')}, {{add('a')}, {add('B')}}})}) {
        CHECK(result.report.failure == "");
        CHECK(result.evictions == "1");
    }
}

TEST_CASE("the slot of an expired client is reclaimed, or he comes back first") {
    const std::vector<Operation> expired{add('a', 1, 4), add('C', 1, 1024)};
    const Result in_time = explore({expired, {{add('a', 1, 4, 1)}, {add('b', 1, 4, 100)}}});
    CHECK(in_time.report.failure == "");
    CHECK(in_time.evictions == "0 or 1");
    const Result late = explore({expired, {{add('a', 1, 4, 100)}, {add('b', 1, 4, 100)}}});
    CHECK(late.report.failure == "");
    CHECK(late.evictions == "1");
}

TEST_CASE("an insertion passes over slots that are erased under its eyes, and may evict though they are free") {
    const Result result = explore({full, {{add('D')}, {erase('C'), erase('a'), add('b')}}});
    CHECK(result.report.failure == "");
    CHECK(result.evictions == "0 or 1");
}

TEST_CASE("a step over two keys is one moment beside any other step") {
    const std::vector<Operation> both{add('a'), add('A')};
    explore_with_room({both, {{add_both('a', 'A')}, {add('a')}}});
    explore_with_room({both, {{add_both('a', 'A')}, {add_both('A', 'a')}}});
    explore_with_room({both, {{add_both('a', 'A')}, {look('a'), look('A')}}});
    explore_with_room({both, {{add_both('a', 'A')}, {look_at_both('A', 'a')}}});
    explore_with_room({both, {{look_at_both('a', 'A')}, {add('a'), add('A')}}});
    explore_with_room({both, {{look_and_add('A', 'a')}, {add('A'), add('a')}}});
    explore_with_room({both, {{add_both('a', 'A', 4)}, {add('a', 2)}, {look('A')}}});
    explore_with_room({both, {{add_both('a', 'A')}, {erase('a')}}});
}

TEST_CASE("a step over one key twice is one moment, and the second sees the first") {
    explore_with_room({.before = {add('a')}, .threads = {{add_both('a', 'a')}, {add('a')}}});
    explore_with_room({.before = {}, .threads = {{add_both('a', 'a')}, {add('a')}}});
}

TEST_CASE("a step over a new key and an old one is one moment") {
    const std::vector<Operation> one{add('a')};
    explore_with_room({one, {{add_both('a', 'A')}, {add_both('A', 'a')}}});
    explore_with_room({one, {{add_both('a', 'A')}, {add('a'), add('A')}}});
    explore_with_room({one, {{add_both('A', 'a', 5)}, {add('A'), erase('a')}}});
    explore_with_room({one, {{look_at_both('A', 'a')}, {add('A'), add('a')}}});
    explore_with_room({one, {{look_and_add('A', 'a')}, {add('A'), add('a')}}});
}

TEST_CASE("a step over two new keys is one moment") {
    explore_with_room({.before = {}, .threads = {{add_both('a', 'b')}, {add('a')}}});
    explore_with_room({.before = {}, .threads = {{add_both('a', 'A')}, {look_at_both('a', 'A')}}});
    explore_with_room({.before = {}, .threads = {{look_at_both('a', 'A')}, {add('a'), add('A')}}});
    const Result result = explore({{}, {{add_both('a', 'A')}, {add_both('A', 'a')}}}, 2);
    CHECK(result.report.failure == "");
    CHECK(result.evictions == "0");
}

TEST_CASE("two new keys in one step make room for each other, though there is only just enough") {
    const Result alone = explore({full, {{add_both('b', 'D')}}});
    CHECK(alone.report.failure == "");
    CHECK(alone.evictions == "2");
    CHECK(explore({{}, {{add_both('a', 'A')}, {add('c')}}}).report.failure == "");
    CHECK(explore({full, {{add_both('b', 'D')}, {add('e')}}}).report.failure == "");
}

TEST_CASE("a slot that is taken in vain is not mistaken for what it was") {
    const Result result = explore({full, {{look('a')}, {add_both('b', 'D')}, {erase('C'), add('a', 2, 8)}}}, 1);
    CHECK(result.report.failure == "");
}

TEST_CASE("walking over every interleaving on its own gives the same") {
    for (const Scenario& scenario :
         {Scenario{{}, {{add('a', 1)}, {add('a', 2)}}}, Scenario{{add('a')}, {{add('a'), look('a')}, {erase('a')}}}}) {
        Bench<Tiny<>> bench(scenario);
        const Report walked = bench.walk();
        CHECK(walked.failure == "");
        CHECK(walked.executions == bench.explore().report.executions);
    }
}

// Faults planted where the protocol takes care, so that silence above means something.

template <class T>
constexpr bool is_set_lock = std::is_same_v<T, std::uint32_t>;

/// Set locks that everybody holds at once.
template <class T>
struct OpenLock : model::Atomic<T> {
    using model::Atomic<T>::Atomic;

    T exchange(T value, std::memory_order order) noexcept {
        return is_set_lock<T> ? 0 : model::Atomic<T>::exchange(value, order);
    }
};

/// Set locks that nobody gives back.
template <class T>
struct KeptLock : model::Atomic<T> {
    using model::Atomic<T>::Atomic;

    void store(T value, std::memory_order order) noexcept {
        if (!is_set_lock<T>) {
            model::Atomic<T>::store(value, order);
        }
    }
};

/// A second look at a word, which is relaxed, shows what the first did.
template <class T>
struct Unvalidated : model::Atomic<T> {
    using model::Atomic<T>::Atomic;

    T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
        if (order != std::memory_order_relaxed) {
            first_ = model::Atomic<T>::load(order);
        }
        return first_;
    }

private:
    mutable T first_{};
};

/// Compares and exchanges in two steps.
template <class T>
struct TwoSteps : model::Atomic<T> {
    using model::Atomic<T>::Atomic;

    bool compare_exchange_strong(T& expected, T desired, std::memory_order, std::memory_order) noexcept {
        if (this->load() != expected) {
            return false;
        }
        this->store(desired);
        return true;
    }
};

template <template <class> class Variable>
std::string failure(const Scenario& scenario) {
    std::string text = Bench<Tiny<1, Variable>>(scenario).explore().report.failure;
    return text.substr(0, text.find('\n', 1));
}

TEST_CASE("without set locks a key is found in two slots") {
    CHECK(failure<OpenLock>({{}, {{add('a', 1)}, {add('a', 2)}}}) == "\na key stands in two slots");
}

TEST_CASE("a set lock that is not given back is found to block") {
    CHECK(failure<KeptLock>({{}, {{add('a', 1)}, {add('b', 2)}}}) == "\nblocked: no thread can go on");
}

TEST_CASE("without validation an answer is found to come from a torn record") {
    CHECK(failure<Unvalidated>({{add('a')}, {{look('a')}, {add('a')}}}) == "\nan answer from a torn record");
}

TEST_CASE("with a compare-and-exchange in two steps an update is found to be lost") {
    CHECK(failure<TwoSteps>({{add('a')}, {{add('a')}, {add('a')}}}) ==
          "\nno order of the operations gives these answers and leaves a with 2 until 65, 0 evictions");
}

}  // namespace
