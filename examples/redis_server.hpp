// SPDX-License-Identifier: MIT
// A redis-server of the example's own, on a socket in a temporary directory; nothing here is about the library.
#ifndef PENSTOCK_EXAMPLES_REDIS_SERVER_HPP
#define PENSTOCK_EXAMPLES_REDIS_SERVER_HPP

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace support {

class RedisServer {
public:
    RedisServer() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-example-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) fail("no temporary directory");
        directory_ = name;
        start();
    }

    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;
    ~RedisServer() {
        stop();
        std::filesystem::remove_all(directory_);
    }

    [[nodiscard]] std::string url() const { return "unix://" + socket(); }

    /// Returns when it runs.
    void start() {
        pid_ = fork();
        if (pid_ == 0) {
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
            execlp("redis-server",
                   "redis-server",
                   "--port",
                   "0",
                   "--unixsocket",
                   socket().c_str(),
                   "--dir",
                   directory_.c_str(),
                   "--save",
                   "",
                   "--appendonly",
                   "no",
                   nullptr);
            _exit(127);
        }
        while (!std::filesystem::exists(socket())) {
            if (waitpid(pid_, nullptr, WNOHANG) != 0) fail("redis-server does not start: install redis-server");
            usleep(1000);
        }
    }

    /// Ends it at once, as a crash does: what it knew is lost.
    void stop() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            std::filesystem::remove(socket());
            pid_ = 0;
        }
    }

    /// It neither answers nor hangs up until it goes on.
    void hang() const { kill(pid_, SIGSTOP); }
    void go_on() const { kill(pid_, SIGCONT); }

private:
    [[nodiscard]] std::string socket() const { return (directory_ / "socket").string(); }

    [[noreturn]] static void fail(const char* text) {
        std::fprintf(stderr, "%s\n", text);
        std::exit(1);
    }

    std::filesystem::path directory_;
    pid_t pid_ = 0;
};

}  // namespace support

#endif  // PENSTOCK_EXAMPLES_REDIS_SERVER_HPP
