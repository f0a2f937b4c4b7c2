"""Feature-weighted kernels: one class for each, which holds all that depends on the kernel.

With feature weights theta >= 0, shape (D,):

    linear        K(x, z) = sum_k theta_k x_k z_k
    polynomial    K(x, z) = (1 + sum_k theta_k x_k z_k) ** P
    rbf           K(x, z) = exp(-sum_k theta_k (x_k - z_k)^2)

Every form is matrix products of shapes (N, D) and (D, B): O(N B D) time, O(N D + N B) memory.
The linear kernel has no 1/D factor: scale belongs to the priors.

A new kernel is a file here with a subclass of `Kernel`, a word in `KernelName` and a line in
`_KINDS`. Compiled loops that serve several kernels (`jcfo_steps.py` and
`mask_kernel.py` in `inference/samplers/gibbs`) tell them apart by `code`.
"""

from typing import Any, Literal, get_args

from ardvark.common.declared import hyper
from ardvark.common.validate import one_of

from .kernel import LINEAR, POLYNOMIAL, RBF, Kernel
from .linear import Linear
from .polynomial import Polynomial
from .rbf import Rbf

KernelName = Literal["linear", "polynomial", "rbf"]
KERNELS: tuple[str, ...] = get_args(KernelName)
_KINDS: dict[str, type[Kernel]] = {kind.name: kind for kind in (Linear, Polynomial, Rbf)}

__all__ = [
    "KERNELS",
    "LINEAR",
    "POLYNOMIAL",
    "RBF",
    "Kernel",
    "KernelName",
    "Linear",
    "kernel_hyper",
    "make_kernel",
]


def kernel_hyper(default: str, *, paper: str) -> Any:
    """Declare the kernel of a model; the annotation of the field lists those that it has."""
    return hyper(default, "kernel of a row and a basis centre", paper=paper)


def make_kernel(name: str, degree: int = 1) -> Kernel:
    """Return the kernel of a name; `degree` is P of the polynomial one, others ignore it.

    Raises
    ------
    InputError
        There is no kernel of that name.
    """
    one_of("kernel", name, KERNELS)
    return _KINDS[name].of(int(degree))
