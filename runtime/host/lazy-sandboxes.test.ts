import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../shared/log/log.ts'
import { lazySandboxes } from './lazy-sandboxes.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-sandboxes-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('the isolation backends of an embedded node', () => {
  it.each([
    [undefined, ['wasm']],
    ['runc, wasm', ['wasm']],
    ['gvisor', []],
    ['none', []],
  ])('are those that NODE_AGENT_BACKENDS names: %s', async (named, offered) => {
    const vars = {
      NODE_AGENT_STATE_DIR: join(folder, 'state'),
      NODE_AGENT_IMAGE_DIR: join(folder, 'no-image'),
      NODE_AGENT_BACKENDS: named,
    }
    const sandboxes = lazySandboxes(vars, { workspaces: join(folder, 'workspaces'), log: silentLog() })
    try {
      expect((await sandboxes.offered(['wasm'])).map(({ backend }) => backend)).toEqual(offered)
    } finally {
      await sandboxes.close()
    }
  })
})
