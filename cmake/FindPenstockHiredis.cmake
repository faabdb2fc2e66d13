# Finds hiredis, whatever its version came with, and makes the target penstock_hiredis of it. Debian 12's own package file
# breaks on find_package(Hiredis) without a version, so it is never asked.
if(NOT TARGET penstock_hiredis)
    find_package(hiredis CONFIG QUIET)
    if(TARGET hiredis::hiredis)
        add_library(penstock_hiredis INTERFACE IMPORTED GLOBAL)
        set_target_properties(penstock_hiredis PROPERTIES INTERFACE_LINK_LIBRARIES hiredis::hiredis)
        set(PenstockHiredis_PLACE hiredis::hiredis)
    else()
        find_path(PenstockHiredis_INCLUDE_DIR hiredis/hiredis.h)
        find_library(PenstockHiredis_LIBRARY hiredis)
        mark_as_advanced(PenstockHiredis_INCLUDE_DIR PenstockHiredis_LIBRARY)
        if(PenstockHiredis_INCLUDE_DIR AND PenstockHiredis_LIBRARY)
            add_library(penstock_hiredis INTERFACE IMPORTED GLOBAL)
            set_target_properties(penstock_hiredis PROPERTIES
                                  INTERFACE_INCLUDE_DIRECTORIES ${PenstockHiredis_INCLUDE_DIR}
                                  INTERFACE_LINK_LIBRARIES ${PenstockHiredis_LIBRARY})
            set(PenstockHiredis_PLACE ${PenstockHiredis_LIBRARY})
        endif()
    endif()
else()
    set(PenstockHiredis_PLACE penstock_hiredis)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PenstockHiredis REQUIRED_VARS PenstockHiredis_PLACE
                                  REASON_FAILURE_MESSAGE "penstock::redis needs hiredis: install libhiredis-dev")
