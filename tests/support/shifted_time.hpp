// SPDX-License-Identifier: MIT
// ShiftedTime: the wall clock of another process, in the test's hands. shifted_time.cpp, preloaded there, obeys it.
#ifndef PENSTOCK_TESTS_SUPPORT_SHIFTED_TIME_HPP
#define PENSTOCK_TESTS_SUPPORT_SHIFTED_TIME_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace support {

/// What stands in the file that both processes map; all zero is the time as it is.
struct SharedShift {
    std::atomic<std::int64_t> micros;  ///< added to the kernel's time,
    std::atomic<bool> stands;          ///< or the time itself
};

static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

/// Which file it is.
inline constexpr const char* shift_variable = "PENSTOCK_TEST_SHIFT";

/// Null if there is no such file.
inline SharedShift* map_shift(const char* path) noexcept {
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return nullptr;
    }
    void* const memory = ::mmap(nullptr, sizeof(SharedShift), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<SharedShift*>(memory);
}

#ifdef PENSTOCK_TEST_SHIFTED_TIME  // where the library is

/// At first the time as it is. Thread-safe.
class ShiftedTime {
public:
    ShiftedTime() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-time-XXXXXX").string();
        const int file = ::mkstemp(name.data());
        const bool made = file >= 0 && ::ftruncate(file, sizeof(SharedShift)) == 0;
        ::close(file);
        path_ = name;
        library_ = name + ".so";
        std::filesystem::create_symlink(PENSTOCK_TEST_SHIFTED_TIME, library_);  // whose own path may have blanks
        shift_ = made ? map_shift(name.c_str()) : nullptr;
        if (shift_ == nullptr) {
            remove_files();
            throw std::runtime_error("no temporary file " + name);
        }
    }

    ShiftedTime(const ShiftedTime&) = delete;
    ShiftedTime& operator=(const ShiftedTime&) = delete;

    ~ShiftedTime() {
        ::munmap(shift_, sizeof(SharedShift));
        remove_files();
    }

    /// What puts a process under it: for env, which hands it on to that process only.
    [[nodiscard]] std::vector<std::string> environment() const {
        return {"LD_PRELOAD=" + library_.string(), std::string(shift_variable) + "=" + path_.string()};
    }

    /// The time stands from now on, at so long after the Unix epoch.
    void set(std::chrono::microseconds time) const {
        shift_->micros = time.count();
        shift_->stands = true;
    }

private:
    void remove_files() const {
        std::filesystem::remove(path_);
        std::filesystem::remove(library_);
    }

    std::filesystem::path path_;
    std::filesystem::path library_;
    SharedShift* shift_ = nullptr;
};

#endif

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_SHIFTED_TIME_HPP
