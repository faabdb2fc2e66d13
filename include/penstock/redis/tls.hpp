// SPDX-License-Identifier: MIT
// TLS to a server: what is asked of it, and a session over a socket that never blocks and raises no signal.
#ifndef PENSTOCK_REDIS_TLS_HPP
#define PENSTOCK_REDIS_TLS_HPP

#include <penstock/config.hpp>
#include <penstock/detail/throw.hpp>
#include <penstock/redis/socket.hpp>
#include <penstock/redis/url.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#if PENSTOCK_OPENSSL
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#endif

PENSTOCK_BEGIN_NAMESPACE

namespace redis {

/// How servers are known, and how we are known to them, where the url asks for TLS.
struct Tls {
    std::string ca_file{};           ///< PEM, whom to trust; empty: whom the system trusts
    std::string certificate_file{};  ///< PEM, ours and those between it and the CA; empty: none
    std::string key_file{};          ///< PEM, that certificate's key without a passphrase; empty: in certificate_file
    std::string server_name{};       ///< name or address in the servers' certificates; empty: the url's host
    bool verify = true;              ///< false: any certificate will do, so anybody may be the server
};

#if PENSTOCK_OPENSSL

/// OpenSSL's errors are the thread's, and the thread may be the host's: those that it has are put aside meanwhile.
class TlsErrors {
public:
    TlsErrors() {
        if (any()) {
            put_aside();
        }
    }
    TlsErrors(const TlsErrors&) = delete;
    TlsErrors& operator=(const TlsErrors&) = delete;
    ~TlsErrors() {
        if (any()) {
            ERR_clear_error();
        }
        for (const Error& error : aside_) {
            put_back(error);
        }
    }

    /// Whether OpenSSL has told one.
    [[nodiscard]] static bool any() noexcept { return ERR_peek_error() != 0; }

private:
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    using Place = std::string;
#else
    using Place = const char*;  // a literal
#endif

    struct Error {
        unsigned long code = 0;
        Place file{};
        int line = 0;
        std::string function{};
        std::string text{};
    };

    void put_aside() {
        for (;;) {
            const char* file = "";
            const char* function = "";
            const char* text = "";
            int line = 0;
            int flags = 0;
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
            const unsigned long code = ERR_get_error_all(&file, &line, &function, &text, &flags);
#else
            const unsigned long code = ERR_get_error_line_data(&file, &line, &text, &flags);
#endif
            if (code == 0) {
                return;
            }
            aside_.push_back({code, file, line, function, (flags & ERR_TXT_STRING) != 0 ? text : ""});
        }
    }

    static void put_back(const Error& error) noexcept {
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
        ERR_new();
        ERR_set_debug(error.file.c_str(), error.line, error.function.c_str());
        ERR_set_error(ERR_GET_LIB(error.code), ERR_GET_REASON(error.code), nullptr);
#else
        ERR_put_error(
            ERR_GET_LIB(error.code), ERR_GET_FUNC(error.code), ERR_GET_REASON(error.code), error.file, error.line);
#endif
        if (!error.text.empty()) {
            ERR_add_error_data(1, error.text.c_str());
        }
    }

    std::vector<Error> aside_;
};

/// What the sessions of an engine share. Thread-safe.
class TlsContext {
public:
    /// Throws std::invalid_argument if a file is not what it has to be.
    explicit TlsContext(const Tls& tls) : server_name_(tls.server_name) {
        const TlsErrors errors;
        context_.reset(SSL_CTX_new(TLS_client_method()));
        if (context_ == nullptr) {
            detail::throw_invalid("RedisStorage.url asks for TLS, but OpenSSL makes no context");
        }
        set_protocol();
        take_server_name();
        take_authorities(tls);
        take_certificate(tls);
        SSL_CTX_set_verify(get(), tls.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    }

    [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }

    /// What a server's certificate has to name if its url has this host.
    [[nodiscard]] const std::string& name_of(const std::string& host) const noexcept {
        return server_name_.empty() ? host : server_name_;
    }

private:
    struct Free {
        void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
    };

    [[noreturn]] static void refuse(std::string_view field, const std::string& value, std::string_view allowed) {
        detail::throw_invalid("RedisStorage.tls." + std::string(field), "'" + value + "'", allowed);
    }

    void set_protocol() const noexcept {
        if (SSL_CTX_get_min_proto_version(get()) < TLS1_2_VERSION) {  // the system may ask for more
            SSL_CTX_set_min_proto_version(get(), TLS1_2_VERSION);
        }
        SSL_CTX_set_options(get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
        // What is to be sent moves and grows while it waits, and is taken in pieces.
        SSL_CTX_set_mode(get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_read_ahead(get(), 1);  // a record in one read, not its head and then its body
    }

    void take_server_name() const {
        if (server_name_.size() > 255 || !std::all_of(server_name_.begin(), server_name_.end(), detail::is_graphic)) {
            detail::throw_invalid("RedisStorage.tls.server_name",
                                  detail::quoted(server_name_),
                                  "a name or address of at most 255 bytes, without blanks");
        }
    }

    void take_authorities(const Tls& tls) const {
        if (tls.ca_file.empty()) {
            SSL_CTX_set_default_verify_paths(get());
        } else if (SSL_CTX_load_verify_locations(get(), tls.ca_file.c_str(), nullptr) != 1) {
            refuse("ca_file", tls.ca_file, "a readable PEM file with the certificate of a CA");
        }
    }

    void take_certificate(const Tls& tls) const {
        const std::string& key_file = tls.key_file.empty() ? tls.certificate_file : tls.key_file;
        if (key_file.empty()) {
            return;
        }
        if (SSL_CTX_use_certificate_chain_file(get(), tls.certificate_file.c_str()) != 1) {
            refuse("certificate_file", tls.certificate_file, "a readable PEM file with a certificate");
        }
        // Or OpenSSL would ask for the passphrase on the terminal, and wait.
        SSL_CTX_set_default_passwd_cb(get(), [](char*, int, int, void*) { return -1; });
        if (SSL_CTX_use_PrivateKey_file(get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_check_private_key(get()) != 1) {
            refuse("key_file", key_file, "a readable PEM file with the certificate's key, without a passphrase");
        }
    }

    std::unique_ptr<SSL_CTX, Free> context_;
    std::string server_name_;
};

/// The client's end of one session. Not thread-safe; stays where it is.
class TlsSession {
public:
    using Result = Socket::Result;

    /// Over that socket, with the server of that name in the url.
    TlsSession(const TlsContext& context, Socket& socket, const std::string& host) noexcept : socket_(socket) {
        const TlsErrors errors;
        ssl_.reset(SSL_new(context.get()));
        BIO* bio = BIO_new(method());
        if (bio != nullptr) {
            BIO_set_data(bio, this);
            BIO_set_init(bio, 1);
        }
        if (ssl_ == nullptr || bio == nullptr) {
            BIO_free(bio);
            failed_ = true;
            return;
        }
        SSL_set_bio(ssl_.get(), bio, bio);
        failed_ = !demand(context.name_of(host));
    }

    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    /// The server did not keep to the protocol, or one of us did not trust the other.
    [[nodiscard]] bool failed() const noexcept { return failed_; }

    /// What poll() has to wait for before what was to be done `later` can go on.
    [[nodiscard]] short receive_waits_for() const noexcept { return receive_waits_for_; }
    [[nodiscard]] short send_waits_for() const noexcept { return send_waits_for_; }

    /// Whether there may be something to receive that poll() does not tell of.
    [[nodiscard]] bool has_more() const noexcept { return has_more_; }

    /// `later` is when `receive_waits_for` is there.
    [[nodiscard]] Result shake_hands() noexcept {
        return attempt(receive_waits_for_, [this] { return SSL_connect(ssl_.get()); });
    }

    /// As a socket does.
    [[nodiscard]] Result send(std::string_view& bytes) noexcept {
        Result result = Result::done;
        while (!bytes.empty() && result == Result::done) {
            std::size_t sent = 0;
            result =
                attempt(send_waits_for_, [&] { return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent); });
            bytes.remove_prefix(sent);
        }
        return result;
    }

    /// As a socket does, but at most one record.
    [[nodiscard]] Result receive(std::span<char> buffer, std::size_t& received) noexcept {
        const Result result = attempt(receive_waits_for_,
                                      [&] { return SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &received); });
        if (result != Result::later) {
            receive_waits_for_ = POLLIN;
        }
        has_more_ = result == Result::done && SSL_has_pending(ssl_.get()) == 1;
        return result;
    }

private:
    struct Free {
        void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
    };

    /// What OpenSSL reads and writes by. Its own would raise SIGPIPE.
    [[nodiscard]] static const BIO_METHOD* method() noexcept {
        static const BIO_METHOD* const made = [] {
            BIO_METHOD* fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "penstock");
            if (fresh != nullptr) {
                BIO_meth_set_write(fresh, write);
                BIO_meth_set_read(fresh, read);
                BIO_meth_set_ctrl(fresh,
                                  [](BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1L : 0L; });
            }
            return fresh;
        }();
        return made;
    }

    static int write(BIO* bio, const char* data, int size) noexcept {
        auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
        std::string_view rest(data, static_cast<std::size_t>(size));
        BIO_clear_retry_flags(bio);
        const Result result = session.socket_.send(rest);
        if (const int sent = size - static_cast<int>(rest.size()); sent > 0) {
            return sent;
        } else if (result == Result::later) {
            BIO_set_retry_write(bio);
        }
        session.broken_ = session.broken_ || result == Result::closed;
        return -1;
    }

    static int read(BIO* bio, char* data, int size) noexcept {
        auto& session = *static_cast<TlsSession*>(BIO_get_data(bio));
        std::size_t received = 0;
        BIO_clear_retry_flags(bio);
        const Result result = session.socket_.receive({data, static_cast<std::size_t>(size)}, received);
        if (result == Result::done) {
            return static_cast<int>(received);
        } else if (result == Result::later) {
            BIO_set_retry_read(bio);
        }
        session.broken_ = session.broken_ || result == Result::closed;
        return -1;
    }

    /// Asks for the server of that name, and that its certificate tells it. False if that cannot be asked.
    [[nodiscard]] bool demand(std::string name) noexcept {
        if (name.ends_with('.')) {
            name.pop_back();  // a name from the root has none in a certificate
        }
        SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), name.c_str()) == 1) {
            return true;  // addresses are not indicated to servers
        }
        return SSL_set1_host(ssl_.get(), name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl_.get(), name.c_str()) == 1;
    }

    /// Performs a function of OpenSSL.
    template <class Function>
    [[nodiscard]] Result attempt(short& waits_for, Function function) noexcept {
        if (failed_) {
            return Result::closed;
        }
        const TlsErrors errors;
        const int result = function();
        if (result == 1) {
            return Result::done;
        }
        switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            waits_for = POLLIN;
            return Result::later;
        case SSL_ERROR_WANT_WRITE:
            waits_for = POLLOUT;
            return Result::later;
        case SSL_ERROR_SSL:
            failed_ = !broken_;
            break;
        default:  // the server has closed the session, or the socket is broken
            break;
        }
        return Result::closed;
    }

    Socket& socket_;
    std::unique_ptr<SSL, Free> ssl_;
    short receive_waits_for_ = POLLIN;
    short send_waits_for_ = POLLOUT;
    bool failed_ = false;
    bool broken_ = false;  // the socket is
    bool has_more_ = false;
};

#else

/// There is none.
class TlsContext {
public:
    TlsContext() = delete;
};

/// There is none.
class TlsSession {
public:
    using Result = Socket::Result;

    TlsSession(const TlsContext&, Socket&, const std::string&) noexcept {}
    [[nodiscard]] bool failed() const noexcept { return true; }
    [[nodiscard]] short receive_waits_for() const noexcept { return POLLIN; }
    [[nodiscard]] short send_waits_for() const noexcept { return POLLOUT; }
    [[nodiscard]] bool has_more() const noexcept { return false; }
    [[nodiscard]] Result shake_hands() noexcept { return Result::closed; }
    [[nodiscard]] Result send(std::string_view&) noexcept { return Result::closed; }
    [[nodiscard]] Result receive(std::span<char>, std::size_t&) noexcept { return Result::closed; }
};

#endif

/// None where the target asks for no TLS. Throws std::invalid_argument if an option is wrong, or if there is no TLS.
[[nodiscard]] inline std::shared_ptr<const TlsContext> tls_context_of(const Target& target,
                                                                      [[maybe_unused]] const Tls& tls) {
    if (!target.tls) {
        return nullptr;
    }
#if PENSTOCK_OPENSSL
    return std::make_shared<const TlsContext>(tls);
#else
    detail::throw_invalid("RedisStorage.url asks for TLS, but penstock::redis was built without OpenSSL");
#endif
}

}  // namespace redis

PENSTOCK_END_NAMESPACE

#endif  // PENSTOCK_REDIS_TLS_HPP
