# Several files of a folder as one, which halves a build from nothing (most of a file's time is headers), but makes a
# build after a change of one file longer: so for those who build once, as ./dev demo does.
option(STAGECRAFT_UNITY "Compile the files of a folder together" OFF)

# stagecraft_compiled_together(TARGET [FILE…]): so is TARGET under that option, but for these files.
function(stagecraft_compiled_together target)
  if(STAGECRAFT_UNITY)
    # As many as keep two cores busy until the end.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
    if(ARGN)
      set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
endfunction()

# stagecraft_library(FOLDER [HOT] SOURCES … DEPENDS …): the library of one folder of sim/, or of one room in a folder
# (sweep_store is sim/sweep/store). DEPENDS are the folders that may stand before it (the table is in
# tests/architecture/architecture_test.cpp) and outside packages. HOT: time is spent here, so it is worth -O3; the rest
# is compiled with -O1, in half the time.
function(stagecraft_library folder)
  cmake_parse_arguments(ARG "HOT" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  add_library(stagecraft_${folder} STATIC ${ARG_SOURCES})
  target_include_directories(stagecraft_${folder} PUBLIC ${PROJECT_SOURCE_DIR})
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(stagecraft_${folder} PUBLIC stagecraft_${dependency})
  endforeach()
  target_link_libraries(stagecraft_${folder} PRIVATE stagecraft_warnings ${ARG_PRIVATE})
  if(NOT ARG_HOT)
    target_compile_options(stagecraft_${folder} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  stagecraft_compiled_together(stagecraft_${folder})
  if(folder STREQUAL base)
    stagecraft_precompile(stagecraft_base)
  else()
    stagecraft_precompiled_as(stagecraft_${folder} stagecraft_base)
  endif()
endfunction()
