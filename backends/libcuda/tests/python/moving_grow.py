# cuda-python #2877: after a grow that moves, the old buffer frees its addresses a second time.
from cuda.core import Device, VirtualMemoryResource

device = Device()
device.set_current()
resource = VirtualMemoryResource(device)
buffer = resource.allocate(2 << 20)
grown = resource.modify_allocation(buffer, 4 << 20)
del buffer
grown.close()
