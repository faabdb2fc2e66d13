// SPDX-License-Identifier: MIT
// Whatever servers send: every call ends once, what is taken for a decision is one, and it does not matter how the
// bytes are cut. From bytes to decisions in one go, without a socket.
#include <penstock/redis/traffic.hpp>

#include <penstock/algorithm/all_of.hpp>
#include <penstock/algorithm/fixed_window.hpp>
#include <penstock/algorithm/sliding_window.hpp>
#include <penstock/algorithm/token_bucket.hpp>
#include <penstock/decision.hpp>
#include <penstock/plan.hpp>
#include <penstock/redis/layout.hpp>
#include <penstock/redis/question.hpp>
#include <penstock/redis/url.hpp>

#include "oracle.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using penstock::AllOf;
using penstock::Decision;
using penstock::FixedWindow;
using penstock::Op;
using penstock::SlidingWindow;
using penstock::StoreError;
using penstock::TokenBucket;
using penstock::redis::Call;
using penstock::redis::Context;
using penstock::redis::Layout;
using penstock::redis::Node;
using penstock::redis::Question;
using penstock::redis::Settings;
using penstock::redis::Traffic;
using std::chrono::microseconds;

constexpr std::uint64_t largest_limit = std::uint64_t{1} << 39;
constexpr microseconds longest_wait{std::int64_t{1} << 54};  // the end of time, and as much that a clock is behind

/// What holds for every answer that a limiter passes on.
void check(const Decision& decision, Op op, std::uint64_t limit) {
    expect(decision.limit == limit || (limit == 0 && decision.limit <= largest_limit), "a limit of its own");
    expect(decision.remaining <= decision.limit, "more left than there is");
    expect(decision.reset_after >= 0us && decision.reset_after <= longest_wait, "a reset out of range");
    expect(decision.retry_after >= 0us, "a wait below zero");
    expect(decision.retry_after <= longest_wait || decision.retry_after == penstock::never, "a wait out of range");
    expect(decision.allowed || decision.retry_after > 0us, "rejected, and to be tried at once");
    expect(!decision.allowed || decision.retry_after == 0us || op == Op::reserve, "allowed, and to be tried later");
    expect(decision.source == penstock::Source::store, "not the store's");
}

/// A call of any algorithm, and how often it has ended.
struct Asked {
    virtual ~Asked() = default;
    [[nodiscard]] virtual Call& call() = 0;
    [[nodiscard]] virtual std::string outcome() const = 0;

    int ended = 0;
    bool cancelled = false;
};

template <class Algorithm>
class AskedOf final : public Asked {
public:
    AskedOf(const Algorithm& algorithm, Op op, Layout layout, std::size_t number)
        : op_(op), key_("client " + std::to_string(number)), plan_(penstock::plan(algorithm)),
          question_(context(layout), {op, key_, &plan_, 1'000'000 * number, 1 + number % 3, 1h}) {}

    [[nodiscard]] Call& call() override { return question_; }

    [[nodiscard]] std::string outcome() const override {
        Decision decision;
        const StoreError error = question_.answer(decision);
        if (error != StoreError::none) {
            expect(decision == Decision{}, "an error that decides");
            return std::string(to_string(error));
        }
        if (op_ != Op::reset) {
            check(decision, op_, penstock::redis::Scripts<Algorithm>::limit_of(plan_));
        }
        return std::to_string(decision.allowed) + ' ' + std::to_string(decision.limit) + ' ' +
               std::to_string(decision.remaining) + ' ' + std::to_string(decision.retry_after.count()) + ' ' +
               std::to_string(decision.reset_after.count());
    }

private:
    static const Context<Algorithm>& context(Layout layout) {
        static const Context<Algorithm> packed(Layout::packed, "p", {});
        static const Context<Algorithm> per_key(Layout::per_key, "p", {});
        return layout == Layout::packed ? packed : per_key;
    }

    Op op_;
    std::string key_;
    penstock::Plan<Algorithm> plan_;
    Question<Algorithm> question_;
};

constexpr TokenBucket bucket{.capacity = 100, .refill = penstock::per_second(10)};
constexpr TokenBucket wide{.capacity = largest_limit, .refill = penstock::per(1'000'000, 1s)};
constexpr SlidingWindow sliding{.limit = 1000, .window = 60s};
constexpr FixedWindow fixed{.limit = 10, .window = 1h};

/// 'A' to 'F' are the operations of a bucket, 'G' to 'L' those of the next algorithm, and so on.
std::unique_ptr<Asked> question(unsigned char which, Layout layout, std::size_t number) {
    const unsigned code = (which + 256U - 'A') % 256U;
    const auto op = static_cast<Op>(code % 6);
    switch (code / 6 % 6) {
    case 0:
        return std::make_unique<AskedOf<TokenBucket>>(bucket, op, layout, number);
    case 1:
        return std::make_unique<AskedOf<SlidingWindow>>(sliding, op, layout, number);
    case 2:
        return std::make_unique<AskedOf<FixedWindow>>(fixed, op, layout, number);
    case 3:
        return std::make_unique<AskedOf<AllOf<TokenBucket, FixedWindow>>>(AllOf{bucket, fixed}, op, layout, number);
    case 4:
        return std::make_unique<AskedOf<AllOf<TokenBucket, TokenBucket>>>(AllOf{bucket, wide}, op, layout, number);
    default:
        return std::make_unique<AskedOf<TokenBucket>>(wide, op, layout, number);
    }
}

/// Where the calls go: '0' to one server, '1' in the packed layout, '2' to a ring, '3' to a cluster.
Settings settings_of(unsigned char scene) {
    constexpr const char* urls[] = {
        "redis://u:p@h/1", "redis://h", "redis+ring://a,b", "redis+cluster://seed-1,seed-2"};
    Settings settings{.target = penstock::redis::parse_url(urls[scene % 4]), .most_in_flight = 8};
    settings.timeout = 1'000'000;
    if (scene % 4 != 0) {
        settings.meta_key = "p:meta";
        settings.meta = {.buckets = 4, .secret = 5};
    }
    return settings;
}

enum class Cuts { as_said, none, everywhere };

/// What the input tells, a byte an action; other bytes are what the present server says:
///     ?x  a call is asked, x says which        |  the server's words so far are a segment
///     @   the next server is the present one   !  its connection breaks, or cannot be made
///     ~   time passes                          ^  the first call of those left is taken back
///     %   what is to be known is asked for
class Play {
public:
    Play(unsigned char scene, Cuts cuts)
        : layout_(scene % 4 == 0 ? Layout::per_key : Layout::packed), settings_(settings_of(scene)),
          traffic_(settings_, nullptr), cuts_(cuts) {}

    void run(std::string_view script) {
        for (std::size_t i = 0; i < script.size(); ++i) {
            if (script[i] == '?' && i + 1 < script.size()) {
                finish_speech();
                ask(static_cast<unsigned char>(script[++i]));
            } else if (script[i] == '|') {
                cut();
            } else if (std::string_view("@!~^%").find(script[i]) != std::string_view::npos) {
                finish_speech();
                act(script[i]);
            } else {
                piece_ += script[i] == '\n' ? "\r\n" : std::string(1, script[i]);
            }
        }
        finish_speech();
    }

    /// How each call has ended, and what was counted.
    [[nodiscard]] std::string end() {
        now_ += settings_.timeout;
        traffic_.expire(now_);
        tell();
        expect(traffic_.idle(), "a call that does not end");
        std::string all;
        std::uint64_t cancelled = 0;
        for (const std::unique_ptr<Asked>& each : asked_) {
            expect(each->ended == (each->cancelled ? 0 : 1), "a call that does not end once");
            cancelled += each->cancelled ? 1 : 0;
            all += each->cancelled ? "cancelled\n" : each->outcome() + '\n';
        }
        return all + counts(cancelled);
    }

private:
    void ask(unsigned char which) {
        asked_.push_back(question(which, layout_, asked_.size()));
        traffic_.add(asked_.back()->call(), now_);
    }

    void act(char action) {
        switch (action) {
        case '@':
            present_ = (present_ + 1) % traffic_.nodes().size();
            break;
        case '!':
            if (!node().established) {
                static_cast<void>(node().fsm.tick(node().fsm.due()));
            }
            traffic_.lose(node(), StoreError::unavailable, now_);
            break;
        case '~':
            now_ += settings_.timeout;
            traffic_.expire(now_);
            tell();
            break;
        case '^':
            take_back();
            break;
        default:
            traffic_.explore(now_);
        }
    }

    [[nodiscard]] Node& node() { return *traffic_.nodes()[present_]; }

    void cut() {
        if (cuts_ == Cuts::as_said) {
            say();
        }
    }

    /// What was said up to now is heard before anything else happens.
    void finish_speech() {
        say();
        speaking_ = false;
    }

    /// A server that begins to speak has a connection; one that loses it is not heard any more.
    void say() {
        const std::string piece = std::exchange(piece_, {});
        if (piece.empty()) {
            return;
        }
        if (!std::exchange(speaking_, true) && !node().established) {
            static_cast<void>(node().fsm.tick(node().fsm.due()));
            traffic_.greet(node());
        }
        const std::size_t step = cuts_ == Cuts::everywhere ? 1 : piece.size();
        for (std::size_t at = 0; at < piece.size() && node().established; at += step) {
            node().closed = !node().reader().feed(std::string_view(piece).substr(at, step));
            traffic_.take_answers(node(), true, now_);
        }
        for (const std::unique_ptr<Node>& each : traffic_.nodes()) {
            each->inbox.clear();
        }
    }

    /// Whose calls are over are told.
    void tell() {
        while (const Call* call = traffic_.take_finished()) {
            const auto found =
                std::find_if(asked_.begin(), asked_.end(), [&](const auto& each) { return &each->call() == call; });
            expect(found != asked_.end() && !(*found)->cancelled, "a call of nobody");
            ++(*found)->ended;
        }
    }

    void take_back() {
        const auto found = std::find_if(
            asked_.begin(), asked_.end(), [](const auto& each) { return each->ended == 0 && !each->cancelled; });
        if (found != asked_.end()) {
            (*found)->cancelled = true;
            traffic_.cancel((*found)->call());
        }
    }

    [[nodiscard]] std::string counts(std::uint64_t taken_back) const {
        const auto& stats = traffic_.stats;
        const std::uint64_t ended = std::accumulate(stats.ended.begin(), stats.ended.end(), std::uint64_t{0});
        // One that was over, but not told, is counted as what it was.
        expect(ended <= asked_.size() && ended + taken_back >= asked_.size(), "calls that are not counted");
        expect(ended + stats.cancelled == asked_.size(), "calls that are not counted once");
        std::string all;
        for (const std::uint64_t count : {stats.sent, stats.late, stats.loads, stats.losses, stats.disagreements}) {
            all += std::to_string(count) + ' ';
        }
        for (const std::unique_ptr<Node>& each : traffic_.nodes()) {
            all += each->ready() ? "ready " : "away ";
        }
        return all;
    }

    const Layout layout_;
    const Settings settings_;
    std::deque<std::unique_ptr<Asked>> asked_;  // they outlive the traffic
    Traffic traffic_;
    const Cuts cuts_;
    std::int64_t now_ = 0;
    std::size_t present_ = 0;
    bool speaking_ = false;
    std::string piece_;
};

std::string outcome(std::string_view input, Cuts cuts) {
    Play play(static_cast<unsigned char>(input.front()), cuts);
    play.run(input.substr(1));
    return play.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    if (!input.empty()) {
        const std::string expected = outcome(input, Cuts::as_said);
        expect(outcome(input, Cuts::none) == expected, "another outcome without the cuts");
        expect(outcome(input, Cuts::everywhere) == expected, "another outcome with a cut at every byte");
    }
    return 0;
}
