// The peak rates of this machine, for the head of the report.
#ifndef NESTOR_BENCH_MACHINE_H_
#define NESTOR_BENCH_MACHINE_H_

#include <string>

#include "bench/thread_team.h"

namespace nestor::bench {

// Lines of text: the rate of multiply-adds in registers and in OpenBLAS's matrix
// product, which shows how much of it can be reached with loads and stores; and the memory's rates
// for reading and copying 64 MiB.
std::string MachineText(ThreadTeam& team);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_MACHINE_H_
