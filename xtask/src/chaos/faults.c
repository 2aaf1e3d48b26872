/* What a server meets when its disk or its clock is bad, told by a page that others write.
 *
 * Loaded before the libraries of a program that knows nothing of it (LD_PRELOAD). CHAOS_CONTROL
 * names a file with three numbers of 64 bits: nanoseconds that the clock on the wall is ahead,
 * microseconds that a sync takes longer, and the error that writing and syncing end with.
 *
 * CHAOS_RECORD names a file that every write to a regular file is noted in before it happens,
 * with the bytes that it covers, and every sync after it happened: what a power cut may take
 * back is what was written and not yet synced. The kernel is asked directly, and nothing is
 * allocated. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int64_t ahead, slow, error;
};

/* How a record begins; the bytes that were there follow it. */
struct note {
    uint32_t what, held;
    uint64_t inode, offset, length;
};

enum { WRITTEN = 1, SYNCED = 2, CUT = 3 };

/* The most that is noted of one write. Pages are smaller. */
#define HELD (64 << 10)

static const struct control *control;
static int record = -1;

__attribute__((constructor)) static void begin(void) {
    const char *page = getenv("CHAOS_CONTROL"), *notes = getenv("CHAOS_RECORD");
    int fd = page ? (int)syscall(SYS_openat, AT_FDCWD, page, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *at = mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED)
            control = at;
        syscall(SYS_close, fd);
    }
    if (notes)
        record = (int)syscall(SYS_openat, AT_FDCWD, notes, O_WRONLY | O_APPEND | O_CLOEXEC);
}

/* The inode of a regular file; 0 for anything else and for the standard streams. */
static uint64_t file(int fd) {
    struct stat about;
    if (fd <= 2 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return 0;
    return (uint64_t)about.st_ino;
}

static int broken(int fd) {
    if (!control || !control->error || !file(fd))
        return 0;
    errno = (int)control->error;
    return 1;
}

static void noted(uint32_t what, uint64_t inode, uint64_t offset, uint64_t length,
                  const void *held, uint32_t size) {
    struct note note = {what, size, inode, offset, length};
    struct iovec parts[2] = {{&note, sizeof note}, {(void *)held, size}};
    syscall(SYS_writev, record, parts, 2);
}

static void writing(int fd, off_t offset, size_t length) {
    static __thread char held[HELD];
    uint64_t inode = record >= 0 ? file(fd) : 0;
    if (!inode || offset < 0 || length > HELD)
        return;
    int saved = errno;
    long size = syscall(SYS_pread64, fd, held, length, offset);
    /* What cannot be read cannot be put back. */
    if (size >= 0)
        noted(WRITTEN, inode, (uint64_t)offset, length, held, (uint32_t)size);
    errno = saved;
}

static void done(uint32_t what, int fd, uint64_t length) {
    uint64_t inode = record >= 0 ? file(fd) : 0;
    if (inode)
        noted(what, inode, 0, length, NULL, 0);
}

ssize_t write(int fd, const void *from, size_t length) {
    if (broken(fd))
        return -1;
    if (record >= 0)
        writing(fd, (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR), length);
    return syscall(SYS_write, fd, from, length);
}

ssize_t pwrite64(int fd, const void *from, size_t length, off64_t offset) {
    if (broken(fd))
        return -1;
    writing(fd, offset, length);
    return syscall(SYS_pwrite64, fd, from, length, offset);
}

ssize_t pwrite(int fd, const void *from, size_t length, off_t offset) {
    return pwrite64(fd, from, length, offset);
}

int ftruncate64(int fd, off64_t length) {
    if (broken(fd))
        return -1;
    int failed = (int)syscall(SYS_ftruncate, fd, length);
    if (!failed)
        done(CUT, fd, (uint64_t)length);
    return failed;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int sync_by(long call, int fd) {
    if (broken(fd))
        return -1;
    if (control && control->slow) {
        struct timespec wait = {control->slow / 1000000, control->slow % 1000000 * 1000};
        syscall(SYS_nanosleep, &wait, NULL);
    }
    int failed = (int)syscall(call, fd);
    if (!failed)
        done(SYNCED, fd, 0);
    return failed;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }

int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    int wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (!failed && wall && control) {
        int64_t nanos = at->tv_nsec + control->ahead % 1000000000;
        at->tv_sec += control->ahead / 1000000000 + (nanos >= 1000000000) - (nanos < 0);
        at->tv_nsec = (nanos + 1000000000) % 1000000000;
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
