// SPDX-License-Identifier: MIT
// TLS without a server: what is refused when a storage is made.
#include <penstock/redis/tls.hpp>

#include <penstock/penstock.hpp>
#include <penstock/storage/redis.hpp>

#include "../../support/certificates.hpp"
#include "../../support/refusal.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#if PENSTOCK_OPENSSL
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

namespace {

using penstock::RedisStorage;
using penstock::redis::Tls;
using penstock::redis::tls_context_of;
using penstock::redis::TlsContext;

std::string refusal_of(const std::string& url, const Tls& tls) {
    return support::text_of([&] { const RedisStorage storage{{.url = url, .tls = tls}}; });
}

TEST_CASE("certificates are verified unless something else is said") {
    CHECK(Tls{}.verify);
    CHECK(Tls{}.ca_file.empty());
    CHECK(Tls{}.server_name.empty());
}

TEST_CASE("a url without TLS needs nothing of it, and looks into no file") {
    CHECK(tls_context_of({.tls = false}, {.ca_file = "/nowhere/ca.pem"}) == nullptr);
    CHECK(refusal_of("redis://127.0.0.1:1", {.ca_file = "/nowhere/ca.pem"}) == "(not refused)");
}

#if PENSTOCK_OPENSSL

const support::Certificates& certificates() {
    static const support::Certificates made;
    return made;
}

std::string refusal_of(const Tls& tls) {
    return refusal_of("rediss://127.0.0.1:1", tls);
}

constexpr const char* wrong_ca = "': allowed is a readable PEM file with the certificate of a CA";
constexpr const char* wrong_certificate = "': allowed is a readable PEM file with a certificate";
constexpr const char* wrong_key = "': allowed is a readable PEM file with the certificate's key, without a passphrase";

TEST_CASE("TLS without a file trusts whom the system trusts") {
    CHECK(refusal_of(Tls{}) == "(not refused)");
    CHECK(refusal_of("rediss+ring://a,b", Tls{}) == "(not refused)");
}

TEST_CASE("a file of CAs that is none is refused by name") {
    const std::string garbage = certificates().write("garbage.pem", "-----BEGIN CERTIFICATE-----\nnone\n");
    const std::string empty = certificates().write("empty.pem", "");
    for (const std::string& file : {std::string("/nowhere/ca.pem"), std::string("/"), garbage, empty}) {
        CHECK(refusal_of({.ca_file = file}) == "RedisStorage.tls.ca_file is '" + file + wrong_ca);
        CHECK(refusal_of({.ca_file = file, .verify = false}) == "RedisStorage.tls.ca_file is '" + file + wrong_ca);
    }
    CHECK(refusal_of({.ca_file = certificates().ca()}) == "(not refused)");
}

TEST_CASE("a certificate needs a file that has one, and its key") {
    const auto mine = certificates().issue("mine", "");
    const auto other = certificates().issue("other", "");
    CHECK(refusal_of({.certificate_file = mine.certificate, .key_file = mine.key}) == "(not refused)");
    CHECK(refusal_of({.certificate_file = "/nowhere/c.pem", .key_file = mine.key}) ==
          "RedisStorage.tls.certificate_file is '/nowhere/c.pem" + std::string(wrong_certificate));
    CHECK(refusal_of({.certificate_file = mine.key, .key_file = mine.key}) ==
          "RedisStorage.tls.certificate_file is '" + mine.key + wrong_certificate);
    CHECK(refusal_of({.key_file = mine.key}) ==
          "RedisStorage.tls.certificate_file is '" + std::string(wrong_certificate));
    for (const std::string& key : {std::string("/nowhere/k.pem"), other.key, mine.certificate}) {
        CHECK(refusal_of({.certificate_file = mine.certificate, .key_file = key}) ==
              "RedisStorage.tls.key_file is '" + key + wrong_key);
    }
    CHECK(refusal_of({.certificate_file = mine.certificate}) ==
          "RedisStorage.tls.key_file is '" + mine.certificate + wrong_key);
}

TEST_CASE("a key may stand in the certificate's file") {
    const auto mine = certificates().issue("together", "");
    CHECK(std::system(("cat " + mine.key + " >>" + mine.certificate).c_str()) == 0);
    CHECK(refusal_of({.certificate_file = mine.certificate}) == "(not refused)");
}

TEST_CASE("nobody is asked for the passphrase of a key: it is refused") {
    const auto mine = certificates().issue("mine", "");
    const std::string locked = certificates().with_passphrase("mine");
    CHECK(refusal_of({.certificate_file = mine.certificate, .key_file = locked}) ==
          "RedisStorage.tls.key_file is '" + locked + wrong_key);
}

TEST_CASE("a server's name that can be none is refused") {
    const std::string allowed = ": allowed is a name or address of at most 255 bytes, without blanks";
    CHECK(refusal_of({.server_name = "a b"}) == "RedisStorage.tls.server_name is 'a b'" + allowed);
    CHECK(refusal_of({.server_name = std::string("a\0b", 3)}) == "RedisStorage.tls.server_name is 'a?b'" + allowed);
    CHECK(refusal_of({.server_name = std::string(256, 'a')}) ==
          "RedisStorage.tls.server_name is '" + std::string(64, 'a') + "...'" + allowed);
    CHECK(refusal_of({.server_name = std::string(255, 'a')}) == "(not refused)");
}

TEST_CASE("the context verifies unless it is told not to, and takes nothing older than TLS 1.2") {
    const TlsContext strict(Tls{});
    CHECK(SSL_CTX_get_verify_mode(strict.get()) == SSL_VERIFY_PEER);
    CHECK(SSL_CTX_get_min_proto_version(strict.get()) >= TLS1_2_VERSION);
    const TlsContext lax({.verify = false});
    CHECK(SSL_CTX_get_verify_mode(lax.get()) == SSL_VERIFY_NONE);
    CHECK(SSL_CTX_get_min_proto_version(lax.get()) >= TLS1_2_VERSION);
}

TEST_CASE("a certificate has to name the url's host, or the name that was given") {
    CHECK(TlsContext(Tls{}).name_of("host") == "host");
    CHECK(TlsContext({.server_name = "name"}).name_of("host") == "name");
}

/// All that OpenSSL has to say of this thread's errors, which are gone then.
std::string errors_of_this_thread() {
    BIO* memory = BIO_new(BIO_s_mem());
    ERR_print_errors(memory);
    char* text = nullptr;
    const long size = BIO_get_mem_data(memory, &text);
    std::string errors(text, static_cast<std::size_t>(size));
    BIO_free(memory);
    return errors;
}

TEST_CASE("OpenSSL's errors of the host stay, and none is added") {
    ERR_clear_error();
    CHECK(refusal_of({.ca_file = "/nowhere/ca.pem"}) != "(not refused)");
    CHECK(ERR_peek_error() == 0);

    const auto mine = certificates().issue("mine", "");
    const auto fail_as_the_host = [] { CHECK(BIO_new_file("/nowhere/of/the/host", "r") == nullptr); };
    fail_as_the_host();
    const std::string expected = errors_of_this_thread();
    CHECK(expected.find("/nowhere/of/the/host") != std::string::npos);
    fail_as_the_host();
    CHECK(refusal_of({.ca_file = certificates().write("bad.pem", "bad")}) != "(not refused)");
    CHECK(refusal_of({.certificate_file = mine.certificate, .key_file = mine.key}) == "(not refused)");
    CHECK(errors_of_this_thread() == expected);
}

#else

TEST_CASE("without OpenSSL, a url that asks for TLS is refused with the reason") {
    constexpr const char* reason = "RedisStorage.url asks for TLS, but penstock::redis was built without OpenSSL";
    CHECK(refusal_of("rediss://127.0.0.1:1", Tls{}) == reason);
    CHECK(refusal_of("rediss+cluster://a,b", Tls{}) == reason);
    CHECK(refusal_of("rediss+ring://a,b", Tls{.verify = false}) == reason);
}

#endif

}  // namespace
