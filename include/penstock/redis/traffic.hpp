// SPDX-License-Identifier: MIT
// Traffic: which calls are under way, to which servers, and what the answers mean. It performs no I/O, starts no thread
// and reads no clock.
#ifndef PENSTOCK_REDIS_TRAFFIC_HPP
#define PENSTOCK_REDIS_TRAFFIC_HPP

#include <penstock/config.hpp>
#include <penstock/detail/random.hpp>
#include <penstock/redis/call.hpp>
#include <penstock/redis/event.hpp>
#include <penstock/redis/meta.hpp>
#include <penstock/redis/node.hpp>
#include <penstock/redis/pipeline.hpp>
#include <penstock/redis/reply.hpp>
#include <penstock/redis/resp.hpp>
#include <penstock/redis/router.hpp>
#include <penstock/redis/script.hpp>
#include <penstock/redis/settings.hpp>
#include <penstock/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// Not thread-safe: all of it belongs to the core's lock.
class Traffic {
public:
    explicit Traffic(const Settings& settings, std::shared_ptr<const TlsContext> tls)
        : settings_(settings), tls_(std::move(tls)), expected_(greeting_of(settings, settings.meta).answers),
          router_(settings) {
        for (const Endpoint& endpoint : settings.target.endpoints) {
            add_node(endpoint);
        }
    }

    // Calls.

    /// Takes a call in; it may end at once.
    void add(Call& call, std::int64_t deadline) noexcept {
        call.deadline_ = deadline;
        const bool room = under_way_.size() < settings_.most_in_flight;
        under_way_.add(call);
        const StoreError error = room ? route(call) : StoreError::overloaded;
        if (error != StoreError::none) {
            finish(call, error);
        }
    }

    /// Ends a call that is not taken in.
    void refuse(Call& call, StoreError error) noexcept {
        under_way_.add(call);
        finish(call, error);
    }

    /// A call that was taken in is over.
    void finish(Call& call, StoreError error) noexcept {
        under_way_.remove(call);
        call.error_ = error;
        call.ended_ = true;
        ++stats.ended[static_cast<std::size_t>(error)];
        if (call.waited_for_) {
            if (detail::Bell* bell = call.done_.set(); bell != nullptr && (bells.empty() || bells.back() != bell)) {
                bells.push_back(bell);
            }
        } else {
            finished_.add(call);
        }
    }

    /// The same, before its answer has come: that will be for nobody.
    void give_up(Call& call, StoreError error) noexcept {
        withdraw(call);
        finish(call, error);
    }

    /// Forgets a call: nobody is told of its end.
    void cancel(Call& call) noexcept {
        if (call.ended_) {
            finished_.remove(call);
        } else {
            ++stats.cancelled;
            withdraw(call);
            under_way_.remove(call);
        }
    }

    /// Calls whose time is up.
    void expire(std::int64_t now) noexcept {
        while (Call* call = under_way_.first()) {
            if (call->deadline_ > now) {
                return;
            }
            give_up(*call, StoreError::timeout);
        }
    }

    [[nodiscard]] Call* first_under_way() const noexcept { return under_way_.first(); }
    [[nodiscard]] bool idle() const noexcept { return under_way_.empty() && finished_.empty(); }
    [[nodiscard]] bool has_finished() const noexcept { return !finished_.empty(); }
    [[nodiscard]] std::size_t finished_calls() const noexcept { return finished_.size(); }

    /// A call that nobody waits for and that is over, whoever asked it is to be told.
    [[nodiscard]] Call* take_finished() noexcept {
        Call* const call = finished_.first();
        if (call != nullptr) {
            finished_.remove(*call);
            call->core_ = nullptr;
        }
        return call;
    }

    // Nodes.

    /// Where a call would go; 0 while the way is not known.
    [[nodiscard]] std::size_t node_of(const Call& call) const noexcept {
        return router_.knows_the_way() ? router_.node_of(call) : 0;
    }

    /// They only ever become more.
    [[nodiscard]] const std::vector<std::unique_ptr<Node>>& nodes() const noexcept { return nodes_; }

    /// When something is to be done for it without being asked.
    [[nodiscard]] static std::int64_t due(const Node& node) noexcept {
        const bool left_alone = !node.wanted && node.fsm.phase() == ConnectionFsm::Phase::waiting;
        return left_alone ? forever : node.fsm.due();
    }

    /// When servers are to be asked something without a call.
    [[nodiscard]] std::int64_t due() const noexcept {
        // Whom nobody is there to be asked is not waited for: when a connection is ready that is an event of its own.
        std::int64_t next = any_ready() == nullptr ? forever : router_.slots_due();
        const Node* const of_meta = node_of_meta();
        next = of_meta != nullptr && of_meta->ready() ? (std::min)(next, router_.meta_due()) : next;
        for (const std::unique_ptr<Node>& node : nodes_) {
            next = node->ready() ? (std::min)(next, node->renew_meta_at) : next;
        }
        return next;
    }

    /// Asks what is to be known: of a cluster its slots and its meta, of other servers whether their meta is still
    /// there.
    void explore(std::int64_t now) {
        if (router_.wants_slots(now)) {
            if (Node* node = next_ready()) {
                ask(*node, {.kind = Sent::Kind::slots}, {"CLUSTER", "SLOTS"});
                router_.slots_asked(now);
            }
        }
        if (Node* node = node_of_meta(); router_.wants_meta(now) && node != nullptr && node->ready()) {
            ask_meta(*node, router_.meta_for({}));
            router_.meta_asked(now);
        }
        for (const std::unique_ptr<Node>& node : nodes_) {
            if (node->ready() && now >= node->renew_meta_at) {
                ask_meta(*node, node->meta);
                node->renew_meta_at = now + meta_renewal;
            }
        }
    }

    /// A connection stands: what it begins with.
    void greet(Node& node) {
        node.fsm.connected();
        node.established = true;
        node.inbox = greeting_of(settings_, proposal(node.meta)).text;
        for (std::size_t i = 0; i < expected_.size(); ++i) {
            node.pipeline.push({.kind = Sent::Kind::greeting});
        }
    }

    /// The connection is over. What was sent has failed, what waits goes on to wait if there is hope.
    void lose(Node& node, StoreError error, std::int64_t now) noexcept {
        const bool was_ready = node.ready();
        connections_changed = true;
        stats.losses += was_ready ? 1 : 0;
        node.disconnect();
        node.fsm.lost(now, error, random_.next());
        router_.doubt();
        while (!node.pipeline.empty()) {
            const Sent sent = node.pipeline.pop();
            if (sent.kind == Sent::Kind::slots) {
                router_.slots_lost();
            } else if (sent.kind == Sent::Kind::meta) {
                router_.meta_lost();
            } else if (sent.call != nullptr) {
                finish(*sent.call, error);
            }
        }
        while (!was_ready && !node.waiting.empty()) {
            Call& call = *node.waiting.front();
            node.waiting.pop_front();
            finish(call, error);
        }
        end_hopeless();
    }

    /// Sees to all answers that have come to a node.
    void take_answers(Node& node, bool heard, std::int64_t now) noexcept {
        while (node.established) {
            const ReplyReader::Status status = node.reader().next();
            if (status == ReplyReader::Status::incomplete) {
                break;
            }
            if (status == ReplyReader::Status::broken || node.pipeline.empty()) {
                lose(node, unasked_error(node, status), now);
                return;
            }
            answered(node, node.pipeline.pop(), node.reader().reply(), now);
        }
        if (heard) {
            node.fsm.heard(now, !node.pipeline.empty());
        }
        if (node.closed) {
            lose(node, node.failure(), now);
        }
    }

    Stats stats;
    bool connections_changed = false;  // set whenever one begins or ends
    std::vector<detail::Bell*> bells;  // of those who wait for calls that are over: to be rung without the lock

    static constexpr std::int64_t forever = (std::numeric_limits<std::int64_t>::max)();

private:
    static constexpr std::uint8_t most_retries = 5;
    static constexpr std::size_t nowhere = ~std::size_t{0};

    Node& add_node(const Endpoint& endpoint) {
        nodes_.push_back(std::make_unique<Node>(endpoint, settings_.connection, tls_));
        return *nodes_.back();
    }

    /// The number of a node of a cluster, which may be new.
    [[nodiscard]] std::size_t number_of(std::string_view host, std::uint16_t port) {
        const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
            return node->endpoint().host == host && node->endpoint().port == port;
        });
        if (found == nodes_.end()) {
            add_node({.host = std::string(host), .port = port});
            return nodes_.size() - 1;
        }
        (*found)->wanted = true;
        return static_cast<std::size_t>(found - nodes_.begin());
    }

    /// Of a cluster: whom to ask for the meta; null if nobody has its slot.
    [[nodiscard]] Node* node_of_meta() const noexcept {
        const std::size_t number = router_.node_of_meta();
        return number < nodes_.size() ? nodes_[number].get() : nullptr;
    }

    [[nodiscard]] Node* any_ready() const noexcept {
        const auto found = std::find_if(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->ready(); });
        return found == nodes_.end() ? nullptr : found->get();
    }

    /// Not always the same: one may have left the cluster without knowing it.
    [[nodiscard]] Node* next_ready() noexcept {
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            Node& node = *nodes_[asked_last_++ % nodes_.size()];
            if (node.ready()) {
                return &node;
            }
        }
        return nullptr;
    }

    // A call's way.

    /// none, or why it ends at once.
    [[nodiscard]] StoreError route(Call& call) {
        if (!router_.knows_the_way()) {
            call.node_ = nowhere;
            if (const StoreError error = hopeless(); error != StoreError::none) {
                return error;
            }
            lost_.push_back(&call);
            return StoreError::none;
        }
        const std::size_t number = router_.node_of(call);
        if (number >= nodes_.size()) {
            router_.doubt();
            return StoreError::cluster_down;
        }
        return hand_over(number, call);
    }

    [[nodiscard]] StoreError hand_over(std::size_t number, Call& call) {
        Node& node = *nodes_[number];
        call.node_ = number;
        call.sent_ = false;
        if (node.ready() && node.pipeline.size() >= settings_.most_in_flight) {
            return StoreError::overloaded;  // those given up are in there too: they are work for the server
        }
        if (node.ready()) {
            send(node, call);
        } else if (node.fsm.error() != StoreError::none) {
            return node.fsm.error();
        } else {
            node.waiting.push_back(&call);
        }
        return StoreError::none;
    }

    void send(Node& node, Call& call) {
        if (std::exchange(call.asking_, false)) {
            if (std::find(node.loaded.begin(), node.loaded.end(), &call.script()) == node.loaded.end()) {
                load(node, call.script());
            }
            ask(node, {.kind = Sent::Kind::ignored}, {"ASKING"});  // for the next command alone
        }
        call.write(node.inbox, router_.meta_for(node.meta));
        call.position_ = node.pipeline.push({.kind = Sent::Kind::call, .call = &call});
        call.sent_ = true;
        ++stats.sent;
    }

    /// Whatever comes for the call is not for it any more.
    void withdraw(Call& call) noexcept {
        if (call.sent_) {
            nodes_[call.node_]->pipeline.forget(call.position_);
            return;
        }
        std::deque<Call*>& waiting = call.node_ == nowhere ? lost_ : nodes_[call.node_]->waiting;
        const auto found = std::find(waiting.begin(), waiting.end(), &call);
        if (found != waiting.end()) {
            waiting.erase(found);
        }
    }

    /// Why no server of a cluster will tell the way: none, while one may.
    [[nodiscard]] StoreError hopeless() const noexcept {
        if (router_.lacks_meta_only()) {
            const Node* const node = node_of_meta();
            return node != nullptr ? node->fsm.error() : StoreError::cluster_down;
        }
        const auto hopeful = std::find_if(
            nodes_.begin(), nodes_.end(), [](const auto& node) { return node->fsm.error() == StoreError::none; });
        return hopeful == nodes_.end() ? nodes_.front()->fsm.error() : StoreError::none;
    }

    void end_hopeless() noexcept {
        if (const StoreError error = hopeless(); error != StoreError::none) {
            end_lost(error);
        }
    }

    void end_lost(StoreError error) noexcept {
        for (Call* call : std::exchange(lost_, {})) {
            finish(*call, error);
        }
    }

    /// The way is known now.
    void route_lost() {
        if (!router_.knows_the_way()) {
            return;
        }
        for (Call* call : std::exchange(lost_, {})) {
            if (const StoreError error = route(*call); error != StoreError::none) {
                finish(*call, error);
            }
        }
    }

    // Requests of our own.

    static void ask(Node& node, const Sent& sent, std::initializer_list<std::string_view> command) {
        append_command(node.inbox, command);
        node.pipeline.push(sent);
    }

    /// What was agreed upon stays agreed upon, even if the store has forgotten it.
    [[nodiscard]] const Meta& proposal(const Meta& known) const noexcept {
        return known.buckets != 0 ? known : settings_.meta;
    }

    void ask_meta(Node& node, const Meta& known) {
        const std::string text = to_text(proposal(known));
        ask(node, {.kind = Sent::Kind::meta}, {"EVAL", meta_script, "1", settings_.meta_key, text, meta_lifetime});
    }

    void load(Node& node, const Script& script) {
        if (std::find(node.loading.begin(), node.loading.end(), &script) != node.loading.end()) {
            return;
        }
        ++stats.loads;
        node.loading.push_back(&script);
        ask(node, {.kind = Sent::Kind::script, .script = &script}, {"SCRIPT", "LOAD", script.text});
    }

    // Answers.

    void answered(Node& node, const Sent& sent, const Reply& reply, std::int64_t now) {
        switch (sent.kind) {
        case Sent::Kind::greeting:
            greeted(node, reply, now);
            break;
        case Sent::Kind::script:
            std::erase(node.loading, sent.script);
            node.load_error = error_of(reply);
            if (node.load_error == StoreError::none) {
                node.loaded.push_back(sent.script);
            }
            break;
        case Sent::Kind::slots:
            learn_slots(node, reply);
            break;
        case Sent::Kind::meta:
            learn_meta(node, reply, now);
            break;
        case Sent::Kind::ignored:
            break;
        case Sent::Kind::call:
            if (sent.call != nullptr) {
                answered(node, *sent.call, reply, now);
            } else {
                ++stats.late;
            }
            break;
        }
    }

    void greeted(Node& node, const Reply& reply, std::int64_t now) {
        const Greeting::Answer& expected = expected_[node.greeted++];
        const StoreError error = error_of(reply);
        // The last of them is no answer, and all there is to come.
        if (error != StoreError::none && (expected.required || error == StoreError::too_many_clients)) {
            lose(node, error, now);
            return;
        }
        if (expected.is_meta) {
            const std::optional<Meta> meta = parse_meta(reply.text(reply.nodes.front()));
            if (!meta.has_value()) {
                lose(node, StoreError::newer_format, now);
                return;
            }
            agree_on(*meta, node.meta);
            node.meta = *meta;
            node.renew_meta_at = now + meta_renewal;
        }
        if (node.greeted == expected_.size()) {
            node.fsm.greeted(now);
            for (Call* call : std::exchange(node.waiting, {})) {
                if (call->deadline_ > now) {
                    send(node, *call);
                } else {
                    finish(*call, StoreError::timeout);
                }
            }
        }
    }

    /// Others may have other settings; and a store that has forgotten its meta may have got another one meanwhile.
    void agree_on(const Meta& meta, const Meta& before) noexcept {
        const bool changed = before.buckets != 0 && meta != before;
        stats.disagreements += changed || meta.buckets != settings_.meta.buckets ? 1 : 0;
    }

    void learn_slots(Node& node, const Reply& reply) {
        const std::optional<std::vector<SlotRange>> ranges = parse_slots(reply);
        if (!ranges.has_value()) {
            router_.slots_lost();
            const StoreError error = error_of(reply);
            end_lost(error == StoreError::none ? StoreError::protocol_error : error);
            return;
        }
        for (std::size_t i = settings_.target.endpoints.size(); i < nodes_.size(); ++i) {
            nodes_[i]->wanted = false;
        }
        bool complete = true;
        SlotMap map;
        for (const SlotRange& range : *ranges) {
            const std::size_t number = number_of(range.host.empty() ? node.endpoint().host : range.host, range.port);
            map.assign(range.first, range.last, static_cast<std::uint16_t>(number));
            complete = complete && nodes_[number]->fsm.error() == StoreError::none;
        }
        router_.learn(map, complete);
        route_lost();
    }

    void learn_meta(Node& node, const Reply& reply, std::int64_t now) {
        const StoreError error = error_of(reply);
        const std::optional<Meta> meta =
            error == StoreError::none ? parse_meta(reply.text(reply.nodes.front())) : std::nullopt;
        Meta& known = router_.is_cluster() ? router_.meta() : node.meta;
        if (meta.has_value()) {
            agree_on(*meta, known);
            known = *meta;
            router_.meta_answered(now);
            route_lost();
            return;
        }
        router_.meta_lost();
        router_.doubt();
        if (error != StoreError::moved && error != StoreError::ask) {
            end_lost(error == StoreError::none ? StoreError::newer_format : error);
        }
    }

    void answered(Node& node, Call& call, const Reply& reply, std::int64_t now) {
        const StoreError error = error_of(reply);
        if (error == StoreError::no_script && call.retries_ < most_retries) {
            if (call.retries_++ > 0 && node.load_error != StoreError::none) {
                finish(call, node.load_error);
                return;
            }
            std::erase(node.loaded, &call.script());
            load(node, call.script());
            send(node, call);
        } else if (error == StoreError::moved || error == StoreError::ask) {
            redirect(node, call, reply);
        } else if (error != StoreError::none) {
            router_.doubt_after(error);
            finish(call, error);
            look_elsewhere_after(node, error, now);
        } else if (take_numbers(call, reply) && call.understand()) {
            finish(call, StoreError::none);
        } else {
            finish(call, StoreError::protocol_error);
            lose(node, StoreError::protocol_error, now);  // whose are the answers that follow?
        }
    }

    /// A replica where the master was: its name may lead to another server by now. Not more often than attempts to
    /// connect are made.
    void look_elsewhere_after(Node& node, StoreError error, std::int64_t now) noexcept {
        if (error == StoreError::read_only && !router_.is_cluster() && now >= node.keep_until) {
            node.keep_until = now + settings_.connection.longest_wait;
            lose(node, error, now);
        }
    }

    /// Another node has the slot, or a part of it for as long as it moves.
    void redirect(Node& node, Call& call, const Reply& reply) {
        const Redirect to = parse_redirect(reply.text(reply.nodes.front()));
        if (!router_.is_cluster() || to.error == StoreError::protocol_error || call.retries_++ >= most_retries) {
            finish(call, to.error);
            return;
        }
        const std::size_t number = number_of(to.host.empty() ? node.endpoint().host : to.host, to.port);
        call.asking_ = to.error == StoreError::ask;
        if (!call.asking_) {
            router_.move(to.slot, number);
        }
        if (const StoreError error = hand_over(number, call); error != StoreError::none) {
            finish(call, error);
        }
    }

    /// What a server says unasked before it hangs up, or garbage.
    [[nodiscard]] static StoreError unasked_error(Node& node, ReplyReader::Status status) noexcept {
        const StoreError error =
            status == ReplyReader::Status::reply ? error_of(node.reader().reply()) : StoreError::none;
        return error == StoreError::none ? StoreError::protocol_error : error;
    }

    [[nodiscard]] static StoreError error_of(const Reply& reply) noexcept {
        const ReplyNode& whole = reply.nodes.front();
        return whole.type == ReplyNode::Type::error ? classify(reply.text(whole)) : StoreError::none;
    }

    /// The numbers of an array of them, or of a number alone.
    [[nodiscard]] static bool take_numbers(Call& call, const Reply& reply) noexcept {
        const bool array = reply.nodes.front().type == ReplyNode::Type::array;
        const std::span<const ReplyNode> nodes = std::span(reply.nodes).subspan(array ? 1 : 0);
        if (nodes.size() > call.numbers_.size()) {
            return false;
        }
        call.count_ = nodes.size();
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (nodes[i].type != ReplyNode::Type::integer) {
                return false;
            }
            call.numbers_[i] = nodes[i].integer;
        }
        return true;
    }

    const Settings& settings_;
    const std::shared_ptr<const TlsContext> tls_;
    const std::vector<Greeting::Answer> expected_;  // to a greeting
    Router router_;
    std::vector<std::unique_ptr<Node>> nodes_;
    Calls under_way_;         // in the order of their deadlines, but for those of a caller who waits for several calls
    Calls finished_;          // whose callers are to be told
    std::deque<Call*> lost_;  // of which it is not known yet whom to ask
    detail::QuickRandom random_;
    std::size_t asked_last_ = 0;  // the node whose turn it is to be asked for the slots
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_TRAFFIC_HPP
