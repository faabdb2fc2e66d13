# The outage as it must go on any machine: every request is answered by a count, the breaker opens when the server dies
# or is silent, and the store decides again when it is back. So it went when outage.txt was recorded, which README.md
# shows. And a picture is drawn.
#   cmake -D PROGRAM=<executable> -D PICTURE=<file> -P outage.cmake
cmake_minimum_required(VERSION 3.23)

execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed ERROR_VARIABLE errors RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "It ended with ${status}:\n${printed}${errors}")
endif()
# Of each second: what the server does, and whether the store decides. On a busy machine it may hesitate at any time, and
# then others stand in for it.
set(servers well well dead dead back back hangs hangs "goes on" "goes on")
set(stores some some none none any some none none any some)
function(check line server store)
    string(REGEX MATCH "^ +[0-9]+  ([a-z ]+[a-z]) +600 +([0-9]+) +([0-9]+) +([0-9]+) +([0-9]+)  (open|closed) +[0-9]+$"
           matched "${line}")
    if(matched STREQUAL "" OR NOT CMAKE_MATCH_1 STREQUAL server)
        message(SEND_ERROR "No line of a second in which the server ${server}: ${line}")
        return()
    endif()
    math(EXPR answered "${CMAKE_MATCH_4} + ${CMAKE_MATCH_5}")
    if(NOT answered EQUAL 600 OR CMAKE_MATCH_2 LESS 400 OR CMAKE_MATCH_3 GREATER 35)
        message(SEND_ERROR "Not everybody was answered, or the greedy client got too much: ${line}")
    elseif(store STREQUAL "some" AND CMAKE_MATCH_4 EQUAL 0)
        message(SEND_ERROR "The store decided nothing: ${line}")
    elseif(store STREQUAL "none" AND (CMAKE_MATCH_4 GREATER 0 OR NOT CMAKE_MATCH_6 STREQUAL "open"))
        message(SEND_ERROR "The store decided, or the breaker is not open: ${line}")
    endif()
endfunction()

function(check_all printed)
    string(REGEX REPLACE "\n$" "" lines "${printed}")
    string(REPLACE "\n" ";" lines "${lines}")
    list(POP_FRONT lines heading)
    list(POP_BACK lines summary)
    list(LENGTH lines seconds)
    if(NOT seconds EQUAL 10 OR NOT summary STREQUAL
       "6000 of 6000 requests were answered by a count, none by an error.")
        message(FATAL_ERROR "It printed:\n${printed}")
    endif()
    foreach(line server store IN ZIP_LISTS lines servers stores)
        check("${line}" "${server}" ${store})
    endforeach()
endfunction()

check_all("${printed}")
file(READ ${EXPECTED} recorded)
check_all("${recorded}")

execute_process(COMMAND ${PROGRAM} --svg ${PICTURE} RESULT_VARIABLE status)
file(READ ${PICTURE} picture)
if(NOT status EQUAL 0 OR NOT picture MATCHES "^<svg .*>hangs<.*</svg>\n$")
    message(SEND_ERROR "It ended with ${status}, and ${PICTURE} is no picture")
endif()
