import { signer } from '../../shared/sign/ed25519.ts'
import { canonicalize } from '../../shared/sign/jcs.ts'
import { journalHash } from '../../shared/sign/testing/check-journal.ts'
import type { JournalExport } from '../../shared/wire/runtime/journal.ts'
import type { Receipt } from '../../shared/wire/runtime/receipt.ts'
import { RUN_KINDS, type RunKind, type RunProof } from './runtime-proofs.ts'

/** What is handed over in place of a proof; the name says what was done, and the reason is what a verifier must say. */
export interface RunForgery {
  name: string
  reason: string
  receipt: Buffer
  journal: Buffer | undefined
  fingerprint: string
}

type Edit = (text: string) => string | Buffer

const swap =
  (from: string | RegExp, to: string): Edit =>
  text => {
    const edited = text.replace(from, to)
    if (edited === text) throw new Error(`there is no ${String(from)} to forge in ${text.slice(0, 400)}`)
    return edited
  }
const receiptOf =
  (edit: (receipt: Receipt) => object): Edit =>
  text =>
    JSON.stringify(edit(JSON.parse(text)))
const journalOf =
  (edit: (journal: JournalExport) => object): Edit =>
  text =>
    JSON.stringify(edit(JSON.parse(text)))
const eventsOf = (edit: (events: JournalExport['events']) => object[]): Edit =>
  journalOf(journal => ({ ...journal, events: edit(journal.events) }))
/** From that event on, with hashes that need no key. */
const rehashed = (edit: (events: JournalExport['events']) => object[]): Edit =>
  journalOf(journal => {
    let head = journal.genesis
    const events = edit(journal.events).map(event => {
      head = journalHash(head, event as JournalExport['events'][number])
      return { ...event, hash: head }
    })
    return { ...journal, events, head, eventCount: events.length }
  })
const ZEROS = '0'.repeat(64)
const stranger = await signer(new Uint8Array(32).fill(42))

async function resigned(text: string): Promise<string> {
  const { payload } = JSON.parse(text) as Receipt
  const forged = { ...payload, costUsd: 0, keyId: stranger.keyId }
  const signature = Buffer.from(await stranger.sign(Buffer.from(canonicalize(forged)))).toString('base64')
  const publicKey = Buffer.from(stranger.publicKey).toString('base64')
  return JSON.stringify({ payload: forged, signature, algorithm: 'Ed25519', publicKey })
}

export async function runForgeries(proofs: Record<RunKind, RunProof>): Promise<RunForgery[]> {
  const found: RunForgery[] = []
  function add(kind: RunKind, name: string, reason: string, edits: { receipt?: Edit; journal?: Edit }) {
    const { receipt, journal, fingerprint } = proofs[kind]
    const after = (edit: Edit | undefined, text: string) => Buffer.from(edit ? edit(text) : text)
    found.push({
      name: `${kind}: ${name}`,
      reason,
      fingerprint,
      receipt: after(edits.receipt, receipt),
      journal: after(edits.journal, journal),
    })
  }

  for (const kind of RUN_KINDS) {
    add(kind, 'another cost', 'signature_invalid', { receipt: swap('"costUsd":0', '"costUsd":1') })
    add(kind, 'an event says something else', 'chain_broken', {
      journal: eventsOf(([first, ...rest]) => [{ ...first!, payload: { forged: true } }, ...rest]),
    })
    add(kind, 'a status in front of the status', 'duplicate_member', {
      receipt: swap('"status":', '"status":"refunded","status":'),
    })
    add(kind, 'the end of the journal is missing', 'event_count_mismatch', {
      journal: eventsOf(events => events.slice(0, -1)),
    })
  }

  const receipts: [string, string, Edit][] = [
    ['a member more beside the payload', 'unknown_member', receiptOf(one => ({ ...one, approvedBy: 'the auditor' }))],
    [
      'a member more in the payload',
      'unknown_member',
      receiptOf(one => ({ ...one, payload: { ...one.payload, refunded: true } })),
    ],
    [
      'a member of the payload is missing',
      'signature_invalid',
      receiptOf(({ payload: { models: _, ...payload }, ...one }) => ({ ...one, payload })),
    ],
    ['two signatures', 'duplicate_member', swap('"signature":', '"signature":"","signature":')],
    [
      'a second status with an escaped name',
      'duplicate_member',
      swap('"status":', '"\\u0073tatus":"failed","status":'),
    ],
    ['a count that is written otherwise', 'number_form', swap(/"eventCount":(\d+)/, '"eventCount":$1.0')],
    ['a cost that is written otherwise', 'number_form', swap('"costUsd":0', '"costUsd":-0')],
    ['half a surrogate pair', 'lone_surrogate', swap('"agentName":"', '"agentName":"\\ud83d')],
    ['bytes that are no UTF-8', 'not_json', text => Buffer.from(text.replace('"echo"', '"\xff"'), 'latin1')],
    ['a byte order mark', 'not_json', text => `\ufeff${text}`],
    ['cut in the middle', 'not_json', text => text.slice(0, 200)],
    ['another algorithm', 'shape', receiptOf(one => ({ ...one, algorithm: 'none' }))],
    ['without a signature', 'shape', receiptOf(({ signature: _, ...one }) => one)],
    ['a list in place of the payload', 'shape', receiptOf(one => ({ ...one, payload: [one.payload] }))],
    ['without its key', 'unknown_key', receiptOf(({ publicKey: _, ...one }) => one)],
    [
      'it names another key',
      'unknown_key',
      receiptOf(one => ({ ...one, payload: { ...one.payload, keyId: '0123456789abcdef' } })),
    ],
    [
      'the signature in another spelling',
      'signature_invalid',
      receiptOf(one => ({ ...one, signature: one.signature.replace(/=+$/, '') })),
    ],
    [
      'another bit in the signature',
      'signature_invalid',
      receiptOf(one => ({ ...one, signature: Buffer.from(one.signature, 'base64').fill(1, 0, 1).toString('base64') })),
    ],
    [
      'the signature of another run',
      'signature_invalid',
      receiptOf(one => ({ ...one, signature: (JSON.parse(proofs.failed.receipt) as Receipt).signature })),
    ],
    ['the receipt of another run', 'chain_broken', () => proofs.failed.receipt],
  ]
  for (const [name, reason, receipt] of receipts) add('succeeded', name, reason, { receipt })
  const anew = await resigned(proofs.succeeded.receipt)
  add('succeeded', 'signed by a stranger', 'unknown_key', { receipt: () => anew })
  add('rotated', 'the key from before the rotation beside it', 'unknown_key', {
    receipt: receiptOf(one => ({ ...one, publicKey: (JSON.parse(proofs.failed.receipt) as Receipt).publicKey })),
  })
  add('node', 'another signature of the node', 'signature_invalid', {
    receipt: receiptOf(one => ({
      ...one,
      payload: { ...one.payload, node: { ...one.payload.node, signature: one.signature } },
    })),
  })
  add('node', 'the node is left out', 'signature_invalid', {
    receipt: receiptOf(({ payload: { node: _, ...payload }, ...one }) => ({ ...one, payload })),
  })
  add('node', 'a member more of the node', 'unknown_member', { receipt: swap('"node":{', '"node":{"name":"trusted",') })

  const journals: [string, string, Edit][] = [
    [
      'an output beside the payload of an event',
      'unknown_member',
      eventsOf(([a, b, ...rest]) => [a!, { ...b!, output: 'FORGED' }, ...rest]),
    ],
    [
      'an event with the names of the stream',
      'unknown_member',
      eventsOf(([a, ...rest]) => [{ ...a!, ts: a!.at, data: { forged: true } }, ...rest]),
    ],
    ['a member more beside the events', 'unknown_member', journalOf(one => ({ ...one, note: 'complete' }))],
    ['two payloads of an event', 'duplicate_member', swap('"payload":', '"payload":{"forged":true},"payload":')],
    ['a name twice inside of a payload', 'duplicate_member', swap('"numbers":', '"numbers":[],"numbers":')],
    ['an infinite number for a null', 'number_form', swap('1234567890123456800,null', '1234567890123456800,1e999')],
    ['another integer beyond 2^53', 'number_form', swap('1234567890123456800', '1234567890123456811')],
    ['an exponent in another spelling', 'number_form', swap('1e+21', '1E21')],
    ['more digits than a number has', 'number_form', swap('[1e+21,0.1,', '[1e+21,0.1000000000000000055,')],
    ['half a surrogate pair', 'lone_surrogate', swap('😀', '\\ud83d')],
    [
      'bytes that are no UTF-8',
      'not_json',
      text => Buffer.from(text.replace('é', '\xff').replace(/[^\0-\xff]/g, '?'), 'latin1'),
    ],
    ['an event is missing', 'chain_broken', eventsOf(events => events.toSpliced(1, 1))],
    ['two events in each other’s place', 'chain_broken', eventsOf(([a, b, ...rest]) => [b!, a!, ...rest])],
    ['an event twice', 'chain_broken', eventsOf(events => [...events, events.at(-1)!])],
    ['a number as a text', 'chain_broken', swap('"seq":1,', '"seq":"1",')],
    ['true for the number 1', 'chain_broken', swap('"seq":1,', '"seq":true,')],
    ['another time', 'chain_broken', eventsOf(([a, ...rest]) => [{ ...a!, at: '2020-01-01T00:00:00.000Z' }, ...rest])],
    ['another attempt', 'chain_broken', eventsOf(([a, ...rest]) => [{ ...a!, attempt: 2 }, ...rest])],
    [
      'an event without its meta',
      'chain_broken',
      eventsOf(([{ meta: _, ...a } = {} as never, ...rest]) => [a, ...rest]),
    ],
    ['another hash', 'chain_broken', eventsOf(([a, ...rest]) => [{ ...a!, hash: ZEROS }, ...rest])],
    ['the journal of another run', 'chain_broken', () => proofs.failed.journal],
    ['no event at all', 'event_count_mismatch', eventsOf(() => [])],
    [
      'an event more, with its hash',
      'event_count_mismatch',
      rehashed(events => [...events, { ...events.at(-1)!, seq: events.length + 1 }]),
    ],
    [
      'written anew, with all hashes',
      'journal_hash_mismatch',
      rehashed(([a, ...rest]) => [{ ...a!, payload: { forged: true } }, ...rest]),
    ],
    ['another count at its head', 'journal_header_mismatch', journalOf(one => ({ ...one, eventCount: 1 }))],
    ['another last hash at its head', 'journal_header_mismatch', journalOf(one => ({ ...one, head: ZEROS }))],
    ['another first hash at its head', 'journal_header_mismatch', journalOf(one => ({ ...one, genesis: ZEROS }))],
    ['another run at its head', 'journal_header_mismatch', journalOf(one => ({ ...one, runId: 'other' }))],
    ['not sealed by what its head says', 'journal_header_mismatch', journalOf(one => ({ ...one, sealed: false }))],
  ]
  for (const [name, reason, journal] of journals) add('approval', `journal: ${name}`, reason, { journal })
  return found
}
