import { readFile, readlink } from 'node:fs/promises'
import { probeByRun } from '../probe-by-run.ts'
import type { OciFlavour } from './oci-driver.ts'

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
