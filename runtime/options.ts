import type { EgressClient } from '../shared/http/outbound/egress-client.ts'
import type { Log } from '../shared/log/log.ts'
import type { HostFacts, Metrics } from '../shared/metrics/metrics.ts'
import type { CurveKeys } from '../shared/sign/curve-keys.ts'
import type { Sha256 } from '../shared/sign/sha256.ts'
import type { Db } from '../shared/sql/db.ts'
import type { ServerClock } from '../shared/sql/server-clock.ts'
import type { Collector } from '../shared/telemetry/collector.ts'
import type { Clock } from '../shared/time/clock.ts'
import type { ConnectorId } from '../shared/wire/runtime/catalog.ts'
import type { Scrypt } from './auth/password.ts'
import type { Throttle } from './auth/throttle.ts'
import type { OAuthClients } from './connectors/oauth/clients.ts'
import type { OtherHome } from './connectors/oauth/vendors.ts'
import type { EngineLimits } from './execution/engine-deps.ts'
import type { StdioTransportOf } from './execution/mcp/deps.ts'
import type { Models } from './execution/models/model.ts'
import type { Sandboxes } from './execution/sandbox/sandboxes.ts'
import type { Outbound } from './execution/tools/http-request-tool.ts'
import type { Connection, Principal } from './http/http-env.ts'
import type { MetricsAccess } from './metrics/route.ts'
import type { NodeGateway } from './nodes/gateway/gateway.ts'
import type { TunnelTimes } from './nodes/gateway/timeouts.ts'
import type { TunnelEndpoint } from './nodes/gateway/well-known-route.ts'
import type { PeerOptions } from './nodes/peers/peer-client.ts'
import type { NodeWorker, WorkerIdentity } from './nodes/worker/worker.ts'
import type { EnvironmentProvider } from './providers/environment.ts'
import type { Deadlines } from './providers/vendor/answer-limits.ts'
import type { RecordCipher, Records } from './vault/records.ts'

export interface RuntimeOptions {
  /** The control plane's store. The caller opens it and closes it. */
  db: Db
  /** A read replica of the store, for the metric of its lag. */
  replica?: Db | undefined
  log?: Log
  /** Of this machine; on a database server its time is used. */
  clock?: Clock
  maxBodyBytes?: number
  /** Long bodies that are read at a time have so many bytes together; the others wait for their turn. Default: no limit. */
  bodyBytesAtATime?: number
  /** Answers of models that are read at a time have so many bytes together; beyond, the longest is given up. Default: no limit. */
  answerBytesAtATime?: number
  /** Bytes of the steps that a fork begins with; a longer fork is refused. Default: no limit. */
  copiedBytesAtMost?: number
  /** Origins whose pages may call the API from a browser, such as `https://app.example.com`. Default: none. */
  corsOrigins?: readonly string[] | undefined
  /** After so many days an ended run is deleted, unless its agent says fewer; 0: never, the default. */
  retentionDays?: number | undefined
  /** Default open: a program that mounts the runtime decides who reaches it. */
  metricsAccess?: MetricsAccess
  /** Where a host makes many runtimes one after the other: what they count together. Default: a registry of its own. */
  metrics?: Metrics
  /** What this host knows of its process, for /metrics. */
  host?: HostFacts
  /** The same of tries to log in. */
  loginTries?: Throttle | undefined
  /** What another runtime on this store found out at its start, so that this one need not ask again. */
  learnt?: Learnt | undefined
  /** 32 bytes under which secrets are sealed. Without it nothing secret can be stored. */
  masterKey?: Uint8Array<ArrayBuffer> | undefined
  /** AES-256-GCM of this host, under which run data is sealed at rest; without a master key it stands in clear. Default: in JavaScript. */
  cipher?: RecordCipher | undefined
  /** Compresses the modules and style sheets of the dashboard; without it they go out as they are, as before a host that compresses itself. */
  gzip?: ((text: string) => Uint8Array<ArrayBuffer>) | undefined
  /** The zone of schedules that name none, and whose days budgets and usage are counted by. Default: UTC. */
  defaultTimezone?: string | undefined
  /** 32 bytes that receipts are signed with; without it a key is made and kept under the master key. */
  receiptSeed?: Uint8Array<ArrayBuffer> | undefined
  /** A key of the form `wb_live_…` with every scope, for a start without anyone at a browser. */
  bootstrapKey?: string | undefined
  /** Under which address people reach this; decides whether login cookies ask for HTTPS. Default: that of each request. */
  publicUrl?: string | undefined
  /** A native scrypt, where the host has one. */
  scrypt?: Scrypt | undefined
  sha256?: Sha256
  /** Signatures and sealed boxes without WebCrypto, where the host has them. */
  curveKeys?: CurveKeys
  /** How this process is called in the leases of its runs. */
  owner?: string
  isGone?: (owner: string) => boolean
  limits?: Partial<EngineLimits>
  /** In place of the providers that tenants configure. */
  models?: Models
  /** How anything outside is reached; without it providers and `http_request` are refused. */
  egress?: EgressClient | undefined
  /** How `http_request` alone reaches the outside, where that is another way. */
  outbound?: Outbound
  /** What this node can put foreign code into; without it, nothing foreign runs here. */
  sandboxes?: Sandboxes
  /** What this installation is called at vendors, for OAuth. */
  oauthClients?: OAuthClients | undefined
  /** Vendors whose OAuth is somewhere else than at their own address: a server of one's own, or one of a test. */
  oauthHomes?: Readonly<Partial<Record<ConnectorId, OtherHome>>> | undefined
  /** How commands of MCP servers are started inside a sandbox; without it runs that need one are refused. */
  stdioTransportOf?: StdioTransportOf | undefined
  /** Providers of every tenant that has not configured them itself. */
  providers?: readonly EnvironmentProvider[] | undefined
  /** A router in this process: it becomes the provider `router`, and with it the first choice of `auto`. */
  routerFetch?: ((request: Request) => Promise<Response>) | undefined
  /** Where people reach the panel of a router in this process; undefined while it is not known. */
  routerPanel?: (() => string | undefined) | undefined
  /** Whether a tenant without a provider gets simulated answers; default yes. */
  demo?: boolean | undefined
  /** How long a provider may be silent. */
  providerDeadlines?: Partial<Deadlines> | undefined
  /** Where traces of runs go; without it nothing is traced. */
  telemetry?: Collector | undefined
  sseHeartbeatMs?: number
  /** Event streams that a tenant may have open in this process. Default: 2000. */
  maxTenantStreams?: number | undefined
  /** False on hosts where nothing runs between requests: they call `scheduled` instead. Default: true. */
  timers?: boolean
  /** How long a message to a session waits for its answer. */
  turnTimeoutMs?: number
  /** False: nothing is executed in this process, and every run goes to a node. Default: true. */
  embeddedNode?: boolean
  tunnel?: Partial<TunnelTimes>
  /** How other control planes of this store reach this one, and it them; that takes a master key. Default: they do not. */
  peer?: PeerOptions | undefined
  /** How long a run waits for a node that could take it. Default: five minutes. */
  dispatchTimeoutMs?: number
  /** After so long an absence of a node its runs end; 0: never. Default: a day. */
  nodeLostAfterMs?: number
  /** For a node: whose orders this runtime executes. It then has no API of its own. */
  worker?: WorkerIdentity
}

/** What does not change on a store while a process lives. */
export interface Learnt {
  nodeId: string
  records: Records
  serverClock: ServerClock | undefined
}

export interface Runtime {
  fetch(request: Request, connection?: Connection): Promise<Response>
  /** Brings the store up to date; rejects with a sentence when that cannot be done. */
  ready(): Promise<void>
  /** For the next runtime of the same process. */
  learnt(): Promise<Learnt>
  /** Who calls with this API key; undefined for one that is not known here. */
  principalOf(request: Pick<Request, 'headers'>): Promise<Principal | undefined>
  /** A one-time token for the setup page, while there is no owner yet. */
  setupToken(): Promise<string | undefined>
  /** What is due by now, for hosts without timers: called by the platform every minute. */
  scheduled(): Promise<void>
  /** For hosts without timers: executes what was started here, and what that makes due, for up to `ms`. */
  advance(ms: number): Promise<void>
  /** Where nodes come in; the host puts it on a socket and says where with `listening`. */
  nodes: { gateway: NodeGateway; whenWanted(listen: () => void): void; listening(at: TunnelEndpoint): void }
  /** With `worker`: the side of the node. */
  worker: NodeWorker | undefined
  /** Runs may be due that came into the store from elsewhere. */
  wake(): void
  /** What is made now is not claimed here at once: every worker has a run, or the service leaves. */
  busy(): boolean
  /**
   * From now on no run is claimed. With `stop` /readyz says that the service is leaving, and work that is posted is refused; with `restart` it is
   * stored for those that go on at the address.
   */
  drain(why?: 'restart' | 'stop'): void
  /** After `drain`: resolves when the open steps are finished, and after `ms` in any case. Reads are answered until `close`. */
  settled(ms: number): Promise<void>
  /** Lets open steps finish for up to `ms`; what is not finished goes on after the next start. */
  close(ms?: number): Promise<void>
}
