import { readFile, readlink } from 'node:fs/promises'
import { probeByRun } from '../probe-by-run.ts'
import type { OciFlavour } from './oci-driver.ts'

/**
 * A kernel in user space between the sandbox and the host's. Its platform is the release's own, `systrap` or before that `ptrace`,
 * neither of which needs hardware; `kvm` was seen to hang for ever. `--ignore-cgroups` is never given: it drops limits in silence.
 */
export function gvisor(binary = 'runsc'): OciFlavour {
  return {
    backend: 'gvisor',
    binary,
    flags: ['--network=none'],
    // Its own delete waits more than a second for processes that its group no longer holds.
    detach: '--detach',
    overheadMb: 64,
    // The group counts the host's tasks: about 26 of an idle sandbox, and five for each process inside.
    pidsOf: wanted => 64 + 6 * wanted,
    userNamespace: false,
    seccomp: false,
    // This kernel lets a process kill the first one; the rights below are those inside it, not the host's.
    rootAgent: true,
    // Its own filter is not to be seen from outside; a kernel of its own is, and the probe asks for it.
    confirm: async () => undefined,
    sharedMount: 'null-netns',
    probe: (driver, deadlineMs) =>
      probeByRun(driver, {
        binary,
        versionOf: text => /runsc version (\S+)/.exec(text)?.[1],
        deadlineMs,
        ownKernel: true,
        verifiedBy: "ran a command: its kernel is not the host's, and its limits were read back",
        install: 'Install gVisor (Debian: apt-get install runsc) and run the node as root, so that it can set limits.',
      }),
  }
}

/** Containers on the host's kernel: for code that its author declares trusted. */
export function runc(binary = 'runc'): OciFlavour {
  return {
    backend: 'runc',
    binary,
    flags: [],
    deleteForce: '-f',
    detach: '-d',
    overheadMb: 4,
    // The agent is one of them.
    pidsOf: wanted => wanted + 1,
    userNamespace: true,
    seccomp: true,
    // A signal from inside never reaches the first process of a namespace.
    rootAgent: false,
    confirm,
    probe: (driver, deadlineMs) =>
      probeByRun(driver, {
        binary,
        versionOf: text => /runc version (\S+)/.exec(text)?.[1],
        deadlineMs,
        ownKernel: false,
        verifiedBy: 'ran a command in a container whose limits, filter and capabilities were read back',
        install: 'Install runc (Debian: apt-get install runc) and run the node as root, so that it can set limits.',
      }),
  }
}

/** What the kernel says about the first process, as the bundle is only a wish. */
async function confirm(pid: number): Promise<string | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1]
  if (field('NoNewPrivs') !== '1') return 'new privileges are not refused'
  if (field('Seccomp') !== '2') return 'no filter of system calls is in force'
  for (const set of ['CapEff', 'CapPrm', 'CapBnd', 'CapAmb', 'CapInh']) {
    if (!/^0+$/.test(field(set) ?? '')) return `the capability set ${set} is ${field(set)}, not empty`
  }
  for (const kind of ['user', 'pid', 'net', 'mnt', 'ipc', 'uts', 'cgroup']) {
    const [own, its] = await Promise.all([namespaceOf('self', kind), namespaceOf(pid, kind)])
    if (its === undefined || own === its) return `the ${kind} namespace is that of the host`
  }
  return undefined
}

const namespaceOf = (pid: number | 'self', kind: string) => readlink(`/proc/${pid}/ns/${kind}`).catch(() => undefined)
