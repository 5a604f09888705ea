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
