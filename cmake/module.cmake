# A module is a part of the program that is loaded when it is first needed: docs/decisions/0017-short-runs.md says why. It
# is compiled from all the sources that it needs, and shares with the program only the types of its one function.

# stagecraft_module(NAME FOR FOLDER SOURCES … PRIVATE …): modules/stagecraft_NAME.so in the folder of the build,
# which the library stagecraft_FOLDER loads (sim/base/process/module.cpp).
function(stagecraft_module name)
  cmake_parse_arguments(ARG "" "FOR" "SOURCES;PRIVATE" ${ARGN})
  add_library(stagecraft_${name} MODULE ${ARG_SOURCES})
  target_include_directories(stagecraft_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(stagecraft_${name} PRIVATE stagecraft_warnings ${ARG_PRIVATE})
  if(NOT STAGECRAFT_SANITIZE)
    target_link_options(stagecraft_${name} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(stagecraft_${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  add_dependencies(stagecraft_${ARG_FOR} stagecraft_${name})
  install(TARGETS stagecraft_${name} LIBRARY DESTINATION lib/stagecraft)
endfunction()
