// Saved training states; see train_state.h.
#include "study/train_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/hash.h"

namespace sojourn {
namespace {

constexpr const char* kMagic = "sojourn.train-state/1\n";

/// Calls visit(pointer, bytes) for everything of fixed size.
template <class Visit>
void visit_fixed(TrainState& s, const Visit& visit) {
  visit(&s.episode, sizeof s.episode);
  visit(&s.steps, sizeof s.steps);
  visit(&s.learned, sizeof s.learned);
  visit(&s.averaged, sizeof s.averaged);
  visit(&s.open, sizeof s.open);
  visit(&s.open_steps, sizeof s.open_steps);
  visit(&s.open_learned, sizeof s.open_learned);
  Adam& adam = s.dqn.adam();
  visit(&adam.t, sizeof adam.t);
  for (Eigen::VectorXf* v : {&s.dqn.online().theta(), &s.dqn.target().theta(), &s.average, &adam.m, &adam.v})
    visit(v->data(), static_cast<std::size_t>(v->size()) * sizeof(float));
  s.replay.save(visit);
}

tl::unexpected<Failure> cannot(const std::string& path, const std::string& what) {
  return fail({path, 0, 0}, "--out", fmt::format("{}: {}", what, std::strerror(errno)),
              "give a path in a folder you may write to", 3);
}

}  // namespace

std::string train_state_bytes(TrainState& state, const std::string& options_sha256) {
  Adam& adam = state.dqn.adam();
  const Eigen::Index n = state.dqn.online().theta().size();
  if (adam.m.size() == 0) adam.m = adam.v = Eigen::VectorXf::Zero(n);
  if (state.average.size() == 0) state.average = Eigen::VectorXf::Zero(n);
  std::string out = kMagic + options_sha256;
  const auto put = [&](const void* data, std::size_t bytes) { out.append(static_cast<const char*>(data), bytes); };
  for (std::size_t count : {state.curve.size(), state.validation.size()}) put(&count, sizeof count);
  put(state.curve.data(), state.curve.size() * sizeof(TrainPoint));
  put(state.validation.data(), state.validation.size() * sizeof(ValidationPoint));
  visit_fixed(state, put);
  return out + sha256_hex(out);
}

Result<bool> read_train_state(const std::string& path, const std::string& options_sha256, TrainState& state) {
  const SourceSpan where{path, 0, 0};
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return fail(where, "--resume", "cannot be read", "start again without --resume", 3);
  const std::string bytes = text.str();
  const std::string head = kMagic + options_sha256;
  constexpr std::size_t kHash = 64;
  if (bytes.size() < head.size() + kHash || bytes.compare(0, std::strlen(kMagic), kMagic) != 0 ||
      sha256_hex(std::string_view(bytes).substr(0, bytes.size() - kHash)) != bytes.substr(bytes.size() - kHash))
    return fail(where, "--resume", "is not a whole training state", "delete it and start again");
  if (bytes.compare(0, head.size(), head) != 0)
    return fail(where, "--resume", "belongs to a run with other options",
                "repeat the options of that run, or write to another --out");
  std::size_t at = head.size();
  bool enough = true;
  const auto take = [&](void* into, std::size_t n) {
    enough = enough && at + n + kHash <= bytes.size();
    if (!enough) return;
    std::memcpy(into, bytes.data() + at, n);
    at += n;
  };
  std::size_t curve = 0, validation = 0;
  take(&curve, sizeof curve);
  take(&validation, sizeof validation);
  if (enough && curve < bytes.size() && validation < bytes.size()) {
    state.curve.resize(curve);
    state.validation.resize(validation);
    take(state.curve.data(), curve * sizeof(TrainPoint));
    take(state.validation.data(), validation * sizeof(ValidationPoint));
    Adam& adam = state.dqn.adam();
    adam.m = adam.v = state.average = Eigen::VectorXf::Zero(state.dqn.online().theta().size());
    visit_fixed(state, take);
  }
  if (!enough || at + kHash != bytes.size())
    return fail(where, "--resume", "has another size than this version writes", "delete it and start again");
  return true;
}

Result<bool> write_durably(const std::string& path, const std::string& bytes) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, getpid());
  const int fd = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return cannot(path, "cannot be written");
  std::size_t at = 0;
  bool good = true;
  while (good && at < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) at += static_cast<std::size_t>(n);
  }
  good = good && ::fsync(fd) == 0;
  good = ::close(fd) == 0 && good;
  good = good && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (!good) {
    const auto failure = cannot(path, "cannot be written");
    ::unlink(temporary.c_str());
    return failure;
  }
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int dir = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    (void)::fsync(dir);
    ::close(dir);
  }
  return true;
}

}  // namespace sojourn
