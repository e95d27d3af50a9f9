# stagecraft_library(FOLDER SOURCES … DEPENDS …): the library of one folder of sim/. DEPENDS are the folders that may
# stand before it (tests/architecture_test.cpp holds the table) and outside packages.
function(stagecraft_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(stagecraft_${folder} STATIC ${ARG_SOURCES})
  target_include_directories(stagecraft_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(stagecraft_${folder} PUBLIC stagecraft_${dependency})
  endforeach()
  target_link_libraries(stagecraft_${folder} PRIVATE stagecraft_warnings ${ARG_PRIVATE})
endfunction()
