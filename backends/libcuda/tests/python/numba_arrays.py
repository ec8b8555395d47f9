"""numba-cuda, unchanged: device, pinned and sliced arrays, copies on a stream, bytes looked at."""

import numpy as np
from numba import cuda

stream = cuda.stream()
host = np.arange(1 << 16, dtype=np.int32)
a = cuda.to_device(host, stream=stream)
b = cuda.device_array_like(a)
b.copy_to_device(a, stream=stream)
pinned = cuda.pinned_array(host.shape, dtype=host.dtype)
b.copy_to_host(pinned, stream=stream)
stream.synchronize()
assert (pinned == host).all()
part = b[100:200].copy_to_host()
assert (part == host[100:200]).all()
print(cuda.get_current_device().name, cuda.current_context().get_memory_info())
