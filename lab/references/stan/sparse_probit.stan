// Sparse probit regression (models/sparse_probit.py), hierarchical form: the twin in Stan.
//
// The data are as in the data file: inputs in their own units, labels 0 and 1. Inputs are
// standardised here by mean and population standard deviation, as ardvark does; a constant column
// is only centred. Equation numbers are those of Krishnapuram, Carin and Hartemink (2004).
data {
  int<lower=1> N;
  int<lower=1> D;
  matrix[N, D] X;
  array[N] int<lower=0, upper=1> y;
}
transformed data {
  real gamma1 = D;  // ardvark's default: scale D^-1/2 of a weight
  matrix[N, D] Z;
  vector[N] s;  // 2 y - 1
  for (d in 1:D) {
    vector[N] centred = X[, d] - mean(X[, d]);
    real spread = sqrt(mean(square(centred)));
    Z[, d] = spread > 0 ? centred / spread : centred;
  }
  for (n in 1:N) {
    s[n] = 2 * y[n] - 1;
  }
}
parameters {
  real<lower=0> tau_bias;
  real bias_raw;
  vector<lower=0>[D] tau;
  vector[D] beta_raw;
}
transformed parameters {
  real bias = bias_raw * sqrt(tau_bias);
  vector[D] beta = beta_raw .* sqrt(tau);
  vector[N] eta = bias + Z * beta;  // (5)
}
model {
  tau_bias ~ exponential(gamma1 / 2);  // (11)
  tau ~ exponential(gamma1 / 2);
  bias_raw ~ std_normal();  // (10)
  beta_raw ~ std_normal();
  target += std_normal_lcdf(s .* eta);  // (3), summed over rows
}
generated quantities {
  vector[D] feature_weight = abs(beta);
}
