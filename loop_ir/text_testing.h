// Loop programs from their texts, for tests.
#ifndef NESTOR_LOOP_IR_TEXT_TESTING_H_
#define NESTOR_LOOP_IR_TEXT_TESTING_H_

#include "absl/strings/string_view.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The program of a text, which the verifier accepts. Else the test fails and shows the text, and an
// empty program is returned.
Program Parsed(absl::string_view text);

// Item number n at the top of a program, without counting declarations. REQUIRES: there is one.
const Item& NestAt(const Program& program, size_t n);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_TEXT_TESTING_H_
