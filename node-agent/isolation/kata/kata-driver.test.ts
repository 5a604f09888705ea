import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NO_IMAGE } from '../../guest/image-manifest.ts'
import { kataDriver } from './kata-driver.ts'

/** Like containerd's client without an image: it sets no PATH, so that a program needs its whole name. */
const CTR = `#!/bin/sh
while [ $# -gt 2 ]; do shift; done
case "$1" in
  /*) echo 6.12.0-kata ;;
  *) echo "ctr: OCI runtime create failed: exec: \\"$1\\": executable file not found in \\$PATH" >&2; exit 1 ;;
esac
`

let folder: string
let containerd: Server
const program = (name: string, text: string) => writeFile(join(folder, name), text, { mode: 0o755 })
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-kata-'))
  await program('ctr', CTR)
  await program('containerd-shim-kata-v2', '#!/bin/sh\n')
  containerd = createServer()
  await new Promise<void>(resolve => containerd.listen(join(folder, 'containerd.sock'), resolve))
})
afterEach(async () => {
  containerd.close()
  await rm(folder, { recursive: true, force: true })
})

const driver = () => kataDriver({ image: NO_IMAGE, socket: join(folder, 'containerd.sock'), path: folder })

describe('the probe of Kata', () => {
  it('finds one that works, and says that commands are not executed in it', async () => {
    await program('kata-runtime', '#!/bin/sh\n')
    expect(await driver().probe(10_000)).toEqual({
      backend: 'kata',
      available: false,
      kernelRelease: '6.12.0-kata',
      verifiedBy: 'ran a probe container whose kernel is its own',
      reasons: ['Kata works here, but this version of the node runs no commands in it.'],
      install: [],
    })
  })

  it('says that its program of checks is not there', async () => {
    const { reasons } = await driver().probe(10_000)
    expect(reasons).toEqual(['The program "kata-runtime" was not found on PATH.'])
  })

  it('gives the reason of a check that fails, or that there is none', async () => {
    await program('kata-runtime', '#!/bin/sh\necho "no vmx or svm" >&2\nexit 1\n')
    expect((await driver().probe(10_000)).reasons).toEqual(['"kata-runtime check" failed: no vmx or svm'])
    await program('kata-runtime', '#!/bin/sh\nexit 3\n')
    expect((await driver().probe(10_000)).reasons).toEqual(['"kata-runtime check" failed: it ended with code 3'])
  })
})
