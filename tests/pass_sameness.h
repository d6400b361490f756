// Checks that every pass of every pipeline keeps its promises.
#ifndef NESTOR_TESTS_PASS_SAMENESS_H_
#define NESTOR_TESTS_PASS_SAMENESS_H_

#include "fusion/pipeline.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tests/random_programs.h"

namespace nestor {

// Runs the pipeline on `program`, pass by pass. A program that a pass changed verifies, gives bit
// for bit the results from before the pass (`native` mode), prints to text that parses back, and is
// left untouched by the same pass run again; a pass that says that it changed nothing has not
// touched the program. Results of a pass that reorders rounding lie within the proven bounds of
// `unfused` instead, and later passes must keep these results; the number of such checks is
// added to `bounded`.
Finding CheckPasses(const fusion::Pipeline& pipeline, const loop::Program& unfused,
                    loop::Program program, const RunInputs& inputs, Counts& counts, int& bounded);

}  // namespace nestor

#endif  // NESTOR_TESTS_PASS_SAMENESS_H_
