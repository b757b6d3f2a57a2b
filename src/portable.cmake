# The portable flavour: the same objects, linked without a shared library. See CONTRIBUTING.md, "Build and test".
set(RLOCK_LINK_OPTIONS -Wl,--gc-sections -Wl,-O1 -Wl,--as-needed -Wl,-z,relro,-z,now)

# The compiler decides: OpenSSL's archives may need others, as those of zlib and zstd.
set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
set(CMAKE_REQUIRED_LIBRARIES ${OPENSSL_STATIC_LIBRARIES})
check_cxx_source_compiles("extern \"C\" int OPENSSL_init_ssl(unsigned long, const void*);
                           int main() { return OPENSSL_init_ssl(0, nullptr); }" RLOCK_OPENSSL_IS_STATIC)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
unset(CMAKE_REQUIRED_LIBRARIES)
if(RLOCK_HIREDIS_ARCHIVE AND RLOCK_OPENSSL_IS_STATIC)
  set(RLOCK_CAN_BE_PORTABLE ON)
elseif(RLOCK_PORTABLE)
  message(FATAL_ERROR "RLOCK_PORTABLE needs the archives of libc, libstdc++ and hiredis, and those that "
                      "`pkg-config --static --libs openssl` names: Debian has them in its -dev packages")
endif()

# make_portable(TARGET): an executable with the objects of rlock. Its own functions come before those of the same name in
# the libraries, of which the linker then takes none. The linker warns of getaddrinfo and getpwuid: portable.cpp sees to
# it that they load nothing. Position-independent: its relocations cost each start 0.26 ms. In the form RELR they take 7 KB instead of
# 590 KB; the program applies them itself, which libc can since 2.36.
check_cxx_source_compiles("#include <features.h>
                           #if !__GLIBC_PREREQ(2, 36)
                           #error
                           #endif
                           int main() {}" RLOCK_LIBC_APPLIES_RELR)
check_linker_flag(CXX -Wl,-z,pack-relative-relocs RLOCK_LINKER_HAS_RELR)
set(RLOCK_PORTABLE_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/portable.cpp ${CMAKE_CURRENT_SOURCE_DIR}/redis/net/openssl_linked.cpp)
function(make_portable target)
  target_sources(${target} PRIVATE ${RLOCK_PORTABLE_SOURCES})
  target_link_libraries(${target} PRIVATE ${OPENSSL_STATIC_LIBRARIES})
  target_link_options(${target} PRIVATE -static-pie)
  if(RLOCK_LIBC_APPLIES_RELR AND RLOCK_LINKER_HAS_RELR)
    target_link_options(${target} PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
endfunction()
