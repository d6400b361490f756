// The macro ops as tables in Markdown, for docs/macro_ops.md.
#ifndef NESTOR_CLI_OPS_TABLE_H_
#define NESTOR_CLI_OPS_TABLE_H_

#include <string>

namespace nestor::cli {

// A heading and a table for each family, in the order of the library: name, summary, characters
// of the definition, blocks after fusion of the op and of its gradient ("-": it has none).
std::string OpsTable();

}  // namespace nestor::cli

#endif  // NESTOR_CLI_OPS_TABLE_H_
