# The portable flavour: the same objects, linked without a shared library. See CONTRIBUTING.md, "Build and test".
set(RLOCK_LINK_OPTIONS -Wl,--gc-sections -Wl,-O1 -Wl,--as-needed -Wl,-z,relro,-z,now)

find_library(RLOCK_SSL_ARCHIVE NAMES libssl.a)
find_library(RLOCK_CRYPTO_ARCHIVE NAMES libcrypto.a)
find_library(RLOCK_LIBC_ARCHIVE NAMES libc.a)
set(RLOCK_CAN_BE_PORTABLE ON)
foreach(archive SSL CRYPTO HIREDIS LIBC)
  if(NOT RLOCK_${archive}_ARCHIVE)
    set(RLOCK_CAN_BE_PORTABLE OFF)
  endif()
endforeach()
if(RLOCK_PORTABLE AND NOT RLOCK_CAN_BE_PORTABLE)
  message(FATAL_ERROR "RLOCK_PORTABLE needs libssl.a, libcrypto.a, libhiredis.a and libc.a: Debian has them in "
                      "libssl-dev, libhiredis-dev and libc6-dev")
endif()

# make_portable(TARGET): an executable with the objects of rlock. Its own functions come before those of the same name in
# the libraries, of which the linker then takes none. The linker warns of getaddrinfo and getpwuid: portable.cpp sees to
# it that they load nothing. Not position-independent: its relocations would cost half of what static linking gains.
set(RLOCK_PORTABLE_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/portable.cpp ${CMAKE_CURRENT_SOURCE_DIR}/redis/net/openssl_linked.cpp)
function(make_portable target)
  target_sources(${target} PRIVATE ${RLOCK_PORTABLE_SOURCES})
  target_link_libraries(${target} PRIVATE ${RLOCK_SSL_ARCHIVE} ${RLOCK_CRYPTO_ARCHIVE})
  target_link_options(${target} PRIVATE -static -no-pie)
endfunction()
