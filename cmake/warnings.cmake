# Warnings and sanitizers for our own targets, as one interface target.
add_library(stagecraft_warnings INTERFACE)
target_compile_options(
  stagecraft_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wold-style-cast -Wnon-virtual-dtor
            -Woverloaded-virtual -Wdouble-promotion -Wcast-align -Wformat=2
            # GCC 12 warns of its own string concatenation (bug 105651) and of moved aggregates: -Wno-restrict, -Wno-maybe-…
            $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op -Wno-missing-field-initializers -Wno-restrict
            -Wno-maybe-uninitialized>
            $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-field-initializers>
            $<$<BOOL:${STAGECRAFT_WERROR}>:-Werror>)
if(STAGECRAFT_SANITIZE)
  # Checks of every pointer against null, of its alignment and its object double the build, and find what
  # AddressSanitizer finds anyway.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null,alignment,object-size,vptr
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
endif()
if(STAGECRAFT_FUZZ)
  # libFuzzer learns from the branches that an input takes. A number too large for its type and an index behind the end
  # of a vector's values are defects too, though the sanitizers above pass them.
  add_compile_options(-fsanitize=fuzzer-no-link,float-cast-overflow -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=float-cast-overflow)
endif()
