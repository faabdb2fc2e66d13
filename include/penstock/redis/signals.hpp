// SPDX-License-Identifier: MIT
// SignalsBlocked: threads of ours take no signal that is meant for the host's.
#ifndef PENSTOCK_REDIS_SIGNALS_HPP
#define PENSTOCK_REDIS_SIGNALS_HPP

#include <penstock/config.hpp>

#include <csignal>
#include <initializer_list>

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// While it lives, signals sent to the process go to the host's own threads, not to those started meanwhile; a crash
/// in those is still told to the host's handlers.
class SignalsBlocked {
public:
    SignalsBlocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
            sigdelset(&all, fault);
        }
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_SIGNALS_HPP
