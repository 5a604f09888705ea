import { eachLine, lineBatches } from '../../shared/host/file-lines.ts'
import type { Checkpoint } from '../../shared/wire/router/checkpoint.ts'
import { ExportLineError, isBlank, toCheckpoint } from '../traces/export-line.ts'

/** A file that verify was given cannot be used. The message is one sentence for the person at the terminal. */
export class RecordFileError extends Error {
  override name = 'RecordFileError'
}

export async function readCheckpoints(path: string): Promise<Checkpoint[]> {
  const found: Checkpoint[] = []
  try {
    for await (const lines of fileLines(path)) found.push(...lines.map(toCheckpoint))
  } catch (cause) {
    if (!(cause instanceof ExportLineError)) throw cause
    throw new RecordFileError(`${path} holds something else than checkpoints: ${cause.message}`, { cause })
  }
  return found
}

/** The lines of a file in lots; a file larger than the memory passes through. */
export async function* fileLines(path: string): AsyncGenerator<string[]> {
  try {
    for await (const bytes of lineBatches(path)) yield linesOf(bytes)
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && 'syscall' in cause)) throw cause
    throw new RecordFileError(`The file ${path} cannot be read: ${cause.message}.`, { cause })
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What is no UTF-8 is no JSON either: such a line fails where it stands. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** All of them at once where they are UTF-8, else each by itself. */
function linesOf(bytes: Buffer): string[] {
  const lines =
    decoded(bytes)?.split('\n') ?? eachLine(bytes).map(line => decoded(line) ?? `not UTF-8: ${line.toString()}`)
  return lines.filter(line => !isBlank(line))
}
