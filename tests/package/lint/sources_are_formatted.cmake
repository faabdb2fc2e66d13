# All C++ is formatted by clang-format 14, whose result other versions do not reproduce.
cmake_minimum_required(VERSION 3.23)
file(REAL_PATH ../../.. root BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})

find_program(clang_format NAMES clang-format-14 clang-format)
if(clang_format)
    execute_process(COMMAND ${clang_format} --version OUTPUT_VARIABLE version)
endif()
if(NOT version MATCHES "version 14\\.")
    message("skipped: clang-format 14 is not here ${version}")
    return()
endif()

file(GLOB_RECURSE sources RELATIVE ${root}
     ${root}/include/*.hpp ${root}/tests/*.[ch]pp ${root}/examples/*.[ch]pp ${root}/bench/*.[ch]pp)
execute_process(COMMAND ${clang_format} --dry-run --Werror ${sources} WORKING_DIRECTORY ${root}
                ERROR_VARIABLE complaints RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    string(REGEX MATCHALL "[^\n]+:[0-9]+:[0-9]+: error" places "${complaints}")
    list(TRANSFORM places REPLACE ":.*" "")
    list(REMOVE_DUPLICATES places)
    list(JOIN places "\n" places)
    message(NOTICE "${places}")
    message(FATAL_ERROR "Not formatted: clang-format -i does it")
endif()
