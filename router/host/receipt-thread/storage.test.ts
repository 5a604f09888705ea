import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

it.skipIf(process.platform === 'win32')(
  'a copy of a checkpoint that the disk takes a part of leaves none of it: the next one is a line of its own',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waybill-copies-'))
    const file = join(folder, 'anchor.jsonl')
    const module = new URL('storage.ts', import.meta.url).href
    // A limit on the size of a file takes a write up to there, as the last block of a disk does.
    const program = `const sink = (await import('${module}')).fileSink('${file}')
      for (const size of [700, 700, 100]) await sink.append('x'.repeat(size)).then(() => console.log(size), error => console.log(error.code))`
    const shell = `trap '' XFSZ; ulimit -f 2; exec "$0" --input-type=module -e "$1"`
    const { stdout, stderr } = spawnSync('sh', ['-c', shell, process.execPath, program], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, NODE_DISABLE_COMPILE_CACHE: '1' },
    })
    expect([stderr, stdout]).toEqual(['', '700\nEFBIG\n100\n'])
    expect((await readFile(file, 'utf8')).split('\n').map(line => line.length)).toEqual([700, 100, 0])
    await rm(folder, { recursive: true })
  },
)
