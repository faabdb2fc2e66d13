# Out-of-bounds and dead memory, leaks, undefined behaviour, checked iterators:
#   cmake -C cmake/sanitize-address.cmake -S . -B .build/asan
set(CMAKE_BUILD_TYPE None CACHE STRING "The flags are all below")
set(CMAKE_CXX_FLAGS "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS"
    CACHE STRING "AddressSanitizer and UndefinedBehaviorSanitizer; the first finding ends the program")

# Instrumented code is several times slower: the long runs, and what is tested at compile time, belong to other trees.
set(PENSTOCK_PROPERTY_STEPS 0 CACHE STRING "Random steps of a property, over all algorithms; 0: only a few")
set(PENSTOCK_TEST_PACKAGE OFF CACHE BOOL "Test what users build: package, headers, text of compile errors")
