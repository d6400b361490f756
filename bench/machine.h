// What this machine can do, for the head of the report.
#ifndef NESTOR_BENCH_MACHINE_H_
#define NESTOR_BENCH_MACHINE_H_

#include <string>

#include "bench/thread_team.h"

namespace nestor::bench {

// Lines of text: the rate of multiply-adds in registers and in OpenBLAS's matrix
// product, which shows what of it can be had with loads and stores; and the memory's
// rates for reading and copying 64 MiB.
std::string MachineText(ThreadTeam& team);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_MACHINE_H_
