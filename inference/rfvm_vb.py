"""placeholder"""
import time
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from scipy import linalg, special

from ardvark.inference.truncated_normal import (
    folded, folded_moments, truncated, truncated_moments,
)
_BLOCK = 4096

class Factors:
    def __init__(self, X, y, Z, h, rng, v_factor="folded", v_update="sequential", damping=0.0):
        self.h, self.y = h, y
        self.v_factor, self.v_update, self.damping = v_factor, v_update, damping
        self.Xt = np.ascontiguousarray(X.T)
        self.Zt = self.Xt if Z is X else np.ascontiguousarray(Z.T)
        self.features, self.samples = np.arange(X.shape[1]), np.arange(len(Z))
        N, D, B = len(X), X.shape[1], len(Z)
        self.G = np.einsum("dn,dn->d", self.Xt, self.Xt)
        scale = np.sqrt(h.feature_rate / h.feature_shape)
        self.m = scale * np.abs(rng.standard_normal(D))
        self.precision = np.full(D, scale**-2)
        self.v_moments()
        self.tau_shape = h.noise_shape + 0.5 * N
        self.tau_rate = self.tau_shape * h.noise_rate / h.noise_shape
        self.delta_shape, self.delta_rate = h.feature_shape + 0.5, (h.feature_shape + 0.5) * np.full(D, scale**2)
        self.psi_shape = h.sample_shape + 0.5
        self.psi_rate = self.psi_shape * np.full(B, h.sample_rate / h.sample_shape)
        self.b, self.var_b = 0.0, h.bias_sd**2
        self.xi = np.ones(N)
        self.a, self.Sigma = np.zeros(B), np.zeros((B, B))
        self.M = np.zeros((N, B))
        self.update_u()
        self.M = product(self.Xt, self.v, self.Zt)

    tau = property(lambda self: self.tau_shape / self.tau_rate)
    delta = property(lambda self: self.delta_shape / self.delta_rate)
    psi = property(lambda self: self.psi_shape / self.psi_rate)
    s = property(lambda self: self.precision**-0.5)

    def v_moments(self):
        t = self.m * np.sqrt(self.precision)
        mean, var, H = (folded_moments if self.v_factor == "folded" else truncated_moments)(t)
        self.v, self.var_v, self.H_v = self.s * mean, var / self.precision, H + np.log(self.s)

    def update_a(self):
        V = product(self.Zt, self.G * self.var_v, self.Zt)
        Q = self.tau * (self.M.T @ self.M + V)
        Q[np.diag_indices_from(Q)] += self.psi
        L = linalg.cholesky(Q, lower=True)
        self.factor = linalg.solve_triangular(L, np.eye(len(L)), lower=True).T
        self.Sigma = self.factor @ self.factor.T
        self.a = self.tau * self.Sigma @ (self.M.T @ (self.u - self.b))
        self.A = self.Sigma + np.outer(self.a, self.a)
        self.W = self.Zt @ self.A
        self.P = np.einsum("dj,dj->d", self.W, self.Zt)

    def update_v(self):
        lam = self.tau * self.G * self.P + self.delta
        linear = (self.Xt @ (self.u - self.b)) * (self.Zt @ self.a)
        keep, tau = self.damping, self.tau
        if self.v_update == "sequential":
            new = (1-keep)*lam + keep*self.precision
            _sweep(self.Xt, self.Zt, self.W, self.M, linear, self.G*self.P, tau, keep*self.precision*self.m, new, self.v, self.m, 1-keep, self.v_factor=="folded")
            self.precision = new
        else:
            cross = np.einsum("dj,dj->d", self.Xt @ self.M, self.W) - self.G*self.P*self.v
            new = (1-keep)*lam + keep*self.precision
            self.m = ((1-keep)*tau*(linear-cross) + keep*self.precision*self.m)/new
            self.precision = new
        self.v_moments()
        self.M = product(self.Xt, self.v, self.Zt)

    def update_delta(self):
        self.delta_rate = self.h.feature_rate + 0.5*(self.v**2+self.var_v)
    def update_psi(self):
        self.psi_rate = self.h.sample_rate + 0.5*np.diag(self.A)
    def R(self):
        r = self.u - self.b - self.M@self.a
        return r@r + self.var_u.sum() + len(r)*self.var_b + np.sum((self.M@self.factor)**2) + np.sum(self.G*self.var_v*self.P)
    def update_tau(self):
        self.tau_rate = self.h.noise_rate + 0.5*self.R()
    def update_b(self):
        p = len(self.y)*self.tau + self.h.bias_sd**-2
        self.var_b = 1/p
        self.b = self.tau*np.sum(self.u - self.M@self.a)/p
    def update_u(self):
        self.var_u = 1/(self.tau + 2*lam_(self.xi))
        self.u = self.var_u*(self.y-0.5+self.tau*(self.M@self.a+self.b))
    def update_xi(self):
        self.xi = np.sqrt(self.u**2+self.var_u)
    def sweep(self):
        self.update_a(); self.update_v(); self.update_delta(); self.update_psi(); self.update_b(); self.update_u(); self.update_xi(); self.update_tau()
    def elbo(self):
        h=self.h; N=len(self.y); dg=special.digamma
        ltau = dg(self.tau_shape)-np.log(self.tau_rate)
        lpsi = dg(self.psi_shape)-np.log(self.psi_rate)
        ldel = dg(self.delta_shape)-np.log(self.delta_rate)
        u2=self.u**2+self.var_u; l2=np.log(2*np.pi)
        e = np.sum(-np.logaddexp(0,-self.xi)+(self.y-.5)*self.u-self.xi/2-lam_(self.xi)*(u2-self.xi**2))
        e += N/2*(ltau-l2)-self.tau*self.R()/2
        e += 0.5*np.sum(lpsi-l2-self.psi*np.diag(self.A))
        e += 0.5*np.sum(ldel+np.log(2/np.pi)-self.delta*(self.v**2+self.var_v))
        e -= 0.5*(l2+2*np.log(h.bias_sd)+(self.b**2+self.var_b)/h.bias_sd**2)
        e -= kl(self.tau_shape,self.tau_rate,h.noise_shape,h.noise_rate)+np.sum(kl(self.psi_shape,self.psi_rate,h.sample_shape,h.sample_rate))+np.sum(kl(self.delta_shape,self.delta_rate,h.feature_shape,h.feature_rate))
        e += 0.5*len(self.a)*(l2+1)+np.sum(np.log(np.diag(self.factor)))+np.sum(self.H_v)+0.5*(l2+1+np.log(self.var_b))+0.5*np.sum(l2+1+np.log(self.var_u))
        return e
def kl(c,r,a,b):
    return (c-a)*special.digamma(c)-special.gammaln(c)+special.gammaln(a)+a*np.log(r/b)+c*(b-r)/r
def lam_(xi):
    return np.tanh(xi/2)/(4*xi)
def product(Xt,w,Zt):
    out = np.zeros((Xt.shape[1],Zt.shape[1]))
    for k in range(0,len(w),_BLOCK):
        s=slice(k,k+_BLOCK)
        out += (Xt[s]*w[s,None]).T@Zt[s]
    return out
@numba.njit(cache=True, nogil=True, fastmath={"reassoc","contract"})
def _sweep(Xt, Zt, W, M, linear, GP, tau, prior, precision, v, m, step, is_folded):
    D, N = Xt.shape
    B = Zt.shape[1]
    dv = 0.0
    for d in range(D):
        p = d-1 if d>0 else 0
        cross = 0.0
        for n in range(N):
            c = dv*Xt[p,n]
            acc = 0.0
            for j in range(B):
                M[n,j] += c*Zt[p,j]
                acc += M[n,j]*W[d,j]
            cross += Xt[d,n]*acc
        m[d] = (step*tau*(linear[d]-cross+GP[d]*v[d]) + prior[d])/precision[d]
        s = precision[d]**-0.5
        if is_folded:
            new = s*folded(m[d]/s)[0]
        else:
            new = s*truncated(m[d]/s)[0]
        dv = new - v[d]
        v[d] = new
