"""What several papers share: ARD priors, kernels, masks, links and distributions."""
