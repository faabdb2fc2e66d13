// SPDX-License-Identifier: MIT
// Drives a fuzz target where there is no libFuzzer: over a corpus, and over seeded mutations of it.
//     fuzz_url [RUNS=N] [SEED=N] DIRECTORY or file...
#include "../support/random.hpp"
#include "oracle.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

using support::Random;

std::string current;  // what the target is given, shown if it breaks down

void show_current(int) {
    std::fprintf(stderr, "the input, in hexadecimal: ");
    for (const char byte : current) {
        std::fprintf(stderr, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    }
    std::fprintf(stderr, "\n");
}

void run(const std::string& input) {
    current = input;
    // A copy of its own size, so that a byte too far is seen.
    const std::vector<std::uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

/// In the order of their names, the same on every machine.
std::vector<std::string> contents_of(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> files{path};
    if (std::filesystem::is_directory(path)) {
        files.assign(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator());
        std::sort(files.begin(), files.end());
    }
    std::vector<std::string> contents;
    for (const std::filesystem::path& file : files) {
        std::ifstream in(file, std::ios::binary);
        contents.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return contents;
}

std::string any_piece(Random& random, const std::string& text) {
    const std::size_t begin = random.below(text.size() + 1);
    return text.substr(begin, random.log_between(1, 64));
}

void mutate(Random& random, std::string& input, const std::vector<std::string>& corpus) {
    const std::size_t at = random.below(input.size() + 1);
    switch (random.below(6)) {
    case 0:
        input.insert(at, 1, static_cast<char>(random.below(256)));
        break;
    case 1:
        input.erase(at, random.log_between(1, 16));
        break;
    case 2:
        input.insert(at, any_piece(random, input));
        break;
    case 3:
        input.insert(at, any_piece(random, corpus[random.below(corpus.size())]));
        break;
    case 4:
        input.replace(at, random.log_between(1, 8), any_piece(random, corpus[random.below(corpus.size())]));
        break;
    default:
        if (at < input.size()) {
            input[at] = static_cast<char>(input[at] ^ static_cast<char>(1U << random.below(8)));
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    constexpr std::size_t longest = 4096;
    unsigned long long runs = 0;
    unsigned long long seed = 1;
    std::vector<std::string> corpus;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (std::sscanf(argv[i], "RUNS=%llu", &runs) + std::sscanf(argv[i], "SEED=%llu", &seed) <= 0) {
            const std::vector<std::string> more = contents_of(word);
            corpus.insert(corpus.end(), more.begin(), more.end());
        }
    }
    if (corpus.empty()) {
        std::fprintf(stderr, "no corpus\n");
        return EXIT_FAILURE;
    }
    std::printf("%zu inputs, %llu mutations, seed %llu\n", corpus.size(), runs, seed);
    std::fflush(stdout);
    std::signal(SIGABRT, show_current);
    for (const std::string& input : corpus) {
        run(input);
    }
    Random random(seed);
    for (unsigned long long i = 0; i < runs; ++i) {
        std::string input = corpus[random.below(corpus.size())];
        for (std::uint64_t more = random.between(1, 6); more > 0; --more) {
            mutate(random, input, corpus);
        }
        run(input.substr(0, longest));
    }
    return EXIT_SUCCESS;
}
