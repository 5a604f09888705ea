import { type FileHandle, open, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command, Option, UsageError } from 'clipanion'
import { counted } from '../../shared/cli/text-table.ts'
import { ClientError, type RuntimeClient } from '../../shared/client/client.ts'
import { eachLine, lineBatches } from '../../shared/host/file-lines.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { syncPath } from '../../shared/host/operator-file.ts'
import { visible } from '../../shared/log/log.ts'
import { JOURNAL, unknownMember } from '../../shared/proof/members.ts'
import { ProofTextError, readProofBytes } from '../../shared/proof/read-proof.ts'
import { journalFault, NotAProof, type Refused, signedBytes, walkFault } from '../../shared/proof/receipt-proof.ts'
import { hashedText } from '../../shared/sign/journal-walk.ts'
import { type Sha256, sha256Hex } from '../../shared/sign/sha256.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt, ReceiptPayload } from '../../shared/wire/runtime/receipt.ts'
import { isTerminal, type Run } from '../../shared/wire/runtime/run.ts'
import { genesis, linkHash } from '../execution/journal/event.ts'
import { ambiguous, fingerprintOf, KeyRefused, Unusable } from './input-files.ts'
import { appendTexts, type ExportedEvent, journalTexts } from './journal-text.ts'
import { EVERY_RUN, explanationOf, PAGE, ServiceCommand, WHERE } from './service-command.ts'

const DAY_MS = 86_400_000
/** Runs that are asked for at once; they stand in the file in the order of the list. */
const AT_ONCE = 8
/** Of a line that is read ahead of its place in the file; a longer one is read when its place has come. */
const MOST_AHEAD = 1024 * 1024

/** A line of an archive: a run and what proves it. */
interface Archived {
  run: Run
  journal: JournalExport
  receipt: Receipt
}

/** `runtime archive`: what ended long ago, in one file that can be checked for ever; then it may leave the store. */
export class ArchiveCommand extends ServiceCommand {
  static override paths = [['archive']]
  static override usage = Command.Usage({
    description: 'Write runs that ended long ago into one file, and delete them.',
    details: `
      ${WHERE}

      Each line of runs-<time>.jsonl is one run with its journal and its receipt; keys.json has the keys that receipts are signed with.
      A run whose receipt or journal does not verify is left out and named. With --delete the runs are deleted once the whole file is
      on the disk, except turns of open sessions. Receipts stay with the service. The store reuses the room that the runs leave;
      "runtime compact" gives it back to the disk.
    `,
    examples: [
      ['What ended more than 90 days ago', '$0 archive --days 90 --to archive'],
      ['The same, each night, and out of the store', '$0 archive --days 90 --to archive --delete'],
    ],
  })

  days = Option.String('--days', '90', { description: 'Runs that ended more than this many days ago; 90.' })
  to = Option.String('--to', '.', { description: 'The folder; it is made when there is none.' })
  remove = Option.Boolean('--delete', false, { description: 'Delete from the store what is in the file.' })

  protected async act(client: RuntimeClient): Promise<number> {
    if (!/^\d{1,6}$/.test(this.days)) throw new UsageError('--days: expected a whole number of days, such as 90')
    const before = Date.now() - Number(this.days) * DAY_MS
    await makeFolder(this.to)
    const keys = join(this.to, 'keys.json')
    await writeFile(keys, JSON.stringify(await client.receipts.keys()) + '\n', { mode: 0o600, flush: true })
    const path = join(this.to, `runs-${new Date().toISOString().replaceAll(/[-:]/g, '').replace('.', '')}.jsonl`)
    const file = await open(`${path}.part`, 'wx', 0o600)
    const written: Pick<Run, 'id' | 'sessionId'>[] = []
    let left = 0
    // What was said in a session is what its next turn begins with.
    const inUse = new Set<string>()
    for await (const { id, status } of client.sessions.list.each({ query: { limit: PAGE } })) {
      if (status !== 'stopped') inUse.add(id)
    }
    const asked: { run: Pick<Run, 'id' | 'sessionId'>; read: Promise<Read> }[] = []
    const putFirst = async () => {
      const { run, read } = asked.shift()!
      const put = await this.put(file, await read, () => lineOf(client, run.id, keys))
      if (put === undefined) written.push(run)
      else {
        left++
        this.context.stderr.write(`${run.id} is left out: ${put}\n`)
      }
    }
    try {
      for (const query of EVERY_RUN) {
        for await (const run of client.runs.list.each({ query })) {
          if (!isTerminal(run.status) || Date.parse(run.finishedAt ?? '') > before) continue
          asked.push({ run, read: readRun(client, run.id, keys) })
          if (asked.length === AT_ONCE) await putFirst()
        }
      }
      while (asked.length > 0) await putFirst()
      await file.sync()
    } finally {
      await file.close()
      if (written.length === 0) await rm(`${path}.part`)
    }
    if (written.length > 0) {
      await rename(`${path}.part`, path)
      await syncPath(this.to)
      this.say(`${counted(written.length, 'run')} in ${path}, each verified`)
    } else this.say(`no run to archive ended more than ${this.days} days ago`)
    if (this.remove) {
      const going = written.filter(({ sessionId }) => sessionId === undefined || !inUse.has(sessionId))
      for (const { id } of going) await client.runs.remove({ params: { id } }).catch(unlessGone)
      if (written.length > 0) this.say(`${going.length} of them deleted from the store`)
    }
    return left > 0 ? 1 : 0
  }

  /** Why a line was left out; undefined: it stands in the file. */
  private async put(file: FileHandle, read: Read, line: () => AsyncGenerator<string>): Promise<string | undefined> {
    if ('error' in read) throw read.error
    if ('problem' in read) return read.problem
    const { size } = await file.stat()
    try {
      await appendTexts(file, read.isLonger ? line() : read.texts)
      return undefined
    } catch (error) {
      const problem = problemIn(error)
      if (problem === undefined) throw error
      await file.truncate(size)
      return problem
    }
  }
}

/** Another archive, or a retention, was first. */
function unlessGone(error: unknown): void {
  if (!(error instanceof ClientError) || error.status !== 404) throw error
}

/** A line of the file as far as it is read ahead, or why there is none. */
type Read = { texts: string[]; isLonger: boolean } | { problem: string } | { error: unknown }

/** A run does not verify. */
class NotValid extends Error {}

/** Why a run is left out; undefined where the whole command cannot go on. */
function problemIn(error: unknown): string | undefined {
  if (error instanceof ClientError) return explanationOf(error)
  return error instanceof NotValid ? error.message : undefined
}

async function readRun(client: RuntimeClient, id: string, keys: string): Promise<Read> {
  const texts: string[] = []
  let characters = 0
  try {
    for await (const text of lineOf(client, id, keys)) {
      characters += text.length
      if (characters > MOST_AHEAD) return { texts: [], isLonger: true }
      texts.push(text)
    }
    return { texts, isLonger: false }
  } catch (error) {
    const problem = problemIn(error)
    return problem === undefined ? { error } : { problem }
  }
}

/** The text of a line in pieces, of which the last one comes when all have been checked. */
async function* lineOf(client: RuntimeClient, id: string, keys: string): AsyncGenerator<string> {
  const params = { id }
  const [run, receipt] = await Promise.all([client.runs.get({ params }), client.receipts.get({ params })])
  const signed = await signedIn({ run, receipt }, keys)
  if (typeof signed === 'string') throw new NotValid(signed)
  const chain = await chainCheck(signed)
  yield `{"run":${JSON.stringify(run)},"journal":`
  yield* journalTexts(client, id, chain.add)
  const problem = chain.problem()
  if (problem !== undefined) throw new NotValid(`${problem.reason}: ${problem.explanation}`)
  yield `,"receipt":${JSON.stringify(receipt)}}\n`
}

/** Checks the events of a journal as they come, of which none is held. */
async function chainCheck({ runId, ...signed }: ReceiptPayload) {
  const { nativeSha256 } = await import('../../shared/host/native-sha256.ts')
  let { seq: count, hash: head } = genesis(runId, nativeSha256)
  let fault: Pick<Refused, 'reason' | 'explanation'> | undefined
  return {
    add(event: ExportedEvent): void {
      if (fault !== undefined) return
      const extra = unknownMember({ events: [event] }, JOURNAL)
      if (extra !== undefined) {
        fault = { reason: 'unknown_member', explanation: `a journal has no member ${extra}` }
        return
      }
      const text = event.runId === runId && event.seq === count + 1 ? canonicalText(event) : undefined
      if (text !== undefined) head = linkHash(head, text, nativeSha256)
      if (text === undefined || event.hash !== head) fault = walkFault({ ok: false, brokenAt: count + 1 }, signed)
      count++
    },
    problem: () => fault ?? walkFault({ ok: true, count, head }, signed),
  }
}

/** Undefined for what has no canonical form, which no hash covers. */
function canonicalText(event: ExportedEvent): string | undefined {
  try {
    return hashedText(event)
  } catch {
    return undefined
  }
}

/** `runtime archive verify`: needs no server, no store and no network. Exit code 0 valid, 1 invalid, 2 unusable. */
export class ArchiveVerifyCommand extends Command {
  static override paths = [['archive', 'verify']]
  static override usage = Command.Usage({
    description: 'Verify every receipt and journal of an archive offline.',
    details: 'Exit code 0: every line is valid; 1: one is not; 2: the files cannot be used.',
    examples: [['A whole archive', '$0 archive verify archive/runs-20260102T030405678Z.jsonl --key archive/keys.json']],
  })

  file = Option.String({ name: 'runs.jsonl' })
  key = Option.String('--key', {
    required: true,
    description: 'A copy of /.well-known/platform-receipts, or the public key in base64.',
  })

  override async execute(): Promise<number> {
    let [number, broken] = [0, 0]
    try {
      for await (const lot of lineBatches(this.file)) {
        for (const bytes of eachLine(lot)) {
          number++
          const problem = await this.problem(bytes, number)
          if (problem === undefined) continue
          broken++
          this.context.stdout.write(visible(`NOT VALID  line ${number}: ${problem}`) + '\n')
        }
      }
    } catch (error) {
      if (!(error instanceof Unusable) && !(error instanceof Error && 'code' in error)) throw error
      this.context.stderr.write(`${this.file}: ${error.message}\n`)
      return 2
    }
    if (number === 0) {
      this.context.stderr.write(`${this.file}: it is empty, and an archive holds at least one run\n`)
      return 2
    }
    this.context.stdout.write(`${number - broken} of ${number} runs valid\n`)
    return broken > 0 ? 1 : 0
  }

  /** In which line each run stands. */
  private readonly lines = new Map<string, number>()

  private async problem(bytes: Uint8Array, number: number): Promise<string | undefined> {
    let line: unknown
    try {
      line = readLine(bytes, number)
    } catch (error) {
      const { reason, explanation } = ambiguous(error)
      return `${reason}: ${explanation}`
    }
    const problem = await problemOf(line, this.key)
    if (problem !== undefined) return problem
    const { id } = (line as Archived).run
    const before = this.lines.get(id)
    this.lines.set(id, before ?? number)
    return before === undefined ? undefined : `the same run as in line ${before}`
  }
}

function readLine(bytes: Uint8Array, number: number): unknown {
  try {
    return readProofBytes(bytes)
  } catch (cause) {
    if (!(cause instanceof ProofTextError) || cause.reason !== 'not_json') throw cause
    throw new Unusable(`line ${number} is not JSON: the file was cut or changed`, { cause })
  }
}

/** Why a line does not hold: its receipt, its journal, or a run that says something else than they do. */
async function problemOf(line: unknown, key: string): Promise<string | undefined> {
  const { hashWith } = await import('../receipts/verify-offline.ts')
  const { nativeSha256 } = await import('../../shared/host/native-sha256.ts')
  const { run, receipt, journal, ...rest } = { ...(line as Partial<Archived>) }
  const [extra] = Object.keys(rest)
  if (extra !== undefined) return `unknown_member: a line has no member ${extra}`
  if (receipt === undefined || journal === undefined) return 'it has no receipt, or no journal'
  const signed = await signedIn({ run, receipt }, key)
  if (typeof signed === 'string') return signed
  try {
    const fault = await journalFault(journal, signed, { sha256: hashWith(nativeSha256) })
    return fault && `${fault.reason}: ${fault.explanation}`
  } catch (error) {
    if (error instanceof NotAProof) return `it is not ${error.message}`
    throw error
  }
}

/** What the receipt of a run says where it is signed and the run says the same, and else why it does not hold. */
async function signedIn(
  { run, receipt }: Pick<Archived, 'receipt'> & { run: Run | undefined },
  key: string,
): Promise<ReceiptPayload | string> {
  const { verifyOffline } = await import('../receipts/verify-offline.ts')
  const { nativeSha256 } = await import('../../shared/host/native-sha256.ts')
  try {
    const fingerprint = await fingerprintOf(key, receipt)
    const result = await verifyOffline({ receipt, fingerprint }, nativeSha256)
    if (!result.valid) return `${result.reason}: ${result.explanation}`
    const { payload } = result
    if (run?.id !== payload.runId || run.status !== payload.status) return 'the receipt is of another run'
    const other = SIGNED.find(name => run[name] !== payload[name])
    if (other !== undefined) return `record_mismatch: ${other} of the run is not what was signed`
    const texts = [
      ['input', payload.inputHash],
      ['output', payload.outputHash],
    ] as const
    // A run whose texts are gone, by the rule of its agent, says nothing of them.
    const text = texts.find(([name, hash]) => run[name] !== undefined && hashOf(run[name], nativeSha256) !== hash)
    return text ? `${text[0]}_hash_mismatch: ${text[0]} of the run is not what was signed` : payload
  } catch (error) {
    if (error instanceof NotAProof) return `it is not ${error.message}`
    if (error instanceof KeyRefused) return `${error.reason}: ${error.message}`
    throw error
  }
}

/** What a run repeats of its receipt, under the same names. */
const SIGNED = [
  'tenantId',
  'agentName',
  'agentVersionId',
  'tokensIn',
  'tokensOut',
  'costUsd',
  'createdAt',
  'finishedAt',
] as const

/** Undefined for what has no canonical form, which cannot have been signed. */
function hashOf(value: unknown, sha256: Sha256): string | undefined {
  const bytes = signedBytes(value)
  return bytes && sha256Hex(bytes, sha256)
}
