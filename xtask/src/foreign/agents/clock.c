/* Sets the clock on the wall of a program back by the seconds in CLOCK_BACK.
 *
 * Loaded before the libraries of a program that knows nothing of it (LD_PRELOAD). It asks the
 * kernel itself and allocates nothing, so that it may be called before anything else is ready.
 * Clocks that only measure are left alone. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        const char *back = getenv("CLOCK_BACK");
        at->tv_sec -= back ? strtoll(back, NULL, 10) : 0;
    }
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
