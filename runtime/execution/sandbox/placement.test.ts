import { describe, expect, it } from 'vitest'
import { manifest } from '../../../shared/wire/runtime/manifest.ts'
import { BROWSER } from '../browse/launch.ts'
import { placed } from './placement.ts'
import { noSandboxes, type Sandboxes } from './sandboxes.ts'

const offering = (...programs: string[]): Sandboxes => ({
  ...noSandboxes,
  offered: async backends => (backends.includes('qemu') ? [{ backend: 'qemu', programs: new Set(programs) }] : []),
})
const browses = manifest.parse({ tools: ['browse'] })
const place = (sandboxes: Sandboxes) => placed(browses, sandboxes, { commandsElsewhere: false })

describe('an agent that browses', () => {
  it('needs a machine, though its isolation be shared, and says what is missing', async () => {
    await expect(place(noSandboxes)).rejects.toThrow(/^browse needs a microVM .*no enrolled node offers it/)
  })

  it('is refused by an image without a browser, with what builds one', async () => {
    await expect(place(offering('python3', 'node', 'pip', 'npm'))).rejects.toMatchObject({
      code: 'isolation_unavailable',
      message: expect.stringMatching(/browse needs chromium-headless-shell, .*"node-agent image --browser" builds one/),
    })
  })

  it('is placed where there is one, whatever else the image has', async () => {
    expect(await place(offering(BROWSER))).toMatchObject({ backend: 'qemu' })
  })
})
