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

    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;
    ~RedisServer() { stop(); }

    [[nodiscard]] std::string url() const { return "unix://" + socket(); }

    void stop() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            std::filesystem::remove_all(directory_);
            pid_ = 0;
        }
    }

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
