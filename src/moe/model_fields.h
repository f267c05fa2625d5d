// The record of a preset's keys tied to the fields of ModelShape and Attention. Private to src/moe/model_*.cc.
#pragma once
#include <string>
#include <vector>

#include "sojourn/model.h"
#include "sojourn/params.h"

namespace sojourn {

template <class T>
struct ModelField {
  Param param;
  void (*set)(T&, const Value&) = nullptr;
  Value (*get)(const T&) = nullptr;
};

/// Keys of the file itself, in the order presets write them.
[[nodiscard]] const std::vector<ModelField<ModelShape>>& shape_fields();
/// Keys of [attention] and [attention_alt] but `kind`; `kinds` lists who may use one.
struct AttentionField : ModelField<Attention> {
  std::vector<AttentionKind> kinds;
};
[[nodiscard]] const std::vector<AttentionField>& attention_fields();
[[nodiscard]] const std::vector<std::string>& attention_kinds();
[[nodiscard]] AttentionKind attention_kind(const std::string& name);

}  // namespace sojourn
