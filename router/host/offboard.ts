import { BlockError, hasBlock, withoutBlock } from '../onboard/marked-block.ts'
import { fileDiff } from './file-diff.ts'
import { type OwnService, OwnServiceError, ownService, serviceAad, stopOwn } from './own-service.ts'
import { allStartUpPaths, readStartUpFile, replaceStartUpFile, StartUpFileError } from './start-up-file.ts'

type Vars = Readonly<Record<string, string | undefined>>

export interface Offboarded {
  changes: { path: string; diff: string }[]
  service: OwnService | undefined
  /** Where the service keeps what stays. */
  folder: string
  /** Sentences about what could not be taken back. */
  failures: string[]
}

/** Takes our lines out of every start-up file and stops our service. What fails does not keep the rest from being taken back. */
export async function offboard(vars: Vars, { dryRun }: { dryRun: boolean }): Promise<Offboarded> {
  const place = serviceAad(vars)
  const done: Offboarded = { changes: [], service: undefined, folder: place.folder, failures: [] }
  // Two of the paths may be names of one file.
  const seen = new Set<string>()
  for (const path of allStartUpPaths(vars)) {
    try {
      const file = await readStartUpFile(path)
      if (seen.has(file.real) || file.text === undefined || !hasBlock(file.text)) continue
      seen.add(file.real)
      const { text, newFolders } = withoutBlock(file.text)
      if (!dryRun) await replaceStartUpFile(file, text, newFolders)
      done.changes.push({ path, diff: fileDiff(path, file.text, text) })
    } catch (error) {
      if (error instanceof BlockError) done.failures.push(`${path} ${error.message}.`)
      else if (error instanceof StartUpFileError) done.failures.push(error.message)
      else throw error
    }
  }
  try {
    const drainMs = (Number(vars.ROUTER_DRAIN_SECONDS) || 30) * 1000
    done.service = dryRun ? await ownService(place) : await stopOwn(place, drainMs + 10_000)
  } catch (error) {
    if (!(error instanceof OwnServiceError)) throw error
    done.failures.push(error.message)
  }
  return done
}
