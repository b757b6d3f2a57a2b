# For src: what a fault in memory has to get past in every program that is built for use. The test `packaging_hardening` reads the
# built program. Debug builds go without: there the sanitizers find more.
include(CheckCXXCompilerFlag)

set(hardening -fstack-protector-strong)
foreach(flag -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard -ftrivial-auto-var-init=zero)
  string(MAKE_C_IDENTIFIER "RLOCK_HAVE${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    list(APPEND hardening ${flag})
  endif()
endforeach()

set(fortify 2)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
  set(fortify 3)
endif()
# Undefined first: distributions define it in their compilers, or in CXXFLAGS.
list(APPEND hardening -D_GLIBCXX_ASSERTIONS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify})

add_compile_options("$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:${hardening}>" -fPIE)
add_link_options(-Wl,-z,noexecstack)
