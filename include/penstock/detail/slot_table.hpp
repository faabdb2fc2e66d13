// SPDX-License-Identifier: MIT
// SlotTable: a table of fixed size in which every slot is a lock of its own: the memory of LocalStorage.
#ifndef PENSTOCK_DETAIL_SLOT_TABLE_HPP
#define PENSTOCK_DETAIL_SLOT_TABLE_HPP

#include <penstock/config.hpp>
#include <penstock/detail/slot.hpp>
#include <penstock/detail/slot_word.hpp>
#include <penstock/detail/threads.hpp>
#include <penstock/detail/wide.hpp>
#include <penstock/hash.hpp>
#include <penstock/plan.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Records by the hash of their key. A record is trivially copyable, means a fresh client when all zero, and has
/// `fresh_at()`: from then on it means the same as all zero; and `paid_off_at()`: when there is no room, the record
/// whose client has the smallest share of its limit to pay off makes place. No allocation, no thread. Thread-safe.
///
/// A key may stand in two sets of eight slots (two choices): at 70% fill fewer than one key in a million finds both
/// full. Each set has a place where its search begins, so that most keys are found in one or two cache lines.
///
/// Whoever writes says how long a full limit of the client takes: `payoff`, as in Payoff.
template <class Record, class Sync = Threads>
class SlotTable {
    template <class T>
    using Atomic = typename Sync::template Atomic<T>;

    static constexpr unsigned ways = Sync::ways;

    static_assert(std::has_single_bit(ways));

public:
    using Slot = detail::Slot<Record, Sync>;
    using Word = typename Slot::Word;

    /// Where a key may stand.
    struct Place {
        std::uint64_t fingerprint;
        std::array<Slot*, 2> sets;
        std::array<unsigned, 2> begins;  // the slot of each set at which its search begins

        /// Whether a look-up of one may find the other: they have one record.
        [[nodiscard]] constexpr bool meets(const Place& other) const noexcept {
            const auto in = [this](const Slot* set) { return set == sets[0] || set == sets[1]; };
            return fingerprint == other.fingerprint && (in(other.sets[0]) || in(other.sets[1]));
        }
    };

    /// A table over `sets` x ways zeroed slots, at least two sets; the caller keeps the memory.
    SlotTable(Slot* slots, std::uint64_t sets) noexcept : slots_(slots), sets_(sets) {}

    [[nodiscard]] PENSTOCK_INLINE Place place(HashPair hash) const noexcept {
        const std::uint64_t first = multiply(hash.first, sets_).high;
        std::uint64_t second = multiply(hash.second, sets_).high;
        if (second == first) {
            second = first + 1 == sets_ ? 0 : first + 1;
        }
        return {
            .fingerprint = Word::fingerprint_of(hash.first ^ hash.second >> 32),
            .sets = {slots_ + first * ways, slots_ + second * ways},
            .begins = {static_cast<unsigned>(hash.second % ways), static_cast<unsigned>(hash.second / ways % ways)}};
    }

    /// Asks for the cache lines in which the key most likely stands.
    void prefetch(const Place& place) const noexcept {
        for (unsigned index = 0; index < near; index += slots_per_line) {
            __builtin_prefetch(&slot_of(place, 0, index));
            __builtin_prefetch(&slot_of(place, 1, index));
        }
    }

    /// Runs `bool step(Record&)` on the key's record, or on a fresh one, and keeps the record if it returns true. The
    /// step runs again if another thread was faster, so it must be pure. Otherwise nothing is written.
    template <class Step>
    PENSTOCK_INLINE void update(const Place& place, Micros now, unsigned payoff, Step&& step) noexcept {
        for (unsigned attempts = 0;; Sync::pause(attempts++)) {
            const auto [slot, word] = find(place);
            Record record{};
            if (slot != nullptr && !slot->read(word, record)) [[unlikely]] {
                continue;
            }
            if (!step(record)) {
                return;
            }
            if (slot == nullptr ? try_insert(place, now, payoff, record) : try_write(*slot, word, payoff, record)) {
                return;
            }
        }
    }

    /// One of several keys in one step.
    class Entry {
    public:
        Place place{};
        Record record{};        // of the key; unused if an earlier entry has the same key
        Entry* same = nullptr;  // that entry
        bool changed = false;   // set by the steps
        unsigned payoff = 0;    // likewise

    private:
        friend class SlotTable;
        Slot* slot_ = nullptr;
        Word word_{};
        bool taken_ = false;  // for this key, which had none
    };

    /// As many as a key has slots to choose from, so that there is always one left for the last of them.
    static constexpr std::size_t most_entries = 2 * ways;

    /// Runs `bool steps()` on the entries' records, all as they stood at one moment, and keeps all of them if it
    /// returns true, in one moment again, or none. The steps see an entry of the same key as an earlier one through
    /// `same`. They run again if another thread was faster, so they must be pure. At most `most_entries`.
    template <class Steps>
    void update_all(std::span<Entry> entries, Micros now, Steps&& steps) noexcept {
        for (unsigned attempts = 0;; Sync::pause(attempts++)) {
            if (!read_all(entries)) {
                continue;
            }
            if (!steps()) {
                if (unchanged(entries)) {
                    return;
                }
                continue;
            }
            if (try_write_all(entries, now)) {
                return;
            }
        }
    }

    /// Forgets the key.
    void erase(const Place& place) noexcept {
        for (unsigned attempts = 0;; ++attempts) {
            const auto [slot, word] = find(place);
            if (slot == nullptr) {
                return;
            }
            if (!word.locked() && slot->exchange(word, word.emptied())) {
                return;
            }
            Sync::pause(attempts);
        }
    }

    /// How many records were dropped before their time because both sets of a key were full.
    [[nodiscard]] std::uint64_t evictions() const noexcept { return evictions_.load(std::memory_order_relaxed); }

private:
    static constexpr unsigned slots_per_line = sizeof(Slot) >= 64 ? 1 : 64 / sizeof(Slot);
    static constexpr unsigned near = (std::min)((std::max)(slots_per_line, 2U), ways);

    struct Found {
        Slot* slot = nullptr;
        Word word;
    };

    /// The slots of a set in the order of its search.
    [[nodiscard]] static Slot& slot_of(const Place& place, unsigned set, unsigned index) noexcept {
        return place.sets[set][place.begins[set] ^ index];
    }

    /// Looks through both sets, first at the lines that were prefetched.
    [[nodiscard]] static Found find(const Place& place) noexcept {
        if (const Found found = find(place, 0, 0, near); found.slot != nullptr) [[likely]] {
            return found;
        }
        if (const Found found = find(place, 1, 0, near); found.slot != nullptr) {
            return found;
        }
        return find_far(place);
    }

    [[nodiscard]] PENSTOCK_NOINLINE static Found find_far(Place place) noexcept {
        const Found found = find(place, 0, near, ways);
        return found.slot != nullptr ? found : find(place, 1, near, ways);
    }

    [[nodiscard]] static Found find(const Place& place, unsigned set, unsigned from, unsigned to) noexcept {
        for (unsigned index = from; index < to; ++index) {
            Slot& slot = slot_of(place, set, index);
            if (const Word word = slot.load(); word.fingerprint() == place.fingerprint) {
                return {&slot, word};
            }
        }
        return {};
    }

    [[nodiscard]] static bool try_write(Slot& slot, Word word, unsigned payoff, const Record& record) noexcept {
        if (!slot.exchange(word, word.lock())) [[unlikely]] {
            return false;
        }
        slot.publish(word.written(payoff), record);
        return true;
    }

    [[nodiscard]] PENSTOCK_NOINLINE bool try_insert(Place place, Micros now, unsigned payoff, Record record) noexcept {
        const SpinLock<Sync> lock(set_lock(place));
        const Room room = take_room(place, now);
        if (room.slot == nullptr) {
            return false;
        }
        room.slot->publish(room.word.written(payoff), record);
        return true;
    }

    /// Which record makes room first: the one with the least to pay off, as a share of its limit, then as a time.
    using Rank = std::pair<std::uint64_t, Micros>;

    struct Room {
        Slot* slot = nullptr;
        Word word;  // as it was; after take_room as it was for the new client
        bool live = false;
        bool near = false;  // free, and in the lines that were prefetched
        Rank rank{~std::uint64_t{0}, 0};
        unsigned free = 0;  // slots of the set that are empty or hold what is as good as fresh
    };

    /// Locks a slot for a new key, whose set lock is held: one thread at a time inserts into the sets that a key tries
    /// first, so that no key gets two slots. No slot if the key has one by now, or another thread was faster.
    [[nodiscard]] Room take_room(const Place& place, Micros now) noexcept {
        if (find(place).slot != nullptr) {
            return {};
        }
        Room room = look_for_room(place, now);
        const Word taken = room.word.given_to(place.fingerprint);
        // The slot may be of another key's first set, so it is taken like any: if nothing happened to it since.
        if (room.slot == nullptr || !room.slot->exchange(room.word, taken.lock())) {
            return {};
        }
        room.word = taken;
        if (room.live) {
            evictions_.fetch_add(1, std::memory_order_relaxed);
        }
        return room;
    }

    /// Where the key is found the fastest, as long as more than half of that set is free: else a free slot of the set
    /// with more of them, else the one whose record ranks lowest.
    [[nodiscard]] static Room look_for_room(const Place& place, Micros now) noexcept {
        const Room first = look_for_room(place, 0, now);
        const Room second = look_for_room(place, 1, now);
        for (const Room& room : {first, second}) {
            if (room.near && room.free > ways / 2 && room.rank <= (std::min)(first.rank, second.rank)) {
                return room;
            }
        }
        if (first.free != second.free) {
            return first.free > second.free ? first : second;
        }
        return first.rank <= second.rank ? first : second;
    }

    [[nodiscard]] static Room look_for_room(const Place& place, unsigned set, Micros now) noexcept {
        Room room;
        for (unsigned index = 0; index < ways; ++index) {
            Slot& slot = slot_of(place, set, index);
            const Word word = slot.load();
            Record record;
            if (!slot.read(word, record)) {
                continue;
            }
            const bool live = !word.empty() && record.fresh_at() > now;
            room.free += live ? 0 : 1;
            // Empty slots come first, then expired ones, whose clients may yet come under a slower plan.
            const Rank rank = live ? rank_of_live(record, word, now) : Rank{word.empty() ? 0 : 1, 0};
            if (rank < room.rank) {
                room = {&slot, word, live, !live && index < near, rank, room.free};
            }
        }
        return room;
    }

    [[nodiscard]] static Rank rank_of_live(const Record& record, Word word, Micros now) noexcept {
        const Micros due = (std::min)(record.paid_off_at(), end_of_time);
        const Micros left = due > now ? due - now : 0;
        return {2 + Payoff::share(left, word.payoff()), left};
    }

    [[nodiscard]] static bool read_all(std::span<Entry> entries) noexcept {
        for (Entry& entry : entries) {
            const auto earlier =
                std::find_if(entries.data(), &entry, [&](const Entry& e) { return e.place.meets(entry.place); });
            entry.same = earlier == &entry ? nullptr : earlier;
            const Found found = entry.same == nullptr ? find(entry.place) : Found{};
            entry.slot_ = found.slot;
            entry.word_ = found.word;
            entry.taken_ = false;
            entry.record = Record{};
            entry.changed = false;
            entry.payoff = 0;
            if (found.slot != nullptr && !found.slot->read(found.word, entry.record)) {
                return false;
            }
        }
        return true;
    }

    /// Whether all that was read still stands: then there was a moment at which all of it stood together. Keys without
    /// a slot are looked for again first, while the words that are compared last have not changed.
    [[nodiscard]] static bool unchanged(std::span<const Entry> entries) noexcept {
        return still_absent(entries) && std::all_of(entries.begin(), entries.end(), [](const Entry& entry) {
                   return entry.slot_ == nullptr || entry.slot_->load().bits() == entry.word_.bits();
               });
    }

    [[nodiscard]] static bool still_absent(std::span<const Entry> entries) noexcept {
        return std::all_of(entries.begin(), entries.end(), [](const Entry& entry) {
            return entry.slot_ != nullptr || entry.same != nullptr || find(entry.place).slot == nullptr;
        });
    }

    /// Locks the slots that were read in the order of their addresses, then takes slots for new keys. It waits for no
    /// slot, and only for set locks, whose holders wait for nothing: two of them cannot wait for each other.
    [[nodiscard]] bool try_write_all(std::span<Entry> entries, Micros now) noexcept {
        std::array<Entry*, most_entries> order;
        std::size_t count = 0;
        for (Entry& entry : entries) {
            if (entry.slot_ != nullptr || entry.changed) {
                std::size_t at = count++;
                for (; at > 0 && goes_before(entry, *order[at - 1]); --at) {
                    order[at] = order[at - 1];
                }
                order[at] = &entry;
            }
        }
        const std::span<Entry*> needed(order.data(), count);
        std::size_t locked = 0;
        while (locked < count && try_lock(*needed[locked], now)) {
            ++locked;
        }
        if (locked < count || !still_absent(entries)) {
            for (Entry* entry : needed.first(locked)) {
                unlock(*entry);
            }
            return false;
        }
        for (Entry* entry : needed) {
            entry->slot_->publish(entry->word_.written(entry->payoff), entry->record);
        }
        return true;
    }

    [[nodiscard]] static bool goes_before(const Entry& a, const Entry& b) noexcept {
        return a.slot_ != nullptr && (b.slot_ == nullptr || a.slot_ < b.slot_);
    }

    [[nodiscard]] bool try_lock(Entry& entry, Micros now) noexcept {
        if (entry.slot_ != nullptr) {
            return entry.slot_->exchange(entry.word_, entry.word_.lock());
        }
        const SpinLock<Sync> lock(set_lock(entry.place));
        const Room room = take_room(entry.place, now);
        entry.slot_ = room.slot;
        entry.word_ = room.word;
        entry.taken_ = true;
        return room.slot != nullptr;
    }

    /// Unlocks a slot that was not written. One taken for a new key is left empty: meanwhile its old key may have got
    /// another.
    static void unlock(const Entry& entry) noexcept {
        entry.slot_->store(entry.taken_ ? entry.word_.emptied() : entry.word_);
    }

    [[nodiscard]] Atomic<std::uint32_t>& set_lock(const Place& place) noexcept {
        const auto set = static_cast<std::size_t>(place.sets[0] - slots_) / ways;
        return set_locks_[set % Sync::set_locks];
    }

    Slot* slots_;
    std::uint64_t sets_;
    // What a flood writes on every check stands apart from what every check reads.
    alignas(64) Atomic<std::uint64_t> evictions_{0};
    std::array<Atomic<std::uint32_t>, Sync::set_locks> set_locks_{};
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_SLOT_TABLE_HPP
