// SPDX-License-Identifier: MIT
// What a storage is asked, and why it may have no answer.
#ifndef PENSTOCK_STORE_HPP
#define PENSTOCK_STORE_HPP

#include <penstock/config.hpp>
#include <penstock/decision.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

PENSTOCK_BEGIN_NAMESPACE

/// What a storage does with a client's state.
enum class Op : std::uint8_t { check, peek, refund, charge, reserve, reset };

/// Why a storage could not decide. Counters may be arrays of `store_errors`, indexed by it.
enum class StoreError : std::uint8_t {
    none,               ///< it did
    unavailable,        ///< the store cannot be reached, or the connection broke
    timeout,            ///< no answer in time
    overloaded,         ///< too many checks are in flight: not sent
    breaker_open,       ///< the node failed too often of late: not asked
    shut_down,          ///< the storage is being destroyed
    protocol_error,     ///< the answer is none that the server may give
    no_script,          ///< the server does not know the script
    moved,              ///< another node of the cluster has the key's slot
    ask,                ///< the key's slot is on its way to another node, and the key may be there
    try_again,          ///< the key's slot is on its way to another node, and some of the keys are there
    cluster_down,       ///< no node of the cluster answers for the key's slot
    read_only,          ///< the node is a replica: it takes no writes
    master_down,        ///< the node is a replica that has lost its master
    loading,            ///< the server is reading its data from disk
    busy,               ///< a script has kept the server busy for too long
    out_of_memory,      ///< the server's maxmemory is reached, and it evicts nothing
    no_replicas,        ///< too few replicas are there for the master to take writes
    misconfigured,      ///< the server takes no writes since it cannot save to disk
    wrong_type,         ///< something else than a client's state stands under the key
    not_authenticated,  ///< the server asks for a password
    wrong_password,     ///< the server does not take the user or the password
    no_permission,      ///< the server's access list denies a command or the key
    cross_slot,         ///< the keys of one call lie in different slots of the cluster
    too_many_clients,   ///< the server has as many connections as it takes
    newer_format,       ///< the state was written by a newer version of the library
    tls_failed,         ///< no TLS: the server's certificate, the name in it, ours or the protocol is not accepted
    refused,            ///< any other error of the server
};

/// How many values StoreError has, `none` among them.
inline constexpr std::size_t store_errors = static_cast<std::size_t>(StoreError::refused) + 1;

[[nodiscard]] constexpr std::string_view to_string(StoreError error) noexcept {
    switch (error) {
        using enum StoreError;
    case none:
        return "none";
    case unavailable:
        return "unavailable";
    case timeout:
        return "timeout";
    case overloaded:
        return "overloaded";
    case breaker_open:
        return "breaker_open";
    case shut_down:
        return "shut_down";
    case protocol_error:
        return "protocol_error";
    case no_script:
        return "no_script";
    case moved:
        return "moved";
    case ask:
        return "ask";
    case try_again:
        return "try_again";
    case cluster_down:
        return "cluster_down";
    case read_only:
        return "read_only";
    case master_down:
        return "master_down";
    case loading:
        return "loading";
    case busy:
        return "busy";
    case out_of_memory:
        return "out_of_memory";
    case no_replicas:
        return "no_replicas";
    case misconfigured:
        return "misconfigured";
    case wrong_type:
        return "wrong_type";
    case not_authenticated:
        return "not_authenticated";
    case wrong_password:
        return "wrong_password";
    case no_permission:
        return "no_permission";
    case cross_slot:
        return "cross_slot";
    case too_many_clients:
        return "too_many_clients";
    case newer_format:
        return "newer_format";
    case tls_failed:
        return "tls_failed";
    case refused:
        return "refused";
    }
    return "unknown";
}

/// On a failure of the store the request may pass.
struct Allow {
    friend constexpr bool operator==(const Allow&, const Allow&) noexcept = default;
};

/// On a failure of the store the request is rejected; it may try again in a second.
struct Deny {
    friend constexpr bool operator==(const Deny&, const Deny&) noexcept = default;
};

namespace detail {

[[nodiscard]] constexpr Decision meaning_of(Allow) noexcept {
    return {.allowed = true, .source = Source::fail_open};
}

[[nodiscard]] constexpr Decision meaning_of(Deny) noexcept {
    return {.allowed = false, .retry_after = std::chrono::seconds{1}, .source = Source::fail_closed};
}

}  // namespace detail

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_STORE_HPP
