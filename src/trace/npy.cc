// The .npy header is a Python dict literal with the keys descr, fortran_order and shape; nothing else is admitted.
#include "trace/npy.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <cstring>

#include "trace/half.h"

namespace sojourn {
namespace {

/// Just enough of a tokenizer for NumPy's dict literal.
class Literal {
 public:
  explicit Literal(std::string_view s) : s_(s) {}
  bool take(char c) {
    space();
    if (s_.empty() || s_[0] != c) return false;
    s_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    space();
    if (s_.substr(0, w.size()) != w) return false;
    s_.remove_prefix(w.size());
    return true;
  }
  bool quoted(std::string& out) {
    space();
    if (s_.empty() || (s_[0] != '\'' && s_[0] != '"')) return false;
    const auto end = s_.find(s_[0], 1);
    if (end == std::string_view::npos) return false;
    out = std::string(s_.substr(1, end - 1));
    s_.remove_prefix(end + 1);
    return true;
  }
  bool number(std::uint64_t& out) {
    space();
    out = 0;
    bool any = false;
    while (!s_.empty() && s_[0] >= '0' && s_[0] <= '9') {
      if (__builtin_mul_overflow(out, 10U, &out) ||
          __builtin_add_overflow(out, static_cast<unsigned>(s_[0] - '0'), &out))
        return false;
      s_.remove_prefix(1);
      any = true;
    }
    if (any) take('L');
    return any;
  }

 private:
  void space() {
    while (!s_.empty() && (s_[0] == ' ' || s_[0] == '\n' || s_[0] == '\t')) s_.remove_prefix(1);
  }
  std::string_view s_;
};

bool parse_literal(std::string_view text, NpyHeader& h, std::string& descr, std::string& why) {
  Literal p(text);
  why = "the header is not a dict of descr, fortran_order and shape";
  if (!p.take('{')) return false;
  bool have_descr = false, have_order = false, have_shape = false;
  while (!p.take('}')) {
    std::string key;
    if (!p.quoted(key) || !p.take(':')) return false;
    if (key == "descr") {
      if (!p.quoted(descr)) {
        why = "structured arrays are not supported";
        return false;
      }
      have_descr = true;
    } else if (key == "fortran_order") {
      if (p.word("True"))
        h.fortran = true;
      else if (!p.word("False"))
        return false;
      have_order = true;
    } else if (key == "shape") {
      if (!p.take('(')) return false;
      h.shape.clear();
      while (!p.take(')')) {
        std::uint64_t n = 0;
        if (!p.number(n)) return false;
        h.shape.push_back(n);
        if (h.shape.size() > 8) return false;
        p.take(',');
      }
      have_shape = true;
    } else {
      return false;
    }
    p.take(',');
  }
  return have_descr && have_order && have_shape;
}

bool parse_descr(const std::string& d, NpyHeader& h) {
  std::size_t i = 0;
  if (!d.empty() && std::strchr("<>|=", d[0]) != nullptr) {
    h.big_endian = d[0] == '>';
    i = 1;
  }
  if (i >= d.size()) return false;
  h.kind = d[i++];
  if (i >= d.size() || d.size() - i > 9) return false;
  h.item = 0;
  for (; i < d.size(); ++i) {
    if (d[i] < '0' || d[i] > '9') return false;
    h.item = h.item * 10 + (d[i] - '0');
    if (h.item > 100'000'000) return false;
  }
  if (h.kind == 'U') h.item *= 4;
  if (h.kind == 'u' || h.kind == 'i') return h.item == 1 || h.item == 2 || h.item == 4 || h.item == 8;
  if (h.kind == 'f') return h.item == 2 || h.item == 4 || h.item == 8;
  if (h.kind == 'b') return h.item == 1;
  return h.kind == 'S' || h.kind == 'U';
}

}  // namespace

std::string NpyHeader::text() const {
  return fmt::format("{}{}{} [{}]",
                     big_endian                   ? '>'
                     : (item == 1 || kind == 'S') ? '|'
                                                  : '<',
                     kind, kind == 'U' ? item / 4 : item, fmt::join(shape, ", "));
}

bool looks_like_npy(std::string_view head) {
  return head.size() >= 10 && std::memcmp(head.data(), "\x93NUMPY", 6) == 0;
}

Result<NpyHeader> parse_npy(std::string_view head, std::uint64_t total, const std::string& path,
                            const std::string& key) {
  const char* remedy = "write it with numpy.save, numpy.savez or `sojourn trace import`";
  if (!looks_like_npy(head)) return fail({path}, key, "not a NumPy array (no \\x93NUMPY signature)", remedy);
  const int major = static_cast<unsigned char>(head[6]);
  if (major < 1 || major > 3) return fail({path}, key, fmt::format("unknown .npy version {}", major), remedy);
  std::uint64_t start = 10, length = static_cast<unsigned char>(head[8]) | (static_cast<unsigned char>(head[9]) << 8);
  if (major >= 2) {
    if (head.size() < 12) return fail({path}, key, "the .npy header is cut off", remedy);
    length |= (std::uint64_t{static_cast<unsigned char>(head[10])} << 16) |
              (std::uint64_t{static_cast<unsigned char>(head[11])} << 24);
    start = 12;
  }
  if (length > head.size() - start)
    return fail({path}, key, fmt::format("the .npy header claims {} bytes and is cut off", length), remedy);
  NpyHeader h;
  std::string descr, why;
  if (!parse_literal(head.substr(start, length), h, descr, why)) return fail({path}, key, why, remedy);
  if (!parse_descr(descr, h))
    return fail({path}, key, fmt::format("dtype '{}' is not supported", descr),
                "store plain numbers, e.g. ids.astype(numpy.uint16)");
  h.data = start + length;
  h.elements = 1;
  std::uint64_t bytes = 0;
  for (std::uint64_t n : h.shape)
    if (__builtin_mul_overflow(h.elements, n, &h.elements))
      return fail({path}, key, "the shape's product overflows", remedy);
  if (__builtin_mul_overflow(h.elements, static_cast<std::uint64_t>(h.item), &bytes) ||
      __builtin_add_overflow(bytes, h.data, &bytes))
    return fail({path}, key, "the shape's product overflows", remedy);
  if (bytes != total)
    return fail({path}, key, fmt::format("{} needs {} bytes, the file has {}", h.text(), bytes, total),
                "the file is truncated or damaged: write it again");
  return h;
}

std::string npy_header(const std::string& descr, const std::vector<std::uint64_t>& shape) {
  std::string dims = fmt::format("{}", fmt::join(shape, ", "));
  if (shape.size() == 1) dims += ",";
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 255);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

namespace {
std::uint64_t raw(const NpyHeader& h, std::string_view data, std::uint64_t i) {
  const char* p = data.data() + i * static_cast<std::uint64_t>(h.item);
  std::uint64_t v = 0;
  for (int b = 0; b < h.item; ++b) {
    const std::uint64_t byte = static_cast<unsigned char>(p[h.big_endian ? h.item - 1 - b : b]);
    v |= byte << (8 * b);
  }
  return v;
}
}  // namespace

std::int64_t npy_integer(const NpyHeader& h, std::string_view data, std::uint64_t i) {
  const std::uint64_t v = raw(h, data, i);
  if (h.kind == 'f') {
    const double d = npy_number(h, data, i);
    return d >= -9e18 && d <= 9e18 ? static_cast<std::int64_t>(d) : INT64_MIN;
  }
  if (h.kind == 'i' && h.item < 8) {
    const int shift = 64 - 8 * h.item;
    return static_cast<std::int64_t>(v << shift) >> shift;
  }
  return h.kind == 'u' && v > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(v);
}

double npy_number(const NpyHeader& h, std::string_view data, std::uint64_t i) {
  if (h.kind != 'f') return static_cast<double>(npy_integer(h, data, i));
  const std::uint64_t v = raw(h, data, i);
  if (h.item == 2) return from_half(static_cast<std::uint16_t>(v));
  return h.item == 4 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(v)))
                     : std::bit_cast<double>(v);
}

}  // namespace sojourn
