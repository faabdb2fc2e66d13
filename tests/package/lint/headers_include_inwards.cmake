# Data flows request -> Limiter -> guards -> storage -> algorithm -> Decision, and no header includes one to its left.
# The core needs the standard library only, and of that nothing that costs its users dearly; detail/os.hpp takes it where the
# system has nothing better.
cmake_minimum_required(VERSION 3.23)
file(REAL_PATH ../../.. root BASE_DIRECTORY ${CMAKE_CURRENT_LIST_DIR})

# The innermost last; what is not listed lies inside of all.
set(layers "^penstock_redis\\.hpp$" "^penstock\\.hpp$" "^limiter\\.hpp$" "^guard/" "^storage/" "^redis/" "^algorithm/")

function(layer_of header result)
    set(layer 0)
    foreach(pattern IN LISTS layers)
        if(header MATCHES ${pattern})
            break()
        endif()
        math(EXPR layer "${layer} + 1")
    endforeach()
    set(${result} ${layer} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE headers RELATIVE ${root}/include/penstock ${root}/include/penstock/*.hpp)
foreach(header IN LISTS headers)
    layer_of(${header} layer)
    file(STRINGS ${root}/include/penstock/${header} includes REGEX "^#include ")
    foreach(include IN LISTS includes)
        string(REGEX MATCH "[<\"](.*)[>\"]" _ "${include}")
        set(name ${CMAKE_MATCH_1})
        if(name MATCHES "^penstock/(.*)")
            layer_of(${CMAKE_MATCH_1} other)
            if(other LESS layer)
                message(SEND_ERROR "${header} includes ${name}, which lies outside of it")
            endif()
        elseif(header MATCHES "^(redis/|guard/|storage/redis)")
            continue()  # they may have what they need
        elseif(name MATCHES "^(iostream|sstream|random|functional|condition_variable|ranges|regex|thread)$" AND
               NOT header STREQUAL "detail/os.hpp")
            message(SEND_ERROR "${header} includes <${name}>, which makes the core slow to compile")
        elseif(name MATCHES "/" AND NOT name MATCHES "^sys/")
            message(SEND_ERROR "${header} includes <${name}>, but the core needs the standard library only")
        endif()
    endforeach()
endforeach()
