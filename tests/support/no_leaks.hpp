// SPDX-License-Identifier: MIT
// NoLeaks: no test case leaves more files open than it found. Servers that a program's cases share are processes, of
// which nothing is open here.
#ifndef PENSTOCK_TESTS_SUPPORT_NO_LEAKS_HPP
#define PENSTOCK_TESTS_SUPPORT_NO_LEAKS_HPP

#include "await.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <system_error>

namespace support {

/// What the open files of this process are, as "socket:[123]" or "/tmp/file"; none where the system does not tell.
inline std::multiset<std::string> open_targets() {
    std::multiset<std::string> targets;
    std::error_code error;
    // The directory's own descriptor is closed by the time it is looked at.
    std::set<std::filesystem::path> links;
    for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; at != end; at.increment(error)) {
        links.insert(at->path());
    }
    for (const std::filesystem::path& link : links) {
        if (const std::filesystem::path target = std::filesystem::read_symlink(link, error); !error) {
            targets.insert(target.string());
        }
    }
    return targets;
}

/// Tells of the test cases that do; `found` is for the program's exit status, since by then the case has its result.
class NoLeaks final : public doctest::IReporter {
public:
    explicit NoLeaks(const doctest::ContextOptions& options) : out_(*options.cout) {}

    [[nodiscard]] static bool found() { return found_; }

    void test_case_start(const doctest::TestCaseData& test) override {
        name_ = test.m_name;
        before_ = open_targets();
    }

    void test_case_end(const doctest::CurrentTestCaseStats&) override {
        std::multiset<std::string> after;
        // A lookup that hangs is left to its thread, which closes what it holds when it ends.
        const bool closed = await([&] {
            after = open_targets();
            return after.size() <= before_.size();
        });
        if (closed) {
            return;
        }
        found_ = true;
        out_ << "LEAK: the test case \"" << name_ << "\" leaves open:";
        for (const std::string& target : before_) {
            if (const auto same = after.find(target); same != after.end()) {
                after.erase(same);
            }
        }
        for (const std::string& target : after) {
            out_ << ' ' << target;
        }
        out_ << std::endl;
    }

    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_exception(const doctest::TestCaseException&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData&) override {}
    void log_message(const doctest::MessageData&) override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}

private:
    std::ostream& out_;
    std::string name_;
    std::multiset<std::string> before_;
    inline static bool found_ = false;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_NO_LEAKS_HPP
