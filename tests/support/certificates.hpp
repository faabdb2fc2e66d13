// SPDX-License-Identifier: MIT
// Certificates: a CA of the test's own, and what it has signed, as files that are gone when the test ends.
#ifndef PENSTOCK_TESTS_SUPPORT_CERTIFICATES_HPP
#define PENSTOCK_TESTS_SUPPORT_CERTIFICATES_HPP

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <unistd.h>

namespace support {

/// Made by the openssl command.
class Certificates {
public:
    /// A certificate and its key.
    struct Files {
        std::string certificate;
        std::string key;
    };

    Certificates() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-certificates-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error("no temporary directory " + name);
        }
        directory_ = name;
        openssl("req -x509 " + fresh_key + " -keyout ca.key -out ca.pem -days 2 -subj /CN=penstock-test-ca");
    }

    Certificates(const Certificates&) = delete;
    Certificates& operator=(const Certificates&) = delete;
    ~Certificates() { std::filesystem::remove_all(directory_); }

    [[nodiscard]] std::string ca() const { return path("ca.pem"); }

    /// A new one; `names` as in "DNS:localhost,IP:127.0.0.1", without any if that is empty.
    [[nodiscard]] Files issue(const std::string& file, const std::string& names) const {
        write(file + ".ext", names.empty() ? "basicConstraints=CA:FALSE\n" : "subjectAltName=" + names + "\n");
        openssl("req " + fresh_key + " -keyout " + file + ".key -out " + file + ".csr -subj /CN=" + file);
        openssl("x509 -req -in " + file + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile " + file +
                ".ext -out " + file + ".pem");
        return {path(file + ".pem"), path(file + ".key")};
    }

    /// The same key, but a passphrase is needed to read it.
    [[nodiscard]] std::string with_passphrase(const std::string& file) const {
        openssl("pkey -in " + file + ".key -aes256 -passout pass:secret -out " + file + ".locked.key");
        return path(file + ".locked.key");
    }

    /// A file of that text.
    std::string write(const std::string& file, std::string_view text) const {
        std::ofstream(directory_ / file) << text;
        return path(file);
    }

    [[nodiscard]] std::string path(const std::string& file) const { return (directory_ / file).string(); }

private:
    inline static const std::string fresh_key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

    void openssl(const std::string& arguments) const {
        const std::string command =
            "cd '" + directory_.string() + "' && openssl " + arguments + " </dev/null >>log 2>&1";
        if (std::system(command.c_str()) != 0) {
            throw std::runtime_error("failed: " + command);
        }
    }

    std::filesystem::path directory_;
};

}  // namespace support

#endif  // PENSTOCK_TESTS_SUPPORT_CERTIFICATES_HPP
