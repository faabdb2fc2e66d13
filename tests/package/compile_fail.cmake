# Compiles a snippet and demands that it fails, the first error holding what stands after "// says: " in it:
#   cmake -D COMPILER=<c++> -D INCLUDE=<directory> -D SOURCE=<file> -P compile_fail.cmake
cmake_minimum_required(VERSION 3.23)

file(STRINGS ${SOURCE} sentence REGEX "^// says: ")
string(REPLACE "// says: " "" sentence "${sentence}")

set(ENV{LC_ALL} C)
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -Werror=unused-result -I${INCLUDE} ${SOURCE}
                RESULT_VARIABLE status ERROR_VARIABLE output)
if(status EQUAL 0)
    message(FATAL_ERROR "It compiles.")
endif()
string(REGEX MATCH "error: [^\n]*" first "${output}")
string(FIND "${first}" "${sentence}" found)
if(sentence STREQUAL "" OR found EQUAL -1)
    message(NOTICE "${output}")
    message(FATAL_ERROR "The first error does not say: ${sentence}")
endif()
