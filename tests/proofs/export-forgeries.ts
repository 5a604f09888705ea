import { signCheckpoint } from '../../router/traces/checkpoint.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { signer } from '../../shared/sign/ed25519.ts'
import { GENESIS, type Sealed, seal } from '../../shared/sign/record-chain.ts'
import type { Checkpoint, RouterKeys } from '../../shared/wire/router/checkpoint.ts'
import { EXPORT_KINDS, type ExportKind, type ExportProof, kindOfLine, type LineKind } from './router-proofs.ts'

export interface ExportForgery {
  name: string
  reason: string
  text: Buffer
  keys: RouterKeys
}

type Line = Record<string, unknown> & { tenant_id: string; seq: number }
type Edit = (lines: string[]) => readonly string[] | Buffer
type LineEdit = (lines: string[]) => string[]

const parse = (line: string) => JSON.parse(line) as Line
/** Where the lines of that kind stand, of tenant `a` where they have one. */
const places = (lines: readonly string[], kind: LineKind) =>
  [...lines.keys()].filter(
    at => kindOfLine(lines[at]!) === kind && (kind === 'keys' || parse(lines[at]!).tenant_id === 'a'),
  )
const at =
  (kind: LineKind, place: number, edit: (line: string) => string): LineEdit =>
  lines => {
    const index = places(lines, kind).at(place)!
    const edited = edit(lines[index]!)
    if (edited === lines[index]) throw new Error(`nothing was forged in ${edited.slice(0, 300)}`)
    return lines.with(index, edited)
  }
const swap =
  (from: string | RegExp, to: string) =>
  (line: string): string =>
    line.replace(from, to)
const set =
  (members: object) =>
  (line: string): string =>
    JSON.stringify({ ...parse(line), ...members })
const without =
  (kind: LineKind, first: number, last = first): Edit =>
  lines => {
    const gone = new Set(places(lines, kind).slice(first, last === -1 ? undefined : last + 1))
    return lines.filter((_, index) => !gone.has(index))
  }
/** What can be done without a key: new places and hashes from that line on. */
const resealed =
  (kind: 'record' | 'feedback', from: number, edit: (line: Line) => object): Edit =>
  lines => {
    const edited = [...lines]
    let previous: Sealed | undefined
    for (const [place, index] of places(lines, kind).entries()) {
      const line = parse(lines[index]!)
      if (place >= from && previous !== undefined) {
        const { hash: _, ...record } = line
        edited[index] = JSON.stringify(seal(place === from ? edit(record as Line) : record, previous, nativeSha256))
      }
      previous = parse(edited[index]!) as unknown as Sealed
    }
    return edited
  }
const stranger = await signer(new Uint8Array(32).fill(42))

/** All checkpoints signed anew by another party, who lists a key of their own. */
async function signedByStranger(text: string): Promise<string> {
  const links = new Map<string, string>()
  const lines = []
  for (const line of text.trimEnd().split('\n')) {
    if (kindOfLine(line) === 'keys') {
      const key = {
        key_id: stranger.keyId,
        alg: 'Ed25519',
        public_key: Buffer.from(stranger.publicKey).toString('base64'),
      }
      lines.push(
        JSON.stringify({
          v: 1,
          keys: [{ ...key, created_at: '2026-01-01T00:00:00.000Z' }],
          heads_url: '/-/checkpoints',
        }),
      )
    } else if (kindOfLine(line) === 'checkpoint') {
      const { sig: _s, key_id: _k, v: _v, ...body } = JSON.parse(line) as Checkpoint
      const link = { prev_checkpoint: links.get(body.tenant_id) ?? GENESIS }
      const { checkpoint, digest } = await signCheckpoint({ ...body, ...link }, stranger, nativeSha256)
      links.set(body.tenant_id, digest)
      lines.push(JSON.stringify(checkpoint))
    } else lines.push(line)
  }
  return lines.join('\n')
}

export async function exportForgeries(proofs: Record<ExportKind, ExportProof>): Promise<ExportForgery[]> {
  const found: ExportForgery[] = []
  function add(kind: ExportKind, name: string, reason: string, edit: Edit) {
    const { text, keys } = proofs[kind]
    const edited = edit(text.trimEnd().split('\n'))
    const bytes = edited instanceof Buffer ? edited : Buffer.from(edited.join('\n') + '\n')
    found.push({ name: `export ${kind}: ${name}`, reason, text: bytes, keys })
  }

  for (const kind of EXPORT_KINDS) {
    add(kind, 'a record says something else', 'hash', at('record', 1, swap('"claude-code"', '"claude-xxxx"')))
    add(kind, 'a record is missing', 'seq', without('record', 1))
    add(kind, 'a cost in front of the cost', 'duplicate_member', at('record', 1, swap('"cost":', '"cost":0,"cost":')))
    add(kind, 'the last checkpoint is missing', 'unsigned', lines =>
      without('checkpoint', places(lines, 'checkpoint').length - 1)(lines),
    )
    add(
      kind,
      'written anew from a record on',
      'checkpoint_head',
      resealed('record', 2, line => ({ ...line, session_id: 'forged' })),
    )
    add(kind, 'the end is cut off', 'tail_cut', lines => without('record', places(lines, 'record').length - 1)(lines))
    const anew = await signedByStranger(proofs[kind].text)
    add(kind, 'signed by a stranger', 'checkpoint_signature', () => anew.split('\n'))
  }

  const plain: [string, string, Edit][] = [
    [
      'written anew, and no checkpoints',
      'unsigned',
      lines => {
        const edited = resealed('record', 1, line => ({ ...line, session_id: 'forged' }))(lines) as string[]
        return edited.filter(line => kindOfLine(line) === 'record')
      },
    ],
    ['nothing at all', 'unsigned', () => Buffer.from('')],
    ['a member more, under its hash', 'unknown_member', resealed('record', 2, line => ({ ...line, approved: true }))],
    ['a member more, deep inside', 'unknown_member', at('record', 0, swap('"tokens":{', '"tokens":{"free":1,'))],
    ['a change of a request that is not named', 'hash', at('record', 5, swap(/"adapted":\[[^\]]*\],/, ''))],
    [
      'a member more of a change',
      'unknown_member',
      at('record', 5, swap('"why":"unsupported"', '"prompt":"","why":"unsupported"')),
    ],
    ['a number that is written otherwise', 'number_form', at('record', 0, swap('"wall_ms":820.1', '"wall_ms":820.10'))],
    [
      'a number that most readers round',
      'number_form',
      at('record', 0, swap('"body_bytes":4096', '"body_bytes":9007199254740993')),
    ],
    ['half a surrogate pair', 'lone_surrogate', at('record', 4, swap('😀', '\\ud83d'))],
    [
      'bytes that are no UTF-8',
      'not_json',
      lines =>
        Buffer.from(
          lines
            .join('\n')
            .replace('é', '\xff')
            .replace(/[^\0-\xff]/g, '?'),
          'latin1',
        ),
    ],
    ['a line that is cut', 'not_json', at('record', 2, line => line.slice(0, 100))],
    ['two records in each other’s place', 'seq', lines => [lines[1]!, lines[0]!, ...lines.slice(2)]],
    ['a record twice', 'seq', lines => [lines[0]!, ...lines]],
    ['a number as a text', 'seq', at('record', 0, set({ seq: '0' }))],
    ['another record before it', 'prev_hash', at('record', 1, set({ prev_hash: GENESIS }))],
    ['a record in the chain of the other tenant', 'seq', at('record', 3, set({ tenant_id: 'b' }))],
    [
      'an id twice',
      'trace_id',
      lines => resealed('record', 7, line => ({ ...line, trace_id: parse(lines[0]!).trace_id }))(lines),
    ],
    ['the first checkpoint is missing', 'checkpoint_link', without('checkpoint', 0)],
    [
      'another time of a checkpoint',
      'checkpoint_signature',
      at('checkpoint', 0, set({ ts: '2020-01-01T00:00:00.000Z' })),
    ],
    [
      'a checkpoint of another record',
      'checkpoint_signature',
      at('checkpoint', 0, swap(/"hash":"[0-9a-f]{64}"/, `"hash":"${GENESIS}"`)),
    ],
    ['a signature in another spelling', 'checkpoint_signature', at('checkpoint', 0, swap('"}', '=="}'))],
    [
      'a signature of another checkpoint',
      'checkpoint_signature',
      lines => {
        const [first, second] = places(lines, 'checkpoint')
        return lines.with(first!, JSON.stringify({ ...parse(lines[first!]!), sig: parse(lines[second!]!).sig }))
      },
    ],
    [
      'a pruning with the signature of a checkpoint',
      'checkpoint_signature',
      lines => {
        const [first] = places(lines, 'checkpoint')
        const cut = { ...parse(lines[first!]!), kind: 'prune' }
        return without('record', 0, cut.seq)(lines.toSpliced(first! + 1, 0, JSON.stringify(cut)))
      },
    ],
    ['a member more of a checkpoint', 'unknown_member', at('checkpoint', 0, set({ note: 'audited' }))],
    [
      'two kinds of a checkpoint',
      'duplicate_member',
      at('checkpoint', 0, swap('"kind":"head"', '"kind":"prune","kind":"head"')),
    ],
    [
      'a checkpoint whose bytes are no UTF-8',
      'not_json',
      lines => {
        const bytes = Buffer.from(at('checkpoint', 0, swap('"sig":"', '"sig":"MARK'))(lines).join('\n'))
        return bytes.fill(0xff, bytes.indexOf('MARK'), bytes.indexOf('MARK') + 4)
      },
    ],
    ['a checkpoint that is no checkpoint', 'shape', at('checkpoint', 0, set({ kind: 'tail' }))],
    ['a member more of a key', 'unknown_member', at('keys', 0, swap('"alg":', '"owner":"us","alg":'))],
    ['two lists of keys in one', 'duplicate_member', at('keys', 0, swap('"keys":', '"keys":[],"keys":'))],
    [
      'a key under the name of another',
      'shape',
      at('keys', 0, swap(/"key_id":"[0-9a-f]{16}"/, '"key_id":"0123456789abcdef"')),
    ],
  ]
  for (const [name, reason, edit] of plain) add('plain', name, reason, edit)

  const feedback: [string, string, Edit][] = [
    ['a report says something else', 'feedback_hash', at('feedback', 1, swap('"verdict":"pass"', '"verdict":"fail"'))],
    ['a report is missing', 'feedback_seq', without('feedback', 1)],
    ['the last report is missing', 'feedback_tail_cut', without('feedback', 3)],
    ['reports written anew', 'feedback_head', resealed('feedback', 2, line => ({ ...line, verdict: 'fail' }))],
    [
      'a report more, with its hash',
      'unsigned',
      lines => {
        const last = places(lines, 'feedback').at(-1)!
        const { hash: _, ...report } = parse(lines[last]!)
        return lines.toSpliced(
          last + 1,
          0,
          JSON.stringify(seal(report, parse(lines[last]!) as unknown as Sealed, nativeSha256)),
        )
      },
    ],
    [
      'two verdicts of a report',
      'duplicate_member',
      at('feedback', 1, swap('"verdict":', '"verdict":"fail","verdict":')),
    ],
    ['a member more of a report', 'unknown_member', at('feedback', 1, set({ note: '' }))],
    ['a score that is written otherwise', 'number_form', at('feedback', 1, swap('"score":0.25', '"score":0.250'))],
  ]
  for (const [name, reason, edit] of feedback) add('feedback', name, reason, edit)

  add('pruned', 'the pruning is left out', 'seq', lines => lines.filter(line => !line.includes('"kind":"prune"')))
  add('pruned', 'the pruning moved on', 'seq', lines =>
    lines.map(line => (line.includes('"kind":"prune"') ? set({ seq: parse(line).seq + 1 })(line) : line)),
  )
  add('pruned', 'another hash where it begins', 'prev_hash', lines =>
    lines.map(line => (line.includes('"kind":"prune"') ? set({ hash: GENESIS })(line) : line)),
  )
  add('rotated', 'the checkpoints of the key from before are left out', 'checkpoint_link', lines => {
    const old = parse(lines[places(lines, 'checkpoint')[0]!]!).key_id
    return lines.filter(line => kindOfLine(line) !== 'checkpoint' || parse(line).key_id !== old)
  })
  add('rotated', 'a checkpoint under the name of the other key', 'checkpoint_signature', lines => {
    const next = parse(lines[places(lines, 'checkpoint').at(-1)!]!).key_id
    return at('checkpoint', 0, set({ key_id: next }))(lines)
  })
  return found
}
