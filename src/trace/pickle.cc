// The pickle machine: a stack, a memo, and only the opcodes that build data.
#include "trace/pickle.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <map>

#include "trace/npy.h"

namespace sojourn {
namespace {

using K = PickleValue::Kind;
constexpr std::size_t kMaxValues = 20'000'000;

const char* const kAdmitted[] = {"collections.Counter",
                                 "collections.OrderedDict",
                                 "numpy.core.multiarray.scalar",
                                 "numpy._core.multiarray.scalar",
                                 "numpy.dtype",
                                 "torch._utils._rebuild_tensor_v2"};

class Machine {
 public:
  Machine(std::string_view in, const std::string& path) : in_(in), path_(path) {}

  Result<Pickle> run() {
    while (failure_.empty()) {
      if (at_ >= in_.size()) return stop("ends without a STOP");
      op_at_ = at_;
      const auto op = static_cast<unsigned char>(in_[at_++]);
      if (op == '.') {
        if (stack_.empty() || pop() == nullptr || failure_.size()) return stop("is empty");
        out_.root = top_;
        return std::move(out_);
      }
      step(op);
      if (out_.all.size() > kMaxValues) bad("holds more than 20 million values");
    }
    return stop(failure_);
  }

 private:
  tl::unexpected<Failure> stop(const std::string& why) const {
    return fail({path_}, fmt::format("byte {}", op_at_), "the pickle " + why,
                "only plain containers, Counters, NumPy numbers and PyTorch tensors are read; convert the file to "
                "JSON, CSV or .npy");
  }
  void bad(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }
  PickleValue* make(K kind) {
    out_.all.push_back(std::make_unique<PickleValue>());
    out_.all.back()->kind = kind;
    return out_.all.back().get();
  }
  void push(PickleValue* v) { stack_.push_back(v); }
  PickleValue* pop() {
    if (stack_.empty() || stack_.back()->is(K::mark)) {
      bad("is damaged (stack underflow)");
      return nullptr;
    }
    top_ = stack_.back();
    stack_.pop_back();
    return top_;
  }
  PickleValue* top(K kind) {
    if (stack_.empty() || !stack_.back()->is(kind)) {
      bad("is damaged (unexpected object on the stack)");
      return nullptr;
    }
    return stack_.back();
  }
  bool mark(std::vector<PickleValue*>& items) {
    std::size_t i = stack_.size();
    while (i > 0 && !stack_[i - 1]->is(K::mark)) --i;
    if (i == 0) {
      bad("is damaged (no mark)");
      return false;
    }
    items.assign(stack_.begin() + static_cast<std::ptrdiff_t>(i), stack_.end());
    stack_.resize(i - 1);
    return true;
  }
  std::uint64_t bytes(int n) {
    if (in_.size() - at_ < static_cast<std::size_t>(n)) {
      bad("is cut off");
      return 0;
    }
    std::uint64_t v = 0;
    for (int i = 0; i < n; ++i)
      v |= std::uint64_t{static_cast<unsigned char>(in_[at_ + static_cast<std::size_t>(i)])} << (8 * i);
    at_ += static_cast<std::size_t>(n);
    return v;
  }
  std::string_view take(std::uint64_t n) {
    if (in_.size() - at_ < n) {
      bad("is cut off");
      return {};
    }
    at_ += n;
    return in_.substr(at_ - n, n);
  }
  std::string_view line() {
    const auto end = in_.find('\n', at_);
    if (end == std::string_view::npos) {
      bad("is cut off");
      return {};
    }
    const auto out = in_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  void push_integer(std::int64_t v) {
    PickleValue* p = make(K::integer);
    p->integer = v;
    push(p);
  }
  void push_text(K kind, std::string_view s) {
    PickleValue* p = make(kind);
    p->text = std::string(s);
    push(p);
  }
  void push_name(const std::string& name) {
    bool ok = false;
    for (const char* a : kAdmitted) ok = ok || name == a;
    if (!ok && name.rfind("torch.", 0) == 0 && name.size() > 13 && name.substr(name.size() - 7) == "Storage") ok = true;
    if (!ok) return bad(fmt::format("names '{}', which is not admitted", name.substr(0, 100)));
    push_text(K::name, name);
  }
  void memoize(std::uint64_t i) {
    if (stack_.empty()) return bad("is damaged (memo of nothing)");
    memo_[i] = stack_.back();
  }
  void recall(std::uint64_t i) {
    const auto it = memo_.find(i);
    if (it == memo_.end()) return bad("is damaged (unknown memo)");
    push(it->second);
  }
  void tuple(std::size_t n) {
    PickleValue* t = make(K::tuple);
    t->items.resize(n);
    for (std::size_t i = n; i-- > 0;) t->items[i] = pop();
    push(t);
  }
  void set_items(const std::vector<PickleValue*>& items) {
    PickleValue* d = top(K::dict);
    if (d == nullptr || items.size() % 2 != 0) return bad("is damaged (odd items)");
    for (std::size_t i = 0; i < items.size(); i += 2) d->members.emplace_back(items[i], items[i + 1]);
  }
  void integers(const PickleValue* v, std::vector<std::int64_t>& out) {
    if (v == nullptr || !v->is(K::tuple)) return bad("holds a tensor of unknown layout");
    for (const PickleValue* i : v->items) {
      if (i == nullptr || !i->is(K::integer)) return bad("holds a tensor of unknown layout");
      out.push_back(i->integer);
    }
  }

  void reduce() {
    PickleValue* args = pop();
    PickleValue* callee = pop();
    if (args == nullptr || callee == nullptr || !args->is(K::tuple) || !callee->is(K::name))
      return bad("calls something that is not admitted");
    const std::string& f = callee->text;
    const auto& a = args->items;
    if (f == "collections.Counter" || f == "collections.OrderedDict") {
      if (a.empty()) return push(make(K::dict));
      if (a.size() == 1 && a[0] != nullptr && a[0]->is(K::dict)) {
        PickleValue* d = make(K::dict);
        d->members = a[0]->members;
        copied_ += d->members.size();
        if (copied_ > kMaxValues) return bad("holds more than 20 million values");
        return push(d);
      }
    } else if (f == "numpy.dtype") {
      if (!a.empty() && a[0] != nullptr && a[0]->is(K::text)) return push_text(K::dtype, a[0]->text);
    } else if (f.find("multiarray.scalar") != std::string::npos) {
      if (a.size() == 2 && a[0] != nullptr && a[1] != nullptr && a[0]->is(K::dtype) && a[1]->is(K::bytes))
        return scalar(*a[0], *a[1]);
    } else if (f == "torch._utils._rebuild_tensor_v2") {
      if (a.size() >= 4 && a[0] != nullptr && a[0]->is(K::storage) && a[1] != nullptr && a[1]->is(K::integer)) {
        PickleValue* t = make(K::tensor);
        t->items.push_back(a[0]);
        t->integer = a[1]->integer;
        integers(a[2], t->shape);
        integers(a[3], t->stride);
        return push(t);
      }
    }
    bad(fmt::format("calls {} in an unknown way", f));
  }
  void scalar(const PickleValue& dtype, const PickleValue& raw) {
    NpyHeader h;
    const std::string& d = dtype.text;
    const std::string digits = d.size() == 2 ? d.substr(1) : "";
    if (digits != "1" && digits != "2" && digits != "4" && digits != "8")
      return bad(fmt::format("holds a NumPy number of type '{}'", d.substr(0, 20)));
    h.kind = d[0];
    h.item = digits[0] - '0';
    h.big_endian = dtype.type == ">";
    if ((h.kind != 'i' && h.kind != 'u' && h.kind != 'f' && h.kind != 'b') || (h.kind == 'f' && h.item == 1) ||
        raw.text.size() != static_cast<std::size_t>(h.item))
      return bad(fmt::format("holds a NumPy number of type '{}'", d.substr(0, 20)));
    PickleValue* v = make(h.kind == 'f' ? K::real : K::integer);
    if (h.kind == 'f')
      v->real = npy_number(h, raw.text, 0);
    else
      v->integer = npy_integer(h, raw.text, 0);
    push(v);
  }
  void build() {
    PickleValue* state = pop();
    if (stack_.empty() || state == nullptr) return bad("is damaged (BUILD of nothing)");
    PickleValue* target = stack_.back();
    if (target->is(K::dtype) && state->is(K::tuple) && state->items.size() > 1 && state->items[1] != nullptr &&
        state->items[1]->is(K::text)) {
      target->type = state->items[1]->text;
      return;
    }
    if (!target->is(K::dict))
      bad("sets the state of an object, which is not admitted");  // OrderedDict attributes: ignored
  }
  void persistent() {
    PickleValue* id = pop();
    if (id == nullptr || !id->is(K::tuple) || id->items.size() < 5)
      return bad("has a persistent id that is not a PyTorch storage");
    const auto& a = id->items;
    if (a[0] == nullptr || a[1] == nullptr || a[2] == nullptr || a[4] == nullptr || a[0]->text != "storage" ||
        !a[1]->is(K::name) || !a[2]->is(K::text) || !a[4]->is(K::integer))
      return bad("has a persistent id that is not a PyTorch storage");
    PickleValue* s = make(K::storage);
    s->text = a[2]->text;
    s->type = a[1]->text.substr(a[1]->text.rfind('.') + 1);
    s->integer = a[4]->integer;
    push(s);
  }
  void long_integer(std::uint64_t n) {
    const std::string_view raw = take(n);
    if (raw.size() > 8) return bad("holds an integer of more than 64 bits");
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) v |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    if (!raw.empty() && raw.size() < 8 && (raw.back() & 0x80) != 0) v |= ~std::uint64_t{0} << (8 * raw.size());
    push_integer(static_cast<std::int64_t>(v));
  }
  void append(bool many) {
    std::vector<PickleValue*> items;
    if (many) {
      if (!mark(items)) return;
    } else {
      items.push_back(pop());
    }
    PickleValue* list = top(K::list);
    if (list != nullptr) list->items.insert(list->items.end(), items.begin(), items.end());
  }
  void boolean(bool value) {
    PickleValue* b = make(K::boolean);
    b->integer = value;
    push(b);
  }

  void step(unsigned char op) {
    std::vector<PickleValue*> items;
    switch (op) {
      case 0x80:
        bytes(1);
        break;  // PROTO
      case 0x95:
        bytes(8);
        break;  // FRAME
      case '(':
        push(make(K::mark));
        break;  // MARK
      case '0':
        pop();
        break;  // POP
      case '1':
        mark(items);
        break;  // POP_MARK
      case '2':
        if (!stack_.empty()) push(stack_.back());
        break;  // DUP
      case 'N':
        push(make(K::none));
        break;
      case 0x88:
        boolean(true);
        break;
      case 0x89:
        boolean(false);
        break;
      case 'K':
        push_integer(static_cast<std::int64_t>(bytes(1)));
        break;
      case 'M':
        push_integer(static_cast<std::int64_t>(bytes(2)));
        break;
      case 'J':
        push_integer(static_cast<std::int32_t>(bytes(4)));
        break;
      case 0x8a:
        long_integer(bytes(1));
        break;
      case 0x8b:
        long_integer(bytes(4));
        break;
      case 'I':
      case 'L': {
        std::string_view s = line();
        if (op == 'I' && (s == "00" || s == "01")) return boolean(s == "01");
        if (!s.empty() && s.back() == 'L') s.remove_suffix(1);
        std::int64_t v = 0;
        const auto r = std::from_chars(s.data(), s.data() + s.size(), v);
        if (r.ec != std::errc() || r.ptr != s.data() + s.size()) bad("holds a damaged integer");
        push_integer(v);
        break;
      }
      case 'G': {
        PickleValue* f = make(K::real);
        f->real = std::bit_cast<double>(__builtin_bswap64(bytes(8)));
        push(f);
        break;
      }
      case 0x8c:
        push_text(K::text, take(bytes(1)));
        break;
      case 'X':
        push_text(K::text, take(bytes(4)));
        break;
      case 0x8d:
        push_text(K::text, take(bytes(8)));
        break;
      case 'V':
        push_text(K::text, line());
        break;
      case 'U':
        push_text(K::text, take(bytes(1)));
        break;  // SHORT_BINSTRING (Python 2)
      case 'C':
        push_text(K::bytes, take(bytes(1)));
        break;
      case 'B':
        push_text(K::bytes, take(bytes(4)));
        break;
      case 0x8e:
        push_text(K::bytes, take(bytes(8)));
        break;
      case ']':
        push(make(K::list));
        break;
      case '}':
        push(make(K::dict));
        break;
      case ')':
        push(make(K::tuple));
        break;
      case 0x85:
        tuple(1);
        break;
      case 0x86:
        tuple(2);
        break;
      case 0x87:
        tuple(3);
        break;
      case 't':
      case 'l':
        if (mark(items)) {
          PickleValue* t = make(op == 't' ? K::tuple : K::list);
          t->items = std::move(items);
          push(t);
        }
        break;
      case 'd':
        if (mark(items)) {
          push(make(K::dict));
          set_items(items);
        }
        break;
      case 'a':
        append(false);
        break;
      case 'e':
        append(true);
        break;
      case 's': {
        PickleValue* value = pop();
        PickleValue* key = pop();
        if (failure_.empty()) set_items({key, value});
        break;
      }
      case 'u':
        if (mark(items)) set_items(items);
        break;
      case 'q':
        memoize(bytes(1));
        break;
      case 'r':
        memoize(bytes(4));
        break;
      case 0x94:
        memoize(memo_.size());
        break;
      case 'h':
        recall(bytes(1));
        break;
      case 'j':
        recall(bytes(4));
        break;
      case 'c': {
        const std::string module(line());
        push_name(module + "." + std::string(line()));
        break;
      }
      case 0x93: {
        PickleValue* name = pop();
        PickleValue* module = pop();
        if (name != nullptr && module != nullptr) push_name(module->text + "." + name->text);
        break;
      }
      case 'R':
        reduce();
        break;
      case 'b':
        build();
        break;
      case 'Q':
        persistent();
        break;
      default:
        bad(fmt::format("uses opcode 0x{:02x}, which is not admitted", op));
    }
  }

  std::string_view in_;
  const std::string& path_;
  std::size_t at_ = 0, op_at_ = 0, copied_ = 0;
  std::vector<PickleValue*> stack_;
  std::map<std::uint64_t, PickleValue*> memo_;
  std::string failure_;
  PickleValue* top_ = nullptr;
  Pickle out_;
};

}  // namespace

const PickleValue* PickleValue::get(std::string_view key) const {
  for (const auto& [k, v] : members)
    if (k != nullptr && k->is(Kind::text) && k->text == key) return v;
  return nullptr;
}

Result<Pickle> read_pickle(std::string_view bytes, const std::string& path) { return Machine(bytes, path).run(); }

}  // namespace sojourn
