# Packages: `packaging/package.sh`, or cpack -G DEB and cpack -G RPM in a build folder.
set(CPACK_PACKAGE_NAME rlock)
set(CPACK_PACKAGE_CONTACT "The rlock authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run a command under a lock that lives in Redis or Valkey")
set(CPACK_PACKAGE_DESCRIPTION "For cron, CI and operators: one of many hosts does the job, the others wait in a fair queue
 or skip it. The command never outlives its lease, and rlock exits as the command did.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libssl3 | libssl3t64") # loaded when a URL asks for TLS: shlibdeps cannot see it
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "redis-server | valkey-server") # for local:
set(CPACK_DEBIAN_PACKAGE_CONFLICTS ruby-lockfile) # has another rlock(1)

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_GROUP Applications/System)
# Folders of other packages.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/man /usr/share/man/man1 /usr/share/man/man5
  /usr/share/man/man7 /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
  /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d)
include(CPack)
