import { z } from 'zod'
import { duration, interval, listOf, logFilter, logFormat, timeout } from '../shared/env/read-env.ts'
import { bindSchema } from '../shared/http/bind.ts'
import { readOrigin, readProxies } from '../shared/http/forwarded.ts'
import { readAllowEntry } from '../shared/http/outbound/allow-list.ts'
import { otelAttributes, otlpEndpoint, otlpHeaders } from '../shared/telemetry/collector.ts'
import { BOOTSTRAP_KEY } from '../shared/wire/runtime/auth.ts'
import { zoneOffset } from './schedules/zone.ts'
import { readMasterKey } from './vault/master-key.ts'

const bytes = z
  .string()
  .regex(/^\d+$/, 'expected a number of bytes')
  .transform(Number)
  .refine(size => size >= 1024 && size <= 1024 ** 3, 'expected 1024 to 1073741824 bytes')

const allowList = listOf(readAllowEntry, 'names, *.names, addresses or networks, each with or without :port')

const originList = listOf(readOrigin, 'origins such as https://app.example.com, each whole and without a path or *')

const proxyList = z.string().transform((text, ctx) => {
  const { proxies, fault } = readProxies(text)
  if (fault === undefined) return proxies
  ctx.addIssue({ code: 'custom', message: `expected addresses or networks such as 10.0.0.0/8; "${fault}" is none` })
  return z.NEVER
})

/** How a shard is called in the directory, in metrics and in messages. */
export const SHARD_NAME = /^[a-z0-9][a-z0-9-]{0,30}$/

const shardList = listOf(
  name => (SHARD_NAME.test(name) ? name : undefined),
  'names of shards: letters, digits and - in lower case',
)

const key32 = z.string().transform((text, ctx) => {
  const key = readMasterKey(text)
  if (key !== undefined) return key
  ctx.addIssue({ code: 'custom', message: 'expected 32 bytes in base64, such as `openssl rand -base64 32` makes' })
  return z.NEVER
})

/** An address without anything behind it: the path is the program's. */
const peerUrl = z.string().transform((text, ctx) => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin
  ctx.addIssue({ code: 'custom', message: 'expected an http or https URL of host and port alone' })
  return z.NEVER
})

/** Where nodes dial in once one is announced, unless PLATFORM_TUNNEL_BIND says otherwise. */
export const DEFAULT_TUNNEL = { host: 'localhost', port: 8081 }

/** What the runtime process reads from its environment. */
export const runtimeEnv = z.object({
  PLATFORM_BIND: bindSchema.default({ host: 'localhost', port: 8080 }),
  /** How many processes answer there. */
  PLATFORM_PROCESSES: z
    .string()
    .regex(/^(?:auto|[1-9]\d?)$/, 'expected auto, or a number of processes from 1 to 4')
    .default('1'),
  /** Reverse proxies whose x-forwarded-for is believed; none by default. */
  PLATFORM_TRUSTED_PROXIES: proxyList.default([]),
  PLATFORM_PUBLIC_URL: z.url({ protocol: /^https?$/, error: 'expected an http or https URL' }).optional(),
  PLATFORM_DATABASE_URL: z.string().optional(),
  PLATFORM_DATABASE_TOKEN: z.string().optional(),
  /** A read replica of that server, whose lag is reported in metrics and by `doctor`; nothing is read from it otherwise. */
  PLATFORM_DATABASE_REPLICA_URL: z.string().optional(),
  /** The directory of shards: which databases there are, and which tenant is in which. In place of PLATFORM_DATABASE_URL. */
  PLATFORM_DIRECTORY_URL: z.string().optional(),
  /** Those that this process serves; by default all. */
  PLATFORM_SHARDS: shardList.default([]),
  PLATFORM_DATA_DIR: z.string().default('./data'),
  PLATFORM_MASTER_KEY: key32.optional(),
  PLATFORM_MASTER_KEY_FILE: z.string().optional(),
  PLATFORM_RECEIPT_KEY: key32.optional(),
  PLATFORM_BOOTSTRAP_KEY: z
    .string()
    .regex(BOOTSTRAP_KEY, 'expected wb_live_ and at least 32 letters, digits, - or _')
    .max(512, 'expected at most 512 characters')
    .optional(),
  /** Listened on as soon as a node is announced; set, from the start. */
  PLATFORM_TUNNEL_BIND: bindSchema.optional(),
  PLATFORM_TUNNEL_TLS_CERT: z.string().optional(),
  PLATFORM_TUNNEL_TLS_KEY: z.string().optional(),
  PLATFORM_TUNNEL_INSECURE: z.enum(['0', '1'], { error: 'expected 0 or 1' }).default('0'),
  /** Where other control planes on the same store reach this one, to ask for nodes that have dialled it. */
  PLATFORM_PEER_URL: peerUrl.optional(),
  PLATFORM_EMBEDDED_NODE: z.enum(['on', 'off'], { error: 'expected on or off' }).default('on'),
  PLATFORM_DISPATCH_TIMEOUT: duration.default(300_000),
  PLATFORM_NODE_LOST_AFTER: duration.default(86_400_000),
  PLATFORM_DRAIN_TIMEOUT: timeout.default(30_000),
  PLATFORM_RECOVERY_INTERVAL: interval.default(30_000),
  PLATFORM_LEASE_TTL: interval.default(60_000),
  PLATFORM_TURN_TIMEOUT: timeout.default(120_000),
  PLATFORM_SSE_HEARTBEAT: interval.default(15_000),
  PLATFORM_MAX_TENANT_STREAMS: z
    .string()
    .regex(/^[1-9]\d{0,5}$/, 'expected 1 to 999999 streams')
    .transform(Number)
    .default(2000),
  /** How long a model may keep its answer open without a word: pings and empty deltas are none. */
  PLATFORM_MODEL_CONTENT_TIMEOUT: timeout.default(600_000),
  PLATFORM_MAX_CONCURRENT_RUNS: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, 'expected 1 to 9999 runs')
    .transform(Number)
    .default(64),
  PLATFORM_DEFAULT_TIMEZONE: z
    .string()
    .refine(name => zoneOffset(name) !== undefined, 'expected an IANA time zone such as Europe/Berlin')
    .optional(),
  PLATFORM_DEMO: z.enum(['auto', 'off']).default('auto'),
  PLATFORM_OUTBOUND_ALLOW: allowList.default([]),
  /** Origins whose pages may call the API from a browser; by default none. */
  PLATFORM_CORS_ORIGINS: originList.default([]),
  /** After so many days ended runs are deleted; 0: never. */
  PLATFORM_RETENTION_DAYS: z
    .string()
    .regex(/^\d{1,4}$/, 'expected 0 to 3650 days')
    .transform(Number)
    .refine(days => days <= 3650, 'expected 0 to 3650 days')
    .default(0),
  PLATFORM_MAX_BODY_BYTES: bytes.default(1_048_576),
  PLATFORM_METRICS_TOKEN: z.string().min(16, 'expected at least 16 characters').optional(),
  PLATFORM_OTLP_ENDPOINT: otlpEndpoint.optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: otlpEndpoint.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: otlpHeaders.default({}),
  OTEL_RESOURCE_ATTRIBUTES: otelAttributes.default({}),
  OTEL_SERVICE_NAME: z.string().max(200, 'expected at most 200 characters').optional(),
  PLATFORM_LOG_LEVEL: logFilter.default({ all: 'info', byTarget: new Map() }),
  PLATFORM_LOG_FORMAT: logFormat.optional(),
})

export type RuntimeEnv = z.output<typeof runtimeEnv>
