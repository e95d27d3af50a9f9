# Headers that nearly every file of ours includes, read once instead of once for each file, which is a quarter of the
# build. For the preset asan alone: GCC 12 warns of its own headers when they are precompiled, and the others hold that
# each file includes what it uses.
option(STAGECRAFT_PRECOMPILE "Precompile the standard library's headers" OFF)

# stagecraft_precompile(TARGET HEADER…): these, and those of the standard library, before each file of TARGET.
function(stagecraft_precompile target)
  if(STAGECRAFT_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <chrono> <cmath> <functional> <limits> <map>
      <memory> <numeric> <optional> <random> <set> <span> <sstream> <string> <variant> <vector> ${ARGN})
  endif()
endfunction()

# stagecraft_precompiled_as(TARGET OTHER): the same as OTHER, whose options TARGET shares.
function(stagecraft_precompiled_as target other)
  if(STAGECRAFT_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
