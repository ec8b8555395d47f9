/* For test suites that run on the simulated driver: faults on demand, and leak checks of single
   tests. In C, so that any language can call it. Linked or looked up (dlsym) in the simulated
   libcuda.so.1; no real driver has these functions. Thread-safe. */
#ifndef GRANULE_SIM_H
#define GRANULE_SIM_H

#ifdef __cplusplus
extern "C" {
#endif

/* A point in the life of the process: what is made or misused after it is younger. */
typedef unsigned long long granule_sim_snapshot_t;

/* From now on a driver call fails as the text says: "cuMemSetAccess nth=2 with
   CUDA_ERROR_UNKNOWN"; also "any", "times=3", "times=all", "after". Counting starts now. Returns 0,
   or 1 if the text is malformed. */
int granule_sim_fail(const char* fault);

/* Lifts all faults. */
void granule_sim_no_faults(void);

/* How many driver calls were failed by faults so far. */
unsigned long long granule_sim_faults_delivered(void);

granule_sim_snapshot_t granule_sim_snapshot(void);

/* How many leaks and misuses are younger than the snapshot; suppressed ones do not count. */
unsigned long long granule_sim_findings(granule_sim_snapshot_t since);

/* 0 if nothing made since the snapshot is still held and nothing was misused. Else 1, and a report
   with call sites on stderr or, if `text` is not null, in the `size` bytes there (cut to fit). What
   was reported here is not reported again at the end of the process. */
int granule_sim_expect_no_leak(granule_sim_snapshot_t since, char* text, unsigned long long size);

/* Virtual nanoseconds pass: queued work that takes less, and that nothing holds, has then run. */
void granule_sim_pause(unsigned long long nanoseconds);

#ifdef __cplusplus
}
#endif

#endif
