#include "cli/output/exit_code.hpp"

namespace rlock::cli {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return kUsage;
    case ErrorKind::wrong_type:
      return kWrongType;
    case ErrorKind::unavailable:
      return kUnavailable;
    case ErrorKind::internal:
      return kInternal;
    case ErrorKind::system:
      return kSystem;
    case ErrorKind::busy:
      return kBusy;
    case ErrorKind::lost:
      return kLost;
    case ErrorKind::denied:
      return kDenied;
    case ErrorKind::config:
      return kConfig;
  }
  return kInternal;
}

std::string_view next_step(ErrorKind kind) {
  bool server_failed = kind == ErrorKind::unavailable || kind == ErrorKind::denied;
  return server_failed ? "; rlock doctor checks the server" : "";
}

std::string_view json_kind(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
    case ErrorKind::config:
      return "usage";
    case ErrorKind::unavailable:
      return "unreachable";
    case ErrorKind::wrong_type:
    case ErrorKind::denied:
      return "refused";
    case ErrorKind::busy:
      return "busy";
    case ErrorKind::lost:
      return "lost";
    case ErrorKind::internal:
    case ErrorKind::system:
      return "internal";
  }
  return "internal";
}

}  // namespace rlock::cli
