// SPDX-License-Identifier: MIT
// ReplyReader: bytes from a server in, replies out. The only place that sees hiredis, whatever its version.
#ifndef PENSTOCK_REDIS_HIREDIS_HPP
#define PENSTOCK_REDIS_HIREDIS_HPP

#include <penstock/config.hpp>

#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// One node of a reply: an array is followed by its elements, each with what is below it.
struct ReplyNode {
    enum class Type : std::uint8_t { nil, integer, text, error, array };

    Type type = Type::nil;
    std::int64_t integer = 0;  ///< of an array: how many elements
    std::size_t begin = 0;     ///< of text and error: where it stands in Reply::text
    std::size_t size = 0;
};

/// A reply, flat: it has at least one node, the first is the whole of it.
struct Reply {
    std::vector<ReplyNode> nodes;
    std::string bytes;

    [[nodiscard]] std::string_view text(const ReplyNode& node) const noexcept {
        return std::string_view(bytes).substr(node.begin, node.size);
    }
};

/// Takes what a server sends, in any pieces. Not thread-safe. It keeps at most `longest` bytes of a reply.
class ReplyReader {
public:
    /// More than any reply that is asked for: a slot map of a thousand nodes.
    static constexpr std::size_t longest = std::size_t{4} << 20;

    enum class Status : std::uint8_t { reply, incomplete, broken };

    ReplyReader() : reader_(redisReaderCreateWithFunctions(&functions())) { start(); }

    ReplyReader(const ReplyReader&) = delete;
    ReplyReader& operator=(const ReplyReader&) = delete;

    /// Forgets what came so far: a new connection begins.
    void reset() {
        reader_.reset(redisReaderCreateWithFunctions(&functions()));
        start();
    }

    /// False if this cannot be the beginning of any reply that is asked for.
    [[nodiscard]] bool feed(std::string_view bytes) noexcept {
        const std::size_t kept = reply_.bytes.size() + reply_.nodes.size() * sizeof(ReplyNode);
        overlong_ = overlong_ || reader_ == nullptr || reader_->len - reader_->pos + bytes.size() + kept > longest ||
                    redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK;
        return !overlong_;
    }

    /// The next reply that is complete. It is good until the next call.
    [[nodiscard]] Status next() {
        if (finished_) {
            clear();
        }
        void* whole = nullptr;
        if (reader_ == nullptr || redisReaderGetReply(reader_.get(), &whole) != REDIS_OK) {
            return Status::broken;
        }
        finished_ = whole != nullptr;
        return finished_ ? Status::reply : overlong_ ? Status::broken : Status::incomplete;
    }

    [[nodiscard]] const Reply& reply() const noexcept { return reply_; }

private:
    struct Free {
        void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
    };

    void start() noexcept {
        clear();
        overlong_ = false;
        if (reader_ != nullptr) {
            reader_->privdata = this;
            reader_->maxbuf = 0;  // hiredis would free and allocate its buffer again with every deep pipeline
        }
    }

    void clear() noexcept {
        reply_.nodes.clear();
        reply_.bytes.clear();
        finished_ = false;
    }

    /// hiredis wants an object for every node, and only ever compares it with null.
    static void* add(const redisReadTask* task, const ReplyNode& node) {
        auto& self = *static_cast<ReplyReader*>(task->privdata);
        self.reply_.nodes.push_back(node);
        return &self;
    }

    static void* add_text(const redisReadTask* task, char* text, std::size_t size) {
        Reply& reply = static_cast<ReplyReader*>(task->privdata)->reply_;
        const auto type = task->type == REDIS_REPLY_ERROR ? ReplyNode::Type::error : ReplyNode::Type::text;
        const ReplyNode node{.type = type, .begin = reply.bytes.size(), .size = size};
        reply.bytes.append(text, size);
        return add(task, node);
    }

    // int in hiredis 0, size_t since.
    template <class Size>
    static void* add_array(const redisReadTask* task, Size size) {
        return add(task, {.type = ReplyNode::Type::array, .integer = static_cast<std::int64_t>(size)});
    }

    static void* add_integer(const redisReadTask* task, long long integer) {
        return add(task, {.type = ReplyNode::Type::integer, .integer = integer});
    }

    static void* add_nil(const redisReadTask* task) { return add(task, {}); }

    static void free_nothing(void*) noexcept {}

    [[nodiscard]] static redisReplyObjectFunctions& functions() noexcept {
        static redisReplyObjectFunctions functions = [] {
            redisReplyObjectFunctions own{};  // later versions have more, for types that RESP2 has not
            own.createString = add_text;
            own.createArray = add_array;
            own.createInteger = add_integer;
            own.createNil = add_nil;
            own.freeObject = free_nothing;
            return own;
        }();
        return functions;
    }

    std::unique_ptr<redisReader, Free> reader_;
    Reply reply_;
    bool finished_ = false;
    bool overlong_ = false;
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_HIREDIS_HPP
