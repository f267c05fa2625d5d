// Reading, writing and finding frozen Q-networks; the format is described in dqn_checkpoint.h.
#include "policy/dqn_checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.h"
#include "policy/dqn.h"

namespace sojourn {
namespace {

constexpr const char* kSchema = "sojourn.dqn/1";
constexpr const char* kRemedy = "make one with sojourn train, or leave hcrmap.checkpoint at its default";

std::string hash_of(const Mlp& network, double margin) {
  std::string bytes;
  for (Eigen::Index i = 0; i < network.theta().size(); ++i) {
    std::uint32_t word;
    const float value = network.theta()[i];
    std::memcpy(&word, &value, sizeof word);
    for (int k = 0; k < 4; ++k) bytes.push_back(static_cast<char>(word >> (8 * k) & 0xFFU));
  }
  return sha256_hex(bytes + fmt::format("{}", margin));
}

}  // namespace

std::string dqn_checkpoint_text(const DqnCheckpoint& c) {
  const Mlp& net = *c.network;
  std::string out = fmt::format("{{\n \"schema\": \"{}\",\n \"hidden\": {},\n \"margin\": {},\n \"features\": [",
                                kSchema, net.hidden(), c.margin);
  const auto& names = dqn_feature_names();
  for (std::size_t i = 0; i < names.size(); ++i) out += fmt::format("{}\"{}\"", i ? ", " : "", names[i]);
  out += fmt::format("],\n \"weights_sha256\": \"{}\",\n \"training\": {},\n \"weights\": [", hash_of(net, c.margin),
                     c.training.empty() ? "{}" : c.training);
  for (Eigen::Index i = 0; i < net.theta().size(); ++i)
    out += fmt::format("{}{:.9g}", i == 0 ? "\n  " : i % 12 == 0 ? ",\n  " : ", ", net.theta()[i]);
  out += "\n ]\n}\n";
  return out;
}

Result<DqnCheckpoint> parse_dqn_checkpoint(const std::string& text, const std::string& name) {
  const SourceSpan where{name, 0, 0};
  const auto wrong = [&](const std::string& what) { return fail(where, "checkpoint", what, kRemedy); };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains("schema") || json["schema"] != kSchema)
    return wrong(fmt::format("is not a checkpoint of the slow loop ({})", kSchema));
  if (!json.contains("features") || json["features"] != nlohmann::json(dqn_feature_names()))
    return wrong("was trained on other features than this version computes");
  const auto hidden = json.value("hidden", nlohmann::json());
  if (!hidden.is_number_integer() || hidden.get<std::int64_t>() < 1 || hidden.get<std::int64_t>() > 256)
    return wrong("'hidden' is not a number from 1 to 256");
  auto net = std::make_shared<Mlp>(kSlowFeatures, static_cast<int>(hidden.get<std::int64_t>()));
  const auto weights = json.value("weights", nlohmann::json());
  if (!weights.is_array() || weights.size() != static_cast<std::size_t>(net->theta().size()))
    return wrong(
        fmt::format("holds {} weights instead of {}", weights.is_array() ? weights.size() : 0, net->theta().size()));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!weights[i].is_number()) return wrong(fmt::format("weight {} is not a number", i));
    net->theta()[static_cast<Eigen::Index>(i)] = static_cast<float>(weights[i].get<double>());
  }
  DqnCheckpoint out;
  const auto margin = json.value("margin", nlohmann::json());
  if (!margin.is_number()) return wrong("'margin' is not a number");
  out.margin = margin.get<double>();
  out.weights_sha256 = hash_of(*net, out.margin);
  const auto said = json.value("weights_sha256", nlohmann::json());
  if (!said.is_string() || said.get<std::string>() != out.weights_sha256)
    return wrong("its weights do not have the hash it states");
  if (json.contains("training")) out.training = json["training"].dump();
  out.network = std::move(net);
  return out;
}

Result<DqnCheckpoint> load_dqn_checkpoint(const std::string& name, const std::vector<std::string>& dirs) {
  if (name == kShippedCheckpoint) return parse_dqn_checkpoint(shipped_dqn_text(), "checkpoints/hcrmap-dqn.json");
  std::vector<std::string> tried{name};
  if (name.find('/') == std::string::npos)
    for (const std::string& dir : dirs) tried.push_back(dir + "/checkpoints/" + name + ".json");
  for (const std::string& path : tried) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) continue;
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return fail({path, 0, 0}, "checkpoint", "cannot be read", kRemedy, 3);
    return parse_dqn_checkpoint(text.str(), path);
  }
  return fail({"<command line>", 0, 0}, "checkpoint", fmt::format("'{}' is neither a file nor in checkpoints/", name),
              kRemedy);
}

Result<bool> resolve_dqn_checkpoint(ParamSet& params, const std::vector<std::string>& dirs) {
  if (!params.has("checkpoint") || !params.has("slow") || params.word("slow") != "dqn") return true;
  const std::string name = params.word("checkpoint");
  auto loaded = load_dqn_checkpoint(name, dirs);
  if (!loaded) return tl::unexpected<Failure>(loaded.error());
  if (name == kShippedCheckpoint || name.find('/') != std::string::npos) return true;
  for (const std::string& dir : dirs) {
    std::error_code ignored;
    const std::string path = dir + "/checkpoints/" + name + ".json";
    if (!std::filesystem::is_regular_file(name, ignored) && std::filesystem::is_regular_file(path, ignored)) {
      params.set("checkpoint", path);
      break;
    }
  }
  return true;
}

}  // namespace sojourn
