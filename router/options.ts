import type { Log } from '../shared/log/log.ts'
import type { HostFacts } from '../shared/metrics/metrics.ts'
import type { Sha256 } from '../shared/sign/sha256.ts'
import type { Db } from '../shared/sql/db.ts'
import type { Clock } from '../shared/time/clock.ts'
import type { ConfigSource } from './active-config.ts'
import type { Access } from './auth/access.ts'
import type { CredentialHost } from './cloud/credential-request.ts'
import type { GateHost } from './gates/gate-host.ts'
import type { OtherProcesses } from './processes.ts'
import type { BodyRoom } from './proxy/handle-call.ts'
import type { ReceiptStorage } from './receipts.ts'
import type { Transport } from './upstream/transport.ts'

export interface RouterOptions {
  /** Routing config: TOML text, or the same as an object. Without one every call is observed. */
  config?: ConfigSource
  /** Reads the config from where it came, for a reload that names none. */
  readConfig?: () => Promise<ConfigSource>
  /** Name of the config's file, for messages. */
  configFile?: string
  /** Reads schema files that the config names. */
  readFile?: (path: string) => string
  /** The trace store; without one nothing is kept. The caller opens it and closes it. */
  db?: Db
  receiptStorage?: ReceiptStorage
  log?: Log
  clock?: Clock
  transport?: Transport
  /** Native SHA-256 of the host. */
  sha256?: Sha256
  /** What this host lends to gates. */
  gates?: GateHost
  /** Variables: ROUTER_MODE, provider base addresses, and the keys that the config names. */
  env?: Readonly<Record<string, string | undefined>>
  /** Where the credentials of cloud hosts may be looked for beyond the variables; without it nowhere. */
  credentialHost?: CredentialHost
  tenantId?: string
  promptSalt?: string
  /** Whether answers carry `x-router-*` headers; default yes. */
  responseHeaders?: boolean
  /** Where people reach the dashboard of the runtime in the same process, for the menu of the panel. */
  dashboard?: () => string | undefined
  maxBodyBytes?: number
  /** Who may call; without it everyone whom the program lets through. */
  access?: Access
  /** Cuts the connection of a request, where the host can: the only true end of an answer that broke off. */
  cut?: (request: Request) => void
  /** How much of requests is held at a time, where the host limits it. */
  room?: BodyRoom
  /** Requests being answered, where the host counts them. */
  inFlight?: () => number
  /** What this host knows of its process, for /metrics. */
  host?: HostFacts
  /** Where this is one of several processes of a service. */
  others?: OtherProcesses
}
