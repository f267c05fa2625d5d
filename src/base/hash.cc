// SHA-256 through OpenSSL's EVP interface.
#include "base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <memory>

namespace sojourn {
namespace {

struct Digest {
  Digest() : ctx(EVP_MD_CTX_new()) { EVP_DigestInit_ex(ctx, EVP_sha256(), nullptr); }
  ~Digest() { EVP_MD_CTX_free(ctx); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  void update(const void* data, std::size_t size) { EVP_DigestUpdate(ctx, data, size); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> raw{};
    unsigned int size = 0;
    EVP_DigestFinal_ex(ctx, raw.data(), &size);
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (unsigned int i = 0; i < size; ++i) {
      out += kDigits[raw[i] >> 4];
      out += kDigits[raw[i] & 15];
    }
    return out;
  }
  EVP_MD_CTX* ctx;
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Digest d;
  d.update(bytes.data(), bytes.size());
  return d.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return fail({path, 0, 0}, "", "cannot be read", "check that the file exists and may be read");
  Digest d;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (n == 0) break;
    d.update(buffer.data(), n);
  }
  if (std::ferror(file.get())) return fail({path, 0, 0}, "", "read error", "", 3);
  return d.hex();
}

}  // namespace sojourn
