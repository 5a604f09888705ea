import { readFile } from 'node:fs/promises'
import { Command, Option, UsageError } from 'clipanion'
import { jsonText } from '../../shared/cli/json-text.ts'
import { counted } from '../../shared/cli/text-table.ts'
import { visible } from '../../shared/log/log.ts'
import { fromBase64, toBase64 } from '../../shared/sign/bytes.ts'
import { publicKey, signer } from '../../shared/sign/ed25519.ts'
import type { Checkpoint, RouterKeys, VerifyReport } from '../../shared/wire/router/checkpoint.ts'
import type { PlacedStore } from '../host/open-store.ts'
import type { TrustedKeys } from '../traces/checkpoint.ts'
import { DAY_MS } from '../traces/savings.ts'
import type { VerifyInput } from '../traces/verify.ts'

/** `router verify`: re-derives the chains; exits 1 at the first break. */
export class VerifyCommand extends Command {
  static override paths = [['verify']]
  static override usage = Command.Usage({
    description: 'Re-derive every chain from its beginning and check it against the signed checkpoints.',
    details: `
      Reads the store, or with --file an export. Exit code 0: everything holds. 1: a chain is broken (the index of the first record that
      fails is printed), records of a file are under no signed checkpoint, or kept sums of savings differ from the records. 2: wrong use.
      3: the store or the file cannot be read.

      A file is valid only where signed checkpoints cover all of it, because anyone can write consistent records. For an export without
      checkpoints, or one whose newest records are not signed yet, say --allow-unsigned. The newest records of a store wait for their
      checkpoint, so a store is valid without it; --strict demands it.

      Keys listed in the store prove no more than the store itself: give a public key that you kept elsewhere with --key, and an older
      copy of a checkpoint with --anchor. Without an anchor, it cannot be detected that records were cut off the end together with their
      checkpoints.
    `,
    examples: [
      ['The store of this folder', '$0 verify'],
      ['An export, with what was kept elsewhere', '$0 verify --file trace.jsonl --anchor anchor.jsonl --key <base64>'],
    ],
  })

  db = Option.String('--db', { description: 'Trace store (ROUTER_DB).' })
  file = Option.String('--file', { description: 'An export instead of a store.' })
  checkpoints = Option.String('--checkpoints', {
    description: 'A file of checkpoints, such as <db>.checkpoints.jsonl.',
  })
  anchor = Option.String('--anchor', { description: 'Checkpoints that were kept elsewhere.' })
  key = Option.String('--key', {
    description: 'Trusted public key: base64, or a file with it or with the published keys.',
  })
  tenant = Option.String('--tenant', { description: 'Only this tenant.' })
  strict = Option.Boolean('--strict', false, {
    description: 'Also fail when records or feedback follow the last checkpoint, as for a file.',
  })
  allowUnsigned = Option.Boolean('--allow-unsigned', false, {
    description: 'Accept records and feedback of a file that no signed checkpoint covers.',
  })
  json = Option.Boolean('--json', false, { description: 'Print the report as JSON.' })

  override async execute(): Promise<number> {
    if (this.db !== undefined && this.file !== undefined) throw new UsageError('Give --db or --file, not both.')
    try {
      const trusted = this.key === undefined ? undefined : await readKeys(this.key)
      const report = this.file === undefined ? await this.stores(trusted) : await this.export(this.file, trusted)
      this.print(report.verdict, report.notes)
      return report.verdict.valid ? 0 : 1
    } catch (error) {
      const { ExportLineError } = await import('../traces/export-line.ts')
      if (error instanceof ExportLineError) {
        this.print({ valid: false, reason: error.reason, records: 0, tenants: [] }, [
          `${this.file ?? 'the store'}: ${error.message}`,
        ])
        return 1
      }
      throw error
    }
  }

  /** The chains of one store, or of each shard. */
  private async stores(trusted: TrustedKeys | undefined) {
    const { storePlaces } = await import('../host/open-store.ts')
    const found = []
    for (const place of await storePlaces(this.context.env, this.db, this.tenant)) {
      const { shard } = place
      const { verdict, notes } = await this.store(place, trusted)
      found.push({ shard, verdict, notes: notes.map(note => (shard === undefined ? note : `shard ${shard}: ${note}`)) })
    }
    return joinReports(found)
  }

  private async store({ address, holds }: PlacedStore, trusted: TrustedKeys | undefined) {
    const { openPlaced } = await import('../host/open-store.ts')
    const { reportOfOneMoment, storedCheckpoints, storedFeedback, storedRecords } = await import(
      '../traces/stored-records.ts'
    )
    const { publishedKeys } = await import('../traces/keys.ts')
    const { verifiedInThreads } = await import('../host/verify-threads.ts')
    const { wrongSums } = await import('../traces/savings-days.ts')
    const db = await openPlaced(this.context.env, address)
    const { tenant } = this
    try {
      const found = await reportOfOneMoment(db, tenant, async () => {
        const report = await this.check({
          records: db.kind === 'file' ? verifiedInThreads(db, { address, tenant }) : storedRecords(db, tenant),
          feedback: storedFeedback(db, tenant),
          own: await storedCheckpoints(db, { tenant }),
          published: [await publishedKeys(db)],
          trusted,
          holds,
        })
        return { ...report, valid: report.verdict.valid }
      })
      const wrong = found.verdict.valid ? await wrongSums(db, tenant) : undefined
      if (wrong === undefined) return found
      const day = new Date(wrong.first.day * DAY_MS).toISOString().slice(0, 10)
      found.notes.push(
        `the savings of ${wrong.count} days are not those of their records, first of ${wrong.first.tenant} on ${day}: ` +
          'delete the rows of savings_days, which are made again from the records',
      )
      return { ...found, verdict: { ...found.verdict, valid: false, reason: 'savings' } }
    } finally {
      db.close()
    }
  }

  private async export(path: string, trusted: TrustedKeys | undefined) {
    const { fileLines } = await import('../host/record-file.ts')
    const { exportExtras, exportRecords } = await import('../traces/export-line.ts')
    const { checkpoints, keys, feedback } = await exportExtras(fileLines(path))
    return this.check({
      records: exportRecords(fileLines(path), 'record'),
      ...(feedback && { feedback: exportRecords(fileLines(path), 'feedback') }),
      own: checkpoints,
      published: keys,
      trusted,
    })
  }

  private async check({ own, published, trusted, holds = () => true, ...source }: Source) {
    const { verifyRecords } = await import('../traces/verify.ts')
    const { trustedKeys } = await import('../traces/keys.ts')
    const { readCheckpoints, RecordFileError } = await import('../host/record-file.ts')
    const { nativeSha256 } = await import('../../shared/host/native-sha256.ts')
    const copies = async (path: string | undefined) => (path === undefined ? undefined : readCheckpoints(path))
    const ofSource = ({ tenant_id }: Checkpoint) => holds(tenant_id)
    const kept = ((await copies(this.checkpoints)) ?? []).filter(ofSource)
    const given = await copies(this.anchor)
    if (given?.length === 0) throw new RecordFileError(`${this.anchor} holds no checkpoint: nothing is missed by it`)
    const anchored = (given ?? []).filter(ofSource)
    const listed = published.flatMap(({ keys }) => keys)
    const keys = trusted ?? (listed.length > 0 ? trustedKeys({ keys: listed.filter(isReadable) }) : undefined)
    const [checkpoints, anchors] = own.length > 0 ? [own, [...kept, ...anchored]] : [kept, anchored]
    if (trusted) await refusePrivate(trusted, new Set([...listed, ...checkpoints].map(({ key_id }) => key_id)))
    const found = await verifyRecords({
      ...source,
      checkpoints,
      anchors,
      ...(keys && { keys }),
      ...(this.tenant !== undefined && { tenant: this.tenant }),
      sha256: nativeSha256,
    })
    const { signedReport, unsigned } = await import('../traces/signed-report.ts')
    const isStrict = this.strict || (this.file !== undefined && !this.allowUnsigned)
    const verdict = isStrict ? signedReport(found, keys !== undefined) : found
    const notes = []
    if (verdict.reason === 'unsigned' && verdict.tenants.length === 0) notes.push('there is no record in it')
    else if (verdict.reason === 'unsigned')
      notes.push(`no signed checkpoint covers ${unsigned(verdict)}: export with --checkpoints, or say --allow-unsigned`)
    if (verdict.reason === 'no_key')
      notes.push('no signature was checked: give the public key of the router with --key, or say --allow-unsigned')
    const prune = checkpoints.filter(({ kind }) => kind === 'prune').at(-1)
    if (prune !== undefined)
      notes.push(`${prune.tenant_id} was pruned up to seq ${prune.seq}: its chain is checked from there`)
    if (keys === undefined && checkpoints.length + anchors.length > 0)
      notes.push('no public key is known: signatures were not checked')
    else if (trusted === undefined && keys !== undefined)
      notes.push('keys were taken from what is being checked: give --key for proof')
    if (anchors.length === 0)
      notes.push('no anchor: if records and their checkpoints were truncated from the end, this check cannot detect it')
    return { verdict, notes }
  }

  private print(report: VerifyReport, notes: readonly string[]) {
    const { stdout, stderr } = this.context
    if (this.json) {
      stdout.write(jsonText(report) + '\n')
      return
    }
    // The author of the file is unknown: nothing in it may begin a line.
    const say = (line: string) => stdout.write(visible(line) + '\n')
    for (const { tenant_id, records, broken_at, reason, last_checkpoint, unanchored_tail } of report.tenants) {
      const whole = report.reason === undefined ? 'valid' : 'whole'
      const state = broken_at === null ? whole : `BROKEN at index ${broken_at} (${reason})`
      const signed = last_checkpoint === null ? 'no checkpoint' : `last checkpoint at seq ${last_checkpoint}`
      const whose = tenant_id || 'a line without a tenant'
      say(`${whose}: ${counted(records, 'record')}, ${state}, ${signed}, ${unanchored_tail} after it`)
    }
    const verdict = report.reason === undefined ? 'BROKEN' : `NOT VALID (${report.reason})`
    say(`${report.valid ? 'valid' : verdict}: ${counted(report.records, 'record')}`)
    for (const note of notes) stderr.write(visible(`note: ${note}`) + '\n')
  }
}

interface Source extends Pick<VerifyInput, 'records' | 'feedback'> {
  own: NonNullable<VerifyInput['checkpoints']>
  published: RouterKeys[]
  trusted: TrustedKeys | undefined
  /** Whose copies of checkpoints speak of this source. */
  holds?: PlacedStore['holds']
}

/** A listed key that was overwritten: what it signed is of an unknown key. */
function isReadable({ public_key }: RouterKeys['keys'][number]): boolean {
  try {
    return fromBase64(public_key).length === 32
  } catch {
    return false
  }
}

/** A private key has the form of a public one, and would make every signature a wrong one. */
async function refusePrivate(given: TrustedKeys, known: ReadonlySet<string>): Promise<void> {
  for (const bytes of given.values()) {
    const { keyId, publicKey: own } = await signer(Uint8Array.from(bytes))
    if (!known.has(keyId)) continue
    throw new UsageError(
      `--key is the private key that signs these checkpoints: keep it secret, and give its public key, ${toBase64(own)}, or the published keys.`,
    )
  }
}

async function readKeys(given: string): Promise<TrustedKeys> {
  const { trustedKeys } = await import('../traces/keys.ts')
  const { toKeys } = await import('../traces/export-line.ts')
  const text = (await readFile(given, 'utf8').catch(() => given)).trim()
  try {
    if (text.startsWith('{')) return trustedKeys(toKeys(text))
    const key = publicKey(fromBase64(text))
    return new Map([[key.keyId, key.publicKey]])
  } catch {
    throw new UsageError(
      '--key expected a public key of 32 bytes in base64, or a file that holds one or the published keys.',
    )
  }
}

interface ShardReport {
  /** Undefined where there is one store. */
  shard: string | undefined
  verdict: VerifyReport
  notes: readonly string[]
}

/** What was found in each shard as one report. A tenant with records in two of them has no one chain, and that is no valid log. */
function joinReports(found: readonly ShardReport[]): { verdict: VerifyReport; notes: string[] } {
  const notes = found.flatMap(one => one.notes)
  const [only, ...others] = found
  if (only && others.length === 0) return { verdict: only.verdict, notes }
  const places = Map.groupBy(
    found.flatMap(({ shard = '', verdict }) => verdict.tenants.map(({ tenant_id }) => ({ tenant_id, shard }))),
    ({ tenant_id }) => tenant_id,
  )
  const split = [...places].filter(([, those]) => those.length > 1)
  for (const [tenant, those] of split)
    notes.push(`${tenant} has a chain in each of the shards ${those.map(({ shard }) => shard).join(', ')}`)
  const reason = found.find(({ verdict }) => verdict.reason !== undefined)?.verdict.reason
  return {
    verdict: {
      valid: split.length === 0 && found.every(({ verdict }) => verdict.valid),
      ...((reason ?? split[0]) !== undefined && { reason: reason ?? 'two_shards' }),
      records: found.reduce((sum, { verdict }) => sum + verdict.records, 0),
      tenants: found.flatMap(({ verdict }) => verdict.tenants).toSorted((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1)),
    },
    notes,
  }
}
