# cuda-python #2886: close unmaps the memory at once, under a kernel that may still use it.
from cuda.core import Device, LaunchConfig, ObjectCode, VirtualMemoryResource, launch

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry touch(.param .u64 where) { ret; }
"""

device = Device()
device.set_current()
stream = device.create_stream()
kernel = ObjectCode.from_ptx(PTX).get_kernel("touch")
resource = VirtualMemoryResource(device)

buffer = resource.allocate(2 << 20)
launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
buffer.close()
