import { readJson } from '../../shared/json/read-json.ts'
import { utf8 } from '../../shared/sign/bytes.ts'
import { type BoxKeys, openSealed } from '../../shared/tunnel/sealed-payload.ts'
import type { Manifest } from '../../shared/wire/runtime/manifest.ts'
import type { PoolCredentialPut } from '../../shared/wire/runtime/node.ts'
import type { ManifestTexts, OpenTexts } from '../agents/texts.ts'

// What passes between a control plane and a node under the key of a pool: the types of the payloads, and the additional authenticated
// data (AAD) that binds each of them to its purpose.

export const manifestAad = (versionId: string): string => `manifest/${versionId}`
export const textsAad = (versionId: string): string => `manifest-texts/${versionId}`
export const inputAad = (runId: string): string => `input/${runId}`
export const scheduleInputAad = (scheduleId: string): string => `schedule-input/${scheduleId}`
export const decisionAad = (approvalId: string): string => `decision/${approvalId}`
export const signalAad = (runId: string): string => `signal/${runId}`
export const credentialAad = (pool: string, ref: string): string => `credential/${pool}/${ref}`
/** The ref under which nodes are given the aliases, prices and windows of their tenant. No credential has it. */
export const MODEL_SETTINGS = 'settings/models'
export const poolKeyAad = (tenantId: string, pool: string): string => `pool-key/${tenantId}/${pool}`

/** What a node must know of an agent to run it. */
export interface ManifestEnvelope {
  agentId: string
  agentName: string
  versionId: string
  number: number
  manifest: Manifest
  manifestHash: string
}

/** Opens the texts of versions that were sealed to this pool. */
export const textsOpener =
  (poolKeys: BoxKeys): OpenTexts =>
  async (versionId, box) =>
    readJson(new TextDecoder().decode(await openSealed(poolKeys, box, textsAad(versionId)))) as ManifestTexts

/** What a node answers about the runs that it holds. */
export interface RemoteRunData {
  id: string
  /** Absent where it was dropped with the end of the run. */
  input?: Record<string, unknown>
  output?: Record<string, unknown>
  errorMessage?: string
}

export interface RemoteApproval {
  id: string
  prompt: string
  action?: { name: string; arguments: unknown }
  comment?: string
}

export interface RemoteEventText {
  hash: string
  body: string
}

export function refOf(given: PoolCredentialPut): string {
  if ('secret' in given) return `secret/${given.secret.name}`
  return 'provider' in given ? `provider/${given.provider.provider}` : `connector/${given.connector.connectorId}`
}

/** The events of a journal, a line for each: neither end reads or writes a second layer of JSON. A canonical text holds no line break. */
export function eventLines(events: readonly RemoteEventText[], hasMore = false): Uint8Array<ArrayBuffer> {
  const lines = events.map(({ hash, body }) => `${hash} ${body}\n`)
  return utf8(lines.join('') + (hasMore ? MORE : ''))
}

/** The last line of a page that is followed by another one. */
const MORE = 'more\n'

export interface RemoteEventPage {
  events: RemoteEventText[]
  /** Whether the node said that others follow; one of an older version says so of no page. */
  hasMore: boolean
}

/** The first of them, at most so many; undefined: these are no such lines. */
export function readEventLines(text: string, most: number): RemoteEventPage | undefined {
  // A node of an older version answers a list in JSON.
  if (text.startsWith('[')) return undefined
  if (text === MORE) return { events: [], hasMore: false }
  const hasMore = text.endsWith(`\n${MORE}`)
  const lines = text.slice(0, hasMore ? -MORE.length : undefined).split('\n', most + 1)
  const events = lines.slice(0, -1).map(line => {
    const end = line.indexOf(' ')
    return { hash: line.slice(0, end), body: line.slice(end + 1) }
  })
  return { events, hasMore }
}
