# What tests/run, examples/run and bench/run share. Sourced by them, with the project's root as working directory.
# shellcheck shell=bash

export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export CTEST_PARALLEL_LEVEL=${CTEST_PARALLEL_LEVEL:-$(nproc)}
export CMAKE_GENERATOR=Ninja

step() { printf '==> %s\n' "$*"; }

has_header() { g++ -x c++ -std=c++20 -E -include "$1" /dev/null; }

# present PACKAGE: is there what Debian's package of that name brings, wherever it came from?
present() {
    case $1 in
        clang) command -v clang++ ;;
        ninja-build) command -v ninja ;;
        clang-format-14) command -v clang-format-14 || clang-format --version | grep 'version 14\.' ;;
        doctest-dev) has_header doctest/doctest.h ;;
        libhiredis-dev) has_header hiredis/hiredis.h ;;
        libssl-dev) has_header openssl/ssl.h ;;
        libboost-dev) has_header boost/multiprecision/cpp_int.hpp ;;
        libbenchmark-dev) has_header benchmark/benchmark.h ;;
        libtbb-dev) has_header tbb/concurrent_hash_map.h ;;
        libabsl-dev) has_header absl/container/flat_hash_map.h ;;
        *) command -v "$1" ;;
    esac &>/dev/null
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Run level 1: packages of servers start none.
apt() { as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq "$@" </dev/null >/dev/null; }

# need PACKAGE...: installs those that are missing; where there is no apt, says so and ends.
need() {
    local package missing=()
    for package in "$@"; do
        present "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "Please install, named here as Debian names them: ${missing[*]}" >&2
        exit 1
    fi
    step "install ${missing[*]}"
    local install=(apt install --yes --no-install-recommends "${missing[@]}")
    "${install[@]}" 2>/dev/null || { apt update && "${install[@]}"; }
}

# want PACKAGE: installs what is missing, if it can be had.
want() { present "$1" || ! apt-cache show "$1" &>/dev/null || need "$1"; }

# build DIRECTORY TARGET [CMAKE OPTION]...: configures and builds without a word, unless it fails.
build() {
    local directory=$1 target=$2 log=$1.log
    shift 2
    mkdir -p "$directory"
    if ! { cmake -S . -B "$directory" "$@" && cmake --build "$directory" --target "$target"; } </dev/null >"$log" 2>&1; then
        cat "$log" >&2
        return 1
    fi
}
