#pragma once

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "util/result.hpp"

// rlock loads OpenSSL only for a URL that asks for TLS, because linking it would cost every run a
// millisecond.
namespace rlock::redis {

// Every function of libssl and libcrypto that rlock calls, including those behind macros.
#define RLOCK_OPENSSL_FUNCTIONS(X)          \
  X(OPENSSL_init_ssl)                       \
  X(ERR_clear_error)                        \
  X(ERR_peek_error)                         \
  X(ERR_peek_last_error)                    \
  X(ERR_reason_error_string)                \
  X(BIO_get_new_index)                      \
  X(BIO_meth_new)                           \
  X(BIO_meth_free)                          \
  X(BIO_meth_set_write)                     \
  X(BIO_meth_set_read)                      \
  X(BIO_meth_set_ctrl)                      \
  X(BIO_new)                                \
  X(BIO_get_data)                           \
  X(BIO_set_data)                           \
  X(BIO_set_init)                           \
  X(BIO_set_flags)                          \
  X(BIO_clear_flags)                        \
  X(TLS_client_method)                      \
  X(SSL_CTX_new)                            \
  X(SSL_CTX_free)                           \
  X(SSL_CTX_ctrl)                           \
  X(SSL_CTX_set_verify)                     \
  X(SSL_CTX_set_default_passwd_cb)          \
  X(SSL_CTX_set_default_passwd_cb_userdata) \
  X(SSL_CTX_load_verify_file)               \
  X(SSL_CTX_load_verify_dir)                \
  X(SSL_CTX_use_certificate_chain_file)     \
  X(SSL_CTX_use_PrivateKey_file)            \
  X(SSL_new)                                \
  X(SSL_free)                               \
  X(SSL_ctrl)                               \
  X(SSL_set_bio)                            \
  X(SSL_set_connect_state)                  \
  X(SSL_set_hostflags)                      \
  X(SSL_set1_host)                          \
  X(SSL_get0_param)                         \
  X(SSL_get_error)                          \
  X(SSL_get_verify_result)                  \
  X(SSL_get0_peer_certificate)              \
  X(SSL_is_init_finished)                   \
  X(SSL_peek)                               \
  X(SSL_read)                               \
  X(SSL_write)                              \
  X(X509_VERIFY_PARAM_set1_ip_asc)          \
  X(X509_STORE_CTX_get_current_cert)        \
  X(X509_get_ext_d2i)                       \
  X(X509_get0_notAfter)                     \
  X(ASN1_TIME_to_tm)                        \
  X(GENERAL_NAMES_free)                     \
  X(GENERAL_NAME_get0_value)                \
  X(OPENSSL_sk_num)                         \
  X(OPENSSL_sk_value)                       \
  X(ASN1_STRING_get0_data)                  \
  X(ASN1_STRING_length)                     \
  X(X509_verify_cert_error_string)

struct OpenSsl {
#define RLOCK_MEMBER(name) decltype(&::name) name;
  RLOCK_OPENSSL_FUNCTIONS(RLOCK_MEMBER)
#undef RLOCK_MEMBER
};

// Loads the library once and never unloads it. ErrorKind::config if it is missing, with the name of
// its package.
Result<const OpenSsl*> openssl();

}  // namespace rlock::redis
