// Stands in for libFuzzer in ordinary builds: replays every file of the corpus folders given, then seeded mutations of
// them for SOJOURN_FUZZ_SECONDS (2 unless set). The same seed gives the same inputs; SOJOURN_FUZZ_SEED changes it. On a
// crash the input is in the file crash-input of the working folder when SOJOURN_FUZZ_KEEP is set.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const char* const kTokens[] = {"0",
                               "-1",
                               "65535",
                               "65534",
                               "4294967296",
                               "18446744073709551615",
                               "-9223372036854775808",
                               "1e308",
                               "NaN",
                               "null",
                               "[]",
                               "{}",
                               "[[]]",
                               "\"\"",
                               "\"",
                               ",",
                               "\n",
                               "[[[[[[[[[[[[[[[[",
                               "true",
                               "1.5",
                               "\\u",
                               "\xff\xfe"};

std::string mutate(std::string s, const std::vector<std::string>& corpus, sojourn::Rng& rng) {
  const auto at = [&](std::size_t n) { return static_cast<std::size_t>(rng.below(n + 1)); };
  const std::uint64_t rounds = 1 + rng.below(4);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    switch (rng.below(8)) {
      case 0:
        if (!s.empty()) s[rng.below(s.size())] ^= static_cast<char>(1 << rng.below(8));
        break;
      case 1:
        if (!s.empty()) s[rng.below(s.size())] = static_cast<char>(rng.below(256));
        break;
      case 2:
        s.insert(at(s.size()), kTokens[rng.below(std::size(kTokens))]);
        break;
      case 3: {  // a number becomes another
        const std::size_t digit = s.find_first_of("0123456789", at(s.size()));
        if (digit == std::string::npos) break;
        const std::size_t end = std::min(s.find_first_not_of("0123456789.", digit), s.size());
        s.replace(digit, end - digit, kTokens[rng.below(9)]);
        break;
      }
      case 4:
        s.erase(at(s.size()), rng.below(16));
        break;
      case 5:
        s.resize(at(s.size()));
        break;
      case 6: {
        const std::size_t from = at(s.size());
        const std::string piece = s.substr(from, rng.below(64));
        s.insert(at(s.size()), piece);
        break;
      }
      default: {
        const std::string& other = corpus[rng.below(corpus.size())];
        s = s.substr(0, at(s.size())) + other.substr(at(other.size()));
      }
    }
  }
  if (s.size() > 1 << 16) s.resize(1 << 16);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> paths, corpus;
  for (int i = 1; i < argc; ++i) {
    std::error_code ec;
    if (std::filesystem::is_regular_file(argv[i], ec)) paths.emplace_back(argv[i]);
    for (std::filesystem::recursive_directory_iterator it(argv[i], ec), end; !ec && it != end; it.increment(ec))
      if (it->is_regular_file(ec)) paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& p : paths) {
    std::ifstream in(p, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  corpus.emplace_back();
  const char* seconds_text = std::getenv("SOJOURN_FUZZ_SECONDS");
  const char* seed_text = std::getenv("SOJOURN_FUZZ_SEED");
  const bool keep = std::getenv("SOJOURN_FUZZ_KEEP") != nullptr;
  const double seconds = seconds_text != nullptr ? std::atof(seconds_text) : 2.0;
  sojourn::Rng rng(seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : 1, "fuzz");
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::uint64_t runs = 0;
  const auto run = [&](const std::string& s) {
    if (keep) std::ofstream("crash-input", std::ios::binary) << s;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(s.data()), s.size());
    ++runs;
  };
  for (const std::string& s : corpus) run(s);
  while (elapsed() < seconds) run(mutate(corpus[rng.below(corpus.size())], corpus, rng));
  std::printf("%llu executions in %.1f s, corpus of %zu\n", static_cast<unsigned long long>(runs), elapsed(),
              corpus.size() - 1);
  return 0;
}
