import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { nodeEnv } from '../../node-agent/env.ts'
import type { NodeSandboxesOptions } from '../../node-agent/sandboxes.ts'
import { readEnv } from '../../shared/env/read-env.ts'
import { backends } from '../../shared/wire/runtime/isolation.ts'
import type { Sandboxes } from '../execution/sandbox/sandboxes.ts'

type Opened = Sandboxes & { close(): Promise<void> }

export interface LazySandboxes extends Opened {
  /** Tries every backend that an image was built for. */
  selfTest(): Promise<void>
}

/** The isolation backends of this machine for the embedded node; nothing of them is loaded or tried before a run asks. */
export function lazySandboxes(
  vars: Record<string, string | undefined>,
  options: Omit<NodeSandboxesOptions, 'env'>,
): LazySandboxes {
  const env = readEnv(nodeEnv, vars)
  let opened: Promise<Opened> | undefined
  let now: Opened | undefined
  const open = () => {
    opened ??= import('../../node-agent/sandboxes.ts').then(({ nodeSandboxes }) => {
      now = nodeSandboxes({ env, ...options })
      return now
    })
    return opened
  }
  return {
    offered: async (backends, image) => (await open()).offered(backends, image),
    known: () => now?.known() ?? [],
    open: async run => (await open()).open(run),
    sessions: {
      acquire: async machine => (await open()).sessions!.acquire(machine),
      of: sessionId => now?.sessions?.of(sessionId),
      release: async sessionId => (await opened)?.sessions?.release(sessionId),
    },
    forget: async runId => (await opened)?.forget(runId),
    close: async () => (await opened)?.close(),
    async selfTest() {
      const built = await access(join(env.NODE_AGENT_IMAGE_DIR, 'manifest.json')).then(
        () => true,
        () => false,
      )
      if (built) await (await open()).offered(backends)
    },
  }
}
