# The allocator of our programs: docs/decisions/0011-an-allocator.md says why. Sanitizers bring their own.
pkg_check_modules(Tcmalloc REQUIRED IMPORTED_TARGET libtcmalloc_minimal)

# stagecraft_program(TARGET): an executable with that allocator.
function(stagecraft_program target)
  if(NOT STAGECRAFT_SANITIZE)
    target_link_libraries(${target} PRIVATE PkgConfig::Tcmalloc)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/sim/base/system/huge_pages.cpp)
  endif()
endfunction()
