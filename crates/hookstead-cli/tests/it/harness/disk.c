// A disk with faults, between an unmodified program and the kernel: loaded with LD_PRELOAD, told what to do through a
// file that it shares with a test. Syncs can be slow; syncs, reads, writes, opens and changes of names can fail, or write
// only a part, at the n-th call that concerns the folder of the store. It knows nothing of the program.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SYNC = 1, WRITE = 2, OPEN = 4, NAME = 8, READ = 16 };

enum { KILLED = -9 };

// The same order as in disk.rs.
static struct control {
    _Atomic int64_t delay_us; // of a sync
    _Atomic int64_t slowed;   // syncs that were
    _Atomic int64_t kinds;    // of the calls that fail
    _Atomic int64_t error;    // how; 0: a write of only a part; KILLED: the process ends before the call
    _Atomic int64_t first;    // the first call that fails, from 1
    _Atomic int64_t last;     // the last one
    _Atomic int64_t calls;    // of these kinds so far
    _Atomic int64_t struck;   // those that failed
} *control;

static const char *folder;

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("DISK_CONTROL");
    folder = getenv("DISK_FOLDER");
    int fd = path && folder ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        // A disk without faults would make a test pass that shows nothing.
        fprintf(stderr, "disk: cannot map DISK_CONTROL\n");
        _exit(99);
    }
    close(fd);
    control = shared;
}

static int in_folder(const char *path)
{
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int is_file_of_store(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return in_folder(path);
}

// Whether this call is one of those that fail. Only calls of the store count.
static int strikes(int kind)
{
    int64_t call = ++control->calls;
    if (!(control->kinds & kind) || call < control->first || call > control->last)
        return 0;
    control->struck++;
    return 1;
}

static int armed(int kind)
{
    return control && (control->kinds & kind);
}

static int fails_fd(int kind, int fd)
{
    return armed(kind) && is_file_of_store(fd) && strikes(kind);
}

static int fails_path(int kind, const char *path)
{
    return armed(kind) && in_folder(path) && strikes(kind);
}

static int failure(void)
{
    if (control->error == KILLED)
        kill(getpid(), SIGKILL);
    errno = control->error;
    return -1;
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
    return fails_fd(SYNC, fd) ? failure() : syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_for_disk();
    return fails_fd(SYNC, fd) ? failure() : syscall(SYS_fdatasync, fd);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t offset)
{
    return fails_fd(READ, fd) ? failure() : syscall(SYS_pread64, fd, bytes, count, offset);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    return pread64(fd, bytes, count, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset)
{
    if (!fails_fd(WRITE, fd))
        return syscall(SYS_pwrite64, fd, bytes, count, offset);
    return control->error || count < 2 ? failure() : syscall(SYS_pwrite64, fd, bytes, count / 2, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
    return pwrite64(fd, bytes, count, offset);
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    if (!fails_fd(WRITE, fd))
        return syscall(SYS_write, fd, bytes, count);
    return control->error || count < 2 ? failure() : syscall(SYS_write, fd, bytes, count / 2);
}

// A file is cut without needing space, and there is no part of a cut: it fails only where the disk takes nothing at all.
int ftruncate64(int fd, off64_t length)
{
    int is_refused = control && control->error && control->error != ENOSPC;
    return is_refused && fails_fd(WRITE, fd) ? failure() : syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length)
{
    return ftruncate64(fd, length);
}

// Nothing is written by it: a full disk and one that can only be read let it happen.
static int is_harmless(int flags)
{
    int only_reads = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_CREAT);
    return control && ((control->error == EROFS && only_reads) || (control->error == ENOSPC && !(flags & O_CREAT)));
}

static int open_with(const char *path, int flags, va_list more)
{
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    return !is_harmless(flags) && fails_path(OPEN, path) ? failure() : syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int fd = open_with(path, flags | O_LARGEFILE, more);
    va_end(more);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int fd = open_with(path, flags, more);
    va_end(more);
    return fd;
}

int mkdir(const char *path, mode_t mode)
{
    return fails_path(NAME, path) ? failure() : syscall(SYS_mkdir, path, mode);
}

int unlink(const char *path)
{
    return fails_path(NAME, path) ? failure() : syscall(SYS_unlink, path);
}

int rename(const char *from, const char *to)
{
    return fails_path(NAME, from) ? failure() : syscall(SYS_rename, from, to);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return fails_path(NAME, from) ? failure() : syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}
