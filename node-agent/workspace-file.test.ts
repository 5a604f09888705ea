import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readWorkspace, writeWorkspace } from './workspace-file.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-workspace-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Stands for the sealing of the store, which has tests of its own. */
const keys = {
  seal: (text: string) => text.split('').reverse().join(''),
  open: (text: string) => text.split('').reverse().join(''),
}

async function* given(chunks: readonly Uint8Array[]) {
  yield* chunks
}
async function read(path: string): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of readWorkspace(path, keys)) parts.push(part)
  return Buffer.concat(parts)
}

describe('a workspace in its file', () => {
  it('comes back as it was, however it came, and shows nothing of itself', async () => {
    const path = join(folder, 'round')
    const chunk = fc
      .uint8Array({ maxLength: 400 })
      .map(bytes => Buffer.concat(Array.from({ length: 1500 }, () => bytes)))
    await fc.assert(
      fc.asyncProperty(fc.array(chunk, { maxLength: 5 }), async chunks => {
        await writeWorkspace(path, given(chunks), keys)
        expect((await read(path)).equals(Buffer.concat(chunks))).toBe(true)
      }),
      { numRuns: 25 },
    )
    await writeWorkspace(path, given([Buffer.from('the canary '.repeat(50_000))]), keys)
    expect((await readFile(path)).includes('canary')).toBe(false)
  })

  it('is refused wherever a byte is changed, cut off or added behind its first line', async () => {
    const path = join(folder, 'changed')
    await writeWorkspace(path, given([Buffer.from('x'.repeat(300_000))]), keys)
    const whole = await readFile(path)
    const start = whole.indexOf(10) + 1
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - start - 1), fc.constantFrom('flip', 'cut', 'add'), async (at, how) => {
        const bytes = Buffer.from(whole)
        bytes[start + at]! ^= 1
        await writeFile(
          path,
          how === 'flip'
            ? bytes
            : how === 'cut'
              ? whole.subarray(0, start + at)
              : Buffer.concat([whole, bytes.subarray(0, 1 + (at % 40))]),
        )
        await expect(read(path)).rejects.toThrow(/as it was written|end is missing/)
      }),
      { numRuns: 40 },
    )
  })

  it('from before it was sealed is read as it is', async () => {
    const path = join(folder, 'old')
    await writeFile(path, 'main.py\0\0\0 and the rest of a tar')
    expect(String(await read(path))).toContain('rest of a tar')
  })
})
