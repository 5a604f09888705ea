import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { programEnv } from '../program-env.ts'

const CHILD = new URL('kept-files-child.ts', import.meta.url).pathname
const traces = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0

let folder: string
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'kept-files-')))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** What a power cut would leave of a file when its maker says that it is there: kill -9 keeps what the system has not yet written. */
describe.runIf(traces)('a file that a store, a node or a run is lost without', () => {
  it('is on the disk, and its name too, before its maker goes on', async () => {
    const log = join(folder, 'strace')
    const calls = 'trace=write,writev,pwrite64,fsync,fdatasync,open,openat,link,linkat,rename,renameat,renameat2'
    const strace = ['-f', '-qq', '-y', '-s', '200', '-e', calls, '-o', log, process.execPath, CHILD, folder]
    const child = spawnSync('strace', strace, { env: programEnv, encoding: 'utf8' })
    const said = child.stderr.match(/(?<=^done ).*$/gm)
    expect([child.status, said?.length]).toEqual([0, 7])
    expect(lost(await readFile(log, 'utf8'), folder)).toEqual([])
  }, 60_000)
})

/** Files whose bytes, or whose names, were not synced when they were said to be there. */
function lost(log: string, folder: string): string[] {
  const found: string[] = []
  /** Files with bytes that are not synced, and folders with names that are not. */
  const bytes = new Set<string>()
  const names = new Set<string>()
  for (const line of whole(log)) {
    const [, call = '', given = ''] = /^(\w+)\((.*)\)\s+= \d/.exec(line) ?? []
    const paths = [...given.matchAll(/"([^"]*)"/g)].map(([, path]) => path!)
    const [, open = ''] = /^\d+<([^>]*)>/.exec(given) ?? []
    const file = open.replace(/ \(deleted\)$/, '')
    const [, ready] = /^2<.*"done (.*)\\n"/.exec(given) ?? []
    if (ready !== undefined) {
      const path = join(folder, ready)
      if (bytes.has(path)) found.push(`${ready}: its bytes`)
      if (names.has(dirname(path))) found.push(`${ready}: its name`)
    } else if (call.includes('write') && file.startsWith(folder)) bytes.add(file)
    else if (call === 'fsync' || call === 'fdatasync') {
      bytes.delete(file)
      names.delete(file)
    } else if (/^(link|rename)/.test(call)) {
      const [from = '', to = ''] = paths
      if (bytes.has(from)) bytes.add(to)
      else bytes.delete(to)
      names.add(dirname(to))
    } else if (call.startsWith('open') && given.includes('O_CREAT') && given.includes('O_APPEND')) {
      names.add(dirname(paths[0]!))
    }
  }
  return found
}

/** The calls in the order of their ends, without the number of their thread; one that another thread's call cut in two is put together. */
function whole(log: string): string[] {
  const unfinished = new Map<string, string>()
  return log.split('\n').flatMap(line => {
    const [, thread = '', call = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, first] = /^(.*) <unfinished \.\.\.>$/.exec(call) ?? []
    const [, second] = /^<\.\.\. \w+ resumed>(.*)$/.exec(call) ?? []
    if (first !== undefined) unfinished.set(thread, first)
    return first !== undefined ? [] : [second === undefined ? call : `${unfinished.get(thread)}${second}`]
  })
}
