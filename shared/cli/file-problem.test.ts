import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ReadOnlyDbError } from '../sql/guarded-client.ts'
import { fileProblem } from './file-problem.ts'

const errorOf = (path: string) => readFile(path).catch((error: unknown) => error)

it('says what is to be done about a file, and nothing of a fault of the program', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-file-problem-'))
  await writeFile(join(folder, 'file'), '')
  expect(fileProblem(await errorOf(join(folder, 'file', 'below')))).toBe(
    `${folder}/file/below: it lies below a file, not a folder: name another path (ENOTDIR)`,
  )
  // Node 26 says which one.
  expect(fileProblem(await errorOf('/proc/self/task/'))).toMatch(
    /^(?:It is|\/proc\/self\/task\/: it is) a folder: name a file \(EISDIR\)$/,
  )
  expect(fileProblem(await errorOf('/proc/self/task/'), 'task')).toBe('task: it is a folder: name a file (EISDIR)')
  expect(fileProblem(Object.assign(new Error('full'), { code: 'SQLITE_FULL' }))).toContain('No room is left')
  expect(fileProblem(Object.assign(new Error('write'), { code: 'ENOSPC' }))).toBe(
    'No room is left on the disk: make room, or name a path on another one (ENOSPC)',
  )
  expect(fileProblem(Object.assign(new Error('copy'), { code: 'ENOSPC', path: '/from', dest: '/to' }))).toMatch(
    /^\/to: no room/,
  )
  expect(fileProblem(Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' }))).toBe(
    'No further thread can be started: raise the limit of processes (--pids-limit, TasksMax) (ERR_WORKER_INIT_FAILED)',
  )
  expect(fileProblem(Object.assign(new Error('malformed'), { code: 'SQLITE_CORRUPT' }))).toMatch(
    /^The store is damaged, or its disk fails: .* restore a backup, without the -wal/,
  )
  const readOnly = Object.assign(new Error('attempt to write a readonly database'), { code: 'SQLITE_READONLY' })
  expect(fileProblem(readOnly)).toMatch(/^The disk of the store takes no writes: .* copy the store to another disk/)
  expect(fileProblem(new ReadOnlyDbError('insert'))).toBeUndefined()
  expect(fileProblem(await errorOf(join(folder, 'absent')))).toBeUndefined()
  expect(fileProblem(new Error('a fault'))).toBeUndefined()
  expect(fileProblem(Object.assign(new Error('odd'), { code: 'constructor' }))).toBeUndefined()
  await rm(folder, { recursive: true })
})
