#include "bitfed/mpi/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace bitfed {
namespace {

TEST(LauncherTest, RanksOfANodeAreToldApart) {
  const char* const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
  for (const char* name : names) unsetenv(name);
  EXPECT_EQ(local_rank(), 0u);
  setenv("SLURM_LOCALID", "3", 1);
  EXPECT_EQ(local_rank(), 3u);
  // mpirun within a batch job: Slurm's is the batch script's.
  setenv("SLURM_LOCALID", "0", 1);
  setenv("MPI_LOCALRANKID", "2", 1);
  EXPECT_EQ(local_rank(), 2u);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  EXPECT_EQ(local_rank(), 1u);
  for (const char* name : names) unsetenv(name);
}

}  // namespace
}  // namespace bitfed
