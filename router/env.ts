import { z } from 'zod'
import { listOf, logFilter, logFormat } from '../shared/env/read-env.ts'
import { bindSchema } from '../shared/http/bind.ts'
import { otelAttributes, otlpEndpoint, otlpHeaders } from '../shared/telemetry/collector.ts'
import { readPageOrigin } from './auth/pages.ts'

const flag = z.enum(['0', '1'], { error: 'expected 0 or 1' }).transform(value => value === '1')

const upstream = z.string().refine(isHttpUrl, 'expected an http or https address')

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

/** What the router process reads from its environment. */
export const routerEnv = z.object({
  ROUTER_MODE: z.enum(['observe', 'enforce'], { error: 'expected observe or enforce' }).default('observe'),
  ROUTER_CONFIG: z.string().optional(),
  ROUTER_PROMPT_SALT: z.string().optional(),
  ROUTER_RECEIPTS: z.enum(['durable'], { error: 'expected durable, or leave it unset' }).optional(),
  ROUTER_SIGNING_KEY: z.string().optional(),
  ROUTER_SIGNING_KEY_FILE: z.string().optional(),
  ROUTER_ANCHOR_FILE: z.string().optional(),
  ROUTER_BIND: bindSchema.default({ host: '127.0.0.1', port: 8080 }),
  ROUTER_PROCESSES: z
    .string()
    .regex(/^(?:auto|[1-9]\d?)$/, 'expected auto or a number from 1 to 99')
    .default('1'),
  ROUTER_DB: z.string().default('router.db'),
  ROUTER_DB_TOKEN: z.string().optional(),
  ROUTER_DIRECTORY_URL: z.string().optional(),
  ROUTER_UPSTREAM_MESSAGES: upstream.default('https://api.anthropic.com'),
  ROUTER_UPSTREAM_CHAT: upstream.default('https://api.openai.com'),
  ROUTER_TENANT: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,64}$/, 'expected 1 to 64 letters, digits, dots, dashes or underscores')
    .default('default'),
  ROUTER_RESPONSE_HEADERS: flag.default(true),
  ROUTER_KEYS: z.string().optional(),
  ROUTER_INSECURE: flag.default(false),
  ROUTER_METRICS_OPEN: flag.default(false),
  ROUTER_ALLOWED_ORIGINS: listOf(
    readPageOrigin,
    'origins such as https://app.example.com or app://name, each whole and without a path or *',
  ).default([]),
  ROUTER_WATCH: flag.default(false),
  ROUTER_DRAIN_SECONDS: z
    .string()
    .regex(/^\d{1,4}$/, 'expected a number of seconds from 0 to 9999')
    .transform(Number)
    .default(30),
  ROUTER_LOG: logFilter.optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: otlpEndpoint.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: otlpHeaders.default({}),
  OTEL_RESOURCE_ATTRIBUTES: otelAttributes.default({}),
  OTEL_SERVICE_NAME: z.string().max(200, 'expected at most 200 characters').optional(),
  ROUTER_LOG_FORMAT: logFormat.optional(),
  RUST_LOG: logFilter.default({ all: 'info', byTarget: new Map() }),
})

export type RouterEnv = z.output<typeof routerEnv>
