# Tests as a client's suite has them, with the fixture: two are right, one leaks (#2344).
import pytest
from cuda.core import Device, DeviceMemoryResource, VirtualMemoryResource


@pytest.fixture(scope="module")
def device():
    device = Device()
    device.set_current()
    return device


def test_pool_buffers_go(device, granule_sim):
    stream = device.create_stream()
    DeviceMemoryResource(device).allocate(1 << 20, stream=stream).close(stream)
    stream.sync()


def test_a_failed_allocation_leaves_nothing(device, granule_sim):
    granule_sim.fail("cuMemSetAccess nth=1 with CUDA_ERROR_UNKNOWN")
    with pytest.raises(Exception, match="UNKNOWN"):
        VirtualMemoryResource(device).allocate(2 << 20)
    assert granule_sim.faults_delivered >= 1


def test_buffers_go(device, granule_sim):
    VirtualMemoryResource(device).allocate(2 << 20).close()
