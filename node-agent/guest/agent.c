/*
 * The program that runs commands inside a sandbox. As pid 1 of a container it speaks over stdin and stdout; as /init of
 * a virtual machine it sets the machine up first and speaks over a virtio serial port. The far end trusts nothing that
 * comes from here: deadlines, output caps and the last kill are the host's.
 *
 * Frame: u32 length of the payload, u8 type, u32 id, payload; big endian. node-agent/guest/frames.ts is the other side.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <linux/vm_sockets.h>
#include <time.h>
#include <unistd.h>

enum { HELLO = 1, PING, EXEC, STDIN_DATA, STDIN_END, KILL, LISTEN, TO_CONN, TO_CONN_END, CREDIT, RESET };
enum { READY = 65, PONG, STDOUT_DATA, STDERR_DATA, TAKEN, EXIT, FAILED, OPENED, FROM_CONN, FROM_CONN_END, CONN_TAKEN, GONE };
enum { FLAG_MEMORY = 1, FLAG_PIDS = 2, FLAG_DISK = 4 };

#define PROTOCOL 2
#define MAX_PAYLOAD (256 * 1024)
#define WINDOW (64 * 1024)
#define SLOTS 16
#define CONNS 32
#define LISTENERS 4
#define WATCHED (2 + 3 * SLOTS + LISTENERS + CONNS)
#define GUEST_UID 1000
#define COMMANDS "/sys/fs/cgroup/commands"

struct run {
  uint32_t id;
  pid_t pid; /* 0: free */
  int in, out, err;
  int in_end;
  size_t from, to; /* what waits in `pending` */
  unsigned char pending[WINDOW];
  long before[2];
};

static struct run runs[SLOTS];
static int machine; /* in a virtual machine rather than a container */
static int rx, tx;
static int vsock_listener = -1;
static int accept_host(void);
static char session[80] = "";
static long pids_limit = 64;
static unsigned char frame[MAX_PAYLOAD + 9];
static size_t have;

static void put32(unsigned char *to, uint32_t value) {
  to[0] = value >> 24, to[1] = value >> 16, to[2] = value >> 8, to[3] = value;
}

static uint32_t get32(const unsigned char *from) {
  return (uint32_t)from[0] << 24 | from[1] << 16 | from[2] << 8 | from[3];
}

static void write_all(const void *data, size_t length) {
  const char *at = data;
  while (length > 0) {
    ssize_t n = write(tx, at, length);
    if (n > 0) {
      at += n, length -= n;
    } else if (n < 0 && errno == EAGAIN) {
      struct pollfd wait = {.fd = tx, .events = POLLOUT};
      poll(&wait, 1, 100);
    } else if (n < 0 && errno != EINTR) {
      if (!machine) _exit(1);
      return; /* the host went away; it will greet again */
    }
  }
}

static void send_frame(int type, uint32_t id, const void *payload, size_t length) {
  static unsigned char out[WINDOW + 512];
  put32(out, length);
  out[4] = type;
  put32(out + 5, id);
  memcpy(out + 9, payload, length);
  write_all(out, length + 9);
}

static void write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, text, strlen(text)) < 0) { /* the host reads limits back by behaviour: nothing to do here */
  }
  close(fd);
}

/** The number behind `key ` in a counter file of a cgroup; 0 without it. */
static long counter(const char *path, const char *key) {
  char text[512];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  size_t width = strlen(key);
  for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (strncmp(line, key, width) == 0 && line[width] == ' ') return atol(line + width + 1);
  return 0;
}

static void room_of(const struct run *run, const char *file, char *path, size_t size) {
  snprintf(path, size, COMMANDS "/%d/%s", (int)(run - runs), file);
}

/** In a container the counters are those of the whole, and only where the host has mounted them. */
static long count_of(const struct run *run, const char *file, const char *key) {
  char path[128];
  if (!machine) {
    int memory = strcmp(file, "memory.events") == 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s", file);
    return counter(path, key) + counter(memory ? "/sys/fs/cgroup/memory/memory.oom_control" : "/sys/fs/cgroup/pids/pids.events", key);
  }
  room_of(run, file, path, sizeof path);
  return counter(path, key) + (strcmp(file, "pids.events") == 0 ? counter(COMMANDS "/pids.events", key) : 0);
}

static int is_full(const char *path) {
  struct statvfs about;
  return statvfs(path, &about) == 0 && about.f_blocks > 0 && about.f_bavail * about.f_bsize < 16384;
}

/* ---- file work: done by a child with the rights of a command, so that it can do nothing a command could not ---- */

static int fail(const char *what) {
  int code = errno;
  dprintf(2, "%s: %s\n", what, strerror(code));
  return code > 0 && code < 120 ? code : 1;
}

static int put_file(const char *path, int mode) {
  char parent[4096];
  if (strlen(path) >= sizeof parent) return errno = ENAMETOOLONG, fail(path);
  strcpy(parent, path);
  for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(parent, 0755) < 0 && errno != EEXIST) return fail(parent);
    *slash = '/';
  }
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);
  if (fd < 0) return fail(path);
  char data[32768];
  for (ssize_t n; (n = read(0, data, sizeof data)) > 0;)
    for (ssize_t at = 0, w; at < n; at += w)
      if ((w = write(fd, data + at, n - at)) < 0) return fail(path);
  if (fchmod(fd, mode) < 0 || close(fd) < 0) return fail(path);
  return 0;
}

static int get_file(const char *path) {
  struct stat about;
  int fd = open(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &about) < 0) return fail(path);
  if (!S_ISREG(about.st_mode)) return errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL, fail(path);
  char data[32768];
  for (ssize_t n; (n = read(fd, data, sizeof data)) != 0;) {
    if (n < 0) return fail(path);
    for (ssize_t at = 0, w; at < n; at += w)
      if ((w = write(1, data + at, n - at)) < 0) return 1;
  }
  return 0;
}

/** One entry: kind, size, name, each ended by NUL. */
static int list_files(const char *path) {
  DIR *folder = opendir(path);
  if (!folder) return fail(path);
  FILE *out = fdopen(1, "w");
  for (struct dirent *entry; (entry = readdir(folder));) {
    struct stat about;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) < 0) continue;
    char kind = S_ISREG(about.st_mode) ? 'f' : S_ISDIR(about.st_mode) ? 'd' : S_ISLNK(about.st_mode) ? 'l' : 'o';
    fprintf(out, "%c%c%lld%c%s%c", kind, 0, (long long)about.st_size, 0, entry->d_name, 0);
  }
  return fflush(out) == 0 ? 0 : 1;
}

static int applet(char **argv) {
  if (strcmp(argv[0], "@put") == 0 && argv[1] && argv[2]) return put_file(argv[1], (int)strtol(argv[2], NULL, 8));
  if (strcmp(argv[0], "@get") == 0 && argv[1]) return get_file(argv[1]);
  if (strcmp(argv[0], "@list") == 0 && argv[1]) return list_files(argv[1]);
  errno = EINVAL;
  return fail(argv[0]);
}

/* ---- commands ---- */

static void limit_of(int which, rlim_t value) {
  struct rlimit limit = {value, value};
  setrlimit(which, &limit);
}

static void child(struct run *run, char *cwd, char **argv, char **env, int in, int out, int err, int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  setsid();
  if (machine) {
    struct sched_param normal = {0};
    char path[128];
    write_file("/proc/self/oom_score_adj", "0");
    sched_setscheduler(0, SCHED_OTHER, &normal);
    room_of(run, "cgroup.procs", path, sizeof path);
    write_file(path, "0");
  }
  dup2(in, 0), dup2(out, 1), dup2(err, 2);
  limit_of(RLIMIT_CORE, 0);
  if (geteuid() == 0 && (setgid(GUEST_UID) < 0 || setuid(GUEST_UID) < 0)) _exit(126);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  int code = chdir(cwd) < 0 ? errno : 0;
  if (code == 0 && argv[0][0] == '@') {
    /* There is no exec that would close them, and the far end of its own input is among them. */
    for (int fd = 3; fd < 256; fd++) close(fd);
    _exit(applet(argv));
  }
  if (code == 0) {
    environ = env;
    execvp(argv[0], argv);
    code = errno;
  }
  if (write(report, &code, sizeof code) < 0) _exit(126);
  _exit(127);
}

static void refuse(uint32_t id, int code) {
  unsigned char payload[4];
  put32(payload, code);
  send_frame(FAILED, id, payload, 4);
}

/** Payload: u16 count of arguments, u16 count of variables, then cwd, arguments and variables, each ended by NUL. */
static void start(uint32_t id, unsigned char *payload, size_t length) {
  static char *words[4100];
  struct run *run = NULL;
  for (int i = 0; i < SLOTS && !run; i++)
    if (runs[i].pid == 0) run = &runs[i];
  if (!run) return refuse(id, EAGAIN);
  if (length < 5 || payload[length - 1] != 0) return refuse(id, EINVAL);
  int argc = payload[0] << 8 | payload[1], envc = payload[2] << 8 | payload[3], count = 0;
  if (argc < 1 || argc + envc > 4000) return refuse(id, E2BIG);
  char *cwd = (char *)payload + 4, *at = cwd + strlen(cwd) + 1, *end = (char *)payload + length;
  for (int i = 0; i < argc + envc; i++) {
    if (at >= end) return refuse(id, EINVAL);
    if (i == argc) words[count++] = NULL;
    words[count++] = at;
    at += strlen(at) + 1;
  }
  if (envc == 0) words[count++] = NULL;
  words[count] = NULL;

  int in[2], out[2], err[2], report[2];
  if (pipe2(in, O_CLOEXEC) < 0) return refuse(id, errno);
  if (pipe2(out, O_CLOEXEC) < 0) return close(in[0]), close(in[1]), refuse(id, errno);
  if (pipe2(err, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0) return refuse(id, errno);
  if (machine) {
    char path[128], text[32];
    snprintf(path, sizeof path, COMMANDS "/%d", (int)(run - runs));
    mkdir(path, 0755);
    room_of(run, "pids.max", path, sizeof path);
    snprintf(text, sizeof text, "%ld", pids_limit);
    write_file(path, text);
  }
  run->before[0] = count_of(run, "memory.events", "oom_kill");
  run->before[1] = count_of(run, "pids.events", "max");
  pid_t pid = fork();
  if (pid == 0) child(run, cwd, words, words + argc + 1, in[0], out[1], err[1], report[1]);
  int fork_error = errno;
  close(in[0]), close(out[1]), close(err[1]), close(report[1]);
  int code = pid < 0 ? fork_error : 0;
  if (pid > 0 && read(report[0], &code, sizeof code) <= 0) code = 0;
  close(report[0]);
  if (code != 0) {
    if (pid > 0) waitpid(pid, NULL, 0);
    close(in[1]), close(out[0]), close(err[0]);
    return refuse(id, code);
  }
  fcntl(in[1], F_SETFL, O_NONBLOCK), fcntl(out[0], F_SETFL, O_NONBLOCK), fcntl(err[0], F_SETFL, O_NONBLOCK);
  run->id = id, run->pid = pid, run->in = in[1], run->out = out[0], run->err = err[0];
  run->in_end = 0, run->from = run->to = 0;
}

static struct run *run_of(uint32_t id) {
  for (int i = 0; i < SLOTS; i++)
    if (runs[i].pid > 0 && runs[i].id == id) return &runs[i];
  return NULL;
}

static void close_input(struct run *run) {
  if (run->in >= 0) close(run->in);
  run->in = -1;
}

static void feed(struct run *run) {
  while (run->in >= 0 && run->from < run->to) {
    ssize_t n = write(run->in, run->pending + run->from, run->to - run->from);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) n = run->to - run->from, close_input(run);
    run->from += n;
    unsigned char taken[4];
    put32(taken, n);
    send_frame(TAKEN, run->id, taken, 4);
  }
  if (run->from == run->to) run->from = run->to = 0;
  if (run->in_end && run->from == run->to) close_input(run);
}

/** Sends on what is there. Returns 0 at the end of the pipe. */
static int forward(struct run *run, int *fd, int type, int all) {
  static unsigned char data[32768];
  do {
    ssize_t n = read(*fd, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (n <= 0) {
      close(*fd);
      *fd = -1;
      return 0;
    }
    send_frame(type, run->id, data, n);
  } while (all);
  return 1;
}

static int others_run(const struct run *than) {
  for (int i = 0; i < SLOTS; i++)
    if (runs[i].pid > 0 && &runs[i] != than) return 1;
  return 0;
}

/** What a command left behind does not outlive it, so the next one starts from files alone. */
static void sweep(struct run *run) {
  kill(-run->pid, SIGKILL);
  if (machine) {
    char path[128];
    room_of(run, "cgroup.kill", path, sizeof path);
    write_file(path, "1");
    /* A signal is met when the process gets its turn: the end is told when the last has gone, or will not go. */
    for (int i = 0; i < 500 && count_of(run, "cgroup.events", "populated") > 0; i++) {
      struct timespec pause = {0, 2000000};
      nanosleep(&pause, NULL);
    }
  } else if (getpid() == 1 && !others_run(run)) {
    /* A fork that races with the signal to all fails or is met by the next one. */
    for (int i = 0; i < 200 && kill(-1, SIGKILL) == 0; i++) {
      while (waitpid(-1, NULL, WNOHANG) > 0) {
      }
      struct timespec pause = {0, 2000000};
      nanosleep(&pause, NULL);
    }
  }
}

static void finish(struct run *run, int status) {
  sweep(run);
  close_input(run);
  if (run->out >= 0) forward(run, &run->out, STDOUT_DATA, 1);
  if (run->err >= 0) forward(run, &run->err, STDERR_DATA, 1);
  if (run->out >= 0) close(run->out);
  if (run->err >= 0) close(run->err);
  unsigned char payload[3] = {WIFSIGNALED(status), WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), 0};
  if (count_of(run, "memory.events", "oom_kill") > run->before[0]) payload[2] |= FLAG_MEMORY;
  if (count_of(run, "pids.events", "max") > run->before[1]) payload[2] |= FLAG_PIDS;
  if (is_full("/work") || is_full("/tmp") || (machine && is_full("/dev/shm"))) payload[2] |= FLAG_DISK;
  if (machine) {
    char path[128];
    snprintf(path, sizeof path, COMMANDS "/%d", (int)(run - runs));
    rmdir(path); /* while the last ones are still dying it stays, and is used again */
  }
  uint32_t id = run->id;
  run->pid = 0;
  send_frame(EXIT, id, payload, 3);
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (int i = 0; i < SLOTS; i++)
      if (runs[i].pid == pid) finish(&runs[i], status);
}

/* ---- connections: the host answers what is called on some ports of loopback ---- */

/** A connection of a command; `id` 0 is a free place. */
struct conn {
  uint32_t id;
  int fd;
  int sent_end, got_end;
  size_t credit; /* what the host still takes of it */
  size_t from, to;
  unsigned char pending[WINDOW];
};

static struct conn conns[CONNS];
static struct { int fd, port; } listeners[LISTENERS];
static uint32_t last_conn;

/** The last that the host hears of it. */
static void free_conn(struct conn *conn) {
  close(conn->fd);
  send_frame(GONE, conn->id, "", 0);
  conn->id = 0;
}

static struct conn *conn_of(uint32_t id) {
  for (int i = 0; i < CONNS; i++)
    if (id != 0 && conns[i].id == id) return &conns[i];
  return NULL;
}

static void listen_on(uint32_t id, const unsigned char *payload, size_t length) {
  int at = 0, on = 1;
  if (length != 2) return refuse(id, EINVAL);
  while (at < LISTENERS && listeners[at].port != 0) at++;
  if (at == LISTENERS) return refuse(id, ENOSPC);
  int port = payload[0] << 8 | payload[1];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return refuse(id, errno);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, CONNS) < 0) {
    int code = errno;
    close(fd);
    return refuse(id, code);
  }
  listeners[at].fd = fd, listeners[at].port = port;
}

static struct conn *free_place(void) {
  for (int i = 0; i < CONNS; i++)
    if (conns[i].id == 0) return &conns[i];
  return NULL;
}

static void accept_conn(int fd, int port) {
  struct conn *conn = free_place();
  int socket = conn ? accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
  if (socket < 0) return;
  memset(conn, 0, offsetof(struct conn, pending));
  conn->id = ++last_conn, conn->fd = socket, conn->credit = WINDOW;
  unsigned char payload[2] = {port >> 8, port};
  send_frame(OPENED, conn->id, payload, 2);
}

static void both_ended(struct conn *conn) {
  if (conn->got_end && conn->from == conn->to) shutdown(conn->fd, SHUT_WR);
  if (conn->got_end && conn->sent_end && conn->from == conn->to) free_conn(conn);
}

static void end_of(struct conn *conn) {
  send_frame(FROM_CONN_END, conn->id, "", 0);
  conn->sent_end = 1;
}

static void read_conn(struct conn *conn) {
  static unsigned char data[32768];
  ssize_t n = read(conn->fd, data, conn->credit < sizeof data ? conn->credit : sizeof data);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return end_of(conn), both_ended(conn);
  conn->credit -= n;
  send_frame(FROM_CONN, conn->id, data, n);
}

static void write_conn(struct conn *conn) {
  while (conn->from < conn->to) {
    ssize_t n = write(conn->fd, conn->pending + conn->from, conn->to - conn->from);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) n = conn->to - conn->from; /* nobody reads it any more */
    conn->from += n;
    unsigned char taken[4];
    put32(taken, n);
    send_frame(CONN_TAKEN, conn->id, taken, 4);
  }
  conn->from = conn->to = 0;
  both_ended(conn);
}

static void handle_conn(int type, uint32_t id, unsigned char *payload, size_t length) {
  struct conn *conn = conn_of(id);
  if (!conn) return; /* it was over when the host wrote that */
  if (type == CREDIT && length == 4) conn->credit += get32(payload);
  if (type == TO_CONN_END) conn->got_end = 1, both_ended(conn);
  if (type == RESET) return free_conn(conn);
  if (type != TO_CONN) return;
  if (conn->from > 0) memmove(conn->pending, conn->pending + conn->from, conn->to - conn->from);
  conn->to -= conn->from, conn->from = 0;
  if (length > WINDOW - conn->to) length = WINDOW - conn->to; /* the host keeps to the window */
  memcpy(conn->pending + conn->to, payload, length);
  conn->to += length;
  write_conn(conn);
}

/** A host that greets knows nothing of what was open. */
static void drop_conns(void) {
  for (int i = 0; i < CONNS; i++)
    if (conns[i].id != 0) close(conns[i].fd), conns[i].id = 0;
  for (int i = 0; i < LISTENERS; i++)
    if (listeners[i].port != 0) close(listeners[i].fd), listeners[i].port = 0;
}

/* ---- greeting ---- */

static void remount(const char *path, uint32_t megabytes) {
  char options[64];
  snprintf(options, sizeof options, "size=%um,mode=1777", megabytes);
  mount("tmpfs", path, "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, options);
}

/** Payload: u64 milliseconds of the clock, u32 disk, tmp and memory in MB, u32 processes, 32 bytes entropy, session. */
static void hello(const unsigned char *payload, size_t length) {
  if (length < 56 || length - 56 >= sizeof session) return;
  uint64_t now = (uint64_t)get32(payload) << 32 | get32(payload + 4);
  /* Brought back from a snapshot: whoever waited for these is not there any more. */
  for (int i = 0; i < SLOTS; i++)
    if (runs[i].pid > 0) kill(-runs[i].pid, SIGKILL);
  drop_conns();
  memset(session, 0, sizeof session);
  memcpy(session, payload + 56, length - 56);
  if (machine) {
    char text[32];
    struct {
      int bits, size;
      unsigned char data[32];
    } entropy = {256, 32, {0}};
    memcpy(entropy.data, payload + 24, 32);
    int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    ioctl(fd, RNDADDENTROPY, &entropy);
    ioctl(fd, RNDRESEEDCRNG);
    close(fd);
    struct timespec clock = {now / 1000, now % 1000 * 1000000};
    clock_settime(CLOCK_REALTIME, &clock);
    remount("/work", get32(payload + 8));
    remount("/tmp", get32(payload + 12));
    /* What processes share is theirs to pay for, and leaves as much for themselves. */
    remount("/dev/shm", (get32(payload + 16) - get32(payload + 8) - get32(payload + 12)) / 2);
    snprintf(text, sizeof text, "%llu", (unsigned long long)get32(payload + 16) << 20);
    write_file(COMMANDS "/memory.max", text);
    pids_limit = get32(payload + 20);
    snprintf(text, sizeof text, "%ld", pids_limit);
    write_file(COMMANDS "/pids.max", text);
  }
  struct utsname about;
  uname(&about);
  char answer[256];
  int written = 1 + snprintf(answer + 1, sizeof answer - 1, "%s%c%s", about.release, 0, session);
  answer[0] = PROTOCOL;
  send_frame(READY, 0, answer, written);
}

static void handle(int type, uint32_t id, unsigned char *payload, size_t length) {
  struct run *run = run_of(id);
  if (type == HELLO) hello(payload, length);
  if (type == PING) send_frame(PONG, id, payload, length < 64 ? length : 64);
  if (type == EXEC) run ? refuse(id, EEXIST) : start(id, payload, length);
  if (type == LISTEN) listen_on(id, payload, length);
  if (type >= TO_CONN) return handle_conn(type, id, payload, length);
  if (!run) return;
  if (type == STDIN_DATA) {
    if (run->in < 0) {
      unsigned char taken[4];
      put32(taken, length);
      send_frame(TAKEN, id, taken, 4);
      return;
    }
    if (run->from > 0) memmove(run->pending, run->pending + run->from, run->to - run->from);
    run->to -= run->from, run->from = 0;
    if (length > WINDOW - run->to) length = WINDOW - run->to; /* the host keeps to the window */
    memcpy(run->pending + run->to, payload, length);
    run->to += length;
    feed(run);
  }
  if (type == STDIN_END) run->in_end = 1, feed(run);
  if (type == KILL && length == 1) {
    kill(-run->pid, payload[0]);
    kill(run->pid, payload[0]);
  }
}

static void receive(void) {
  ssize_t n = read(rx, frame + have, sizeof frame - have);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    if (!machine) exit(0); /* the node ended: so does this container */
    have = 0;
    if (vsock_listener >= 0) {
      close(rx);
      rx = tx = accept_host();
      return;
    }
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
    return;
  }
  have += n;
  size_t at = 0;
  while (have - at >= 9) {
    size_t length = get32(frame + at);
    if (length > MAX_PAYLOAD) {
      if (!machine) exit(1);
      have = 0;
      return;
    }
    if (have - at < 9 + length) break;
    handle(frame[at + 4], get32(frame + at + 5), frame + at + 9, length);
    at += 9 + length;
  }
  memmove(frame, frame + at, have - at);
  have -= at;
}

/* ---- the virtual machine ---- */

static void load_modules(void) {
  FILE *order = fopen("/modules/order", "re");
  char line[128], path[160];
  while (order && fgets(line, sizeof line, order)) {
    line[strcspn(line, "\n")] = 0;
    snprintf(path, sizeof path, "/modules/%s", line);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || syscall(SYS_finit_module, fd, "", 0) < 0) dprintf(2, "%s: %s\n", path, strerror(errno));
    if (fd >= 0) close(fd);
  }
  if (order) fclose(order);
}

static int open_port(void) {
  for (int tries = 0; tries < 2000; tries++) {
    DIR *devices = opendir("/dev");
    for (struct dirent *entry; devices && (entry = readdir(devices));) {
      char path[300];
      if (strncmp(entry->d_name, "vport", 5) != 0) continue;
      snprintf(path, sizeof path, "/dev/%s", entry->d_name);
      int fd = open(path, O_RDWR | O_CLOEXEC);
      if (fd >= 0) return closedir(devices), fd;
    }
    if (devices) closedir(devices);
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
  }
  return -1;
}

/** The port after `waybill.vsock=` on the kernel's command line; 0 without it. */
static long vsock_port(void) {
  char text[2048];
  int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  char *at = strstr(text, "waybill.vsock=");
  return at ? atol(at + strlen("waybill.vsock=")) : 0;
}

/** Waits for the host; after a snapshot its connection is gone and it comes again. */
static int accept_host(void) { return accept4(vsock_listener, NULL, NULL, SOCK_CLOEXEC); }

static int listen_vsock(long port) {
  struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_port = port, .svm_cid = VMADDR_CID_ANY};
  vsock_listener = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (vsock_listener < 0 || bind(vsock_listener, (struct sockaddr *)&address, sizeof address) < 0) return -1;
  return listen(vsock_listener, 1) < 0 ? -1 : accept_host();
}

static void loopback_up(void) {
  struct ifreq request = {0};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (fd >= 0) ioctl(fd, SIOCSIFFLAGS, &request), close(fd);
}

static void set_up_machine(void) {
  mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2");
  mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
  mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=8m,mode=1777");
  mount("tmpfs", "/work", "tmpfs", MS_NOSUID | MS_NODEV, "size=8m,mode=1777");
  mkdir("/dev/shm", 0755);
  mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=8m,mode=1777");
  mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory +pids");
  mkdir(COMMANDS, 0755);
  write_file(COMMANDS "/cgroup.subtree_control", "+memory +pids");
  write_file("/proc/self/oom_score_adj", "-1000");
  /* Memory is bounded by the group of the commands, which names the limit; a refused allocation names nothing. */
  write_file("/proc/sys/vm/overcommit_memory", "1");
  load_modules();
  loopback_up();
  sethostname("sandbox", 7);
  /* Ahead of every command, or a fork bomb starves the heartbeat. */
  struct sched_param first = {.sched_priority = 10};
  sched_setscheduler(0, SCHED_FIFO, &first);
  long port = vsock_port();
  rx = tx = port > 0 ? listen_vsock(port) : open_port();
  mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
}

int main(int argc, char **argv) {
  if (getpid() != 1) return dprintf(2, "this program is pid 1 of a sandbox\n"), 2;
  machine = !(argc > 1 && strcmp(argv[1], "pipe") == 0);
  rx = 0, tx = 1;
  if (machine) set_up_machine();
  else {
    /* A command must not write into the channel through /proc/1. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    fcntl(0, F_SETFD, FD_CLOEXEC);
    fcntl(1, F_SETFD, FD_CLOEXEC);
  }
  if (rx < 0) return 1;
  umask(022);
  signal(SIGPIPE, SIG_IGN);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  int signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  for (;;) {
    struct pollfd fds[WATCHED] = {{.fd = rx, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    struct pollfd *doors = fds + 2 + 3 * SLOTS, *lines = doors + LISTENERS;
    for (int i = 0; i < SLOTS; i++) {
      struct run *run = &runs[i];
      struct pollfd *own = fds + 2 + 3 * i;
      own[0].fd = own[1].fd = own[2].fd = -1;
      if (run->pid == 0) continue;
      own[0].fd = run->out, own[1].fd = run->err, own[2].fd = run->from < run->to ? run->in : -1;
      own[0].events = own[1].events = POLLIN, own[2].events = POLLOUT;
    }
    int room = free_place() != NULL;
    for (int i = 0; i < LISTENERS; i++) {
      doors[i].fd = listeners[i].port != 0 && room ? listeners[i].fd : -1;
      doors[i].events = POLLIN;
    }
    for (int i = 0; i < CONNS; i++) {
      const struct conn *conn = &conns[i];
      lines[i].events = 0;
      if (conn->id != 0 && !conn->sent_end && conn->credit > 0) lines[i].events |= POLLIN;
      if (conn->id != 0 && conn->from < conn->to) lines[i].events |= POLLOUT;
      lines[i].fd = lines[i].events ? conn->fd : -1; /* an end that nobody waits for would be told without pause */
    }
    if (poll(fds, WATCHED, 1000) < 0) continue;
    for (int i = 0; i < CONNS; i++) {
      if (lines[i].fd < 0 || !lines[i].revents) continue;
      if (lines[i].events & POLLOUT) write_conn(&conns[i]);
      if (conns[i].id != 0 && lines[i].events & POLLIN && lines[i].revents & ~POLLOUT) read_conn(&conns[i]);
    }
    for (int i = 0; i < LISTENERS; i++)
      if (doors[i].fd >= 0 && doors[i].revents) accept_conn(listeners[i].fd, listeners[i].port);
    for (int i = 0; i < SLOTS; i++) {
      struct run *run = &runs[i];
      struct pollfd *own = fds + 2 + 3 * i;
      if (run->pid == 0) continue;
      if (own[0].revents) forward(run, &run->out, STDOUT_DATA, 0);
      if (own[1].revents) forward(run, &run->err, STDERR_DATA, 0);
      if (own[2].revents) feed(run);
    }
    struct signalfd_siginfo told;
    while (read(signals, &told, sizeof told) > 0) {
    }
    reap();
    if (fds[0].revents) receive();
  }
}
