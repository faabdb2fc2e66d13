# A header starts with its licence and its one job, and has an include guard made from its path (so that two copies of
# the library can meet in one program; #pragma once cannot tell that they are the same).
cmake_minimum_required(VERSION 3.23)
file(REAL_PATH ../../.. root BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})

file(GLOB_RECURSE headers RELATIVE ${root}/include ${root}/include/*.hpp)
foreach(header IN LISTS headers)
    string(REGEX REPLACE "[/.]" "_" guard ${header})
    string(TOUPPER ${guard} guard)
    set(start "// SPDX-License-Identifier: MIT\n(// [^\n]+\n)+#ifndef ${guard}\n#define ${guard}\n")
    file(READ ${root}/include/${header} text)
    if(NOT text MATCHES "^${start}.*\n#endif  // ${guard}\n$")
        message(SEND_ERROR "${header}: SPDX line, a line naming its job, #ifndef ${guard}, ..., #endif  // ${guard}")
    endif()
endforeach()
