#include "harness/project/ledger/judge_key.h"

#include <openssl/evp.h>

#include <memory>
#include <optional>
#include <vector>

#include "harness/base/encode.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

using KeyPair = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;
using RawBytes = std::vector<unsigned char>;

const unsigned char* data_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// `count` bytes, written as lower-case hexadecimal digits.
std::optional<RawBytes> unhex(std::string_view text, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (text.size() != 2 * count || text.find_first_not_of(kDigits) != text.npos) return std::nullopt;
  RawBytes bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(16 * kDigits.find(text[i]) + kDigits.find(text[i + 1])));
  return bytes;
}

KeyPair private_key(const unsigned char* secret) {
  return {EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret, 32), EVP_PKEY_free};
}

std::string public_half(const EVP_PKEY* key) {
  std::array<unsigned char, 32> bytes{};
  std::size_t size = bytes.size();
  return EVP_PKEY_get_raw_public_key(key, bytes.data(), &size) == 1 ? hex(bytes) : std::string();
}

Result<std::string> new_secret() {
  EVP_PKEY* made = nullptr;
  std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr), EVP_PKEY_CTX_free);
  const bool ok =
      context && EVP_PKEY_keygen_init(context.get()) == 1 && EVP_PKEY_keygen(context.get(), &made) == 1;
  const KeyPair key(made, EVP_PKEY_free);
  std::array<unsigned char, 32> secret{};
  std::size_t size = secret.size();
  if (!ok || EVP_PKEY_get_raw_private_key(key.get(), secret.data(), &size) != 1)
    return fail("cannot make the judge's key: OpenSSL has no randomness or no ed25519", {}, {},
                ExitCode::kEnvironment);
  return hex(secret);
}

}  // namespace

Result<JudgeKey> JudgeKey::of(const fs::path& state_folder) {
  const fs::path path = state_folder / "judge-key";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    CAPSTONE_CHECK(make_folders(state_folder));
    CAPSTONE_TRY(FileLock lock, FileLock::acquire(state_folder / "judge-key.lock", true));
    if (!fs::exists(path, ignored)) {  // else another process has made it meanwhile
      CAPSTONE_TRY(const std::string secret, new_secret());
      CAPSTONE_CHECK(write_file_atomic(path, secret + "\n", 0600));
    }
  }
  CAPSTONE_TRY(const std::string text, read_file(path, 4096));
  JudgeKey key;
  if (const auto secret = unhex(trim(text), key.secret_.size())) {
    std::copy(secret->begin(), secret->end(), key.secret_.begin());
    if (const KeyPair pair = private_key(key.secret_.data())) key.public_key_ = public_half(pair.get());
  }
  if (key.public_key_.empty())
    return fail("this file does not hold the judge's key", path.string(),
                "restore it; or remove it, and tell the people who trust this machine its new public key "
                "(`capstone doctor`)",
                ExitCode::kEnvironment);
  return key;
}

Result<std::string> JudgeKey::sign(std::string_view text) const {
  const KeyPair key = private_key(secret_.data());
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  std::array<unsigned char, 64> signature{};
  std::size_t size = signature.size();
  const bool ok = key && context &&
                  EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                  EVP_DigestSign(context.get(), signature.data(), &size, data_of(text), text.size()) == 1;
  if (!ok) return fail("OpenSSL cannot sign the record", {}, {}, ExitCode::kEnvironment);
  return hex(signature);
}

bool is_public_key(std::string_view text) { return unhex(text, 32).has_value(); }

bool is_signed_by(std::string_view public_key, std::string_view signature, std::string_view text) {
  const auto key_bytes = unhex(public_key, 32), value = unhex(signature, 64);
  if (!key_bytes || !value) return false;
  const KeyPair key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key_bytes->data(), key_bytes->size()),
      EVP_PKEY_free);
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  return key && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), value->data(), value->size(), data_of(text), text.size()) == 1;
}

}  // namespace capstone
