// Sizes are drawn until the op's shapes allow them and the work is small; then the
// values, from a mixture in which special ones, ties and indices in and out of range
// are frequent.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "check/engines/program_generator.h"
#include "check/random.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

class InputMaker {
 public:
  InputMaker(const Op& op, uint64_t seed, const InputOptions& options)
      : op_(op), options_(options), random_(seed), live_(Reachable(op.graph, op.ResultNodes())) {
    for (const Argument& arg : op.args) {
      for (IndexId extent : arg.shape) {
        VisitIndex(op.graph.pool(), extent, [&](IndexId id, const IndexNode& node) {
          if (node.kind == IndexKind::kSymbol) AddDimension(op.graph.pool().SymbolName(id));
        });
      }
    }
  }

  // Tries sizes until the op has few elements, ever smaller ones; inputs that are to be refused are
  // kept now and then, to see that all engines refuse them.
  RandomInputsResult Run() {
    int64_t largest = 4;
    for (int attempt = 0; attempt < 40; ++attempt) {
      DrawSymbols(largest);
      const int64_t elements = Elements();
      if (elements >= 0 && elements <= options_.max_elements) break;
      // Only where there were too many; sizes that the op refuses are drawn again from the same
      // range.
      if (elements > options_.max_elements) largest = std::max<int64_t>(1, largest - 1);
      // Some runs are to be refused.
      if (elements < 0 && ArgumentsFit() && random_.Chance(15)) break;
    }
    // Shapes that are refused have no tensors; extents of at most 1 nearly always have some.
    if (options_.extremes && !ArgumentsFit()) DrawSymbols(1, /*extremes=*/false);
    for (const Argument& arg : op_.args) AddTensor(arg);
    GiveDimensions();
    return std::move(result_);
  }

 private:
  void AddDimension(const std::string& name) {
    if (name[0] != '$' && std::find(dims_.begin(), dims_.end(), name) == dims_.end())
      dims_.push_back(name);
  }

  // ---- Sizes

  void DrawSymbols(int64_t largest) { DrawSymbols(largest, options_.extremes); }
  void DrawSymbols(int64_t largest, bool extremes) {
    extremes_ = extremes;
    binding_ = Binding();
    result_.inputs.params.clear();
    for (const std::string& name : dims_) {
      const int64_t extent = random_.Pick({0, 1, 1, 2, 2, 2, 3, 3, 3, 4});
      binding_.symbols[name] = std::min(extent, largest);
      if (extremes && random_.Chance(3))
        binding_.symbols[name] = random_.Pick({kMaxExtent, kMaxExtent / 4});
    }
    for (const ParamInfo& param : op_.params) DrawParam(param);
  }

  void DrawParam(const ParamInfo& param) {
    Scalar value = param.value.value_or(Scalar::Zero(param.type));
    if (!param.value || random_.Chance(60)) {
      value = IsInteger(param.type) ? IntegerWithin(param) : Value(param.type);
      result_.inputs.params[param.name] = value;
    }
    binding_.params[param.name] = value;
    if (IsInteger(param.type)) binding_.symbols[param.name] = value.ToInt();
  }

  Scalar IntegerWithin(const ParamInfo& param) {
    int64_t low = IsUnsigned(param.type) || random_.Chance(80) ? 0 : -2, high = 4;
    if (param.low) low = std::max(low, param.low->ToInt());
    if (param.high) high = std::min(high, param.high->ToInt());
    if (extremes_ && random_.Chance(30)) return ExtremeWithin(param);
    return Scalar::Integer(param.type, random_.Between(low, std::max(low, high)));
  }

  // At the ends of int64 or of the $param's range, whichever is narrower.
  Scalar ExtremeWithin(const ParamInfo& param) {
    Scalar value = Scalar::Integer(param.type, random_.Extreme());
    if (!value.FitsInt64())
      value = Scalar::Integer(param.type, std::numeric_limits<int64_t>::max());
    if (param.low && value.ToInt() < param.low->ToInt()) value = *param.low;
    if (param.high && value.ToInt() > param.high->ToInt()) value = *param.high;
    return value;
  }

  // The elements of all tensors of a run; -1 where some shape is refused.
  int64_t Elements() const {
    int64_t sum = 0;
    if (!ArgumentsFit()) return -1;
    for (int i = 0; i < op_.graph.size(); ++i) {
      if (!live_[i]) continue;
      const auto shape = EvaluateShape(op_.graph.pool(), op_.graph.shape(NodeId{i}), binding_, "");
      if (!shape.ok()) return -1;
      const auto count = NumElements(*shape);
      sum += count.ok() ? std::min(*count, options_.max_elements + 1) : options_.max_elements + 1;
    }
    return sum;
  }

  bool ArgumentsFit() const {
    for (const Argument& arg : op_.args) {
      const auto shape = EvaluateShape(op_.graph.pool(), arg.shape, binding_, "");
      if (!shape.ok()) return false;
      const auto count = NumElements(*shape);
      if (!count.ok() || *count > options_.max_elements) return false;
    }
    return true;
  }

  // A dimension that no tensor binds must be given; others may be.
  void GiveDimensions() {
    const std::vector<std::string> unbound = UnboundDimensions(SignatureOf(op_), result_.inputs);
    for (const std::string& name : dims_) {
      const bool needed = std::find(unbound.begin(), unbound.end(), name) != unbound.end();
      if (needed || random_.Chance(10)) result_.inputs.dims[name] = binding_.symbols[name];
    }
  }

  // ---- Values

  Scalar Value(DType type) {
    if (type == DType::kBool) return Scalar::Of(type, random_.Chance(50));
    return IsFloat(type) ? FloatValue(type) : IntegerValue(type);
  }

  Scalar IntegerValue(DType type) {
    const int kind = static_cast<int>(random_.Below(100));
    if (kind < 70 || options_.moderate) {
      const int64_t value = random_.Between(-1, 4);
      return Scalar::Integer(type, IsUnsigned(type) ? std::abs(value) : value);
    }
    if (kind < 85) return Scalar::Integer(type, random_.Between(0, 100));
    if (kind < 90) return Lowest(type);
    if (kind < 95) return Highest(type);
    const uint64_t bits = random_.Bits();
    return VisitType(type, [&](auto zero) {
      return Scalar{type, ToBits(FromBits<decltype(zero)>(bits))};
    });
  }

  Scalar FloatValue(DType type) {
    const int kind = static_cast<int>(random_.Below(100));
    const double uniform = static_cast<double>(random_.Bits() >> 11) * 0x1p-53;
    if (options_.moderate) return Scalar::Float(type, 2 * uniform - 1);
    if (kind < 45) return Scalar::Float(type, static_cast<double>(random_.Between(-3, 3)));
    if (kind < 70) return Scalar::Float(type, 8 * uniform - 4);
    if (kind < 75) return Scalar::Float(type, -0.0);
    if (kind < 80) return Scalar::Float(type, 0.0);
    if (kind < 83) return Highest(type);
    if (kind < 86) return Lowest(type);
    if (kind < 89) return Scalar::Float(type, std::nan(""));
    // Subnormals, then any magnitude.
    const uint64_t bits = random_.Bits();
    if (kind < 93) return Scalar{type, (1 + bits % 60) | (bits >> 63 ? SignBit(type) : 0)};
    return VisitType(type, [&](auto zero) {
      return Scalar{type, ToBits(FromBits<decltype(zero)>(bits))}.Canonical();
    });
  }

  static Bits SignBit(DType type) { return Bits{1} << (8 * ByteSize(type) - 1); }

  // ---- Tensors

  void AddTensor(const Argument& arg) {
    const auto extents = EvaluateShape(op_.graph.pool(), arg.shape, binding_, "");
    Dims shape = extents.ok() ? *extents : Dims(arg.shape.size(), 0);
    // Column-major or reversed, now and then.
    // A strided input has the same shape: the tensor is made in the reversed order of axes, and its
    // view is turned back.
    const bool turned = random_.Chance(15), reversed = random_.Chance(15);
    if (turned) std::reverse(shape.begin(), shape.end());
    result_.tensors.push_back(*Tensor::Create(arg.type, shape));
    Tensor& tensor = result_.tensors.back();
    char* element = static_cast<char*>(tensor.data());
    for (int64_t i = 0; i < tensor.num_elements(); ++i, element += ByteSize(arg.type))
      Store(Value(arg.type), element);
    TensorView view = tensor.view();
    if (turned) {
      std::reverse(view.shape.begin(), view.shape.end());
      std::reverse(view.strides.begin(), view.strides.end());
    }
    if (reversed && tensor.num_elements() > 0) {
      view.data =
          static_cast<char*>(tensor.data()) + (tensor.num_elements() - 1) * ByteSize(arg.type);
      for (int64_t& stride : view.strides) stride = -stride;
    }
    result_.inputs.tensors[arg.name] = view;
  }

  const Op& op_;
  const InputOptions& options_;
  Random random_;
  const std::vector<bool> live_;
  std::vector<std::string> dims_;
  bool extremes_ = false;  // may be drawn
  Binding binding_;
  RandomInputsResult result_;
};

}  // namespace

RandomInputsResult RandomInputs(const Op& op, uint64_t seed, const InputOptions& options) {
  return InputMaker(op, seed, options).Run();
}

}  // namespace nestor
