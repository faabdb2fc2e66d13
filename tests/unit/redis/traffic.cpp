// SPDX-License-Identifier: MIT
// What becomes of calls, answer by answer: no socket, no server, no waiting.
#include <penstock/redis/traffic.hpp>

#include "../../support/random.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace {

using penstock::StoreError;
using penstock::redis::Call;
using penstock::redis::Meta;
using penstock::redis::Node;
using penstock::redis::parse_url;
using penstock::redis::Script;
using penstock::redis::Settings;
using penstock::redis::slot_of;
using penstock::redis::Traffic;

const Script script{std::string("return 1")};

/// Asks "CHECK key".
class Question : public Call {
public:
    explicit Question(std::string key) : key_(std::move(key)) {}

    [[nodiscard]] std::string_view key() const noexcept override { return key_; }
    [[nodiscard]] std::uint16_t slot(const Meta&) const override { return slot_of(key_); }
    [[nodiscard]] const Script& script() const noexcept override { return ::script; }
    void write(std::string& out, const Meta& meta) const override {
        out += "<CHECK " + key_ + (meta.secret != 0 ? " by " + std::to_string(meta.secret) : "") + ">";
    }
    void finished() noexcept override {}

private:
    std::string key_;
};

/// Servers whose part the test plays.
class Play {
public:
    explicit Play(const std::string& url, std::size_t most_in_flight = 100, const std::string& meta_key = {})
        : settings_{.target = parse_url(url),
                    .timeout = 1000,
                    .most_in_flight = most_in_flight,
                    .meta_key = meta_key,
                    .meta = {.buckets = 2, .secret = 5}} {
        traffic = std::make_unique<Traffic>(settings_, nullptr);
    }

    std::unique_ptr<Traffic> traffic;

    [[nodiscard]] Node& node(std::size_t number) { return *traffic->nodes()[number]; }

    /// The connection to a node is made, and it answers the greeting.
    void connect(std::size_t number) {
        begin(number);
        say(number, "+PONG\r\n");
        CHECK(node(number).ready());
    }

    void begin(std::size_t number) {
        static_cast<void>(node(number).fsm.tick(node(number).fsm.due()));
        traffic->greet(node(number));
        static_cast<void>(heard(number));
    }

    /// What a node was asked since the last time.
    [[nodiscard]] std::string heard(std::size_t number) { return std::exchange(node(number).inbox, {}); }

    void say(std::size_t number, std::string_view reply) {
        REQUIRE(node(number).reader().feed(reply));
        traffic->take_answers(node(number), true, 0);
    }

    /// Asks in the name of a client; the answer is in `calls`, in the order of the questions.
    Question& ask(const std::string& key, std::int64_t now = 0) {
        Question& question = questions_.emplace_back(key);
        traffic->add(question, now + 1000);
        return question;
    }

    /// How many calls are over since the last time, those not waited for.
    [[nodiscard]] std::size_t finished() {
        std::size_t count = 0;
        while (traffic->take_finished() != nullptr)
            ++count;
        return count;
    }

private:
    Settings settings_;
    std::deque<Question> questions_;
};

std::string slots_reply(int first_port) {
    const auto range = [](int first, int last, int port) {
        return "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last) +
               "\r\n*2\r\n$1\r\nh\r\n:" + std::to_string(port) + "\r\n";
    };
    return "*2\r\n" + range(0, 8191, first_port) + range(8192, 16383, first_port + 1);
}

TEST_CASE("a call waits for its connection, and is asked as soon as that is ready") {
    Play play("redis://h");
    Question& early = play.ask("a");
    play.begin(0);
    CHECK(play.heard(0).empty());
    play.say(0, "+PONG\r\n");
    CHECK(play.heard(0) == "<CHECK a>");
    play.say(0, "*2\r\n:1\r\n:7\r\n");
    CHECK(play.finished() == 1);
    CHECK(early.error() == StoreError::none);
    CHECK(early.numbers().size() == 2);
    CHECK(early.numbers()[1] == 7);
    CHECK(play.traffic->idle());
}

TEST_CASE("answers go to those who asked, in order; a number alone is an answer too") {
    Play play("redis://h");
    play.connect(0);
    Question& a = play.ask("a");
    Question& b = play.ask("b");
    CHECK(play.heard(0) == "<CHECK a><CHECK b>");
    play.say(0, ":1\r\n:2\r\n");
    CHECK(a.numbers()[0] == 1);
    CHECK(b.numbers()[0] == 2);
}

TEST_CASE("a call whose time is up is over, and its late answer goes to nobody else") {
    Play play("redis://h");
    play.connect(0);
    Question& slow = play.ask("a", 0);
    Question& next = play.ask("b", 500);
    play.traffic->expire(999);
    CHECK(play.finished() == 0);
    play.traffic->expire(1000);
    CHECK(play.finished() == 1);
    CHECK(slow.error() == StoreError::timeout);
    play.say(0, ":1\r\n:2\r\n");
    CHECK(play.traffic->stats.late == 1);
    CHECK(next.numbers()[0] == 2);
}

TEST_CASE("a script that the server does not know is loaded once, and the calls asked again") {
    Play play("redis://h");
    play.connect(0);
    Question& a = play.ask("a");
    Question& b = play.ask("b");
    static_cast<void>(play.heard(0));
    play.say(0, "-NOSCRIPT No matching script.\r\n-NOSCRIPT No matching script.\r\n");
    CHECK(play.heard(0) == "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n<CHECK a><CHECK b>");
    play.say(0, "$1\r\nx\r\n:1\r\n:2\r\n");
    CHECK(a.numbers()[0] == 1);
    CHECK(b.numbers()[0] == 2);
    CHECK(play.traffic->stats.loads == 1);
}

TEST_CASE("a server that never learns the script is not asked for ever") {
    Play play("redis://h");
    play.connect(0);
    Question& a = play.ask("a");
    for (int i = 0; i < 20 && a.error() == StoreError::none; ++i) {
        play.say(0, "-NOSCRIPT No matching script.\r\n");
        if (play.heard(0).find("LOAD") != std::string::npos) {
            play.say(0, "-NOPERM this user may not\r\n");
        }
    }
    CHECK(a.error() != StoreError::none);
}

TEST_CASE("a lost connection ends what was asked over it; what comes then waits for the next") {
    Play play("redis://h");
    play.connect(0);
    Question& a = play.ask("a");
    play.traffic->lose(play.node(0), StoreError::unavailable, 0);
    CHECK(a.error() == StoreError::unavailable);
    Question& b = play.ask("b");
    CHECK(b.error() == StoreError::none);
    play.begin(0);
    play.traffic->lose(play.node(0), StoreError::wrong_password, 0);
    CHECK(b.error() == StoreError::wrong_password);
    CHECK(play.ask("c").error() == StoreError::wrong_password);  // at once, until there is hope again
    CHECK(play.finished() == 3);
}

TEST_CASE("an error of the server has its name, and the next answer is not mistaken") {
    Play play("redis://h");
    play.connect(0);
    Question& a = play.ask("a");
    Question& b = play.ask("b");
    play.say(0, "-OOM command not allowed\r\n:2\r\n");
    CHECK(a.error() == StoreError::out_of_memory);
    CHECK(b.numbers()[0] == 2);
    CHECK(play.traffic->stats.ended[static_cast<std::size_t>(StoreError::out_of_memory)] == 1);
}

TEST_CASE("a server that has become a replica is looked for anew by its name, but not with every check") {
    Play play("redis://h");
    play.connect(0);
    Question& a = play.ask("a");
    play.say(0, "-READONLY You can't write against a read only replica.\r\n");
    CHECK(a.error() == StoreError::read_only);
    CHECK_FALSE(play.node(0).ready());
    play.connect(0);
    Question& b = play.ask("b");
    play.say(0, "-READONLY You can't write against a read only replica.\r\n");
    CHECK(b.error() == StoreError::read_only);
    CHECK(play.node(0).ready());
}

TEST_CASE("an answer that nobody asked for, or that is none, ends the connection") {
    for (const char* reply : {":1\r\n", "garbage\r\n", "-ERR max number of clients reached\r\n"}) {
        Play play("redis://h");
        play.connect(0);
        play.say(0, reply);
        CHECK_FALSE(play.node(0).ready());
    }
    Play play("redis://h");
    play.connect(0);
    Question& a = play.ask("a");
    play.say(0, "$5\r\nhello\r\n");
    CHECK(a.error() == StoreError::protocol_error);
    CHECK_FALSE(play.node(0).ready());
}

TEST_CASE("above the number of calls that may be in flight the next ones end at once") {
    Play play("redis://h", 2);
    play.connect(0);
    play.ask("a");
    play.ask("b");
    CHECK(play.ask("c").error() == StoreError::overloaded);
    play.say(0, ":1\r\n");
    CHECK(play.ask("d").error() == StoreError::none);
}

TEST_CASE("a cancelled call is forgotten, wherever it is") {
    Play play("redis://h");
    Question& waiting = play.ask("a");
    play.traffic->cancel(waiting);
    play.connect(0);
    CHECK(play.heard(0).empty());
    Question& sent = play.ask("b");
    play.traffic->cancel(sent);
    Question& other = play.ask("c");
    play.say(0, ":1\r\n:2\r\n");
    CHECK(other.numbers()[0] == 2);
    play.traffic->cancel(other);  // over, but not told
    CHECK(play.finished() == 0);
    CHECK(play.traffic->idle());
}

TEST_CASE("the keys of a ring are spread, each always to the same server") {
    Play play("redis+ring://a,b,c");
    for (std::size_t i = 0; i < 3; ++i) {
        play.connect(i);
    }
    std::size_t asked[3]{};
    for (int client = 0; client < 30; ++client) {
        for (int again = 0; again < 2; ++again) {
            play.ask("client " + std::to_string(client));
        }
    }
    for (std::size_t i = 0; i < 3; ++i) {
        const std::string heard = play.heard(i);
        for (std::size_t at = heard.find('<'); at != std::string::npos; at = heard.find('<', at + 1)) {
            ++asked[i];
        }
        CHECK(asked[i] > 0);
        CHECK(asked[i] % 2 == 0);
    }
    CHECK(asked[0] + asked[1] + asked[2] == 60);
}

TEST_CASE("a meta that was agreed upon is what a store that has forgotten it gets back") {
    Play play("redis://h", 100, "p:meta");
    play.begin(0);
    play.say(0, "$6\r\n1 4 77\r\n");
    CHECK(play.node(0).ready());
    CHECK(play.node(0).meta.secret == 77);
    play.ask("a");
    CHECK(play.heard(0) == "<CHECK a by 77>");
    play.say(0, ":1\r\n");

    play.traffic->explore(penstock::redis::meta_renewal - 1);
    CHECK(play.heard(0).empty());
    play.traffic->explore(penstock::redis::meta_renewal);
    CHECK(play.heard(0).find("1 4 77") != std::string::npos);
    play.say(0, "$6\r\n1 4 88\r\n");  // another process was faster
    play.ask("a");
    CHECK(play.heard(0) == "<CHECK a by 88>");
    CHECK(play.traffic->stats.disagreements == 2);  // of settings at first, then of secrets

    play.traffic->lose(play.node(0), StoreError::unavailable, 0);
    static_cast<void>(play.node(0).fsm.tick(play.node(0).fsm.due()));
    play.traffic->greet(play.node(0));
    CHECK(play.heard(0).find("1 4 88") != std::string::npos);
}

TEST_CASE("a node that has left the cluster is not the only one that is asked about it") {
    Play play("redis+cluster://seed-1,seed-2");
    play.connect(0);
    play.connect(1);
    for (int asked = 0; asked < 2; ++asked) {
        play.traffic->explore(asked * 10'000'000);
        for (std::size_t node = 0; node < 2; ++node) {
            if (play.heard(node).find("SLOTS") != std::string::npos) {
                play.say(node, node == 0 ? std::string("*0\r\n") : slots_reply(7000));
            }
        }
    }
    REQUIRE(play.traffic->nodes().size() == 4);
    play.connect(2);
    play.connect(3);
    play.ask("a");
    CHECK(play.heard(3) == "<CHECK a>");
}

TEST_CASE(
    "in a cluster the slots are learnt first, from whoever is there, and then everything asked where it belongs") {
    Play play("redis+cluster://seed-1,seed-2");
    Question& a = play.ask("a");  // slot 15495
    Question& b = play.ask("b");  // slot 3300
    CHECK(play.traffic->due() > 0);
    play.connect(1);
    play.traffic->explore(0);
    CHECK(play.heard(1) == "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
    play.say(1, slots_reply(7000));
    REQUIRE(play.traffic->nodes().size() == 4);
    play.connect(2);
    play.connect(3);
    CHECK(play.heard(2) == "<CHECK b>");
    CHECK(play.heard(3) == "<CHECK a>");
    play.say(3, ":1\r\n");
    play.say(2, ":2\r\n");
    CHECK(a.numbers()[0] == 1);
    CHECK(b.numbers()[0] == 2);
}

/// A cluster whose two nodes, 1 and 2, are known and connected; 0 is where it was looked for.
Play cluster() {
    Play play("redis+cluster://seed");
    play.connect(0);
    play.traffic->explore(0);
    static_cast<void>(play.heard(0));
    play.say(0, slots_reply(7000));
    play.connect(1);
    play.connect(2);
    return play;
}

TEST_CASE("a slot that has moved is followed, and remembered") {
    Play play = cluster();
    Question& a = play.ask("a");
    static_cast<void>(play.heard(2));
    play.say(2, "-MOVED 15495 h:7000\r\n");
    CHECK(play.heard(1) == "<CHECK a>");
    play.say(1, ":1\r\n");
    CHECK(a.numbers()[0] == 1);
    play.ask("a");
    CHECK(play.heard(1) == "<CHECK a>");
    play.traffic->explore(10'000'000);  // it looks as if there were more to learn
    CHECK((play.heard(0) + play.heard(1) + play.heard(2)).find("SLOTS") != std::string::npos);
}

TEST_CASE("a key that is on its way is asked for where it goes, once, with the script") {
    Play play = cluster();
    Question& a = play.ask("a");
    static_cast<void>(play.heard(2));
    play.say(2, "-ASK 15495 h:7000\r\n");
    CHECK(play.heard(1) == "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n*1\r\n$6\r\nASKING\r\n<CHECK a>");
    play.say(1, "$1\r\nx\r\n+OK\r\n:1\r\n");
    CHECK(a.numbers()[0] == 1);
    play.ask("a");
    CHECK(play.heard(2) == "<CHECK a>");
    play.say(2, "-ASK 15495 h:7000\r\n");
    CHECK(play.heard(1) == "*1\r\n$6\r\nASKING\r\n<CHECK a>");
}

TEST_CASE("nodes that send each other's callers in circles are not followed for ever") {
    Play play = cluster();
    Question& a = play.ask("a");
    for (int i = 0; i < 20 && a.error() == StoreError::none; ++i) {
        play.say(i % 2 == 0 ? 2 : 1, i % 2 == 0 ? "-MOVED 15495 h:7000\r\n" : "-MOVED 15495 h:7001\r\n");
    }
    CHECK(a.error() == StoreError::moved);
}

TEST_CASE("a slot of nobody is an error at once, and the slots are asked for again") {
    Play play("redis+cluster://seed");
    play.connect(0);
    play.traffic->explore(0);
    static_cast<void>(play.heard(0));
    play.say(0, "*1\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$1\r\nh\r\n:7000\r\n");
    play.connect(1);
    CHECK(play.ask("a").error() == StoreError::cluster_down);
    CHECK(play.ask("b").error() == StoreError::none);
    play.traffic->explore(10'000'000);
    CHECK((play.heard(0) + play.heard(1)).find("SLOTS") != std::string::npos);
}

TEST_CASE("a server that is no cluster says so to all who wait") {
    Play play("redis+cluster://seed");
    Question& a = play.ask("a");
    play.connect(0);
    play.traffic->explore(0);
    play.say(0, "-ERR This instance has cluster support disabled\r\n");
    CHECK(a.error() == StoreError::refused);
}

TEST_CASE("when no server of a cluster can be reached, nobody waits in vain") {
    Play play("redis+cluster://seed-1,seed-2");
    Question& a = play.ask("a");
    play.begin(0);
    play.traffic->lose(play.node(0), StoreError::unavailable, 0);
    CHECK(a.error() == StoreError::none);
    play.begin(1);
    play.traffic->lose(play.node(1), StoreError::unavailable, 0);
    CHECK(a.error() == StoreError::unavailable);
    CHECK(play.ask("b").error() == StoreError::unavailable);
}

TEST_CASE("a cluster whose meta nobody can be asked for is not asked again and again, and keeps nobody waiting") {
    Play play("redis+cluster://seed", 100, "p:meta");
    play.connect(0);
    play.traffic->explore(0);
    static_cast<void>(play.heard(0));
    Question& early = play.ask("a");
    play.say(0, slots_reply(7000));
    const std::size_t of_meta = slot_of("p:meta") < 8192 ? 1 : 2;
    CHECK(early.error() == StoreError::none);  // its connection may be made yet
    CHECK(play.traffic->due() > 0);
    play.begin(of_meta);
    play.traffic->lose(play.node(of_meta), StoreError::unavailable, 0);
    CHECK(early.error() == StoreError::unavailable);
    CHECK(play.ask("b").error() == StoreError::unavailable);
    static_cast<void>(play.heard(0));
    play.traffic->explore(0);
    CHECK(play.heard(of_meta).empty());
    CHECK(play.traffic->due() > 0);
}

/// Something like what a server says.
std::string noise(support::Random& random) {
    static const std::vector<std::string> words{":1\r\n",
                                                "*2\r\n:1\r\n:2\r\n",
                                                "-NOSCRIPT x\r\n",
                                                "+OK\r\n",
                                                "-MOVED 15495 h:7000\r\n",
                                                "-ASK 1 h:7001\r\n",
                                                "$-1\r\n",
                                                "-MOVED 99999 h\r\n",
                                                "-CLUSTERDOWN x\r\n",
                                                "*0\r\n",
                                                "*1\r\n*3\r\n:0\r\n:1\r\n",
                                                "$3\r\nabc\r\n",
                                                "*9\r\n:1\r\n",
                                                "-ERR\r\n",
                                                "\r\n"};
    std::string text;
    for (std::uint64_t i = random.below(4) + 1; i > 0; --i) {
        text += words[random.below(words.size())];
    }
    if (random.below(4) == 0) {
        text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    return text;
}

TEST_CASE("whatever servers say, every call ends once, and nothing breaks") {
    constexpr std::uint64_t seed = 11;
    CAPTURE(seed);
    support::Random random(seed);
    for (int run = 0; run < 3000; ++run) {
        Play play(run % 2 == 0 ? "redis://h" : "redis+cluster://h,i");
        std::size_t told = 0;
        std::size_t asked = 0;
        for (int step = 0; step < 30; ++step) {
            const std::size_t number = random.below(play.traffic->nodes().size());
            Node& node = play.node(number);
            if (random.below(3) == 0) {
                play.ask("client " + std::to_string(step));
                ++asked;
            }
            if (!node.established) {
                play.begin(number);
            } else if (node.reader().feed(noise(random))) {
                play.traffic->take_answers(node, true, 0);
            } else {
                play.traffic->lose(node, StoreError::protocol_error, 0);
            }
            play.traffic->explore(step * 1'000'000);
            told += play.finished();
        }
        play.traffic->expire(1'000'000'000);
        told += play.finished();
        CHECK(told == asked);
        CHECK(play.traffic->idle());
    }
}

}  // namespace
