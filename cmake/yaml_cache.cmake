# stagecraft_yaml_cache(SOURCE): the program of this source records all YAML that comes with the program, and again when
# one of its files changes: docs/decisions/0017-short-runs.md says why. The target yaml_cache is the file.
function(stagecraft_yaml_cache source)
  add_executable(make_yaml_cache ${source})
  target_link_libraries(make_yaml_cache PRIVATE stagecraft_base_format stagecraft_warnings)
  stagecraft_precompiled_as(make_yaml_cache stagecraft_base)
  set(cache ${PROJECT_BINARY_DIR}/modules/shipped_yaml.cache)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
  file(GLOB_RECURSE shipped CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/platforms/*.yaml ${PROJECT_SOURCE_DIR}/workloads/*.yaml)
  add_custom_command(OUTPUT ${cache} COMMAND make_yaml_cache ${cache} ${shipped} DEPENDS ${shipped} VERBATIM)
  add_custom_target(yaml_cache ALL DEPENDS ${cache})
  install(FILES ${cache} DESTINATION lib/stagecraft)
endfunction()
