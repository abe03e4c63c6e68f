# Rewrites CUDA C++ for tests/emulator/include/cuda_runtime.h.
s/<<</ << emulator::launch(/g
s/>>>/)/g
s/extern __shared__ (__align__\([0-9]+\) )?([a-z_0-9 ]+[ *])([a-z_]+)\[\];/\2*const \3 = (\2*)emulator::block_shared;/
