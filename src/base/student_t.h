// Two-sided 95 % quantile of Student's t with `degrees` of freedom (>= 1), from the first terms of its expansion around
// the normal quantile: within 1 % of the table from 4 degrees on, too small below.
#pragma once

namespace sojourn {

inline double student_t95(int degrees) {
  const double z = 1.959963985, n = degrees;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

}  // namespace sojourn
