// The table of all references, which are in one file for each family (naive_*.cc).
#include "tests/naive_ops.h"

namespace nestor {

const NaiveTable& NaiveOps() {
  static const NaiveTable& all = *[] {
    auto* table = new NaiveTable;
    for (NaiveTable (*family)() :
         {NaiveMatmuls, NaiveConvolutions,  NaivePools,      NaiveSoftmaxes,  NaiveLosses,
          NaiveNorms,   NaiveAttentions,    NaiveEmbeddings, NaiveReductions, NaiveSorts,
          NaiveMoves,   NaivePads,          NaiveGathers,    NaiveWindows,    NaiveResizes,
          NaiveSamples, NaiveQuantizations, NaiveRandoms,    NaiveOptimizers, NaiveRecurrences}) {
      table->merge(family());
    }
    return table;
  }();
  return all;
}

}  // namespace nestor
