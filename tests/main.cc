// One test executable's main: doctest's, with a fixed seed for the property tests, so that a run in CI repeats.
// RC_PARAMS in the environment overrides it (RC_PARAMS="seed=7", or the "reproduce=..." that a failure prints).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("RC_PARAMS", "seed=1", 0);
  return doctest::Context(argc, argv).run();
}
