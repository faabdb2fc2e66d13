// SPDX-License-Identifier: MIT
// ScriptComposer: puts the pieces of an algorithm's Lua twin together into the scripts that Redis runs.
#ifndef PENSTOCK_REDIS_COMPOSER_HPP
#define PENSTOCK_REDIS_COMPOSER_HPP

#include <penstock/algorithm/all_of.hpp>
#include <penstock/config.hpp>
#include <penstock/detail/lua.hpp>
#include <penstock/redis/layout.hpp>
#include <penstock/redis/lua_frame.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Makes the scripts of one algorithm. `joined`: it is an AllOf, whose replies tell the limit of the reported part.
class ScriptComposer {
public:
    ScriptComposer(std::span<const LuaTwin> twins, bool joined, redis::Layout layout, redis::Time time)
        : twins_(twins), joined_(joined), packed_(layout == redis::Layout::packed),
          server_(time == redis::Time::server) {}

    [[nodiscard]] std::string check() const { return filled(LuaFrame::check); }
    [[nodiscard]] std::string others() const { return filled(LuaFrame::others); }

private:
    using Twin = LuaTwin;

    /// A slot that is filled once for each part: `around` with `?` replaced by the part's piece.
    struct PartSlot {
        std::string_view name;
        std::string_view around;
        std::string_view Twin::*piece;
        std::string_view between;
    };

    static constexpr std::array<PartSlot, 16> part_slots{{
        {"state", "?", &Twin::state, ","},
        {"plan", "?", &Twin::plan, ","},
        {"foreign", "?", &Twin::foreign, " or "},
        {"large", "?", &Twin::large, " or "},
        {"advance", "?", &Twin::advance, ""},
        {"check", "?", &Twin::check, ""},
        {"refund", "?", &Twin::refund, ""},
        {"charge", "?", &Twin::charge, ""},
        {"wait", "?", &Twin::wait, ""},
        {"answer", "?", &Twin::answer, ""},
        {"fits", "?", &Twin::fits, " and "},
        {"keep", "local did@,kept@=false,{?}\n", &Twin::state, ""},
        {"did", "did@", &Twin::state, " or "},
        {"restore", "if not did@ then ?=unpack(kept@) end\n", &Twin::state, ""},
        {"patient", "(ok@ or ?)", &Twin::patient, " and "},
        {"take", LuaFrame::take, &Twin::take, ""},
    }};

    /// The text with its slots filled, and without blank lines.
    [[nodiscard]] std::string filled(std::string_view text) const {
        std::string result;
        while (!text.empty()) {
            const std::size_t at = (std::min)(text.find('$'), text.size());
            append_lines(result, text.substr(0, at));
            text.remove_prefix(at);
            if (!text.empty()) {
                const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", 1);
                append_lines(result, slot(text.substr(1, end - 1)));
                text.remove_prefix((std::min)(end, text.size()));
            }
        }
        return result;
    }

    static void append_lines(std::string& to, std::string_view text) {
        for (const char letter : text) {
            if (letter != '\n' || (!to.empty() && to.back() != '\n')) {
                to += letter;
            }
        }
    }

    [[nodiscard]] std::string slot(std::string_view name) const {
        for (const PartSlot& its : part_slots) {
            if (its.name == name) {
                return parts(its);
            }
        }
        if (name == "zeros") {
            return numbers("0", count(&Twin::state), ",");
        } else if (name == "plan_format") {
            return numbers("I7", count(&Twin::plan), "");
        } else if (name == "narrow_size" || name == "wide_size") {
            return std::to_string(size_of(format(name == "wide_size", "I4")));
        } else if (name == "narrow_load" || name == "wide_load") {
            return format(name == "wide_load", "xxxx");
        } else if (name == "narrow_store" || name == "wide_store") {
            return format(name == "wide_store", "I4");
        } else if (name == "stored") {
            return stored();
        } else if (name == "fresh") {
            return fresh();
        } else if (name == "join") {
            return join();
        }
        return filled(frame(name));
    }

    /// Slots that only the layout, the clock and the kind of algorithm decide.
    [[nodiscard]] std::string_view frame(std::string_view name) const {
        struct Slot {
            std::string_view name;
            std::string_view text;
        };
        const std::array<Slot, 16> slots{{
            {"load", LuaFrame::load},
            {"divide", LuaFrame::divide},
            {"write", LuaFrame::write},
            {"now", server_ ? LuaFrame::server_now : ""},
            {"time_argument", server_ ? "" : ",now"},
            {"time_format", server_ ? "" : "I7"},
            {"least_need", server_ ? "1" : "3600000"},
            {"last", packed_ ? "2" : "1"},
            {"read", packed_ ? LuaFrame::get_packed : LuaFrame::get},
            {"put", packed_ ? LuaFrame::put_packed : LuaFrame::set},
            {"forget", packed_ ? "'HDEL',KEYS[1],ARGV[1]" : "'DEL',KEYS[1]"},
            {"seconds", packed_ ? LuaFrame::seconds : ""},
            {"sweep", packed_ ? LuaFrame::sweep : ""},
            {"limit", joined_ ? ",limit" : ""},
            {"short_reply", joined_ ? "" : LuaFrame::short_reply},
            {"reserve", reserves() ? LuaFrame::reserve : ""},
        }};
        const auto found =
            std::find_if(slots.begin(), slots.end(), [name](const Slot& its) { return its.name == name; });
        return found->text;
    }

    [[nodiscard]] bool reserves() const {
        return std::none_of(twins_.begin(), twins_.end(), [](const Twin& twin) { return twin.patient.empty(); });
    }

    [[nodiscard]] std::string parts(const PartSlot& its) const {
        std::string result;
        for (std::size_t part = 0; part < twins_.size(); ++part) {
            result += part > 0 ? its.between : std::string_view{};
            const std::size_t at = its.around.find('?');
            append_part(result, its.around.substr(0, at), part);
            if (at < its.around.size()) {
                append_part(result, twins_[part].*its.piece, part);
                append_part(result, its.around.substr(at + 1), part);
            }
        }
        return result;
    }

    static void append_part(std::string& to, std::string_view piece, std::size_t part) {
        for (const char letter : piece) {
            to += letter == '@' ? static_cast<char>('1' + part) : letter;
        }
    }

    [[nodiscard]] std::size_t count(std::string_view Twin::*names) const {
        std::size_t all = twins_.size();
        for (const Twin& twin : twins_) {
            all += static_cast<std::size_t>(std::count((twin.*names).begin(), (twin.*names).end(), ','));
        }
        return all;
    }

    [[nodiscard]] static std::string numbers(std::string_view number, std::size_t count, std::string_view between) {
        std::string result(number);
        while (--count > 0) {
            result.append(between).append(number);
        }
        return result;
    }

    /// The format of a value. In a packed layout the seconds stand behind the first byte.
    [[nodiscard]] std::string format(bool wide, std::string_view of_seconds) const {
        std::string result = parts({{}, "?", wide ? &Twin::wide : &Twin::narrow, ""});
        if (packed_) {
            result.insert(1, of_seconds);
        }
        return "<" + result;
    }

    [[nodiscard]] static std::size_t size_of(std::string_view format) {
        std::size_t size = 0;
        for (const char letter : format) {
            size += letter == 'B' ? 1 : (letter >= '0' && letter <= '9' ? static_cast<std::size_t>(letter - '0') : 0);
        }
        return size;
    }

    /// The variables of a value.
    [[nodiscard]] std::string stored() const {
        std::string result = parts(part_slots[0]);
        if (packed_) {
            result.insert(result.find(','), ",seconds");
        }
        return result;
    }

    [[nodiscard]] std::string fresh() const {
        const std::string times = parts({{}, "?", &Twin::fresh, ","});
        return twins_.size() == 1 ? times : "math.max(" + times + ")";
    }

    [[nodiscard]] std::string join() const {
        if (!joined_) {
            return "local all,left,retry,reset,lag=ok1,left1,retry1,reset1,lag1";
        }
        return std::string(LuaJoin::begin) + parts({{}, LuaJoin::add, &Twin::state, ""}) + std::string(LuaJoin::end);
    }

    std::span<const Twin> twins_;
    bool joined_;
    bool packed_;
    bool server_;
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_COMPOSER_HPP
