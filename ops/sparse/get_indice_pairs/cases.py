# SPDX-License-Identifier: Apache-2.0

from benchmark import Cases
from inputs import MILLION

from ops.sparse.cases import pairs, sparse_pairs, tables

cases = Cases(__file__)

cases.growth("voxels", 1000, MILLION)(lambda n: pairs("get_indice_pairs", n))
cases.cpu("street, 60,000 voxels, 3x3x3, submanifold")(lambda threads: sparse_pairs(threads, "get_indice_pairs", True))
cases.gpu("100,000 voxels, 3x3x3, submanifold", capturable=False)(lambda: tables("get_indice_pairs"))
