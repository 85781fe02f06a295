// A slow disk: every sync of a file takes as long as the first number of a shared file says, in microseconds.
// Loaded into an unmodified program with LD_PRELOAD; the second number counts the syncs that were slowed.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct control {
    _Atomic int64_t delay_us;
    _Atomic int64_t slowed;
} *control;

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("SLOW_DISK_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        // A disk that is not slowed would make a test pass that shows nothing.
        fprintf(stderr, "slow_disk: cannot map SLOW_DISK_CONTROL\n");
        _exit(99);
    }
    control = shared;
    close(fd);
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

// Looks again every few milliseconds: when the disk is fast again, a sync that is under way ends as well.
static void wait_for_disk(void)
{
    const struct timespec step = { 0, 2000000 };
    int64_t begun = now_us();
    if (control->delay_us > 0)
        control->slowed++;
    while (now_us() - begun < control->delay_us)
        nanosleep(&step, NULL);
}

int fsync(int fd)
{
    wait_for_disk();
    return syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_for_disk();
    return syscall(SYS_fdatasync, fd);
}
