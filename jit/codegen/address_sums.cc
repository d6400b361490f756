// A subscript that is affine splits into terms (AtomSum), each of numbers and symbols, which go to
// the coefficient, times one index or other value of a loop, the atom. The terms of all axes with
// one atom are one summand:
//
//   x[i, j + N*i]  of f32[.., M]:   (4*M + 4*N) * i   +   4 * j
//
// What consists of sizes and strides alone is summed up when the table is filled, not by the code.
#include "jit/codegen/address_sums.h"

#include "absl/algorithm/container.h"

namespace nestor::jit {
namespace {

// Addresses are computed modulo 2^64: an address that is not in range is not accessed.
int64_t WrappingProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Adds a part to the summand of the same atom or computed number; there is one of each.
void AddPart(AddressSummands& summands, IndexId atom, const ComputedPlace& computed,
             TableSlot::Part part) {
  if (part.factor == 0) return;
  const auto is_number = [](const TableSlot::Part& p) {
    return p.symbols.value < 0 && p.tensor.value < 0;
  };
  const bool is_fixed = atom.value < 0 && computed.value.kind == Operand::kNone;
  for (AddressSummand& summand : summands) {
    if (summand.atom != atom || !(summand.computed.value == computed.value)) continue;
    // Constant summands become a displacement, separate from those known only at run time, which go
    // into the pointer: so the places in a window's row share a pointer, though the distance of its
    // rows may be unknown.
    if (is_fixed && is_number(part) != is_number(summand.parts[0])) continue;
    summand.parts.push_back(part);
    return;
  }
  summands.push_back({atom, computed, {part}});
}

}  // namespace

// The bytes from one element of a tensor that lies compactly to the next along the axis; nullopt:
// some later extents are symbols.
absl::optional<int64_t> AddressSums::CompactStride(const loop::TensorInfo& tensor, int axis) const {
  int64_t bytes = ByteSize(tensor.type);
  for (size_t i = static_cast<size_t>(axis) + 1; i < tensor.shape.size(); ++i) {
    const absl::optional<int64_t> extent = program_.pool.ConstValue(tensor.shape[i]);
    if (!extent || __builtin_mul_overflow(bytes, *extent, &bytes)) return absl::nullopt;
  }
  return bytes;
}

// The stride of an axis: a number of bytes if it is known, else a slot.
TableSlot::Part AddressSums::StridePart(loop::TensorId tensor, int axis) const {
  const loop::TensorInfo& info = program_[tensor];
  const AxisLayout layout = places_[tensor.value].layout[axis];
  if (layout == AxisLayout::kZero) return {0, {}, {}, 0};
  if (layout == AxisLayout::kUnit) return {ByteSize(info.type), {}, {}, 0};
  const auto bytes = layout == AxisLayout::kCompact ? CompactStride(info, axis) : absl::nullopt;
  if (bytes) return {*bytes, {}, {}, 0};
  return {1, {}, tensor, axis};
}

const AtomSum::OrderedTerms* AddressSums::TermsOf(IndexId e) {
  const auto [known, is_new] = terms_.try_emplace(e);
  if (is_new) {
    const AtomSum sum = AtomSum::Of(program_.pool, e);
    if (sum.exact()) known->second = sum.InOrder(program_.pool);
  }
  return known->second ? &*known->second : nullptr;
}

// Asked for each access; places are split into summands once.
AddressSummands* AddressSums::OfFollowed(loop::TensorId tensor, const IndexList& place) {
  const auto [known, is_new] = followed_.try_emplace({tensor, place});
  if (is_new && absl::c_all_of(place, [&](IndexId e) { return IsFollowed(e); })) {
    known->second = Of(tensor, place, {});
  }
  return known->second ? &*known->second : nullptr;
}

// Each term of each axis is (factor and symbols, for the table) * (index or other value of a loop),
// times the axis' stride. x[2*i + n*j] of f32 gives 8 * i and 4n * j.
AddressSummands AddressSums::Of(loop::TensorId tensor, const IndexList& place,
                                absl::Span<const ComputedPlace> computed) {
  AddressSummands summands;
  for (size_t axis = 0; axis < place.size(); ++axis) {
    const TableSlot::Part stride = StridePart(tensor, static_cast<int>(axis));
    const IndexId e = place[axis];
    const AtomSum::OrderedTerms* const terms = TermsOf(e);
    if (terms == nullptr) {
      AddPart(summands, {}, computed[axis], stride);
      continue;
    }
    for (const AtomSum::Term& term : *terms) {
      TableSlot::Part part = stride;
      part.factor = WrappingProduct(part.factor, term.coefficient);
      IndexId atom;
      for (IndexId factor : term.atoms) {
        if (program_.pool.HasVar(factor)) {
          atom = factor;
        } else {
          part.symbols = part.symbols.value < 0 ? factor : program_.pool.Mul(part.symbols, factor);
        }
      }
      AddPart(summands, atom, {}, part);
    }
  }
  return summands;
}

// Known parts are folded to one number; those that depend on sizes are summed up when the table is
// filled, not by the code.
Operand AddressSums::Coefficient(const std::vector<TableSlot::Part>& parts, int64_t times) {
  if (times == 0) return Operand::Immediate(0);
  TableSlot slot{TableSlot::kCoefficient};
  int64_t constant = 0;
  for (TableSlot::Part part : parts) {
    part.factor = WrappingProduct(part.factor, times);
    if (part.symbols.value < 0 && part.tensor.value < 0) {
      constant = static_cast<int64_t>(static_cast<uint64_t>(constant) +
                                      static_cast<uint64_t>(part.factor));
    } else {
      slot.parts.push_back(part);
    }
  }
  if (slot.parts.empty()) return Operand::Immediate(constant);
  if (constant != 0) slot.parts.push_back({constant, {}, {}, 0});
  return Operand::Table(table_.Slot(slot));
}

}  // namespace nestor::jit
