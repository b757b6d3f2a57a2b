#include "redis/net/tls_error.hpp"

#include <algorithm>

#include "redis/net/tls_names.hpp"

namespace rlock::redis {
namespace {

constexpr const char* kCacertHint = " (--cacert FILE names whom to trust)";

Error denied(const std::string& why) {
  return {ErrorKind::denied, why};
}

// What to ask for instead: servers behind a tunnel, and nodes that are known by their addresses,
// have certificates for other names.
std::string certificate_names() {
  const std::string& names = refused_names();
  return names.empty() ? std::string(" (it names no host)")
                       : " but for " + names + " (--sni NAME asks for another one)";
}

Error refused_certificate(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer) {
  long why = ssl.SSL_get_verify_result(session);
  std::string text = "TLS: its certificate is refused: ";
  switch (why) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return denied(text + "it is not for " + peer.name + certificate_names());
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return denied(text + "it is self-signed" + kCacertHint);
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return denied(text + "no authority that is trusted here signed it" + kCacertHint);
    default:
      return denied(text + ssl.X509_verify_cert_error_string(why));
  }
}

// The alerts by which a server turns a client away for what it is or can do.
bool is_rejection(int alert) {
  constexpr int kAlerts[] = {SSL_AD_HANDSHAKE_FAILURE,
                             SSL_AD_BAD_CERTIFICATE,
                             SSL_AD_UNSUPPORTED_CERTIFICATE,
                             SSL_AD_CERTIFICATE_REVOKED,
                             SSL_AD_CERTIFICATE_EXPIRED,
                             SSL_AD_CERTIFICATE_UNKNOWN,
                             SSL_AD_UNKNOWN_CA,
                             SSL_AD_ACCESS_DENIED,
                             SSL_AD_PROTOCOL_VERSION,
                             SSL_AD_INSUFFICIENT_SECURITY,
                             SSL_AD_UNRECOGNIZED_NAME,
                             SSL_AD_CERTIFICATE_REQUIRED};
  return std::find(std::begin(kAlerts), std::end(kAlerts), alert) != std::end(kAlerts);
}

Error alert_error(int alert, const std::string& reason, const TlsPeer& peer) {
  if (alert == SSL_AD_CERTIFICATE_REQUIRED) {
    return denied("TLS: it wants a client certificate (--cert FILE, --key FILE)");
  }
  bool certificate = alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN;
  certificate = certificate || alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_ACCESS_DENIED;
  if (certificate && peer.own == OwnCertificate::shown) {
    return denied("TLS: it refuses our client certificate: " + reason);
  }
  // TLS 1.2 has no alert of its own for that.
  if (alert == SSL_AD_HANDSHAKE_FAILURE && peer.own == OwnCertificate::none) {
    return denied("TLS: it refuses the handshake, and may want a client certificate (--cert FILE)");
  }
  if (is_rejection(alert)) return denied("TLS: it refuses the handshake: " + reason);
  return {ErrorKind::unavailable, "TLS: " + reason, Retry::later};
}

// What OpenSSL makes of bytes that are no TLS.
bool is_not_tls(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_RECORD_LENGTH_MISMATCH;
}

}  // namespace

Error tls_error(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer) {
  // The last one is what the session ended of; a look-up of authorities may have left others.
  unsigned long code = ssl.ERR_peek_last_error();
  int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  const char* words = ssl.ERR_reason_error_string(code);
  std::string text = words == nullptr ? "unknown error" : words;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return refused_certificate(ssl, session, peer);
  if (reason > SSL_AD_REASON_OFFSET) return alert_error(reason - SSL_AD_REASON_OFFSET, text, peer);
  if (ssl.SSL_is_init_finished(session) != 0) {
    return {ErrorKind::unavailable, "TLS: " + text, Retry::later};
  }
  if (is_not_tls(reason)) return denied("TLS: it speaks none: a plain port, for redis:// ?");
  return denied("TLS: " + text);
}

}  // namespace rlock::redis
