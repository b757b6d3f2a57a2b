#include <nss.h>

// Of the portable flavour alone, see portable.cmake. A host's modules for names and users are made
// for its own libc: loaded into this program, another one would break it. What libc has built in is
// enough.
namespace {

[[gnu::constructor]] void load_no_modules() {
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("passwd", "files");
}

}  // namespace
