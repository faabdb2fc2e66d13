# Runs an example and compares what it prints, to the byte, with the file kept for it:
#   cmake -D PROGRAM=<executable> -D EXPECTED=<file> -P check.cmake
cmake_minimum_required(VERSION 3.23)

execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed ERROR_VARIABLE errors RESULT_VARIABLE status)
set(expected "")
if(EXISTS ${EXPECTED})
    file(READ ${EXPECTED} expected)
endif()
if(NOT status EQUAL 0 OR NOT printed STREQUAL expected)
    message(NOTICE "--- expected\n${expected}+++ printed\n${printed}${errors}")
    message(FATAL_ERROR "It ended with ${status}; what it prints should be ${EXPECTED}")
endif()
