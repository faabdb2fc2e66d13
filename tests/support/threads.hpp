// SPDX-License-Identifier: MIT
// Threads that do something at the same time.
#ifndef PENSTOCK_TESTS_SUPPORT_THREADS_HPP
#define PENSTOCK_TESTS_SUPPORT_THREADS_HPP

#include <atomic>
#include <cstddef>
#include <thread>
#include <type_traits>
#include <vector>

namespace threads {

/// Lets nobody pass before all have come; then again.
class Barrier {
public:
    explicit Barrier(std::size_t parties) : parties_(parties) {}

    void arrive_and_wait() {
        const std::size_t round = round_.load();
        if (waiting_.fetch_add(1) + 1 < parties_) {
            // To spin a little lets all go at the same time, to spin for long would keep the others from coming.
            for (int spin = 0; spin < 1000 && round_.load() == round; ++spin) {
            }
            round_.wait(round);
            return;
        }
        waiting_.store(0);
        round_.store(round + 1);
        round_.notify_all();
    }

private:
    std::size_t parties_;
    std::atomic<std::size_t> waiting_{0};
    std::atomic<std::size_t> round_{0};
};

/// Runs work(0), work(1), ... in a thread each, from one moment on.
template <class Work>
void together(std::size_t count, const Work& work) {
    Barrier start(count);
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < count; ++i) {
        running.emplace_back([&, i] {
            start.arrive_and_wait();
            work(i);
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
}

/// The same, and gives back what they returned.
template <class Work>
auto results_of(std::size_t count, const Work& work) {
    using Result = decltype(work(std::size_t{}));
    static_assert(!std::is_same_v<Result, bool>, "elements of a vector<bool> cannot be written at the same time");
    std::vector<Result> results(count);
    together(count, [&](std::size_t i) { results[i] = work(i); });
    return results;
}

/// What all threads returned, in one.
template <class T>
std::vector<T> joined(const std::vector<std::vector<T>>& results) {
    std::vector<T> all;
    for (const std::vector<T>& result : results) {
        all.insert(all.end(), result.begin(), result.end());
    }
    return all;
}

}  // namespace threads

#endif  // PENSTOCK_TESTS_SUPPORT_THREADS_HPP
