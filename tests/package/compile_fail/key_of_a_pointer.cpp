// SPDX-License-Identifier: MIT
// An address tells one client from another only until it is used again.
// says: penstock: a part of a Key is text, a char or an integer
#include <penstock/penstock.hpp>

struct Client;

auto key_of(const Client* client) {
    return penstock::Key("client", client);
}
