"""A pytest plugin for suites that run under `granule sim`: each test that asks for the fixture
`granule_sim` fails if it leaves driver objects behind or misuses the driver, and can make calls
fail.

    def test_close_gives_everything_back(granule_sim):
        ...
    def test_undo(granule_sim):
        granule_sim.fail("cuMemSetAccess nth=2 with CUDA_ERROR_UNKNOWN")
        with pytest.raises(CUDAError):
            ...

Load it with `-p granule_sim` and this folder on PYTHONPATH. Outside `granule sim` tests that use
the fixture are skipped.
"""

import ctypes
import gc

import pytest


def _library():
    try:
        library = ctypes.CDLL("libcuda.so.1")
        library.granule_sim_snapshot.restype = ctypes.c_ulonglong
    except (OSError, AttributeError):
        return None
    library.granule_sim_faults_delivered.restype = ctypes.c_ulonglong
    library.granule_sim_findings.restype = ctypes.c_ulonglong
    library.granule_sim_findings.argtypes = [ctypes.c_ulonglong]
    library.granule_sim_expect_no_leak.argtypes = [
        ctypes.c_ulonglong, ctypes.c_char_p, ctypes.c_ulonglong]
    library.granule_sim_fail.argtypes = [ctypes.c_char_p]
    return library


class Simulation:
    """What a test may ask of the simulated driver."""

    def __init__(self, library):
        self._library = library
        self._start = library.granule_sim_snapshot()

    def fail(self, fault):
        """Let a driver call fail, e.g. "cuMemMap nth=2 with CUDA_ERROR_UNKNOWN"."""
        if self._library.granule_sim_fail(fault.encode()) != 0:
            raise ValueError(f"not a fault: {fault}")

    def no_faults(self):
        self._library.granule_sim_no_faults()

    @property
    def faults_delivered(self):
        return self._library.granule_sim_faults_delivered()

    def findings(self):
        """How much is held or was misused since the test began."""
        gc.collect()
        return self._library.granule_sim_findings(self._start)

    def report(self):
        """The findings as text, empty if there are none; they are not reported again."""
        gc.collect()
        text = ctypes.create_string_buffer(1 << 16)
        self._library.granule_sim_expect_no_leak(self._start, text, len(text))
        return text.value.decode(errors="replace")


@pytest.fixture
def granule_sim():
    library = _library()
    if library is None:
        pytest.skip("not under granule sim")
    simulation = Simulation(library)
    yield simulation
    simulation.no_faults()
    report = simulation.report()
    if report:
        pytest.fail("the driver still holds, or was misused:\n" + report, pytrace=False)
