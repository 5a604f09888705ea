import type { SandboxLimits } from '../driver.ts'
import { CGROUP_PARENT, type CgroupLimits, CPU_PERIOD, TMP_MB } from './cgroups.ts'

export interface BundleOptions {
  rootfs: string
  limits: SandboxLimits
  group: string
  cgroup: CgroupLimits
  /** First of 65,536 ids of the host that stand for those inside; absent: no user namespace of our own. */
  hostIds?: number
  seccomp: boolean
  /** Whether the agent is root inside, so that commands, which never are, cannot signal it. */
  rootAgent: boolean
  /** A folder of the host that is seen read-only as /opt. */
  tools?: string
  /** Where the container's own control group is to be read inside: in a machine, whose groups the host cannot read. */
  counters?: boolean
}

/** Ids that no user of the host has: what escapes the sandbox has no rights. */
export const HOST_IDS = 1_879_048_192

/** The user inside that runs commands; the agent's source knows it too. */
const USER = 1000

/** What it takes to become that user, and to end its processes. */
const AGENT_CAPABILITIES = ['CAP_SETUID', 'CAP_SETGID', 'CAP_KILL']

const MASKED = `/proc/acpi /proc/asound /proc/kcore /proc/keys /proc/latency_stats /proc/sched_debug /proc/scsi
  /proc/timer_list /proc/timer_stats /proc/config.gz /proc/kallsyms /proc/kpagecount /proc/kpageflags
  /proc/kpagecgroup /proc/interrupts /sys/firmware /sys/devices/virtual/powercap`
const READ_ONLY = '/proc/bus /proc/fs /proc/irq /proc/sys /proc/sysrq-trigger'
const words = (text: string) => text.split(/\s+/).filter(Boolean)

const tmpfs = (destination: string, megabytes: number) => ({
  destination,
  type: 'tmpfs',
  source: 'tmpfs',
  options: ['nosuid', 'nodev', 'mode=1777', `size=${megabytes}m`],
})

const COUNTERS = [
  { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
  { destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
]

/** `config.json` of an OCI bundle. No network namespace is shared and none has an interface beside `lo`. */
export function bundleOf({
  rootfs,
  limits,
  group,
  cgroup,
  hostIds,
  seccomp,
  rootAgent,
  tools,
  counters = false,
}: BundleOptions) {
  const granted = rootAgent ? AGENT_CAPABILITIES : []
  const user = rootAgent ? 0 : USER
  const ids = hostIds === undefined ? undefined : [{ containerID: 0, hostID: hostIds, size: 65_536 }]
  return {
    ociVersion: '1.0.2',
    process: {
      terminal: false,
      user: { uid: user, gid: user },
      args: ['/sandbox-agent', 'pipe'],
      env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
      cwd: '/work',
      capabilities: { bounding: granted, effective: granted, permitted: granted, inheritable: [], ambient: [] },
      rlimits: [
        { type: 'RLIMIT_NOFILE', hard: 1024, soft: 1024 },
        { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
      ],
      noNewPrivileges: true,
    },
    root: { path: rootfs, readonly: true },
    hostname: 'sandbox',
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
      {
        destination: '/dev',
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['nosuid', 'strictatime', 'mode=755', 'size=64k'],
      },
      { ...tmpfs('/dev/shm', TMP_MB), source: 'shm' },
      tmpfs('/tmp', TMP_MB),
      tmpfs('/work', limits.diskMb),
      ...(counters ? COUNTERS : []),
      ...(tools === undefined
        ? []
        : [{ destination: '/opt', type: 'bind', source: tools, options: ['bind', 'ro', 'nosuid', 'nodev'] }]),
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'cgroup', 'network', ...(ids === undefined ? [] : ['user'])].map(
        type => ({
          type,
        }),
      ),
      ...(ids !== undefined && { uidMappings: ids, gidMappings: ids }),
      cgroupsPath: `${CGROUP_PARENT}/${group}`,
      resources: {
        devices: [{ allow: false, access: 'rwm' }],
        // Swap counts with memory, so that equal values leave none.
        memory: { limit: cgroup.memoryBytes, swap: cgroup.memoryBytes },
        pids: { limit: cgroup.pids },
        cpu: { quota: cgroup.cpuQuota, period: CPU_PERIOD },
      },
      maskedPaths: words(MASKED),
      readonlyPaths: words(READ_ONLY),
      ...(seccomp && { seccomp: seccompProfile() }),
    },
  }
}

/** System calls that ordinary programs, shells, Python and Node make, by what they are for. All else is refused. */
const ALLOWED: Readonly<Record<string, string>> = {
  files: `access faccessat faccessat2 open openat openat2 creat close close_range read readv pread64 preadv preadv2
    write writev pwrite64 pwritev pwritev2 lseek stat fstat lstat newfstatat statx statfs fstatfs truncate ftruncate
    fallocate fadvise64 readahead fsync fdatasync sync_file_range sync syncfs sendfile copy_file_range splice tee
    vmsplice dup dup2 dup3 fcntl flock ioctl umask`,
  names: `getcwd chdir fchdir rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink
    symlinkat readlink readlinkat getdents getdents64 chmod fchmod fchmodat chown fchown fchownat lchown utime utimes
    utimensat futimesat getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr
    removexattr lremovexattr fremovexattr inotify_init inotify_init1 inotify_add_watch inotify_rm_watch`,
  memory: `brk mmap munmap mprotect mremap madvise msync mincore mlock mlock2 mlockall munlock munlockall memfd_create
    membarrier pkey_alloc pkey_free pkey_mprotect shmget shmat shmctl shmdt`,
  processes: `fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill getpid getppid gettid getpgid
    getpgrp getsid setpgid setsid getpriority setpriority sched_yield sched_getaffinity sched_setaffinity
    sched_getattr sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval getcpu prctl arch_prctl set_tid_address set_robust_list get_robust_list rseq futex
    futex_waitv pidfd_open pidfd_send_signal getrlimit setrlimit prlimit64 getrusage times sysinfo uname capget`,
  identity: `getuid geteuid getgid getegid getgroups getresuid getresgid setuid setgid setreuid setregid setresuid
    setresgid setfsuid setfsgid setgroups`,
  signals: `rt_sigaction rt_sigprocmask rt_sigpending rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo
    rt_tgsigqueueinfo sigaltstack signalfd signalfd4 pause restart_syscall alarm getitimer setitimer`,
  time: `time gettimeofday clock_gettime clock_getres clock_nanosleep nanosleep timer_create timer_delete
    timer_settime timer_gettime timer_getoverrun timerfd_create timerfd_settime timerfd_gettime`,
  waiting: `poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_pwait
    epoll_pwait2 epoll_wait_old eventfd eventfd2 pipe pipe2`,
  /* Only loopback is there; families are narrowed below. */
  sockets: `socketpair bind connect listen accept accept4 getsockname getpeername getsockopt setsockopt shutdown
    send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg`,
  queues: `semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend
    mq_timedreceive mq_notify mq_getsetattr`,
  randomness: `getrandom`,
}

const EPERM = 1
const ENOSYS = 38
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET: a new namespace of any kind. */
const NEW_NAMESPACES = 0x7e020000

/**
 * An allow list for runc, which adds none of its own. `clone3` hides its flags in memory, where a filter cannot look:
 * it is reported as unknown, and the C library falls back to `clone`, whose flags are seen.
 */
function seccompProfile() {
  const names = Object.values(ALLOWED).flatMap(group => group.split(/\s+/).filter(Boolean))
  const allow = (families: readonly number[]) =>
    families.map(value => ({
      names: ['socket'],
      action: 'SCMP_ACT_ALLOW',
      args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
    }))
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: EPERM,
    architectures: process.arch === 'arm64' ? ['SCMP_ARCH_AARCH64'] : ['SCMP_ARCH_X86_64'],
    syscalls: [
      { names, action: 'SCMP_ACT_ALLOW' },
      {
        names: ['clone'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: NEW_NAMESPACES, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
      },
      // AF_UNIX, AF_INET, AF_INET6.
      ...allow([1, 2, 10]),
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
      // PER_LINUX, and the question which one is set.
      ...[0, 0xffffffff].map(value => ({
        names: ['personality'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
      })),
    ],
  }
}
