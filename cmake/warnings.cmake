# The warnings of our own tests, examples and benchmarks; users of the library never get them. Included by
# CMakeLists.txt, and as every cache script usable on the command line: cmake -C cmake/warnings.cmake ...
# A compiler that warns of something new is let through with -DPENSTOCK_WARNINGS=-Wall.
set(PENSTOCK_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
    CACHE STRING "Compile options of the project's own programs")
