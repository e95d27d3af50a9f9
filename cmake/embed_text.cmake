# Text files as C++: stagecraft_embed_text(TARGET HEADER FILES…) adds to TARGET a source that defines, for each file, the
# std::string_view stagecraft::assets::NAME (the file's name with _ for what is no letter) that HEADER declares.
function(stagecraft_embed_text target header)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}_assets.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DHEADER=${header} "-DFILES=${files}" -P ${script}
    DEPENDS ${files} ${script}
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-Wno-overlength-strings" SKIP_LINTING ON)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  set(text "#include \"${HEADER}\"\n\nnamespace stagecraft::assets {\n")
  foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE "[^A-Za-z]" "_" name ${name})
    file(READ ${file} content)
    string(APPEND text "const std::string_view ${name} = R\"-embedded-(${content})-embedded-\";\n")
  endforeach()
  file(WRITE ${SOURCE} "${text}} // namespace stagecraft::assets\n")
endif()
