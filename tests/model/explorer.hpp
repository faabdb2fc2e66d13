// SPDX-License-Identifier: MIT
// A model checker: takes threads through every interleaving of their operations on atomic variables.
//
// What a call does that shares nothing but Atomics with others, and sees neither time nor chance, follows from what its
// operations returned. So a call is a tree: a node is the operation it wants to do next, an edge what that returns. The
// code under test runs only to grow the trees, from the call's beginning and on a script of returned values. The search
// walks over states: the values of the Atomics, each thread's node, and the answers so far. Interleavings that meet in
// one state go on as one, which is exact, as nothing else can tell them apart.
//
// A call that pauses begins its attempt anew and remembers nothing of the last, so it returns to the node at which that
// began. Then there are finitely many states, though threads may try as often as they like, and it can be seen whether
// an end remains in reach from each of them. That it remembers nothing is tried on the code as well.
//
// Interleavings are sequentially consistent: the memory orders that the code names are ignored here.
#ifndef PENSTOCK_TESTS_MODEL_EXPLORER_HPP
#define PENSTOCK_TESTS_MODEL_EXPLORER_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_MODEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENSTOCK_MODEL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define PENSTOCK_MODEL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PENSTOCK_MODEL_TSAN 1
#endif
#endif
#if defined(PENSTOCK_MODEL_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(PENSTOCK_MODEL_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace model {

/// Runs a function that can be left in its midst for good, whatever is noexcept on the way: on a stack of its own.
class Fiber {
public:
    explicit Fiber(std::function<void()> body) : body_(std::move(body)), stack_(64 * 1024) {}
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;
#if defined(PENSTOCK_MODEL_TSAN)
    ~Fiber() {
        if (fiber_ != nullptr) {
            __tsan_destroy_fiber(fiber_);
        }
    }
#endif

    /// Runs the function from its beginning until it returns or leaves.
    void run() {
        getcontext(&inside_);
        inside_.uc_stack.ss_sp = stack_.data();
        inside_.uc_stack.ss_size = stack_.size();
        inside_.uc_link = nullptr;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        makecontext(&inside_,
                    reinterpret_cast<void (*)()>(&enter),
                    2,
                    static_cast<unsigned>(self >> 32),
                    static_cast<unsigned>(self & 0xffffffffU));
#if defined(PENSTOCK_MODEL_TSAN)
        outside_fiber_ = __tsan_get_current_fiber();
        if (fiber_ == nullptr) {
            fiber_ = __tsan_create_fiber(0);
        }
        __tsan_switch_to_fiber(fiber_, 0);
#endif
#if defined(PENSTOCK_MODEL_ASAN)
        void* fake_stack = nullptr;
        __sanitizer_start_switch_fiber(&fake_stack, stack_.data(), stack_.size());
#endif
        swapcontext(&outside_, &inside_);
#if defined(PENSTOCK_MODEL_ASAN)
        __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
#if defined(PENSTOCK_MODEL_TSAN)
        // The sanitizer takes functions that were left for ever deeper recursion, so it forgets them now and then.
        if (++runs_ % 1024 == 0) {
            __tsan_destroy_fiber(std::exchange(fiber_, nullptr));
        }
#endif
    }

    /// Called by the function: goes back to run(). Nothing is unwound, so nothing on the stack may own memory.
    [[noreturn]] void leave() {
#if defined(PENSTOCK_MODEL_ASAN)
        __sanitizer_start_switch_fiber(nullptr, outside_stack_, outside_size_);
#endif
#if defined(PENSTOCK_MODEL_TSAN)
        __tsan_switch_to_fiber(outside_fiber_, 0);
#endif
        setcontext(&outside_);
        std::abort();
    }

private:
    static void enter(unsigned high, unsigned low) {
        auto& self = *reinterpret_cast<Fiber*>((std::uintptr_t{high} << 32) | low);
#if defined(PENSTOCK_MODEL_ASAN)
        __sanitizer_finish_switch_fiber(nullptr, &self.outside_stack_, &self.outside_size_);
#endif
        self.body_();
        self.leave();
    }

    std::function<void()> body_;
    std::vector<std::byte> stack_;
    ucontext_t inside_{};
    ucontext_t outside_{};
#if defined(PENSTOCK_MODEL_ASAN)
    const void* outside_stack_ = nullptr;
    std::size_t outside_size_ = 0;
#endif
#if defined(PENSTOCK_MODEL_TSAN)
    void* outside_fiber_ = nullptr;
    void* fiber_ = nullptr;
    unsigned runs_ = 0;
#endif
};

/// What a call does next. Everything but the first five is about its thread alone.
enum class Kind : std::uint8_t { load, store, exchange, compare_exchange, fetch_add, pause, call, answer, end };

struct Action {
    Kind kind = Kind::end;
    unsigned cell = 0;           // the variable, by number
    std::uint64_t operand = 0;   // what is stored, added or answered; the number of the call
    std::uint64_t expected = 0;  // by compare_exchange

    friend bool operator==(const Action&, const Action&) = default;

    [[nodiscard]] bool touches_memory() const noexcept { return kind <= Kind::fetch_add; }

    /// What the variable holds afterwards.
    [[nodiscard]] std::uint64_t apply(std::uint64_t value) const noexcept {
        switch (kind) {
        case Kind::store:
        case Kind::exchange:
            return operand;
        case Kind::compare_exchange:
            return value == expected ? operand : value;
        case Kind::fetch_add:
            return value + operand;
        default:
            return value;
        }
    }

    [[nodiscard]] std::uint64_t result(std::uint64_t value) const noexcept { return kind == Kind::store ? 0 : value; }
};

/// A call of a finished execution. Calls are numbered thread by thread, in the order in which they were given.
struct Call {
    std::uint64_t answer = 0;
    unsigned before = 0;  // the calls that were answered before this one began, a bit each
};

struct Report {
    std::string failure;    // empty, or what is wrong and how it came to that
    double executions = 0;  // distinct interleavings; infinite if threads may undo each other's work for ever
    std::size_t states = 0;
    std::size_t outcomes = 0;  // states in which all threads have ended

    friend std::ostream& operator<<(std::ostream& out, const Report& report) {
        return out << report.executions << " executions by way of " << report.states << " states to " << report.outcomes
                   << " outcomes";
    }
};

/// Explores what threads may do to the Atomics that are made while it lives. One at a time.
class Explorer {
public:
    using Calls = std::vector<std::function<std::uint64_t()>>;

    static constexpr unsigned unlimited = ~0U;

    /// Says what is wrong with a finished execution, or nothing. It finds the Atomics as the threads left them.
    using Check = std::function<std::string(const std::vector<Call>&)>;

    Explorer() : fiber_([this] { run_call(); }) {
        if (current_ != nullptr) throw std::logic_error("one explorer at a time");
        current_ = this;
    }
    Explorer(const Explorer&) = delete;
    Explorer& operator=(const Explorer&) = delete;
    ~Explorer() { current_ = nullptr; }

    [[nodiscard]] static Explorer* current() noexcept { return current_; }

    /// Adds a thread that makes these calls one after the other. They must be pure but for the Atomics.
    void thread(Calls calls) {
        if (threads_.size() == most_threads || calls_.size() + calls.size() > most_calls) {
            throw std::length_error("too many threads or calls");
        }
        Thread& thread = threads_.emplace_back();
        for (auto& call : calls) {
            calls_.push_back(std::move(call));
            thread.roots.push_back(grow(thread, static_cast<unsigned>(calls_.size() - 1), none, 0));
        }
        thread.roots.push_back(static_cast<unsigned>(thread.nodes.size()));
        thread.nodes.emplace_back();
    }

    /// Tries all interleavings, up to a shortest that is wrong.
    Report explore(const Check& check) {
        Report report;
        const State start = begin();
        states_ = {};
        arrivals_ = {{}};
        successors_.clear();
        states_.number(start);
        for (unsigned number = 0; number < states_.size() && report.failure.empty(); ++number) {
            const State state = states_[number];
            auto& successors = successors_.emplace_back();
            successors.fill(none);
            const std::vector<unsigned> turns = who_can_step(state);
            for (const unsigned t : turns) {
                successors[t] = states_.number(step(state, t));
                if (successors[t] == arrivals_.size()) {
                    arrivals_.push_back({number, t});
                }
            }
            if (turns.empty()) {
                ++report.outcomes;
                if (const std::string wrong = finish(state, check); !wrong.empty()) {
                    report.failure = '\n' + wrong + account(number);
                }
            } else if (states_.size() > most_states) {
                report.failure = "\ntoo many states";
            }
        }
        report.states = states_.size();
        if (report.failure.empty()) {
            report.executions = count_executions();
            if (const unsigned lost = find_lost(); lost != none) {
                report.failure = "\nno end is in reach" + account(lost);
            }
            check_forgetting();
        }
        restore(start);
        return report;
    }

    /// Tries all interleavings one by one, which must be finitely many.
    Report walk(const Check& check) {
        Report report;
        const State start = begin();
        walk(start, check, report);
        restore(start);
        return report;
    }

    /// How often a thread pauses in one call before it lets all others go first: a limit for threads that undo each
    /// other's work in so many ways that they cannot all be tried.
    unsigned patience = unlimited;

    // For Atomic.

    void add(void* variable, std::uint64_t (*get)(const void*), void (*set)(void*, std::uint64_t)) {
        numbers_[variable] = static_cast<unsigned>(cells_.size());
        cells_.push_back({variable, get, set, "variable " + std::to_string(cells_.size())});
    }

    /// The name of a variable in the account of a failure.
    void name(const void* variable, std::string name) { cells_[numbers_.at(variable)].name = std::move(name); }

    [[nodiscard]] bool in_thread() const noexcept { return in_thread_; }

    /// In a thread: what the operation returned, if the script goes that far.
    std::uint64_t perform(Kind kind, const void* variable, std::uint64_t operand = 0, std::uint64_t expected = 0) {
        return perform(Action{kind, variable == nullptr ? 0 : numbers_.at(variable), operand, expected});
    }

private:
    static constexpr std::size_t most_threads = 4;
    static constexpr std::size_t most_calls = 8;
    static constexpr std::size_t most_steps = 1000;  // of a call, without a pause
    static constexpr std::size_t most_states = 4'000'000;
    static constexpr unsigned none = ~0U;

    using Memory = std::vector<std::uint64_t>;

    struct Cell {
        void* variable;
        std::uint64_t (*get)(const void*);
        void (*set)(void*, std::uint64_t);
        std::string name;
    };

    struct Node {
        Action action;
        unsigned call = 0;
        unsigned parent = none;
        std::uint64_t result = 0;                              // of the parent's action
        std::vector<std::pair<std::uint64_t, unsigned>> next;  // by what the action returns
        unsigned returns = none;                               // a pause that leads back here
    };

    struct Thread {
        std::deque<Node> nodes;       // of the trees of all its calls
        std::vector<unsigned> roots;  // of each call's tree, and the end
    };

    struct State {
        std::array<unsigned, most_threads> nodes{};
        unsigned memory = 0;
        std::array<std::uint16_t, most_calls> answers{};  // 0: not yet
        std::array<std::uint8_t, most_calls> before{};
        std::array<std::uint8_t, most_threads> pauses{};  // of the call, as far as patience counts them

        friend bool operator==(const State&, const State&) = default;
    };

    struct Hash {
        static void mix(std::size_t& hash, std::uint64_t value) noexcept {
            hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
            hash ^= hash >> 29;
        }
        std::size_t operator()(std::uint64_t value) const noexcept { return std::hash<std::uint64_t>{}(value); }
        std::size_t operator()(const Memory& memory) const noexcept {
            std::size_t hash = 0;
            for (const std::uint64_t value : memory) {
                mix(hash, value);
            }
            return hash;
        }
        std::size_t operator()(const State& state) const noexcept {
            std::size_t hash = state.memory;
            for (const unsigned node : state.nodes) {
                mix(hash, node);
            }
            for (const std::uint8_t pauses : state.pauses) {
                mix(hash, pauses);
            }
            for (std::size_t call = 0; call < most_calls; ++call) {
                mix(hash, std::uint64_t{state.answers[call]} << 8 | state.before[call]);
            }
            return hash;
        }
    };

    /// Numbers different values in the order of their coming.
    template <class Value>
    class Numbers {
    public:
        unsigned number(const Value& value) {
            const auto [it, is_new] = numbers_.emplace(value, static_cast<unsigned>(values_.size()));
            if (is_new) {
                values_.push_back(&it->first);
            }
            return it->second;
        }
        const Value& operator[](unsigned number) const { return *values_[number]; }
        [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }

    private:
        std::unordered_map<Value, unsigned, Hash> numbers_;
        std::vector<const Value*> values_;
    };

    struct Step {
        Action action;
        std::uint64_t result = 0;
    };

    // A call's tree.

    void run_call() {
        perform({Kind::call, 0, running_, 0});
        perform({Kind::answer, 0, calls_[running_](), 0});
    }

    std::uint64_t perform(const Action& action) {
        if (at_ == script_.size() || script_[at_].action != action) {
            wanted_ = action;
            fiber_.leave();
        }
        return script_[at_++].result;
    }

    /// What the call wants to do after these steps.
    Action run(unsigned call, std::vector<Step> script) {
        script_ = std::move(script);
        running_ = call;
        at_ = 0;
        in_thread_ = true;
        fiber_.run();
        in_thread_ = false;
        if (at_ != script_.size()) throw std::logic_error("a call depends on more than its Atomics since its pause");
        return wanted_;
    }

    /// What leads from one node to another below it.
    static std::vector<Step> steps(const Thread& thread, unsigned from, unsigned to) {
        std::vector<Step> steps;
        for (unsigned at = to; at != from; at = thread.nodes[at].parent) {
            steps.push_back({thread.nodes[thread.nodes[at].parent].action, thread.nodes[at].result});
        }
        std::reverse(steps.begin(), steps.end());
        return steps;
    }

    /// The node to which `result` of the node's action leads, if it was there before.
    static unsigned known_child(const Thread& thread, unsigned node, std::uint64_t result) {
        for (const auto& [known, next] : thread.nodes[node].next) {
            if (known == result) {
                return next;
            }
        }
        return none;
    }

    unsigned child(Thread& thread, unsigned node, std::uint64_t result) {
        const unsigned known = known_child(thread, node, result);
        return known != none ? known : grow(thread, thread.nodes[node].call, node, result);
    }

    unsigned grow(Thread& thread, unsigned call, unsigned parent, std::uint64_t result) {
        std::deque<Node>& nodes = thread.nodes;
        std::vector<Step> script;
        if (parent != none) {
            script = steps(thread, root(thread, call), parent);
            script.push_back({nodes[parent].action, result});
            if (script.size() > most_steps) throw std::length_error("a call goes on for ever without a pause");
        }
        const Action wanted = run(call, std::move(script));
        unsigned number = static_cast<unsigned>(nodes.size());
        if (parent != none && nodes[parent].action.kind == Kind::pause) {
            // It waited in a spin lock's loop, or in one around the whole call.
            const unsigned last = nodes[parent].parent;
            const bool spins = wanted.kind == Kind::exchange && nodes[last].action == wanted;
            number = spins ? last : child(thread, root(thread, call), 0);
            if (nodes[number].action != wanted) throw std::logic_error("a call goes on after a pause");
            nodes[number].returns = parent;
        } else {
            nodes.push_back({wanted, call, parent, result, {}, none});
        }
        if (parent != none) {
            nodes[parent].next.emplace_back(result, number);
        }
        return number;
    }

    [[nodiscard]] static unsigned root(const Thread& thread, unsigned call) {
        return *std::find_if(thread.roots.begin(), thread.roots.end(), [&](unsigned root) {
            return thread.nodes[root].call == call || thread.nodes[root].action.kind == Kind::end;
        });
    }

    /// Tries for all nodes whether the code wants the same when it comes there on a detour over a pause.
    void check_forgetting() {
        for (const Thread& thread : threads_) {
            for (unsigned node = 0; node < thread.nodes.size(); ++node) {
                const unsigned call = thread.nodes[node].call;
                for (unsigned at = node; at != none; at = thread.nodes[at].parent) {
                    const unsigned pause = thread.nodes[at].returns;
                    if (pause == none) {
                        continue;
                    }
                    std::vector<Step> script = steps(thread, root(thread, call), pause);
                    script.push_back({thread.nodes[pause].action, 0});
                    const std::vector<Step> rest = steps(thread, at, node);
                    script.insert(script.end(), rest.begin(), rest.end());
                    if (run(call, std::move(script)) != thread.nodes[node].action) {
                        throw std::logic_error("a call remembers what was before a pause");
                    }
                }
            }
        }
    }

    // Walking over states.

    State begin() {
        State state;
        Memory memory;
        for (const Cell& cell : cells_) {
            memory.push_back(cell.get(cell.variable));
        }
        state.memory = memories_.number(memory);
        for (std::size_t t = 0; t < threads_.size(); ++t) {
            state.nodes[t] = threads_[t].roots.front();
        }
        return state;
    }

    /// Puts the values of a state into the Atomics.
    void restore(const State& state) {
        for (std::size_t i = 0; i < cells_.size(); ++i) {
            cells_[i].set(cells_[i].variable, memories_[state.memory][i]);
        }
    }

    std::vector<unsigned> who_can_step(const State& state) {
        std::vector<unsigned> ready;
        std::vector<unsigned> tired;
        for (unsigned t = 0; t < threads_.size(); ++t) {
            if (can_step(state, t)) {
                (state.pauses[t] < patience ? ready : tired).push_back(t);
            }
        }
        if (ready.empty() && !tired.empty()) {
            ready.push_back(tired.front());
        }
        return ready;
    }

    /// A call rests in a pause while another attempt, with all others standing still, would read and write nothing new
    /// and lead here again. Nothing is lost by that: what others can do in the midst of such an attempt, they could do
    /// in the midst of the one that was made.
    [[nodiscard]] bool can_step(const State& state, unsigned number) {
        Thread& thread = threads_[number];
        const unsigned node = state.nodes[number];
        if (thread.nodes[node].action.kind != Kind::pause) {
            return thread.nodes[node].action.kind != Kind::end;
        }
        const Memory& memory = memories_[state.memory];
        unsigned at = child(thread, node, 0);
        while (at != none && thread.nodes[at].action.touches_memory()) {
            const Action& action = thread.nodes[at].action;
            const std::uint64_t value = memory[action.cell];
            if (action.apply(value) != value) {
                return true;
            }
            at = known_child(thread, at, action.result(value));
        }
        return at != node;
    }

    /// One operation on memory. A call begins with its first operation and is answered with its last, which leaves the
    /// least doubt about which of two calls came first.
    State step(State state, unsigned number, std::vector<Step>* account = nullptr) {
        Thread& thread = threads_[number];
        unsigned& node = state.nodes[number];
        const auto action = [&]() -> const Action& { return thread.nodes[node].action; };
        const auto note = [&](std::uint64_t result) {
            if (account != nullptr) {
                account->push_back({action(), result});
            }
        };
        const auto go_on = [&](std::uint64_t result) {
            note(result);
            node = child(thread, node, result);
        };
        if (action().kind == Kind::call) {
            for (std::size_t call = 0; call < calls_.size(); ++call) {
                const unsigned answered = state.answers[call] != 0 ? 1U << call : 0U;
                state.before[action().operand] |= static_cast<std::uint8_t>(answered);
            }
            go_on(0);
        } else if (action().kind == Kind::pause) {
            if (patience != unlimited && state.pauses[number] < patience) {
                ++state.pauses[number];
            }
            go_on(0);
        }
        if (action().touches_memory()) {
            const std::uint64_t value = memories_[state.memory][action().cell];
            if (const std::uint64_t after = action().apply(value); after != value) {
                Memory memory = memories_[state.memory];
                memory[action().cell] = after;
                state.memory = memories_.number(memory);
            }
            go_on(action().result(value));
        }
        if (action().kind == Kind::answer) {
            note(0);
            const unsigned call = thread.nodes[node].call;
            state.answers[call] = static_cast<std::uint16_t>(answers_.number(action().operand) + 1);
            node = root(thread, call + 1);
            state.pauses[number] = 0;
        }
        return state;
    }

    /// What is wrong with a state from which no thread can go on.
    std::string finish(const State& state, const Check& check) {
        std::vector<Call> calls;
        for (std::size_t call = 0; call < calls_.size(); ++call) {
            if (state.answers[call] == 0) {
                return "blocked: no thread can go on";
            }
            calls.push_back({answers_[state.answers[call] - 1U], state.before[call]});
        }
        restore(state);
        return check(calls);
    }

    void walk(const State& state, const Check& check, Report& report) {
        const std::vector<unsigned> turns = who_can_step(state);
        for (const unsigned t : turns) {
            walk(step(state, t), check, report);
        }
        if (turns.empty()) {
            ++report.executions;
            report.failure += finish(state, check);
        }
    }

    /// Ways through the states, which are infinitely many if one leads in a circle.
    [[nodiscard]] double count_executions() const {
        std::vector<unsigned> entrances(states_.size(), 0);
        for (const auto& successors : successors_) {
            for (const unsigned next : successors) {
                if (next != none) {
                    ++entrances[next];
                }
            }
        }
        std::vector<double> ways(states_.size(), 0);
        std::vector<unsigned> open{0};
        std::size_t seen = 0;
        double executions = 0;
        ways[0] = 1;
        while (!open.empty()) {
            const unsigned state = open.back();
            open.pop_back();
            ++seen;
            bool last = true;
            for (const unsigned next : successors_[state]) {
                if (next != none) {
                    last = false;
                    ways[next] += ways[state];
                    if (--entrances[next] == 0) {
                        open.push_back(next);
                    }
                }
            }
            executions += last ? ways[state] : 0;
        }
        return seen == states_.size() ? executions : std::numeric_limits<double>::infinity();
    }

    /// A state from which no way leads to an end.
    [[nodiscard]] unsigned find_lost() const {
        std::vector<bool> ends(states_.size(), false);
        for (bool more = true; more;) {
            more = false;
            for (std::size_t state = states_.size(); state-- > 0;) {
                if (!ends[state]) {
                    const auto& next = successors_[state];
                    const auto is_end = [&](unsigned n) { return n != none && ends[n]; };
                    ends[state] = std::all_of(next.begin(), next.end(), [](unsigned n) { return n == none; }) ||
                                  std::any_of(next.begin(), next.end(), is_end);
                    more |= ends[state];
                }
            }
        }
        const auto lost = std::find(ends.begin(), ends.end(), false);
        return lost == ends.end() ? none : static_cast<unsigned>(lost - ends.begin());
    }

    /// How a state is reached, one operation a line.
    std::string account(unsigned number) {
        std::vector<std::pair<unsigned, unsigned>> way;
        for (; number != 0; number = arrivals_[number].first) {
            way.push_back(arrivals_[number]);
        }
        std::ostringstream out;
        out << std::hex;
        for (auto arrival = way.rbegin(); arrival != way.rend(); ++arrival) {
            std::vector<Step> steps;
            step(states_[arrival->first], arrival->second, &steps);
            for (const Step& step : steps) {
                out << "\n  thread " << arrival->second + 1 << ": ";
                print(out, step);
            }
        }
        return out.str();
    }

    void print(std::ostream& out, const Step& step) const {
        static constexpr std::array names{
            "load", "store", "exchange", "compare_exchange", "fetch_add", "pause", "call", "answer", "end"};
        const Action& action = step.action;
        out << names[static_cast<std::size_t>(action.kind)];
        if (action.touches_memory()) {
            out << ' ' << cells_[action.cell].name;
        }
        if (action.kind == Kind::compare_exchange) {
            out << ' ' << action.expected << " ->";
        }
        if (action.kind != Kind::load && action.kind != Kind::pause) {
            out << ' ' << action.operand;
        }
        if (action.touches_memory() && action.kind != Kind::store) {
            out << ": was " << step.result;
        }
    }

    static inline Explorer* current_ = nullptr;

    std::vector<Cell> cells_;
    std::unordered_map<const void*, unsigned> numbers_;
    std::vector<Thread> threads_;
    Calls calls_;

    Fiber fiber_;
    bool in_thread_ = false;
    unsigned running_ = 0;
    std::vector<Step> script_;
    std::size_t at_ = 0;
    Action wanted_;

    Numbers<Memory> memories_;
    Numbers<std::uint64_t> answers_;
    Numbers<State> states_;
    std::vector<std::pair<unsigned, unsigned>> arrivals_;  // from which state, by which thread's step
    std::vector<std::array<unsigned, most_threads>> successors_;
};

/// What std::atomic is to real threads. Outside of an explorer's threads it is a plain variable.
template <class T>
class Atomic {
public:
    Atomic() noexcept : Atomic(T{}) {}
    Atomic(T value) noexcept : value_(value) {
        if (Explorer* const explorer = Explorer::current()) {
            explorer->add(this, &get, &set);
        }
    }
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    [[nodiscard]] T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
        return in_thread() ? perform(Kind::load) : value_;
    }

    void store(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
        if (in_thread()) {
            perform(Kind::store, value);
        } else {
            value_ = value;
        }
    }

    T exchange(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
        return in_thread() ? perform(Kind::exchange, value) : std::exchange(value_, value);
    }

    bool compare_exchange_strong(T& expected,
                                 T desired,
                                 std::memory_order = std::memory_order_seq_cst,
                                 std::memory_order = std::memory_order_seq_cst) noexcept {
        const T before = in_thread() ? perform(Kind::compare_exchange, desired, expected) : value_;
        if (before != expected) {
            expected = before;
            return false;
        }
        if (!in_thread()) {
            value_ = desired;
        }
        return true;
    }

    T fetch_add(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
        return in_thread() ? perform(Kind::fetch_add, value) : std::exchange(value_, static_cast<T>(value_ + value));
    }

private:
    static bool in_thread() noexcept { return Explorer::current() != nullptr && Explorer::current()->in_thread(); }

    T perform(Kind kind, std::uint64_t operand = 0, std::uint64_t expected = 0) const noexcept {
        return static_cast<T>(Explorer::current()->perform(kind, this, operand, expected));
    }

    static std::uint64_t get(const void* atomic) { return static_cast<const Atomic*>(atomic)->value_; }
    static void set(void* atomic, std::uint64_t value) { static_cast<Atomic*>(atomic)->value_ = static_cast<T>(value); }

    T value_;
};

/// Between two attempts of a call.
inline void pause() noexcept {
    if (Explorer* const explorer = Explorer::current(); explorer != nullptr && explorer->in_thread()) {
        explorer->perform(Kind::pause, nullptr);
    }
}

}  // namespace model

#endif  // PENSTOCK_TESTS_MODEL_EXPLORER_HPP
