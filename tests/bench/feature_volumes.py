"""The volumes of peers_features.py and peers_gpu_features.py."""

import numpy


def volume_of(size, levels):
    """Returns [z, y, x]: sums of noise, rescaled, plus noise; `levels` levels of 25."""
    random = numpy.random.default_rng(1)
    noise = random.integers(0, 4096, size, numpy.int16)
    smooth = numpy.cumsum(numpy.cumsum(noise - 2047.5, axis=1), axis=2)
    smooth = (smooth - smooth.min()) / (smooth.max() - smooth.min())
    return (smooth * 25 * (levels - 4) + noise % 100 - 500).astype(numpy.int16)


def ellipsoid(size):
    axes = numpy.ogrid[tuple(slice(-1, 1, count * 1j) for count in size)]
    return sum(axis**2 for axis in axes) <= 0.71


def ball(size, radius):
    """Returns a ball around the middle, with the radius in voxels."""
    axes = numpy.ogrid[tuple(slice(-(count // 2), count - count // 2) for count in size)]
    return sum(axis**2 for axis in axes) <= radius**2
