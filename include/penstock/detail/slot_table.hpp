// SPDX-License-Identifier: MIT
// SlotTable: a table of fixed size in which every slot is a lock of its own: the memory of LocalStorage.
#ifndef PENSTOCK_DETAIL_SLOT_TABLE_HPP
#define PENSTOCK_DETAIL_SLOT_TABLE_HPP

#include <penstock/config.hpp>
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
#include <cstring>
#include <span>
#include <type_traits>

PENSTOCK_BEGIN_NAMESPACE

namespace detail {

/// Records by the hash of their key. A record is trivially copyable, means a fresh client when all zero, and has
/// `fresh_at()`: from then on it means the same as all zero; and `paid_off_at()`: when there is no room, the record
/// with the least makes place. No allocation, no thread. Thread-safe.
///
/// A key may stand in two sets of eight slots (two choices): at 70% fill fewer than one key in a million finds both
/// full. Each set has a place where its search begins, so that most keys are found in one or two cache lines.
template <class Record, class Sync = Threads>
class SlotTable {
    static_assert(std::is_trivially_copyable_v<Record>);

    template <class T>
    using Atomic = typename Sync::template Atomic<T>;
    using Word = SlotWord<Sync::sequence_bits>;

    static constexpr std::size_t record_words = (sizeof(Record) + 7) / 8;
    static constexpr unsigned ways = Sync::ways;

    static_assert(std::has_single_bit(ways));

public:
    struct alignas(32) Slot {
        Atomic<std::uint64_t> word{0};
        std::array<Atomic<std::uint64_t>, record_words> record{};
    };

    /// Where a key may stand.
    struct Place {
        std::uint64_t fingerprint;
        std::array<Slot*, 2> sets;
        std::array<unsigned, 2> begins;  // the slot of each set at which its search begins

        friend constexpr bool operator==(const Place&, const Place&) noexcept = default;
    };

    /// A table over `sets` x ways zeroed slots, at least two sets; the caller keeps the memory.
    SlotTable(Slot* slots, std::uint64_t sets) noexcept : slots_(slots), sets_(sets) {}

    [[nodiscard]] PENSTOCK_INLINE Place place(HashPair hash) const noexcept {
        const std::uint64_t first = multiply(hash.first, sets_).high;
        std::uint64_t second = multiply(hash.second, sets_).high;
        if (second == first) {
            second = first + 1 == sets_ ? 0 : first + 1;
        }
        const std::uint64_t fingerprint = hash.first & ((std::uint64_t{1} << Word::fingerprint_bits) - 1);
        return {
            .fingerprint = fingerprint == 0 ? 1 : fingerprint,
            .sets = {slots_ + first * ways, slots_ + second * ways},
            .begins = {static_cast<unsigned>(hash.second % ways), static_cast<unsigned>(hash.second / ways % ways)}};
    }

    /// Asks for the cache lines in which the key most likely stands.
    void prefetch(const Place& place) const noexcept {
        __builtin_prefetch(place.sets[0] + place.begins[0]);
        __builtin_prefetch(place.sets[1] + place.begins[1]);
    }

    /// Runs `bool step(Record&)` on the key's record, or on a fresh one, and keeps the record if it returns true. The
    /// step runs again if another thread was faster, so it must be pure. Otherwise nothing is written.
    template <class Step>
    PENSTOCK_INLINE void update(const Place& place, Micros now, Step&& step) noexcept {
        for (unsigned attempts = 0;; Sync::pause(attempts++)) {
            const auto [slot, word] = find(place);
            Record record{};
            if (slot != nullptr && !read(*slot, word, record)) [[unlikely]] {
                continue;
            }
            if (!step(record)) {
                return;
            }
            if (slot == nullptr ? try_insert(place, now, record) : try_write(*slot, word, record)) {
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

    private:
        friend class SlotTable;
        Slot* slot = nullptr;
        Word word{};
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
            // An empty slot keeps its sequence, so that it cannot be mistaken for what it was.
            if (!word.locked() && exchange(*slot, word, word.written(0))) {
                return;
            }
            Sync::pause(attempts);
        }
    }

    /// How many records were dropped before their time because both sets of a key were full.
    [[nodiscard]] std::uint64_t evictions() const noexcept { return evictions_.load(std::memory_order_relaxed); }

private:
    static constexpr unsigned slots_per_line = sizeof(Slot) >= 64 ? 1 : 64 / sizeof(Slot);
    static constexpr unsigned near = slots_per_line < ways ? slots_per_line : ways;

    [[nodiscard]] static constexpr std::size_t bytes_in_word(std::size_t word) noexcept {
        return (std::min)(sizeof(Record) - 8 * word, std::size_t{8});
    }

    struct Found {
        Slot* slot = nullptr;
        Word word;
    };

    /// The slots of a set in the order of its search.
    [[nodiscard]] static Slot& slot_of(const Place& place, unsigned set, unsigned index) noexcept {
        return place.sets[set][place.begins[set] ^ index];
    }

    [[nodiscard]] static Word load(const Slot& slot) noexcept {
        return Word(slot.word.load(std::memory_order_acquire));
    }

    [[nodiscard]] static bool exchange(Slot& slot, Word expected, Word desired) noexcept {
        std::uint64_t bits = expected.bits();
        return slot.word.compare_exchange_strong(
            bits, desired.bits(), std::memory_order_acq_rel, std::memory_order_relaxed);
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
            if (const Word word = load(slot); word.fingerprint() == place.fingerprint) {
                return {&slot, word};
            }
        }
        return {};
    }

    [[nodiscard]] static bool try_write(Slot& slot, Word word, const Record& record) noexcept {
        if (!exchange(slot, word, word.lock())) [[unlikely]] {
            return false;
        }
        publish(slot, word, word.fingerprint(), record);
        return true;
    }

    /// Copies the record out. False if the slot is or was being written: what was copied may be torn.
    [[nodiscard]] static bool read(const Slot& slot, Word word, Record& record) noexcept {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < record_words; ++i) {
            const std::uint64_t bits = slot.record[i].load(std::memory_order_acquire);
            std::memcpy(reinterpret_cast<std::byte*>(&record) + 8 * i, &bits, bytes_in_word(i));
        }
        return !word.locked() && slot.word.load(std::memory_order_relaxed) == word.bits();
    }

    /// Writes a locked slot and unlocks it.
    static void publish(Slot& slot, Word word, std::uint64_t fingerprint, const Record& record) noexcept {
#pragma GCC unroll 16
        for (std::size_t i = 0; i < record_words; ++i) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, reinterpret_cast<const std::byte*>(&record) + 8 * i, bytes_in_word(i));
            slot.record[i].store(bits, std::memory_order_release);
        }
        slot.word.store(word.written(fingerprint).bits(), std::memory_order_release);
    }

    [[nodiscard]] PENSTOCK_NOINLINE bool try_insert(Place place, Micros now, Record record) noexcept {
        const SpinLock<Sync> lock(set_lock(place));
        const Room room = take_room(place, now);
        if (room.slot == nullptr) {
            return false;
        }
        publish(*room.slot, room.word, place.fingerprint, record);
        return true;
    }

    struct Room {
        Slot* slot = nullptr;
        Word word;
        bool live = false;
        Micros paid_off_at = ~Micros{0};
        unsigned free = 0;  // slots of the set that are empty or hold what is as good as fresh
    };

    /// Locks a slot for a new key, whose set lock is held: one thread at a time inserts into the sets that a key tries
    /// first, so that no key gets two slots. No slot if the key has one by now, or another thread was faster.
    [[nodiscard]] Room take_room(const Place& place, Micros now) noexcept {
        if (find(place).slot != nullptr) {
            return {};
        }
        const Room room = look_for_room(place, now);
        // The slot may be of another key's first set, so it is taken like any: if nothing happened to it since.
        if (room.slot == nullptr || !exchange(*room.slot, room.word, room.word.lock_for(place.fingerprint))) {
            return {};
        }
        if (room.live) {
            evictions_.fetch_add(1, std::memory_order_relaxed);
        }
        return room;
    }

    /// A free slot of the set with more of them, else the one whose record is paid off the soonest.
    [[nodiscard]] static Room look_for_room(const Place& place, Micros now) noexcept {
        const Room first = look_for_room(place, 0, now);
        const Room second = look_for_room(place, 1, now);
        if (first.free != second.free) {
            return first.free > second.free ? first : second;
        }
        return first.paid_off_at <= second.paid_off_at ? first : second;
    }

    [[nodiscard]] static Room look_for_room(const Place& place, unsigned set, Micros now) noexcept {
        Room room;
        for (unsigned index = 0; index < ways; ++index) {
            Slot& slot = slot_of(place, set, index);
            const Word word = load(slot);
            Record record;
            if (!read(slot, word, record)) {
                continue;
            }
            const bool live = !word.empty() && record.fresh_at() > now;
            room.free += live ? 0 : 1;
            // Empty slots come first, then expired ones, whose clients may yet come under a slower plan.
            const Micros due = std::clamp(record.paid_off_at(), Micros{2}, ~Micros{0} - 1);
            const Micros rank = live ? due : (word.empty() ? 0 : 1);
            if (rank < room.paid_off_at) {
                room = {&slot, word, live, rank, room.free};
            }
        }
        return room;
    }

    [[nodiscard]] static bool read_all(std::span<Entry> entries) noexcept {
        for (Entry& entry : entries) {
            const auto earlier =
                std::find_if(entries.data(), &entry, [&](const Entry& e) { return e.place == entry.place; });
            entry.same = earlier == &entry ? nullptr : earlier;
            const Found found = entry.same == nullptr ? find(entry.place) : Found{};
            entry.slot = found.slot;
            entry.word = found.word;
            entry.record = Record{};
            entry.changed = false;
            if (found.slot != nullptr && !read(*found.slot, found.word, entry.record)) {
                return false;
            }
        }
        return true;
    }

    /// Whether all that was read still stands: then there was a moment at which all of it stood together. Keys without
    /// a slot are looked for again first, while the words that are compared last have not changed.
    [[nodiscard]] static bool unchanged(std::span<const Entry> entries) noexcept {
        return still_absent(entries) && std::all_of(entries.begin(), entries.end(), [](const Entry& entry) {
                   return entry.slot == nullptr || load(*entry.slot).bits() == entry.word.bits();
               });
    }

    [[nodiscard]] static bool still_absent(std::span<const Entry> entries) noexcept {
        return std::all_of(entries.begin(), entries.end(), [](const Entry& entry) {
            return entry.slot != nullptr || entry.same != nullptr || find(entry.place).slot == nullptr;
        });
    }

    /// Locks the slots that were read in the order of their addresses, then takes slots for new keys, and never waits
    /// for a lock while it holds a slot: two of them cannot wait for each other.
    [[nodiscard]] bool try_write_all(std::span<Entry> entries, Micros now) noexcept {
        std::array<Entry*, most_entries> order;
        std::size_t count = 0;
        for (Entry& entry : entries) {
            if (entry.slot != nullptr || entry.changed) {
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
            publish(*entry->slot, entry->word, entry->place.fingerprint, entry->record);
        }
        return true;
    }

    [[nodiscard]] static bool goes_before(const Entry& a, const Entry& b) noexcept {
        return a.slot != nullptr && (b.slot == nullptr || a.slot < b.slot);
    }

    [[nodiscard]] bool try_lock(Entry& entry, Micros now) noexcept {
        if (entry.slot != nullptr) {
            return exchange(*entry.slot, entry.word, entry.word.lock());
        }
        const SpinLock<Sync> lock(set_lock(entry.place), SpinLock<Sync>::only_if_free);
        if (!lock) {
            return false;
        }
        const Room room = take_room(entry.place, now);
        entry.slot = room.slot;
        entry.word = room.word;
        return room.slot != nullptr;
    }

    /// Unlocks a slot that was not written. One taken for a new key is left empty: meanwhile its old key may have got
    /// another.
    static void unlock(const Entry& entry) noexcept {
        const bool taken = entry.word.fingerprint() != entry.place.fingerprint;
        entry.slot->word.store((taken ? entry.word.written(0) : entry.word).bits(), std::memory_order_release);
    }

    [[nodiscard]] Atomic<std::uint32_t>& set_lock(const Place& place) noexcept {
        const auto set = static_cast<std::size_t>(place.sets[0] - slots_) / ways;
        return set_locks_[set % Sync::set_locks];
    }

    Slot* slots_;
    std::uint64_t sets_;
    Atomic<std::uint64_t> evictions_{0};
    std::array<Atomic<std::uint32_t>, Sync::set_locks> set_locks_{};
};

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_DETAIL_SLOT_TABLE_HPP
