/* Fails one system call of a program on a file below FAULT_FOLDER, or every one from there on.
 *
 * FAULT_TRACE=FILE   appends a line for every such call and fails none
 * FAULT_AT=N         the N-th such call is struck, counted from 0
 * FAULT_ERRNO=E      by this error; -1: a short write, which is no error
 * FAULT_LASTS=1      and so is every later one
 * FAULT_CALL=NAME    only these calls count: write, sync, open, mkdir, rename, thread, clock
 *
 * Threads and clocks belong to no file and count only where FAULT_CALL names them. A struck clock jumps by FAULT_STEP_S
 * seconds and stays there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long calls;

static const char *get(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

static int counts_only(const char *call) {
  const char *only = get("FAULT_CALL");
  return *only ? strcmp(only, call) == 0 : strcmp(call, "thread") != 0 && strcmp(call, "clock") != 0;
}

/* The error that strikes this call on `path`; 0: none. */
static int error_of(const char *call, const char *path) {
  const char *folder = get("FAULT_FOLDER");
  if (!*folder || !counts_only(call) || (path && strncmp(path, folder, strlen(folder)) != 0)) return 0;
  const char *trace = get("FAULT_TRACE");
  if (*trace) {
    int file = syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char line[4400];
    int length = snprintf(line, sizeof line, "%s %s\n", call, path ? path : "-");
    if (length > 0) syscall(SYS_write, file, line, (size_t)length);
    syscall(SYS_close, file);
    return 0;
  }
  if (!*get("FAULT_AT")) return 0;
  long number = __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST), at = atol(get("FAULT_AT"));
  return number == at || (number > at && *get("FAULT_LASTS")) ? atoi(get("FAULT_ERRNO")) : 0;
}

static int error_at(const char *call, int file) {
  char link[64], path[4096];
  if (!*get("FAULT_FOLDER")) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return error_of(call, path);
}

/* A relative path is one below the working folder. */
static int error_on(const char *call, int at, const char *path) {
  char whole[8200];
  if (path[0] == '/' || at != AT_FDCWD || !getcwd(whole, 4096)) return error_of(call, path);
  strcat(whole, "/");
  strncat(whole, path, 4000);
  return error_of(call, whole);
}

#define STRUCK(found) { int code = (found); if (code > 0) { errno = code; return -1; } }

ssize_t write(int file, const void *bytes, size_t length) {
  int error = error_at("write", file);
  STRUCK(error)
  return REAL(write)(file, bytes, error && length > 1 ? length / 2 : length);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  int error = error_at("write", file);
  STRUCK(error)
  return REAL(writev)(file, parts, error && count > 1 ? 1 : count);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
  int error = error_at("write", file);
  STRUCK(error)
  return REAL(pwrite64)(file, bytes, error && length > 1 ? length / 2 : length, at);
}

int fsync(int file) {
  STRUCK(error_at("sync", file))
  return REAL(fsync)(file);
}

int fdatasync(int file) {
  STRUCK(error_at("sync", file))
  return REAL(fdatasync)(file);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  STRUCK(error_on("open", AT_FDCWD, path))
  return REAL(open64)(path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  STRUCK(error_on("open", at, path))
  return REAL(openat64)(at, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
  STRUCK(error_on("mkdir", AT_FDCWD, path))
  return REAL(mkdir)(path, mode);
}

int rename(const char *from, const char *to) {
  STRUCK(error_on("rename", AT_FDCWD, to))
  return REAL(rename)(from, to);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *with) {
  int error = error_of("thread", NULL);
  return error > 0 ? error : REAL(pthread_create)(thread, attributes, work, with);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int stepped;
  int status = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME && *get("FAULT_FOLDER")) {
    if (error_of("clock", NULL)) __atomic_store_n(&stepped, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&stepped, __ATOMIC_SEQ_CST)) now->tv_sec += atol(get("FAULT_STEP_S"));
  }
  return status;
}
