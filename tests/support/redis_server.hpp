// SPDX-License-Identifier: MIT
// RedisServer: a real redis-server of the test's own, on a free loopback port, gone with its files when the test ends.
#ifndef PENSTOCK_TESTS_SUPPORT_REDIS_SERVER_HPP
#define PENSTOCK_TESTS_SUPPORT_REDIS_SERVER_HPP

#include "redis_client.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace support {

/// A port that nobody listens on at the moment.
inline int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                       ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    ::close(socket);
    if (!bound) {
        throw std::runtime_error("no free port");
    }
    return ntohs(address.sin_port);
}

class RedisServer {
public:
    /// Runs when it returns. `options` are added to the command line: {"--maxmemory", "10mb"}, and `environment` to
    /// what it inherits: {"NAME=value"}.
    explicit RedisServer(std::vector<std::string> options = {}, std::vector<std::string> environment = {})
        : options_(std::move(options)), environment_(std::move(environment)) {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-redis-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary directory " + name);
        }
        directory_ = name;
        for (int attempt = 0; attempt < 20; ++attempt) {
            port_ = free_port();
            start();
            if (answers()) {
                return;
            }
            kill();  // another process was faster to take the port
        }
        std::filesystem::remove_all(directory_);
        throw std::runtime_error("redis-server does not start");
    }

    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;

    ~RedisServer() {
        kill();
        std::filesystem::remove_all(directory_);
    }

    [[nodiscard]] int port() const { return port_; }
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

    /// Ends it at once, as kill -9 does.
    void kill() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            pid_ = 0;
        }
    }

    /// Starts it again on the same port, if need be after a kill.
    void restart() {
        kill();
        start();
        if (!answers()) {
            throw std::runtime_error("redis-server does not start again");
        }
    }

    /// It hangs until `resume`: connections stay, nothing is answered.
    void stop() const { ::kill(pid_, SIGSTOP); }
    void resume() const { ::kill(pid_, SIGCONT); }

private:
    void start() {
        std::vector<std::string> words{"redis-server",
                                       "--port",
                                       std::to_string(port_),
                                       "--bind",
                                       "127.0.0.1",
                                       "--dir",
                                       directory_.string(),
                                       "--save",
                                       "",
                                       "--appendonly",
                                       "no"};
        words.insert(words.end(), options_.begin(), options_.end());
        words.insert(words.begin(), environment_.begin(), environment_.end());
        words.insert(words.begin(), "env");
        std::vector<char*> arguments;
        for (std::string& word : words) {
            arguments.push_back(word.data());
        }
        arguments.push_back(nullptr);
        const std::string log = (directory_ / "log").string();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            ::dup2(file, STDOUT_FILENO);
            ::dup2(file, STDERR_FILENO);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
    }

    /// Waits until it answers; false if it has ended, or does not within 10 seconds.
    [[nodiscard]] bool answers() {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
        while (std::chrono::steady_clock::now() < end) {
            if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
                pid_ = 0;
                return false;
            }
            try {
                // Another server may have the port: then ours is about to end.
                const std::string info = RedisClient(port_)("INFO", "server").text;
                if (info.find("process_id:" + std::to_string(pid_) + "\r\n") != std::string::npos) {
                    return true;
                }
            } catch (const std::runtime_error&) {
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        }
        return false;
    }

    std::vector<std::string> options_;
    std::vector<std::string> environment_;
    std::filesystem::path directory_;
    int port_ = 0;
    pid_t pid_ = 0;
};

/// Holds all scripts of a server up while it lives, at most 20 seconds.
class Pause {
public:
    explicit Pause(const RedisServer& server) : client_(server.port()) { client_("CLIENT", "PAUSE", "20000", "WRITE"); }
    ~Pause() { end(); }

    void end() {
        if (!ended_) {
            client_("CLIENT", "UNPAUSE");
        }
        ended_ = true;
    }

private:
    RedisClient client_;
    bool ended_ = false;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_REDIS_SERVER_HPP
