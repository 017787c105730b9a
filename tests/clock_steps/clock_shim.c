// SPDX-License-Identifier: Apache-2.0
// Preloaded into a server: a clock that jumps. Every 20 ms of real time the wall clock (or, with
// SPUD_SHIM_CLOCK=steady, the monotonic one) is set an hour further, and every 2 s 100 hours back.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { kEveryMs = 20, kJumpS = 3600, kJumps = 100 };

static int steps_steady(void) {
  static int known = -1;
  if (known < 0) {
    const char* clock = getenv("SPUD_SHIM_CLOCK");
    known = clock != NULL && strcmp(clock, "steady") == 0;
  }
  return known;
}

static time_t jump(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  const long long ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
  const time_t jumps = ms / kEveryMs % kJumps;
  return kJumpS * (steps_steady() ? jumps : jumps - kJumps / 2);
}

static int is_stepped(clockid_t clock) {
  if (steps_steady()) return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE;
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  const long result = syscall(SYS_clock_gettime, clock, out);
  if (result == 0 && is_stepped(clock)) out->tv_sec += jump();
  return (int)result;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
