import { createReadStream } from 'node:fs'
import { readJson } from '../../shared/json/read-json.ts'
import type { Checkpoint, RouterKeys } from '../../shared/wire/router/checkpoint.ts'
import type { RecordLine } from '../traces/check-stretch.ts'

/** A file that verify was given cannot be used. The message is one sentence for the person at the terminal. */
export class RecordFileError extends Error {
  override name = 'RecordFileError'
}

type LineKind = 'record' | 'feedback' | 'checkpoint' | 'keys'

/** Which kind of line this is, by a member that only this kind has. Text inside a string cannot look like one: its quotes are escaped. */
function kindOf(line: string): LineKind {
  if (line.includes('"attempts"')) return 'record'
  if (line.includes('"prev_checkpoint"')) return 'checkpoint'
  if (line.includes('"heads_url"')) return 'keys'
  return line.includes('"feedback_id"') ? 'feedback' : 'record'
}

/** The lines of an export that are records, or feedback, as they come from the disk. */
export async function* fileRecords(path: string, kind: 'record' | 'feedback'): AsyncGenerator<RecordLine[]> {
  for await (const lines of fileLines(path)) {
    yield lines.filter(line => kindOf(line) === kind).map(text => ({ text }))
  }
}

export interface Extras {
  checkpoints: Checkpoint[]
  keys: RouterKeys[]
  feedback: boolean
}

/** What an export holds besides records. */
export async function fileExtras(path: string): Promise<Extras> {
  const extras: Extras = { checkpoints: [], keys: [], feedback: false }
  for await (const lines of fileLines(path)) {
    for (const line of lines) {
      const kind = kindOf(line)
      if (kind === 'checkpoint') extras.checkpoints.push(toCheckpoint(line, path))
      if (kind === 'keys') extras.keys.push(readJson(line) as RouterKeys)
      if (kind === 'feedback') extras.feedback = true
    }
  }
  return extras
}

export async function readCheckpoints(path: string): Promise<Checkpoint[]> {
  const found: Checkpoint[] = []
  for await (const lines of fileLines(path)) found.push(...lines.map(line => toCheckpoint(line, path)))
  return found
}

function toCheckpoint(line: string, path: string): Checkpoint {
  try {
    const value = readJson(line) as Checkpoint
    if (typeof value.tenant_id === 'string' && Number.isSafeInteger(value.seq) && typeof value.sig === 'string')
      return value
  } catch {
    // Said below.
  }
  throw new RecordFileError(`${path} holds a line that is no checkpoint: ${line.slice(0, 60)}`)
}

/** The lines of a file in lots; a file larger than the memory passes through. */
async function* fileLines(path: string): AsyncGenerator<string[]> {
  let rest = ''
  try {
    for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 1 << 18 })) {
      const lines = (rest + String(chunk)).split('\n')
      rest = lines.pop() ?? ''
      yield lines.filter(line => line.trim() !== '')
    }
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && 'syscall' in cause)) throw cause
    throw new RecordFileError(`The file ${path} cannot be read: ${cause.message}.`, { cause })
  }
  if (rest.trim() !== '') yield [rest]
}
