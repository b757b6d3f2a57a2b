#include "redis/net/tls_names.hpp"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <memory>

namespace rlock::redis {
namespace {

constexpr int kMostNames = 8;

std::string& thread_names() {
  thread_local std::string names;
  return names;
}

std::string address(const unsigned char* bytes, int size) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = size == 4 ? AF_INET : AF_INET6;
  if (size != 4 && size != 16) return {};
  return inet_ntop(family, bytes, text.data(), text.size()) == nullptr ? "" : text.data();
}

// A host name or an address; empty for what is neither.
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

}  // namespace

int note_names(int accepted, X509_STORE_CTX* context) {
  auto ssl = openssl();
  if (accepted != 0 || !ssl) return accepted;
  const X509* certificate = (*ssl)->X509_STORE_CTX_get_current_cert(context);
  thread_names() = certificate == nullptr ? "" : names_in(**ssl, certificate);
  return accepted;
}

const std::string& refused_names() {
  return thread_names();
}

}  // namespace rlock::redis
