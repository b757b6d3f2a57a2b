#include "redis/net/tls_error.hpp"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <memory>

namespace rlock::redis {
namespace {

constexpr int kMostNames = 8;

// The names in the certificate that was rejected last in this thread.
std::string& rejected_names() {
  thread_local std::string names;
  return names;
}

std::string address(const unsigned char* bytes, int size) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = size == 4 ? AF_INET : AF_INET6;
  if (size != 4 && size != 16) return {};
  return inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

// A host name or an address; empty for any other kind of name.
std::string text_of(const OpenSsl& ssl, const GENERAL_NAME* name) {
  int type = 0;
  const auto* value = static_cast<const ASN1_STRING*>(ssl.GENERAL_NAME_get0_value(name, &type));
  if (type != GEN_DNS && type != GEN_IPADD) return {};
  const unsigned char* bytes = ssl.ASN1_STRING_get0_data(value);
  const int size = ssl.ASN1_STRING_length(value);
  if (type == GEN_IPADD) return address(bytes, size);
  constexpr int kLongest = 255;
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(std::min(size, kLongest))};
}

std::string names_in(const OpenSsl& ssl, const X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      ssl.X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  if (names == nullptr) return {};
  const std::unique_ptr<GENERAL_NAMES, decltype(ssl.GENERAL_NAMES_free)> owned(
      names, ssl.GENERAL_NAMES_free);
  const auto* stack = reinterpret_cast<const OPENSSL_STACK*>(names);
  std::string text;
  for (int i = 0; i < std::min(kMostNames, ssl.OPENSSL_sk_num(stack)); ++i) {
    const auto* name = static_cast<const GENERAL_NAME*>(ssl.OPENSSL_sk_value(stack, i));
    const std::string one = text_of(ssl, name);
    if (!one.empty()) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

constexpr const char* kCacertHint = " (--cacert FILE names a CA to trust)";

Error denied(const std::string& why) {
  return {ErrorKind::denied, why};
}

// The names to verify instead: servers behind a tunnel, and nodes that are known by their
// addresses, have certificates for other names.
std::string certificate_names() {
  const std::string& names = rejected_names();
  return names.empty() ? std::string(" (it contains no host name)")
                       : " but for " + names + " (--sni NAME verifies another name)";
}

Error rejected_certificate(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer) {
  long why = ssl.SSL_get_verify_result(session);
  std::string text = "TLS: the server's certificate was rejected: ";
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
      return denied(text + "no trusted CA signed it" + kCacertHint);
    default:
      return denied(text + ssl.X509_verify_cert_error_string(why));
  }
}

// The alerts with which a server rejects a client for its certificate or its abilities.
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
    return denied("TLS: the server requires a client certificate (--cert FILE, --key FILE)");
  }
  bool certificate = alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN;
  certificate = certificate || alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_ACCESS_DENIED;
  if (certificate && peer.own == OwnCertificate::shown) {
    return denied("TLS: the server rejected the client certificate: " + reason);
  }
  // TLS 1.2 has no alert for a missing certificate.
  if (alert == SSL_AD_HANDSHAKE_FAILURE && peer.own == OwnCertificate::none) {
    return denied(
        "TLS: the server rejected the handshake; it may require a client certificate (--cert "
        "FILE)");
  }
  if (is_rejection(alert)) return denied("TLS: the server rejected the handshake: " + reason);
  return {ErrorKind::unavailable, "TLS: " + reason, Retry::later};
}

// The errors that OpenSSL reports for bytes that are not TLS.
bool is_not_tls(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
         reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_RECORD_LENGTH_MISMATCH;
}

}  // namespace

int note_rejected_names(int accepted, X509_STORE_CTX* context) {
  auto ssl = openssl();
  if (accepted != 0 || !ssl) return accepted;
  const X509* certificate = (*ssl)->X509_STORE_CTX_get_current_cert(context);
  rejected_names() = certificate == nullptr ? "" : names_in(**ssl, certificate);
  return accepted;
}

Error no_tls_error() {
  return denied("TLS: the server does not speak TLS; use redis:// for a plain port");
}

Error tls_error(const OpenSsl& ssl, const SSL* session, const TlsPeer& peer) {
  // The last error ended the session; a look-up of CAs may have left others.
  unsigned long code = ssl.ERR_peek_last_error();
  int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  const char* known_text = ssl.ERR_reason_error_string(code);
  std::string text = known_text == nullptr ? "unknown error" : known_text;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return rejected_certificate(ssl, session, peer);
  if (reason > SSL_AD_REASON_OFFSET) return alert_error(reason - SSL_AD_REASON_OFFSET, text, peer);
  if (ssl.SSL_is_init_finished(session) != 0) {
    return {ErrorKind::unavailable, "TLS: " + text, Retry::later};
  }
  if (is_not_tls(reason)) return no_tls_error();
  return denied("TLS: " + text);
}

}  // namespace rlock::redis
