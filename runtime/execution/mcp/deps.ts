import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import type { Sha256 } from '../../../shared/sign/sha256.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import type { McpServer } from '../../../shared/wire/runtime/manifest-parts.ts'
import type { SecretUse } from '../../secrets/binding.ts'
import type { History } from '../journal/history.ts'
import type { Claimed } from '../lease-store.ts'
import type { SandboxOfRun } from '../sandbox/run-sandbox.ts'
import type { Steps } from '../step.ts'
import type { McpDefinition } from './definition.ts'

/** What an agent version was shown when it first saw a server. */
export interface Pin {
  hash: string
  definitions: readonly McpDefinition[]
}

export interface PinStore {
  get(versionId: string, server: string): Promise<Pin | undefined>
  /** Keeps the first and gives back the one that is kept. */
  keep(versionId: string, server: string, pin: Pin): Promise<Pin>
}

/** As methods, so that each side may be as exact about its messages as it is. */
interface Messages {
  heard(message: object, extra?: object): void
}

/** What carries JSON-RPC to a server and back; the transports of the MCP SDK are such. */
export interface McpTransport {
  start(): Promise<void>
  send(message: object, options?: object): Promise<void>
  close(): Promise<void>
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  onmessage?: Messages['heard'] | undefined
}

/** A run as its sandbox needs to know it. */
export type SandboxRun = Pick<Claimed, 'id' | 'tenantId' | 'versionId'> & { isolation: string }

/**
 * Another way to a `command` server than the sandbox of the run, for a program that mounts the runtime and isolates commands
 * by itself: no command of a manifest is ever started on the host as it is. A transport is started once, by the client that
 * gets it; its `close` ends the command.
 */
export type StdioTransportOf = (
  run: SandboxRun,
  server: Pick<McpServer, 'name'> & { command: string; args: readonly string[] },
) => Promise<McpTransport>

/** Tokens for servers that ask for OAuth. */
export interface McpGrants {
  /** A token that has a while to live; undefined where no consent was given. */
  tokenFor(tenantId: string, url: string): Promise<string | undefined>
  /** Another one in the place of one that the server has just refused; undefined where there is none to be had. */
  renewed(tenantId: string, url: string, refused: string): Promise<string | undefined>
}

export interface McpDeps {
  fetch: EgressClient['fetch']
  secretOf: (run: Pick<Claimed, 'id' | 'tenantId'>, name: string, use: SecretUse) => Promise<string | undefined>
  pins: PinStore
  grants?: McpGrants | undefined
  /** Absent: commands run in the sandbox of their run. */
  stdioTransportOf?: StdioTransportOf | undefined
}

export interface McpServersDeps extends McpDeps {
  run: Claimed
  steps: Pick<Steps, 'run'>
  history: Pick<History, 'steps'>
  sha256: Sha256
  /** Where `command` servers run; absent where none is declared. */
  sandbox?: SandboxOfRun | undefined
  clock: Pick<Clock, 'monotonic'>
}
